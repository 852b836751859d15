/* spmv spgemm: C = A B of sparse matrices; with --triple C = R (A P).
 *
 * Steps: load, symbolic phase, numeric phase, write; the first two phases once for each product.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/spgemm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/input.h"
#include "app/job_memory.h"
#include "app/matrix_output.h"
#include "app/options.h"
#include "app/output.h"
#include "core/plural.h"

enum { MATRICES_MOST = 3, PRODUCTS_MOST = 2 };

/* One product of two matrices. */
struct product {
    spmv_spgemm_plan *plan;
    spmv_spgemm_info info; /* strings live as long as the plan */
    void *values;          /* in the context's memory */
    spmv_csr c;            /* in the context's memory */
    double numeric_seconds;
};

struct job {
    const struct options *o;
    spmv_context *ctx;
    struct input in[MATRICES_MOST];
    spmv_matrix *sent[MATRICES_MOST]; /* copies in a GPU's memory */
    spmv_csr there[MATRICES_MOST];    /* the matrices in the context's memory */
    int matrices, products;
    struct product product[PRODUCTS_MOST];
    struct input c; /* the result, in host memory */
};

static spmv_status failed(const struct job *job, spmv_status st)
{
    progress_end();
    return report(st, plain_sentence(spmv_last_error(job->ctx)));
}

static bool on_host(const struct job *job)
{
    return spmv_context_backend(job->ctx) != SPMV_BACKEND_CUDA;
}

/* ---------------------------------------------------------------------------------- load */

static spmv_status load(struct job *job, const char *const *arguments)
{
    spmv_status st = SPMV_OK;
    for (int i = 0; i < job->matrices && st == SPMV_OK; i++) {
        st = input_load(job->ctx, job->o, JOB_LOOK, arguments[i], &job->in[i]);
        if (spmv_status_class(st) == 3 && looks_like_numbers(arguments[i]))
            complain("%s has plain numbers: spmv matvec A x multiplies a matrix by a vector", arguments[i]);
        job->there[i] = job->in[i].view;
    }
    for (int i = 1; i < job->matrices && st == SPMV_OK; i++) {
        const spmv_csr *const a = &job->in[0].view, *const b = &job->in[i].view;
        if (a->val == NULL || b->val == NULL || a->type == b->type)
            continue;
        complain("%s has values of type %s, %s of type %s: --type c128 reads both as complex numbers",
                 job->in[0].argument, spmv_type_name(a->type), job->in[i].argument, spmv_type_name(b->type));
        st = SPMV_ERROR_TYPE;
    }
    return st;
}

/* Brings the matrices into the context's memory, which on the host is where they are. */
static spmv_status send(struct job *job)
{
    for (int i = 0; i < job->matrices; i++) {
        if (!on_host(job)) {
            const spmv_status st = spmv_matrix_copy(job->ctx, &job->in[i].view, SPMV_MEMORY_CONTEXT, &job->sent[i]);
            if (st != SPMV_OK)
                return failed(job, st);
            spmv_matrix_view(job->sent[i], &job->there[i]);
        }
        job->there[i].memory = SPMV_MEMORY_CONTEXT;
    }
    return SPMV_OK;
}

/* ------------------------------------------------------------------------------ spgemm */

/* Memory that C takes after the symbolic phase, and writing it: checked before it is allocated. */
static spmv_status check_memory(const struct job *job, const struct product *product)
{
    struct memory m;
    const int64_t value = (int64_t)spmv_type_size(product->info.type), most = INT64_MAX / 2;
    memory_limit(job->ctx, job->o, JOB_LOOK, &m);
    m.needed = product->info.nnz < most / value ? product->info.nnz * value : most;
    if (!on_host(job) || m.needed <= m.allowed)
        return SPMV_OK;
    char text[160];
    snprintf(text, sizeof text, "the values of the product (entries: %lld) need %s of memory; %s are allowed",
             (long long)product->info.nnz, bytes_text((double)m.needed), bytes_text((double)m.allowed));
    return memory_report(&m, SPMV_ERROR_MEMORY, text);
}

static spmv_status multiply(struct job *job, const spmv_csr *a, const spmv_csr *b, struct product *product)
{
    spmv_spgemm_options options;
    struct memory m;
    memory_limit(job->ctx, job->o, JOB_LOOK, &m);
    spmv_spgemm_options_init(&options, sizeof options);
    options.method = job->o->method;
    if (job->o->max_memory > 0 && on_host(job))
        options.max_bytes = m.allowed;
    spmv_status st = spmv_spgemm_plan_create(job->ctx, a, b, &options, &product->plan);
    if (st == SPMV_OK)
        st = spmv_spgemm_describe(product->plan, &product->info, sizeof product->info);
    m.needed = options.max_bytes > 0 ? INT64_MAX : 0; /* with a limit the message names the option */
    if (st != SPMV_OK) {
        progress_end();
        return memory_report(&m, st, plain_sentence(spmv_last_error(job->ctx)));
    }
    st = check_memory(job, product);
    if (st != SPMV_OK)
        return st;
    spmv_spgemm_pattern(product->plan, &product->c);
    const int64_t n = product->info.nnz > 0 ? product->info.nnz : 1;
    st = spmv_alloc(job->ctx, n * (int64_t)spmv_type_size(product->info.type), &product->values);
    const double began = monotonic_seconds();
    if (st == SPMV_OK)
        st = spmv_spgemm_values(product->plan, a->val, b->val, product->values);
    if (st == SPMV_OK)
        st = spmv_synchronize(job->ctx);
    product->numeric_seconds = monotonic_seconds() - began;
    product->c.val = product->values;
    return st == SPMV_OK ? SPMV_OK : failed(job, st);
}

/* A B, or A P and then R (A P). */
static spmv_status multiply_all(struct job *job)
{
    const bool triple = job->o->triple;
    spmv_status st = multiply(job, &job->there[triple ? 1 : 0], &job->there[triple ? 2 : 1], &job->product[0]);
    if (st == SPMV_OK && triple)
        st = multiply(job, &job->there[0], &job->product[0].c, &job->product[1]);
    return st;
}

/* The result in host memory. */
static spmv_status receive(struct job *job)
{
    const spmv_csr *const c = &job->product[job->products - 1].c;
    job->c.argument = job->o->triple ? "R (A P)" : "A B";
    job->c.view = *c;
    job->c.view.memory = SPMV_MEMORY_HOST;
    if (on_host(job))
        return SPMV_OK;
    const spmv_status st = spmv_matrix_copy(job->ctx, c, SPMV_MEMORY_HOST, &job->c.matrix);
    if (st != SPMV_OK)
        return failed(job, st);
    spmv_matrix_view(job->c.matrix, &job->c.view);
    return SPMV_OK;
}

/* ------------------------------------------------------------------------------- results */

/* The seconds of a phase of all products. */
static double symbolic_seconds(const struct job *job)
{
    return job->product[0].info.seconds + job->product[1].info.seconds;
}

static double numeric_seconds(const struct job *job)
{
    return job->product[0].numeric_seconds + job->product[1].numeric_seconds;
}

static void remark_job(const struct job *job)
{
    for (int i = 0; i < job->products; i++) {
        const struct product *const s = &job->product[i];
        remark(LEVEL_NORMAL, "%s: %lld x %lld, %lld nonzero%s from %lld product%s, %s",
               !job->o->triple ? "A B"
               : i == 0        ? "A P"
                               : "R (A P)",
               (long long)s->info.rows, (long long)s->info.cols, (long long)s->info.nnz, plural(s->info.nnz),
               (long long)s->info.products, plural(s->info.products), spmv_type_name(s->info.type));
    }
    remark(LEVEL_NORMAL, "on %s", spmv_context_describe(job->ctx));
    remark(LEVEL_NORMAL, "method %s: %s", job->product[0].info.method, job->product[0].info.why);
    remark(LEVEL_NORMAL, "symbolic phase %s, numeric phase %s", seconds_text(symbolic_seconds(job)),
           seconds_text(numeric_seconds(job)));
}

static json_t *json_product(const struct product *s)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I}", "method", s->info.method, "why",
                     s->info.why, "type", spmv_type_name(s->info.type), "rows", (json_int_t)s->info.rows, "cols",
                     (json_int_t)s->info.cols, "nnz", (json_int_t)s->info.nnz, "products", (json_int_t)s->info.products,
                     "symbolic_seconds", s->info.seconds, "numeric_seconds", s->numeric_seconds, "plan_bytes",
                     (json_int_t)s->info.bytes, "working_bytes", (json_int_t)s->info.working_bytes);
}

static spmv_status write_json(const struct job *job)
{
    spmv_statistics statistics;
    json_t *root = json_begin(job->o), *inputs = json_array(), *products = json_array(), *result = json_object();
    json_put(root, "machine", json_machine(spmv_context_threads(job->ctx)));
    for (int i = 0; i < job->matrices; i++) {
        const spmv_status st = spmv_matrix_statistics(job->ctx, &job->in[i].view, &statistics, sizeof statistics);
        if (st != SPMV_OK) {
            json_decref(inputs);
            json_decref(products);
            json_decref(result);
            json_decref(root);
            return failed(job, st);
        }
        json_t *const input = json_object();
        json_put(input, "matrix", json_matrix(job->in[i].name, &statistics));
        json_put(input, "load", json_load(&job->in[i]));
        json_array_append_new(inputs, input);
    }
    for (int i = 0; i < job->products; i++)
        json_array_append_new(products, json_product(&job->product[i]));
    json_put(root, "inputs", inputs);
    json_put(result, "op", json_string(job->o->triple ? "triple" : "multiply"));
    json_put(result, "backend", json_string(spmv_backend_name(spmv_context_backend(job->ctx))));
    json_put(result, "products", products);
    json_put(result, "symbolic_seconds", json_number(symbolic_seconds(job)));
    json_put(result, "numeric_seconds", json_number(numeric_seconds(job)));
    json_put(root, "result", result);
    return json_finish(job->o, root);
}

static spmv_status write_results(struct job *job, const char *path)
{
    spmv_status matrix = SPMV_OK, json = SPMV_OK;
    remark_job(job);
    job->c.seconds = symbolic_seconds(job) + numeric_seconds(job);
    if (path != NULL)
        matrix = write_matrix(job->ctx, &job->c, path, "computed");
    if (job->o->json)
        json = write_json(job);
    return matrix != SPMV_OK ? matrix : json;
}

static void release(struct job *job)
{
    for (int i = 0; i < PRODUCTS_MOST; i++) {
        spmv_free(job->ctx, job->product[i].values);
        spmv_spgemm_plan_destroy(job->product[i].plan);
    }
    for (int i = 0; i < MATRICES_MOST; i++) {
        spmv_matrix_destroy(job->sent[i]);
        input_free(&job->in[i]);
    }
    input_free(&job->c);
    spmv_context_destroy(job->ctx);
}

static spmv_status check_wishes(const struct options *o, const char *const *arguments, int count, const char **path)
{
    const int wanted = o->triple ? 3 : 2;
    if (count != wanted) {
        complain("%d matrices: %s", count,
                 o->triple ? "--triple needs three, R A P" : "spmv spgemm needs two, A B; three with --triple");
        return SPMV_ERROR_ARGUMENT;
    }
    spmv_status st = check_standard_input(o, arguments, count);
    return st == SPMV_OK ? choose_answer(o, "the matrix", path) : st;
}

spmv_status run_spgemm(const struct options *o, const char *const *arguments, int count)
{
    struct job job = {.o = o, .matrices = count, .products = o->triple ? 2 : 1};
    const char *path = NULL;
    spmv_status st = check_wishes(o, arguments, count, &path);
    if (st == SPMV_OK)
        st = open_context(o, o->backend, &job.ctx);
    if (st == SPMV_OK)
        st = load(&job, arguments);
    if (st == SPMV_OK)
        st = send(&job);
    if (st == SPMV_OK)
        st = multiply_all(&job);
    if (st == SPMV_OK)
        st = receive(&job);
    if (st == SPMV_OK)
        st = write_results(&job, path);
    release(&job);
    return st;
}
