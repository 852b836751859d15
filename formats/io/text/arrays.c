/* Matrices from Matrix Market arrays. The numbers are stored column by column: of a symmetric
 * matrix each column from the diagonal on, of a skew-symmetric one from below the diagonal. The
 * matrix is made by blocks of rows, in which every column has a contiguous range of numbers. Each
 * block first counts the entries of its rows, then writes them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/text/arrays.h"

#include "formats/matrix_internal.h"

/* The counters of this many rows fit in the first-level cache, with as many streams of numbers. */
enum { ROWS = 128 };

int64_t array_before(const struct mtx_header *header, int64_t col)
{
    switch (header->symmetry) {
    case SPMV_SYMMETRY_SYMMETRIC:
    case SPMV_SYMMETRY_HERMITIAN:
        return col * header->rows - col * (col - 1) / 2;
    case SPMV_SYMMETRY_SKEW:
        return col * (header->rows - 1) - col * (col - 1) / 2;
    default:
        return col * header->rows;
    }
}

static int64_t first_row(const struct mtx_header *header, int64_t col)
{
    return header->symmetry == SPMV_SYMMETRY_GENERAL ? 0 : mtx_keeps_diagonal(header->symmetry) ? col : col + 1;
}

/* Finds the last column with at most k numbers before it. */
struct array_cell array_cell(const struct mtx_header *header, int64_t k)
{
    int64_t low = 0, high = header->cols - 1;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (array_before(header, middle) <= k)
            low = middle;
        else
            high = middle - 1;
    }
    return (struct array_cell){first_row(header, low) + k - array_before(header, low), low};
}

/* One number of any type. */
union value {
    double f64[2];
    float f32[2];
};

struct array {
    const struct mtx_header *header;
    const char *values;
    spmv_type type, part;
    int64_t size;
};

static struct array array_of(const struct mtx_header *header, const void *values, spmv_type type)
{
    return (struct array){header, values, type, type_part(type), (int64_t)spmv_type_size(type)};
}

/* Sets *value to the number of the cell (row, col); returns whether it is not 0. */
static inline bool cell_value(const struct array *a, int64_t row, int64_t col, union value *value)
{
    const spmv_symmetry symmetry = a->header->symmetry;
    const bool mirrored = symmetry != SPMV_SYMMETRY_GENERAL && row < col;
    const int64_t down = mirrored ? col : row, across = mirrored ? row : col;
    *value = (union value){.f64 = {0, 0}};
    if (symmetry == SPMV_SYMMETRY_SKEW && row == col)
        return false;
    memcpy(value, a->values + (array_before(a->header, across) + down - first_row(a->header, across)) * a->size,
           (size_t)a->size);
    const bool turn_first = mirrored && symmetry == SPMV_SYMMETRY_SKEW;
    const bool turn_second = turn_first || (mirrored && symmetry == SPMV_SYMMETRY_HERMITIAN);
    const bool turn[2] = {turn_first, turn_second};
    bool stored = false;
    for (int part = 0; part < type_parts(a->type); part++) {
        const double number = real_at(a->part, value, part);
        if (turn[part])
            real_set(a->part, value, part, -number);
        stored |= number != 0;
    }
    return stored;
}

/* Functions with constants among their arguments are always inlined, so that each constant has its
 * own code. */
#if defined(__GNUC__)
#define FOR_EACH_KIND static inline __attribute__((always_inline))
#else
#define FOR_EACH_KIND static inline
#endif

FOR_EACH_KIND bool is_stored(spmv_type part, int parts, const char *p)
{
    bool stored = false;
    for (int k = 0; k < parts; k++)
        stored |= real_at(part, p, k) != 0;
    return stored;
}

/* Processes rows first <= row < end. m NULL: counts the entries of a row in at[row - first]; else
 * writes them from at[row - first] on. part and parts are constants. */
FOR_EACH_KIND void take_rows(const struct array *a, int64_t first, int64_t end, int64_t *at, spmv_matrix *m,
                             spmv_type part, int parts)
{
    const int64_t size = parts * real_bytes(part);
    const bool general = a->header->symmetry == SPMV_SYMMETRY_GENERAL;
    union value value;
    for (int64_t col = 0; col < a->header->cols; col++) {
        const int64_t above = general ? first : min_i64(end, max_i64(first, col + 1));
        for (int64_t row = first; row < above; row++)
            if (cell_value(a, row, col, &value)) {
                const int64_t k = at[row - first]++;
                if (m != NULL) {
                    m->col[k] = (int32_t)col;
                    memcpy((char *)m->val + k * size, &value, (size_t)size);
                }
            }
        /* The other numbers of the block are contiguous. */
        const char *p =
            above < end ? a->values + (array_before(a->header, col) + above - first_row(a->header, col)) * size : NULL;
        for (int64_t row = above; row < end; row++, p += size)
            if (m == NULL) {
                at[row - first] += is_stored(part, parts, p);
            } else if (is_stored(part, parts, p)) {
                const int64_t k = at[row - first]++;
                m->col[k] = (int32_t)col;
                memcpy((char *)m->val + k * size, p, (size_t)size);
            }
    }
}

static void take_block(const struct array *a, int64_t first, int64_t end, int64_t *at, spmv_matrix *m)
{
    switch ((int)a->part) {
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME:                                                                                                  \
        if (type_is_complex(a->type))                                                                                  \
            take_rows(a, first, end, at, m, SPMV_##NAME, 2);                                                           \
        else                                                                                                           \
            take_rows(a, first, end, at, m, SPMV_##NAME, 1);                                                           \
        break;
        REAL_LIST(CASE)
#undef CASE
    }
}

static void count_rows(const struct array *a, int64_t first, int64_t end, int64_t *counts)
{
    for (int64_t row = first; row < end; row++)
        counts[row] = 0;
    take_block(a, first, end, counts + first, NULL);
}

static void fill_rows(const struct array *a, int64_t first, int64_t end, spmv_matrix *m)
{
    int64_t at[ROWS];
    for (int64_t row = first; row < end; row++)
        at[row - first] = m->row_ptr[row];
    take_block(a, first, end, at, m);
}

spmv_status array_count(spmv_context *ctx, const struct mtx_header *header, const void *values, spmv_type type,
                        int64_t *row_ptr)
{
    const struct array a = array_of(header, values, type);
    const int64_t rows = header->rows, blocks = ceil_divide(rows, ROWS);
#pragma omp parallel for num_threads(host_team(ctx, header->entries)) schedule(dynamic, 1)
    for (int64_t b = 0; b < blocks; b++)
        count_rows(&a, b * ROWS, min_i64(rows, (b + 1) * ROWS), row_ptr);
    return offsets_from_counts(ctx, row_ptr, rows);
}

spmv_status array_to_matrix(spmv_context *ctx, const struct mtx_header *header, const void *values, spmv_type type,
                            const int64_t *row_ptr, spmv_matrix **matrix)
{
    const struct array a = array_of(header, values, type);
    const int64_t rows = header->rows, blocks = ceil_divide(rows, ROWS);
    const spmv_status st = matrix_allocate(ctx, rows, header->cols, row_ptr[rows], type, false, matrix);
    if (st != SPMV_OK)
        return st;
    spmv_matrix *const m = *matrix;
    memcpy(m->row_ptr, row_ptr, (size_t)(rows + 1) * sizeof *m->row_ptr);
#pragma omp parallel for num_threads(host_team(ctx, header->entries)) schedule(dynamic, 1)
    for (int64_t b = 0; b < blocks; b++)
        fill_rows(&a, b * ROWS, min_i64(rows, (b + 1) * ROWS), m);
    return SPMV_OK;
}

void array_to_rows(spmv_context *ctx, const struct mtx_header *header, const void *values, spmv_type type, void *cells)
{
    const struct array a = array_of(header, values, type);
    const int64_t rows = header->rows, cols = header->cols, blocks = cols > 0 ? ceil_divide(rows, ROWS) : 0;
#pragma omp parallel for num_threads(host_team(ctx, header->entries)) schedule(dynamic, 1)
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t col = 0; col < cols; col++)
            for (int64_t row = b * ROWS; row < min_i64(rows, (b + 1) * ROWS); row++) {
                union value value;
                cell_value(&a, row, col, &value);
                memcpy((char *)cells + (row * cols + col) * a.size, &value, (size_t)a.size);
            }
}
