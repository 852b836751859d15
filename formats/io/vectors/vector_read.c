/* Reads vectors from text (one row of all vectors per line, or a Matrix Market file) and from the
 * binary form.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/reals.h"
#include "formats/io/binary/binary_form.h"
#include "formats/io/exchange/exchange.h"
#include "formats/io/mtx/mmio_banner.h"
#include "formats/io/mtx/mtx_read.h"
#include "formats/io/text/coordinates.h"
#include "formats/io/text/entries.h"
#include "formats/io/vectors/binary_vector.h"

/* Text without a banner is read as an array stored by rows; the number of lines gives the number of
 * rows. */
static const struct mtx_header plain = {.array = true,
                                        .field = SPMV_FIELD_REAL,
                                        .symmetry = SPMV_SYMMETRY_GENERAL,
                                        .rows = INT64_MAX,
                                        .cols = 1,
                                        .entries = INT64_MAX};

/* The request, and the result: rows of cols numbers. */
struct vectors {
    spmv_type type;
    int64_t max_bytes;
    bool several; /* more than one row and column are allowed */
    void *values;
    int64_t rows, cols;
};

/* Counts the words of the line at p. */
static int64_t count_words(const char *p)
{
    int64_t n = 0;
    for (p = text_skip_blanks(p); *p != '\n'; p = text_skip_blanks(text_token_end(p)))
        n++;
    return n;
}

/* Takes the number of values per line from the first line that is not empty. The lines before it
 * are consumed. */
static spmv_status look_at_lines(struct text_source *source, const struct vectors *want, struct mtx_header *header)
{
    const char *line = NULL, *end = NULL;
    for (;;) {
        const spmv_status st = text_block(source, &line, &end);
        if (st != SPMV_OK || line == NULL)
            return st;
        const char *const p = text_skip_blanks(line);
        if (*p != '\n' && *p != '%' && *p != '#')
            break;
        text_skip(source, (const char *)memchr(p, '\n', (size_t)(end - p)) + 1, 1);
    }
    const int64_t words = count_words(line);
    if (type_is_complex(want->type) && words > 1) {
        header->field = SPMV_FIELD_COMPLEX;
        header->cols = want->several ? (words + 1) / 2 : 1;
    } else {
        header->cols = want->several ? words : 1;
    }
    return SPMV_OK;
}

static spmv_status read_head(struct text_source *source, const struct vectors *want, struct mtx_header *header)
{
    const char *begin = NULL, *end = NULL;
    spmv_type type;
    *header = plain;
    spmv_status st = text_block(source, &begin, &end);
    if (st != SPMV_OK || begin == NULL)
        return st;
    if (!banner_tag(begin, end)) {
        st = text_check_kind(source, begin, end);
        return st == SPMV_OK ? look_at_lines(source, want, header) : st;
    }
    st = mtx_header_read(source, header);
    if (st == SPMV_OK)
        st = mtx_header_type(source, header, want->type, &type);
    if (st == SPMV_OK && !want->several && header->rows != 1 && header->cols != 1)
        st = text_fail(source, SPMV_ERROR_SIZE, header->size_line, 1,
                       "%lld x %lld: a vector has one column (or one row)", (long long)header->rows,
                       (long long)header->cols);
    return st;
}

/* Bytes of a matrix's row offsets while it is built. */
enum { BYTES_A_ROW = 16 };

static spmv_status fail_memory(struct text_source *source, const struct mtx_header *header, int64_t max_bytes)
{
    if (header->rows == 1 || header->cols == 1)
        return text_fail(source, SPMV_ERROR_MEMORY, header->size_line, 1,
                         "a vector of %lld numbers needs more than the allowed %lld bytes of memory",
                         (long long)max_i64(header->rows, header->cols), (long long)max_bytes);
    return text_fail(source, SPMV_ERROR_MEMORY, header->size_line, 1,
                     "%lld vectors of %lld numbers need more than the allowed %lld bytes of memory",
                     (long long)header->cols, (long long)header->rows, (long long)max_bytes);
}

static spmv_status allocate(struct text_source *source, const struct mtx_header *header, spmv_type type,
                            int64_t max_bytes, void **values)
{
    int64_t count = 0, bytes = 0;
    const bool fits = multiply_fits(header->rows, header->cols, &count) &&
                      multiply_fits(count, (int64_t)spmv_type_size(type), &bytes) && bytes <= max_bytes;
    if (!fits)
        return fail_memory(source, header, max_bytes);
    const spmv_status st = host_alloc(source->ctx, bytes, "a vector", values);
    if (st == SPMV_OK && bytes > 0)
        memset(*values, 0, (size_t)bytes);
    return st;
}

/* Reads rows, one per line. */
static spmv_status read_lines(struct text_source *source, const struct mtx_header *header, spmv_type type,
                              struct vectors *v)
{
    struct entries entries = {.n = 0};
    const struct entries_options how = {
        .type = type, .max_bytes = v->max_bytes, .per_line = header->cols, .number_sign_opens = true};
    const spmv_status st = entries_read(source, header, &how, &entries);
    if (st == SPMV_OK) {
        v->values = entries.values;
        v->rows = entries.n / header->cols;
        entries.values = NULL;
    }
    entries_free(&entries);
    return st;
}

/* Reads an array, stored column by column. */
static spmv_status read_array(struct text_source *source, const struct mtx_header *header, spmv_type type,
                              struct vectors *v)
{
    spmv_status st = SPMV_OK;
    struct entries entries = {.n = 0};
    const struct entries_options how = {.type = type, .max_bytes = v->max_bytes};
    TRY(entries_read(source, header, &how, &entries));
    if (header->symmetry == SPMV_SYMMETRY_GENERAL && (header->rows == 1 || header->cols == 1)) {
        v->values = entries.values;
        entries.values = NULL;
    } else {
        TRY(allocate(source, header, type, v->max_bytes, &v->values));
        array_to_rows(source->ctx, header, entries.values, type, v->values);
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
            const int64_t i = row * a->cols + a->col[k];
            if (a->val != NULL)
                copy_value(values, i, a->val, k, spmv_type_size(type));
            else
                real_set(type, values, i, 1);
        }
}

/* Reads a coordinate file, as a matrix. */
static spmv_status read_cells(struct text_source *source, const struct mtx_header *header, spmv_type type,
                              struct vectors *v)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    int64_t duplicates = 0;
    /* Rows without entries need memory too during reading. */
    if (header->rows > v->max_bytes / BYTES_A_ROW)
        return fail_memory(source, header, v->max_bytes);
    TRY(allocate(source, header, type, v->max_bytes, &v->values));
    TRY(coordinates_read(source, header, type, v->max_bytes, &matrix, &duplicates));
    spmv_matrix_view(matrix, &a);
    place_cells(&a, type, v->values);
done:
    spmv_matrix_destroy(matrix);
    return st;
}

static spmv_status read_text(struct text_source *source, struct vectors *v)
{
    struct mtx_header header;
    spmv_status st = read_head(source, v, &header);
    if (st != SPMV_OK)
        return st;
    const spmv_type read_as = header.field == SPMV_FIELD_COMPLEX ? v->type : type_part(v->type);
    v->rows = header.rows;
    v->cols = header.cols;
    if (header.size_line == 0)
        st = read_lines(source, &header, read_as, v);
    else if (header.array)
        st = read_array(source, &header, read_as, v);
    else
        st = read_cells(source, &header, read_as, v);
    if (st == SPMV_OK && read_as != v->type && v->values != NULL) {
        void *const real = v->values;
        v->values = NULL;
        st = values_widen(source->ctx, real, v->rows * v->cols, v->type, &v->values);
        host_free(real);
    }
    return st;
}

/* Reads the source as text, as binary form or as the file of another program. */
static spmv_status read_source(struct text_source *source, struct vectors *v)
{
    const struct exchange_format *format = NULL;
    const bool plain_file = source->file_size >= 0 && source->packed == NULL && source->member == NULL;
    if (plain_file && binary_form_begins(source->fd))
        return context_fail(source->ctx, SPMV_ERROR_FORMAT, "%.480s: the binary form of a matrix, not of a vector",
                            source->name);
    spmv_status st = SPMV_OK;
    if (plain_file && binary_vector_begins(source->fd))
        st = binary_vector_read(source->ctx, source->name, source->fd, v->type, v->max_bytes, &v->values, &v->rows,
                                &v->cols);
    else if ((st = exchange_find(source, &format)) == SPMV_OK && format == NULL)
        return read_text(source, v);
    else if (st == SPMV_OK)
        st = exchange_read_vectors(source, format, v->type, v->max_bytes, &v->values, &v->rows, &v->cols);
    if (st == SPMV_OK && !v->several && v->rows != 1 && v->cols != 1)
        return context_fail(source->ctx, SPMV_ERROR_SIZE, "%.480s: %lld x %lld: a vector has one column (or one row)",
                            source->name, (long long)v->rows, (long long)v->cols);
    return st;
}

/* text NULL: reads the file at path. */
static spmv_status read_vectors(spmv_context *ctx, const char *path, const char *text, int64_t size, struct vectors *v)
{
    spmv_status st = SPMV_OK;
    struct text_source source = {.owns_fd = false};
    if (!type_is_floating(v->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "vectors are read as f64, f32, c128 or c64, not as %s",
                            spmv_type_name(v->type));
    if (v->max_bytes <= 0)
        v->max_bytes = host_memory_bytes();
    TRY(text != NULL ? text_open_memory(ctx, path, NULL, text, size, NULL, &source)
                     : text_open(ctx, path, NULL, &source));
    TRY(read_source(&source, v));
done:
    text_close(&source);
    if (st != SPMV_OK) {
        host_free(v->values);
        v->values = NULL;
        v->rows = v->cols = 0;
    }
    return st;
}

static spmv_status read_vector(spmv_context *ctx, const char *path, const char *text, int64_t size, spmv_type type,
                               int64_t max_bytes, void **values, int64_t *n)
{
    struct vectors v = {.type = type, .max_bytes = max_bytes};
    if (values != NULL)
        *values = NULL;
    if (n != NULL)
        *n = 0;
    if (ctx == NULL || path == NULL || values == NULL || n == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_vector_read: path, host_values and n must be given");
    const spmv_status st = read_vectors(ctx, path, text, size, &v);
    *values = v.values;
    *n = v.rows * v.cols;
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

static spmv_status read_several(spmv_context *ctx, const char *path, const char *text, int64_t size, spmv_type type,
                                int64_t max_bytes, void **values, int64_t *n, int64_t *k)
{
    struct vectors v = {.type = type, .max_bytes = max_bytes, .several = true};
    if (values != NULL)
        *values = NULL;
    if (n != NULL)
        *n = 0;
    if (k != NULL)
        *k = 0;
    if (ctx == NULL || path == NULL || values == NULL || n == NULL || k == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_vectors_read: path, host_values, n and k must be given");
    const spmv_status st = read_vectors(ctx, path, text, size, &v);
    *values = v.values;
    *n = v.rows;
    *k = v.cols;
    return st;
}

spmv_status spmv_vectors_read(spmv_context *ctx, const char *path, spmv_type type, void **host_values, int64_t *n,
                              int64_t *k)
{
    return read_several(ctx, path, NULL, 0, type, 0, host_values, n, k);
}

spmv_status vectors_read_memory(spmv_context *ctx, const char *name, const char *text, int64_t size, spmv_type type,
                                int64_t max_bytes, void **host_values, int64_t *n, int64_t *k)
{
    return read_several(ctx, name, text, size, type, max_bytes, host_values, n, k);
}

void spmv_host_free(void *host_memory)
{
    host_free(host_memory);
}
