/* Vectors as text: one number a line; of complex numbers both parts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/io.h>
#include <stdio.h>

#include "numbers.h"
#include "output_file.h"

/* A double has 309 digits before the point; with these limits the text of two numbers fits in OUTPUT_ITEM. */
enum { FORMAT_BYTES = 256, FORMAT_NUMBER = 1000 };

/* Digits at p, a number up to FORMAT_NUMBER; NULL when larger. */
static const char *skip_number(const char *p)
{
    int n = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        n = 10 * n + (*p - '0');
        if (n > FORMAT_NUMBER)
            return NULL;
    }
    return p;
}

/* p follows a percent sign: the end of a conversion of one double, or NULL. */
static const char *skip_conversion(const char *p)
{
    p += strspn(p, "-+ #0");
    p = skip_number(p);
    if (p != NULL && *p == '.')
        p = skip_number(p + 1);
    return p != NULL && *p != '\0' && strchr("aAeEfFgG", *p) != NULL ? p + 1 : NULL;
}

/* Exactly one conversion, of a double; else text, and %% for a percent sign. */
static bool format_is_valid(const char *format)
{
    int conversions = 0;
    if (strlen(format) > FORMAT_BYTES)
        return false;
    while (*format != '\0') {
        if (*format++ != '%')
            continue;
        if (*format == '%') {
            format++;
            continue;
        }
        format = skip_conversion(format);
        if (format == NULL)
            return false;
        conversions++;
    }
    return conversions == 1;
}

/* Real number i of values. */
static char *write_part(char *room, spmv_type part, const void *values, int64_t i, const char *format)
{
    if (format == NULL)
        return number_write(room, part, (const char *)values + i * (int64_t)spmv_type_size(part));
    const double value = part == SPMV_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
    return room + snprintf(room, OUTPUT_ITEM / 2 - 1, format, value);
}

static char *write_value(char *room, spmv_type type, const void *values, int64_t i, const char *format)
{
    if (!type_is_complex(type))
        return write_part(room, type, values, i, format);
    room = write_part(room, type_part(type), values, 2 * i, format);
    *room++ = ' ';
    return write_part(room, type_part(type), values, 2 * i + 1, format);
}

spmv_status spmv_vector_write(spmv_context *ctx, const char *path, spmv_type type, const void *host_values, int64_t n,
                              const char *format)
{
    spmv_status st = SPMV_OK;
    struct output_file output = {.fd = -1};
    if (path == NULL || n < 0 || (n > 0 && host_values == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_vector_write: path, or %lld host_values, not given",
                            (long long)n);
    if (type_part(type) != SPMV_F64 && type_part(type) != SPMV_F32)
        return context_fail(ctx, SPMV_ERROR_TYPE, "vectors are written from f64, f32, c128 or c64, not from %s",
                            spmv_type_name(type));
    if (format != NULL && !format_is_valid(format))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "format \"%.100s\": it must hold one floating-point conversion (%%.6g), with width and "
                            "precision up to %d",
                            format, FORMAT_NUMBER);
    TRY(output_open(ctx, path, n, &output));
    for (int64_t i = 0; i < n; i++) {
        char *room = NULL;
        TRY(output_room(&output, &room));
        room = write_value(room, type, host_values, i, format);
        *room++ = '\n';
        output_took(&output, room);
    }
done:
    return output_close(&output, st);
}
