/* Conjugate gradients on CUDA for several right-hand sides: rung 3, "graph", and rung 2, "fused":
 * the host side of cg_2_fused_columns.cuh. The loop is that of cg_blocks.cuh.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/cg/cg_2_fused_columns.cuh"

extern "C" {
#include "product/plan_internal.h"
#include "solvers/precond/precond_internal.h"
}

namespace
{

/* The workspace. */
struct workspace {
    cg_blocks::queue queue;
    /* on the device: the number of columns that have ended, their states, parts of sums */
    void *memory;
    void *begun;                  /* on the host: the first two of these before a run */
    const void *inverse_diagonal; /* of the preconditioner "jacobi"; NULL: none */
    int64_t columns_at, pq_at, rr_at, rz_at, products_at;
    int64_t product_parts; /* parts of p'q a column that a product stores; 0: none */
    int panels, width, row_blocks;
};

workspace *workspace_of(const struct cg *cg)
{
    return (workspace *)cg->state;
}

/* Cuts the columns into panels of about equal width, and the rows of a panel into blocks: by n and
 * k alone. */
void cut(workspace *w, int64_t n, int k)
{
    const bool few = n <= cg_columns::FEW_FOR / k;
    const int most = few ? cg_columns::FEW_BLOCKS : cg_columns::MANY_BLOCKS;
    const int parts = few ? cg_columns::FEW_PARTS : cg_columns::MANY_PARTS;
    w->width = (int)ceil_divide(k, ceil_divide(k, cg_columns::MOST));
    w->panels = (int)ceil_divide(k, w->width);
    const int64_t blocks = max_i64(min_i64(most, parts / w->width) / w->panels, cg_columns::LEAST_BLOCKS);
    w->row_blocks = (int)min_i64(ceil_divide(n, cg_columns::BLOCK / w->width), blocks);
}

/* Whether each block of the next kernel can add up the parts that a product stores. */
bool takes_products(const struct cg *cg)
{
    const workspace *const w = workspace_of(cg);
    return w->product_parts > 0 && w->product_parts <= cg_columns::MANY_PARTS / w->width;
}

template <typename T> cg_columns::system<T> system_of(const struct cg *cg)
{
    const workspace *const w = workspace_of(cg);
    char *const memory = (char *)w->memory;
    const bool takes = takes_products(cg);
    return {(cg_columns::column<T> *)(memory + w->columns_at),
            (int *)memory,
            (T *)cg->s.x,
            (T *)cg->s.r,
            (T *)cg->p,
            (T *)cg->s.q,
            (const T *)w->inverse_diagonal,
            cg->s.n,
            cg->s.columns,
            w->width,
            w->row_blocks,
            (T *)(memory + w->pq_at),
            (T *)(memory + w->rr_at),
            (T *)(memory + w->rz_at),
            (T *)(memory + (takes ? w->products_at : w->pq_at)),
            takes ? (int)w->product_parts : w->row_blocks};
}

template <typename T, typename Kernel, typename... Arguments>
spmv_status queue_kernel(const struct cg *cg, const char *name, int blocks, Kernel kernel, Arguments... arguments)
{
    return on_device(cg->s.ctx, [&] {
        return launch_early(cg->s.ctx, name, blocks, cg_columns::BLOCK, kernel, system_of<T>(cg), arguments...);
    });
}

/* The kernel with a preconditioner, or without. */
#define KERNEL_FOR(kernel) (w->inverse_diagonal != nullptr ? kernel<T, 2> : kernel<T, 1>)

/* q = A p and parts of p'q. */
template <typename T> spmv_status queue_product(const struct cg *cg)
{
    const workspace *const w = workspace_of(cg);
    const cg_columns::system<T> a = system_of<T>(cg);
    const int blocks = w->panels * w->row_blocks;
    const bool rides = w->product_parts > 0;
    T *const parts = (T *)((char *)w->memory + w->products_at);
    struct plan_product product = plan_product_of(cg->s.plan, nullptr, cg->p, nullptr, cg->s.q);
    product.column_parts = rides ? parts : nullptr;
    product.stop = rides ? a.ended + 1 : nullptr;
    const spmv_status st = plan_multiply(cg->s.plan, &product);
    if (st != SPMV_OK || takes_products(cg))
        return st;
    if (!rides)
        return queue_kernel<T>(cg, "cg p'q", blocks, cg_columns::multiply_directions<T>);
    return queue_kernel<T>(cg, "cg fold", blocks, cg_columns::fold<T>, (const T *)parts, w->product_parts);
}

/* One step of all columns. */
template <typename T> spmv_status queue_step(const struct cg *cg)
{
    const workspace *const w = workspace_of(cg);
    const int blocks = w->panels * w->row_blocks;
    spmv_status st = queue_product<T>(cg);
    if (st == SPMV_OK)
        st = queue_kernel<T>(cg, "cg r - alpha q", blocks, KERNEL_FOR(cg_columns::step_residual));
    return st != SPMV_OK ? st : queue_kernel<T>(cg, "cg p", blocks, KERNEL_FOR(cg_columns::step_direction));
}

/* Uploads the states before the first step: which columns run, and for how many steps. */
template <typename T> spmv_status queue_begin(struct cg *cg)
{
    workspace *const w = workspace_of(cg);
    const double roundoff = sizeof(T) == sizeof(float) ? 0x1p-24 : 0x1p-53;
    auto *const columns = (cg_columns::column<T> *)((char *)w->begun + w->columns_at);
    int ended[] = {0, 0};
    cg_blocks::begin(cg, &w->queue);
    for (int v = 0; v < cg->s.columns; v++) {
        const bool runs = w->queue.ran[v];
        columns[v] = {};
        columns[v].tolerance = cg->s.column[v].tolerance;
        columns[v].most = (long long)cg->s.column[v].limit;
        columns[v].stop = runs ? COLUMN_RUNS : COLUMN_DONE;
        columns[v].ending = !runs;
        ended[0] += !runs;
    }
    memcpy(w->begun, ended, sizeof ended);
    spmv_status st = spmv_upload(cg->s.ctx, w->begun, w->memory, w->pq_at);
    if (st == SPMV_OK)
        st = queue_kernel<T>(cg, "cg begin", w->panels * w->row_blocks, KERNEL_FOR(cg_columns::begin));
    return st != SPMV_OK ? st
                         : queue_kernel<T>(cg, "cg begin", w->panels, KERNEL_FOR(cg_columns::begin_state), roundoff);
}

spmv_status run(struct cg *cg)
{
    return cg_blocks::run(
        cg, &workspace_of(cg)->queue, [=](auto type) { return queue_begin<decltype(type)>(cg); },
        [=](auto type) { return queue_step<decltype(type)>(cg); });
}

spmv_status prepare(struct cg *cg)
{
    const int k = cg->s.columns;
    const int64_t size = (int64_t)spmv_type_size(cg->s.type), n = cg->s.n;
    const auto whole = [](int64_t bytes) { return ceil_divide(bytes, 256) * 256; };
    spmv_status st = host_alloc(cg->s.ctx, (int64_t)sizeof(workspace), "a solve", &cg->state);
    if (st != SPMV_OK)
        return st;
    workspace *const w = workspace_of(cg);
    *w = {};
    w->inverse_diagonal = cg->s.precond != nullptr ? precond_inverse_diagonal(cg->s.precond) : nullptr;
    cut(w, n, k);
    int64_t column = 0;
    st = with_zero(cg->s.ctx, "spmv_cg", cg->s.type, [&](auto zero) {
        column = (int64_t)sizeof(cg_columns::column<decltype(zero)>);
        return SPMV_OK;
    });
    if (st != SPMV_OK)
        return st;
    const int64_t parts = whole(size * w->row_blocks * k);
    w->columns_at = 256;
    w->pq_at = w->columns_at + whole(column * k);
    w->rr_at = w->pq_at + parts;
    w->rz_at = w->rr_at + parts;
    w->products_at = w->rz_at + parts;
    const auto column_parts = cg->s.plan->method->column_parts;
    w->product_parts = column_parts != nullptr ? column_parts(cg->s.plan, cg->p) : 0;
    st = context_lend(cg->s.ctx, w->products_at + whole(size * w->product_parts * k), &w->memory);
    if (st == SPMV_OK)
        st = host_alloc(cg->s.ctx, w->pq_at, "a solve", &w->begun);
    if (st != SPMV_OK)
        return st;
    memset(w->begun, 0, (size_t)w->pq_at);
    return cg_blocks::open(&w->queue, cg, (char *)w->memory + w->columns_at, cg->rung == &cg_graph_columns);
}

void release(struct cg *cg)
{
    workspace *const w = workspace_of(cg);
    cg_blocks::close(&w->queue);
    context_take_back(cg->s.ctx, w->memory);
    host_free(w->begun);
}

spmv_status supports(const struct cg *cg)
{
    if (cg->s.precond != nullptr && precond_inverse_diagonal(cg->s.precond) == nullptr)
        return context_fail(
            cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
            "spmv_cg: for several right-hand sides, rungs graph and fused support only the preconditioner "
            "jacobi; textbook supports all");
    return SPMV_OK;
}

constexpr cg_rung rung(const char *name, const char *why)
{
    return {name,  why,  1u << SPMV_BACKEND_CUDA, 2, CG_ANY_COLUMNS, false, supports, prepare, run, release,
            false, false};
}

} // namespace

extern "C" const struct cg_rung cg_graph_columns =
    rung("graph", "three or four kernels per step for all right-hand sides, replayed in groups as one CUDA graph");
extern "C" const struct cg_rung cg_fused_columns_cuda =
    rung("fused", "three or four kernels per step for all right-hand sides, launched in advance");
