/* Sorts each row by column, stably, and adds entries at the same position.
 *
 * Most rows are already sorted, as most files are: one pass checks that. Short rows: each entry's
 * rank, by comparing all pairs (D. E. Knuth, "The Art of Computer Programming" vol. 3, section 5.2,
 * algorithm C). Longer rows: a radix sort of the columns and values from the lowest digit up,
 * linear in the row's length (section 5.2.5, algorithm R).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/coo/rows.h"

#include <omp.h>

#include "core/loops/ops.h"

/* Up to this length ranks are no slower: n^2 vectorised comparisons against the passes of the radix
 * sort over 256 buckets and the row. */
enum { SHORT_ROW = 64, DIGIT_BITS = 8, BUCKETS = 1 << DIGIT_BITS };
enum { VALUE_BYTES_MAX = 32 };
#define VALUE_FITS(NAME, name, value, T, CLASS, ARG) _Static_assert(sizeof(T) <= VALUE_BYTES_MAX, "value too large");
SPMV_TYPES(VALUE_FITS, )
SPMV_COMPLEX_TYPES(VALUE_FITS, )
#undef VALUE_FITS

/* A thread's memory for its radix sorts; it only grows. */
struct workspace {
    void *memory;
    int64_t bytes, limit;
};

static bool workspace_grow(struct workspace *w, int64_t bytes)
{
    if (bytes <= w->bytes)
        return true;
    if (bytes > w->limit)
        return false;
    host_free(w->memory);
    *w = (struct workspace){.limit = w->limit};
    if (host_alloc(NULL, bytes, "", &w->memory) != SPMV_OK)
        return false;
    w->bytes = bytes;
    return true;
}

static void *writable_at(void *val, int64_t k, size_t size)
{
    return val == NULL ? NULL : (char *)val + (size_t)k * size;
}

/* place[i]: the rank of entry i, after earlier entries of the same column. width: a constant >= n,
 * so that the compiler vectorises the comparisons; no branch depends on a column. */
static inline void ranks(const int32_t *col, int64_t n, int32_t *place, int64_t width)
{
    int32_t column[SHORT_ROW], smaller[SHORT_ROW] = {0};
    uint8_t same[SHORT_ROW] = {0};
    for (int64_t k = 0; k < width; k++)
        column[k] = k < n ? col[k] : INT32_MAX;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            smaller[k] += column[i] < column[k];
    for (int64_t i = 0; i < n; i++)
        place[i] = smaller[i] + same[smaller[i]]++;
}

static inline void move_to_places(int32_t *col, void *val, const int32_t *place, int64_t n, size_t size)
{
    int32_t from[SHORT_ROW];
    char moving[SHORT_ROW * VALUE_BYTES_MAX];
    for (int64_t i = 0; i < n; i++) {
        from[i] = col[i];
        copy_value(moving, i, val, i, size);
    }
    for (int64_t i = 0; i < n; i++) {
        col[place[i]] = from[i];
        copy_value(val, place[i], moving, i, size);
    }
}

static void sort_short(int32_t *col, void *val, int64_t n, size_t size)
{
    int32_t place[SHORT_ROW];
    if (n <= SHORT_ROW / 8)
        ranks(col, n, place, SHORT_ROW / 8);
    else if (n <= SHORT_ROW / 4)
        ranks(col, n, place, SHORT_ROW / 4);
    else if (n <= SHORT_ROW / 2)
        ranks(col, n, place, SHORT_ROW / 2);
    else
        ranks(col, n, place, SHORT_ROW);
    SIZED(size, move_to_places(col, val, place, n, SIZE));
}

/* start[d]: the position of the first column with digit d. False if all columns have the same
 * digit. */
static bool digit_starts(const int32_t *col, int64_t n, int shift, int64_t start[BUCKETS])
{
    memset(start, 0, BUCKETS * sizeof *start);
    for (int64_t k = 0; k < n; k++)
        start[(col[k] >> shift) & (BUCKETS - 1)]++;
    if (start[(col[0] >> shift) & (BUCKETS - 1)] == n)
        return false;
    int64_t first = 0;
    for (int d = 0; d < BUCKETS; d++) {
        const int64_t count = start[d];
        start[d] = first;
        first += count;
    }
    return true;
}

/* spare: room for n values and then n columns. */
static inline void radix_sort(int32_t *col, void *val, int64_t n, int32_t cols, void *spare, size_t size)
{
    int32_t *from_col = col, *to_col = (int32_t *)(void *)((char *)spare + (size_t)n * size);
    void *from_val = val, *to_val = spare;
    for (int shift = 0; shift < 31 && (cols - 1) >> shift > 0; shift += DIGIT_BITS) {
        int64_t start[BUCKETS];
        if (!digit_starts(from_col, n, shift, start))
            continue;
        for (int64_t k = 0; k < n; k++) {
            const int64_t at = start[(from_col[k] >> shift) & (BUCKETS - 1)]++;
            to_col[at] = from_col[k];
            copy_value(to_val, at, from_val, k, size);
        }
        int32_t *const swap_col = from_col;
        void *const swap_val = from_val;
        from_col = to_col;
        from_val = to_val;
        to_col = swap_col;
        to_val = swap_val;
    }
    if (from_col == col)
        return;
    memcpy(col, from_col, (size_t)n * sizeof *col);
    if (size > 0)
        memcpy(val, from_val, (size_t)n * size);
}

static bool is_sorted(const int32_t *col, int64_t n)
{
    for (int64_t k = 1; k < n; k++)
        if (col[k - 1] > col[k])
            return false;
    return true;
}

/* Returns the number of bytes lacking, 0 if sorted. */
static int64_t sort_row(int32_t *col, void *val, int64_t n, int32_t cols, size_t size, struct workspace *w)
{
    if (is_sorted(col, n))
        return 0;
    if (n <= SHORT_ROW) {
        sort_short(col, val, n, size);
        return 0;
    }
    const int64_t bytes = n * (int64_t)(sizeof *col + size);
    if (!workspace_grow(w, bytes))
        return bytes;
    SIZED(size, radix_sort(col, val, n, cols, w->memory, SIZE));
    return 0;
}

/* Counts the repeats in a sorted row. */
static inline struct repeats repeats_of(int64_t row, const int32_t *col, int64_t n)
{
    struct repeats found = {0, 0};
    for (int64_t k = 1; k < n; k++) {
        found.all += col[k] == col[k - 1];
        found.lower += col[k] == col[k - 1] && col[k] <= row;
    }
    return found;
}

/* Whether columns ascend strictly. No branch depends on a column, so the compiler vectorises the
 * comparisons. */
static bool ascends(const int32_t *col, int64_t n)
{
    int32_t falls = 0;
    for (int64_t k = 1; k < n; k++)
        falls |= col[k - 1] >= col[k];
    return falls == 0;
}

bool rows_sort_short(spmv_matrix *matrix, int64_t begin, int64_t rows, int64_t end, struct repeats *repeats)
{
    const int64_t *const row_ptr = matrix->row_ptr + begin;
    const size_t size = value_size(matrix->type, matrix->pattern);
    bool sorted = true;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t first = row_ptr[r], n = (r + 1 < rows ? row_ptr[r + 1] : end) - first;
        if (n < 2)
            continue;
        int32_t *const col = matrix->col + first;
        if (ascends(col, n))
            continue;
        if (!is_sorted(col, n)) {
            if (n <= SHORT_ROW)
                sort_short(col, writable_at(matrix->val, first, size), n, size);
            else
                sorted = false;
        }
        const struct repeats found = repeats_of(matrix->first_row + begin + r, col, n);
        repeats->all += found.all;
        repeats->lower += found.lower;
    }
    return sorted;
}

spmv_status rows_sort(spmv_context *ctx, spmv_matrix *matrix, int64_t spare_bytes, struct repeats *repeats)
{
    const int64_t *const row_ptr = matrix->row_ptr;
    int32_t *const col = matrix->col;
    const size_t size = value_size(matrix->type, matrix->pattern);
    int64_t all = 0, lower = 0, lacking = 0;
#pragma omp parallel num_threads(host_team(ctx, matrix->rows + matrix->nnz)) reduction(+ : all, lower) reduction(max : lacking)
    {
        struct workspace w = {.limit = spare_bytes / omp_get_num_threads()};
#pragma omp for schedule(dynamic, 512)
        for (int64_t row = 0; row < matrix->rows; row++) {
            const int64_t first = row_ptr[row], end = row_ptr[row + 1];
            if (end - first < 2)
                continue;
            lacking = max_i64(lacking, sort_row(col + first, writable_at(matrix->val, first, size), end - first,
                                                (int32_t)matrix->cols, size, &w));
            const struct repeats found = repeats_of(matrix->first_row + row, col + first, end - first);
            all += found.all;
            lower += found.lower;
        }
        host_free(w.memory);
    }
    *repeats = (struct repeats){all, lower};
    return lacking == 0 ? SPMV_OK : context_fail_memory(ctx, "sorting a row", lacking);
}

#define TEMPLATE "formats/coo/rows_typed.h"
#include "core/each/each_value.h"

static int64_t merge_pattern(int32_t *col, void *values, int64_t n)
{
    (void)values;
    int64_t kept = 0;
    for (int64_t k = 1; k < n; k++)
        if (col[k] != col[kept])
            col[++kept] = col[k];
    return kept + 1;
}

typedef int64_t (*merge_fn)(int32_t *, void *, int64_t);

static merge_fn find_merge(const spmv_matrix *matrix)
{
    static const merge_fn merge[SPMV_TYPE_LIMIT] = VALUE_TABLE(merge);
    return matrix->pattern ? merge_pattern : merge[matrix->type];
}

/* Each row is merged in place, and a column of -1 marks the end of a row that became shorter. Then
 * the rows move up, from the first to the last. Unused memory stays with the matrix, but its pages
 * go back to the system. */
void rows_merge(spmv_context *ctx, spmv_matrix *matrix, int64_t repeated)
{
    int64_t *const row_ptr = matrix->row_ptr;
    int32_t *const col = matrix->col;
    const int64_t rows = matrix->rows;
    const size_t size = value_size(matrix->type, matrix->pattern);
    const merge_fn merge = find_merge(matrix);
#pragma omp parallel for num_threads(host_team(ctx, rows + matrix->nnz)) schedule(dynamic, 512)
    for (int64_t row = 0; row < rows; row++) {
        const int64_t first = row_ptr[row], n = row_ptr[row + 1] - first;
        const int64_t kept = n == 0 ? 0 : merge(col + first, writable_at(matrix->val, first, size), n);
        if (kept < n)
            col[first + kept] = -1;
    }
    int64_t to = 0;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t from = row_ptr[row], end = row_ptr[row + 1];
        int64_t n = 0;
        while (from + n < end && col[from + n] >= 0)
            n++;
        row_ptr[row] = to;
        if (from != to && n > 0) {
            memmove(col + to, col + from, (size_t)n * sizeof *col);
            if (size > 0)
                memmove(writable_at(matrix->val, to, size), value_at(matrix->val, from, size), (size_t)n * size);
        }
        to += n;
    }
    row_ptr[rows] = to;
    pages_give_back(col + to, repeated * (int64_t)sizeof *col);
    pages_give_back(writable_at(matrix->val, to, size), repeated * (int64_t)size);
    matrix->nnz = to;
}
