/* Method "columns" of the backend cuda: plans and products of several vectors (columns.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <new>
#include <stdio.h>
#include <vector>

#include "core/plural.h"
#include "product/cuda/columns/columns.cuh"
#include "product/cuda/spmv_types.cuh"

namespace
{

struct columns_state {
    int slots_wanted_log;    /* log2 of the slots that the mean row length suggests */
    int64_t rows, fragments; /* numbers of the long rows and of their fragments */
    void *row_table, *fragment_table, *sums;
};

int log_of(int64_t n)
{
    int log = 0;
    while ((int64_t)1 << log < n)
        log++;
    return log;
}

/* The columns that a lane loads at once if it can: 16 bytes, of 16-bit elements 8, so that 4 columns suffice. */
template <typename Element> constexpr int most_pack()
{
    return sizeof(Element) < 4 ? 4 : sizeof(Element) < 16 ? 16 / sizeof(Element) : 1;
}

/* The columns that a lane loads at once: those if count, the stride and the address of x are multiples of that,
 * otherwise one column. */
template <typename Element> int pack_for(const spmv_plan *plan, const void *x, int count)
{
    constexpr int PACK = most_pack<Element>();
    const bool whole = count % PACK == 0 && plan->x_stride % PACK == 0 && (uintptr_t)x % (PACK * sizeof(Element)) == 0;
    return whole ? PACK : 1;
}

/* Rows with more entries are long. The limit is the same for all launches of a plan. */
int64_t longest_of(const columns_state *s)
{
    return (int64_t)columns::LONG << s->slots_wanted_log;
}

spmv_status find_long_rows(spmv_plan *plan, const columns_state *s, std::vector<columns::long_row> *found)
{
    spmv_context *const ctx = plan->ctx;
    const spmv_csr &a = plan->a;
    const int64_t longest = longest_of(s), most = a.nnz / (longest + 1);
    void *memory = nullptr;
    unsigned long long count = 0;
    if (most == 0)
        return SPMV_OK;
    spmv_status st = spmv_alloc(ctx, most * (int64_t)sizeof(columns::long_row) + (int64_t)sizeof count, &memory);
    columns::long_row *const rows = (columns::long_row *)memory;
    unsigned long long *const counter = (unsigned long long *)(rows + most);
    if (st == SPMV_OK)
        st = spmv_upload(ctx, &count, counter, (int64_t)sizeof count);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            const int blocks = grid_for(a.rows, columns::BLOCK);
            return a.row_ptr_bits == 32
                       ? launch(ctx, "spmv columns find long", blocks, columns::BLOCK, columns::find_long<int32_t>,
                                (const int32_t *)a.row_ptr, a.rows, longest, rows, counter)
                       : launch(ctx, "spmv columns find long", blocks, columns::BLOCK, columns::find_long<int64_t>,
                                (const int64_t *)a.row_ptr, a.rows, longest, rows, counter);
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, counter, &count, (int64_t)sizeof count);
    if (st == SPMV_OK) {
        found->resize((size_t)count);
        st = spmv_download(ctx, rows, found->data(), (int64_t)count * (int64_t)sizeof(columns::long_row));
    }
    spmv_free(ctx, memory);
    /* Their order on the device depends on timing. */
    std::sort(found->begin(), found->end(),
              [](const columns::long_row &a_row, const columns::long_row &b_row) { return a_row.row < b_row.row; });
    return st;
}

template <typename T> spmv_status keep(spmv_plan *plan, const std::vector<T> &table, void **memory)
{
    const int64_t bytes = (int64_t)(table.size() * sizeof(T));
    const spmv_status st = plan_alloc(plan, bytes, memory);
    return st != SPMV_OK || bytes == 0 ? st : spmv_upload(plan->ctx, table.data(), *memory, bytes);
}

spmv_status cut_long_rows(spmv_plan *plan, columns_state *s)
{
    std::vector<columns::long_row> found;
    std::vector<columns::fragments_of_row> rows;
    std::vector<columns::fragment> fragments;
    spmv_status st = find_long_rows(plan, s, &found);
    if (st != SPMV_OK)
        return st;
    for (const columns::long_row &row : found) {
        rows.push_back(
            {row.row, (int64_t)fragments.size(), ceil_divide(row.end - row.begin, (int64_t)columns::FRAGMENT)});
        for (int64_t begin = row.begin; begin < row.end; begin += columns::FRAGMENT)
            fragments.push_back({begin, min_i64(begin + columns::FRAGMENT, row.end)});
    }
    s->rows = (int64_t)rows.size();
    s->fragments = (int64_t)fragments.size();
    st = keep(plan, rows, &s->row_table);
    if (st == SPMV_OK)
        st = keep(plan, fragments, &s->fragment_table);
    if (st == SPMV_OK)
        st = plan_alloc(plan, s->fragments * columns::MOST * (int64_t)spmv_type_size(plan->sums), &s->sums);
    return st;
}

/* log2 of the lanes for the columns, PACK columns a lane, and of the entries of a row at a time;
 * most: of a fragment. */
struct shape {
    int width_log, slots_log, most_slots_log;

    shape(const columns_state *s, int count, int pack)
        : width_log(log_of(ceil_divide(count, pack))),
          /* independent of PACK, which depends on the alignment of x */
          most_slots_log(5 - log_of(count))
    {
        slots_log = std::min(s->slots_wanted_log, most_slots_log);
    }

    int blocks(int64_t rows) const
    {
        return grid_for(rows, columns::BLOCK >> (width_log + slots_log));
    }
};

template <int PACK, typename T, typename Stored, typename Element>
spmv_status run(const spmv_plan *plan, const struct plan_product *p, const columns_state *s,
                columns::job<T, Stored, Element> j)
{
    spmv_context *const ctx = plan->ctx;
    const shape lanes(s, j.columns, PACK);
    j.width_log = lanes.width_log;
    j.most_slots_log = lanes.most_slots_log;
    j.slots_log = lanes.slots_log;
    if constexpr (std::is_arithmetic<Element>::value) {
        if (p->column_parts != nullptr)
            return launch_early(ctx, "spmv columns", lanes.blocks(j.rows), columns::BLOCK,
                                columns::multiply_rows<PACK, columns::dots<T>, T, Stored, Element>, j,
                                columns::dots<T>{(T *)p->column_parts, p->stop});
    }
    const int fragments_a_block = columns::BLOCK >> (j.width_log + j.most_slots_log);
    spmv_status st = launch(ctx, "spmv columns", lanes.blocks(j.rows), columns::BLOCK,
                            columns::multiply_rows<PACK, columns::no_dots, T, Stored, Element>, j, columns::no_dots{});
    if (st == SPMV_OK && s->rows > 0)
        st = launch(ctx, "spmv columns fragments", grid_for(s->fragments, fragments_a_block), columns::BLOCK,
                    columns::multiply_fragments<PACK, T, Stored, Element>, j,
                    (const columns::fragment *)s->fragment_table, s->fragments, (T *)s->sums);
    if (st == SPMV_OK && s->rows > 0)
        st = launch(ctx, "spmv columns add", grid_for(s->rows, 1), columns::BLOCK,
                    columns::add_fragments<T, Stored, Element>, j, (const columns::fragments_of_row *)s->row_table,
                    s->rows, (const T *)s->sums);
    return st;
}

template <typename T, typename Stored, typename Element>
spmv_status apply(const spmv_plan *plan, const struct plan_product *p)
{
    const columns_state *const s = (const columns_state *)plan->state;
    const spmv_csr &a = plan->a;
    spmv_status st = SPMV_OK;
    for (int first = 0; first < plan->vectors && st == SPMV_OK; first += columns::MOST) {
        const columns::job<T, Stored, Element> j = {a.rows,
                                                    a.row_ptr,
                                                    a.row_ptr_bits == 64,
                                                    a.col,
                                                    (const Stored *)a.val,
                                                    (const Element *)p->x + first,
                                                    (Element *)p->y + first,
                                                    plan->x_stride,
                                                    plan->y_stride,
                                                    std::min(plan->vectors - first, (int)columns::MOST),
                                                    0,
                                                    0,
                                                    0,
                                                    longest_of(s),
                                                    {*(const T *)p->alpha, *(const T *)p->beta, p->beta_zero}};
        if constexpr (most_pack<Element>() > 1) {
            if (pack_for<Element>(plan, j.x, j.columns) > 1) {
                st = run<most_pack<Element>()>(plan, p, s, j);
                continue;
            }
        }
        st = run<1>(plan, p, s, j);
    }
    return st;
}

void describe(spmv_plan *plan, const columns_state *s)
{
    if (s->rows > 0)
        snprintf(plan->layout, sizeof plan->layout, "%lld row%s of more than %lld entries, in %lld fragment%s",
                 (long long)s->rows, plural(s->rows), (long long)longest_of(s), (long long)s->fragments,
                 plural(s->fragments));
}

} // namespace

extern "C" spmv_status columns_cuda_prepare(spmv_plan *plan)
{
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(columns_state));
    if (st != SPMV_OK)
        return st;
    columns_state *const s = (columns_state *)plan->state;
    const int64_t each = plan->a.nnz / max_i64(plan->a.rows, 1) / columns::EACH_SLOT;
    s->slots_wanted_log = std::min(log_of(each), 5);
    try {
        st = cut_long_rows(plan, s);
    } catch (const std::bad_alloc &) {
        st = context_fail(plan->ctx, SPMV_ERROR_MEMORY, "spmv_plan_create: no memory for the long rows' fragments");
    }
    if (st == SPMV_OK)
        describe(plan, s);
    return st;
}

extern "C" int64_t columns_cuda_parts(const spmv_plan *plan, const void *x)
{
    const columns_state *const s = (const columns_state *)plan->state;
    const int k = plan->vectors;
    if (k > columns::MOST || s->rows > 0 || type_is_complex(plan->type) || type_is_half(plan->type) ||
        plan->a.rows != plan->a.cols)
        return 0;
    int64_t parts = 0;
    (void)with_types(plan, [&](auto sums, auto) {
        parts = shape(s, k, pack_for<decltype(sums)>(plan, x, k)).blocks(plan->a.rows);
        return SPMV_OK;
    });
    return parts;
}

extern "C" spmv_status columns_cuda_apply(const spmv_plan *plan, const struct plan_product *product)
{
    return on_device(plan->ctx, [&] {
        return with_all_types(plan, [&](auto sums, auto stored, auto element) {
            return apply<decltype(sums), decltype(stored), decltype(element)>(plan, product);
        });
    });
}

extern "C" void columns_cuda_release(spmv_plan *plan)
{
    const columns_state *const s = (const columns_state *)plan->state;
    spmv_free(plan->ctx, s->row_table);
    spmv_free(plan->ctx, s->fragment_table);
    spmv_free(plan->ctx, s->sums);
}
