/* PETSc's binary form: objects one after the other, all numbers with the most significant byte first.
 *
 *   Mat: 1211216, rows, columns, entries; entries of each row; columns of the entries; their values
 *   Mat, dense: 1211216, rows, columns, -1; values row by row
 *   Vec: 1211214, numbers; values
 *
 * Integers have 32 bits, or 64 in files of a PETSc built so. The width of a value is not in the file. It follows from
 * where the next object or the end of the file is. Source: MatLoad and VecLoad, PETSc users manual.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/exchange/exchange.h"

enum { MAT = 1211216, VEC = 1211214 };

/* Bytes of the integers of an object that begins at b; 0: none begins there. */
static int object_at(const unsigned char *b, int64_t bytes)
{
    for (int width = 4; width <= 8; width += 4)
        if (bytes >= width) {
            const uint64_t id = bytes_at(b, width, true);
            if (id == MAT || id == VEC)
                return width;
        }
    return 0;
}

bool petsc_begins(const unsigned char *head, int64_t bytes)
{
    return object_at(head, bytes) != 0;
}

struct object {
    bool is_matrix, dense;
    int width; /* of integers */
    int64_t rows, cols, values;
    struct numbers lengths, index;
    const unsigned char *at, *end; /* of the values */
};

/* Finds the parts of the object at x->bytes + at, without its values. */
static spmv_status find_parts(struct exchange *x, int64_t at, struct object *o)
{
    const unsigned char *const b = x->bytes + at;
    bool fits = true;
    const int64_t left = x->size - at;
    const int width = object_at(b, left);
    struct numbers head = {b, 4, NUMBERS_SIGNED, width, true};
    *o = (struct object){.is_matrix = width > 0 && (int64_t)bytes_at(b, width, true) == MAT, .width = width};
    if (width == 0)
        return exchange_fail(x, b, "neither a matrix nor a vector of PETSc begins here");
    head.n = o->is_matrix ? 4 : 2;
    if (left < head.n * width)
        return exchange_fail(x, b, "the file ends within the head of an object");
    o->rows = integer_of(&head, 1, &fits);
    o->cols = o->is_matrix ? integer_of(&head, 2, &fits) : 1;
    o->values = o->is_matrix ? integer_of(&head, 3, &fits) : o->rows;
    o->at = b + head.n * width;
    o->dense = !o->is_matrix || o->values == -1;
    if (o->rows < 0 || o->cols < 0 || o->values < -1 || (!o->is_matrix && o->values < 0))
        return exchange_fail(x, b + width, "%lld rows, %lld columns, %lld entries: a number is negative",
                             (long long)o->rows, (long long)o->cols, (long long)o->values);
    if (o->dense && !multiply_fits(o->rows, o->cols, &o->values))
        return exchange_fail(x, b + width, "%lld x %lld numbers do not fit in 63 bits", (long long)o->rows,
                             (long long)o->cols);
    const int64_t room = (x->bytes + x->size - o->at) / width;
    if (!o->dense && (o->rows > room || o->values > room - o->rows))
        return exchange_fail(x, b + width, "%lld rows with %lld entries, but the file has %lld bytes",
                             (long long)o->rows, (long long)o->values, (long long)x->size);
    if (!o->dense) {
        o->lengths = (struct numbers){o->at, o->rows, NUMBERS_SIGNED, width, true};
        o->index = (struct numbers){o->at + o->rows * width, o->values, NUMBERS_SIGNED, width, true};
        o->at += (o->rows + o->values) * width;
    }
    return SPMV_OK;
}

/* Finds the width of the values: after them is another object or the end. */
static spmv_status find_values(struct exchange *x, struct object *o, struct numbers *values)
{
    static const struct {
        enum number_class class;
        int width;
    } kinds[] = {{NUMBERS_REAL, 8}, {NUMBERS_COMPLEX, 16}, {NUMBERS_REAL, 4}};
    const int64_t left = x->bytes + x->size - o->at;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        int64_t bytes = 0;
        if (!multiply_fits(o->values, kinds[i].width, &bytes) || bytes > left ||
            (bytes != left && object_at(o->at + bytes, left - bytes) == 0))
            continue;
        *values = (struct numbers){o->at, o->values, kinds[i].class, kinds[i].width, true};
        o->end = o->at + bytes;
        return SPMV_OK;
    }
    return exchange_fail(x, o->at,
                         "%lld values begin here, but the %lld bytes that follow are neither real nor complex "
                         "numbers of that count",
                         (long long)o->values, (long long)left);
}

/* Row offsets, summed up from the lengths. */
static spmv_status take_matrix(struct exchange *x, const struct object *o)
{
    void *memory = NULL;
    bool fits = true;
    int64_t sum = 0;
    if (o->rows >= (x->max_bytes - x->size) / (int64_t)sizeof sum)
        return exchange_refuse(x, SPMV_ERROR_MEMORY, "%lld rows need more than the allowed %lld bytes of memory",
                               (long long)o->rows, (long long)x->max_bytes);
    spmv_status st = host_alloc(x->ctx, (o->rows + 1) * (int64_t)sizeof sum, "row offsets", &memory);
    int64_t *const offsets = memory;
    for (int64_t i = 0; st == SPMV_OK && i < o->rows; i++) {
        const int64_t length = integer_of(&o->lengths, i, &fits);
        offsets[i] = sum;
        if (length < 0 || length > o->values - sum)
            st = exchange_fail(x, o->lengths.at + i * o->width, "row %lld has %lld entries; %lld of %lld are left",
                               (long long)i, (long long)length, (long long)(o->values - sum), (long long)o->values);
        sum += length;
    }
    if (st == SPMV_OK && sum != o->values)
        st = exchange_fail(x, o->lengths.at, "the rows have %lld entries, not the %lld of the head", (long long)sum,
                           (long long)o->values);
    if (st == SPMV_OK) {
        offsets[o->rows] = sum;
        const struct numbers row_ptr = {memory, o->rows + 1, NUMBERS_SIGNED, 8, host_is_big()};
        st = exchange_compressed(x, true, &row_ptr, "row offsets", &o->index, "column");
    }
    host_free(memory);
    return st;
}

spmv_status petsc_read(struct exchange *x)
{
    spmv_status st = SPMV_OK;
    struct object o;
    struct numbers values;
    int64_t at = 0, found = 0;
    struct object first = {.is_matrix = false};
    struct numbers first_values = {.n = 0};
    while (at < x->size) {
        TRY(find_parts(x, at, &o));
        TRY(find_values(x, &o, &values));
        if ((x->vectors ? o.dense : o.is_matrix) && found++ == 0) {
            first = o;
            first_values = values;
        }
        at = o.end - x->bytes;
    }
    if (found == 0)
        TRY(exchange_fail(x, NULL,
                          x->vectors ? "a sparse matrix of PETSc, not a vector" : "a vector of PETSc, not a matrix"));
    if (found > 1)
        TRY(text_warn(x->source, ": %lld %s of PETSc; the first is read", (long long)found,
                      x->vectors ? "vectors" : "matrices"));
    TRY(exchange_shape(x, first.at, first.rows, first.cols));
    x->dense = first.dense;
    x->by_rows = true;
    if (!first.dense)
        TRY(take_matrix(x, &first));
    TRY(exchange_values(x, &first_values, NULL));
done:
    return st;
}

/* ---------------------------------------------------------------- writing */

/* Integers of 32 bits, as a PETSc of the usual build reads them. */
static spmv_status check_sizes(spmv_context *ctx, const char *path, int64_t rows, int64_t entries)
{
    if (rows <= INT32_MAX && entries <= INT32_MAX)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_LIMIT,
                        "%.300s: %lld rows, %lld entries: PETSc's binary form with 32-bit integers has at most %d",
                        path, (long long)rows, (long long)entries, INT32_MAX);
}

spmv_status petsc_write_matrix(const struct exchange_matrix *m, struct sink *sink)
{
    const spmv_csr *const a = m->a;
    const double one = 1;
    spmv_status st = check_sizes(m->ctx, m->path, a->rows, a->nnz);
    const int64_t head[4] = {MAT, a->rows, a->cols, a->nnz};
    for (int i = 0; i < 4 && st == SPMV_OK; i++)
        st = sink_put_integer(sink, head[i], 4, true);
    for (int64_t i = 0; i < a->rows && st == SPMV_OK; i++)
        st = sink_put_integer(sink, row_first(a, i + 1) - row_first(a, i), 4, true);
    for (int64_t k = 0; k < a->nnz && st == SPMV_OK; k++)
        st = sink_put_integer(sink, a->col[k], 4, true);
    if (st == SPMV_OK && a->val != NULL)
        return sink_put_reals(sink, type_part(a->type), a->val, a->nnz * (type_is_complex(a->type) ? 2 : 1), true,
                              true);
    for (int64_t k = 0; k < a->nnz && st == SPMV_OK; k++)
        st = sink_put_reals(sink, SPMV_F64, &one, 1, true, true);
    return st;
}

spmv_status petsc_write_vectors(const struct exchange_vectors *v, struct sink *sink)
{
    spmv_status st = check_sizes(v->ctx, v->path, max_i64(v->n, v->k), 0);
    const int64_t vector[2] = {VEC, v->n}, dense[4] = {MAT, v->n, v->k, -1};
    for (int i = 0; i < (v->k == 1 ? 2 : 4) && st == SPMV_OK; i++)
        st = sink_put_integer(sink, v->k == 1 ? vector[i] : dense[i], 4, true);
    return st == SPMV_OK ? sink_put_reals(sink, type_part(v->type), v->values,
                                          v->n * v->k * (type_is_complex(v->type) ? 2 : 1), true, true)
                         : st;
}
