/* Files of other programs: the list of formats, and what all of them share.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/exchange/exchange.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/threads.h"
#include "formats/coo/coo.h"
#include "formats/io/binary/binary_form.h"
#include "formats/io/text/decimal.h"

/* A format that begins like another one comes before it. */
static const struct exchange_format formats[] = {
    {"rb", "a Rutherford-Boeing or Harwell-Boeing file", true, true, boeing_begins, boeing_read,
     boeing_write_rutherford, NULL},
    {"hb", "a Harwell-Boeing file", true, true, boeing_begins, boeing_read, boeing_write, NULL},
    {"petsc", "a file in PETSc's binary form", false, false, petsc_begins, petsc_read, petsc_write_matrix,
     petsc_write_vectors},
    {"npy", "an array of NumPy (.npy)", false, false, npy_begins, npy_read, NULL, npy_write_vectors},
    {"npz", "an archive of NumPy (.npz)", true, false, npz_begins, npz_read, npz_write_matrix, npz_write_vectors},
    {"mat", "a MATLAB file", true, false, mat_begins, mat_read, mat_write_matrix, mat_write_vectors},
    {"mat7.3", "a MATLAB file of version 7.3", true, false, mat_hdf5_begins, mat_hdf5_read, NULL, NULL},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

const struct exchange_format *exchange_begins(const unsigned char *head, int64_t bytes)
{
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].begins(head, bytes))
            return &formats[i];
    return NULL;
}

const struct exchange_format *exchange_ending(const char *path, size_t length)
{
    char ending[16];
    for (int i = 0; i < FORMATS; i++) {
        snprintf(ending, sizeof ending, ".%s", formats[i].form);
        if (path_ends_with(path, length, ending))
            return &formats[i];
    }
    return NULL;
}

spmv_status exchange_find(struct text_source *source, const struct exchange_format **format)
{
    const char *head = NULL;
    int64_t bytes = 0;
    const spmv_status st = text_peek(source, &head, &bytes);
    *format = st == SPMV_OK ? exchange_begins((const unsigned char *)head, bytes) : NULL;
    if (st != SPMV_OK || source->member == NULL || (*format != NULL && (*format)->has_members))
        return st;
    return context_fail(source->ctx, SPMV_ERROR_OPEN, "%s: not an archive, so it has no member %s",
                        source->path != NULL ? source->path : source->name, source->member);
}

/* ---------------------------------------------------------------- messages */

spmv_status exchange_refuse(struct exchange *x, spmv_status status, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const spmv_status changed = text_check_unchanged(x->source);
    return changed != SPMV_OK ? changed : context_fail(x->ctx, status, "%.480s: %s", x->name, sentence);
}

spmv_status exchange_fail(struct exchange *x, const void *at, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const uintptr_t first = (uintptr_t)x->bytes, place = (uintptr_t)at;
    if (at == NULL || place < first || place - first > (uintptr_t)x->size)
        return exchange_refuse(x, SPMV_ERROR_FORMAT, "%s", sentence);
    return exchange_refuse(x, SPMV_ERROR_FORMAT, "byte %lld: %s", (long long)(place - first), sentence);
}

/* ---------------------------------------------------------------- entries */

spmv_status exchange_shape(struct exchange *x, const void *at, int64_t rows, int64_t cols)
{
    if (rows < 0 || cols < 0)
        return exchange_fail(x, at, "the size %lld x %lld is negative", (long long)rows, (long long)cols);
    if (cols > INT32_MAX)
        return exchange_refuse(x, SPMV_ERROR_LIMIT, "%lld columns: at most %d are supported", (long long)cols,
                               INT32_MAX);
    if (rows == INT64_MAX)
        return exchange_refuse(x, SPMV_ERROR_LIMIT, "%lld rows are not supported", (long long)rows);
    x->rows = rows;
    x->cols = cols;
    return SPMV_OK;
}

spmv_status exchange_allocate(struct exchange *x, int64_t n)
{
    void *col = NULL;
    if (n > (x->max_bytes - x->size) / (int64_t)(sizeof(int64_t) + sizeof(int32_t)))
        return exchange_refuse(x, SPMV_ERROR_MEMORY, "%lld entries need more than the allowed %lld bytes of memory",
                               (long long)n, (long long)x->max_bytes);
    x->entries = n;
    spmv_status st = host_alloc(x->ctx, max_i64(1, n) * (int64_t)sizeof(int64_t), "rows of entries", &x->row);
    if (st == SPMV_OK)
        st = host_alloc(x->ctx, max_i64(1, n) * (int64_t)sizeof(int32_t), "columns of entries", &col);
    x->col = col;
    return st;
}

/* Copies indices, all of which must be from 0 to limit - 1: into to64 or to32, the other of which is NULL. */
static spmv_status take_indices(struct exchange *x, const struct numbers *index, const char *what, int64_t limit,
                                int64_t *to64, int32_t *to32)
{
    int64_t bad = index->n;
#pragma omp parallel for num_threads(host_team(x->ctx, index->n)) schedule(static) reduction(min : bad)
    for (int64_t k = 0; k < index->n; k++) {
        bool fits = true;
        const int64_t i = integer_of(index, k, &fits);
        if (!fits || i < 0 || i >= limit)
            bad = min_i64(bad, k);
        else if (to64 != NULL)
            to64[k] = i;
        else
            to32[k] = (int32_t)i;
    }
    if (bad == index->n)
        return SPMV_OK;
    bool fits = true;
    return exchange_fail(x, index->at + bad * index->width, "%s[%lld] is %lld, which is not from 0 to %lld", what,
                         (long long)bad, (long long)integer_of(index, bad, &fits), (long long)limit - 1);
}

/* The offsets begin at 0, do not descend and end at n. */
static spmv_status check_offsets(struct exchange *x, const struct numbers *offsets, const char *what, int64_t n)
{
    bool fits = true;
    int64_t before = 0;
    for (int64_t i = 0; i < offsets->n; i++) {
        const int64_t offset = integer_of(offsets, i, &fits);
        const bool wrong = i == 0 ? offset != 0 : offset < before || offset > n || (i == offsets->n - 1 && offset != n);
        if (wrong || !fits)
            return exchange_fail(x, offsets->at + i * offsets->width, "%s[%lld] is %lld; it must %s", what,
                                 (long long)i, (long long)offset,
                                 i == 0            ? "be 0"
                                 : offset < before ? "not be below the one before"
                                                   : "end at the number of indices");
        before = offset;
    }
    return SPMV_OK;
}

/* Whether the columns ascend strictly in each row. */
static bool ascends(spmv_context *ctx, const spmv_matrix *lines)
{
    int ascending = 1;
#pragma omp parallel for num_threads(host_team(ctx, lines->nnz)) schedule(static) reduction(& : ascending)
    for (int64_t i = 0; i < lines->rows; i++)
        for (int64_t k = lines->row_ptr[i] + 1; k < lines->row_ptr[i + 1]; k++)
            ascending &= lines->col[k - 1] < lines->col[k];
    return ascending != 0;
}

spmv_status exchange_compressed(struct exchange *x, bool by_rows, const struct numbers *offsets,
                                const char *offsets_what, const struct numbers *index, const char *index_what)
{
    spmv_status st = SPMV_OK;
    const int64_t outer = by_rows ? x->rows : x->cols, inner = by_rows ? x->cols : x->rows;
    bool fits = true;
    if (inner > INT32_MAX)
        return exchange_refuse(x, SPMV_ERROR_LIMIT, "%lld rows in compressed columns: at most %d are supported",
                               (long long)inner, INT32_MAX);
    if (offsets->n != outer + 1)
        return exchange_fail(x, offsets->at, "%s has %lld numbers for %lld %s", offsets_what, (long long)offsets->n,
                             (long long)outer, by_rows ? "rows" : "columns");
    if (matrix_arrays_bytes(outer, index->n, 0) > x->max_bytes - x->size)
        return exchange_refuse(x, SPMV_ERROR_MEMORY, "%lld entries need more than the allowed %lld bytes of memory",
                               (long long)index->n, (long long)x->max_bytes);
    TRY(check_offsets(x, offsets, offsets_what, index->n));
    TRY(matrix_allocate(x->ctx, outer, inner, index->n, SPMV_F64, true, &x->lines));
    for (int64_t i = 0; i <= outer; i++)
        x->lines->row_ptr[i] = integer_of(offsets, i, &fits);
    TRY(take_indices(x, index, index_what, inner, NULL, x->lines->col));
    x->by_rows = by_rows;
    x->entries = index->n;
    x->ascending = ascends(x->ctx, x->lines);
done:
    return st;
}

spmv_status exchange_spread(struct exchange *x)
{
    const spmv_matrix *const lines = x->lines;
    const spmv_status st = exchange_allocate(x, lines->nnz);
    if (st != SPMV_OK)
        return st;
    int64_t *const row = x->row;
#pragma omp parallel for num_threads(host_team(x->ctx, lines->nnz)) schedule(static)
    for (int64_t i = 0; i < lines->rows; i++)
        for (int64_t k = lines->row_ptr[i]; k < lines->row_ptr[i + 1]; k++) {
            row[k] = x->by_rows ? i : lines->col[k];
            x->col[k] = x->by_rows ? lines->col[k] : (int32_t)i;
        }
    spmv_matrix_destroy(x->lines);
    x->lines = NULL;
    return SPMV_OK;
}

spmv_status exchange_coordinates(struct exchange *x, const struct numbers *row, const struct numbers *col)
{
    spmv_status st = exchange_allocate(x, row->n);
    if (st == SPMV_OK)
        st = take_indices(x, row, "row", x->rows, x->row, NULL);
    return st == SPMV_OK ? take_indices(x, col, "col", x->cols, NULL, x->col) : st;
}

/* ---------------------------------------------------------------- values */

/* Copies real numbers, in the byte order of this machine: number k to place k * stride. */
static void copy_reals(const struct numbers *from, int width, int64_t n, void *to, int64_t stride, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < n; k++) {
        if (width == 4) {
            const uint32_t bits = u32_at(from->at + 4 * k, from->big);
            memcpy((char *)to + 4 * k * stride, &bits, sizeof bits);
        } else {
            const uint64_t bits = u64_at(from->at + 8 * k, from->big);
            memcpy((char *)to + 8 * k * stride, &bits, sizeof bits);
        }
    }
}

/* Converts integers; *rounded: the first that f64 does not have, or n. */
static void convert_integers(const struct numbers *from, double *to, int64_t stride, int threads, int64_t *rounded)
{
    int64_t first = from->n;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : first)
    for (int64_t k = 0; k < from->n; k++) {
        bool fits = true;
        const int64_t i = integer_of(from, k, &fits);
        const double value = fits ? (double)i : (double)(uint64_t)i;
        const bool exact =
            fits ? value < 0x1p63 && (int64_t)value == i : value < 0x1p64 && (uint64_t)value == (uint64_t)i;
        if (!exact)
            first = min_i64(first, k);
        to[k * stride] = value;
    }
    *rounded = first;
}

static bool all_true(const struct numbers *values)
{
    for (int64_t k = 0; k < values->n; k++)
        if (values->at[k] == 0)
            return false;
    return true;
}

/* Converts one part of the values to the type of x. */
static spmv_status take_part(struct exchange *x, const struct numbers *values, int part, int64_t stride)
{
    int64_t rounded = values->n;
    const int threads = host_team(x->ctx, values->n);
    char *const to = (char *)x->val + (size_t)part * spmv_type_size(type_part(x->type));
    if (values->class == NUMBERS_REAL && type_part(x->type) == SPMV_F64 && values->width == 4) {
        for (int64_t k = 0; k < values->n; k++) {
            const uint32_t bits = u32_at(values->at + 4 * k, values->big);
            float value;
            memcpy(&value, &bits, sizeof value);
            ((double *)(void *)to)[k * stride] = value;
        }
    } else if (values->class == NUMBERS_REAL) {
        copy_reals(values, values->width, values->n, to, stride, threads);
    } else if (values->class == NUMBERS_COMPLEX) {
        copy_reals(values, values->width / 2, 2 * values->n, to, 1, threads);
    } else {
        struct numbers integers = *values;
        if (values->class == NUMBERS_BOOLEAN) {
            for (int64_t k = 0; k < values->n; k++)
                ((double *)(void *)to)[k * stride] = values->at[k] != 0;
            return SPMV_OK;
        }
        convert_integers(&integers, (double *)(void *)to, stride, threads, &rounded);
    }
    if (rounded == values->n)
        return SPMV_OK;
    return text_warn(x->source, ": integers that f64 cannot represent were rounded; the first is value %lld",
                     (long long)rounded);
}

spmv_status exchange_values(struct exchange *x, const struct numbers *values, const struct numbers *imaginary)
{
    const bool complex = values->class == NUMBERS_COMPLEX || imaginary != NULL;
    const int part_width = values->class == NUMBERS_COMPLEX ? values->width / 2 : values->width;
    const bool single = (values->class == NUMBERS_REAL || values->class == NUMBERS_COMPLEX) && part_width == 4 &&
                        (imaginary == NULL || (imaginary->class == NUMBERS_REAL && imaginary->width == 4));
    int64_t bytes = 0;
    x->type = complex ? (single ? SPMV_C64 : SPMV_C128) : single ? SPMV_F32 : SPMV_F64;
    x->field = complex                                                             ? SPMV_FIELD_COMPLEX
               : values->class == NUMBERS_REAL                                     ? SPMV_FIELD_REAL
               : values->class == NUMBERS_BOOLEAN && !x->dense && all_true(values) ? SPMV_FIELD_PATTERN
                                                                                   : SPMV_FIELD_INTEGER;
    if (x->field == SPMV_FIELD_PATTERN)
        return SPMV_OK;
    if (!multiply_fits(values->n, (int64_t)spmv_type_size(x->type), &bytes) || bytes > x->max_bytes - x->size)
        return exchange_refuse(x, SPMV_ERROR_MEMORY, "%lld values need more than the allowed %lld bytes of memory",
                               (long long)values->n, (long long)x->max_bytes);
    spmv_status st = host_alloc(x->ctx, max_i64(bytes, 1), "values", &x->val);
    if (st == SPMV_OK)
        st = take_part(x, values, 0, complex ? 2 : 1);
    return st == SPMV_OK && imaginary != NULL ? take_part(x, imaginary, 1, 2) : st;
}

/* ---------------------------------------------------------------- reading */

/* Reads the rest of the source into one block, with bytes of 0 before and after it for parsers. */
static spmv_status load(struct exchange *x, void **bytes)
{
    enum { FIRST = 1 << 20, PADDING = DECIMAL_PADDING };
    spmv_status st = SPMV_OK;
    struct text_source *const source = x->source;
    const int64_t left = text_left(source);
    int64_t room = left >= 0 ? left + 1 : FIRST, used = 0, got = 1;
    while (got > 0) {
        if (room > x->max_bytes)
            return exchange_refuse(x, SPMV_ERROR_MEMORY, "it needs more than the allowed %lld bytes of memory",
                                   (long long)x->max_bytes);
        TRY(host_resize(x->ctx, room + 2 * PADDING, "reading a file", bytes));
        while (got > 0 && used < room) {
            TRY(text_read_next(source, (char *)*bytes + PADDING + used, min_i64(room - used, 1 << 24), &got));
            used += got;
            TRY(text_tell(source));
        }
        room = used == room ? 2 * room : room;
    }
    TRY(text_check_unchanged(source));
    memset(*bytes, 0, PADDING);
    memset((char *)*bytes + PADDING + used, 0, PADDING);
    x->bytes = (unsigned char *)*bytes + PADDING;
    x->size = used - (source->open_line_bytes > 0); /* without an added line end */
done:
    return st;
}

static void release(struct exchange *x)
{
    spmv_matrix_destroy(x->lines);
    host_free_all(x->row, x->col, x->val);
}

/* Skew-symmetric and hermitian matrices have a diagonal of zeros and of real numbers. */
static spmv_status check_symmetry(struct exchange *x)
{
    const int parts = x->val != NULL && type_is_complex(x->type) ? 2 : 1;
    if (x->symmetry == SPMV_SYMMETRY_HERMITIAN && parts == 1)
        x->symmetry = SPMV_SYMMETRY_SYMMETRIC;
    if (x->symmetry == SPMV_SYMMETRY_GENERAL)
        return SPMV_OK;
    if (x->rows != x->cols)
        return exchange_fail(x, NULL,
                             "a symmetric, skew-symmetric or hermitian matrix must be square, this one is "
                             "%lld x %lld",
                             (long long)x->rows, (long long)x->cols);
    if (x->symmetry == SPMV_SYMMETRY_SKEW && x->val == NULL)
        return exchange_fail(x, NULL, "a skew-symmetric matrix cannot be a pattern");
    for (int64_t k = 0; x->symmetry != SPMV_SYMMETRY_SYMMETRIC && k < x->entries; k++)
        for (int i = x->symmetry == SPMV_SYMMETRY_SKEW ? 0 : 1; i < parts && ((int64_t *)x->row)[k] == x->col[k]; i++)
            if (real_at(type_part(x->type), x->val, k * parts + i) != 0)
                return exchange_fail(x, NULL, "entry %lld: the diagonal of a %s", (long long)k + 1,
                                     x->symmetry == SPMV_SYMMETRY_SKEW ? "skew-symmetric matrix is 0"
                                                                       : "hermitian matrix is real");
    return SPMV_OK;
}

/* The entries of a dense array that are not 0. */
static spmv_status dense_to_entries(struct exchange *x)
{
    const int parts = type_is_complex(x->type) ? 2 : 1;
    const size_t size = spmv_type_size(x->type);
    const int64_t n = x->rows * x->cols;
    int64_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (int64_t k = 0; k < n; k++) {
            bool zero = true;
            for (int i = 0; i < parts; i++)
                zero = zero && real_at(type_part(x->type), x->val, k * parts + i) == 0;
            if (!zero && pass == 1) {
                ((int64_t *)x->row)[count] = x->by_rows ? k / x->cols : k % x->rows;
                x->col[count] = (int32_t)(x->by_rows ? k % x->cols : k / x->rows);
                copy_value(x->val, count, x->val, k, size);
            }
            count += !zero;
        }
        if (pass == 0) {
            const spmv_status st = exchange_allocate(x, count);
            if (st != SPMV_OK)
                return st;
        }
    }
    return SPMV_OK;
}

/* Converts the values to the type, which they are read as. */
static spmv_status convert_values(struct exchange *x, spmv_type type, int64_t n)
{
    void *to = NULL;
    if (x->val == NULL || x->type == type) {
        x->type = type;
        return SPMV_OK;
    }
    spmv_status st = binary_type_check(x->ctx, x->name, x->type, type);
    if (st == SPMV_OK)
        st = host_alloc(x->ctx, max_i64(1, n * (int64_t)spmv_type_size(type)), "values", &to);
    if (st == SPMV_OK)
        st = binary_values(x->ctx, x->name, x->type, x->val, n, type, to);
    if (st != SPMV_OK) {
        host_free(to);
        return st;
    }
    host_free(x->val);
    x->val = to;
    x->type = type;
    return SPMV_OK;
}

/* The matrix of lines that ascend. */
static spmv_status lines_to_matrix(struct exchange *x, spmv_matrix **matrix)
{
    spmv_matrix *const lines = x->lines;
    spmv_csr a;
    lines->val = x->val;
    lines->pattern = x->val == NULL;
    lines->type = x->type;
    x->val = NULL;
    if (x->by_rows) {
        *matrix = lines;
        x->lines = NULL;
        return SPMV_OK;
    }
    spmv_matrix_view(lines, &a);
    return csr_transpose(x->ctx, &a, matrix);
}

static spmv_status to_matrix(struct exchange *x, spmv_matrix **matrix, int64_t *duplicates)
{
    if (x->lines != NULL)
        return lines_to_matrix(x, matrix);
    enum { PORTIONS = 256 };
    struct coo_portion portion[PORTIONS];
    const int64_t count = min_i64(PORTIONS, x->ctx->threads);
    const size_t size = value_size(x->type, x->val == NULL);
    for (int64_t p = 0; p < count; p++) {
        const int64_t first = x->entries / count * p + min_i64(p, x->entries % count);
        portion[p] = (struct coo_portion){.n = x->entries / count + (p < x->entries % count),
                                          .row = (const int64_t *)x->row + first,
                                          .col = x->col + first,
                                          .val = value_at(x->val, first, size)};
    }
    const struct coo coo = {.rows = x->rows,
                            .cols = x->cols,
                            .type = x->type,
                            .pattern = x->val == NULL,
                            .row_bits = 64,
                            .mirror = (enum coo_mirror)(x->symmetry - SPMV_SYMMETRY_GENERAL),
                            .portions = count,
                            .portion = portion};
    return coo_to_matrix(x->ctx, &coo, matrix, duplicates);
}

static spmv_status refuse_duplicates(struct exchange *x, int64_t duplicates)
{
    if (x->sums || duplicates == 0)
        return SPMV_OK;
    return exchange_fail(x, NULL, "%lld entr%s the position of another%s, which this format does not allow",
                         (long long)duplicates, duplicates == 1 ? "y has" : "ies have",
                         x->symmetry == SPMV_SYMMETRY_GENERAL ? "" : ", itself or mirrored");
}

static spmv_status decode(struct exchange *x, const struct exchange_format *format, void **bytes)
{
    x->form = format->form;
    x->symmetry = SPMV_SYMMETRY_GENERAL;
    spmv_status st = load(x, bytes);
    if (st == SPMV_OK)
        st = format->read(x);
    if (st == SPMV_OK && x->lines != NULL && (!x->ascending || x->symmetry != SPMV_SYMMETRY_GENERAL))
        st = exchange_spread(x);
    return st;
}

spmv_status exchange_read_matrix(struct text_source *source, const struct exchange_format *format, spmv_type type,
                                 int64_t max_bytes, exchange_fits_fn fits, const void *user, spmv_matrix **matrix,
                                 spmv_read_info *info)
{
    spmv_status st = SPMV_OK;
    void *bytes = NULL;
    struct exchange x = {.ctx = source->ctx, .source = source, .name = source->name, .member = source->member};
    x.part = type == SPMV_F32 || type == SPMV_C64 ? SPMV_F32 : SPMV_F64;
    x.max_bytes = max_bytes;
    TRY(decode(&x, format, &bytes));
    const bool dense = x.dense;
    if (dense)
        TRY(dense_to_entries(&x));
    TRY(check_symmetry(&x));
    if (type == SPMV_TYPE_DEFAULT)
        type = x.field == SPMV_FIELD_COMPLEX ? SPMV_C128 : SPMV_F64;
    const int64_t most = x.symmetry == SPMV_SYMMETRY_GENERAL ? x.entries : 2 * x.entries;
    const size_t size = value_size(type, x.val == NULL);
    TRY(fits(&x, x.size + x.entries * (int64_t)(12 + size) + matrix_arrays_bytes(0, most, size), most, type, user));
    TRY(convert_values(&x, type, x.entries));
    TRY(to_matrix(&x, matrix, &info->duplicates));
    TRY(refuse_duplicates(&x, info->duplicates));
    info->bytes = x.size;
    info->entries = dense ? x.rows * x.cols : x.entries;
    info->array = dense;
    info->field = x.field;
    info->symmetry = x.symmetry;
    snprintf(info->form, sizeof info->form, "%s", source->packed != NULL ? text_form(source) : x.form);
done:
    if (st != SPMV_OK) {
        spmv_matrix_destroy(*matrix);
        *matrix = NULL;
    }
    release(&x);
    host_free(bytes);
    return st;
}

/* Puts the numbers of a dense array, or the entries of the matrix a, into rows x cols zeros, row by row. */
static void place_numbers(const struct exchange *x, const spmv_csr *a, void *to)
{
    const size_t size = spmv_type_size(x->type);
    for (int64_t k = 0; x->dense && k < x->rows * x->cols; k++)
        copy_value(to, x->by_rows ? k : k % x->rows * x->cols + k / x->rows, x->val, k, size);
    for (int64_t row = 0; !x->dense && row < a->rows; row++)
        for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++)
            if (a->val != NULL)
                copy_value(to, row * a->cols + a->col[k], a->val, k, size);
            else
                real_set(type_part(x->type), to, (row * a->cols + a->col[k]) * (type_is_complex(x->type) ? 2 : 1), 1);
}

spmv_status exchange_read_vectors(struct text_source *source, const struct exchange_format *format, spmv_type type,
                                  int64_t max_bytes, void **values, int64_t *rows, int64_t *cols)
{
    spmv_status st = SPMV_OK;
    void *bytes = NULL, *to = NULL;
    spmv_matrix *matrix = NULL;
    spmv_csr a = {.rows = 0};
    int64_t count = 0, wide = 0, duplicates = 0;
    struct exchange x = {.ctx = source->ctx, .source = source, .name = source->name, .member = source->member};
    x.part = type_part(type);
    x.max_bytes = max_bytes;
    x.vectors = true;
    TRY(decode(&x, format, &bytes));
    TRY(check_symmetry(&x));
    if (!multiply_fits(x.rows, x.cols, &count) || !multiply_fits(count, (int64_t)spmv_type_size(type), &wide) ||
        wide > max_bytes || (!x.dense && x.rows > max_bytes / 16))
        TRY(exchange_refuse(&x, SPMV_ERROR_MEMORY,
                            "%lld vectors of %lld numbers need more than the allowed %lld bytes of memory",
                            (long long)x.cols, (long long)x.rows, (long long)max_bytes));
    TRY(convert_values(&x, type, x.dense ? count : x.entries));
    TRY(host_alloc(x.ctx, max_i64(1, wide), "a vector", &to));
    memset(to, 0, (size_t)wide);
    if (!x.dense) {
        TRY(to_matrix(&x, &matrix, &duplicates));
        TRY(refuse_duplicates(&x, duplicates));
        spmv_matrix_view(matrix, &a);
    }
    place_numbers(&x, &a, to);
    *values = to;
    to = NULL;
    *rows = x.rows;
    *cols = x.cols;
done:
    host_free(to);
    spmv_matrix_destroy(matrix);
    release(&x);
    host_free(bytes);
    return st;
}
