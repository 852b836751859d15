/* A sparse direct solver. This file chooses the module, turns A into the columns (CSC) that those on the host take, in
 * f64 or c128, and moves vectors between the context's memory and theirs. What a module for a GPU takes is in
 * direct_rows.h: its matrix and vectors stay on the device.
 *
 * A is copied when a library is opened that needs it: to the host, to the rows on the device, or, if one library follows
 * another, to both. What the library that makes the factors does not need is released.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/direct/direct.h"

#include <math.h>
#include <stdio.h>

#include "core/hypot.h"
#include "core/plural.h"
#include "core/reals.h"
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "solvers/direct/direct_rows.h"
#include "solvers/exchange/rank_tools.h"
#include "solvers/solver_module.h"

enum { SENTENCE = 384, BRIEF = 128 };

struct direct {
    spmv_context *ctx;
    const char *name; /* "direct:klu": this library; NULL: any */
    const struct library *library;
    struct direct_facts facts;
    bool indefinite; /* a library has found that A is not positive definite */
    const struct direct_module *module;
    double most;     /* nanoseconds: a library whose analysis alone takes that is not tried */
    const char *why; /* the library; NULL: requested by name, or dense */
    void *state;     /* of the module; NULL for n = 0 */
    bool factored;
    spmv_type type;               /* of A; f64 for a pattern */
    int64_t n, nnz;               /* of A as given */
    int parts;                    /* doubles per number: 1 or 2 */
    const spmv_csr *given;        /* A, during a call that may open a library */
    struct direct_rows *gpu_rows; /* A there; NULL: not needed */
    bool rows_fresh, host_fresh;  /* whether gpu_rows and val have the present values */
    int64_t *col_ptr, *row;       /* A on the host; NULL: not needed */
    int64_t *place;               /* entry k of A is added to number place[k] of val */
    double *val;
    int64_t host_bytes;          /* of these four, x and stage */
    bool adjoint;                /* solves for the conjugate transpose, with the factors of `lender` */
    const struct direct *lender; /* of state and the figures; NULL: own ones */
    double *x;                   /* n numbers: b, then the solution; on the host */
    void *stage;                 /* on cuda, of a library on the host: a vector in its own type */
    /* of several ranks, each of which has all factors; else NULL */
    const struct plan_ranks *ranks;
    double *own;     /* the numbers of own rows */
    int64_t *offset; /* ranks + 1: where those of each rank begin, in bytes */
    int64_t rows;    /* own ones; n without ranks */
    struct direct_figures figures;
    int64_t bytes;         /* of the arrays above */
    int64_t refused, left; /* bytes that the module asked for last and did not get, and that were left then */
    char sentence[SENTENCE], brief[BRIEF];
};

/* direct_dense.c */
extern const struct direct_module direct_dense;

static spmv_status fail(const struct direct *d, spmv_status status, const char *why)
{
    return context_fail(d->ctx, status, "direct: %s", why);
}

static spmv_status get(struct direct *d, int64_t bytes, const char *what, void **memory)
{
    const spmv_status st = host_alloc(d->ctx, max_i64(bytes, 1), what, memory);
    if (st == SPMV_OK)
        d->bytes += bytes;
    return st;
}

/* ------------------------------------------------------------------ matrix */

/* Sets col_ptr, row and place. Rows of A are read in ascending order, so rows ascend in each column,
 * and an entry repeats an earlier one if the last row of its column is its own row. */
static spmv_status take_pattern(struct direct *d, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    int64_t *end = NULL; /* of what a column has so far; first its last row, plus 1 */
    TRY(host_alloc(d->ctx, d->n * 8, "columns of a matrix", (void **)&end));
    memset(end, 0, (size_t)d->n * 8);
    memset(d->col_ptr, 0, (size_t)(d->n + 1) * 8);
    for (int64_t i = 0; i < d->n; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            const int32_t c = a->col[k];
            d->col_ptr[c + 1] += end[c] != i + 1;
            end[c] = i + 1;
        }
    for (int64_t c = 0; c < d->n; c++) {
        end[c] = d->col_ptr[c];
        d->col_ptr[c + 1] += d->col_ptr[c];
    }
    for (int64_t i = 0; i < d->n; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            const int32_t c = a->col[k];
            if (end[c] == d->col_ptr[c] || d->row[end[c] - 1] != i)
                d->row[end[c]++] = i;
            d->place[k] = end[c] - 1;
        }
done:
    host_free(end);
    return st;
}

/* Sets val. values: in host memory; NULL: a pattern. */
static spmv_status take_values(struct direct *d, const void *values)
{
    const spmv_type part = type_part(d->type);
    const int64_t entries = d->col_ptr[d->n];
    memset(d->val, 0, (size_t)(entries * d->parts) * sizeof *d->val);
    for (int64_t k = 0; k < d->nnz; k++)
        for (int p = 0; p < d->parts; p++)
            d->val[d->place[k] * d->parts + p] += values == NULL ? 1 : real_at(part, values, k * d->parts + p);
    for (int64_t c = 0; c < d->n; c++)
        for (int64_t e = d->col_ptr[c] * d->parts; e < d->col_ptr[c + 1] * d->parts; e++)
            if (!isfinite(d->val[e]))
                return context_fail(d->ctx, SPMV_ERROR_NOT_FINITE, "direct: the entry in row %lld, column %lld%s is %g",
                                    context_number(d->ctx, d->row[e / d->parts]), context_number(d->ctx, c),
                                    context_counted(d->ctx), d->val[e]);
    return SPMV_OK;
}

/* ------------------------------------------------------------------ facts */

/* The entries of column j of A' are those of row j of A: while columns are read in ascending order, the next entry of
 * each column in turn must be its mirror image. next: n integers. */
static struct direct_facts look_at(const struct direct *d, int64_t *next)
{
    struct direct_facts f = {.symmetric = true, .hermitian = true, .positive = true};
    memcpy(next, d->col_ptr, (size_t)d->n * 8);
    for (int64_t j = 0; j < d->n && (f.symmetric || f.hermitian); j++) {
        bool diagonal = false;
        for (int64_t k = d->col_ptr[j]; k < d->col_ptr[j + 1] && (f.symmetric || f.hermitian); k++) {
            const int64_t i = d->row[k], mirror = next[i]++;
            if (mirror == d->col_ptr[i + 1] || d->row[mirror] != j)
                f.symmetric = f.hermitian = false;
            else
                direct_compare(d->val + k * d->parts, d->val + mirror * d->parts, d->parts, &f.symmetric, &f.hermitian);
            if (i == j)
                diagonal = d->val[k * d->parts] > 0;
        }
        f.positive = f.positive && diagonal;
    }
    return f;
}

/* ------------------------------------------------------------------ copies of A */

static void drop_host(struct direct *d)
{
    host_free_all(d->col_ptr, d->row, d->place, d->val, d->x, d->stage);
    d->col_ptr = d->row = d->place = NULL;
    d->val = d->x = NULL;
    d->stage = NULL;
    d->bytes -= d->host_bytes;
    d->host_bytes = 0;
    d->host_fresh = false;
}

static void drop_rows(struct direct *d)
{
    if (d->gpu_rows == NULL)
        return;
    d->bytes -= d->gpu_rows->bytes;
    direct_rows_free(d->ctx, d->gpu_rows);
    host_free(d->gpu_rows);
    d->gpu_rows = NULL;
    d->rows_fresh = false;
}

static spmv_status allocate_host(struct direct *d)
{
    spmv_status st = SPMV_OK;
    const int64_t before = d->bytes;
    TRY(get(d, (d->n + 1) * 8, "columns of a matrix", (void **)&d->col_ptr));
    TRY(get(d, d->nnz * 8, "rows of a matrix", (void **)&d->row));
    TRY(get(d, d->nnz * 8, "places of entries", (void **)&d->place));
    TRY(get(d, d->nnz * 8 * d->parts, "values of a matrix", (void **)&d->val));
    TRY(get(d, d->n * 8 * d->parts, "a vector", (void **)&d->x));
    if (context_on_device(d->ctx))
        TRY(get(d, d->n * 8 * d->parts, "a vector", &d->stage));
done:
    d->host_bytes = d->bytes - before;
    return st;
}

/* A on the host, with the present values. */
static spmv_status need_host(struct direct *d)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0};
    spmv_csr host;
    const bool first = d->col_ptr == NULL;
    if (d->host_fresh)
        return SPMV_OK;
    TRY(csr_to_host(d->ctx, d->given, false, &host, &copies));
    if (first) {
        TRY(csr_check(d->ctx, "direct", &host, CSR_ANY_ORDER));
        TRY(allocate_host(d));
        TRY(take_pattern(d, &host));
    }
    TRY(take_values(d, host.val));
    d->host_fresh = true;
done:
    csr_free_host(&copies);
    if (st != SPMV_OK && first)
        drop_host(d);
    return st;
}

/* A by rows on the GPU, with the present values. facts: what they are like. */
static spmv_status need_rows(struct direct *d, struct direct_facts *facts)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0};
    spmv_csr there;
    const bool first = d->gpu_rows == NULL;
    if (d->rows_fresh)
        return SPMV_OK;
    TRY(csr_to_context(d->ctx, d->given, true, &there, &copies));
    if (first) {
        TRY(csr_check_anywhere(d->ctx, "direct", &there, CSR_ANY_ORDER));
        TRY(host_alloc(d->ctx, sizeof *d->gpu_rows, "the rows of a matrix", (void **)&d->gpu_rows));
        st = direct_rows_take(d->ctx, &there, d->parts, d->gpu_rows);
        d->bytes += d->gpu_rows->bytes;
        TRY(st);
    }
    TRY(direct_rows_take_values(d->ctx, d->gpu_rows, &there, facts));
    d->rows_fresh = true;
done:
    csr_free_context(d->ctx, &copies);
    if (st != SPMV_OK && first)
        drop_rows(d);
    return st;
}

/* ------------------------------------------------------------------ choice */

/* A seam: an emulated GPU, in tests, has a module of its own. */
#ifndef GPU_MODULE
#define GPU_MODULE "spmv_direct_cudss.so"
#endif

/* The libraries, in the order in which they are tried. What cannot be opened, cannot take A or finds that it is not what
 * it needs, is followed by the next one. The first one, for a GPU, is tried if those on the host take longer. */
static const struct library {
    const char *name; /* of the solver */
    struct solver_module module;
    enum { FOR_GPU, FOR_POSITIVE, FOR_SYMMETRIC, FOR_LIGHT, FOR_ALL } takes;
    const char *why;
} libraries[] = {
    {"direct:cudss",
     {"direct", GPU_MODULE, "spmv_direct_module",
      "direct:cudss needs the library cuDSS and a module: install nvidia-cudss-cu13 (PyPI) and build again with "
      "CUDSS_ROOT set to its folder nvidia/cu13, or set SPMV_MODULE_PATH to the module's folder",
      DIRECT_MODULE_ABI},
     FOR_GPU,
     "no library on the host is expected to take less"},
    {"direct:cholmod",
     {"direct", "spmv_direct_cholmod.so", "spmv_direct_module",
      MODULE_NEEDS("direct:cholmod", "CHOLMOD of SuiteSparse", "CHOLMOD", "libsuitesparse-dev", "direct"),
      DIRECT_MODULE_ABI},
     FOR_POSITIVE,
     "A is Hermitian with a positive diagonal"},
    {"direct:mumps",
     {"direct", "spmv_direct_mumps.so", "spmv_direct_module",
      MODULE_NEEDS("direct:mumps", "MUMPS", "MUMPS", "libmumps-seq-dev", "direct"), DIRECT_MODULE_ABI},
     FOR_SYMMETRIC,
     "A is symmetric, and one triangle is enough"},
    {"direct:klu",
     {"direct", "spmv_direct_klu.so", "spmv_direct_module",
      MODULE_NEEDS("direct", "KLU of SuiteSparse", "KLU", "libsuitesparse-dev", "direct"), DIRECT_MODULE_ABI},
     FOR_LIGHT,
     "the factors take few operations for each nonzero"},
    {"direct:umfpack",
     {"direct", "spmv_direct_umfpack.so", "spmv_direct_module",
      MODULE_NEEDS("direct", "UMFPACK of SuiteSparse", "UMFPACK", "libsuitesparse-dev", "direct"), DIRECT_MODULE_ABI},
     FOR_ALL,
     "the factors take many operations for each nonzero, or those of KLU too much memory"},
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };
static const struct library *const on_gpu = libraries, *const on_host = libraries + 1;

/* Nanoseconds of the analysis by nested dissection, for each row, of the library for a GPU. */
static const double DISSECTION = 7000;

const char *direct_named(int index)
{
    return index >= 0 && index < LIBRARIES ? libraries[index].name : NULL;
}

const char *direct_library_of(const char *solver)
{
    for (int i = 0; i < LIBRARIES; i++)
        if (solver != NULL && strcmp(solver, libraries[i].name) == 0)
            return libraries[i].name;
    return NULL;
}

static void describe(struct direct *d)
{
    const struct direct_figures *f = &d->figures;
    char condition[64] = "", inertia[64] = "";
    if (f->negative > 0)
        snprintf(inertia, sizeof inertia, ", %lld negative eigenvalue%s", (long long)f->negative, plural(f->negative));
    if (f->rcond >= 0)
        snprintf(condition, sizeof condition, ", reciprocal condition number about %.1e", f->rcond);
    if (d->n == 0)
        snprintf(d->sentence, sizeof d->sentence, "a matrix without rows");
    else
        snprintf(d->sentence, sizeof d->sentence,
                 "%s: %lld diagonal block%s, ordering %s, %lld nonzero%s in the factors, %lld bytes%s%s",
                 d->module->version, (long long)f->blocks, plural(f->blocks), f->ordering, (long long)f->nonzeros,
                 plural(f->nonzeros), (long long)direct_bytes(d), condition, inertia);
    snprintf(d->brief, sizeof d->brief, "%s%s%s; %.3g nonzeros in the factors", d->n > 0 ? d->module->version : "",
             d->why != NULL ? ", since " : "", d->why != NULL ? d->why : "", (double)f->nonzeros);
}

/* For the module: memory of the process's limit. */
static bool take(void *user, int64_t bytes)
{
    struct direct *const d = user;
    if (bytes < 0) {
        memory_give(-bytes);
        return true;
    }
    if (context_cancelled(d->ctx) || !memory_take(bytes)) {
        int64_t limit = 0;
        d->refused = bytes;
        d->left = memory_limit_left(&limit);
        return false;
    }
    return true;
}

/* The status of a failed call of the module. */
static spmv_status failed(const struct direct *d, spmv_status st, const char *why)
{
    int64_t limit = 0;
    if (st != SPMV_ERROR_MEMORY)
        return fail(d, st, why);
    if (context_cancelled(d->ctx))
        return context_fail_cancelled(d->ctx, "direct");
    (void)memory_limit_left(&limit);
    return limit == 0 || d->refused == 0
               ? fail(d, st, why)
               : context_fail(d->ctx, st,
                              "direct: %s by %s: %lld bytes more are needed; the limit of %.4g MB left %.4g MB", why,
                              d->module->version, (long long)d->refused, (double)limit * 1e-6, (double)d->left * 1e-6);
}

static bool is_on_gpu(const struct direct *d)
{
    return d->library != NULL && d->library->takes == FOR_GPU;
}

/* Before and after each call of the module. */
static spmv_status enter_module(const struct direct *d)
{
    return is_on_gpu(d) ? direct_rows_enter(d->ctx, d->gpu_rows) : SPMV_OK;
}

static spmv_status leave_module(const struct direct *d, spmv_status st)
{
    return is_on_gpu(d) ? direct_rows_leave(d->ctx, st) : st;
}

static spmv_status factorise(struct direct *d)
{
    char why[DIRECT_WHY] = "";
    d->figures.has_determinant = false;
    d->figures.negative = d->figures.zero = -1;
    d->refused = 0;
    spmv_status st = enter_module(d);
    if (st != SPMV_OK)
        return st;
    st = leave_module(d, d->module->factor(d->state, d->val, &d->figures, why));
    return st == SPMV_OK ? st : failed(d, st, why);
}

static void close_module(struct direct *d)
{
    const bool entered = d->state != NULL && enter_module(d) == SPMV_OK;
    if (d->state != NULL)
        d->module->close(d->state);
    d->state = NULL;
    if (entered)
        (void)leave_module(d, SPMV_OK);
}

static spmv_status analyse(struct direct *d, const struct direct_facts *facts)
{
    static struct direct_shared shared = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char why[DIRECT_WHY] = "";
    const struct direct_problem problem = {.n = d->n,
                                           .col_ptr = d->col_ptr,
                                           .row = d->row,
                                           .val = d->val,
                                           .complex = type_is_complex(d->type),
                                           .symmetric = facts->symmetric,
                                           .hermitian = facts->hermitian,
                                           .first_index = d->ctx->first_index,
                                           .most = d->most,
                                           .take = take,
                                           .user = d,
                                           .shared = &shared,
                                           .device = is_on_gpu(d) ? &d->gpu_rows->device : NULL};
    d->figures = (struct direct_figures){.rcond = -1, .negative = -1, .zero = -1};
    d->refused = 0;
    spmv_status st = enter_module(d);
    if (st != SPMV_OK)
        return st;
    st = leave_module(d, d->module->open(&problem, &d->state, &d->figures, why));
    if (st != SPMV_OK)
        return failed(d, st, why);
    int64_t bytes = 0;
    if (!multiply_fits(d->figures.expected, d->figures.entry_bytes, &bytes))
        bytes = INT64_MAX;
    if (!memory_take(bytes)) /* so that the limit is not reached after minutes */
        return context_fail_memory(d->ctx, "direct: the factors", bytes);
    memory_give(bytes);
    return matrix_memory_check(d->ctx, "direct: the factors", bytes);
}

static bool is_positive(const struct direct_facts *facts)
{
    return facts->hermitian && facts->positive;
}

static bool takes(const struct direct *d, const struct library *l, const struct direct_facts *facts)
{
    switch (l->takes) {
    case FOR_GPU:
        return context_on_device(d->ctx);
    case FOR_POSITIVE:
        return is_positive(facts) && !d->indefinite;
    case FOR_SYMMETRIC:
        return facts->symmetric;
    default:
        return true;
    }
}

/* Whether the factors take so many operations that the next library, if it is there, is faster, and not too slow. What
 * it would take becomes that of these factors, if it is too slow as well: then its analysis is saved. */
static bool is_heavy(struct direct *d)
{
    struct direct_figures *const f = &d->figures;
    if (f->expected > 0 && f->dense >= d->most)
        f->nanoseconds = fmin(f->nanoseconds, f->dense);
    return f->expected == 0 || f->dense < f->nanoseconds;
}

/* Whether this library is for light factors, and the next one, for all, is there. The message of the context stays. */
static bool next_is_there(const struct direct *d)
{
    char sentence[DIRECT_WHY];
    if (d->name != NULL || d->library == NULL || d->library->takes != FOR_LIGHT)
        return false;
    snprintf(sentence, sizeof sentence, "%s", spmv_last_error(d->ctx));
    const bool is = solver_module_open(d->ctx, &d->library[1].module) != NULL;
    snprintf(d->ctx->error, sizeof d->ctx->error, "%s", sentence);
    return is;
}

/* After a failure: whether the next one may do with less memory: an entry of its factors has no index. */
static bool next_fits(const struct direct *d, spmv_status st)
{
    return st == SPMV_ERROR_MEMORY && next_is_there(d);
}

/* Opens the module of the library and analyses the pattern. SPMV_ERROR_UNSUPPORTED: another library may take A. */
static spmv_status open_library(struct direct *d, const struct library *l)
{
    close_module(d);
    d->library = l;
    d->module = solver_module_open(d->ctx, &l->module);
    if (d->module == NULL)
        return SPMV_ERROR_UNSUPPORTED;
    d->why = d->name == NULL ? l->why : NULL;
    spmv_status st = l->takes == FOR_GPU ? need_rows(d, &d->facts) : need_host(d);
    if (st == SPMV_OK)
        st = analyse(d, &d->facts);
    return next_fits(d, st) || (st == SPMV_OK && next_is_there(d) && is_heavy(d)) ? SPMV_ERROR_UNSUPPORTED : st;
}

/* The first library from this one on that is there and takes A. */
static spmv_status open_from(struct direct *d, const struct library *l)
{
    spmv_status st = SPMV_ERROR_UNSUPPORTED;
    for (; l < libraries + LIBRARIES && st == SPMV_ERROR_UNSUPPORTED; l++)
        if (takes(d, l, &d->facts))
            st = open_library(d, l);
    return st;
}

/* The first library on the host; on a GPU, if there is none or its factors take longer than an analysis for the GPU,
 * that for the GPU. */
static spmv_status open_first(struct direct *d)
{
    char sentence[sizeof d->ctx->error];
    const spmv_status st = open_from(d, on_host);
    const double analysis = DISSECTION * (double)d->n;
    const bool slow =
        st == SPMV_OK ? direct_expected(d) > analysis : st == SPMV_ERROR_UNSUPPORTED || st == SPMV_ERROR_MEMORY;
    if (!slow || !(analysis < d->most) || !takes(d, on_gpu, &d->facts))
        return st;
    memcpy(sentence, d->ctx->error, sizeof sentence);
    if (solver_module_open(d->ctx, &on_gpu->module) == NULL)
        return st == SPMV_OK ? st : context_fail(d->ctx, st, "%s", sentence);
    const spmv_status of_gpu = open_library(d, on_gpu);
    return of_gpu == SPMV_OK ? of_gpu : open_from(d, on_host);
}

static spmv_status open_named(struct direct *d)
{
    const struct library *l = libraries;
    while (strcmp(l->name, d->name) != 0)
        l++;
    if (l->takes == FOR_GPU && !takes(d, l, &d->facts))
        return context_fail(d->ctx, SPMV_ERROR_UNSUPPORTED, "%s needs the backend cuda", l->name);
    if (l->takes == FOR_SYMMETRIC && !takes(d, l, &d->facts))
        return context_fail(d->ctx, SPMV_ERROR_NOT_SYMMETRIC,
                            "%s takes a symmetric matrix, of complex numbers without conjugation", l->name);
    if (!takes(d, l, &d->facts))
        return context_fail(d->ctx, SPMV_ERROR_NOT_POSITIVE,
                            "%s takes a symmetric or Hermitian matrix with a positive diagonal", l->name);
    return open_library(d, l);
}

/* Whether factors that replace pivots which are too small, as on a GPU, solve A x = A e, e of ones, to some digits. */
static spmv_status try_factors(struct direct *d)
{
    static const double most = 1e-3; /* times |A| |x|: refinement gains as many digits a step */
    spmv_status st = SPMV_OK;
    bool solved = false;
    char why[DIRECT_WHY] = "";
    TRY(direct_rows_sum(d->ctx, d->gpu_rows));
    TRY(enter_module(d));
    st = leave_module(d, d->module->solve(d->state, d->gpu_rows->x, 1, why));
    if (st != SPMV_OK)
        return failed(d, st, why);
    TRY(direct_rows_solved(d->ctx, d->gpu_rows, most, &solved));
    if (!solved)
        st = context_fail(d->ctx, SPMV_ERROR_UNSUPPORTED, "direct: %s does not solve with A", d->module->version);
done:
    return st;
}

/* d->facts: what the values of d->given are like. They are read where the library takes them. */
static spmv_status look(struct direct *d)
{
    spmv_status st = SPMV_OK;
    int64_t *next = NULL;
    const bool named = d->name != NULL && strcmp(d->name, on_gpu->name) == 0;
    if (context_on_device(d->ctx) && (named || (d->state != NULL && is_on_gpu(d))))
        return need_rows(d, &d->facts);
    TRY(need_host(d));
    TRY(host_alloc(d->ctx, d->n * 8, "columns of a matrix", (void **)&next));
    d->facts = look_at(d, next);
done:
    host_free(next);
    return st;
}

/* An analysis for the present values. The last one stays, if a new solver would have the same library and tell it the
 * same. */
static spmv_status renew_analysis(struct direct *d)
{
    const struct direct_facts last = d->facts;
    const spmv_status st = look(d);
    if (st != SPMV_OK)
        return st;
    const bool other = d->facts.symmetric != last.symmetric || d->facts.hermitian != last.hermitian ||
                       is_positive(&d->facts) != is_positive(&last);
    if (d->state != NULL && !other && (d->name != NULL || !d->indefinite))
        return SPMV_OK;
    d->indefinite = false;
    return d->name != NULL ? open_named(d) : open_first(d);
}

/* Of a library on a GPU, tried: where it fails, another one may not. */
static spmv_status make_factors(struct direct *d)
{
    const spmv_status st = factorise(d);
    return st == SPMV_OK && is_on_gpu(d) && d->name == NULL ? try_factors(d) : st;
}

spmv_status direct_factor(struct direct *d, const spmv_csr *a)
{
    d->given = a;
    d->factored = false;
    spmv_status st = d->n > 0 ? make_factors(d) : SPMV_OK;
    while ((st == SPMV_ERROR_NOT_POSITIVE || st == SPMV_ERROR_UNSUPPORTED || next_fits(d, st)) && d->name == NULL &&
           d->library != NULL) {
        d->indefinite = d->indefinite || st == SPMV_ERROR_NOT_POSITIVE;
        st = d->library->takes == FOR_POSITIVE && d->indefinite ? open_first(d) : open_from(d, d->library + 1);
        if (st != SPMV_OK) /* none is left */
            break;
        st = make_factors(d);
    }
    d->given = NULL;
    d->factored = st == SPMV_OK;
    if (!d->factored)
        return st;
    if (is_on_gpu(d))
        drop_host(d);
    else
        drop_rows(d);
    describe(d);
    return st;
}

static spmv_status check(spmv_context *ctx, const spmv_csr *a)
{
    spmv_status st = csr_check_shape(ctx, "direct", a);
    if (st == SPMV_OK)
        st = csr_check_square(ctx, "direct", a->rows, a->cols);
    if (st != SPMV_OK)
        return st;
    if (a->val != NULL && !type_is_floating(a->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "direct: a matrix of type %s", spmv_type_name(a->type));
    return SPMV_OK;
}

static spmv_status make_dense(struct direct *d)
{
    const spmv_status st = need_host(d);
    d->module = &direct_dense;
    return st == SPMV_OK ? analyse(d, &d->facts) : st;
}

/* Without factors. dense: of the whole square. */
static spmv_status create(spmv_context *ctx, const spmv_csr *a, const char *name, double most, bool dense,
                          struct direct **direct)
{
    spmv_status st = SPMV_OK;
    struct direct *d = NULL;
    *direct = NULL;
    TRY(check(ctx, a));
    TRY(host_alloc(ctx, sizeof *d, "a direct solver", (void **)&d));
    *d = (struct direct){.ctx = ctx,
                         .name = name,
                         .most = most,
                         .given = a,
                         .type = a->val != NULL ? a->type : SPMV_F64,
                         .n = a->rows,
                         .nnz = a->nnz,
                         .bytes = sizeof *d,
                         .rows = a->rows};
    d->parts = type_parts(d->type);
    if (d->n == 0)
        TRY(csr_check_anywhere(ctx, "direct", a, CSR_ANY_ORDER));
    else
        TRY(dense ? make_dense(d) : renew_analysis(d));
    d->given = NULL;
done:
    if (st != SPMV_OK) {
        direct_destroy(d);
        d = NULL;
    }
    *direct = d;
    return st;
}

spmv_status direct_analyse(spmv_context *ctx, const spmv_csr *a, double most, struct direct **direct)
{
    return create(ctx, a, NULL, most, false, direct);
}

static spmv_status factor_new(const spmv_csr *a, struct direct **direct)
{
    const spmv_status st = direct_factor(*direct, a);
    if (st != SPMV_OK) {
        direct_destroy(*direct);
        *direct = NULL;
    }
    return st;
}

spmv_status direct_create(spmv_context *ctx, const spmv_csr *a, const char *name, struct direct **direct)
{
    const spmv_status st = create(ctx, a, name, INFINITY, false, direct);
    return st == SPMV_OK ? factor_new(a, direct) : st;
}

spmv_status direct_create_dense(spmv_context *ctx, const spmv_csr *a, struct direct **direct)
{
    const spmv_status st = create(ctx, a, NULL, INFINITY, true, direct);
    return st == SPMV_OK ? factor_new(a, direct) : st;
}

spmv_status direct_update(struct direct *d, const spmv_csr *a)
{
    if (d->n == 0 || d->lender != NULL)
        return SPMV_OK;
    d->given = a;
    d->host_fresh = d->rows_fresh = d->factored = false;
    const spmv_status st = renew_analysis(d);
    d->given = NULL;
    return st == SPMV_OK ? direct_factor(d, a) : st;
}

void direct_destroy(struct direct *d)
{
    if (d == NULL)
        return;
    if (d->lender == NULL) {
        close_module(d);
        drop_rows(d);
    }
    drop_host(d);
    host_free_all(d->own, d->offset);
    host_free(d);
}

bool direct_has_adjoint(const struct direct *d)
{
    return !d->figures.no_adjoint;
}

spmv_status direct_create_adjoint(const struct direct *of, struct direct **direct)
{
    spmv_status st = SPMV_OK;
    struct direct *d = NULL;
    TRY(host_alloc(of->ctx, sizeof *d, "a direct solver", (void **)&d));
    *d = (struct direct){.ctx = of->ctx,
                         .module = of->module,
                         .state = of->state,
                         .type = of->type,
                         .n = of->n,
                         .nnz = of->nnz,
                         .parts = of->parts,
                         .adjoint = !of->adjoint,
                         .lender = of,
                         .library = of->library,
                         .gpu_rows = of->gpu_rows,
                         .factored = of->factored,
                         .rows = of->rows,
                         .figures = of->figures,
                         .bytes = sizeof *d};
    d->figures.bytes = 0;
    memcpy(d->sentence, of->sentence, sizeof d->sentence);
    memcpy(d->brief, of->brief, sizeof d->brief);
    if (is_on_gpu(d))
        goto done;
    TRY(get(d, d->n * 8 * d->parts, "a vector", (void **)&d->x));
    if (context_on_device(d->ctx))
        TRY(get(d, d->n * 8 * d->parts, "a vector", &d->stage));
done:
    if (st != SPMV_OK) {
        direct_destroy(d);
        d = NULL;
    }
    *direct = d;
    return st;
}

spmv_status direct_share(struct direct *d, const spmv_plan *plan)
{
    spmv_status st = SPMV_OK;
    const struct plan_ranks *const ranks = plan->ranks;
    int64_t *each = NULL, *rows = NULL;
    TRY(get(d, max_i64(1, plan->a.rows) * d->parts * 8, "a vector", (void **)&d->own));
    TRY(get(d, (ranks->count + 1) * 8, "the rows of ranks", (void **)&d->offset));
    TRY(host_alloc(d->ctx, (ranks->count + 1) * 8, "the rows of ranks", (void **)&each));
    TRY(host_alloc(d->ctx, ranks->count * 8, "the rows of ranks", (void **)&rows));
    for (int r = 0; r <= ranks->count; r++)
        each[r] = r * 8;
    TRY(ranks->tools->gather(ranks->self, &plan->a.rows, rows, each));
    d->offset[0] = 0;
    for (int r = 0; r < ranks->count; r++)
        d->offset[r + 1] = d->offset[r] + rows[r] * d->parts * 8;
    d->rows = plan->a.rows;
    d->ranks = ranks;
done:
    host_free_all(each, rows);
    return st;
}

/* ----------------------------------------------------------------- solution */

/* SPMV_ERROR_NOT_FINITE if one of n numbers is not finite in this type. */
static spmv_status check_numbers(const struct direct *d, const double *x, const char *name, spmv_type part)
{
    union real rounded;
    for (int64_t i = 0; i < d->n * d->parts; i++) {
        real_set(part, &rounded, 0, x[i]);
        if (!isfinite(real_at(part, &rounded, 0)))
            return context_fail(d->ctx, SPMV_ERROR_NOT_FINITE, "direct: %s has %g in row %lld%s", name,
                                real_at(part, &rounded, 0), context_number(d->ctx, i / d->parts),
                                context_counted(d->ctx));
    }
    return SPMV_OK;
}

/* d->x = b, of ranks all rows. from: own rows, in host memory. */
static spmv_status take_right_side(struct direct *d, spmv_type part, const void *from)
{
    double *const own = d->ranks != NULL ? d->own : d->x;
    for (int64_t i = 0; i < d->rows * d->parts; i++)
        own[i] = real_at(part, from, i);
    return d->ranks != NULL ? d->ranks->tools->gather(d->ranks->self, own, d->x, d->offset) : SPMV_OK;
}

/* x = the solutions for x */
static spmv_status solve_numbers(const struct direct *d, double *x, int64_t columns)
{
    char why[DIRECT_WHY] = "";
    spmv_status st = enter_module(d);
    if (st != SPMV_OK)
        return st;
    st = leave_module(d, d->adjoint ? d->module->solve_adjoint(d->state, x, columns, why)
                                    : d->module->solve(d->state, x, columns, why));
    return st == SPMV_OK ? st : fail(d, st, why);
}

/* The right-hand sides and solutions stay on the device. One column after the other. */
static spmv_status solve_on_gpu(const struct direct *d, spmv_type type, int64_t columns, int64_t stride, const void *b,
                                void *x)
{
    spmv_status st = SPMV_OK;
    struct direct_rows *const rows = d->gpu_rows;
    const int64_t column = stride * (int64_t)spmv_type_size(type);
    TRY(direct_rows_check(d->ctx, rows, "b", type, columns, stride, b));
    for (int64_t v = 0; v < columns; v++) {
        TRY(direct_rows_read(d->ctx, rows, type, (const char *)b + v * column));
        TRY(solve_numbers(d, rows->x, 1));
        TRY(direct_rows_write(d->ctx, rows, type, (char *)x + v * column));
    }
    TRY(direct_rows_check(d->ctx, rows, "x", type, columns, stride, x));
done:
    return st;
}

static spmv_status check_call(const struct direct *d, spmv_type type)
{
    if (!type_is_floating(type) || type_is_complex(type) != type_is_complex(d->type))
        return context_fail(d->ctx, SPMV_ERROR_TYPE, "direct: a matrix of type %s with vectors of type %s",
                            spmv_type_name(d->type), spmv_type_name(type));
    return d->factored ? SPMV_OK : context_fail(d->ctx, SPMV_ERROR_UNSUPPORTED, "direct: there are no factors");
}

spmv_status direct_solve(struct direct *d, spmv_type type, const void *b, void *x)
{
    spmv_status st = SPMV_OK;
    const spmv_type part = type_part(type);
    const int64_t bytes = d->rows * (int64_t)spmv_type_size(type);
    TRY(check_call(d, type));
    if (d->n == 0)
        return SPMV_OK;
    if (is_on_gpu(d))
        return solve_on_gpu(d, type, 1, d->n, b, x);
    const void *from = b;
    void *to = x;
    if (context_on_device(d->ctx)) {
        if (bytes > 0)
            TRY(spmv_download(d->ctx, b, d->stage, bytes));
        from = to = d->stage;
    }
    TRY(take_right_side(d, part, from));
    TRY(check_numbers(d, d->x, "b", part));
    TRY(solve_numbers(d, d->x, 1));
    TRY(check_numbers(d, d->x, "x", part));
    const double *const own = d->ranks != NULL ? d->x + d->offset[d->ranks->rank] / 8 : d->x;
    for (int64_t i = 0; i < d->rows * d->parts; i++)
        real_set(part, to, i, own[i]);
    if (context_on_device(d->ctx) && bytes > 0)
        TRY(spmv_upload(d->ctx, to, x, bytes));
done:
    return st;
}

spmv_status direct_solve_columns(struct direct *d, spmv_type type, int64_t columns, int64_t stride, const void *b,
                                 void *x)
{
    spmv_status st = SPMV_OK;
    const spmv_type part = type_part(type);
    const int64_t count = d->n * d->parts, apart = stride * d->parts;
    const int64_t bytes = ((columns - 1) * stride + d->n) * (int64_t)spmv_type_size(type);
    double *numbers = NULL;
    void *stage = NULL;
    TRY(check_call(d, type));
    if (d->n == 0 || columns == 0)
        return SPMV_OK;
    if (is_on_gpu(d))
        return solve_on_gpu(d, type, columns, stride, b, x);
    TRY(host_alloc(d->ctx, columns * count * 8, "right-hand sides", (void **)&numbers));
    const void *from = b;
    void *to = x;
    if (context_on_device(d->ctx)) {
        TRY(host_alloc(d->ctx, bytes, "right-hand sides", &stage));
        TRY(spmv_download(d->ctx, b, stage, bytes));
        from = to = stage;
    }
    for (int64_t v = 0; v < columns; v++) {
        for (int64_t i = 0; i < count; i++)
            numbers[v * count + i] = real_at(part, from, v * apart + i);
        TRY(check_numbers(d, numbers + v * count, "b", part));
    }
    TRY(solve_numbers(d, numbers, columns));
    for (int64_t v = 0; v < columns; v++) {
        TRY(check_numbers(d, numbers + v * count, "x", part));
        for (int64_t i = 0; i < count; i++)
            real_set(part, to, v * apart + i, numbers[v * count + i]);
    }
    if (context_on_device(d->ctx))
        TRY(spmv_upload(d->ctx, to, x, bytes));
done:
    host_free_all(numbers, stage);
    return st;
}

/* ------------------------------------------------------------------- figures */

const char *direct_describe(const struct direct *d)
{
    return d->sentence;
}

const char *direct_brief(const struct direct *d)
{
    return d->brief;
}

bool direct_is_factored(const struct direct *d)
{
    return d->factored;
}

double direct_expected(const struct direct *d)
{
    return d->figures.nanoseconds > 0 ? d->figures.nanoseconds : INFINITY;
}

double direct_rcond(const struct direct *d)
{
    return d->figures.rcond;
}

spmv_status direct_determinant(const struct direct *d, struct direct_determinant *det)
{
    const struct direct_figures *const f = &d->figures;
    *det = (struct direct_determinant){.phase = {1, 0}}; /* without rows: 1 */
    if (d->n == 0)
        return SPMV_OK;
    det->positive = det->negative = det->zero = -1;
    if (f->negative >= 0) {
        det->negative = f->negative;
        det->zero = max_i64(f->zero, 0);
        det->positive = d->n - f->negative - det->zero;
    }
    if (!d->factored || !f->has_determinant)
        return context_fail(d->ctx, SPMV_ERROR_UNSUPPORTED,
                            !d->factored ? "spmv_solver_determinant: there are no factors of A"
                                         : "spmv_solver_determinant: %s does not tell the determinant of this matrix",
                            d->module->version);
    det->log = f->log_determinant;
    memcpy(det->phase, f->phase, sizeof det->phase);
    return SPMV_OK;
}

int64_t direct_bytes(const struct direct *d)
{
    return d->bytes + d->figures.bytes;
}
