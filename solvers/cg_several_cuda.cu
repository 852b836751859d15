/* Conjugate gradients for several right-hand sides on CUDA, "graph" and "fused": the host side of
 * cg_several_cuda.cuh.
 *
 * Steps are queued in blocks (cg_blocks.cuh), replayed as one CUDA graph or launched kernel by
 * kernel. The host reads the state of the columns after each block, one block late. The loop
 * allocates nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "cg_blocks.cuh"
#include "cg_several_cuda.cuh"

extern "C" {
#include "plan_internal.h"
#include "precond_internal.h"
}

namespace
{

/* The workspace of a region. */
struct workspace {
    cg_blocks::queue queue;
    void *memory;   /* on the device: the number of columns that have ended, their states, parts of sums */
    void *begun;    /* on the host: the first two of these, as they are before a run */
    bool *ran;      /* columns that run in this run */
    double *before; /* r'r of each column when it was last looked at */
    int64_t columns_at, pq_at, rr_at, rz_at, products_at;
    int64_t product_parts; /* parts of p'q a column that a product stores; 0: none */
    int panels, width, row_blocks;
};

workspace *workspace_of(const struct cg_region *region)
{
    return (workspace *)region->state;
}

/* Cuts the columns into panels of about equal width, and the rows of a panel into blocks: by n and
 * k alone. */
void cut(workspace *w, int64_t n, int k)
{
    const bool few = n <= cg_several::FEW_FOR / k;
    const int most = few ? cg_several::FEW_BLOCKS : cg_several::MANY_BLOCKS;
    const int parts = few ? cg_several::FEW_PARTS : cg_several::MANY_PARTS;
    w->width = (int)ceil_divide(k, ceil_divide(k, cg_several::MOST));
    w->panels = (int)ceil_divide(k, w->width);
    const int64_t blocks = max_i64(min_i64(most, parts / w->width) / w->panels, cg_several::LEAST_BLOCKS);
    w->row_blocks = (int)min_i64(ceil_divide(n, cg_several::BLOCK / w->width), blocks);
}

/* Whether each block of the next kernel can add up the parts that a product stores. */
bool takes_products(const struct cg_region *region)
{
    const workspace *const w = workspace_of(region);
    return w->product_parts > 0 && w->product_parts <= cg_several::MANY_PARTS / w->width;
}

/* body(T()) */
template <typename Body> spmv_status with_type(const struct cg_region *region, const Body &body)
{
    return region->type == SPMV_F32 ? body(float()) : body(double());
}

template <typename T> cg_several::system<T> system_of(const struct cg_region *region)
{
    const workspace *const w = workspace_of(region);
    char *const memory = (char *)w->memory;
    const bool takes = takes_products(region);
    return {(cg_several::column<T> *)(memory + w->columns_at),
            (int *)memory,
            (T *)region->x,
            (T *)region->r,
            (T *)region->p,
            (T *)region->q,
            (const T *)region->inverse_diagonal,
            region->plan->a.rows,
            region->columns,
            w->width,
            w->row_blocks,
            (T *)(memory + w->pq_at),
            (T *)(memory + w->rr_at),
            (T *)(memory + w->rz_at),
            (T *)(memory + (takes ? w->products_at : w->pq_at)),
            takes ? (int)w->product_parts : w->row_blocks};
}

template <typename T, typename Kernel, typename... Arguments>
spmv_status queue_kernel(const struct cg_region *region, const char *name, int blocks, Kernel kernel,
                         Arguments... arguments)
{
    return on_device(region->ctx, [&] {
        return launch_early(region->ctx, name, blocks, cg_several::BLOCK, kernel, system_of<T>(region), arguments...);
    });
}

/* The kernel with a preconditioner, or without. */
#define KERNEL_FOR(kernel) (region->inverse_diagonal != nullptr ? kernel<T, 2> : kernel<T, 1>)

/* q = A p and parts of p'q. */
template <typename T> spmv_status queue_product(const struct cg_region *region)
{
    const workspace *const w = workspace_of(region);
    const cg_several::system<T> a = system_of<T>(region);
    const int blocks = w->panels * w->row_blocks;
    const bool rides = w->product_parts > 0;
    T *const parts = (T *)((char *)w->memory + w->products_at);
    struct plan_product product = plan_product_of(region->plan, nullptr, region->p, nullptr, region->q);
    product.column_parts = rides ? parts : nullptr;
    product.stop = rides ? a.ended + 1 : nullptr;
    const spmv_status st = plan_multiply(region->plan, &product);
    if (st != SPMV_OK || takes_products(region))
        return st;
    if (!rides)
        return queue_kernel<T>(region, "cg p'q", blocks, cg_several::multiply_directions<T>);
    return queue_kernel<T>(region, "cg fold", blocks, cg_several::fold<T>, (const T *)parts, w->product_parts);
}

/* One step of all columns. */
template <typename T> spmv_status queue_step(const struct cg_region *region)
{
    const workspace *const w = workspace_of(region);
    const int blocks = w->panels * w->row_blocks;
    spmv_status st = queue_product<T>(region);
    if (st == SPMV_OK)
        st = queue_kernel<T>(region, "cg r - alpha q", blocks, KERNEL_FOR(cg_several::step_residual));
    return st != SPMV_OK ? st : queue_kernel<T>(region, "cg p", blocks, KERNEL_FOR(cg_several::step_direction));
}

/* Uploads the states before the first step: which columns run, and for how many steps. */
template <typename T> spmv_status queue_begin(const struct cg_region *region)
{
    const workspace *const w = workspace_of(region);
    const double roundoff = sizeof(T) == sizeof(float) ? 0x1p-24 : 0x1p-53;
    auto *const columns = (cg_several::column<T> *)((char *)w->begun + w->columns_at);
    int ended[] = {0, 0};
    for (int v = 0; v < region->columns; v++) {
        const struct cg_column *const c = &region->column[v];
        w->ran[v] = c->stop == CG_RUNS;
        w->before[v] = 0;
        columns[v] = {};
        columns[v].tolerance = c->tolerance;
        columns[v].most = (long long)c->limit;
        columns[v].stop = w->ran[v] ? CG_RUNS : CG_DONE;
        columns[v].ending = !w->ran[v];
        ended[0] += !w->ran[v];
    }
    memcpy(w->begun, ended, sizeof ended);
    spmv_status st = spmv_upload(region->ctx, w->begun, w->memory, w->pq_at);
    if (st == SPMV_OK)
        st = queue_kernel<T>(region, "cg begin", w->panels * w->row_blocks, KERNEL_FOR(cg_several::begin));
    return st != SPMV_OK
               ? st
               : queue_kernel<T>(region, "cg begin", w->panels, KERNEL_FOR(cg_several::begin_state), roundoff);
}

/* Reports the iterations of this run, up to the last one made, to the callback: of each iteration
 * the largest residual of the columns that made it. *told: the next iteration to report. */
template <typename T>
spmv_status tell(const struct cg_region *region, const cg_several::column<T> *columns, int64_t *told)
{
    const workspace *const w = workspace_of(region);
    const spmv_cg_options *const o = region->options;
    int64_t last = 0;
    for (int v = 0; v < region->columns; v++)
        last = w->ran[v] ? max_i64(last, columns[v].iterations) : last;
    for (; *told <= last; ++*told) {
        double most = 0;
        for (int v = 0; v < region->columns; v++) {
            if (!w->ran[v] || columns[v].iterations < *told)
                continue;
            const double residual = sqrt((double)columns[v].history[*told % cg_several::RING]);
            most = residual <= most ? most : residual;
        }
        if (o->on_iteration != nullptr && o->on_iteration(region->iterations + *told, most, o->user) != 0)
            return SPMV_CANCELLED;
    }
    return SPMV_OK;
}

template <typename T> bool all_ended(const struct cg_region *region, const cg_several::column<T> *columns)
{
    bool ended = true;
    for (int v = 0; v < region->columns; v++)
        ended = ended && columns[v].ending != 0;
    return ended;
}

/* Whether the fall of r'r over the last `steps` steps predicts for all columns that fewer steps are
 * left than are queued at a time. */
template <typename T> bool near_end(const struct cg_region *region, const cg_several::column<T> *columns, int64_t steps)
{
    const workspace *const w = workspace_of(region);
    bool near = true;
    for (int v = 0; v < region->columns; v++) {
        const cg_several::column<T> &c = columns[v];
        if (c.ending != 0)
            continue;
        const double fall = log(w->before[v] / (double)c.rr), left = log((double)c.rr / (c.enough * c.enough));
        near = near && fall > 0 &&
               left / fall * (double)steps < (cg_blocks::AHEAD + 1) * cg_blocks::steps_of[cg_blocks::LONG];
    }
    return near;
}

/* Copies the states into the region. */
template <typename T> void digest(struct cg_region *region, const cg_several::column<T> *columns)
{
    const workspace *const w = workspace_of(region);
    int64_t steps = 0;
    for (int v = 0; v < region->columns; v++) {
        const cg_several::column<T> &from = columns[v];
        struct cg_column *const c = &region->column[v];
        if (!w->ran[v])
            continue;
        c->start_residual = from.start;
        c->enough = from.enough;
        c->rr = from.rr;
        c->pq = from.pq;
        c->rz = from.rho;
        c->iterations = from.iterations;
        c->stop = from.stop == CG_RUNS && from.ending != 0 ? CG_DONE : (enum cg_stop)from.stop;
        steps = max_i64(steps, c->iterations);
    }
    region->iterations += steps;
}

template <typename T> spmv_status run_typed(struct cg_region *region)
{
    workspace *const w = workspace_of(region);
    cg_blocks::queue *const q = &w->queue;
    const auto step = [=] { return queue_step<T>(region); };
    const auto copy_of = [=](int which) { return (const cg_several::column<T> *)cg_blocks::copy_of(*q, which); };
    int64_t told = region->iterations > 0; /* iteration 0 of a continued run was reported before */
    int length = cg_blocks::LONG, last = 0, steps = 0;
    region->told = SPMV_OK;
    spmv_status st = queue_begin<T>(region);
    for (int block = 0; st == SPMV_OK; block++) {
        last = block % cg_blocks::AHEAD;
        const int queued = cg_blocks::steps_of[length];
        st = cg_blocks::queue_block(q, step, length, last);
        if (st != SPMV_OK || block < cg_blocks::AHEAD - 1) {
            steps = queued;
            continue;
        }
        const int which = (block + 1) % cg_blocks::AHEAD;
        st = cg_blocks::await(*q, which);
        if (st != SPMV_OK)
            break;
        const cg_several::column<T> *const columns = copy_of(which);
        region->told = tell(region, columns, &told);
        if (region->told != SPMV_OK || all_ended(region, columns))
            break;
        length = block >= cg_blocks::AHEAD && near_end(region, columns, steps) ? cg_blocks::SHORT : cg_blocks::LONG;
        for (int v = 0; v < region->columns; v++)
            w->before[v] = (double)columns[v].rr;
        steps = queued;
    }
    if (st == SPMV_OK)
        st = cg_blocks::await(*q, last);
    if (st != SPMV_OK)
        return st;
    if (region->told == SPMV_OK)
        region->told = tell(region, copy_of(last), &told);
    digest(region, copy_of(last));
    return SPMV_OK;
}

spmv_status run(struct cg_region *region)
{
    return with_type(region, [=](auto type) { return run_typed<decltype(type)>(region); });
}

spmv_status open(struct cg_region *region, bool graphs)
{
    const int k = region->columns;
    const int64_t size = (int64_t)spmv_type_size(region->type), n = region->plan->a.rows;
    const auto whole = [](int64_t bytes) { return ceil_divide(bytes, 256) * 256; };
    spmv_status st = host_alloc(region->ctx, (int64_t)sizeof(workspace), "a solve", &region->state);
    if (st != SPMV_OK)
        return st;
    workspace *const w = workspace_of(region);
    *w = {};
    cut(w, n, k);
    const int64_t column = region->type == SPMV_F32 ? (int64_t)sizeof(cg_several::column<float>)
                                                    : (int64_t)sizeof(cg_several::column<double>);
    const int64_t parts = whole(size * w->row_blocks * k);
    w->columns_at = 256;
    w->pq_at = w->columns_at + whole(column * k);
    w->rr_at = w->pq_at + parts;
    w->rz_at = w->rr_at + parts;
    w->products_at = w->rz_at + parts;
    w->product_parts =
        region->plan->method->column_parts != nullptr ? region->plan->method->column_parts(region->plan, region->p) : 0;
    st = context_lend(region->ctx, w->products_at + whole(size * w->product_parts * k), &w->memory);
    if (st == SPMV_OK)
        st = host_alloc(region->ctx, w->pq_at, "a solve", &w->begun);
    if (st == SPMV_OK)
        st = host_alloc(region->ctx, k * (int64_t)sizeof *w->ran, "a solve", (void **)&w->ran);
    if (st == SPMV_OK)
        st = host_alloc(region->ctx, k * (int64_t)sizeof *w->before, "a solve", (void **)&w->before);
    if (st != SPMV_OK)
        return st;
    memset(w->begun, 0, (size_t)w->pq_at);
    w->queue.ctx = region->ctx;
    w->queue.state = (char *)w->memory + w->columns_at;
    w->queue.state_bytes = column * k;
    w->queue.graphs = graphs;
    return cg_blocks::open(&w->queue);
}

spmv_status open_fused(struct cg_region *region)
{
    return open(region, false);
}

spmv_status open_graph(struct cg_region *region)
{
    return open(region, true);
}

void close(struct cg_region *region)
{
    workspace *const w = workspace_of(region);
    if (w == nullptr)
        return;
    cg_blocks::close(&w->queue);
    context_take_back(region->ctx, w->memory);
    host_free(w->begun);
    host_free(w->ran);
    host_free(w->before);
    host_free(w);
    region->state = nullptr;
}

spmv_status supports(spmv_context *ctx, const spmv_plan_info *, const spmv_preconditioner *precond)
{
    if (precond != nullptr && precond_inverse_diagonal(precond) == nullptr)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: methods graph and fused have, for several right-hand sides, no preconditioner "
                            "but jacobi: textbook takes all");
    return SPMV_OK;
}

} // namespace

extern "C" const struct cg_side_by_side cg_several_graph = {
    "graph",
    "three or four kernels a step for all right-hand sides, replayed by the dozen as one graph",
    SPMV_BACKEND_CUDA,
    supports,
    open_graph,
    close,
    run};

extern "C" const struct cg_side_by_side cg_several_fused = {
    "fused",
    "three or four kernels a step for all right-hand sides, launched ahead of need",
    SPMV_BACKEND_CUDA,
    supports,
    open_fused,
    close,
    run};
