/* Reads matrices from Matrix Market files: the head, then the entries of a coordinate file
 * (coordinates.h) or the numbers of an array (entries.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/mtx/mtx_read.h"

#include <stdio.h>

#include "core/clock.h"
#include "formats/io/binary/binary_form.h"
#include "formats/io/binary/binary_notes.h"
#include "formats/io/cache/matrix_cache.h"
#include "formats/io/exchange/exchange.h"
#include "formats/io/text/coordinates.h"
#include "formats/io/text/entries.h"
#include "formats/io/vectors/binary_vector.h"

void spmv_read_options_init(spmv_read_options *options, size_t size)
{
    const spmv_read_options defaults = {.size = sizeof defaults};
    result_write(options, size, &defaults, sizeof defaults);
}

static spmv_status check_options(spmv_context *ctx, const spmv_read_options *given, spmv_read_options *options)
{
    spmv_read_options_init(options, sizeof *options);
    const spmv_status st = options_take(ctx, "read", options, sizeof *options, given);
    if (st != SPMV_OK)
        return st;
    if (options->type != SPMV_TYPE_DEFAULT && !type_is_floating(options->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "matrices are read as f64, f32, c128 or c64, not as %s",
                            spmv_type_name(options->type));
    if (options->max_bytes == 0)
        options->max_bytes = host_memory_bytes();
    return OPTIONS_CHECK(ctx, "spmv_matrix_read", {"max_bytes", (double)options->max_bytes, 0, INFINITY},
                         {"max_unpacked_bytes", (double)options->max_unpacked_bytes, 0, INFINITY},
                         {"max_unpacked_ratio", (double)options->max_unpacked_ratio, 0, INFINITY},
                         {"comments", options->comments, 0, 1});
}

static int64_t sum_saturated(int64_t a, int64_t b)
{
    return a <= INT64_MAX - b ? a + b : INT64_MAX;
}

/* Bytes that one of several ranks needs to read a coordinate file. If real values are converted to
 * complex, both arrays exist at the same time. */
static int64_t bytes_of_coordinates(const struct text_source *source, const struct mtx_header *header, spmv_type type,
                                    int ranks)
{
    const spmv_type read_as = header->field == SPMV_FIELD_COMPLEX ? type : type_part(type);
    const int64_t bytes = coordinates_bytes(source, header, read_as, ranks);
    int64_t wide = 0;
    if (read_as == type || header->field == SPMV_FIELD_PATTERN)
        return bytes;
    if (!multiply_fits(min_i64(header->entries, INT64_MAX / 2) * (header->symmetry == SPMV_SYMMETRY_GENERAL ? 1 : 2),
                       (int64_t)spmv_type_size(type), &wide))
        return INT64_MAX;
    return sum_saturated(bytes, wide);
}

/* Bytes needed to read an array: its numbers, its row offsets twice, and the matrix with this
 * number of entries. */
static int64_t bytes_of_array(const struct mtx_header *header, int64_t entries, spmv_type type)
{
    const int64_t value = (int64_t)spmv_type_size(type);
    int64_t of_numbers = 0, of_entries = 0, of_rows = 0;
    if (!multiply_fits(header->entries, value, &of_numbers) || !multiply_fits(entries, 4 + value, &of_entries) ||
        !multiply_fits(header->rows, 2 * (int64_t)sizeof(int64_t), &of_rows))
        return INT64_MAX;
    return sum_saturated(sum_saturated(of_numbers, of_entries), of_rows);
}

static struct job_limit limit_of(const spmv_read_options *options)
{
    return (struct job_limit){options->max_bytes, options->job_bytes, options->user};
}

/* Bytes of text in memory besides the entries: the tiles being parsed and, for a packed file, the
 * decompressor's window. The length of a packed text is estimated from its lines: 20 bytes each, 10
 * without values (docs/notebook/memory-estimates.md). */
static int64_t bytes_of_text(const struct text_source *source, const struct mtx_header *header)
{
    enum { IN_TILES = 6 << 20, LOOKED_BACK = 8 << 20, A_LINE = 20, A_PLACE = 10 };
    const int64_t a_line = header->field == SPMV_FIELD_PATTERN ? A_PLACE : A_LINE;
    const int64_t text = source->total >= 0 ? source->total : min_i64(header->entries, INT64_MAX / a_line) * a_line;
    return min_i64(text, IN_TILES) + (source->packed != NULL ? min_i64(text, LOOKED_BACK) : 0);
}

/* bytes: the memory needed besides the text, which counts only for the whole job. entries: upper
 * bound for the matrix. type: of its values. ranks: that share rows and entries. */
static spmv_status check_memory(struct text_source *source, const struct mtx_header *header, int64_t bytes,
                                int64_t entries, spmv_type type, int ranks, const spmv_read_options *options)
{
    char why[JOB_WHY];
    const int64_t rows = ceil_divide(header->rows, ranks);
    entries = ceil_divide(entries, ranks);
    const bool pattern = header->field == SPMV_FIELD_PATTERN;
    const struct job_limit limit = limit_of(options);
    const spmv_matrix_size size = {.rows = rows,
                                   .cols = header->cols,
                                   .entries = entries,
                                   .type = type,
                                   .pattern = pattern,
                                   .matrix_bytes = matrix_arrays_bytes(rows, entries, value_size(type, pattern)),
                                   .load_bytes =
                                       sum_saturated(bytes, limit.bytes != NULL ? bytes_of_text(source, header) : 0)};
    return job_fits(&limit, size, why) ? SPMV_OK
                                       : text_fail(source, SPMV_ERROR_MEMORY, header->size_line, 1, "%s", why);
}

/* Warns of repeated positions. In a file with both halves of a symmetric matrix, every value off
 * the diagonal is doubled. */
static spmv_status warn_of_halves(struct text_source *source, const struct mtx_header *header, int64_t duplicates)
{
    if (header->symmetry == SPMV_SYMMETRY_GENERAL || duplicates == 0)
        return SPMV_OK;
    return text_warn(source,
                     ": %lld entr%s of a symmetric file repeat%s the position of another, itself or mirrored; the "
                     "values were added",
                     (long long)duplicates, duplicates == 1 ? "y" : "ies", duplicates == 1 ? "s" : "");
}

static spmv_status read_array(struct text_source *source, const struct mtx_header *header,
                              const spmv_read_options *options, spmv_type type, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct entries entries = {.n = 0};
    void *row_ptr = NULL;
    const struct entries_options how = {.type = type, .max_bytes = options->max_bytes};
    TRY(entries_read(source, header, &how, &entries));
    TRY(host_alloc(source->ctx, (header->rows + 1) * (int64_t)sizeof(int64_t), "row offsets", &row_ptr));
    TRY(array_count(source->ctx, header, entries.values, type, row_ptr));
    const int64_t nonzeros = ((int64_t *)row_ptr)[header->rows];
    TRY(check_memory(source, header, bytes_of_array(header, nonzeros, type), nonzeros, type, 1, options));
    TRY(array_to_matrix(source->ctx, header, entries.values, type, row_ptr, matrix));
done:
    host_free(row_ptr);
    entries_free(&entries);
    return st;
}

const char *spmv_matrix_comments(const spmv_matrix *matrix)
{
    return matrix != NULL && matrix->comments != NULL ? matrix->comments : "";
}

/* Moves the comments kept by the source to the matrix. */
static spmv_status hand_over_comments(struct text_source *source, spmv_matrix *matrix)
{
    void *text = NULL;
    const size_t bytes = (size_t)source->comments_bytes;
    if (bytes == 0)
        return SPMV_OK;
    const spmv_status st = host_alloc(source->ctx, (int64_t)bytes + 1, "comments", &text);
    if (st != SPMV_OK)
        return st;
    matrix->comments = text;
    memcpy(matrix->comments, source->comments, bytes);
    matrix->comments[bytes] = '\0';
    return SPMV_OK;
}

/* check_memory for a file of another program. */
static spmv_status exchange_fits(const struct exchange *x, int64_t bytes, int64_t entries, spmv_type type,
                                 const void *options)
{
    const struct mtx_header header = {
        .rows = x->rows, .cols = x->cols, .field = x->field, .symmetry = x->symmetry, .size_line = 1};
    return check_memory(x->source, &header, sum_saturated(bytes, bytes_of_array(&header, 0, type)), entries, type, 1,
                        options);
}

/* sharing: NULL, or how ranks share the entries. */
static spmv_status read_matrix_market(struct text_source *source, const spmv_read_options *options,
                                      const struct read_sharing *sharing, spmv_matrix **matrix, spmv_read_info *info)
{
    spmv_status st = SPMV_OK;
    struct mtx_header header;
    spmv_type type;
    TRY(mtx_header_read(source, &header));
    TRY(mtx_header_type(source, &header, options->type, &type));
    if (type_is_complex(type)) /* entries in parts are real */
        sharing = NULL;
    const int ranks = sharing != NULL && !header.array ? sharing->ranks : 1;
    TRY(check_memory(source, &header,
                     header.array ? bytes_of_array(&header, 0, type)
                                  : bytes_of_coordinates(source, &header, type, ranks),
                     header.array ? header.entries : coordinates_most(&header), type, ranks, options));
    /* Real numbers are converted to complex after the matrix is made. */
    const spmv_type read_as = header.field == SPMV_FIELD_COMPLEX ? type : type_part(type);
    if (header.array)
        TRY(read_array(source, &header, options, read_as, matrix));
    else if (sharing != NULL)
        TRY(sharing->coordinates(sharing->self, source, &header, type, options->max_bytes, matrix, &info->duplicates));
    else
        TRY(coordinates_read(source, &header, read_as, options->max_bytes, matrix, &info->duplicates));
    if (read_as != type)
        TRY(matrix_widen(source->ctx, *matrix, type));
    TRY(hand_over_comments(source, *matrix));
    TRY(warn_of_halves(source, &header, info->duplicates));
    info->bytes = source->taken;
    info->entries = header.entries;
    info->array = header.array;
    info->field = header.field;
    info->symmetry = header.symmetry;
    snprintf(info->form, sizeof info->form, "%s", text_form(source));
done:
    if (st != SPMV_OK) {
        spmv_matrix_destroy(*matrix);
        *matrix = NULL;
    }
    return st;
}

static spmv_status read_source(struct text_source *source, const spmv_read_options *options,
                               const struct read_sharing *sharing, spmv_matrix **matrix, spmv_read_info *info)
{
    const struct exchange_format *format = NULL;
    const spmv_status st = exchange_find(source, &format);
    if (st != SPMV_OK)
        return st;
    return format != NULL ? exchange_read_matrix(source, format, options->type, options->max_bytes, exchange_fits,
                                                 options, matrix, info)
                          : read_matrix_market(source, options, sharing, matrix, info);
}

/* Describes a matrix in binary form from its arrays. */
static void describe(const spmv_matrix *matrix, int64_t bytes, spmv_read_info *info)
{
    spmv_csr a;
    spmv_matrix_view(matrix, &a);
    info->bytes = bytes;
    info->entries = a.nnz;
    info->field = a.val == NULL ? SPMV_FIELD_PATTERN : type_is_complex(a.type) ? SPMV_FIELD_COMPLEX : SPMV_FIELD_REAL;
    snprintf(info->form, sizeof info->form, "binary");
}

/* Checks the memory of the job for a matrix that is mapped or copied already. */
static spmv_status check_mapped(struct text_source *source, const spmv_read_options *options, spmv_matrix **matrix)
{
    char why[JOB_WHY];
    spmv_csr a;
    spmv_matrix_view(*matrix, &a);
    const struct job_limit limit = limit_of(options);
    const spmv_matrix_size size = {
        .rows = a.rows, .cols = a.cols, .entries = a.nnz, .type = a.type, .pattern = a.val == NULL};
    if (job_fits(&limit, size, why))
        return SPMV_OK;
    spmv_matrix_destroy(*matrix);
    *matrix = NULL;
    return context_fail(source->ctx, SPMV_ERROR_MEMORY, "%.480s: %s", source->name, why);
}

static spmv_status read_binary(struct text_source *source, const spmv_read_options *options, spmv_matrix **matrix,
                               spmv_read_info *info)
{
    int64_t bytes = 0;
    spmv_status st =
        binary_form_read(source->ctx, source->name, source->fd, options->type, options->max_bytes, matrix, &bytes);
    if (st != SPMV_OK)
        return st;
    describe(*matrix, bytes, info);
    st = binary_notes_read(source->ctx, source->fd, bytes, &info->symmetry,
                           options->comments ? &(*matrix)->comments : NULL);
    if (st == SPMV_OK)
        return check_mapped(source, options, matrix);
    spmv_matrix_destroy(*matrix);
    *matrix = NULL;
    return st;
}

/* Reads only the head of a file, for the comments of a matrix from the cache. Its warnings are
 * issued with the cached ones, so they are suppressed here. */
static spmv_status read_comments(struct text_source *source, spmv_matrix *matrix)
{
    struct mtx_header header;
    const spmv_event_fn on_event = source->ctx->on_event;
    const struct exchange_format *format = NULL;
    if (source->max_comments == 0 || exchange_find(source, &format) != SPMV_OK || format != NULL)
        return SPMV_OK;
    source->ctx->on_event = NULL;
    const spmv_status st = mtx_header_read(source, &header);
    source->ctx->on_event = on_event;
    return st == SPMV_OK ? hand_over_comments(source, matrix) : st;
}

/* Reports what the original reading of a cached matrix reported, warnings included. */
static spmv_status tell_kept(struct text_source *source, const struct cache_facts *facts, spmv_read_info *info)
{
    info->bytes = facts->bytes;
    info->entries = facts->entries;
    info->duplicates = facts->duplicates;
    info->array = (int)facts->array;
    info->field = (spmv_field)facts->field;
    info->symmetry = (spmv_symmetry)facts->symmetry;
    snprintf(info->form, sizeof info->form, "cache");
    spmv_status st = SPMV_OK;
    for (int64_t at = 0; at < facts->warnings_bytes && st == SPMV_OK; at += (int64_t)strlen(facts->warnings + at) + 1)
        st = text_warn(source, "%s", facts->warnings + at);
    return st;
}

static spmv_status keep(struct text_source *source, const struct cache_key *key, const spmv_matrix *matrix,
                        const spmv_read_info *info)
{
    struct cache_facts facts = {.field = (uint32_t)info->field,
                                .symmetry = (uint32_t)info->symmetry,
                                .array = (uint32_t)info->array,
                                .bytes = info->bytes,
                                .entries = info->entries,
                                .duplicates = info->duplicates,
                                .warnings_bytes = source->warnings_bytes};
    if (source->warnings_lost)
        return SPMV_OK;
    memcpy(facts.warnings, source->warnings, (size_t)source->warnings_bytes);
    return cache_keep(source->ctx, key, matrix, &facts);
}

static spmv_status read_cached(struct text_source *source, const spmv_read_options *options, spmv_matrix **matrix,
                               spmv_read_info *info)
{
    spmv_status st = SPMV_OK;
    struct cache_key key;
    struct cache_facts facts;
    TRY(cache_key_make(source->ctx, options->cache_folder, source->name, source->fd, options->type, &key));
    cache_find(source->ctx, &key, options->type, options->max_bytes, matrix, &facts);
    if (*matrix != NULL) {
        TRY(check_mapped(source, options, matrix));
        TRY(read_comments(source, *matrix));
        TRY(tell_kept(source, &facts, info));
    } else {
        TRY(read_source(source, options, NULL, matrix, info));
        TRY(keep(source, &key, *matrix, info));
    }
done:
    cache_key_free(&key);
    if (st != SPMV_OK) {
        spmv_matrix_destroy(*matrix);
        *matrix = NULL;
    }
    return st;
}

/* Reads a file in binary form with several ranks. *taken false: it must be read as a whole. */
static spmv_status share_binary(struct text_source *source, const spmv_read_options *options,
                                const struct read_sharing *sharing, spmv_matrix **matrix, spmv_read_info *info,
                                bool *taken)
{
    spmv_status st =
        sharing->binary(sharing->self, source->name, source->fd, source->file_size, options->type, matrix, taken);
    if (st != SPMV_OK || !*taken)
        return st;
    describe(*matrix, source->file_size, info);
    st = binary_notes_read(source->ctx, source->fd, source->file_size, &info->symmetry, NULL);
    return st == SPMV_OK ? check_mapped(source, options, matrix) : st;
}

static spmv_status read_any(struct text_source *source, const spmv_read_options *options,
                            const struct read_sharing *sharing, spmv_matrix **matrix, spmv_read_info *info)
{
    bool taken = false;
    info->threads = source->ctx->threads;
    if (source->member == NULL && source->file_size >= 0 && source->packed == NULL && binary_form_begins(source->fd)) {
        const spmv_status st =
            sharing != NULL && source->owns_fd ? share_binary(source, options, sharing, matrix, info, &taken) : SPMV_OK;
        return st == SPMV_OK && !taken ? read_binary(source, options, matrix, info) : st;
    }
    if (source->member == NULL && source->file_size >= 0 && source->packed == NULL && binary_vector_begins(source->fd))
        return context_fail(source->ctx, SPMV_ERROR_FORMAT, "%.480s: the binary form of a vector, not of a matrix",
                            source->name);
    /* Not standard input, which may start at any offset. */
    if (options->cache_folder != NULL && options->cache_folder[0] != '\0' && source->file_size >= 0 && source->owns_fd)
        return read_cached(source, options, matrix, info);
    return read_source(source, options, sharing, matrix, info);
}

/* text NULL: reads the file at path. */
static spmv_status read_matrix(spmv_context *ctx, const char *path, const char *text, int64_t size,
                               const spmv_read_options *given, const struct read_sharing *sharing, spmv_matrix **matrix,
                               spmv_read_info *info_out, size_t info_size)
{
    spmv_status st = SPMV_OK;
    const double start = monotonic_seconds();
    struct text_source source = {.owns_fd = false};
    spmv_read_options options;
    spmv_read_info info = {.size = sizeof info};
    result_write(info_out, info_size, &info, sizeof info);
    if (matrix != NULL)
        *matrix = NULL;
    if (ctx == NULL || matrix == NULL || path == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_matrix_read: %s is NULL", path ? "matrix" : "path");
    TRY(check_options(ctx, given, &options));
    const struct packed_limits limits = {options.max_unpacked_bytes, options.max_unpacked_ratio};
    TRY(text != NULL ? text_open_memory(ctx, path, NULL, text, size, &limits, &source)
                     : text_open(ctx, path, &limits, &source));
    source.max_comments = options.comments ? options.max_bytes : 0;
    TRY(read_any(&source, &options, sharing, matrix, &info));
    info.seconds = monotonic_seconds() - start;
    result_write(info_out, info_size, &info, sizeof info);
done:
    text_close(&source);
    return st;
}

spmv_status spmv_matrix_read(spmv_context *ctx, const char *path, const spmv_read_options *options,
                             spmv_matrix **matrix, spmv_read_info *info, size_t info_size)
{
    return read_matrix(ctx, path, NULL, 0, options, NULL, matrix, info, info_size);
}

spmv_status matrix_read_memory(spmv_context *ctx, const char *name, const char *text, int64_t size,
                               const spmv_read_options *options, spmv_matrix **matrix, spmv_read_info *info,
                               size_t info_size)
{
    return read_matrix(ctx, name, text, size, options, NULL, matrix, info, info_size);
}

spmv_status matrix_read_shared(spmv_context *ctx, const char *path, const spmv_read_options *options,
                               const struct read_sharing *sharing, spmv_matrix **matrix, spmv_read_info *info,
                               size_t info_size)
{
    return read_matrix(ctx, path, NULL, 0, options, sharing, matrix, info, info_size);
}
