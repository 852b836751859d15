/* The passes over vectors of minres, gmres, bicgstab and cocg on the host (krylov_passes.h). ref and omp
 * run the same loops, so they give the same bits.
 *
 * Vectors are cut into tiles of a fixed size; the parts of a sum are added in the order of the
 * tiles. A tile is done in blocks that stay in the first cache while several vectors pass by.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_passes.h"

#include <string.h>

#include "core/loops/host_tiles.h"

/* The elements of a tile; of passes over a basis, which may have dozens of vectors. */
enum { CACHE_BLOCK = 512, TILE = HOST_TILE, BASIS_TILE = HOST_TILE / 4 };

/* The vectors of a basis that are passed together. */
enum { TOGETHER = 4 };

/* Compiled for AVX2 too, which is taken where the processor has it: the same operations in the same order. The choice is
 * made when the program is loaded, before the thread sanitizer is ready. */
#if defined __x86_64__ && !defined __SANITIZE_THREAD__
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

/* The elements of a tile of this size: with ranks, of a chunk. */
static struct range range_of(const struct krylov_vectors *v, int64_t tile, int64_t size)
{
    if (v->ranks != NULL)
        return (struct range){v->ranks->chunk[tile], v->ranks->chunk[tile + 1]};
    return (struct range){tile * size, min_i64(v->n, (tile + 1) * size)};
}

/* Where a pass on the host puts the parts of its tiles. */
static struct krylov_scalar *parts_of(const struct krylov_vectors *v)
{
    return v->ranks != NULL ? v->rank_parts : v->parts;
}

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

static tile_fn *const combine[SPMV_TYPE_LIMIT] = FLOATING_TABLE(combine_tile);
static tile_fn *const project[SPMV_TYPE_LIMIT] = FLOATING_TABLE(project_tile);
static tile_fn *const store[SPMV_TYPE_LIMIT] = FLOATING_TABLE(store_tile);
static tile_fn *const expand[SPMV_TYPE_LIMIT] = FLOATING_TABLE(expand_tile);

/* The tiles of a pass: with ranks, the chunks of this one. */
static int64_t tiles_in(const struct krylov_vectors *v, int64_t size)
{
    return v->ranks != NULL ? v->ranks->chunks : ceil_divide(v->n, size);
}

/* Calls body for each tile of a pass over this many vectors. */
static void each_tile(const struct krylov_vectors *v, int64_t size, int vectors, tile_fn *body, void *job)
{
    tiles_each_of(v->ctx, tiles_in(v, size), v->n * vectors, body, job);
}

static int most_sums(int basis)
{
    return basis + 1 > KRYLOV_MOST_SUMS ? basis + 1 : KRYLOV_MOST_SUMS;
}

int64_t krylov_parts_bytes(const spmv_context *ctx, int64_t n, int basis, const struct plan_ranks *ranks)
{
    return context_on_device(ctx) ? krylov_parts_bytes_cuda(most_sums(basis), ranks)
           : ranks != NULL        ? 0
                           : ceil_divide(n, BASIS_TILE) * most_sums(basis) * (int64_t)sizeof(struct krylov_scalar);
}

/* ------------------------------------------------------------- ranks */

/* The parts, and the same as real numbers, one array for each sum. */
int64_t krylov_rank_parts_bytes(const struct plan_ranks *ranks, int basis)
{
    return 2 * (ranks->chunks + 1) * most_sums(basis) * (int64_t)sizeof(struct krylov_scalar);
}

spmv_status krylov_sum_ranks(const struct krylov_vectors *v, int sums, int stride)
{
    spmv_status st = SPMV_OK;
    const int64_t chunks = v->ranks->chunks;
    const int parts = type_parts(v->type), count = sums * parts;
    struct krylov_scalar *const scalar = v->rank_parts;
    double *const number = (double *)(scalar + (chunks + 1) * stride), *const all = number + chunks * count;
    for (int64_t c = 0; c < chunks; c++)
        for (int d = 0; d < sums; d++) {
            number[d * parts * chunks + c] = scalar[c * stride + d].re;
            if (parts > 1)
                number[(d * parts + 1) * chunks + c] = scalar[c * stride + d].im;
        }
    TRY(v->ranks->sum(v->ranks->self, SPMV_F64, number, chunks, count, all));
    for (int d = 0; d < sums; d++)
        scalar[d] = (struct krylov_scalar){all[d * parts], parts > 1 ? all[d * parts + 1] : 0};
done:
    return st;
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

void pass_bilinear(struct krylov_combination *pass, const void *u, const void *v)
{
    pass->bilinear[pass->sums] = true;
    pass_dot(pass, u, v);
}

spmv_status krylov_sum(const struct krylov_vectors *v, const void *a, const void *b, enum krylov_finish finish)
{
    struct krylov_combination pass = {.finish = finish};
    pass_dot(&pass, a, b);
    return krylov_combine(v, &pass);
}

/* ------------------------------------------------------------- the passes */

/* On a GPU: adds the parts in v->parts over all ranks, and ends the pass with the sums. */
static spmv_status finish_on_ranks(const struct krylov_vectors *v, int sums, enum krylov_finish finish, bool always)
{
    spmv_status st = SPMV_OK;
    const int64_t size = (int64_t)sizeof(struct krylov_scalar);
    if (sums > 0) {
        if (v->ranks->chunks > 0)
            TRY(spmv_download(v->ctx, v->parts, v->rank_parts, v->ranks->chunks * sums * size));
        TRY(krylov_sum_ranks(v, sums, sums));
        TRY(spmv_upload(v->ctx, v->rank_parts, v->parts, sums * size));
    }
    TRY(krylov_rank_finish_cuda(v, finish, always));
done:
    return st;
}

static spmv_status combine_on_ranks(const struct krylov_vectors *v, const struct krylov_combination *a)
{
    spmv_status st = SPMV_OK;
    struct krylov_combination vectors = *a;
    vectors.sums = 0;
    vectors.finish = FINISH_NOTHING;
    if (a->outputs > 0 && v->n > 0)
        TRY(krylov_combine_cuda(v, &vectors));
    if (a->sums > 0)
        TRY(krylov_rank_dots_cuda(v, a));
    if (a->finish != FINISH_NOTHING)
        TRY(finish_on_ranks(v, a->sums, a->finish, a->always));
done:
    return st;
}

static spmv_status project_on_ranks(const struct krylov_vectors *v, const struct krylov_projection *a)
{
    spmv_status st = SPMV_OK;
    struct krylov_state state;
    TRY(spmv_download(v->ctx, v->state, &state, (int64_t)sizeof state));
    if (state.ending)
        return SPMV_OK;
    TRY(krylov_rank_project_cuda(v, a, state.j + 2));
    TRY(finish_on_ranks(v, state.j + 2, a->finish, false));
done:
    return st;
}

spmv_status krylov_combine(const struct krylov_vectors *v, const struct krylov_combination *a)
{
    const bool least_squares = krylov_is_of_least_squares(a->finish);
    if (context_on_device(v->ctx))
        return v->ranks != NULL ? combine_on_ranks(v, a)
               : least_squares  ? krylov_combine_least_squares_cuda(v, a)
                                : krylov_combine_cuda(v, a);
    spmv_status st = SPMV_OK;
    struct combine_job job = {v, a};
    if (v->state->ending && !a->always)
        return SPMV_OK;
    each_tile(v, TILE, a->inputs + a->outputs, combine[v->type], &job);
    struct krylov_scalar sums[KRYLOV_MOST_SUMS] = {{0, 0}};
    const struct krylov_scalar *const parts = parts_of(v);
    if (v->ranks != NULL && a->sums > 0) {
        TRY(krylov_sum_ranks(v, a->sums, KRYLOV_MOST_SUMS));
        memcpy(sums, parts, (size_t)a->sums * sizeof *sums);
    }
    for (int64_t t = 0; t < tiles_in(v, TILE) && v->ranks == NULL; t++)
        for (int d = 0; d < a->sums; d++)
            sums[d] = scalar_sum(sums[d], parts[t * KRYLOV_MOST_SUMS + d]);
    if (least_squares)
        least_squares_finish_scalars(a->finish, v->state, sums);
    else
        krylov_finish_scalars(a->finish, v->state, sums);
done:
    return st;
}

spmv_status krylov_project(const struct krylov_vectors *v, const struct krylov_projection *a)
{
    if (context_on_device(v->ctx))
        return v->ranks != NULL ? project_on_ranks(v, a) : krylov_project_cuda(v, a);
    spmv_status st = SPMV_OK;
    struct project_job job = {v, a, v->state->j + 2};
    struct krylov_scalar *const parts = parts_of(v);
    if (v->state->ending)
        return SPMV_OK;
    each_tile(v, BASIS_TILE, job.sums, project[v->type], &job);
    if (v->ranks != NULL)
        TRY(krylov_sum_ranks(v, job.sums, job.sums));
    for (int64_t t = 1; t < tiles_in(v, BASIS_TILE) && v->ranks == NULL; t++)
        for (int d = 0; d < job.sums; d++)
            parts[d] = scalar_sum(parts[d], parts[t * job.sums + d]);
    if (a->finish == GMRES_FIRST)
        gmres_first(v->state, parts);
    else
        gmres_second(v->state, parts);
done:
    return st;
}

spmv_status krylov_store(const struct krylov_vectors *v, const struct krylov_storing *a)
{
    if (context_on_device(v->ctx))
        return krylov_store_cuda(v, a);
    struct store_job job = {v, a};
    if (!v->state->ending)
        each_tile(v, TILE, 2, store[v->type], &job);
    return SPMV_OK;
}

spmv_status krylov_expand(const struct krylov_vectors *v, const void *basis, int64_t stride, const void *x, void *to)
{
    if (context_on_device(v->ctx))
        return krylov_expand_cuda(v, basis, stride, x, to);
    struct expand_job job = {v, basis, x, to, stride};
    each_tile(v, BASIS_TILE, v->state->j + 2, expand[v->type], &job);
    return SPMV_OK;
}

spmv_status krylov_solve_triangle(const struct krylov_vectors *v)
{
    if (context_on_device(v->ctx))
        return krylov_solve_triangle_cuda(v);
    gmres_solve(v->state);
    return SPMV_OK;
}
