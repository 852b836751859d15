/* Vectors as text, a row a line, of complex numbers both parts; compressed, or in binary form, as the name ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/io.h>
#include <stdio.h>

#include "binary_vector.h"
#include "numbers.h"
#include "text_pieces.h"

/* A double has 309 digits before the point; what else a conversion may add to those and its precision: sign, point (of
 * the locale), exponent. */
enum { FORMAT_BYTES = 256, FORMAT_NUMBER = 1000, DIGITS_AND_SIGNS = 309 + 32 };

/* Digits at p, a number up to FORMAT_NUMBER, which is added to *sum; NULL when larger. */
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

/* p follows a percent sign: the end of a conversion of one double, or NULL. *sum: width and precision are added. */
static const char *skip_conversion(const char *p, int64_t *sum)
{
    p += strspn(p, "-+ #0");
    p = skip_number(p, sum);
    if (p != NULL && *p == '.')
        p = skip_number(p + 1, sum);
    return p != NULL && *p != '\0' && strchr("aAeEfFgG", *p) != NULL ? p + 1 : NULL;
}

/* Exactly one conversion, of a double; else text, and %% for a percent sign. *bytes: that it makes, at most. */
static bool format_is_valid(const char *format, int64_t *bytes)
{
    int conversions = 0;
    *bytes = (int64_t)strlen(format) + DIGITS_AND_SIGNS;
    if (strlen(format) > FORMAT_BYTES)
        return false;
    while (*format != '\0') {
        if (*format++ != '%')
            continue;
        if (*format == '%') {
            format++;
            continue;
        }
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
    int64_t cols;
    const char *format;
    int64_t part_bytes; /* of a real number's text, with a closing zero byte, at most */
};

/* Real number i of the values. */
static char *write_part(char *p, const struct text *text, int64_t i)
{
    const spmv_type part = type_part(text->type);
    if (text->format == NULL)
        return number_write(p, part, (const char *)text->values + i * (int64_t)spmv_type_size(part));
    const double value =
        part == SPMV_F32 ? (double)((const float *)text->values)[i] : ((const double *)text->values)[i];
    return p + snprintf(p, (size_t)text->part_bytes, text->format, value);
}

/* Numbers first <= i < end, each with the blank or line end behind it. */
static char *write_numbers(const void *user, int64_t first, int64_t end, char *p)
{
    const struct text *const text = user;
    const int parts = type_is_complex(text->type) ? 2 : 1;
    for (int64_t i = first; i < end; i++) {
        for (int k = 0; k < parts; k++) {
            p = write_part(p, text, parts * i + k);
            *p++ = ' ';
        }
        if ((i + 1) % text->cols == 0)
            p[-1] = '\n';
    }
    return p;
}

static spmv_status write_text(spmv_context *ctx, const char *path, const struct text *text, int64_t n)
{
    spmv_status st = SPMV_OK;
    struct output_file output = {.fd = -1};
    struct text_pieces pieces = {
        .make = write_numbers, .user = text, .items = n * text->cols, .item_bytes = 2 * (text->part_bytes + 1)};
    TRY(text_pieces_gzip(ctx, path, &pieces.gzip));
    TRY(output_open(ctx, path, pieces.items, &output));
    if (pieces.items == 0) /* an empty text is a piece as well */
        TRY(text_pieces_head(&output, "", 0, pieces.gzip));
    TRY(text_pieces_write(&output, &pieces));
done:
    return output_close(&output, st);
}

static spmv_status write_vectors(spmv_context *ctx, const char *call, const char *path, spmv_type type,
                                 const void *host_values, int64_t n, int64_t k, const char *format)
{
    int64_t count = 0, bytes = 0;
    struct text text = {type, host_values, k, format, NUMBER_TEXT};
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (path == NULL || n < 0 || k < 0 || !multiply_fits(n, k, &count) || (count > 0 && host_values == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: path, or %lld host_values, not given", call,
                            (long long)(n < 0   ? n
                                        : k < 0 ? k
                                                : count));
    if (type_part(type) != SPMV_F64 && type_part(type) != SPMV_F32)
        return context_fail(ctx, SPMV_ERROR_TYPE, "vectors are written from f64, f32, c128 or c64, not from %s",
                            spmv_type_name(type));
    if (format != NULL && !format_is_valid(format, &text.part_bytes))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "format \"%.100s\": it must hold one floating-point conversion (%%.6g), with width and "
                            "precision up to %d",
                            format, FORMAT_NUMBER);
    if (!multiply_fits(count, (int64_t)spmv_type_size(type), &bytes))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %lld x %lld numbers do not fit in memory", call,
                            (long long)n, (long long)k);
    if (!path_ends_with(path, ".spmv"))
        return write_text(ctx, path, &text, n);
    if (format != NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: the binary form takes no format", path);
    return binary_vector_write(ctx, path, type, host_values, n, k);
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
