/* Preconditioner amg: a V-cycle of algebraic multigrid by smoothed aggregation (amg_setup.c).
 *
 * On each level, with matrix A, interpolation P and the polynomial p of the Chebyshev iteration for
 * the upper part of the eigenvalues of D^-1 A (precond_chebyshev.c):
 *
 *     x = p(D^-1 A) D^-1 f          smoothing from 0
 *     f = f - A x
 *     d = P (cycle of P' f)         correction from the next level
 *     x = x + d,  f = f - A d
 *     x = x + p(D^-1 A) D^-1 f      smoothing
 *
 * The last level is multiplied by its inverse. The same polynomial before and after makes M
 * symmetric. It is positive definite, because the bound of the eigenvalues is not below them (W.
 * Hackbusch, "Multi-grid methods and applications", 1985; Y. Notay, ETNA 37, 2010).
 *
 * f is overwritten by its residual, so a level has three vectors. The usual smoother, of degree 2, is
 * one matrix S with the pattern of A, so x = S f and x = x + S f are one product each, and a level
 * takes six products and nothing else. With another degree k, an application takes 2 k products with
 * A on each level, one with P and one with P', and 6 k + 1 passes over vectors. Nothing is
 * allocated, and nothing waits.
 *
 * Type: under vectors of f64 the hierarchy is in f32, which halves its traffic. The cycle is linear,
 * so r is first divided by a power of two near its largest element, and z is multiplied by it. If
 * the set-up finds that f32 is too coarse for the matrix, the hierarchy is made again in f64. Under
 * vectors of f32 it is in f32 too, and in f64 if products of the matrix's elements exceed the range of
 * f32.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "core/plural.h"
#include "formats/matrix_internal.h"
#include "solvers/amg/amg_internal.h"

/* -------------------------------------------------------------------- the cycle */

/* residual = residual - A v */
static spmv_status subtract(const struct amg *amg, const struct amg_level *l, const void *v)
{
    const union real minus = real_scalar(amg->type, -1), one = real_scalar(amg->type, 1);
    return spmv_apply(l->plan, &minus, v, &one, l->residual);
}

/* The smoother from x = 0, or after a correction d, of which the residual is still without A d.
 * *changed: by how much x has changed since the residual was that of x. */
static spmv_status smooth(const struct amg *amg, const struct amg_level *l, void *x, bool from_zero, void **changed)
{
    spmv_status st = SPMV_OK;
    const union real one = real_scalar(amg->type, 1);
    if (l->plan_smoother != NULL) {
        *changed = x;
        if (!from_zero)
            TRY(subtract(amg, l, l->d));
        return spmv_apply(l->plan_smoother, NULL, l->residual, from_zero ? NULL : &one, x);
    }
    struct precond_step step = {.inverse = l->inverse, .residual = l->residual, .d = l->d, .z = x};
    *changed = l->d;
    for (int k = 0; k < l->degree; k++) {
        if (k > 0 || !from_zero)
            TRY(subtract(amg, l, l->d));
        step.first = k == 0 && from_zero;
        step.before = l->step[k].before;
        step.factor = l->step[k].factor;
        TRY(precond_smooth_step(amg->ctx, amg->type, &step, l->rows));
    }
done:
    return st;
}

/* x = M^-1 residual of this level. */
static spmv_status cycle(const struct amg *amg, int k, void *x)
{
    spmv_status st = SPMV_OK;
    const struct amg_level *l = &amg->level[k], *next = l + 1;
    void *changed = NULL;
    if (k + 1 == amg->levels)
        return amg->plan_bottom != NULL ? spmv_apply(amg->plan_bottom, NULL, l->residual, NULL, x)
                                        : smooth(amg, l, x, true, &changed);
    spmv_epilogue add;
    spmv_epilogue_init(&add, sizeof add);
    add.z = x;
    TRY(smooth(amg, l, x, true, &changed));
    TRY(subtract(amg, l, changed));
    TRY(spmv_apply(l->plan_r, NULL, l->residual, NULL, next->residual));
    TRY(cycle(amg, k + 1, next->x));
    TRY(spmv_apply_with(l->plan_p, NULL, next->x, NULL, l->d, &add)); /* d = P x, x = x + d */
    TRY(smooth(amg, l, x, false, &changed));
done:
    return st;
}

static spmv_status apply(void *self, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    const struct amg *amg = self;
    const spmv_preconditioner *m = amg->m;
    const struct amg_level *l = &amg->level[0];
    if (amg->broken)
        return context_fail(m->ctx, SPMV_ERROR_NOT_POSITIVE, "preconditioner amg: the last new values were refused");
    if (amg->type == m->type) {
        TRY(m->ctx->backend->map(m->ctx, SPMV_MAP_COPY, m->type, r, l->residual, m->rows));
        return cycle(amg, 0, z);
    }
    if (amg->largest != NULL)
        TRY(m->ctx->backend->map_reduce(m->ctx, SPMV_MAP_ABS, SPMV_MAX, m->type, r, amg->largest, m->rows,
                                        amg->scratch));
    struct amg_rows s = {.largest = amg->largest, .from = r, .to = l->residual, .factor = amg->scale};
    TRY(amg_run(m->ctx, AMG_NARROW, amg->type, &s, m->rows));
    TRY(cycle(amg, 0, l->x));
    s.from = l->x;
    s.to = z;
    TRY(amg_run(m->ctx, AMG_WIDEN, amg->type, &s, m->rows));
done:
    return st;
}

static void destroy(void *self)
{
    struct amg *amg = self;
    amg_clear(amg);
    amg_release(&amg->given_pool);
    context_freed(amg->ctx);
    host_free(amg);
}

/* ------------------------------------------------------------------- the matrix */

/* An array of the caller in the context's memory: itself, or a copy. */
static spmv_status take_array(struct amg *amg, const spmv_csr *a, const void *from, int64_t bytes, const void **array)
{
    spmv_status st = SPMV_OK;
    void *copy = NULL;
    *array = from;
    if (a->memory == SPMV_MEMORY_CONTEXT)
        return SPMV_OK;
    TRY(amg_alloc(&amg->given_pool, bytes, &copy));
    *array = copy;
    if (bytes > 0)
        TRY(spmv_upload(amg->ctx, from, copy, bytes));
done:
    return st;
}

static spmv_status take_given(struct amg *amg, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    const void *col = NULL;
    amg->given = *a;
    amg->given.memory = SPMV_MEMORY_CONTEXT;
    TRY(take_array(amg, a, a->row_ptr, (a->rows + 1) * (a->row_ptr_bits / 8), &amg->given.row_ptr));
    TRY(take_array(amg, a, a->col, a->nnz * 4, &col));
    amg->given.col = col;
    if (a->val != NULL)
        TRY(take_array(amg, a, a->val, a->nnz * (int64_t)spmv_type_size(a->type), &amg->given.val));
done:
    return st;
}

/* Checks the matrix. *sorted: false if the columns of a row do not ascend. *valid: false if
 * something else is wrong. */
static spmv_status check_given(struct amg *amg, bool *sorted, bool *valid)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    const spmv_csr *a = &amg->given;
    struct amg_rows s = {.a = {a->row_ptr, a->row_ptr_bits, (int32_t *)a->col, NULL},
                         .n = a->rows,
                         .nnz = a->nnz,
                         .source = a->val,
                         .source_type = a->type};
    int64_t first = 0;
    void *cell = NULL;
    TRY(amg_alloc(&work, a->rows * 8, (void **)&s.count));
    TRY(amg_alloc(&work, 8, &cell));
    TRY(amg_run(amg->ctx, AMG_CHECK, amg->m->type, &s, a->rows));
    TRY(spmv_reduce(amg->ctx, SPMV_MIN, SPMV_I64, s.count, cell, a->rows));
    TRY(spmv_download(amg->ctx, cell, &first, 8));
    *sorted = first == INT64_MAX || first % 4 != 2;
    *valid = first == INT64_MAX || !*sorted;
done:
    amg_release(&work);
    return st;
}

/* The matrix with ascending columns and without duplicates, in host memory. */
static spmv_status sort_given(spmv_context *ctx, const spmv_csr *a, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    int64_t *row = NULL;
    TRY(host_alloc(ctx, a->nnz * 8, "rows of a matrix", (void **)&row));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            row[k] = i;
    TRY(spmv_matrix_from_coo(ctx, a->rows, a->cols, a->nnz, row, a->col, a->val, a->type, matrix, NULL));
done:
    host_free(row);
    return st;
}

/* --------------------------------------------------------------------- making */

/* After amg_build or amg_renew with this status: makes the hierarchy again, in f64, if f32 was too coarse
 * or its range too small. */
static spmv_status build_wider(struct amg *amg, spmv_status st, bool imprecise)
{
    bool fits = true;
    if (st == SPMV_OK)
        st = amg_check_range(amg, &fits);
    if (amg->type == SPMV_F32 && ((st != SPMV_OK && imprecise) || !fits)) {
        amg_clear(amg);
        st = amg_build(amg, SPMV_F64, &imprecise);
        fits = true;
        if (st == SPMV_OK)
            st = amg_check_range(amg, &fits);
    }
    if (st == SPMV_OK && !fits)
        st =
            context_fail(amg->ctx, SPMV_ERROR_NOT_FINITE,
                         "preconditioner amg: the sizes of entries differ so much that their products exceed the range "
                         "of f64: scale rows and columns");
    return st;
}

static spmv_status build(struct amg *amg)
{
    spmv_preconditioner *m = amg->m;
    bool imprecise = false;
    context_keep_freed(m->ctx, true);
    const spmv_status st = amg_build(amg, SPMV_F32, &imprecise);
    const spmv_status wider = build_wider(amg, st, imprecise);
    context_keep_freed(m->ctx, false);
    return wider;
}

/* The scratch memory of an application. */
static spmv_status prepare_narrowing(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    const spmv_preconditioner *m = amg->m;
    if (real_bytes(amg->type) >= real_bytes(m->type))
        return SPMV_OK;
    TRY(amg_alloc(&amg->pool, 8, &amg->largest));
    TRY(amg_alloc(&amg->pool, m->ctx->backend->reduce_scratch(m->ctx, m->type, m->rows), &amg->scratch));
done:
    return st;
}

static int64_t bytes_of_plan(const spmv_plan *plan)
{
    spmv_plan_info info;
    return spmv_plan_describe(plan, &info, sizeof info) == SPMV_OK ? info.bytes : 0;
}

static int64_t bytes_of_product(const spmv_multiply_plan *plan)
{
    spmv_multiply_info info;
    return spmv_multiply_describe(plan, &info, sizeof info) == SPMV_OK ? info.bytes : 0;
}

static void describe(struct amg *amg)
{
    spmv_preconditioner *m = amg->m;
    const double entries = (double)max_i64(amg->given.nnz, 1);
    double all = 0;
    char rows[256] = "";
    m->bytes = amg->given_pool.bytes + amg->pool.bytes;
    for (int k = 0; k < amg->levels; k++) {
        const struct amg_level *l = &amg->level[k];
        const size_t n = strlen(rows);
        m->bytes += l->pool.bytes;
        all += (double)l->a.nnz;
        snprintf(rows + n, sizeof rows - n, "%s%lld", k > 0 ? ", " : "", (long long)l->rows);
        m->bytes += bytes_of_plan(l->plan);
        m->bytes += bytes_of_plan(l->plan_smoother);
        m->bytes += bytes_of_plan(l->plan_p);
        m->bytes += bytes_of_plan(l->plan_r);
        m->bytes += bytes_of_product(l->fp0);
        m->bytes += bytes_of_product(l->ap);
        m->bytes += bytes_of_product(l->rap);
        if (l->transpose != NULL)
            m->bytes += l->r.nnz * 4 + (l->r.rows + 1) * 8;
    }
    m->bytes += bytes_of_plan(amg->plan_bottom);
    m->levels = amg->levels;
    m->fallen = amg->left_out;
    snprintf(m->layout, sizeof m->layout,
             "%d level%s of %s row%s in %s, operator complexity %.3f; %s%s of degree %d; the last level %s",
             amg->levels, plural(amg->levels), rows, plural(amg->levels == 1 ? amg->level[0].rows : 0),
             spmv_type_name(amg->type), all / entries, amg->classical ? "classical interpolation; " : "",
             amg->l1 ? "l1-jacobi" : "chebyshev", amg->degree,
             amg->plan_bottom == NULL ? "smoothed"
             : amg->left_out > 0      ? "inverted, singular"
                                      : "inverted");
}

static spmv_status check_options(struct amg *amg, const spmv_preconditioner_options *o, bool has_values)
{
    const char *const smoother = o->smoother == NULL ? "chebyshev" : o->smoother;
    amg->l1 = strcmp(smoother, "l1-jacobi") == 0;
    amg->degree = o->degree < 0 ? AMG_DEGREE : o->degree;
    amg->strength = o->strength == 0 ? 0.25 : o->strength;
    amg->updates = o->update_values != 0 && has_values;
    amg->near_null = o->near_null;
    amg->near_null_type = o->near_null_type == SPMV_TYPE_DEFAULT ? o->type : o->near_null_type;
    if (!amg->l1 && strcmp(smoother, "chebyshev") != 0)
        return context_fail(amg->ctx, SPMV_ERROR_ARGUMENT,
                            "preconditioner amg: unknown smoother \"%.64s\"; there are: chebyshev, l1-jacobi",
                            smoother);
    if (amg->degree == 0)
        return context_fail(amg->ctx, SPMV_ERROR_ARGUMENT, "preconditioner amg: degree 0; the smallest is 1");
    amg->block = o->block == 0 ? 1 : o->block;
    if (amg->block < 1 || amg->block > AMG_NULLS)
        return context_fail(amg->ctx, SPMV_ERROR_ARGUMENT, "preconditioner amg: nodes of %d rows; 1 to %d are possible",
                            o->block, AMG_NULLS);
    if (amg->m->rows % amg->block != 0)
        return context_fail(amg->ctx, SPMV_ERROR_SIZE,
                            "preconditioner amg: %lld rows are not a multiple of the %d rows of a node",
                            (long long)amg->m->rows, amg->block);
    if ((o->near_null != NULL) != (o->near_nulls > 0))
        return context_fail(amg->ctx, SPMV_ERROR_ARGUMENT, "preconditioner amg: near_nulls is %d, near_null is %s",
                            o->near_nulls, o->near_null != NULL ? "an array" : "NULL");
    if (o->near_nulls > 1 || amg->block > 1)
        amg->nulls = o->near_nulls > 0 ? o->near_nulls : amg->block;
    return SPMV_OK;
}

/* Sets amg->given to the matrix, with ascending columns. */
static spmv_status take_matrix(struct amg *amg, struct precond_source *source, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    bool sorted = true, valid = true;
    spmv_csr a;
    TRY(take_given(amg, source->a));
    TRY(check_given(amg, &sorted, &valid));
    if (!valid || !sorted)
        TRY(precond_source_read(amg->ctx, amg->m->name, source)); /* finds what is wrong */
    if (!sorted) {
        amg->updates = false; /* new values have the order of the caller's matrix */
        TRY(sort_given(amg->ctx, &source->host, matrix));
        amg_release(&amg->given_pool);
        spmv_matrix_view(*matrix, &a);
        TRY(take_given(amg, &a));
    }
done:
    return st;
}

/* Computes the hierarchy for new values. If that fails, the preconditioner keeps failing. */
static spmv_status renew(void *self, const void *values)
{
    spmv_status st = SPMV_OK;
    struct amg *amg = self;
    const spmv_type type = amg->type;
    bool imprecise = false;
    amg->broken = true;
    amg->given.val = values;
    st = amg_renew(amg, &imprecise);
    TRY(build_wider(amg, st, imprecise));
    if (amg->type != type)
        TRY(prepare_narrowing(amg));
    describe(amg);
    amg->broken = false;
done:
    return st;
}

/* Releases the copy of the values as given, if the hierarchy has its own. */
static void drop_given_values(struct amg *amg, const spmv_csr *a)
{
    struct amg_pool *pool = &amg->given_pool;
    if (a->memory == SPMV_MEMORY_HOST && a->val != NULL && amg->level[0].values != NULL && !amg->updates) {
        amg_release_last(pool, amg->given.nnz * (int64_t)spmv_type_size(amg->given.type));
        amg->given.val = NULL;
    }
}

spmv_status precond_make_amg(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    struct amg *amg = NULL;
    spmv_matrix *matrix = NULL;
    TRY(host_alloc(m->ctx, sizeof *amg, "a preconditioner", (void **)&amg));
    memset(amg, 0, sizeof *amg);
    amg->m = m;
    amg->ctx = m->ctx;
    amg->given_pool.ctx = amg->pool.ctx = m->ctx;
    TRY(check_options(amg, source->options, source->a->val != NULL));
    if (m->rows > 0) {
        TRY(take_matrix(amg, source, &matrix));
        TRY(build(amg));
        TRY(prepare_narrowing(amg));
        drop_given_values(amg, source->a);
        describe(amg);
    }
    m->self = amg;
    m->apply = apply;
    m->destroy = destroy;
    m->renew = amg->updates ? renew : NULL;
done:
    spmv_matrix_destroy(matrix);
    if (st != SPMV_OK && amg != NULL)
        destroy(amg);
    return st;
}
