/* The system that a solver solves: A x = b, or -A x = -b if every diagonal entry is negative; the
 * known null space of the matrix; and a plan for one right-hand side.
 *
 * -A is a second array of values with the pattern of A, so conjugate gradients and every
 * preconditioner of positive definite matrices work as they are.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>

#include "core/choice.h"
#include "solvers/solver_internal.h"

/* Whether the preconditioner takes all right-hand sides at once: the one that is made, or will be. */
static bool takes_columns(const spmv_solver *s)
{
    const char *const name = s->options.precond;
    const bool ref = s->ctx->backend->id == SPMV_BACKEND_REF;
    return !ref && (s->precond != NULL ? precond_takes_columns(s->precond) : name != NULL && strcmp(name, "amg") == 0);
}

/* Whether conjugate gradients solve several right-hand sides one after the other. With few entries per
 * row a step is mostly passes over vectors: those of one right-hand side stay in a cache, and its product
 * can read a compressed matrix. On a GPU one right-hand side also has kernels with fewer passes. The limits are where
 * both take the same time. amg has many more entries, which it reads once for all. */
static bool one_by_one(const spmv_solver *s)
{
    enum { FEW_ENTRIES = 8, FEW_ON_DEVICE = 16 };
    const int few = context_on_device(s->ctx) ? FEW_ON_DEVICE : FEW_ENTRIES;
    const bool complex = type_is_complex(s->options.type) || (s->a.val != NULL && type_is_complex(s->a.type));
    /* recycling: each one for the next; complex: solvers have no products of several vectors */
    if (s->options.recycle > 0 || complex)
        return true;
    return s->options.plan == NULL && choice_is_auto(s->options.rung) && s->options.inner == 0 && !takes_columns(s) &&
           s->a.nnz < few * s->a.rows;
}

spmv_status solver_smallest_of_ranks(const spmv_solver *s, double *number)
{
    double largest = -*number;
    const struct plan_ranks *const ranks = s->plan->ranks;
    const spmv_status st = ranks != NULL ? ranks->largest(ranks->self, &largest) : SPMV_OK;
    *number = -largest;
    return st;
}

/* More right-hand sides than MOST_AT_ONCE are solved in batches of about the same size, which bounds the memory. A
 * matrix is then a small part of what a step reads. On a GPU, from WHOLE_FROM on, a multiple of WHOLE are solved, of
 * which the last ones may be 0: products load 16 bytes at once. */
enum { MOST_AT_ONCE = 64, WHOLE = 4, WHOLE_FROM = 8 };

int solver_vectors_at_once(const spmv_solver *s)
{
    const int all = s->options.vectors, each = (int)ceil_divide(all, ceil_divide(all, MOST_AT_ONCE));
    if (!s->solver->columns || one_by_one(s))
        return 1;
    if (s->options.plan != NULL)
        return all;
    return context_on_device(s->ctx) && each >= WHOLE_FROM ? (int)ceil_divide(each, WHOLE) * WHOLE : each;
}

/* Makes -A and its plan. */
static spmv_status make_negative(spmv_solver *s, bool updates)
{
    spmv_status st = SPMV_OK;
    spmv_plan_info info;
    TRY(spmv_plan_describe(s->plan, &info, sizeof info));
    s->negative = s->a;
    if (s->ranks != NULL) {
        TRY(s->ranks->negative(s->ranks->self, &s->negative_plan));
        s->negative = s->negative_plan->a;
        goto done;
    }
    if (s->negative_val == NULL)
        TRY(context_alloc(s->ctx, s->a.nnz * (int64_t)spmv_type_size(s->a.type), &s->negative_val));
    TRY(spmv_map(s->ctx, SPMV_MAP_NEG, s->a.type, s->a.val, s->negative_val, s->a.nnz));
    s->negative.val = s->negative_val;
    TRY(solver_make_plan(s, &s->negative, info.type, solver_vectors_at_once(s), updates, &s->negative_plan));
done:
    return st;
}

/* Whether the solver needs a symmetric matrix: only then are sums of rows and columns the same. */
static bool is_symmetric(const spmv_solver *s)
{
    return s->solver->symmetric && s->options.inner == 0;
}

/* That of ranks belongs to them. */
static void destroy_negative_plan(spmv_solver *s)
{
    if (s->ranks == NULL)
        spmv_plan_destroy(s->negative_plan);
    s->negative_plan = NULL;
}

spmv_status solver_find_null_space(spmv_solver *s, enum null_space_rows rows)
{
    spmv_status st = SPMV_OK;
    spmv_plan_info info;
    TRY(spmv_plan_describe(s->plan, &info, sizeof info));
    TRY(s->ranks != NULL ? null_space_find_of_ranks(s->plan, rows, &s->null_space)
                         : null_space_find(s->ctx, &s->a, info.type, rows, &s->null_space));
done:
    return st;
}

/* Adds the null vectors of the options. */
static spmv_status add_null_space(spmv_solver *s)
{
    spmv_plan_info info;
    const struct null_given given = {s->options.null_space, s->options.null_vectors, s->options.null_block};
    spmv_status st = spmv_plan_describe(s->plan, &info, sizeof info);
    if (st == SPMV_OK)
        st = null_space_add(s->ctx, &s->a, s->plan->ranks, info.type, &given, s->solver->symmetric, &s->null_space);
    /* all ranks find the same errors of the vectors; of others they do not know */
    const bool known =
        st == SPMV_OK || st == SPMV_ERROR_ARGUMENT || st == SPMV_ERROR_SIZE || st == SPMV_ERROR_NOT_FINITE;
    return s->ranks != NULL && known ? s->ranks->agree(s->ranks->self, st) : st;
}

/* Components are looked for in any case, since a matrix that is said to be singular may have others. */
static spmv_status take_null_space(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    if (!s->components_known && s->null_space == NULL)
        TRY(solver_find_null_space(s, NULL_SPACE_COMPONENTS));
    TRY(add_null_space(s));
    s->components_known = true;
done:
    return st;
}

spmv_status solver_make_system(spmv_solver *s, bool updates)
{
    spmv_status st = SPMV_OK;
    destroy_negative_plan(s);
    spmv_plan_destroy(s->single);
    s->single = NULL;
    null_space_destroy(s->null_space);
    s->null_space = NULL;
    if (s->negates)
        TRY(make_negative(s, updates));
    s->components_known = !is_symmetric(s) || s->no_entries;
    if (!s->components_known) {
        TRY(solver_find_null_space(s, NULL_SPACE_ALL_ROWS));
        s->components_known = s->null_space != NULL;
    }
    if (s->options.null_vectors > 0 || s->options.null_block > 0)
        TRY(take_null_space(s));
done:
    return st;
}

void solver_drop_system(spmv_solver *s)
{
    destroy_negative_plan(s);
    spmv_plan_destroy(s->single);
    null_space_destroy(s->null_space);
    spmv_free(s->ctx, s->negative_val);
    s->single = NULL;
    s->null_space = NULL;
    s->negative_val = NULL;
    s->negates = false;
}

spmv_status solver_single_plan(spmv_solver *s, spmv_plan **plan)
{
    spmv_status st = SPMV_OK;
    spmv_plan_info info;
    *plan = solver_plan(s);
    TRY(spmv_plan_describe(*plan, &info, sizeof info));
    if (info.vectors == 1) /* a race may have changed the solver since the plan was made */
        return st;
    if (s->single == NULL)
        TRY(solver_make_plan(s, solver_matrix(s), info.type, 1, false, &s->single));
    *plan = s->single;
done:
    return st;
}
