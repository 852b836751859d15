/* Archives of NumPy (.npz): sparse matrices as scipy.sparse.save_npz writes them, and dense arrays.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "formats/io/exchange/npy.h"
#include "formats/io/exchange/zip.h"
#include "formats/io/packed/deflate.h"

bool npz_begins(const unsigned char *head, int64_t bytes)
{
    return bytes >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0);
}

/* An open archive. memory: unpacked members, which the arrays point into. */
enum { ARRAYS = 8 };
struct npz {
    struct exchange *x;
    struct zip_member *members;
    int64_t count;
    void *memory[ARRAYS];
    int used;
};

static bool has_name(const struct zip_member *m, const char *name)
{
    const int length = (int)strlen(name);
    return m->name_length == length + 4 && memcmp(m->name, name, (size_t)length) == 0 &&
           memcmp(m->name + length, ".npy", 4) == 0;
}

static const struct zip_member *find(const struct npz *npz, const char *name)
{
    for (int64_t i = 0; i < npz->count; i++)
        if (has_name(&npz->members[i], name))
            return &npz->members[i];
    return NULL;
}

static spmv_status read_member(struct npz *npz, const struct zip_member *m, struct npy *array)
{
    char what[80];
    const unsigned char *bytes = NULL;
    int64_t n = 0;
    snprintf(what, sizeof what, "%.*s", (int)min_i64(m->name_length, 64), m->name);
    const spmv_status st = zip_read(npz->x, m, &bytes, &n, &npz->memory[npz->used++]);
    return st == SPMV_OK ? npy_parse(npz->x, what, bytes, n, array) : st;
}

/* Reads the array of this name, which must have these dimensions, integers or (integers false) numbers. */
static spmv_status read_array(struct npz *npz, const char *name, int dimensions, bool integers, struct npy *array)
{
    struct exchange *const x = npz->x;
    const struct zip_member *const m = find(npz, name);
    if (m == NULL)
        return exchange_refuse(x, SPMV_ERROR_FORMAT, "a sparse matrix without the array %s", name);
    const spmv_status st = read_member(npz, m, array);
    if (st != SPMV_OK)
        return st;
    const bool is_integer = array->numbers.class == NUMBERS_SIGNED || array->numbers.class == NUMBERS_UNSIGNED;
    if (array->is_text || array->dimensions != dimensions || (integers && !is_integer))
        return exchange_refuse(x, SPMV_ERROR_FORMAT, "%s.npy: expected %s with %d ind%s", name,
                               integers ? "integers" : "numbers", dimensions, dimensions == 1 ? "ex" : "ices");
    if (dimensions > 1 && array->by_columns)
        return exchange_refuse(x, SPMV_ERROR_UNSUPPORTED, "%s.npy: an array in the order of Fortran", name);
    return SPMV_OK;
}

static spmv_status fail_counts(struct exchange *x, const char *a, int64_t n, const char *b, int64_t m)
{
    return exchange_refuse(x, SPMV_ERROR_FORMAT, "%s.npy has %lld numbers, %s.npy %lld", a, (long long)n, b,
                           (long long)m);
}

static spmv_status read_compressed(struct npz *npz, bool by_rows)
{
    struct npy data, index, offsets;
    spmv_status st = SPMV_OK;
    TRY(read_array(npz, "data", 1, false, &data));
    TRY(read_array(npz, "indices", 1, true, &index));
    TRY(read_array(npz, "indptr", 1, true, &offsets));
    if (index.numbers.n != data.numbers.n)
        TRY(fail_counts(npz->x, "indices", index.numbers.n, "data", data.numbers.n));
    TRY(exchange_compressed(npz->x, by_rows, &offsets.numbers, "indptr.npy", &index.numbers, "indices.npy"));
    TRY(exchange_values(npz->x, &data.numbers, NULL));
done:
    return st;
}

/* save_npz writes row and col; coordinate arrays of SciPy also have coords, 2 x n. */
static spmv_status read_coordinates(struct npz *npz)
{
    struct npy data, row, col;
    spmv_status st = SPMV_OK;
    TRY(read_array(npz, "data", 1, false, &data));
    if (find(npz, "coords") != NULL) {
        TRY(read_array(npz, "coords", 2, true, &row));
        if (row.shape[0] != 2)
            TRY(fail_counts(npz->x, "coords", row.numbers.n, "data", data.numbers.n));
        row.numbers.n = row.shape[1];
        col = row;
        col.numbers.at += row.numbers.n * row.numbers.width;
    } else {
        TRY(read_array(npz, "row", 1, true, &row));
        TRY(read_array(npz, "col", 1, true, &col));
    }
    if (row.numbers.n != data.numbers.n || col.numbers.n != data.numbers.n)
        TRY(fail_counts(npz->x, "row", row.numbers.n, "data", data.numbers.n));
    TRY(exchange_coordinates(npz->x, &row.numbers, &col.numbers));
    TRY(exchange_values(npz->x, &data.numbers, NULL));
done:
    return st;
}

/* Makes entries of blocks. x has the block rows and columns of the blocks. */
static spmv_status spread_blocks(struct exchange *x, int64_t rows, int64_t cols, int64_t height, int64_t width)
{
    spmv_status st = exchange_spread(x);
    int64_t *const block_row = x->row;
    int32_t *const block_col = x->col;
    const int64_t blocks = x->entries;
    int64_t k = 0;
    x->row = x->col = NULL;
    x->rows = rows;
    x->cols = cols;
    if (st == SPMV_OK)
        st = exchange_allocate(x, blocks * height * width);
    for (int64_t b = 0; b < blocks && st == SPMV_OK; b++)
        for (int64_t i = 0; i < height; i++)
            for (int64_t j = 0; j < width; j++, k++) {
                ((int64_t *)x->row)[k] = block_row[b] * height + i;
                x->col[k] = (int32_t)(block_col[b] * width + j);
            }
    host_free_all(block_row, block_col);
    return st;
}

static spmv_status read_blocks(struct npz *npz)
{
    struct exchange *const x = npz->x;
    struct npy data, index, offsets;
    const int64_t rows = x->rows, cols = x->cols;
    spmv_status st = SPMV_OK;
    TRY(read_array(npz, "data", 3, false, &data));
    TRY(read_array(npz, "indices", 1, true, &index));
    TRY(read_array(npz, "indptr", 1, true, &offsets));
    const int64_t height = data.shape[1], width = data.shape[2];
    if (index.numbers.n != data.shape[0])
        TRY(fail_counts(x, "indices", index.numbers.n, "data", data.numbers.n));
    if (height < 1 || width < 1 || rows % height != 0 || cols % width != 0)
        TRY(exchange_refuse(x, SPMV_ERROR_FORMAT,
                            "data.npy: blocks of %lld x %lld do not divide a matrix of %lld x %lld", (long long)height,
                            (long long)width, (long long)rows, (long long)cols));
    x->rows = rows / height;
    x->cols = cols / width;
    TRY(exchange_compressed(x, true, &offsets.numbers, "indptr.npy", &index.numbers, "indices.npy"));
    TRY(spread_blocks(x, rows, cols, height, width));
    TRY(exchange_values(x, &data.numbers, NULL));
done:
    return st;
}

/* Number j of diagonal d lies in column j and row j - offset. SciPy drops the zeros of diagonals. */
static spmv_status take_diagonals(struct exchange *x, const struct npy *data, const struct npy *offsets)
{
    const int64_t count = data->shape[0], length = data->shape[1];
    const size_t size = spmv_type_size(x->type);
    const int parts = type_is_complex(x->type) ? 2 : 1;
    bool fits = true;
    int64_t n = 0;
    spmv_status st = exchange_allocate(x, data->numbers.n);
    for (int64_t d = 0; d < count && st == SPMV_OK; d++) {
        const int64_t offset = integer_of(&offsets->numbers, d, &fits);
        if (offset <= -x->rows || offset >= x->cols)
            continue;
        for (int64_t j = max_i64(0, offset); j < min_i64(length, min_i64(x->cols, x->rows + offset)); j++) {
            const int64_t k = d * length + j;
            bool zero = true;
            for (int i = 0; i < parts; i++)
                zero = zero && real_at(type_part(x->type), x->val, k * parts + i) == 0;
            if (zero)
                continue;
            ((int64_t *)x->row)[n] = j - offset;
            x->col[n] = (int32_t)j;
            copy_value(x->val, n++, x->val, k, size);
        }
    }
    x->entries = n;
    return st;
}

static spmv_status read_diagonals(struct npz *npz)
{
    struct npy data, offsets;
    spmv_status st = SPMV_OK;
    TRY(read_array(npz, "data", 2, false, &data));
    TRY(read_array(npz, "offsets", 1, true, &offsets));
    if (offsets.numbers.n != data.shape[0])
        TRY(fail_counts(npz->x, "offsets", offsets.numbers.n, "data", data.shape[0]));
    npz->x->dense = true; /* of the diagonals: true alone is no pattern */
    TRY(exchange_values(npz->x, &data.numbers, NULL));
    npz->x->dense = false;
    TRY(take_diagonals(npz->x, &data, &offsets));
done:
    return st;
}

/* The name of the format: bytes or characters of 4 bytes. */
static void format_name(const struct npy *array, char name[8])
{
    int n = 0;
    for (int i = 0; i < array->numbers.width && n < 7; i++)
        if (array->numbers.at[i] != 0)
            name[n++] = (char)array->numbers.at[i];
    name[n] = '\0';
}

static spmv_status read_sparse(struct npz *npz, const struct zip_member *format)
{
    struct exchange *const x = npz->x;
    struct npy array, shape;
    char name[8] = "";
    bool fits = true;
    spmv_status st = SPMV_OK;
    TRY(read_member(npz, format, &array));
    if (!array.is_text || array.numbers.n != 1)
        TRY(exchange_refuse(x, SPMV_ERROR_FORMAT, "format.npy: not the name of a sparse format"));
    format_name(&array, name);
    TRY(read_array(npz, "shape", 1, true, &shape));
    if (shape.numbers.n != 2)
        TRY(exchange_refuse(x, SPMV_ERROR_FORMAT, "shape.npy: %lld numbers; a matrix has 2",
                            (long long)shape.numbers.n));
    TRY(exchange_shape(x, shape.numbers.at, integer_of(&shape.numbers, 0, &fits),
                       integer_of(&shape.numbers, 1, &fits)));
    x->sums = true;
    if (strcmp(name, "csr") == 0 || strcmp(name, "csc") == 0)
        TRY(read_compressed(npz, name[2] == 'r'));
    else if (strcmp(name, "coo") == 0)
        TRY(read_coordinates(npz));
    else if (strcmp(name, "bsr") == 0)
        TRY(read_blocks(npz));
    else if (strcmp(name, "dia") == 0)
        TRY(read_diagonals(npz));
    else
        TRY(exchange_refuse(x, SPMV_ERROR_UNSUPPORTED, "format.npy: the sparse format \"%s\" is not read", name));
done:
    return st;
}

/* Names of the members, for a message. */
static void list_names(const struct npz *npz, char *names, size_t room)
{
    size_t n = 0;
    names[0] = '\0';
    for (int64_t i = 0; i < npz->count && n + 80 < room; i++) {
        const struct zip_member *const m = &npz->members[i];
        const int length = (int)min_i64(m->name_length > 4 ? m->name_length - 4 : m->name_length, 60);
        n += (size_t)snprintf(names + n, room - n, "%s%.*s", i > 0 ? ", " : "", length, m->name);
    }
}

/* The array that is named, or the only one. */
static spmv_status read_dense(struct npz *npz)
{
    struct exchange *const x = npz->x;
    const struct zip_member *m = NULL;
    struct npy array;
    char names[320];
    int64_t arrays = 0;
    for (int64_t i = 0; i < npz->count; i++) {
        const struct zip_member *const one = &npz->members[i];
        if (one->name_length > 4 && memcmp(one->name + one->name_length - 4, ".npy", 4) == 0) {
            arrays++;
            m = one;
        }
    }
    list_names(npz, names, sizeof names);
    if (arrays == 0)
        return exchange_fail(x, NULL, "a zip archive without arrays of NumPy; unpack it first");
    if (x->member != NULL)
        m = find(npz, x->member);
    if (m == NULL)
        return exchange_refuse(x, SPMV_ERROR_OPEN, "no array %s; there are %s", x->member, names);
    if (x->member == NULL && arrays > 1)
        return exchange_refuse(x, SPMV_ERROR_OPEN, "several arrays: %s; name one: FILE.npz:NAME", names);
    const spmv_status st = read_member(npz, m, &array);
    return st == SPMV_OK ? npy_dense(x, "array", &array) : st;
}

spmv_status npz_read(struct exchange *x)
{
    struct npz npz = {.x = x};
    spmv_status st = zip_list(x, &npz.members, &npz.count);
    if (st == SPMV_OK) {
        const struct zip_member *const format = find(&npz, "format");
        st = format != NULL && x->member == NULL ? read_sparse(&npz, format) : read_dense(&npz);
    }
    for (int i = 0; i < ARRAYS; i++)
        host_free(npz.memory[i]);
    host_free(npz.members);
    return st;
}

/* ---------------------------------------------------------------- writing */

/* A member: an array in memory as it is stored. */
struct stored {
    const char *name, *type, *shape;
    const void *at;
    int64_t bytes;
};

static spmv_status put_array(struct sink *sink, const struct stored *array, struct zip_written *m)
{
    char head[NPY_HEAD];
    const int n = npy_head(head, array->type, array->shape);
    *m =
        (struct zip_written){array->name, n + array->bytes, 0, crc32_of(crc32_of(0, head, n), array->at, array->bytes)};
    spmv_status st = zip_begin_member(sink, m);
    if (st == SPMV_OK)
        st = sink_put(sink, head, n);
    return st == SPMV_OK ? sink_put(sink, array->at, array->bytes) : st;
}

/* A matrix as csr. SciPy wants indices and offsets of the same width. */
spmv_status npz_write_matrix(const struct exchange_matrix *m, struct sink *sink)
{
    const spmv_csr *const a = m->a;
    const bool wide = a->nnz > INT32_MAX;
    const int width = wide ? 8 : 4;
    const int64_t shape[2] = {a->rows, a->cols};
    const int64_t value_bytes = a->val != NULL ? (int64_t)spmv_type_size(a->type) : 1;
    char lengths[2][32];
    void *offsets = NULL, *index = NULL, *ones = NULL;
    spmv_status st = SPMV_OK;
    struct zip_written written[5];
    if (host_is_big())
        return context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED, "%.300s: .npz is written on little-endian machines only",
                            m->path);
    snprintf(lengths[0], sizeof lengths[0], "(%lld,)", (long long)a->nnz);
    snprintf(lengths[1], sizeof lengths[1], "(%lld,)", (long long)a->rows + 1);
    TRY(host_alloc(m->ctx, (a->rows + 1) * width, "row offsets", &offsets));
    for (int64_t i = 0; i <= a->rows; i++)
        put_bytes((unsigned char *)offsets + i * width, (uint64_t)row_first(a, i), width, false);
    if (wide) {
        TRY(host_alloc(m->ctx, a->nnz * width, "columns", &index));
        for (int64_t k = 0; k < a->nnz; k++)
            ((int64_t *)index)[k] = a->col[k];
    }
    if (a->val == NULL) {
        TRY(host_alloc(m->ctx, max_i64(1, a->nnz), "values", &ones));
        memset(ones, 1, (size_t)max_i64(1, a->nnz));
    }
    const char *const integers = wide ? "<i8" : "<i4";
    const struct stored arrays[5] = {{"indices.npy", integers, lengths[0], wide ? index : a->col, a->nnz * width},
                                     {"indptr.npy", integers, lengths[1], offsets, (a->rows + 1) * width},
                                     {"format.npy", "|S3", "()", "csr", 3},
                                     {"shape.npy", "<i8", "(2,)", shape, (int64_t)sizeof shape},
                                     {"data.npy", a->val != NULL ? npy_type(a->type) : "|b1", lengths[0],
                                      a->val != NULL ? a->val : ones, a->nnz * value_bytes}};
    for (int i = 0; i < 5; i++)
        TRY(put_array(sink, &arrays[i], &written[i]));
    TRY(zip_end(sink, written, 5));
done:
    host_free_all(offsets, index, ones);
    return st;
}

/* As an archive of one array, x. */
spmv_status npz_write_vectors(const struct exchange_vectors *v, struct sink *sink)
{
    char shape[64];
    struct zip_written written;
    if (host_is_big())
        return context_fail(v->ctx, SPMV_ERROR_UNSUPPORTED, "%.300s: .npz is written on little-endian machines only",
                            v->path);
    npy_shape(v, shape);
    const struct stored array = {"x.npy", npy_type(v->type), shape, v->values,
                                 v->n * v->k * (int64_t)spmv_type_size(v->type)};
    const spmv_status st = put_array(sink, &array, &written);
    return st == SPMV_OK ? zip_end(sink, &written, 1) : st;
}
