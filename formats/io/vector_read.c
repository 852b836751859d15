/* Vectors from text: one number a line, or a Matrix Market file with one column or one row.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
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

static spmv_status read_head(struct text_source *source, struct mtx_header *header)
{
    const char *begin = NULL, *end = NULL;
    *header = plain;
    spmv_status st = text_block(source, &begin, &end);
    if (st != SPMV_OK || begin == NULL || !banner_tag(begin, end))
        return st;
    st = mtx_header_read(source, header);
    if (st == SPMV_OK && header->rows != 1 && header->cols != 1)
        st = text_fail(source, SPMV_ERROR_SIZE, header->size_line, 1,
                       "%lld x %lld: a vector has one column (or one row)", (long long)header->rows,
                       (long long)header->cols);
    return st;
}

/* values: n zeros. Dense chunks follow each other; the others name their cells. */
static void place_chunk(const struct mtx_header *header, const struct coo_chunk *chunk, int row_bits, spmv_type type,
                        int64_t first, void *values)
{
    if (header->array) {
        if (chunk->n > 0)
            memcpy((char *)values + first * (int64_t)spmv_type_size(type), chunk->val,
                   (size_t)chunk->n * spmv_type_size(type));
        return;
    }
    for (int64_t k = 0; k < chunk->n; k++) {
        const int64_t i = header->cols == 1 ? offset_at(chunk->row, row_bits, k) : chunk->col[k];
        if (type == SPMV_F32)
            ((float *)values)[i] = chunk->val ? ((float *)values)[i] + ((const float *)chunk->val)[k] : 1;
        else
            ((double *)values)[i] = chunk->val ? ((double *)values)[i] + ((const double *)chunk->val)[k] : 1;
    }
}

static spmv_status assemble(struct text_source *source, const struct mtx_header *header, const struct entries *entries,
                            spmv_type type, int64_t max_bytes, void **values, int64_t *n)
{
    int64_t bytes = 0, first = 0;
    const int64_t length = header->size_line == 0 ? entries->n : header->cols == 1 ? header->rows : header->cols;
    if (!multiply_fits(length, (int64_t)spmv_type_size(type), &bytes) || bytes > max_bytes)
        return text_fail(source, SPMV_ERROR_MEMORY, header->size_line, 1,
                         "a vector of %lld numbers needs more than the %lld bytes of memory that are allowed",
                         (long long)length, (long long)max_bytes);
    const spmv_status st = host_alloc(source->ctx, bytes, "a vector", values);
    if (st != SPMV_OK)
        return st;
    if (bytes > 0)
        memset(*values, 0, (size_t)bytes);
    for (int64_t c = 0; c < entries->chunks; c++) {
        place_chunk(header, &entries->chunk[c], entries->row_bits, type, first, *values);
        first += entries->chunk[c].n;
    }
    *n = length;
    return SPMV_OK;
}

static spmv_status read_source(struct text_source *source, spmv_type type, int64_t max_bytes, void **values, int64_t *n)
{
    spmv_status st = SPMV_OK;
    struct mtx_header header;
    struct entries entries = {.n = 0};
    TRY(read_head(source, &header));
    const struct entries_options how = {
        .type = type, .max_bytes = max_bytes, .dense = header.array, .number_sign_opens = header.size_line == 0};
    TRY(entries_read(source, &header, &how, &entries));
    TRY(entries_warn(source, &entries, type));
    TRY(assemble(source, &header, &entries, type, max_bytes, values, n));
done:
    entries_free(&entries);
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
    if (type != SPMV_F64 && type != SPMV_F32)
        return context_fail(ctx, SPMV_ERROR_TYPE, "vectors are read as f64 or f32, not as %s", spmv_type_name(type));
    TRY(text != NULL ? text_open_memory(ctx, path, text, size, &source) : text_open(ctx, path, &source));
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
