/* Conjugate gradients on CUDA, rung 4: the host's side of cg_4_persistent.cuh. It decides how the rows are shared out,
 * launches, and looks at what came of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "cg_4_persistent.cuh"

extern "C" {
#include "cg_internal.h"
#include "plan_internal.h"
#include "precond_internal.h"
}

namespace
{

using cg_persistent::state;

/* Blocks of threads with so many rows a thread. The first into which the system fits is taken: as few blocks as can be,
 * since each more makes the barriers slower, but the work of large systems is shared by all multiprocessors. */
struct cut {
    int blocks, threads, rows_a_thread;
};
const cut cuts[] = {{1, 1024, 1}, {1, 1024, 2}, {32, 512, 1}, {128, 512, 1}, {128, 512, 2}, {128, 512, 4}};
enum { CUTS = sizeof cuts / sizeof *cuts };

/* Steps of a launch while somebody listens. */
enum { TOLD_STEPS = 256 };

/* The rung's own. */
struct persistent {
    cut how;
    int rows_each, cells, shared_bytes;
    void *memory, *s; /* on the device: state, parts, counter; the vector s */
    int64_t parts_at, counter_at;
};

/* Of the device. A host that plays one runs one block at a time. */
spmv_status limits(spmv_context *ctx, int *shared_bytes, int *most_blocks)
{
#ifdef HOST_CUDA
    (void)ctx;
    *shared_bytes = cg_persistent::HOST_SHARED;
    *most_blocks = 1;
    return SPMV_OK;
#else
    const cuda_state *const device = (const cuda_state *)ctx->device;
    int cooperative = 0, shared = 0;
    cudaError_t error = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device->device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device->device);
    *shared_bytes = shared - cg_persistent::STATIC_BYTES;
    *most_blocks = cooperative != 0 ? device->multiprocessors : 1;
    return cuda_check(ctx, error, "cudaDeviceGetAttribute");
#endif
}

/* The first cut that the system fits into; false: none. */
bool choose(const struct cg *cg, int shared_most, int most_blocks, persistent *own)
{
    const spmv_plan *const plan = cg->plan;
    const int64_t cell = (int64_t)spmv_type_size(plan->a.type) + (int64_t)sizeof(int32_t);
    for (int c = 0; c < CUTS; c++) {
        const cut how = cuts[c];
        const int64_t each = (cg->n + (int64_t)how.blocks * WARP - 1) / ((int64_t)how.blocks * WARP) * WARP;
        const int64_t cells = each * plan->longest_row;
        const int64_t z = how.blocks == 1 ? (int64_t)how.threads * how.rows_a_thread : 0;
        const int64_t bytes = z * (int64_t)spmv_type_size(cg->type) + cells * cell;
        if (how.blocks > most_blocks || each > (int64_t)how.threads * how.rows_a_thread || bytes > shared_most)
            continue;
        *own = {how, (int)each, (int)cells, (int)bytes, nullptr, nullptr, 0, 0};
        return true;
    }
    return false;
}

spmv_status look(const struct cg *cg, persistent *own)
{
    int shared = 0, blocks = 0;
    const spmv_status st = on_device(cg->ctx, [&] { return limits(cg->ctx, &shared, &blocks); });
    if (st != SPMV_OK)
        return st;
    return choose(cg, shared, blocks, own)
               ? SPMV_OK
               : context_fail(cg->ctx, SPMV_ERROR_UNSUPPORTED,
                              "spmv_cg: %lld rows of at most %lld entries do not fit the multiprocessors' memory",
                              (long long)cg->n, (long long)cg->plan->longest_row);
}

spmv_status supports(const struct cg *cg)
{
    persistent own;
    const spmv_plan *const plan = cg->plan;
    if (cg->precond != nullptr && precond_inverse_diagonal(cg->precond) == nullptr)
        return context_fail(cg->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: the persistent rung knows the preconditioners none and jacobi alone, not %s",
                            precond_name(cg->precond));
    if (cg->keeps)
        return context_fail(cg->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: the persistent rung does not go on from a residual that was replaced");
    if (plan->longest_row < 0 || plan->a.row_ptr_bits != 32)
        return context_fail(cg->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: the persistent rung wants a plan of method tiles, of less than 2^31 nonzeros");
    return look(cg, &own);
}

template <typename T> state<T> *about_of(const persistent *own)
{
    return (state<T> *)own->memory;
}

/* One launch of at most `steps` steps. */
template <typename T, typename Stored, bool SCALED>
spmv_status launch_steps(const struct cg *cg, int64_t done, int64_t most, int steps, bool begins)
{
    const persistent *const own = (const persistent *)cg->state;
    const spmv_plan *const plan = cg->plan;
    char *const memory = (char *)own->memory;
    const cg_persistent::system<T, Stored> a = {(const int32_t *)plan->a.row_ptr,
                                                plan->a.col,
                                                (const Stored *)plan->a.val,
                                                (int)cg->n,
                                                own->rows_each,
                                                own->cells,
                                                (T *)cg->x,
                                                (T *)cg->r,
                                                (T *)cg->p,
                                                (T *)own->s,
                                                (T *)cg->q,
                                                (const T *)(SCALED ? precond_inverse_diagonal(cg->precond) : nullptr),
                                                about_of<T>(own),
                                                (cg_persistent::sums<T> *)(memory + own->parts_at),
                                                (unsigned *)(memory + own->counter_at),
                                                cg->result->tolerance,
                                                sizeof(T) == sizeof(float) ? 0x1p-24 : 0x1p-53,
                                                (long long)done,
                                                (long long)most,
                                                steps,
                                                begins};
    return on_device(cg->ctx, [&] {
        const launch_shape shape = {own->how.blocks, own->how.threads, own->shared_bytes, false, own->how.blocks > 1};
        spmv_status st = cuda_check(
            cg->ctx, cudaMemsetAsync(a.arrived, 0, sizeof *a.arrived, (cudaStream_t)cg->ctx->stream), "a counter");
        int shared = 0, blocks = 0;
        if (st == SPMV_OK)
            st = limits(cg->ctx, &shared, &blocks);
        const auto start = [&](auto kernel, uint64_t *told) {
            const spmv_status ready = once_a_device(cg->ctx, "cg persistent", told, (const void *)kernel,
                                                    cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
            return ready != SPMV_OK ? ready : launch_shaped(cg->ctx, "cg persistent", shape, kernel, a);
        };
        static uint64_t told[CUTS];
        if (st != SPMV_OK)
            return st;
        if (own->how.blocks == 1)
            return own->how.rows_a_thread == 1
                       ? start(cg_persistent::kernel<T, Stored, 1024, 1, SCALED, true>, &told[0])
                       : start(cg_persistent::kernel<T, Stored, 1024, 2, SCALED, true>, &told[1]);
        return own->how.rows_a_thread == 1   ? start(cg_persistent::kernel<T, Stored, 512, 1, SCALED, false>, &told[2])
               : own->how.rows_a_thread == 2 ? start(cg_persistent::kernel<T, Stored, 512, 2, SCALED, false>, &told[3])
                                             : start(cg_persistent::kernel<T, Stored, 512, 4, SCALED, false>, &told[4]);
    });
}

template <typename T, typename Stored> spmv_status run_typed(struct cg *cg, int64_t most)
{
    const persistent *const own = (const persistent *)cg->state;
    const bool listens = cg->options->on_iteration != nullptr, scaled = cg->precond != nullptr;
    const int steps = listens ? (int)TOLD_STEPS : (int)cg_persistent::MOST_STEPS;
    const int64_t first = cg->result->iterations;
    int64_t told = first + (first > 0), done = first;
    state<T> about;
    spmv_status st = cg_start(cg), said = SPMV_OK;
    about.stop = cg_persistent::GOES_ON;
    for (bool begins = true; st == SPMV_OK && about.stop == cg_persistent::GOES_ON && said == SPMV_OK; begins = false) {
        const int64_t history = listens ? TOLD_STEPS + 1 : 1;
        st = scaled ? launch_steps<T, Stored, true>(cg, first, most, steps, begins)
                    : launch_steps<T, Stored, false>(cg, first, most, steps, begins);
        if (st == SPMV_OK)
            st = spmv_download(cg->ctx, own->memory, &about,
                               (int64_t)offsetof(state<T>, history) + history * (int64_t)sizeof(T));
        if (st != SPMV_OK)
            return st;
        if (begins)
            cg->start_residual = about.start;
        for (; listens && told <= about.iterations && said == SPMV_OK; told++) {
            cg->result->iterations = told;
            said = cg_tell(cg, sqrt((double)about.history[told - done]));
        }
        done = about.iterations;
    }
    if (st != SPMV_OK)
        return st;
    cg->rr = about.rr;
    cg->pq = about.pq;
    cg->rz = about.gamma;
    cg->result->iterations = done;
    cg->result->recurrence_residual = sqrt(cg->rr);
    if (said != SPMV_OK)
        return said; /* x is that of the last step of the launch */
    return about.stop == cg_persistent::ENDED   ? SPMV_OK
           : about.stop == cg_persistent::LIMIT ? cg_fail_limit(cg)
                                                : cg_look_for_breakdown(cg);
}

spmv_status run(struct cg *cg, int64_t most)
{
    if (cg->type == SPMV_F32)
        return run_typed<float, float>(cg, most);
    return cg->plan->a.type == SPMV_F32 ? run_typed<double, float>(cg, most) : run_typed<double, double>(cg, most);
}

spmv_status prepare(struct cg *cg)
{
    spmv_status st = host_alloc(cg->ctx, (int64_t)sizeof(persistent), "a solve", &cg->state);
    if (st != SPMV_OK)
        return st;
    persistent *const own = (persistent *)cg->state;
    *own = {};
    st = look(cg, own);
    if (st != SPMV_OK)
        return st;
    own->parts_at = ((int64_t)sizeof(state<double>) + 255) / 256 * 256;
    own->counter_at = own->parts_at + 2 * own->how.blocks * (int64_t)sizeof(cg_persistent::sums<double>);
    st = context_lend(cg->ctx, own->counter_at + (int64_t)sizeof(unsigned), &own->memory);
    if (st == SPMV_OK)
        st = context_lend(cg->ctx, cg->n * (int64_t)spmv_type_size(cg->type), &own->s);
    return st != SPMV_OK
               ? st
               : on_device(cg->ctx, [&] { /* the host gets all of it, written or not */
                                          return cuda_check(cg->ctx,
                                                            cudaMemsetAsync(own->memory, 0, sizeof(state<double>),
                                                                            (cudaStream_t)cg->ctx->stream),
                                                            "the state");
                 });
}

void release(struct cg *cg)
{
    persistent *const own = (persistent *)cg->state;
    if (own == nullptr)
        return;
    context_take_back(cg->ctx, own->memory);
    context_take_back(cg->ctx, own->s);
    host_free(own);
    cg->state = nullptr;
}

} // namespace

extern "C" const struct cg_method cg_persistent_cuda = {"persistent",
                                                        "the system fits the multiprocessors: one kernel for all steps",
                                                        1u << SPMV_BACKEND_CUDA,
                                                        supports,
                                                        prepare,
                                                        run,
                                                        release};
