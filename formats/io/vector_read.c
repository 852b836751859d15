/* Vectors from text: one number a line, or a Matrix Market file with one column or one row.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "coordinates.h"
#include "entries.h"
#include "mmio_banner.h"
#include "mtx_read.h"

/* What a text without banner is read as: an array with one column, whose length its lines decide. */
static const struct mtx_header plain = {.array = true,
                                        .field = SPMV_FIELD_REAL,
                                        .symmetry = SPMV_SYMMETRY_GENERAL,
                                        .rows = INT64_MAX,
                                        .cols = 1,
                                        .entries = INT64_MAX};

/* Whether the first line in [begin, end) that holds anything holds more than one word. */
static bool begins_with_pair(const char *begin, const char *end)
{
    while (begin < end) {
        const char *p = text_skip_blanks(begin);
        if (*p != '\n' && *p != '%' && *p != '#')
            return *text_skip_blanks(text_token_end(p)) != '\n';
        begin = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
    }
    return false;
}

static spmv_status read_head(struct text_source *source, spmv_type type, struct mtx_header *header)
{
    const char *begin = NULL, *end = NULL;
    *header = plain;
    spmv_status st = text_block(source, &begin, &end);
    if (st != SPMV_OK || begin == NULL)
        return st;
    if (!banner_tag(begin, end)) {
        if (type_is_complex(type) && begins_with_pair(begin, end))
            header->field = SPMV_FIELD_COMPLEX;
        return SPMV_OK;
    }
    st = mtx_header_read(source, header);
    if (st == SPMV_OK)
        st = mtx_header_type(source, header, type, &type);
    if (st == SPMV_OK && header->rows != 1 && header->cols != 1)
        st = text_fail(source, SPMV_ERROR_SIZE, header->size_line, 1,
                       "%lld x %lld: a vector has one column (or one row)", (long long)header->rows,
                       (long long)header->cols);
    return st;
}

static spmv_status allocate(struct text_source *source, const struct mtx_header *header, int64_t length, spmv_type type,
                            int64_t max_bytes, void **values)
{
    int64_t bytes = 0;
    if (!multiply_fits(length, (int64_t)spmv_type_size(type), &bytes) || bytes > max_bytes)
        return text_fail(source, SPMV_ERROR_MEMORY, header->size_line, 1,
                         "a vector of %lld numbers needs more than the %lld bytes of memory that are allowed",
                         (long long)length, (long long)max_bytes);
    const spmv_status st = host_alloc(source->ctx, bytes, "a vector", values);
    if (st == SPMV_OK && bytes > 0)
        memset(*values, 0, (size_t)bytes);
    return st;
}

/* All numbers, as they stand. */
static spmv_status read_dense(struct text_source *source, const struct mtx_header *header, spmv_type type,
                              int64_t max_bytes, void **values, int64_t *n)
{
    spmv_status st = SPMV_OK;
    struct entries entries = {.n = 0};
    const bool plain_text = header->size_line == 0;
    const struct entries_options how = {
        .type = type, .max_bytes = max_bytes, .per_line = plain_text, .number_sign_opens = plain_text};
    TRY(entries_read(source, header, &how, &entries));
    *n = entries.n;
    if (plain_text || header->symmetry != SPMV_SYMMETRY_SKEW) {
        *values = entries.values;
        entries.values = NULL;
    } else { /* an array of one cell stores none */
        *n = 1;
        TRY(allocate(source, header, *n, type, max_bytes, values));
    }
done:
    entries_free(&entries);
    return st;
}

static void place_cells(const spmv_csr *a, spmv_type type, void *values)
{
    const int64_t *const row_ptr = a->row_ptr;
    for (int64_t row = 0; row < a->rows; row++)
        for (int64_t k = row_ptr[row]; k < row_ptr[row + 1]; k++) {
            const int64_t i = a->cols == 1 ? row : a->col[k];
            if (a->val != NULL)
                copy_value(values, i, a->val, k, spmv_type_size(type));
            else if (type == SPMV_F32)
                ((float *)values)[i] = 1;
            else
                ((double *)values)[i] = 1;
        }
}

/* The cells that the file names, as a matrix with one column or one row. */
static spmv_status read_cells(struct text_source *source, const struct mtx_header *header, spmv_type type,
                              int64_t max_bytes, void **values, int64_t *n)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    int64_t duplicates = 0;
    const int64_t length = header->cols == 1 ? header->rows : header->cols;
    TRY(allocate(source, header, length, type, max_bytes, values));
    TRY(coordinates_read(source, header, type, &matrix, &duplicates));
    spmv_matrix_view(matrix, &a);
    place_cells(&a, type, *values);
    *n = length;
done:
    spmv_matrix_destroy(matrix);
    return st;
}

static spmv_status read_source(struct text_source *source, spmv_type type, int64_t max_bytes, void **values, int64_t *n)
{
    struct mtx_header header;
    spmv_status st = read_head(source, type, &header);
    const spmv_type read_as = header.field == SPMV_FIELD_COMPLEX ? type : type_part(type);
    if (st == SPMV_OK && header.array)
        st = read_dense(source, &header, read_as, max_bytes, values, n);
    else if (st == SPMV_OK)
        st = read_cells(source, &header, read_as, max_bytes, values, n);
    if (st == SPMV_OK && read_as != type) {
        void *const real = *values;
        *values = NULL;
        st = values_widen(source->ctx, real, *n, type, values);
        host_free(real);
    }
    if (st != SPMV_OK) {
        host_free(*values);
        *values = NULL;
    }
    return st;
}

/* text NULL: the file at path. */
static spmv_status read_vector(spmv_context *ctx, const char *path, const char *text, int64_t size, spmv_type type,
                               int64_t max_bytes, void **values, int64_t *n)
{
    spmv_status st = SPMV_OK;
    struct text_source source = {.owns_fd = false};
    if (values != NULL)
        *values = NULL;
    if (n != NULL)
        *n = 0;
    if (path == NULL || values == NULL || n == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_vector_read: path, host_values and n must be given");
    if (type_part(type) != SPMV_F64 && type_part(type) != SPMV_F32)
        return context_fail(ctx, SPMV_ERROR_TYPE, "vectors are read as f64, f32, c128 or c64, not as %s",
                            spmv_type_name(type));
    TRY(text != NULL ? text_open_memory(ctx, path, NULL, text, size, NULL, &source)
                     : text_open(ctx, path, NULL, &source));
    TRY(read_source(&source, type, max_bytes > 0 ? max_bytes : host_memory_bytes(), values, n));
done:
    text_close(&source);
    return st;
}

spmv_status spmv_vector_read(spmv_context *ctx, const char *path, spmv_type type, void **host_values, int64_t *n)
{
    return read_vector(ctx, path, NULL, 0, type, 0, host_values, n);
}

spmv_status vector_read_memory(spmv_context *ctx, const char *name, const char *text, int64_t size, spmv_type type,
                               int64_t max_bytes, void **host_values, int64_t *n)
{
    return read_vector(ctx, name, text, size, type, max_bytes, host_values, n);
}

void spmv_host_free(void *host_memory)
{
    host_free(host_memory);
}
