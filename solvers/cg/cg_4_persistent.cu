/* Conjugate gradients on CUDA, rung 4: the host side of cg_4_persistent.cuh and
 * cg_4_persistent_factor.cuh. It distributes the rows, launches, and evaluates the result.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <type_traits>

#include "product/cuda/spmv_types.cuh"
#include "solvers/cg/cg_4_persistent_factor.cuh"

extern "C" {
#include "product/plan_internal.h"
#include "solvers/cg/cg_internal.h"
#include "solvers/precond/precond_internal.h"
}

namespace
{

using cg_persistent::report;

/* The possible distributions. The first one that the system fits is used: few blocks, since each
 * block slows down the barriers, but all multiprocessors of an H100 for large systems. 480 threads
 * and the clerk are 16 warps, which may have 128 registers a thread. A device without cooperative
 * launches uses one block. */
struct cut {
    int blocks, threads, rows_a_thread;
    bool cluster;
};
const cut cuts[] = {{1, 480, 1, false},
                    {cg_persistent::CLUSTER, 256, 1, true},
                    {cg_persistent::CLUSTER, 256, 2, true},
                    {32, 480, 1, false},
                    {cg_persistent::most_blocks<1>, 480, 1, false},
                    {cg_persistent::most_blocks<2>, 480, 2, false},
                    {cg_persistent::most_blocks<3>, 480, 3, false},
                    {cg_persistent::most_blocks<4>, 480, 4, false},
                    {1, 480, 2, false},
                    {1, 480, 4, false}};
enum { CUTS = sizeof cuts / sizeof *cuts };

/* Steps of a launch with a callback. */
enum { TOLD_STEPS = 256 };

/* The preconditioner: none, a diagonal, or the factors of fsai. */
enum class kind { NONE, DIAGONAL, FACTOR };

/* The state of the rung. */
struct persistent {
    cut how;
    int rows_each, cells, shared_bytes;
    const precond_pair *factors; /* of fsai and isai; else NULL */
    int g_cells, gt_cells;
    void *memory; /* on the device: parts, counter, history */
    void *pairs;  /* and after them the vector s */
    int64_t counter_at, history_at;
};

const precond_pair *factors_of(const struct cg *cg)
{
    return cg->s.precond != nullptr ? precond_factors(cg->s.precond) : nullptr;
}

/* The cells of the block that needs most, for blocks of `each` rows. before: those before each slice. */
int64_t cells_of(const int64_t *before, int64_t rows, int64_t each)
{
    static_assert((int)PRECOND_SLICE == (int)warp_lanes, "a warp has the rows of a slice");
    const int64_t slices = ceil_divide(rows, (int64_t)warp_lanes), step = each / warp_lanes;
    int64_t most = 0;
    for (int64_t s = 0; s < slices; s += step)
        most = max_i64(most, before[min_i64(slices, s + step)] - before[s]);
    return most;
}

/* Sets *own to the first cut that the system fits. Returns false if there is none. */
bool choose(const struct cg *cg, int shared_most, int most_blocks, persistent *own)
{
    const spmv_plan *const plan = cg->s.plan;
    const int64_t cell = (int64_t)spmv_type_size(plan->a.type) + (int64_t)sizeof(int32_t);
    const precond_pair *const factors = factors_of(cg);
    if (factors != nullptr && factors->g_cells == nullptr)
        return false;
    for (int c = 0; c < CUTS; c++) {
        const cut how = cuts[c];
        const int64_t each =
            (cg->s.n + (int64_t)how.blocks * warp_lanes - 1) / ((int64_t)how.blocks * warp_lanes) * warp_lanes;
        const int64_t cells = each * plan->longest_row;
        const int64_t own_pairs = (how.cluster ? 2 : 1) * each;
        const int64_t g_cells = factors != nullptr ? cells_of(factors->g_cells, cg->s.n, each) : 0,
                      gt_cells = factors != nullptr ? cells_of(factors->transposed_cells, cg->s.n, each) : 0;
        const int64_t bytes = own_pairs * 2 * (int64_t)spmv_type_size(cg->s.type) + cells * cell +
                              (g_cells + gt_cells) * (int64_t)(sizeof(float) + sizeof(int32_t));
        if (factors != nullptr && how.rows_a_thread > cg_persistent::FACTOR_ROWS_MOST)
            continue;
        if (how.blocks > most_blocks || each > (int64_t)how.threads * how.rows_a_thread || bytes > shared_most)
            continue;
        *own = {};
        own->how = how;
        own->rows_each = (int)each;
        own->cells = (int)cells;
        own->factors = factors;
        own->g_cells = (int)g_cells;
        own->gt_cells = (int)gt_cells;
        own->shared_bytes = (int)bytes;
        return true;
    }
    return false;
}

spmv_status look(const struct cg *cg, persistent *own)
{
    int shared = 0, blocks = 0;
    const spmv_status st = on_device(cg->s.ctx, [&] { return grid_barrier::limits(cg->s.ctx, &shared, &blocks); });
    if (st != SPMV_OK)
        return st;
    return choose(cg, shared - cg_persistent::STATIC_BYTES, blocks, own)
               ? SPMV_OK
               : context_fail(
                     cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                     "spmv_cg: %lld rows of at most %lld entries do not fit in the memory of the multiprocessors",
                     (long long)cg->s.n, (long long)cg->s.plan->longest_row);
}

spmv_status supports(const struct cg *cg)
{
    persistent own;
    const spmv_plan *const plan = cg->s.plan;
    const precond_pair *const factors = factors_of(cg);
    if (cg->s.precond != nullptr && factors == nullptr && precond_inverse_diagonal(cg->s.precond) == nullptr)
        return context_fail(
            cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
            "spmv_cg: the persistent rung supports only the preconditioners none, jacobi and fsai, not %s",
            precond_name(cg->s.precond));
    if (factors != nullptr && (factors->g->a.type != SPMV_F32 || factors->g->a.row_ptr_bits != 32))
        return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: the persistent rung needs a factor of fsai in f32, with less than 2^31 entries");
    if (cg->keeps)
        return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: the persistent rung cannot continue from a replaced residual");
    if (plan->longest_row < 0 || plan->a.row_ptr_bits != 32)
        return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: the persistent rung needs a plan of method slices, long, groups, padded or "
                            "tiles, with less than 2^31 nonzeros");
    return look(cg, &own);
}

cg_persistent::factor factor_of(const spmv_plan *plan, int cells)
{
    return {(const int32_t *)plan->a.row_ptr, plan->a.col, (const float *)plan->a.val, cells};
}

/* One launch of at most `steps` steps, and its report. */
template <typename T, typename Stored, kind KIND>
spmv_status launch_steps(const struct cg *cg, int steps, bool begins, bool asks, report *told)
{
    const persistent *const own = (const persistent *)cg->state;
    const spmv_plan *const plan = cg->s.plan;
    char *const memory = (char *)own->memory;
    cuda_state *const device = (cuda_state *)cg->s.ctx->device;
    const cudaStream_t stream = (cudaStream_t)cg->s.ctx->stream;
    auto *const pairs = (grid_barrier::pair<T> *)own->pairs;
    cg_persistent::system<T, Stored> a = {};
    a.row_ptr = (const int32_t *)plan->a.row_ptr;
    a.col = plan->a.col;
    a.val = (const Stored *)plan->a.val;
    a.rows = (int)cg->s.n;
    a.rows_each = own->rows_each;
    a.cells = own->cells;
    a.b = (const T *)cg->s.b;
    a.x = (T *)cg->s.x;
    a.start_x = (T *)cg->s.start_x;
    a.r = (T *)cg->s.r;
    a.p = (T *)cg->p;
    a.s = (T *)(pairs + 2 * cg->s.n);
    a.pairs = pairs;
    a.scale = (const T *)(KIND == kind::DIAGONAL ? precond_inverse_diagonal(cg->s.precond) : nullptr);
    if constexpr (KIND == kind::FACTOR) {
        a.g = factor_of(own->factors->g, own->g_cells);
        a.gt = factor_of(own->factors->transposed, own->gt_cells);
    }
    a.parts = (T *)memory;
    a.history = asks ? (T *)(memory + own->history_at) : nullptr;
    a.arrived = (unsigned *)(memory + own->counter_at);
    a.told = (report *)device->staging;
    a.rtol = cg->s.rtol;
    a.atol = cg->s.atol;
    a.roundoff = real_limits_of(cg->s.type).roundoff;
    a.enough = told->enough;
    a.iterations = (long long)cg->s.column->iterations;
    a.most = (long long)cg->s.column->limit;
    a.steps = steps;
    a.begins = begins;
    a.from_zero = begins && cg->s.from_zero;
    return on_device(cg->s.ctx, [&] {
        const cut how = own->how;
        const bool cluster = how.cluster && device->code_version >= 90;
        const launch_shape shape = {how.blocks, how.threads + warp_lanes, own->shared_bytes,
                                    false,      how.blocks > 1,           cluster ? how.blocks : 0};
        int shared = 0, blocks = 0;
        spmv_status st = grid_barrier::limits(cg->s.ctx, &shared, &blocks);
        shared -= cg_persistent::STATIC_BYTES;
        if (st == SPMV_OK && how.blocks > 1 && !cluster)
            st = cuda_check(cg->s.ctx, cudaMemsetAsync(a.arrived, 0, sizeof *a.arrived, stream), "a counter");
        const auto start = [&](auto kernel, uint64_t *known) {
            const spmv_status ready = once_a_device(cg->s.ctx, "cg persistent", known, (const void *)kernel,
                                                    cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
            return ready != SPMV_OK ? ready : launch_shaped(cg->s.ctx, "cg persistent", shape, kernel, a);
        };
        static uint64_t known[6];
        if constexpr (KIND == kind::FACTOR) {
            using namespace cg_persistent;
            if (st == SPMV_OK && how.cluster)
                st = how.rows_a_thread == 1 ? start(kernel_of_factor<T, Stored, 256, 1, true>, &known[0])
                                            : start(kernel_of_factor<T, Stored, 256, 2, true>, &known[1]);
            else if (st == SPMV_OK)
                st = how.rows_a_thread == 1 ? start(kernel_of_factor<T, Stored, 480, 1, false>, &known[2])
                                            : start(kernel_of_factor<T, Stored, 480, 2, false>, &known[3]);
        } else {
            constexpr bool SCALED = KIND == kind::DIAGONAL;
            if (st == SPMV_OK && how.cluster)
                st = how.rows_a_thread == 1 ? start(cg_persistent::kernel<T, Stored, 256, 1, SCALED, true>, &known[0])
                                            : start(cg_persistent::kernel<T, Stored, 256, 2, SCALED, true>, &known[1]);
            else if (st == SPMV_OK)
                st = how.rows_a_thread == 1 ? start(cg_persistent::kernel<T, Stored, 480, 1, SCALED, false>, &known[2])
                     : how.rows_a_thread == 2
                         ? start(cg_persistent::kernel<T, Stored, 480, 2, SCALED, false>, &known[3])
                     : how.rows_a_thread == 3
                         ? start(cg_persistent::kernel<T, Stored, 480, 3, SCALED, false>, &known[4])
                         : start(cg_persistent::kernel<T, Stored, 480, 4, SCALED, false>, &known[5]);
        }
        if (st == SPMV_OK)
            st = cuda_check(cg->s.ctx, cudaStreamSynchronize(stream), "cg persistent");
        if (st == SPMV_OK)
            *told = *a.told;
        return st;
    });
}

/* Reports the iterations of the last launch, after iteration `done`, to the callback. */
template <typename T> spmv_status tell(struct cg *cg, int64_t base, int64_t done, int64_t last, int64_t *next)
{
    const persistent *const own = (const persistent *)cg->state;
    T history[TOLD_STEPS + 1];
    const spmv_status st = spmv_download(cg->s.ctx, (char *)own->memory + own->history_at, history,
                                         (last - done + 1) * (int64_t)sizeof(T));
    for (; *next <= last && st == SPMV_OK && cg->s.told == SPMV_OK; ++*next)
        krylov_tell(&cg->s, base + *next, sqrt((double)history[*next - done]));
    return st;
}

/* The reason why a column stopped. */
enum column_stop stop_of(const report &told)
{
    return told.stop == cg_persistent::GOES_ON  ? COLUMN_RUNS
           : told.stop == cg_persistent::BROKEN ? COLUMN_BROKEN
           : told.stop == cg_persistent::LIMIT  ? COLUMN_LIMIT
                                                : COLUMN_DONE;
}

template <typename T, typename Stored> spmv_status run_typed(struct cg *cg)
{
    struct krylov *const s = &cg->s;
    struct krylov_column *const c = s->column;
    const bool listens = s->on_iteration != nullptr;
    const kind how = ((const persistent *)cg->state)->factors != nullptr ? kind::FACTOR
                     : s->precond != nullptr                             ? kind::DIAGONAL
                                                                         : kind::NONE;
    const int steps = listens ? (int)TOLD_STEPS : (int)cg_persistent::MOST_STEPS;
    const int64_t base = s->iterations;
    int64_t next = base > 0;
    report told = {};
    for (bool begins = true; begins || (told.stop == cg_persistent::GOES_ON && s->told == SPMV_OK); begins = false) {
        const int64_t done = c->iterations;
        spmv_status st = how == kind::FACTOR ? launch_steps<T, Stored, kind::FACTOR>(cg, steps, begins, listens, &told)
                         : how == kind::DIAGONAL
                             ? launch_steps<T, Stored, kind::DIAGONAL>(cg, steps, begins, listens, &told)
                             : launch_steps<T, Stored, kind::NONE>(cg, steps, begins, listens, &told);
        if (st != SPMV_OK)
            return st;
        if (begins) {
            s->result->norm_b = told.norm_b;
            s->result->tolerance = told.tolerance;
            c->start_residual = told.start;
        }
        c->stop = stop_of(told);
        if (told.stop == cg_persistent::ZERO)
            return SPMV_OK;
        if (listens)
            st = tell<T>(cg, base, done, told.iterations, &next);
        if (st != SPMV_OK)
            return st;
        c->iterations = told.iterations;
        s->iterations = base + told.iterations;
    }
    cg->column->rr = told.rr;
    cg->column->pq = told.mu;
    cg->column->rz = told.nu;
    c->residual = sqrt(told.rr);
    if (told.stop != cg_persistent::GOES_ON) {
        s->result->true_residual = told.residual;
        s->knows_residual = true;
    }
    if (s->told != SPMV_OK) /* x is that of the last step of the launch */
        c->stop = COLUMN_RUNS;
    return SPMV_OK;
}

spmv_status run(struct cg *cg)
{
    return with_types(cg->s.plan, [&](auto sum, auto value) -> spmv_status {
        if constexpr (std::is_floating_point_v<decltype(sum)>)
            return run_typed<decltype(sum), decltype(value)>(cg);
        else
            return SPMV_ERROR_TYPE; /* spmv_cg refuses complex plans */
    });
}

spmv_status prepare(struct cg *cg)
{
    spmv_status st = host_alloc(cg->s.ctx, (int64_t)sizeof(persistent), "a solve", &cg->state);
    if (st != SPMV_OK)
        return st;
    persistent *const own = (persistent *)cg->state;
    *own = {};
    st = look(cg, own);
    if (st != SPMV_OK)
        return st;
    const int64_t size = (int64_t)spmv_type_size(cg->s.type);
    own->counter_at = 2 * own->how.blocks * cg_persistent::STRIDE * size;
    own->history_at = own->counter_at + 256;
    st = context_lend(cg->s.ctx, own->history_at + (TOLD_STEPS + 1) * size, &own->memory);
    if (st == SPMV_OK)
        st = context_lend(cg->s.ctx, 5 * cg->s.n * size, &own->pairs);
    return st != SPMV_OK ? st
                         : on_device(cg->s.ctx, [&] { return cuda_grow_staging(cg->s.ctx, (int64_t)sizeof(report)); });
}

void release(struct cg *cg)
{
    const persistent *const own = (const persistent *)cg->state;
    context_take_back(cg->s.ctx, own->memory);
    context_take_back(cg->s.ctx, own->pairs);
}

} // namespace

extern "C" const struct cg_rung cg_persistent_cuda = {
    "persistent",
    "the system fits in the multiprocessors: one kernel for all steps",
    1u << SPMV_BACKEND_CUDA,
    1,
    1,
    true,
    supports,
    prepare,
    run,
    release,
    false,
    false};
