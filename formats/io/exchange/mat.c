/* MATLAB files of version 5 (.mat): elements with a tag of type and length, in either byte order. Source: MAT-File
 * Format, The MathWorks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/exchange/mat.h"

#include <stdio.h>

#include "formats/io/packed/deflate.h"

/* Types of elements, classes and flags of arrays. */
enum { INT8 = 1, UINT8 = 2, INT32 = 5, UINT32 = 6, SINGLE = 7, DOUBLE = 9, UINT64 = 13, MATRIX = 14, COMPRESSED = 15 };
enum { CLASS_STRUCT = 2, CLASS_SPARSE = 5, CLASS_DOUBLE = 6, CLASS_SINGLE = 7, CLASS_UINT64 = 15 };
enum { IS_LOGICAL = 0x0200, IS_COMPLEX = 0x0800 };
enum { HEAD = 128, VERSION_AT = 124, ORDER_AT = 126, TAG = 8, STRUCT_DEPTH = 3 };

bool mat_begins(const unsigned char *head, int64_t bytes)
{
    static const char text[] = "MATLAB 5.0 MAT-file";
    if (bytes >= (int64_t)sizeof text - 1 && memcmp(head, text, sizeof text - 1) == 0)
        return true;
    return bytes >= HEAD && u32_at(head, false) != 0 &&
           (memcmp(head + VERSION_AT, "\0\1IM", 4) == 0 || memcmp(head + VERSION_AT, "\1\0MI", 4) == 0);
}

/* ---------------------------------------------------------------- the list of variables */

spmv_status mat_list_add(struct exchange *x, struct mat_list *list, const struct mat_variable *variable)
{
    if (list->count == list->room) {
        void *memory = list->variable;
        const int64_t room = max_i64(16, 2 * list->room);
        const spmv_status st = host_resize(x->ctx, room * (int64_t)sizeof *variable, "variables of a file", &memory);
        list->variable = memory;
        if (st != SPMV_OK)
            return st;
        list->room = room;
    }
    list->variable[list->count++] = *variable;
    return SPMV_OK;
}

void mat_name(char name[MAT_NAME], const char *prefix, const char *field, int64_t length)
{
    snprintf(name, MAT_NAME, "%.*s%s%.*s", MAT_NAME / 2 - 2, prefix, prefix[0] != '\0' ? "." : "",
             (int)min_i64(length, MAT_NAME / 2), field);
}

/* The only variable of this kind, or the one with the name. */
static const struct mat_variable *only(const struct mat_list *list, bool sparse, const char *usual, int64_t *count)
{
    const struct mat_variable *found = NULL;
    *count = 0;
    for (int64_t i = 0; i < list->count; i++) {
        if (strcmp(list->variable[i].name, usual) == 0) {
            *count = 1;
            return &list->variable[i];
        }
        if (list->variable[i].sparse == sparse) {
            found = &list->variable[i];
            ++*count;
        }
    }
    return found;
}

spmv_status mat_choose(struct exchange *x, const struct mat_list *list, const struct mat_variable **chosen)
{
    char names[320] = "";
    size_t n = 0;
    int64_t first = 0, second = 0;
    for (int64_t i = 0; i < list->count; i++) {
        const struct mat_variable *const v = &list->variable[i];
        if (x->member != NULL && strcmp(v->name, x->member) == 0) {
            *chosen = v;
            return SPMV_OK;
        }
        if (n + 60 < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%.30s (%s)", i > 0 ? ", " : "", v->name,
                                  v->sparse ? "sparse" : "dense");
    }
    if (list->count == 0)
        return exchange_fail(x, NULL, "a MATLAB file without matrices or vectors");
    if (x->member != NULL)
        return exchange_refuse(x, SPMV_ERROR_OPEN, "no variable %s; there are %s", x->member, names);
    *chosen = only(list, !x->vectors, x->vectors ? "Problem.b" : "Problem.A", &first);
    if (first == 0)
        *chosen = only(list, x->vectors, "", &second);
    if (first == 1 || (first == 0 && second == 1))
        return SPMV_OK;
    return exchange_refuse(x, SPMV_ERROR_OPEN, "several variables: %s; name one: FILE.mat:NAME", names);
}

/* ---------------------------------------------------------------- elements */

struct element {
    int type;
    int64_t n; /* bytes */
    const unsigned char *at, *next;
};

/* Reads the tag at p. */
static spmv_status take(struct exchange *x, const unsigned char *p, const unsigned char *end, bool big,
                        struct element *e)
{
    *e = (struct element){.at = p, .next = end};
    if (end - p < TAG)
        return exchange_fail(x, p, "an element of the MATLAB file is cut short");
    const uint32_t word = u32_at(p, big);
    const bool is_small = word >> 16 != 0;
    e->type = (int)(is_small ? word & 0xffff : word);
    e->n = is_small ? word >> 16 : u32_at(p + 4, big);
    e->at = p + (is_small ? 4 : TAG);
    if (e->n > (is_small ? 4 : end - e->at))
        return exchange_fail(x, p, "an element of %lld bytes, which the MATLAB file does not have", (long long)e->n);
    const int64_t padding = is_small ? 4 - e->n : e->type == COMPRESSED ? 0 : (8 - e->n % 8) % 8;
    e->next = end - e->at - e->n < padding ? end : e->at + e->n + padding;
    return SPMV_OK;
}

/* Takes the next element of the parts of a matrix. */
static spmv_status take_part(struct exchange *x, const unsigned char **p, const unsigned char *end, bool big,
                             struct element *e)
{
    const spmv_status st = take(x, *p, end, big, e);
    if (st == SPMV_OK)
        *p = e->next;
    return st;
}

/* The numbers of an element. */
static spmv_status numbers_of(struct exchange *x, const struct element *e, bool big, struct numbers *numbers)
{
    static const struct {
        enum number_class class;
        int width;
    } kinds[UINT64 + 1] = {
        [INT8] = {NUMBERS_SIGNED, 1},    [UINT8] = {NUMBERS_UNSIGNED, 1}, [3] = {NUMBERS_SIGNED, 2},
        [4] = {NUMBERS_UNSIGNED, 2},     [INT32] = {NUMBERS_SIGNED, 4},   [UINT32] = {NUMBERS_UNSIGNED, 4},
        [SINGLE] = {NUMBERS_REAL, 4},    [DOUBLE] = {NUMBERS_REAL, 8},    [12] = {NUMBERS_SIGNED, 8},
        [UINT64] = {NUMBERS_UNSIGNED, 8}};
    *numbers = (struct numbers){.at = e->at, .class = NUMBERS_UNSIGNED, .width = 1};
    if (e->type < 0 || e->type > UINT64 || kinds[e->type].width == 0)
        return exchange_fail(x, e->at, "an element of type %d of the MATLAB file has no numbers", e->type);
    *numbers = (struct numbers){e->at, e->n / kinds[e->type].width, kinds[e->type].class, kinds[e->type].width, big};
    return SPMV_OK;
}

/* ---------------------------------------------------------------- variables */

static spmv_status list_matrix(struct exchange *x, const unsigned char *p, const unsigned char *end, bool big,
                               const char *prefix, const char *field, int64_t field_length, int depth,
                               struct mat_list *list);

/* The fields of a struct of one element: their names have the same length each. */
static spmv_status list_fields(struct exchange *x, const unsigned char *p, const unsigned char *end, bool big,
                               const char *name, int depth, struct mat_list *list)
{
    struct element e, names;
    spmv_status st = SPMV_OK;
    TRY(take_part(x, &p, end, big, &e));
    TRY(take_part(x, &p, end, big, &names));
    const int64_t length = e.n >= 4 ? (int64_t)u32_at(e.at, big) : 0;
    for (int64_t i = 0; length > 0 && i < names.n / length; i++) {
        const char *const field = (const char *)names.at + i * length;
        TRY(take_part(x, &p, end, big, &e));
        if (e.type == MATRIX)
            TRY(list_matrix(x, e.at, e.at + e.n, big, name, field, (int64_t)strnlen(field, (size_t)length), depth + 1,
                            list));
    }
done:
    return st;
}

/* Lists what the matrix with the parts [p, end) holds: numbers, or a struct with such fields. field: its name, if it
 * is a field of the struct prefix. */
static spmv_status list_matrix(struct exchange *x, const unsigned char *p, const unsigned char *end, bool big,
                               const char *prefix, const char *field, int64_t field_length, int depth,
                               struct mat_list *list)
{
    struct element flags, dimensions, name;
    struct numbers sizes;
    bool fits = true;
    spmv_status st = SPMV_OK;
    if (p == end) /* an empty matrix may have no parts */
        return SPMV_OK;
    TRY(take_part(x, &p, end, big, &flags));
    TRY(take_part(x, &p, end, big, &dimensions));
    if (flags.n < 8)
        TRY(exchange_fail(x, flags.at, "a matrix of the MATLAB file without flags"));
    const uint32_t word = u32_at(flags.at, big);
    const int class = (int)(word & 0xff);
    if (class != CLASS_STRUCT && class != CLASS_SPARSE && (class < CLASS_DOUBLE || class > CLASS_UINT64))
        return SPMV_OK; /* cells, texts, objects */
    TRY(take_part(x, &p, end, big, &name));
    TRY(numbers_of(x, &dimensions, big, &sizes));
    if (sizes.n != 2 || sizes.class == NUMBERS_REAL)
        return SPMV_OK; /* an array with three indices */
    struct mat_variable v = {.sparse = class == CLASS_SPARSE,
                             .logical = (word & IS_LOGICAL) != 0,
                             .complex = (word & IS_COMPLEX) != 0,
                             .real_class = class == CLASS_SPARSE || class == CLASS_DOUBLE || class == CLASS_SINGLE,
                             .rows = integer_of(&sizes, 0, &fits),
                             .cols = integer_of(&sizes, 1, &fits),
                             .at = p,
                             .end = end,
                             .big = big};
    if (field != NULL)
        mat_name(v.name, prefix, field, field_length);
    else
        mat_name(v.name, "", (const char *)name.at, name.n);
    if (class != CLASS_STRUCT)
        return mat_list_add(x, list, &v);
    if (v.rows == 1 && v.cols == 1 && depth < STRUCT_DEPTH)
        TRY(list_fields(x, p, end, big, v.name, depth, list));
done:
    return st;
}

/* Unpacked elements, which variables point into. */
struct blocks {
    void **block; /* host_free, each and all */
    int64_t count, bytes;
};

/* Unpacks a compressed element, and lists the matrix in it. */
static spmv_status list_compressed(struct exchange *x, const struct element *packed, bool big, struct blocks *blocks,
                                   struct mat_list *list)
{
    void *memory = blocks->block;
    int64_t n = 0;
    struct element e;
    spmv_status st = host_resize(x->ctx, (blocks->count + 1) * (int64_t)sizeof(void *), "variables of a file", &memory);
    blocks->block = memory;
    if (st != SPMV_OK)
        return st;
    blocks->block[blocks->count] = NULL;
    st = deflate_unpack(x->ctx, x->name, packed->at, packed->n, false, x->max_bytes - x->size - blocks->bytes,
                        &blocks->block[blocks->count], &n);
    const unsigned char *const bytes = blocks->block[blocks->count++];
    blocks->bytes += n;
    if (st == SPMV_OK)
        st = take(x, bytes, bytes + n, big, &e);
    return st == SPMV_OK && e.type == MATRIX ? list_matrix(x, e.at, e.at + e.n, big, "", NULL, 0, 0, list) : st;
}

static spmv_status list_variables(struct exchange *x, bool big, struct blocks *blocks, struct mat_list *list)
{
    const unsigned char *p = x->bytes + HEAD, *const end = x->bytes + x->size;
    struct element e;
    spmv_status st = SPMV_OK;
    while (p < end && st == SPMV_OK) {
        st = take_part(x, &p, end, big, &e);
        if (st == SPMV_OK && e.type == COMPRESSED)
            st = list_compressed(x, &e, big, blocks, list);
        else if (st == SPMV_OK && e.type == MATRIX)
            st = list_matrix(x, e.at, e.at + e.n, big, "", NULL, 0, 0, list);
    }
    return st;
}

/* Takes the real and imaginary parts that follow at p: n numbers each. */
static spmv_status take_values(struct exchange *x, const struct mat_variable *v, const unsigned char *p, int64_t n)
{
    struct element e;
    struct numbers parts[2];
    spmv_status st = SPMV_OK;
    for (int i = 0; i < 1 + v->complex; i++) {
        TRY(take_part(x, &p, v->end, v->big, &e));
        TRY(numbers_of(x, &e, v->big, &parts[i]));
        if (parts[i].n < n)
            TRY(exchange_fail(x, e.at, "variable %s: %lld numbers, fewer than %lld", v->name, (long long)parts[i].n,
                              (long long)n));
        parts[i].n = n;
        if (v->logical && parts[i].width == 1)
            parts[i].class = NUMBERS_BOOLEAN;
    }
    TRY(exchange_values(x, &parts[0], v->complex ? &parts[1] : NULL));
    if (v->real_class && !v->logical && x->field == SPMV_FIELD_INTEGER)
        x->field = SPMV_FIELD_REAL; /* MATLAB stores whole numbers in fewer bytes */
done:
    return st;
}

/* Compressed columns. Rows and values may have more room than entries. */
static spmv_status take_sparse(struct exchange *x, const struct mat_variable *v)
{
    const unsigned char *p = v->at;
    struct element e;
    struct numbers ir, jc;
    bool fits = true;
    spmv_status st = SPMV_OK;
    TRY(take_part(x, &p, v->end, v->big, &e));
    TRY(numbers_of(x, &e, v->big, &ir));
    TRY(take_part(x, &p, v->end, v->big, &e));
    TRY(numbers_of(x, &e, v->big, &jc));
    if (ir.class > NUMBERS_UNSIGNED || jc.class > NUMBERS_UNSIGNED || jc.n < 1)
        TRY(exchange_fail(x, v->at, "variable %s: its indices are not integers, or missing", v->name));
    const int64_t entries = integer_of(&jc, jc.n - 1, &fits);
    if (entries < 0 || entries > ir.n)
        TRY(exchange_fail(x, e.at, "variable %s: %lld entries, but %lld rows of entries", v->name, (long long)entries,
                          (long long)ir.n));
    ir.n = entries;
    TRY(exchange_compressed(x, false, &jc, "jc", &ir, "ir"));
    TRY(take_values(x, v, p, entries));
done:
    return st;
}

spmv_status mat_read(struct exchange *x)
{
    struct mat_list list = {.count = 0};
    struct blocks blocks = {.count = 0};
    const struct mat_variable *v = NULL;
    int64_t count = 0;
    spmv_status st = SPMV_OK;
    if (x->size < HEAD)
        return exchange_fail(x, NULL, "a MATLAB file that is cut short within its head of %d bytes", HEAD);
    TRY(list_variables(x, memcmp(x->bytes + ORDER_AT, "MI", 2) == 0, &blocks, &list));
    TRY(mat_choose(x, &list, &v));
    TRY(exchange_shape(x, v->at, v->rows, v->cols));
    x->dense = !v->sparse;
    if (v->sparse)
        TRY(take_sparse(x, v));
    else if (multiply_fits(v->rows, v->cols, &count))
        TRY(take_values(x, v, v->at, count));
    else
        TRY(exchange_fail(x, v->at, "variable %s: %lld x %lld numbers do not fit in 63 bits", v->name,
                          (long long)v->rows, (long long)v->cols));
done:
    for (int64_t i = 0; i < blocks.count; i++)
        host_free(blocks.block[i]);
    host_free_all(blocks.block, list.variable);
    return st;
}

/* ---------------------------------------------------------------- writing */

static int64_t padded(int64_t bytes)
{
    return ceil_divide(bytes, 8) * 8;
}

static spmv_status put_tag(struct sink *sink, int type, int64_t bytes)
{
    const spmv_status st = sink_put_integer(sink, type, 4, false);
    return st == SPMV_OK ? sink_put_integer(sink, bytes, 4, false) : st;
}

static spmv_status put_padding(struct sink *sink, int64_t bytes)
{
    return sink_put(sink, "\0\0\0\0\0\0\0", padded(bytes) - bytes);
}

/* The head of the file and of its only variable; bytes: of the parts after the name. */
static spmv_status put_head(spmv_context *ctx, const char *path, struct sink *sink, char name, uint32_t flags,
                            int64_t nzmax, int64_t rows, int64_t cols, int64_t bytes)
{
    enum { PARTS = 16 + 16 + 16 }; /* flags, sizes and name, with their tags */
    char head[HEAD + 1];
    spmv_status st = SPMV_OK;
    if (rows > INT32_MAX || cols > INT32_MAX || bytes > INT32_MAX - PARTS)
        return context_fail(
            ctx, SPMV_ERROR_LIMIT,
            "%.300s: a MATLAB file of version 5 has at most %d bytes in a variable, and rows and columns "
            "below 2^31; write .npz or .spmv",
            path, INT32_MAX);
    snprintf(head, sizeof head, "%-124s", "MATLAB 5.0 MAT-file, written by spmv");
    memset(head + 116, 0, 8);
    memcpy(head + VERSION_AT, "\0\1IM", 4);
    TRY(sink_put(sink, head, HEAD));
    TRY(put_tag(sink, MATRIX, PARTS + bytes));
    TRY(put_tag(sink, UINT32, 8));
    TRY(sink_put_integer(sink, flags, 4, false));
    TRY(sink_put_integer(sink, nzmax, 4, false));
    TRY(put_tag(sink, INT32, 8));
    TRY(sink_put_integer(sink, rows, 4, false));
    TRY(sink_put_integer(sink, cols, 4, false));
    TRY(put_tag(sink, INT8, 1));
    TRY(sink_put(sink, &name, 1));
    TRY(put_padding(sink, 1));
done:
    return st;
}

/* n numbers as f64: every stride-th of values, from the first on. */
static spmv_status put_part(struct sink *sink, spmv_type type, const void *values, int64_t first, int64_t stride,
                            int64_t n)
{
    spmv_status st = put_tag(sink, DOUBLE, 8 * n);
    for (int64_t k = 0; k < n && st == SPMV_OK; k++)
        st = sink_put_reals(sink, type, (const char *)values + (size_t)(first + k * stride) * spmv_type_size(type), 1,
                            true, false);
    return st;
}

spmv_status mat_write_matrix(const struct exchange_matrix *m, struct sink *sink)
{
    spmv_matrix *columns = NULL;
    spmv_csr a;
    spmv_status st = SPMV_OK;
    TRY(csr_transpose(m->ctx, m->a, &columns));
    spmv_matrix_view(columns, &a);
    const int parts = a.val == NULL ? 0 : type_is_complex(a.type) ? 2 : 1;
    const int64_t values = parts > 0 ? parts * (TAG + min_i64(a.nnz, INT32_MAX) * 8) : TAG + padded(a.nnz);
    const uint32_t flags = CLASS_SPARSE | (parts == 2 ? IS_COMPLEX : 0) | (parts == 0 ? IS_LOGICAL : 0);
    TRY(put_head(m->ctx, m->path, sink, 'A', flags, a.nnz, a.cols, a.rows,
                 TAG + padded(4 * a.nnz) + TAG + padded(4 * (a.rows + 1)) + values));
    TRY(put_tag(sink, INT32, 4 * a.nnz));
    for (int64_t k = 0; k < a.nnz; k++)
        TRY(sink_put_integer(sink, a.col[k], 4, false));
    TRY(put_padding(sink, 4 * a.nnz));
    TRY(put_tag(sink, INT32, 4 * (a.rows + 1)));
    for (int64_t i = 0; i <= a.rows; i++)
        TRY(sink_put_integer(sink, row_first(&a, i), 4, false));
    TRY(put_padding(sink, 4 * (a.rows + 1)));
    for (int i = 0; i < parts; i++)
        TRY(put_part(sink, type_part(a.type), a.val, i, parts, a.nnz));
    if (parts == 0) {
        TRY(put_tag(sink, UINT8, a.nnz));
        for (int64_t k = 0; k < a.nnz; k++)
            TRY(sink_put(sink, "\1", 1));
        TRY(put_padding(sink, a.nnz));
    }
done:
    spmv_matrix_destroy(columns);
    return st;
}

spmv_status mat_write_vectors(const struct exchange_vectors *v, struct sink *sink)
{
    const int parts = type_is_complex(v->type) ? 2 : 1;
    spmv_status st = SPMV_OK;
    TRY(put_head(v->ctx, v->path, sink, 'x', CLASS_DOUBLE | (parts == 2 ? IS_COMPLEX : 0), 0, v->n, v->k,
                 parts * (TAG + min_i64(v->n * v->k, INT32_MAX) * 8)));
    for (int i = 0; i < parts; i++) {
        TRY(put_tag(sink, DOUBLE, 8 * v->n * v->k));
        for (int64_t k = 0; k < v->n * v->k; k++) {
            const int64_t number = k % v->n * v->k + k / v->n; /* column by column */
            TRY(sink_put_reals(sink, type_part(v->type),
                               (const char *)v->values +
                                   (size_t)(number * parts + i) * spmv_type_size(type_part(v->type)),
                               1, true, false));
        }
    }
done:
    return st;
}
