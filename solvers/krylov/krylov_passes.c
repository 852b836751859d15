/* The passes over vectors of minres, gmres and bicgstab on the host (krylov_passes.h). ref and omp
 * run the same loops, so they give the same bits.
 *
 * Vectors are cut into tiles of a fixed size; the parts of a sum are added in the order of the
 * tiles. A tile is done in blocks that stay in the first cache while several vectors pass by.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_passes.h"

#include <string.h>

#include "core/loops/host_tiles.h"

enum { CACHE_BLOCK = 512 };

struct combine_job {
    const struct krylov_vectors *v;
    const struct krylov_combination *a;
};

struct project_job {
    const struct krylov_vectors *v;
    const struct krylov_projection *a;
    int sums;
};

struct store_job {
    const struct krylov_vectors *v;
    const struct krylov_storing *a;
};

struct expand_job {
    const struct krylov_vectors *v;
    const void *basis, *x;
    void *to;
    int64_t stride;
};

#define TEMPLATE "solvers/krylov/krylov_passes_typed.h"
#include "core/each/each_floating.h"

typedef void tile_fn(void *job, int64_t tile);
static tile_fn *const combine[SPMV_TYPE_LIMIT] = FLOATING_TABLE(combine_tile);
static tile_fn *const project[SPMV_TYPE_LIMIT] = FLOATING_TABLE(project_tile);
static tile_fn *const store[SPMV_TYPE_LIMIT] = FLOATING_TABLE(store_tile);
static tile_fn *const expand[SPMV_TYPE_LIMIT] = FLOATING_TABLE(expand_tile);

int64_t krylov_parts_bytes(const spmv_context *ctx, int64_t n, int basis)
{
    const int64_t sums = basis + 1 > KRYLOV_MOST_SUMS ? basis + 1 : KRYLOV_MOST_SUMS;
    return context_on_device(ctx) ? krylov_parts_bytes_cuda((int)sums)
                                  : tiles_of(n) * sums * (int64_t)sizeof(struct krylov_scalar);
}

/* ------------------------------------------------------------- the lines of a combination */

/* The number of x among the inputs, which it joins. */
static int input_of(struct krylov_combination *pass, const void *x)
{
    int i = 0;
    while (i < pass->inputs && pass->in[i] != x)
        i++;
    if (i == pass->inputs)
        pass->in[pass->inputs++] = x;
    return i;
}

static int operand_of(struct krylov_combination *pass, const void *u)
{
    for (int o = 0; o < pass->outputs; o++)
        if (pass->out[o] == u)
            return KRYLOV_MOST_INPUTS + o;
    return input_of(pass, u);
}

void pass_axpbypcz(struct krylov_combination *pass, int a, const void *x, int b, const void *y, int c, const void *z,
                   void *to)
{
    const int place[] = {a, b, c};
    const void *const from[] = {x, y, z};
    for (int i = 0; i < 3; i++)
        if (from[i] != NULL)
            pass->c[pass->outputs][input_of(pass, from[i])] = (signed char)place[i];
    pass->out[pass->outputs++] = to;
}

void pass_axpby(struct krylov_combination *pass, int a, const void *x, int b, const void *y, void *to)
{
    pass_axpbypcz(pass, a, x, b, y, C_ZERO, NULL, to);
}

void pass_scale(struct krylov_combination *pass, int a, const void *x, void *to)
{
    pass_axpby(pass, a, x, C_ZERO, NULL, to);
}

void pass_copy(struct krylov_combination *pass, const void *x, void *to)
{
    pass_scale(pass, C_ONE, x, to);
}

void pass_dot(struct krylov_combination *pass, const void *u, const void *v)
{
    pass->left[pass->sums] = (signed char)operand_of(pass, u);
    pass->right[pass->sums++] = (signed char)operand_of(pass, v);
}

spmv_status krylov_sum(const struct krylov_vectors *v, const void *a, const void *b, enum krylov_finish finish)
{
    struct krylov_combination pass = {.finish = finish};
    pass_dot(&pass, a, b);
    return krylov_combine(v, &pass);
}

/* ------------------------------------------------------------- the passes */

spmv_status krylov_combine(const struct krylov_vectors *v, const struct krylov_combination *a)
{
    if (context_on_device(v->ctx))
        return krylov_combine_cuda(v, a);
    struct combine_job job = {v, a};
    if (v->state->ending && !a->always)
        return SPMV_OK;
    tiles_each(v->ctx, tiles_of(v->n), combine[v->type], &job);
    struct krylov_scalar sums[KRYLOV_MOST_SUMS] = {{0, 0}};
    const struct krylov_scalar *const parts = v->parts;
    for (int64_t t = 0; t < tiles_of(v->n); t++)
        for (int d = 0; d < a->sums; d++)
            sums[d] = scalar_sum(sums[d], parts[t * KRYLOV_MOST_SUMS + d]);
    krylov_finish_scalars(a->finish, v->state, sums);
    return SPMV_OK;
}

spmv_status krylov_project(const struct krylov_vectors *v, const struct krylov_projection *a)
{
    if (context_on_device(v->ctx))
        return krylov_project_cuda(v, a);
    struct project_job job = {v, a, v->state->j + 2};
    struct krylov_scalar *const parts = v->parts;
    if (v->state->ending)
        return SPMV_OK;
    tiles_each(v->ctx, tiles_of(v->n), project[v->type], &job);
    for (int64_t t = 1; t < tiles_of(v->n); t++)
        for (int d = 0; d < job.sums; d++)
            parts[d] = scalar_sum(parts[d], parts[t * job.sums + d]);
    if (a->finish == GMRES_FIRST)
        gmres_first(v->state, parts);
    else
        gmres_second(v->state, parts);
    return SPMV_OK;
}

spmv_status krylov_store(const struct krylov_vectors *v, const struct krylov_storing *a)
{
    if (context_on_device(v->ctx))
        return krylov_store_cuda(v, a);
    struct store_job job = {v, a};
    if (!v->state->ending)
        tiles_each(v->ctx, tiles_of(v->n), store[v->type], &job);
    return SPMV_OK;
}

spmv_status krylov_expand(const struct krylov_vectors *v, const void *basis, int64_t stride, const void *x, void *to)
{
    if (context_on_device(v->ctx))
        return krylov_expand_cuda(v, basis, stride, x, to);
    struct expand_job job = {v, basis, x, to, stride};
    tiles_each(v->ctx, tiles_of(v->n), expand[v->type], &job);
    return SPMV_OK;
}

spmv_status krylov_solve_triangle(const struct krylov_vectors *v)
{
    if (context_on_device(v->ctx))
        return krylov_solve_triangle_cuda(v);
    gmres_solve(v->state);
    return SPMV_OK;
}
