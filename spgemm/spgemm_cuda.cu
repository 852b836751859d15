/* Method "rows" of the backend cuda: the phases of a sparse product (spgemm_rows.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <new>
#include <vector>

#include "spgemm/spgemm_rows_numeric.cuh"
#include "spgemm/spgemm_rows_sorted.cuh"

extern "C" {
#include "spgemm/spgemm_internal.h"
}

namespace
{

using namespace spgemm;

/* Of a plan. All pointers are to the context's memory, to one block that begins with counts. */
struct rows_state {
    unsigned long long *counts; /* LEVELS, of the lists */
    item *items;
    fragment *fragments;
    unsigned *filters; /* of the fragments of huge rows */
    uint8_t *classes;  /* of all rows; NULL: no row is TINY */
    int64_t huge_fragments, fragment_count, filter_words;
    int64_t warps; /* for the lists */
};

/* Memory of the symbolic phase, one block. */
struct working {
    counters *found;             /* 2: of the first and of the second classes */
    int64_t *lengths;            /* of the rows of C; rows + 1 */
    item *items, *again, *longs; /* as many as rows */
    uint8_t *classes, *shapes;
    stored_columns stored;
    huge_row *found_huge;
    unsigned *bits; /* of a huge row, after the number of wide entries; NULL: there was none */
    wide_entries wide;
    int64_t *bit_counts;
    std::vector<huge_row> huge;
};

constexpr int64_t aligned(int64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

operands operands_of(const spmv_csr &a, const spmv_csr &b)
{
    return {a.rows, {a.row_ptr, a.col, a.row_ptr_bits == 64}, {b.row_ptr, b.col, b.row_ptr_bits == 64}};
}

operands operands_of(const spmv_spgemm_plan *plan)
{
    return operands_of(plan->a, plan->b);
}

/* Blocks for work whose amount only the device knows: at most `most`, and at most `each` for a
 * multiprocessor. */
int blocks_for(const spmv_context *ctx, int64_t most, int each)
{
    const int64_t cap = (int64_t)each * ((const cuda_state *)ctx->device)->multiprocessors;
    return (int)(most < cap ? most : cap);
}

spmv_status clear(spmv_context *ctx, void *memory, int64_t bytes)
{
    return on_device(ctx, [=] {
        return cuda_check(ctx, cudaMemsetAsync(memory, 0, (size_t)bytes, (cudaStream_t)ctx->stream), "cudaMemsetAsync");
    });
}

/* From the sample; a column for 8 products if there is none. */
expectation expected_columns(const spmv_spgemm_plan *plan)
{
    const int64_t products = plan->sampled_products, columns = plan->sampled_columns;
    return {products > 0 ? (int)ceil_divide(256 * columns, products) : 32};
}

/* The most columns that count stores. Tests build with few. */
#ifndef SPMV_SPGEMM_STORED
#define SPMV_SPGEMM_STORED (1 << 28)
#endif
constexpr int64_t STORED_MOST = SPMV_SPGEMM_STORED;

/* Blocks for count_few: as many as run at once. */
int few_blocks(const spmv_spgemm_plan *plan)
{
    return blocks_for(plan->ctx, ceil_divide(plan->a.rows, (int64_t)BLOCK_WARPS), COUNT_RESIDENT);
}

/* Blocks for kernels with a thread for each row. */
int row_blocks(const spmv_spgemm_plan *plan)
{
    return blocks_for(plan->ctx, ceil_divide(plan->a.rows, (int64_t)block_threads), 8);
}

/* Columns for which a warp of visit_tiny or count_few reserves room at a time, if there is room for so
 * many columns. */
int columns_at_once(const spmv_spgemm_plan *plan, int64_t room)
{
    return (int)min_i64(room / (8 * BLOCK_WARPS * (int64_t)few_blocks(plan)), 1024);
}

/* Room for a quarter more columns than expected; at most for all products, and for the columns that
 * warps reserve and do not need. */
int64_t room_for_columns(const spmv_spgemm_plan *plan)
{
    const int64_t warps = BLOCK_WARPS * (int64_t)few_blocks(plan) + block_warps * (int64_t)row_blocks(plan);
    const int64_t expected = expected_columns(plan).of(plan->products) / 4 * 5 + (1 << 20);
    const int64_t all = plan->products + warps * columns_at_once(plan, plan->products);
    return min_i64(min_i64(all, expected), STORED_MOST);
}

spmv_status make_room(spmv_spgemm_plan *plan, working *w, void **memory)
{
    const int64_t rows = plan->a.rows;
    constexpr int64_t longest = SPMV_SPGEMM_HUGE;
    const int64_t most_huge = plan->a.nnz / longest + plan->products / (64 * longest);
    const int64_t parts[] = {aligned(2 * (int64_t)sizeof(counters)),
                             aligned(rows * (int64_t)sizeof(item)),
                             aligned(rows * (int64_t)sizeof(item)),
                             aligned(rows * (int64_t)sizeof(item)),
                             aligned(rows),
                             aligned(rows),
                             aligned(rows * 4),
                             aligned((rows + 1) * 8),
                             aligned(most_huge * (int64_t)sizeof(huge_row))};
    int64_t bytes = 0;
    for (int64_t part : parts)
        bytes += part;
    if (plan->max_bytes > 0 && bytes > plan->max_bytes)
        return context_fail(plan->ctx, SPMV_ERROR_MEMORY,
                            "the method \"rows\" needs %lld bytes of working memory, %lld are allowed",
                            (long long)bytes, (long long)plan->max_bytes);
    int64_t room = room_for_columns(plan);
    if (plan->max_bytes > 0 && room > (plan->max_bytes - bytes) / 4)
        room = (plan->max_bytes - bytes) / 4;
    bytes += room * 4;
    plan->working_bytes = bytes;
    const spmv_status st = context_alloc(plan->ctx, bytes, memory);
    if (st != SPMV_OK)
        return st;
    char *at = (char *)*memory;
    w->found = (counters *)at;
    w->again = (item *)(at += parts[0]);
    w->items = (item *)(at += parts[1]);
    w->longs = (item *)(at += parts[2]);
    w->classes = (uint8_t *)(at += parts[3]);
    w->shapes = (uint8_t *)(at += parts[4]);
    w->stored.places = (uint32_t *)(at += parts[5]);
    w->lengths = (int64_t *)(at += parts[6]);
    w->found_huge = (huge_row *)(at += parts[7]);
    w->stored.columns = (int32_t *)(at + parts[8]);
    w->stored.room = room;
    w->stored.at_once = columns_at_once(plan, min_i64(room, plan->products));
    return clear(plan->ctx, w->found, parts[0]);
}

/* ------------------------------------------------------------- huge rows */

int64_t bit_words(const spmv_spgemm_plan *plan)
{
    return ceil_divide(plan->b.cols, 32);
}

int64_t bit_blocks(const spmv_spgemm_plan *plan)
{
    return ceil_divide(bit_words(plan), (int64_t)HUGE_WORDS);
}

/* Words of the filters of a huge row; 0: it has no filters, because they would be too large. */
int64_t filters_of(const huge_row &h)
{
    constexpr int64_t most = (int64_t)1 << 26;
    int64_t words = 0;
    return h.n > 0 && multiply_fits(ceil_divide(h.n, (int64_t)capacity(LEVELS - 1)), filter_words(h.entries), &words) &&
                   words <= most
               ? words
               : 0;
}

/* Counts or writes the columns of the huge rows. Writing also makes their fragments, the first ones
 * of the state, with filters. */
template <bool FILL> spmv_status visit_huge(spmv_spgemm_plan *plan, const working &w)
{
    spmv_context *const ctx = plan->ctx;
    const operands m = operands_of(plan);
    const rows_state *const s = (const rows_state *)plan->state;
    const int64_t words = bit_words(plan), blocks = bit_blocks(plan);
    const int all = blocks_for(ctx, INT64_MAX, 8);
    int64_t *const row_ptr = FILL ? plan->row_ptr : w.lengths;
    fragment *fragments = FILL ? s->fragments : nullptr;
    unsigned *filters = FILL ? s->filters : nullptr;
    spmv_status st = FILL && !w.huge.empty() ? clear(ctx, filters, s->filter_words * 4) : SPMV_OK;
    for (size_t i = 0; i < w.huge.size() && st == SPMV_OK; i++) {
        const huge_row &h = w.huge[i];
        const int64_t count = ceil_divide(h.n, (int64_t)capacity(LEVELS - 1)), filter = FILL ? filters_of(h) : 0;
        st = clear(ctx, w.wide.count, (char *)(w.bits + words) - (char *)w.wide.count);
        if (st != SPMV_OK)
            break;
        st = on_device(ctx, [&]() -> spmv_status {
            spmv_status queued =
                launch(ctx, "spgemm mark huge", all, block_threads, mark_huge<false>, m, h, w.wide, w.bits);
            if (queued == SPMV_OK)
                queued = launch(ctx, "spgemm mark huge", all, block_threads, mark_huge<true>, m, h, w.wide, w.bits);
            if (queued == SPMV_OK)
                queued = launch(ctx, "spgemm count huge", (int)blocks, block_threads, count_huge, w.bits, words,
                                w.bit_counts);
            if (queued == SPMV_OK)
                queued = launch(ctx, "spgemm emit huge", FILL ? (int)blocks : 1, block_threads, emit_huge<FILL>, w.bits,
                                words, w.bit_counts, blocks, h.row, row_ptr, plan->col);
            if (FILL && queued == SPMV_OK && count > 0)
                queued = launch(ctx, "spgemm list huge", grid_for(count, block_threads), block_threads, list_huge, h,
                                plan->row_ptr, filter > 0 ? filters : (unsigned *)nullptr, fragments);
            if (queued == SPMV_OK && filter > 0)
                queued = launch(ctx, "spgemm mark filter", all, block_threads, mark_filter<false>, m, h, w.wide,
                                plan->row_ptr, plan->col, filters);
            if (queued == SPMV_OK && filter > 0)
                queued = launch(ctx, "spgemm mark filter", all, block_threads, mark_filter<true>, m, h, w.wide,
                                plan->row_ptr, plan->col, filters);
            return queued;
        });
        fragments += FILL ? count : 0;
        filters += filter;
    }
    return st;
}

/* Fetches the list of huge rows and makes their bitmap. *memory: to free. */
spmv_status prepare_huge(spmv_spgemm_plan *plan, working *w, int64_t count, void **memory)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t parts[] = {8, aligned(bit_words(plan) * 4), bit_blocks(plan) * 8};
    const int64_t bytes = parts[0] + parts[1] + parts[2] + (plan->b.nnz / WIDE + 1) * 8;
    if (count == 0)
        return SPMV_OK;
    try {
        w->huge.resize((size_t)count);
    } catch (const std::bad_alloc &) {
        return context_fail_memory(ctx, "the list of long rows", count * (int64_t)sizeof(huge_row));
    }
    spmv_status st = context_alloc(ctx, bytes, memory);
    plan->working_bytes += bytes;
    w->wide.count = (unsigned long long *)*memory;
    w->bits = (unsigned *)((char *)*memory + parts[0]);
    w->bit_counts = (int64_t *)((char *)w->bits + parts[1]);
    w->wide.entries = w->bit_counts + bit_blocks(plan);
    return st != SPMV_OK ? st : spmv_download(ctx, w->found_huge, w->huge.data(), count * (int64_t)sizeof(huge_row));
}

/* Fetches the numbers of their entries of C. */
spmv_status measure(spmv_spgemm_plan *plan, working *w)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t count = (int64_t)w->huge.size();
    if (count == 0)
        return SPMV_OK;
    const spmv_status st = on_device(ctx, [&] {
        return launch(ctx, "spgemm measure huge", grid_for(count, block_threads), block_threads, measure_huge,
                      w->found_huge, count, plan->row_ptr);
    });
    return st != SPMV_OK ? st : spmv_download(ctx, w->found_huge, w->huge.data(), count * (int64_t)sizeof(huge_row));
}

/* ----------------------------------------------------------------- phases */

/* Words of the bitmap of visit_long: for all columns of B, up to a limit. */
int window_words(const spmv_spgemm_plan *plan)
{
    const int64_t words = ceil_divide(plan->b.cols, (int64_t)32 * EACH) * EACH;
    return (int)(words < SPMV_SPGEMM_WORDS ? words : SPMV_SPGEMM_WORDS);
}

/* blocks: at least 1 */
template <bool FILL>
spmv_status launch_long(spmv_spgemm_plan *plan, const char *name, const working &w, int blocks, const item *list,
                        const unsigned long long *count)
{
    static uint64_t told;
    const int words = window_words(plan);
    const auto kernel = visit_long<FILL>;
    const spmv_status st = once_a_device(plan->ctx, name, &told, (const void *)kernel,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, SPMV_SPGEMM_WORDS * 4);
    return st != SPMV_OK ? st
                         : launch_shaped(plan->ctx, name, {blocks, block_threads, words * 4, false}, kernel,
                                         operands_of(plan), list, count, w.shapes, words, plan->b.cols,
                                         FILL ? plan->row_ptr : w.lengths, plan->col, w.stored, w.found);
}

/* Counts the rows of a list that are sorted, and lists the others. */
template <int THREADS>
spmv_status launch_sorted(spmv_spgemm_plan *plan, const working &w, const item *list, const unsigned long long *count,
                          item *others, unsigned long long *other_count)
{
    static uint64_t told;
    const auto kernel = count_sorted<THREADS>;
    constexpr int bytes = SORT_ROOM * THREADS * (int)sizeof(int);
    const int blocks = blocks_for(plan->ctx, plan->a.rows, sorted_resident<THREADS>);
    const spmv_status st = once_a_device(plan->ctx, "spgemm count sorted", &told, (const void *)kernel,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    return st != SPMV_OK
               ? st
               : launch_shaped(plan->ctx, "spgemm count sorted", {blocks, THREADS, bytes, false}, kernel,
                               operands_of(plan), list, count, w.lengths, others, other_count, w.stored, w.found);
}

/* Counts the LONG rows. The lists of the other classes are not needed any more. */
spmv_status queue_long_counts(spmv_spgemm_plan *plan, const working &w)
{
    const int blocks = blocks_for(plan->ctx, plan->a.rows, 16);
    if (plan->b.cols <= (int64_t)window_words(plan) * 32)
        return launch_long<false>(plan, "spgemm count long", w, blocks, w.longs, &w.found->listed[LONG]);
    spmv_status st =
        launch_sorted<block_threads>(plan, w, w.longs, &w.found->listed[LONG], w.again, &w.found->unsorted[0]);
    if (st == SPMV_OK)
        st = launch_sorted<WIDE_BLOCK>(plan, w, w.again, &w.found->unsorted[0], w.items, &w.found->unsorted[1]);
    if (st == SPMV_OK)
        st = launch_long<false>(plan, "spgemm count long", w, blocks, w.items, &w.found->unsorted[1]);
    return st;
}

spmv_status queue_counts(spmv_spgemm_plan *plan, const working &w)
{
    spmv_context *const ctx = plan->ctx;
    const operands m = operands_of(plan);
    const int64_t rows = m.rows;
    const int warps = blocks_for(ctx, ceil_divide(rows, (int64_t)BLOCK_WARPS), 64), threads = row_blocks(plan);
    stored_columns exactly = w.stored; /* many warps would leave many places unused */
    exactly.at_once = 0;
    return on_device(ctx, [&]() -> spmv_status {
        spmv_status st = launch(ctx, "spgemm analyse", threads, block_threads, analyse, m, expected_columns(plan),
                                plan->row_ptr, w.classes, w.shapes, w.lengths, w.stored.places, w.found_huge, w.found);
        if (st == SPMV_OK)
            st = launch(ctx, "spgemm count tiny", threads, block_threads, visit_tiny<false>, m, w.lengths,
                        (int32_t *)nullptr, w.classes, w.stored, w.found);
        if (st == SPMV_OK)
            st = launch(ctx, "spgemm partition", threads, block_threads, partition, w.classes, w.shapes, rows, w.found,
                        w.items, w.longs, (fragment *)nullptr, (const int64_t *)nullptr, (uint8_t *)nullptr,
                        (unsigned long long *)nullptr);
        if (st == SPMV_OK)
            st = launch(ctx, "spgemm count few", few_blocks(plan), BLOCK, count_few, m, w.items, w.found->rows,
                        w.lengths, w.stored, w.found);
        if (st == SPMV_OK)
            st = launch(ctx, "spgemm count", warps, BLOCK, visit_short<false>, m, row_lists{w.items, w.found->rows},
                        w.lengths, (int32_t *)nullptr, w.again, w.longs, exactly, w.found);
        if (st == SPMV_OK)
            st = launch(ctx, "spgemm count again", warps, BLOCK, visit_short<false>, m,
                        row_lists{w.again, w.found->again}, w.lengths, (int32_t *)nullptr, (item *)nullptr, w.longs,
                        exactly, w.found);
        if (st == SPMV_OK)
            st = queue_long_counts(plan, w);
        return st;
    });
}

/* Makes row_ptr of the lengths, and the second classes, whose counters are 0 before. */
spmv_status queue_offsets(spmv_spgemm_plan *plan, const working &w)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t rows = plan->a.rows;
    const spmv_status st = spmv_scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I64, w.lengths, plan->row_ptr, rows + 1);
    return st != SPMV_OK ? st : on_device(ctx, [&] {
        return launch(ctx, "spgemm classify", row_blocks(plan), block_threads, classify, plan->row_ptr, rows, w.shapes,
                      w.stored.places, w.classes, w.found + 1);
    });
}

spmv_status queue_fill(spmv_spgemm_plan *plan, const working &w, const rows_state *s, const counters &have)
{
    spmv_context *const ctx = plan->ctx;
    const operands m = operands_of(plan);
    const int64_t rows = m.rows, warps = s->warps;
    counters *const found = w.found + 1;
    return on_device(ctx, [&]() -> spmv_status {
        spmv_status st = launch(ctx, "spgemm partition", grid_for(rows, block_threads), block_threads, partition,
                                w.classes, w.shapes, rows, found, s->items, w.longs, s->fragments + s->huge_fragments,
                                plan->row_ptr, s->classes, s->counts);
        if (st == SPMV_OK && s->classes != nullptr)
            st = launch(ctx, "spgemm fill tiny", grid_for(rows, block_threads), block_threads, visit_tiny<true>, m,
                        plan->row_ptr, plan->col, w.classes, w.stored, found);
        if (st == SPMV_OK && warps > 0)
            st = launch(ctx, "spgemm fill", grid_for(warps, BLOCK_WARPS), BLOCK, visit_short<true>, m,
                        row_lists{s->items, found->rows}, plan->row_ptr, plan->col, (item *)nullptr, (item *)nullptr,
                        w.stored, found);
        if (st == SPMV_OK && have.rows[LONG] > have.unstored)
            st = launch(ctx, "spgemm copy long", grid_for((int64_t)have.rows[LONG], 1), block_threads, copy_long,
                        w.longs, &found->rows[LONG], plan->row_ptr, plan->col, w.stored);
        if (st == SPMV_OK && have.unstored > 0)
            st = launch_long<true>(plan, "spgemm fill long", w, grid_for((int64_t)have.rows[LONG], 1), w.longs,
                                   &found->rows[LONG]);
        return st;
    });
}

/* Makes the memory of the state for the classes of the rows of C. */
spmv_status make_state(spmv_spgemm_plan *plan, const working &w, const counters &have)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t rows = plan->a.rows;
    int64_t listed = 0, warps = 0;
    for (int level = 0; level < LEVELS; level++) {
        const int log = 5 - LEAST_LOG - level;
        listed += (int64_t)have.rows[level];
        warps += ceil_divide((int64_t)have.rows[level], (int64_t)1 << log);
    }
    int64_t huge_fragments = 0, filters = 0;
    for (const huge_row &h : w.huge) {
        huge_fragments += ceil_divide(h.n, (int64_t)capacity(LEVELS - 1));
        filters += filters_of(h);
    }
    const int64_t fragments = huge_fragments + (int64_t)have.fragments;
    const int64_t parts[] = {aligned(LEVELS * 8), aligned(listed * (int64_t)sizeof(item)),
                             aligned(fragments * (int64_t)sizeof(fragment)), aligned(filters * 4),
                             have.rows[TINY] > 0 ? rows : 0};
    rows_state *const s = new (std::nothrow) rows_state();
    if (s == nullptr)
        return context_fail_memory(ctx, "the state of a plan", (int64_t)sizeof *s);
    plan->state = s;
    plan->state_bytes = parts[0] + parts[1] + parts[2] + parts[3] + parts[4];
    void *memory = nullptr;
    spmv_status st = context_alloc(ctx, plan->state_bytes, &memory);
    s->counts = (unsigned long long *)memory;
    if (st != SPMV_OK)
        return st;
    s->items = (item *)((char *)memory + parts[0]);
    s->fragments = (fragment *)((char *)s->items + parts[1]);
    s->filters = (unsigned *)((char *)s->fragments + parts[2]);
    s->filter_words = filters;
    s->huge_fragments = huge_fragments;
    s->fragment_count = fragments;
    s->warps = warps;
    if (have.rows[TINY] > 0)
        s->classes = (uint8_t *)s->filters + parts[3];
    return SPMV_OK;
}

template <typename T> spmv_status queue_sums(spmv_spgemm_plan *plan, const void *a, const void *b, void *c)
{
    const rows_state *const s = (const rows_state *)plan->state;
    const numeric_job<T> job = {operands_of(plan),     (const T *)a, (const T *)b,     plan->row_ptr, plan->col, (T *)c,
                                {s->items, s->counts}, s->fragments, s->fragment_count};
    spmv_status st = SPMV_OK;
    const int64_t tasks = s->fragment_count + s->warps;
    if (tasks > 0)
        st = launch(plan->ctx, "spgemm sums", grid_for(tasks, BLOCK_WARPS), BLOCK, sum_rows<T>, job, tasks);
    if (st == SPMV_OK && s->classes != nullptr)
        st = launch(plan->ctx, "spgemm tiny sums", grid_for(plan->a.rows, BLOCK), BLOCK, sum_tiny<T>, job, s->classes);
    return st;
}

} // namespace

extern "C" spmv_status spgemm_survey_cuda(struct spmv_spgemm_plan *plan, bool *valid)
{
    struct {
        totals found;
        csr_faults faults[2];
    } here = {}, *there = nullptr;
    spmv_context *const ctx = plan->ctx;
    const spmv_csr *const a = &plan->a, *const b = &plan->b;
    const bool same = a->row_ptr == b->row_ptr && a->col == b->col && a->rows == b->rows && a->nnz == b->nnz;
    const operands m = operands_of(plan);
    spmv_status st = spgemm_alloc_row_ptr(plan);
    if (st == SPMV_OK)
        st = clear(ctx, plan->row_ptr, a->rows * (int64_t)sizeof *plan->row_ptr);
    *valid = a->rows > 0 && b->rows > 0;
    if (!*valid)
        return st;
    if (st == SPMV_OK)
        st = context_scratch(ctx, (int64_t)sizeof here, (void **)&there);
    if (st == SPMV_OK)
        st = clear(ctx, there, (int64_t)sizeof here);
    if (st == SPMV_OK)
        st = csr_faults_queue_cuda(ctx, a, &there->faults[0]);
    if (st == SPMV_OK && !same)
        st = csr_faults_queue_cuda(ctx, b, &there->faults[1]);
    if (st == SPMV_OK && a->nnz > 0)
        st = on_device(ctx, [=] {
            return launch(ctx, "spgemm survey",
                          SURVEY_BLOCKS + blocks_for(ctx, ceil_divide(a->nnz, (int64_t)block_threads), 8),
                          block_threads, survey, doubtful{m.a, a->rows, a->nnz}, doubtful{m.b, b->rows, b->nnz},
                          plan->row_ptr, &there->found);
        });
    if (st == SPMV_OK)
        st = ctx->backend->download(ctx, there, &here, (int64_t)sizeof here);
    *valid = csr_faultless(&here.faults[0], CSR_SORTED) && csr_faultless(&here.faults[1], CSR_SORTED);
    plan->products = (int64_t)here.found.products;
    plan->sampled_products = (int64_t)here.found.sampled_products;
    plan->sampled_columns = (int64_t)here.found.sampled_columns;
    return st;
}

extern "C" spmv_status spgemm_rows_symbolic_cuda(struct spmv_spgemm_plan *plan)
{
    spmv_context *const ctx = plan->ctx;
    spmv_status st = SPMV_OK;
    void *memory = nullptr, *huge_memory = nullptr;
    counters have[2] = {};
    working w = {};
    plan->nnz = 0;
    plan->col = nullptr;
    TRY(make_room(plan, &w, &memory));
    TRY(queue_counts(plan, w));
    TRY(queue_offsets(plan, w));
    TRY(spmv_download(ctx, w.found, have, (int64_t)sizeof have));
    if (have[0].huge > 0) { /* once more, with the columns of huge rows */
        TRY(prepare_huge(plan, &w, (int64_t)have[0].huge, &huge_memory));
        TRY(visit_huge<false>(plan, w));
        TRY(clear(ctx, w.found + 1, (int64_t)sizeof have[1]));
        TRY(queue_offsets(plan, w));
        TRY(spmv_download(ctx, w.found + 1, &have[1], (int64_t)sizeof have[1]));
    }
    plan->nnz = have[1].nnz;
    TRY(measure(plan, &w));
    TRY(context_alloc(ctx, max_i64(plan->nnz, 1) * 4, (void **)&plan->col));
    TRY(make_state(plan, w, have[1]));
    TRY(queue_fill(plan, w, (const rows_state *)plan->state, have[1]));
    TRY(visit_huge<true>(plan, w));
done:
    context_free(ctx, huge_memory);
    context_free(ctx, memory);
    if (st != SPMV_OK) {
        spgemm_rows_destroy_cuda(plan);
        spmv_free(ctx, plan->row_ptr);
        spmv_free(ctx, plan->col);
        plan->row_ptr = nullptr;
        plan->col = nullptr;
        plan->nnz = 0;
    }
    context_freed(ctx);
    return st;
}

extern "C" spmv_status spgemm_rows_numeric_cuda(struct spmv_spgemm_plan *plan, const void *a, const void *b, void *c)
{
    return on_device(plan->ctx, [=]() -> spmv_status {
        return with_floating(plan->type, [=](auto of) { return queue_sums<decltype(of)>(plan, a, b, c); });
    });
}

extern "C" void spgemm_rows_destroy_cuda(struct spmv_spgemm_plan *plan)
{
    rows_state *const s = (rows_state *)plan->state;
    if (s != nullptr)
        spmv_free(plan->ctx, s->counts);
    delete s;
    plan->state = nullptr;
}
