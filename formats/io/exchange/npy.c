/* Arrays of NumPy (.npy): see npy.h. Source: numpy.lib.format.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/exchange/npy.h"

#include <stdio.h>

static const char magic[] = "\x93NUMPY";

bool npy_begins(const unsigned char *head, int64_t bytes)
{
    return bytes >= 8 && memcmp(head, magic, 6) == 0;
}

/* The head's text, a dictionary of Python. */
struct dictionary {
    const char *p, *end;
};

/* What follows 'key': in the text, without blanks before; NULL if it is missing. */
static const char *value_of(const struct dictionary *d, const char *key)
{
    const size_t length = strlen(key);
    for (const char *p = d->p; p + length + 3 < d->end; p++)
        if (p[0] == '\'' && memcmp(p + 1, key, length) == 0 && p[length + 1] == '\'') {
            p += length + 2;
            while (p < d->end && (*p == ' ' || *p == ':'))
                p++;
            return p < d->end ? p : NULL;
        }
    return NULL;
}

/* Reads "<f8": byte order, kind, width. */
static bool parse_type(const char *p, const char *end, struct npy *array)
{
    static const struct {
        char letter;
        enum number_class class;
        const char *widths; /* as letters: \1 \2 ... */
    } kinds[] = {{'b', NUMBERS_BOOLEAN, "\1"},
                 {'i', NUMBERS_SIGNED, "\1\2\4\10"},
                 {'u', NUMBERS_UNSIGNED, "\1\2\4\10"},
                 {'f', NUMBERS_REAL, "\4\10"},
                 {'c', NUMBERS_COMPLEX, "\10\20"}};
    if (end - p < 4 || *p++ != '\'')
        return false;
    const char order = *p++, letter = *p++;
    int width = 0;
    for (; p < end && *p >= '0' && *p <= '9' && width < 1000; p++)
        width = 10 * width + (*p - '0');
    if (p == end || *p != '\'' || strchr("<>|=", order) == NULL)
        return false;
    array->numbers.big = order == '>' || (order == '=' && host_is_big());
    array->numbers.width = letter == 'U' ? 4 * width : width;
    array->is_text = letter == 'S' || letter == 'U';
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].letter == letter && width > 0 && width < 128 && strchr(kinds[i].widths, width) != NULL) {
            array->numbers.class = kinds[i].class;
            return true;
        }
    return array->is_text && width > 0;
}

/* Reads "(3, 4)". */
static bool parse_shape(const char *p, const char *end, struct npy *array)
{
    array->numbers.n = 1;
    if (p == end || *p++ != '(')
        return false;
    for (;;) {
        while (p < end && (*p == ' ' || *p == ','))
            p++;
        if (p < end && *p == ')')
            return true;
        int64_t n = 0;
        const char *const first = p;
        for (; p < end && *p >= '0' && *p <= '9' && p - first < 18; p++)
            n = 10 * n + (*p - '0');
        if (p == first || p == end || array->dimensions == NPY_DIMENSIONS ||
            !multiply_fits(array->numbers.n, n, &array->numbers.n))
            return false;
        p += *p == 'L'; /* of Python 2 */
        array->shape[array->dimensions++] = n;
    }
}

spmv_status npy_parse(struct exchange *x, const char *what, const unsigned char *bytes, int64_t size, struct npy *array)
{
    *array = (struct npy){.dimensions = 0};
    if (!npy_begins(bytes, size))
        return exchange_fail(x, bytes, "%s: no array of NumPy", what);
    const int width = bytes[6] == 1 ? 2 : 4;
    const int64_t head = 8 + width;
    const int64_t length = size >= head ? (int64_t)bytes_at(bytes + 8, width, false) : INT64_MAX;
    if (bytes[6] < 1 || bytes[6] > 3)
        return exchange_fail(x, bytes, "%s: version %d of NumPy's format is unknown", what, bytes[6]);
    if (length > size - head)
        return exchange_fail(x, bytes, "%s: the head of the array is cut short", what);
    const struct dictionary d = {(const char *)bytes + head, (const char *)bytes + head + length};
    const char *const type = value_of(&d, "descr"), *const order = value_of(&d, "fortran_order"),
                      *const shape = value_of(&d, "shape");
    if (type == NULL || order == NULL || shape == NULL)
        return exchange_fail(x, bytes, "%s: the head of the array lacks descr, fortran_order or shape", what);
    if (!parse_type(type, d.end, array))
        return exchange_refuse(x, SPMV_ERROR_UNSUPPORTED, "%s: numbers of type %.12s are not read", what, type);
    if (!parse_shape(shape, d.end, array))
        return exchange_refuse(x, SPMV_ERROR_UNSUPPORTED,
                               "%s: the shape %.40s is malformed or has more than %d numbers", what, shape,
                               NPY_DIMENSIONS);
    array->by_columns = *order == 'T';
    array->numbers.at = bytes + head + length;
    int64_t need = 0;
    const int64_t left = size - head - length;
    if (!multiply_fits(array->numbers.n, array->numbers.width, &need) || need > left)
        return exchange_fail(x, array->numbers.at, "%s: %lld numbers of %d bytes, but %lld bytes follow", what,
                             (long long)array->numbers.n, array->numbers.width, (long long)left);
    return SPMV_OK;
}

spmv_status npy_dense(struct exchange *x, const char *what, const struct npy *array)
{
    if (array->is_text || array->dimensions > 2)
        return exchange_refuse(x, SPMV_ERROR_UNSUPPORTED, "%s: an array of %s, not of numbers with one or two indices",
                               what, array->is_text ? "texts" : "three dimensions");
    const int64_t rows = array->dimensions > 0 ? array->shape[0] : 1,
                  cols = array->dimensions > 1 ? array->shape[1] : 1;
    const spmv_status st = exchange_shape(x, array->numbers.at, rows, cols);
    x->dense = true;
    x->by_rows = !array->by_columns;
    return st == SPMV_OK ? exchange_values(x, &array->numbers, NULL) : st;
}

spmv_status npy_read(struct exchange *x)
{
    struct npy array;
    const spmv_status st = npy_parse(x, "array", x->bytes, x->size, &array);
    return st == SPMV_OK ? npy_dense(x, "array", &array) : st;
}

/* ---------------------------------------------------------------- writing */

const char *npy_type(spmv_type type)
{
    return type == SPMV_F32 ? "<f4" : type == SPMV_F64 ? "<f8" : type == SPMV_C64 ? "<c8" : "<c16";
}

/* The numbers begin at a multiple of 64 bytes. */
int npy_head(char head[NPY_HEAD], const char *type, const char *shape)
{
    enum { TEXT = NPY_HEAD - 10 };
    memcpy(head, magic, 6);
    head[6] = 1;
    head[7] = 0;
    head[8] = TEXT;
    head[9] = 0;
    const int n = snprintf(head + 10, TEXT, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    memset(head + 10 + n, ' ', (size_t)(TEXT - n));
    head[NPY_HEAD - 1] = '\n';
    return NPY_HEAD;
}

void npy_shape(const struct exchange_vectors *v, char shape[64])
{
    if (v->k == 1)
        snprintf(shape, 64, "(%lld,)", (long long)v->n);
    else
        snprintf(shape, 64, "(%lld, %lld)", (long long)v->n, (long long)v->k);
}

spmv_status npy_write_vectors(const struct exchange_vectors *v, struct sink *sink)
{
    char head[NPY_HEAD], shape[64];
    npy_shape(v, shape);
    const spmv_status st = sink_put(sink, head, npy_head(head, npy_type(v->type), shape));
    return st == SPMV_OK ? sink_put_reals(sink, type_part(v->type), v->values,
                                          v->n * v->k * (type_is_complex(v->type) ? 2 : 1), false, false)
                         : st;
}
