/* Converts coordinate entries to CSR: a stable counting sort by row (counting.h), then each row is
 * sorted by column and entries at the same position are added (rows.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/coo/coo.h"

#include "core/loops/ops.h"
#include "formats/coo/counting.h"
#include "formats/coo/rows.h"

/* A range of entries of one portion. */
struct range {
    const struct coo_portion *portion;
    int64_t first, end;
};

/* The part of share p that lies in this portion. The portion's first entry has number offset in the
 * list. */
static struct range range_of(const struct counting *counting, int64_t p, const struct coo_portion *portion,
                             int64_t offset)
{
    return (struct range){.portion = portion,
                          .first = max_i64(0, counting_first(counting, p) - offset),
                          .end = min_i64(portion->n, counting_first(counting, p + 1) - offset)};
}

/* Adds the entries of the range to the counts of their rows. Returns the number of entries
 * stored, mirrored ones included. */
static int64_t count_rows(const struct coo *coo, struct range s, int64_t *count)
{
    int64_t stored = 0;
    for (int64_t k = s.first; k < s.end; k++) {
        const int64_t row = offset_at(s.portion->row, coo->row_bits, k);
        count[row]++;
        stored++;
        if (coo->mirror != COO_MIRROR_NONE && row != s.portion->col[k]) {
            count[s.portion->col[k]]++;
            stored++;
        }
    }
    return stored;
}

#define NEGATED_INTEGER(name, T, a) function_neg_##name(a)
#define NEGATED_REAL(name, T, a) function_neg_##name(a)
#define NEGATED_COMPLEX(name, T, a) ((T){-(a).re, -(a).im})
#define DEFINE(NAME, name, value, T, CLASS, ARG)                                                                       \
    static void negate_##name(void *to, int64_t i)                                                                     \
    {                                                                                                                  \
        ((T *)to)[i] = NEGATED_##CLASS(name, T, ((T *)to)[i]);                                                         \
    }
SPMV_NUMBER_TYPES(DEFINE, )
SPMV_COMPLEX_TYPES(DEFINE, )
#undef DEFINE

static void negate(spmv_type type, void *val, int64_t i)
{
#define ROW(NAME, name, value, T, CLASS, ARG) [value] = negate_##name,
    static void (*const run[SPMV_TYPE_LIMIT])(void *, int64_t) = {SPMV_NUMBER_TYPES(ROW, ) SPMV_COMPLEX_TYPES(ROW, )};
#undef ROW
    run[type](val, i);
}

static void conjugate(spmv_type type, void *val, int64_t i)
{
    if (type == SPMV_C64)
        ((spmv_c64 *)val)[i].im = -((spmv_c64 *)val)[i].im;
    else if (type == SPMV_C128)
        ((spmv_c128 *)val)[i].im = -((spmv_c128 *)val)[i].im;
}

/* Moves the entries of the range to their rows. next[row]: where this share stores its next entry
 * of the row. */
static inline void move_sized(const struct coo *coo, struct range s, int64_t *next, spmv_matrix *m, size_t size)
{
    for (int64_t k = s.first; k < s.end; k++) {
        const int64_t row = offset_at(s.portion->row, coo->row_bits, k);
        const int32_t col = s.portion->col[k];
        const int64_t at = next[row]++;
        m->col[at] = col;
        copy_value(m->val, at, s.portion->val, k, size);
        if (coo->mirror == COO_MIRROR_NONE || row == col)
            continue;
        const int64_t mirrored = next[col]++;
        m->col[mirrored] = (int32_t)row;
        copy_value(m->val, mirrored, s.portion->val, k, size);
        if (coo->mirror == COO_MIRROR_NEGATED && size > 0)
            negate(m->type, m->val, mirrored);
        else if (coo->mirror == COO_MIRROR_CONJUGATE)
            conjugate(m->type, m->val, mirrored);
    }
}

static void move(const struct coo *coo, struct range s, int64_t *next, spmv_matrix *m)
{
    SIZED(value_size(m->type, m->pattern), move_sized(coo, s, next, m, SIZE));
}

static int64_t count_share(const struct coo *coo, const struct counting *counting, int64_t p)
{
    int64_t *const count = counting_of(counting, p);
    int64_t stored = 0;
    if (counting->bins > 0)
        memset(count, 0, (size_t)counting->bins * sizeof *count);
    for (int64_t c = 0, offset = 0; c < coo->portions; offset += coo->portion[c++].n)
        stored += count_rows(coo, range_of(counting, p, &coo->portion[c], offset), count);
    return stored;
}

static void move_share(const struct coo *coo, const struct counting *counting, int64_t p, spmv_matrix *m)
{
    for (int64_t c = 0, offset = 0; c < coo->portions; offset += coo->portion[c++].n)
        move(coo, range_of(counting, p, &coo->portion[c], offset), counting_of(counting, p), m);
}

/* Sorts the entries by row, in list order within a row. */
static spmv_status sort_by_row(spmv_context *ctx, const struct coo *coo, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *m = NULL;
    struct counting counting = {.counts = NULL};
    int64_t entries = 0, stored = 0;
    const int64_t entry_bytes = (int64_t)(sizeof(int32_t) + value_size(coo->type, coo->pattern));
    for (int64_t c = 0; c < coo->portions; c++)
        entries += coo->portion[c].n;
    TRY(counting_begin(ctx, entries, coo->rows, entries * entry_bytes, &counting));
#pragma omp parallel for num_threads((int)counting.shares) schedule(static, 1) reduction(+ : stored)
    for (int64_t p = 0; p < counting.shares; p++)
        stored += count_share(coo, &counting, p);
    TRY(matrix_allocate(ctx, coo->rows, coo->cols, stored, coo->type, coo->pattern, &m));
    TRY(counting_offsets(ctx, &counting, m->row_ptr));
#pragma omp parallel for num_threads((int)counting.shares) schedule(static, 1)
    for (int64_t p = 0; p < counting.shares; p++)
        move_share(coo, &counting, p, m);
    *matrix = m;
    m = NULL;
done:
    counting_end(&counting);
    spmv_matrix_destroy(m);
    return st;
}

spmv_status coo_to_matrix(spmv_context *ctx, const struct coo *coo, spmv_matrix **matrix, int64_t *duplicates)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *m = NULL;
    struct repeats repeats = {0, 0};
    *matrix = NULL;
    if (duplicates != NULL)
        *duplicates = 0;
    TRY(sort_by_row(ctx, coo, &m));
    TRY(rows_sort(ctx, m, INT64_MAX, &repeats));
    if (repeats.all > 0)
        rows_merge(ctx, m, repeats.all);
    /* With a mirror, the pattern of the result is symmetric: repeats in one triangle are the
     * repeats of the list. */
    if (duplicates != NULL)
        *duplicates = coo->mirror == COO_MIRROR_NONE ? repeats.all : repeats.lower;
    *matrix = m;
    m = NULL;
done:
    spmv_matrix_destroy(m);
    return st;
}

/* The first entry with an index out of range, or n if there is none. */
static int64_t first_outside(spmv_context *ctx, int64_t rows, int64_t cols, int64_t n, const int64_t *row,
                             const int32_t *col)
{
    int64_t bad = n;
#pragma omp parallel for num_threads(host_team(ctx, n)) schedule(static) reduction(min : bad)
    for (int64_t k = 0; k < n; k++)
        if (row[k] < 0 || row[k] >= rows || col[k] < 0 || col[k] >= cols)
            bad = min_i64(bad, k);
    return bad;
}

static spmv_status check_indices(spmv_context *ctx, int64_t rows, int64_t cols, int64_t n, const int64_t *row,
                                 const int32_t *col)
{
    const int64_t k = first_outside(ctx, rows, cols, n, row, col);
    if (k == n)
        return SPMV_OK;
    const bool row_bad = row[k] < 0 || row[k] >= rows;
    return context_fail(ctx, SPMV_ERROR_SIZE, "spmv_matrix_from_coo: entry %lld: %s %lld is outside the %lld %ss%s",
                        context_number(ctx, k), row_bad ? "row" : "column",
                        context_number(ctx, row_bad ? row[k] : col[k]), (long long)(row_bad ? rows : cols),
                        row_bad ? "row" : "column", context_counted(ctx));
}

spmv_status spmv_matrix_from_coo(spmv_context *ctx, int64_t rows, int64_t cols, int64_t nnz, const int64_t *host_row,
                                 const int32_t *host_col, const void *host_val, spmv_type type, spmv_matrix **matrix,
                                 int64_t *duplicates)
{
    spmv_status st = context_need(ctx, "spmv_matrix_from_coo", "matrix", matrix);
    if (st != SPMV_OK)
        return st;
    *matrix = NULL;
    if (duplicates != NULL)
        *duplicates = 0;
    if (rows < 0 || cols < 0 || nnz < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_matrix_from_coo: %lld x %lld with %lld entries: must not be negative",
                            (long long)rows, (long long)cols, (long long)nnz);
    if (nnz > 0 && (host_row == NULL || host_col == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_matrix_from_coo: %s is NULL though there are %lld entries",
                            host_row == NULL ? "host_row" : "host_col", (long long)nnz);
    st = check_indices(ctx, rows, cols, nnz, host_row, host_col);
    if (st != SPMV_OK)
        return st;
    const struct coo_portion portion = {.n = nnz, .row = host_row, .col = host_col, .val = host_val};
    const struct coo coo = {.rows = rows,
                            .cols = cols,
                            .type = type,
                            .pattern = host_val == NULL,
                            .row_bits = 64,
                            .mirror = COO_MIRROR_NONE,
                            .portions = 1,
                            .portion = &portion};
    return coo_to_matrix(ctx, &coo, matrix, duplicates);
}
