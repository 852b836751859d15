/* Hubs of rung 4 (spmv_4_tiles_hubs.cuh): the choice of a plan, and the product.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "product/cuda/tiles/spmv_4_tiles_hubs_plan.cuh"
#pragma GCC diagnostic pop
#include "product/cuda/tiles/spmv_4_tiles_hubs_form.cuh"

namespace
{

using namespace tiles;

/* The choice by a sample: how many hubs there are, and how many entries of the sample they have. */
struct hub_choice {
    hub_rule rule;
    int32_t count;
    int64_t entries;
    int64_t first; /* those of the most frequent hubs */
};

enum {
    FIRST = 16,        /* one in so many hubs is so frequent that the first-level cache has it anyway */
    LEAST_COUNT = 2,   /* of a hub in the sample */
    LEAST_SHARE = 20,  /* percent of the entries, those of the first hubs left out */
    LEAST_SECTORS = 16 /* of 32 neighbouring entries */
};

/* Takes the most frequent columns, at most `most`. */
hub_choice choose_hubs(const hub_counts &all, const hub_sample &s, int32_t most)
{
    hub_choice h = {{hub_counts::BINS, 0}, 0, 0, 0};
    int64_t of_bin = s.size(); /* of the last bin: what the others do not have */
    for (int c = 1; c < hub_counts::BINS - 1; c++)
        of_bin -= (int64_t)c * all.columns[c];
    for (int c = hub_counts::BINS - 1; c >= LEAST_COUNT; c--) {
        const int64_t columns = all.columns[c], taken = min_i64(columns, most - h.count);
        const int64_t first = min_i64(taken, h.count < most / FIRST ? most / FIRST - h.count : 0);
        if (columns > 0) {
            h.entries += of_bin * taken / columns;
            h.first += of_bin * first / columns;
        }
        h.count += (int32_t)taken;
        if (taken < columns) {
            h.rule.more = (int32_t)taken;
            break;
        }
        h.rule.least = (unsigned)c;
        of_bin = (int64_t)(c - 1) * all.columns[c - 1];
    }
    return h;
}

/* Whether hubs pay off: they have many entries, and neighbouring entries lie far apart. */
bool hubs_pay(const hub_choice &h, const hub_counts &all, const hub_sample &s)
{
    return 100 * (h.entries - h.first) >= LEAST_SHARE * s.size() && all.sectors >= LEAST_SECTORS * s.windows;
}

/* Bytes of dynamic shared memory of a block. STATIC: its other shared memory and what the device
 * reserves. The first-level cache gets at least CACHE more than it would have otherwise. */
spmv_status shared_for_hubs(spmv_context *ctx, int *bytes)
{
    enum { CACHE = 32 * 1024, STATIC = 3 * 1024 };
    int limit = 0;
    const spmv_status st = cuda_check(
        ctx,
        cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, ((cuda_state *)ctx->device)->device),
        "cudaDeviceGetAttribute");
    *bytes = limit - CACHE - STATIC;
    return st;
}

/* Blocks for n items; each adds to a number at its end. */
int blocks_for(const spmv_context *ctx, int64_t n)
{
    const int most = 8 * ((const cuda_state *)ctx->device)->multiprocessors, blocks = grid_for(n, block_threads);
    return blocks < most ? blocks : most;
}

/* Temporary memory. */
struct finding_hubs {
    void *memory;
    hub_counts *all;
    unsigned *count;
    int64_t *marks;
    void *scratch;
};

spmv_status begin_finding(const spmv_plan *plan, finding_hubs *f)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t cols = plan->a.cols, head = aligned((int64_t)sizeof(hub_counts)), counts = aligned(cols * 4);
    const int64_t scan = aligned(ctx->backend->scan_scratch(ctx, SPMV_I64, cols));
    const spmv_status st = context_alloc(ctx, head + counts + scan + cols * 8, &f->memory);
    if (st != SPMV_OK)
        return st;
    f->all = (hub_counts *)f->memory;
    f->count = (unsigned *)((char *)f->memory + head);
    f->scratch = (char *)f->memory + head + counts;
    f->marks = (int64_t *)((char *)f->memory + head + counts + scan);
    return cleared(ctx, f->memory, head + counts);
}

spmv_status sample_hubs(const spmv_plan *plan, const finding_hubs &f, const hub_sample &s, hub_counts *all)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t cols = plan->a.cols;
    const int shift = spmv_type_size(plan->type) == 4 ? 3 : 2; /* of 32 bytes */
    const spmv_status st = on_device(ctx, [&] {
        const spmv_status counted = launch(ctx, "spmv tiles sample columns", blocks_for(ctx, s.size()), block_threads,
                                           sample_columns, s, shift, plan->a.col, f.count, f.all);
        return counted != SPMV_OK ? counted
                                  : launch(ctx, "spmv tiles count counts", blocks_for(ctx, cols), block_threads,
                                           count_counts, (const unsigned *)f.count, cols, f.all);
    });
    return st != SPMV_OK ? st : spmv_download(ctx, f.all, all, (int64_t)sizeof *all);
}

/* Queues what follows the choice of the rule. */
spmv_status write_hubs(const spmv_plan *plan, const finding_hubs &f, hub_rule rule, const plan_hubs *h)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t cols = plan->a.cols, nnz = plan->a.nnz;
    const int blocks = grid_for(cols, block_threads);
    spmv_status st = on_device(ctx, [&] {
        return launch(ctx, "spmv tiles mark hubs", blocks, block_threads, mark_hubs, rule, (const unsigned *)f.count,
                      cols, f.marks);
    });
    if (st == SPMV_OK)
        st = ctx->backend->scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I64, f.marks, f.marks, cols, f.scratch);
    return st != SPMV_OK ? st : on_device(ctx, [&] {
        const spmv_status named = launch(ctx, "spmv tiles name hubs", blocks, block_threads, name_hubs, rule,
                                         (const int64_t *)f.marks, cols, f.count, h->column);
        return named != SPMV_OK ? named
                                : launch(ctx, "spmv tiles encode columns", blocks_for(ctx, nnz), block_threads,
                                         encode_columns, plan->a.col, nnz, (const int32_t *)f.count, h->columns, f.all);
    });
}

/* Allocates the plan's memory and makes hubs by the rule. */
template <typename T> spmv_status take_hubs(spmv_plan *plan, const finding_hubs &f, hub_rule rule, plan_hubs *h)
{
    const int64_t nnz = plan->a.nnz, columns = aligned(nnz * 4), list = aligned((int64_t)h->count * 4);
    int64_t entries = 0;
    spmv_status st = plan_alloc(plan, columns + list + aligned((int64_t)h->count * (int64_t)sizeof(T)), &h->memory);
    if (st != SPMV_OK)
        return st;
    h->columns = (int32_t *)h->memory;
    h->column = (int32_t *)((char *)h->memory + columns);
    h->x = (char *)h->memory + columns + list;
    st = write_hubs(plan, f, rule, h);
    if (st == SPMV_OK)
        st = spmv_download(plan->ctx, &f.all->entries, &entries, (int64_t)sizeof entries);
    h->share = (double)entries / (double)nnz;
    return st;
}

/* Makes hubs if they pay off. Waits. */
template <typename T> spmv_status find_hubs(spmv_plan *plan, finding_hubs *f, plan_hubs *h)
{
    using shape = hub_shape<T>;
    const hub_sample s(plan->a.nnz);
    hub_counts all;
    spmv_status st = shared_for_hubs(plan->ctx, &h->shared_bytes);
    const int32_t room = (h->shared_bytes - (int)shape::TEAMS * (int)shape::TEAM_BYTES) / (int)sizeof(T);
    const int32_t most = room < SPMV_TILES_MOST_HUBS ? room : SPMV_TILES_MOST_HUBS;
    if (st != SPMV_OK || most < 1)
        return st;
    st = begin_finding(plan, f);
    if (st == SPMV_OK)
        st = sample_hubs(plan, *f, s, &all);
    if (st != SPMV_OK)
        return st;
    const hub_choice choice = choose_hubs(all, s, most);
    h->count = choice.count;
    return hubs_pay(choice, all, s) ? take_hubs<T>(plan, *f, choice.rule, h) : SPMV_OK;
}

} // namespace

namespace tiles
{

spmv_status make_hubs(spmv_plan *plan, plan_hubs *h)
{
    finding_hubs f = {};
    const spmv_status st = with_types(plan, [&](auto sums, auto) {
        using T = decltype(sums);
        if constexpr (std::is_arithmetic<T>::value)
            return find_hubs<T>(plan, &f, h);
        else
            return SPMV_OK;
    });
    context_free(plan->ctx, f.memory);
    if (st != SPMV_ERROR_MEMORY)
        return st;
    plan->ctx->error[0] = '\0';
    h->refused = true;
    return SPMV_OK;
}

template <typename T, typename Stored>
spmv_status multiply_with_hubs(spmv_context *ctx, matrix<T, Stored> m, const plan_hubs &h, const T *x,
                               store_scaled<T> store)
{
    const int32_t each = 16 / (int32_t)sizeof(T);
    const hubs<T> those = {h.column, h.count, (h.count + each - 1) / each * each, h.shared_bytes, (T *)h.x};
    m.col = h.columns;
    return on_device(ctx, [&] { return run_with_hubs(ctx, m, those, x, store); });
}

template spmv_status multiply_with_hubs(spmv_context *, matrix<float, float>, const plan_hubs &, const float *,
                                        store_scaled<float>);
template spmv_status multiply_with_hubs(spmv_context *, matrix<double, double>, const plan_hubs &, const double *,
                                        store_scaled<double>);
template spmv_status multiply_with_hubs(spmv_context *, matrix<double, float>, const plan_hubs &, const double *,
                                        store_scaled<double>);

} // namespace tiles
