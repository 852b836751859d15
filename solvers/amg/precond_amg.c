/* The preconditioner amg: a V-cycle (amg_cycle.c) of algebraic multigrid over a hierarchy of matrices
 * (amg_setup.c). Here: its options, the type of the hierarchy, new values, and the description.
 *
 * Type: under vectors of f64 the hierarchy is in f32, which halves its traffic. If the set-up finds that
 * f32 is too coarse for the matrix, the hierarchy is made again in f64. Under vectors of f32 it is in f32
 * too, and in f64 if products of the matrix's elements exceed the range of f32.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/choice.h"
#include "core/plural.h"
#include "product/plan_internal.h"
#include "solvers/amg/amg_internal.h"

static void destroy(void *self)
{
    struct amg *amg = self;
    amg_clear(amg);
    amg_release(&amg->lasting);
    csr_free_context(amg->ctx, &amg->given_copies);
    host_free_all(amg->node_of_rank, amg->node_chunk);
    context_freed(amg->ctx);
    host_free(amg);
}

/* --------------------------------------------------------------------- making */

/* After amg_build or amg_renew with this status: makes the hierarchy again, in f64, if f32 was too coarse
 * or its range too small. */
static spmv_status build_wider(struct amg *amg, spmv_status st)
{
    bool fits = true;
    if (st == SPMV_OK)
        st = amg_check_range(amg, &fits);
    if (amg->type == SPMV_F32 && ((st != SPMV_OK && amg->imprecise) || !fits)) {
        amg_clear(amg);
        st = amg_build(amg, SPMV_F64);
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
    context_keep_freed(m->ctx, true);
    const spmv_status st = build_wider(amg, amg_build(amg, SPMV_F32));
    context_keep_freed(m->ctx, false);
    return st;
}

/* The scratch memory of an application. */
static spmv_status prepare_narrowing(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    const spmv_preconditioner *m = amg->m;
    if (!amg_is_narrower(amg) || amg->largest != NULL)
        return SPMV_OK;
    TRY(amg_alloc(&amg->pool, 8, &amg->largest));
    if (amg->ranks == NULL)
        TRY(amg_alloc(&amg->pool, m->ctx->backend->reduce_scratch(m->ctx, m->type, m->rows), &amg->scratch));
done:
    return st;
}

static int64_t bytes_of_plan(const spmv_plan *plan)
{
    spmv_plan_info info;
    return spmv_plan_describe(plan, &info, sizeof info) == SPMV_OK ? info.bytes : 0;
}

static int64_t bytes_of_product(const spmv_spgemm_plan *plan)
{
    spmv_spgemm_info info;
    return spmv_spgemm_describe(plan, &info, sizeof info) == SPMV_OK ? info.bytes : 0;
}

static int64_t bytes_of_pattern(const spmv_matrix *matrix)
{
    spmv_csr a;
    if (matrix == NULL)
        return 0;
    spmv_matrix_view(matrix, &a);
    return a.nnz * 4 + (a.rows + 1) * 8;
}

static void describe_smoother(const struct amg *amg, char *text, size_t size)
{
    const struct amg_level *l = amg->level;
    const int n = snprintf(text, size, "%s of degree %d", amg->l1 ? "l1-jacobi" : "chebyshev", l->degree);
    if (amg->levels > 2 && l[1].degree != l->degree && n > 0)
        snprintf(text + n, size - (size_t)n, ", then %d", l[1].degree);
}

static void describe(struct amg *amg)
{
    spmv_preconditioner *m = amg->m;
    const double entries = (double)max_i64(amg->level[0].all_nnz, 1);
    double all = 0;
    char rows[256] = "", nodes[48] = "", vectors[32] = "";
    if (amg->block > 1)
        snprintf(nodes, sizeof nodes, "nodes of %s%d rows; ", amg->nodes > 0 ? "up to " : "", amg->block);
    if (amg->near_nulls > 0)
        snprintf(vectors, sizeof vectors, "%d near-null vector%s; ", amg->near_nulls, plural(amg->near_nulls));
    m->bytes = amg->given_copies.bytes + amg->pool.bytes + amg->lasting.bytes;
    for (int k = 0; k < amg->levels; k++) {
        const struct amg_level *l = &amg->level[k];
        const size_t n = strlen(rows);
        m->bytes += l->pool.bytes;
        all += (double)l->all_nnz;
        snprintf(rows + n, sizeof rows - n, "%s%lld", k > 0 ? ", " : "", (long long)l->all_rows);
        m->bytes += bytes_of_plan(l->plan);
        m->bytes += bytes_of_plan(l->plan_smoother);
        m->bytes += bytes_of_plan(l->plan_after);
        m->bytes += bytes_of_plan(l->plan_p);
        m->bytes += bytes_of_plan(l->plan_r);
        m->bytes += bytes_of_product(l->fp0);
        m->bytes += bytes_of_product(l->ap);
        m->bytes += bytes_of_product(l->rap);
        m->bytes += bytes_of_pattern(l->transpose);
        m->bytes += bytes_of_pattern(l->a_transpose);
    }
    m->bytes += bytes_of_plan(amg->plan_coarsest);
    m->levels = amg->levels;
    m->fallen = amg->left_out;
    char smoother[48];
    if (amg->general)
        snprintf(smoother, sizeof smoother, "%s by fine and coarse rows", amg->l1 ? "l1-jacobi" : "jacobi");
    else
        describe_smoother(amg, smoother, sizeof smoother);
    snprintf(m->layout, sizeof m->layout,
             "%d level%s of %s row%s in %s, operator complexity %.3f; %s%s%s%s; the last level %s", amg->levels,
             plural(amg->levels), rows, plural(amg->levels == 1 ? amg->level[0].all_rows : 0),
             spmv_type_name(amg->type), all / entries, nodes, vectors,
             amg->general     ? "not symmetric: classical interpolation of A and A'; "
             : amg->classical ? "classical interpolation; "
                              : "",
             smoother,
             amg->plan_coarsest == NULL ? "smoothed"
             : amg->left_out > 0        ? "inverted, singular"
                                        : "inverted");
}

static spmv_status check_options(struct amg *amg, const spmv_preconditioner_options *o, bool has_values)
{
    static const double nothing = 0;
    struct names smoothers = {.count = 0};
    const void *l1 = NULL;
    names_add(&smoothers, "chebyshev");
    names_add_row(&smoothers, "l1-jacobi", amg);
    const spmv_status st = choice_take(amg->ctx, SPMV_ERROR_ARGUMENT, "preconditioner amg", "smoother", &smoothers,
                                       o->smoother != NULL ? o->smoother : "chebyshev", &l1);
    if (st != SPMV_OK)
        return st;
    amg->l1 = l1 != NULL;
    amg->degree = o->degree < 0 ? 0 : o->degree;
    amg->strength = o->strength == 0 ? 0.25 : o->strength;
    amg->updates = o->update_values != 0 && has_values;
    amg->any = o->general != 0;
    amg->near_null = o->near_null;
    amg->near_null_type = o->near_null_type == SPMV_TYPE_DEFAULT ? o->type : o->near_null_type;
    if (o->degree == 0)
        return context_fail(amg->ctx, SPMV_ERROR_ARGUMENT, "preconditioner amg: degree 0; the smallest is 1");
    amg->block = o->block;
    if (amg->block < 0 || amg->block > AMG_NULLS)
        return context_fail(amg->ctx, SPMV_ERROR_ARGUMENT, "preconditioner amg: nodes of %d rows; 1 to %d are possible",
                            o->block, AMG_NULLS);
    if (amg->block > 0 && amg->ranks == NULL && amg->m->rows % amg->block != 0)
        return context_fail(amg->ctx, SPMV_ERROR_SIZE,
                            "preconditioner amg: %lld rows are not a multiple of the %d rows of a node",
                            (long long)amg->m->rows, amg->block);
    if (amg->ranks != NULL && amg->m->rows == 0 && o->near_nulls > 0)
        amg->near_null = &nothing; /* others have some */
    else if ((o->near_null != NULL) != (o->near_nulls > 0))
        return context_fail(amg->ctx, SPMV_ERROR_ARGUMENT, "preconditioner amg: near_nulls is %d, near_null is %s",
                            o->near_nulls, o->near_null != NULL ? "an array" : "NULL");
    amg->nulls = amg->near_nulls = o->near_nulls;
    return SPMV_OK;
}

/* M is symmetric if A is. */
static void set_transpose(struct amg *amg)
{
    spmv_preconditioner *const m = amg->m;
    m->transpose = amg->general ? amg_make_transposed : NULL;
    m->apply_transposed = amg->general ? NULL : m->apply;
}

/* Computes the hierarchy for new values. If that fails, the preconditioner keeps failing. */
static spmv_status renew(void *self, const void *values)
{
    spmv_status st = SPMV_OK;
    struct amg *amg = self;
    amg->broken = true;
    amg_drop_columns(amg);
    amg_drop_transposed(amg);
    amg->given.val = values;
    if (amg->levels > 0)
        TRY(build_wider(amg, amg_renew(amg)));
    else /* the last values had none */
        TRY(build(amg));
    TRY(prepare_narrowing(amg));
    describe(amg);
    set_transpose(amg);
    amg->broken = false;
done:
    return st;
}

/* The nodes that the matrix of the group was made for. */
static spmv_status take_nodes_of_ranks(struct amg *amg)
{
    amg->updates = false;
    amg->finds_block = amg->block == 0;
    if (amg->finds_block)
        amg->block = amg->ranks->block;
    return amg_check_nodes(amg, amg->block);
}

spmv_status precond_make_amg(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    struct amg *amg = NULL;
    spmv_matrix *matrix = NULL;
    spmv_preconditioner_options o = *source->options;
    struct amg_pool modes = {.ctx = m->ctx};
    TRY(host_alloc(m->ctx, sizeof *amg, "a preconditioner", (void **)&amg));
    memset(amg, 0, sizeof *amg);
    amg->m = m;
    amg->ctx = m->ctx;
    amg->columns = 1;
    amg->pool.ctx = amg->lasting.ctx = m->ctx;
    if (source->options->plan != NULL && source->options->plan->ranks != NULL)
        TRY(amg_take_rows_of_rank(amg, source->options->plan, source->options->general != 0));
    m->together = amg->ranks != NULL;
    TRY(amg_take_coordinates(amg, &modes, &o));
    TRY(check_options(amg, &o, source->a->val != NULL));
    if (m->together)
        TRY(take_nodes_of_ranks(amg));
    if (m->rows > 0 || m->together) {
        TRY(amg_take_matrix(amg, source, &matrix));
        if (!m->together) {
            amg->finds_block = amg->block == 0;
            if (amg->finds_block)
                TRY(amg_find_block(amg));
        } else if (amg->finds_block && amg->block == 1) {
            TRY(amg_find_slots(amg));
        }
        if (amg->block == 1 && amg->nulls == 1) /* a vector near_null, without a basis */
            amg->nulls = 0;
        else if (amg->block > 1 && amg->nulls == 0)
            amg->nulls = amg->block;
        TRY(build(amg));
        TRY(prepare_narrowing(amg));
        amg_drop_given_values(amg, source->a);
        describe(amg);
    }
    m->self = amg;
    m->apply = amg_apply;
    m->columns = m->together && context_on_device(m->ctx) ? NULL : &amg_columns;
    m->destroy = destroy;
    m->renew = amg->updates ? renew : NULL;
    set_transpose(amg);
done:
    amg_release(&modes);
    spmv_matrix_destroy(matrix);
    if (st != SPMV_OK && amg != NULL)
        destroy(amg);
    return st;
}
