/* The passes over vectors of minres, gmres and bicgstab on the host (krylov_passes.h). ref and omp
 * run the same loops, so they give the same bits.
 *
 * Vectors are cut into tiles of a fixed size; the parts of a sum are added in the order of the
 * tiles. A tile is done in chunks that stay in the first cache while several vectors pass by.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "krylov_passes.h"

#include <string.h>

#include "host_tiles.h"

enum { CHUNK = 512 };

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

#define VALUE float
#define PART float
#define COMPLEX 0
#define TYPED(name) name##_f32
#include "krylov_passes_typed.h"
#undef VALUE
#undef PART
#undef TYPED
#define VALUE double
#define PART double
#define TYPED(name) name##_f64
#include "krylov_passes_typed.h"
#undef VALUE
#undef PART
#undef COMPLEX
#undef TYPED
#define VALUE spmv_c64
#define PART float
#define COMPLEX 1
#define TYPED(name) name##_c64
#include "krylov_passes_typed.h"
#undef VALUE
#undef PART
#undef TYPED
#define VALUE spmv_c128
#define PART double
#define TYPED(name) name##_c128
#include "krylov_passes_typed.h"
#undef VALUE
#undef PART
#undef COMPLEX
#undef TYPED

#define BY_TYPE(function)                                                                                              \
    static void function(void *state, int64_t tile)                                                                    \
    {                                                                                                                  \
        const struct function##_job *const job = state;                                                                \
        switch ((int)job->v->type) {                                                                                   \
        case SPMV_F32:                                                                                                 \
            function##_tile_f32(job, tile);                                                                            \
            break;                                                                                                     \
        case SPMV_F64:                                                                                                 \
            function##_tile_f64(job, tile);                                                                            \
            break;                                                                                                     \
        case SPMV_C64:                                                                                                 \
            function##_tile_c64(job, tile);                                                                            \
            break;                                                                                                     \
        case SPMV_C128:                                                                                                \
            function##_tile_c128(job, tile);                                                                           \
            break;                                                                                                     \
        }                                                                                                              \
    }
BY_TYPE(combine)
BY_TYPE(project)
BY_TYPE(store)
BY_TYPE(expand)

int64_t krylov_parts_bytes(const spmv_context *ctx, int64_t n, int basis)
{
    const int64_t sums = basis + 1 > KRYLOV_MOST_SUMS ? basis + 1 : KRYLOV_MOST_SUMS;
#ifdef SPMV_HAVE_CUDA
    if (ctx->backend->id == SPMV_BACKEND_CUDA)
        return krylov_parts_bytes_cuda((int)sums);
#endif
    (void)ctx;
    return tiles_of(n) * sums * (int64_t)sizeof(struct krylov_scalar);
}

#ifdef SPMV_HAVE_CUDA
#define ON_CUDA(call)                                                                                                  \
    if (v->ctx->backend->id == SPMV_BACKEND_CUDA)                                                                      \
    return call
#else
#define ON_CUDA(call)
#endif

spmv_status krylov_combine(const struct krylov_vectors *v, const struct krylov_combination *a)
{
    ON_CUDA(krylov_combine_cuda(v, a));
    struct combine_job job = {v, a};
    if (v->state->ending && !a->always)
        return SPMV_OK;
    tiles_each(v->ctx, tiles_of(v->n), combine, &job);
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
    ON_CUDA(krylov_project_cuda(v, a));
    struct project_job job = {v, a, v->state->j + 2};
    struct krylov_scalar *const parts = v->parts;
    if (v->state->ending)
        return SPMV_OK;
    tiles_each(v->ctx, tiles_of(v->n), project, &job);
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
    ON_CUDA(krylov_store_cuda(v, a));
    struct store_job job = {v, a};
    if (!v->state->ending)
        tiles_each(v->ctx, tiles_of(v->n), store, &job);
    return SPMV_OK;
}

spmv_status krylov_expand(const struct krylov_vectors *v, const void *basis, int64_t stride, const void *x, void *to)
{
    ON_CUDA(krylov_expand_cuda(v, basis, stride, x, to));
    struct expand_job job = {v, basis, x, to, stride};
    tiles_each(v->ctx, tiles_of(v->n), expand, &job);
    return SPMV_OK;
}

spmv_status krylov_solve_triangle(const struct krylov_vectors *v)
{
    ON_CUDA(krylov_solve_triangle_cuda(v));
    gmres_solve(v->state);
    return SPMV_OK;
}
