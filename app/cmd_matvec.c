/* spmv matvec (the default command): y = alpha op(A) x + beta y0.
 *
 * Steps: load, plan, multiply, check, write, in one context or on each rank. The answer is written
 * even if the check fails; the exit code and a message report the failure.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/commands.h"
#include "app/input.h"
#include "app/job_memory.h"
#include "app/options.h"
#include "app/output.h"
#include "app/product.h"
#include "core/plural.h"
#include "core/reals.h"

struct job {
    struct place *place;
    const struct options *o;
    const struct wish *wish;
    struct input in;
    struct product p;
    void *x, *y0, *ones;
    int vectors; /* in x and y0 */
    /* of a 16-bit type: the matrix, its values, x and y0 in it, and y in f32 */
    spmv_csr half;
    void *halves[3], *wide;
    spmv_status verdict; /* of the checks */
};

/* Refuses invalid combinations of arguments, and finds the destination of y. */
static spmv_status check_wish(const struct options *o, struct wish *wish)
{
    const spmv_status st = check_standard_input(o, wish->arguments, wish->count);
    if (st != SPMV_OK)
        return st;
    if (o->beta != 0 && o->y0 == NULL)
        return report(SPMV_ERROR_ARGUMENT, "--beta needs the vector y0: --y0 FILE");
    if (o->beta == 0 && o->y0 != NULL)
        return report(SPMV_ERROR_ARGUMENT, "--y0 needs --beta NUMBER, not 0");
    return choose_answer(o, "y", &wish->answer);
}

static spmv_type type_of(const struct job *job)
{
    return place_on_ranks(job->place) ? job->place->part.type : input_type(job->o, &job->in);
}

/* The type in which matrix and vectors are read. */
static spmv_type reading_type_of(const struct job *job)
{
    return type_is_half(type_of(job)) ? SPMV_F64 : type_of(job);
}

/* Replaces n numbers by their copy in a 16-bit type, *half. */
static spmv_status narrow(const struct job *job, const void **values, int64_t n, void **half)
{
    const spmv_type type = type_of(job);
    const spmv_status st = *values != NULL ? allocate("16-bit numbers", n, spmv_type_size(type), half) : SPMV_OK;
    if (st != SPMV_OK || *values == NULL)
        return st;
    const void *const wide = *values;
    *values = *half;
    return spmv_convert_numbers(SPMV_F64, wide, type, *half, n);
}

/* Converts the matrix and the vectors of the product to the job's type. */
static spmv_status narrow_all(struct job *job)
{
    struct product *const p = &job->p;
    const spmv_csr *const a = &job->in.view;
    const bool turned = p->operation == SPMV_OPERATION_T;
    job->half = *a;
    job->half.type = p->type;
    p->a = &job->half;
    spmv_status st = narrow(job, &job->half.val, a->nnz, &job->halves[0]);
    if (st == SPMV_OK)
        st = narrow(job, &p->x, (turned ? a->rows : a->cols) * p->vectors, &job->halves[1]);
    return st == SPMV_OK ? narrow(job, &p->y0, (turned ? a->cols : a->rows) * p->vectors, &job->halves[2]) : st;
}

/* Loads x and y0, whose lengths are those of op(A). */
static spmv_status load_vectors(struct job *job, const char *x_path)
{
    const struct options *o = job->o;
    const spmv_csr *a = &job->in.view;
    const spmv_type type = reading_type_of(job);
    const int64_t rows = o->transpose ? a->cols : a->rows, cols = o->transpose ? a->rows : a->cols;
    char why[256];
    snprintf(why, sizeof why, "%.180s is %lld x %lld%s", job->in.argument, (long long)a->rows, (long long)a->cols,
             o->transpose ? ", transposed" : "");
    spmv_status st = SPMV_OK;
    if (x_path != NULL) {
        st = place_load_vectors(job->place, SPMV_GROUP_COLS, x_path, type, cols, "x", why, &job->x, &job->vectors);
        if (st != SPMV_OK && looks_like_matrix(x_path))
            complain("%s is a sparse matrix: spmv spgemm A B computes the product of two", x_path);
    } else {
        job->vectors = 1;
        st = place_known_vectors(job->place, type, cols, 1, false, &job->ones);
    }
    if (st == SPMV_OK && o->y0 != NULL)
        st = place_load_vectors(job->place, SPMV_GROUP_ROWS, o->y0, type, rows, "y0", why, &job->y0, &job->vectors);
    return st;
}

static spmv_status load_and_multiply(struct job *job)
{
    const struct options *o = job->o;
    const struct wish *const wish = job->wish;
    spmv_status st = place_load(job->place, JOB_PRODUCT, wish->arguments[0], o->method, false, &job->in);
    if (st == SPMV_OK)
        st = load_vectors(job, wish->count > 1 ? wish->arguments[1] : NULL);
    if (st != SPMV_OK)
        return st;
    job->p = (struct product){.place = job->place,
                              .a = &job->in.view,
                              .operation = o->transpose ? SPMV_OPERATION_T : SPMV_OPERATION_N,
                              .method = o->method,
                              .compression = plan_compression(o, SPMV_BACKEND_AUTO, false),
                              .type = type_of(job),
                              .alpha = o->alpha,
                              .beta = o->beta,
                              .x = job->x != NULL ? job->x : job->ones,
                              .y0 = job->y0,
                              .vectors = job->vectors,
                              /* ranks may have different levels */
                              .timed = place_on_ranks(job->place) || o->json || messages_level() > LEVEL_QUIET,
                              .bitwise = o->verify == VERIFY_BITWISE};
    if (type_is_half(job->p.type))
        st = narrow_all(job);
    if (st == SPMV_OK)
        st = product_plan(job->place->ctx, &job->p);
    return st == SPMV_OK ? product_run(&job->p) : st;
}

/* A failed check is reported at the end; any other failure ends the job. */
static spmv_status check(struct job *job)
{
    if (job->o->verify == VERIFY_OFF)
        return SPMV_OK;
    const spmv_status st = product_check(job->o, &job->p);
    if (st != SPMV_OK && st != SPMV_ERROR_CHECK)
        return st;
    job->verdict = st == SPMV_OK && job->p.bitwise_different > 0 ? SPMV_ERROR_CHECK : st;
    return SPMV_OK;
}

static void remark_job(const struct job *job)
{
    const struct product *p = &job->p;
    remark_plan(job->in.argument, p);
    remark(LEVEL_NORMAL, "load %s, plan %s, product %s (%.3g GB/s)", seconds_text(job->in.seconds),
           seconds_text(p->info.seconds), seconds_text(p->seconds.median), 1e-9 * p->model_bytes / p->seconds.median);
    remark(LEVEL_VERBOSE, "plan holds %s; upload %s; first call %s, %d repeat%s from %s to %s",
           bytes_text((double)p->info.bytes), seconds_text(p->upload_seconds), seconds_text(p->first_call_seconds),
           p->seconds.repeats, p->seconds.repeats == 1 ? "" : "s", seconds_text(p->seconds.min),
           seconds_text(p->seconds.max));
}

static void tell_verdict(const struct job *job)
{
    const struct product *p = &job->p;
    if (job->o->verify == VERIFY_OFF) {
        remark(LEVEL_NORMAL, "not checked");
        return;
    }
    tell_check(p, "y");
    if (p->bitwise_different > 0)
        complain("CHECK FAILED: %d of %d repeats of the product gave different bits", p->bitwise_different,
                 p->bitwise_repeats);
    else if (p->bitwise)
        remark(LEVEL_NORMAL, "%d repeat%s gave the same bits", p->bitwise_repeats, plural(p->bitwise_repeats));
}

static json_t *json_result(const struct job *job)
{
    const struct product *p = &job->p;
    json_t *result = json_plan(p, "spmv");
    json_put(result, "upload_seconds", json_number(p->upload_seconds));
    json_put(result, "first_call_seconds", json_number(p->first_call_seconds));
    json_put(result, "seconds", json_timing(&p->seconds));
    json_put(result, "model_bytes", json_integer((json_int_t)p->model_bytes));
    json_put(result, "gbs", json_number(1e-9 * p->model_bytes / p->seconds.median));
    if (p->bitwise)
        json_put(result, "bitwise",
                 json_pack("{s:i, s:b}", "repeats", p->bitwise_repeats, "equal", p->bitwise_different == 0));
    json_put(result, "spmv", json_pack("{s:o}", "gflops", json_number(1e-9 * product_flops(p) / p->seconds.median)));
    return result;
}

static spmv_status write_json(const struct job *job)
{
    const struct input *in = &job->in;
    const bool whole = !place_on_ranks(job->place);
    spmv_status st = SPMV_OK;
    spmv_statistics statistics;
    if (whole)
        st = place_passed(job->place,
                          spmv_matrix_statistics(job->place->ctx, &in->view, &statistics, sizeof statistics));
    if (st != SPMV_OK)
        return st;
    json_t *root = json_about(job->o, job->place->ctx, in, whole ? &statistics : NULL);
    json_put(root, "result", json_result(job));
    if (job->o->verify != VERIFY_OFF)
        json_put(root, "verify", json_check(&job->p));
    return json_finish(job->o, root);
}

/* Writes both outputs even if one fails, and prints the summary. Returns the first failure. */
static spmv_status write_results(const struct job *job, const void *y)
{
    const struct product *p = &job->p;
    spmv_status answer = SPMV_OK, json = SPMV_OK;
    if (job->wish->answer != NULL)
        answer = write_answer(job->place->ctx, job->o, job->wish->answer, type_of_sums(p->type), y, p->info.rows,
                              p->vectors);
    if (job->o->json)
        json = write_json(job);
    if (messages_level() > LEVEL_QUIET)
        remark_job(job);
    tell_verdict(job);
    return answer != SPMV_OK ? answer : json;
}

/* Of 16-bit numbers y is written as f32. */
static spmv_status widen_answer(struct job *job, const void **y)
{
    const struct product *const p = &job->p;
    const int64_t n = p->info.rows * p->vectors;
    const spmv_status st = allocate("y in f32", n, sizeof(float), &job->wide);
    if (st != SPMV_OK)
        return st;
    *y = job->wide;
    return spmv_convert_numbers(p->type, p->y, SPMV_F32, job->wide, n);
}

static spmv_status conclude(struct job *job)
{
    const struct product *const p = &job->p;
    const void *y = NULL;
    spmv_status st = SPMV_OK;
    if (job->wish->answer != NULL && type_is_half(p->type))
        st = widen_answer(job, &y);
    else if (job->wish->answer != NULL)
        st = place_collect(job->place, SPMV_GROUP_ROWS, p->type, p->info.rows, p->vectors, p->y, &y);
    if (st == SPMV_OK && place_writes(job->place))
        st = write_results(job, y);
    st = place_agree(job->place, st);
    return job->verdict != SPMV_OK ? job->verdict : st;
}

static spmv_status multiply(struct place *place, const struct wish *wish)
{
    struct job job = {.place = place, .o = place->o, .wish = wish};
    spmv_status st = load_and_multiply(&job);
    if (st == SPMV_OK)
        st = check(&job);
    if (st == SPMV_OK)
        st = conclude(&job);
    product_free(&job.p);
    place_free(place, job.ones);
    place_free_loaded(place, job.x);
    place_free_loaded(place, job.y0);
    input_free(&job.in);
    for (int i = 0; i < 3; i++)
        free(job.halves[i]);
    free(job.wide);
    return st;
}

static const char *refuse(const struct options *o)
{
    return type_is_half(o->type) ? "ranks have no 16-bit types" : NULL;
}

spmv_status run_product(const struct options *o, const char *const *arguments, int count)
{
    struct wish wish = {.arguments = arguments, .count = count};
    const spmv_status st = check_wish(o, &wish);
    return st == SPMV_OK ? place_run(o, refuse, multiply, &wish) : st;
}
