/* Writes vectors as text or in binary form, by the ending of the name. Text is plain numbers, one
 * row per line, or a Matrix Market array, column by column with one number per line. Complex
 * numbers have both parts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/io.h>
#include <stdio.h>

#include "core/reals.h"
#include "formats/io/mtx/mmio_banner.h"
#include "formats/io/output_form.h"
#include "formats/io/text/numbers.h"
#include "formats/io/text/text_portions.h"
#include "formats/io/vectors/binary_vector.h"
#include "formats/matrix_internal.h"

/* A double has up to 309 digits before the point. A conversion may add sign, point (of the locale)
 * and exponent. */
enum { FORMAT_BYTES = 256, FORMAT_NUMBER = 1000, DIGITS_AND_SIGNS = 309 + 32 };

/* Skips digits at p, a number up to FORMAT_NUMBER, which is added to *sum; NULL if it is larger. */
static const char *skip_number(const char *p, int64_t *sum)
{
    int n = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        n = 10 * n + (*p - '0');
        if (n > FORMAT_NUMBER)
            return NULL;
    }
    *sum += n;
    return p;
}

/* Skips a conversion of one double, whose percent sign is before p. Returns its end, or NULL. Adds
 * width and precision to *sum. */
static const char *skip_conversion(const char *p, int64_t *sum)
{
    p += strspn(p, "-+ #0");
    p = skip_number(p, sum);
    if (p != NULL && *p == '.')
        p = skip_number(p + 1, sum);
    return p != NULL && *p != '\0' && strchr("aAeEfFgG", *p) != NULL ? p + 1 : NULL;
}

/* Whether a format has exactly one conversion, of a double. Other text is allowed, and %% for a
 * percent sign. *bytes: upper bound of the output. *bare: there is no other text. */
static bool format_is_valid(const char *format, int64_t *bytes, bool *bare)
{
    int conversions = 0;
    *bare = true;
    *bytes = (int64_t)strlen(format) + DIGITS_AND_SIGNS;
    if (strlen(format) > FORMAT_BYTES)
        return false;
    while (*format != '\0') {
        const bool percent = *format == '%' && format[1] == '%';
        if (*format != '%' || percent) {
            format += percent ? 2 : 1;
            *bare = false;
            continue;
        }
        format++;
        format = skip_conversion(format, bytes);
        if (format == NULL)
            return false;
        conversions++;
    }
    return conversions == 1;
}

/* Rows of cols numbers. */
struct text {
    spmv_type type;
    const void *values;
    int64_t rows, cols;
    const char *format;
    int64_t part_bytes; /* upper bound for the text of a real number, with a zero byte */
    struct output_form form;
};

/* Number of real numbers in a value. */
static int parts(const struct text *text)
{
    return type_is_complex(text->type) ? 2 : 1;
}

/* Real number i among all values. */
static double part_at(const struct text *text, int64_t i)
{
    return real_at(type_part(text->type), text->values, i);
}

static char *write_part(char *p, const struct text *text, int64_t i)
{
    const spmv_type part = type_part(text->type);
    if (text->format == NULL)
        return number_write(p, part, (const char *)text->values + i * (int64_t)spmv_type_size(part));
    return p + snprintf(p, (size_t)text->part_bytes, text->format, part_at(text, i));
}

static char *write_parts(char *p, const struct text *text, int64_t i)
{
    for (int k = 0; k < parts(text); k++) {
        p = write_part(p, text, parts(text) * i + k);
        *p++ = ' ';
    }
    return p;
}

/* Writes numbers first <= i < end, each followed by a blank or a line end. */
static char *write_rows(const void *user, int64_t first, int64_t end, char *p)
{
    const struct text *const text = user;
    for (int64_t i = first; i < end; i++) {
        p = write_parts(p, text, i);
        if ((i + 1) % text->cols == 0)
            p[-1] = '\n';
    }
    return p;
}

/* Writes numbers first <= i < end, counted column by column, one per line. */
static char *write_columns(const void *user, int64_t first, int64_t end, char *p)
{
    const struct text *const text = user;
    for (int64_t i = first; i < end; i++) {
        p = write_parts(p, text, i % text->rows * text->cols + i / text->rows);
        p[-1] = '\n';
    }
    return p;
}

/* Makes the head of a Matrix Market array. */
static spmv_status make_head(spmv_context *ctx, const struct text *text, char head[BANNER_TEXT + 64], int64_t *bytes)
{
    MM_typecode code;
    char banner[BANNER_TEXT];
    mm_initialize_typecode(&code);
    mm_set_matrix(&code);
    mm_set_array(&code);
    if (type_is_complex(text->type))
        mm_set_complex(&code);
    else
        mm_set_real(&code);
    mm_set_general(&code);
    const spmv_status st = banner_write(ctx, code, banner);
    if (st == SPMV_OK)
        *bytes =
            snprintf(head, BANNER_TEXT + 64, "%s\n%lld %lld\n", banner, (long long)text->rows, (long long)text->cols);
    return st;
}

/* Numbers that are not finite are written, with a warning, although the format has none: losing the
 * result would be worse. */
static spmv_status warn_not_finite(spmv_context *ctx, const char *path, const struct text *text)
{
    const int64_t n = text->rows * text->cols * parts(text);
    int64_t bad = n;
#pragma omp parallel for num_threads(host_team(ctx, n)) schedule(static) reduction(min : bad)
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(part_at(text, i)))
            bad = min_i64(bad, i);
    if (bad == n)
        return SPMV_OK;
    return context_warn(ctx,
                        "%.300s: number %lld%s is %g, which Matrix Market does not define: other programs may not read "
                        "the file",
                        path, context_number(ctx, bad / parts(text)), context_counted(ctx), part_at(text, bad));
}

static spmv_status write_text(spmv_context *ctx, const char *path, const struct text *text)
{
    spmv_status st = SPMV_OK;
    struct output_file output = {.fd = -1};
    const bool mtx = text->form.content == OUTPUT_MTX;
    struct text_portions portions = {.make = mtx ? write_columns : write_rows,
                                     .user = text,
                                     .items = text->rows * text->cols,
                                     .item_bytes = 2 * (text->part_bytes + 1),
                                     .compression = text->form.compression};
    char head[BANNER_TEXT + 64];
    int64_t bytes = 0;
    if (mtx) {
        TRY(warn_not_finite(ctx, path, text));
        TRY(make_head(ctx, text, head, &bytes));
    }
    TRY(output_open(ctx, path, portions.items, &output));
    /* an empty text still needs a portion, so that a compressed file is valid */
    if (mtx || portions.items == 0)
        TRY(text_portions_head(&output, head, bytes, portions.compression));
    TRY(text_portions_write(&output, &portions));
done:
    return output_close(&output, st);
}

/* Checks the format against the form of the file. */
static spmv_status check_format(spmv_context *ctx, const char *path, struct text *text)
{
    bool bare = true;
    if (text->format == NULL)
        return SPMV_OK;
    if (!format_is_valid(text->format, &text->part_bytes, &bare))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "format \"%.100s\": it must contain one floating-point conversion (%%.6g), with width and "
                            "precision up to %d",
                            text->format, FORMAT_NUMBER);
    if (text->form.content == OUTPUT_BINARY || text->form.content == OUTPUT_EXCHANGE)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: the binary form has no format of numbers", path);
    if (text->form.content == OUTPUT_MTX && !bare)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "%.300s: format \"%.100s\": a Matrix Market file can contain only numbers", path,
                            text->format);
    return SPMV_OK;
}

spmv_status spmv_output_check(spmv_context *ctx, const char *path, const char *format)
{
    struct text text = {.type = SPMV_F64, .format = format};
    if (ctx == NULL || path == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_output_check: path is NULL");
    const spmv_status st = output_form_of(ctx, path, &text.form);
    return st == SPMV_OK ? check_format(ctx, path, &text) : st;
}

static spmv_status write_vectors(spmv_context *ctx, const char *call, const char *path, spmv_type type,
                                 const void *host_values, int64_t n, int64_t k, const char *format)
{
    int64_t count = 0, bytes = 0;
    struct text text = {
        .type = type, .values = host_values, .rows = n, .cols = k, .format = format, .part_bytes = NUMBER_TEXT};
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (path == NULL || n < 0 || k < 0 || !multiply_fits(n, k, &count) || (count > 0 && host_values == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: path or %lld host_values missing", call,
                            (long long)(n < 0   ? n
                                        : k < 0 ? k
                                                : count));
    if (!type_is_floating(type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "vectors are written from f64, f32, c128 or c64, not from %s",
                            spmv_type_name(type));
    spmv_status st = output_form_of(ctx, path, &text.form);
    if (st == SPMV_OK)
        st = check_format(ctx, path, &text);
    if (st != SPMV_OK)
        return st;
    if (!multiply_fits(count, (int64_t)spmv_type_size(type), &bytes))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %lld x %lld numbers do not fit in memory", call,
                            (long long)n, (long long)k);
    const struct exchange_vectors vectors = {ctx, path, type, host_values, n, k};
    if (text.form.content == OUTPUT_EXCHANGE)
        return exchange_write_vectors(text.form.exchange, text.form.compression, &vectors);
    return text.form.content == OUTPUT_BINARY ? binary_vector_write(ctx, path, type, host_values, n, k)
                                              : write_text(ctx, path, &text);
}

spmv_status spmv_vector_write(spmv_context *ctx, const char *path, spmv_type type, const void *host_values, int64_t n,
                              const char *format)
{
    return write_vectors(ctx, "spmv_vector_write", path, type, host_values, n, 1, format);
}

spmv_status spmv_vectors_write(spmv_context *ctx, const char *path, spmv_type type, const void *host_values, int64_t n,
                               int64_t k, const char *format)
{
    return write_vectors(ctx, "spmv_vectors_write", path, type, host_values, n, k, format);
}
