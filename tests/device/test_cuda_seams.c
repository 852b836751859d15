/* Every kernel of the backend cuda, for every operator and type, at the seams of its tiles and
 * chunks, against simple loops.
 *
 * All values are small integers (for products 1 and -1), so every order of evaluation gives the
 * same floating-point result and results are compared for equality. Runs on a GPU and on the host
 * emulation of CUDA.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support.h"

#include "core/backend.h"
#include "core/loops/ops.h"

/* Bytes of a tile of the kernels: 64 for each of 256 threads. */
enum { TILE_BYTES = 64 * 256 };

/* argv[2] selects what runs: everything; "brief": each kernel once at the main seams, for checkers
 * that slow a GPU down a hundredfold; "repeat": only the repetitions, many, while the device does
 * other work; "none": nothing, only finds out whether there is a GPU. */
static spmv_context *context;
static bool real_gpu; /* false on the host emulation, which has few chunks and gets fewer sizes */
static bool brief, repeat_often;

/* A cut of n elements into segments: positions has count + 1 entries, the last is n. */
struct cut {
    int64_t n, count;
    int64_t *positions;
    unsigned char *flags;
};

enum cut_kind { ONE, EACH, RANDOM, EMPTY_SEGMENTS, EMPTY_ENDS, CUT_KINDS };

static int64_t length_of(enum cut_kind kind, int64_t s, uint64_t *random)
{
    const uint64_t r = support_random(random);
    switch (kind) {
    case EACH:
        return 1;
    case RANDOM:
        return r % 7 == 0 ? (int64_t)(r >> 32) % 700 : (int64_t)(r >> 32) % 6;
    /* runs of empty segments longer than a block, then one of a few hundred elements */
    case EMPTY_SEGMENTS:
        return s % 1500 == 1499 ? (int64_t)(r >> 32) % 900 : s % 3000 < 40;
    default:
        return INT64_MAX;
    }
}

static struct cut make_cut(enum cut_kind kind, int64_t n, uint64_t *random)
{
    struct cut cut = {.n = n};
    int64_t room = 2 * n + 8000, at = 0;
    cut.positions = malloc((size_t)(room + 1) * sizeof *cut.positions);
    cut.flags = calloc((size_t)n + 1, 1);
    assert_non_null(cut.positions);
    assert_non_null(cut.flags);
    if (kind == EMPTY_ENDS)
        while (cut.count < 700)
            cut.positions[cut.count++] = 0;
    while (at < n && cut.count < room - 800) {
        const int64_t length = length_of(kind, cut.count, random);
        cut.positions[cut.count++] = at;
        if (length > 0)
            cut.flags[at] = (unsigned char)(1 + support_random(random) % 255);
        at = length < n - at ? at + length : n;
    }
    if (at < n)
        cut.flags[at] = 1;
    do
        cut.positions[cut.count++] = at;
    while (kind == EMPTY_ENDS && cut.count < 1400 && (at = n) == n);
    cut.positions[cut.count] = n;
    cut.flags[0] = 0; /* element 0 starts a segment without a flag */
    return cut;
}

static void free_cut(struct cut *cut)
{
    support_free(cut->positions, cut->flags);
}

/* An array on the device that starts `skew` bytes after an aligned address. *block is the memory to
 * free. */
static void *upload_at(const void *host, int64_t bytes, int skew, void **block)
{
    assert_ok(context, spmv_alloc(context, bytes + 64, block));
    if (bytes > 0)
        assert_ok(context, spmv_upload(context, host, (char *)*block + skew, bytes));
    return (char *)*block + skew;
}

/* Memory for results, filled with a pattern that results must replace. */
static void *alloc_poisoned(int64_t bytes)
{
    unsigned char *const poison = malloc((size_t)bytes);
    assert_non_null(poison);
    memset(poison, 0xa5, (size_t)bytes);
    void *const block = support_upload(context, poison, bytes);
    free(poison);
    return block;
}

static void *scratch_of(int64_t bytes)
{
    void *scratch = NULL;
    assert_ok(context, context_scratch(context, bytes, &scratch));
    return scratch;
}

/* The positions as 32- or 64-bit integers on the device. */
static spmv_segments upload_segments(const struct cut *cut, spmv_segment_form form, int bits, int skew, void **block)
{
    const int64_t entries = cut->count + (form == SPMV_SEGMENT_OFFSETS);
    spmv_segments segments = {.form = form, .bits = bits, .count = cut->count};
    if (form == SPMV_SEGMENT_FLAGS) {
        segments.bits = 8;
        segments.heads = upload_at(cut->flags, cut->n, skew, block);
    } else if (bits == 64) {
        segments.heads = upload_at(cut->positions, entries * 8, 0, block);
    } else {
        int32_t *const narrow = malloc((size_t)entries * sizeof *narrow);
        assert_non_null(narrow);
        for (int64_t s = 0; s < entries; s++)
            narrow[s] = (int32_t)cut->positions[s];
        segments.heads = upload_at(narrow, entries * 4, 0, block);
        free(narrow);
    }
    return segments;
}

/* ---------------------------------- a set of functions for each operator and type */

struct pair {
    spmv_op op;
    spmv_type type;
    int64_t size;
    void (*fill)(void *values, int64_t n, uint64_t *random);
    void (*scan)(const void *in, const unsigned char *flags, int exclusive, void *out, int64_t n);
    void (*fold)(const void *in, int64_t begin, int64_t end, void *out, int64_t to);
    void (*combine)(const void *a, int64_t a_stride, const void *b, void *out, int64_t n);
    int64_t (*differs)(const void *a, const void *b, int64_t n);
};

/* values: 1 or -1 for products; mostly 0, which is skipped, for last; else -8 ... 8, and sometimes
 * NaN for min and max of reals */
#define FILL_NAN_INTEGER(T) ((T)-100)
#define FILL_NAN_REAL(T) ((T)NAN)
#define FILL_INTEGER FILL_NUMBER
#define FILL_REAL FILL_NUMBER
#define FILL_NUMBER(T, OP, type_, CLASS, r)                                                                            \
    (T)(SPMV_##OP == SPMV_MUL                                               ? (r % 2 ? 1 : -1)                         \
        : SPMV_##OP == SPMV_LAST                                            ? (r % 50 ? 0 : r % 1000 + 1)              \
        : (SPMV_##OP == SPMV_MIN || SPMV_##OP == SPMV_MAX) && r % 5000 == 0 ? FILL_NAN_##CLASS(T)                      \
                                                                            : (T)(r % 17 - 8))
#define FILL_TUPLE(T, OP, type_, CLASS, r) fill_##type_(r)

static spmv_affine_f64 fill_affine_f64(int r)
{
    return (spmv_affine_f64){r % 2 ? 1 : -1, r / 2 % 17 - 8};
}

static spmv_segsum_f64 fill_segsum_f64(int r)
{
    const double x = r % 17 - 8;
    return (spmv_segsum_f64){x, x, x, x};
}

/* Numbers are the same if they are equal or both NaN; tuples here contain neither NaN nor negative
 * zero. */
#define SAME_INTEGER(x, y) ((x) == (y))
#define SAME_REAL(x, y) ((x) == (y) || ((x) != (x) && (y) != (y)))
#define SAME_TUPLE(x, y) (memcmp(&(x), &(y), sizeof(x)) == 0)

#define DEFINE(OP, op, TYPE, type_, T, CLASS)                                                                          \
    static void fill_##op##_##type_(void *values, int64_t n, uint64_t *random)                                         \
    {                                                                                                                  \
        T *const v = values;                                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const int r = (int)(support_random(random) >> 40);                                                         \
            v[i] = FILL_##CLASS(T, OP, type_, CLASS, r);                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    static void scan_##op##_##type_(const void *in, const unsigned char *flags, int exclusive, void *out, int64_t n)   \
    {                                                                                                                  \
        T sum = identity_##op##_##type_();                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            if (flags != NULL && flags[i])                                                                             \
                sum = identity_##op##_##type_();                                                                       \
            const T next = op_##op##_##type_(sum, ((const T *)in)[i]);                                                 \
            ((T *)out)[i] = exclusive ? sum : next;                                                                    \
            sum = next;                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static void fold_##op##_##type_(const void *in, int64_t begin, int64_t end, void *out, int64_t to)                 \
    {                                                                                                                  \
        T sum = identity_##op##_##type_();                                                                             \
        for (int64_t i = begin; i < end; i++)                                                                          \
            sum = op_##op##_##type_(sum, ((const T *)in)[i]);                                                          \
        ((T *)out)[to] = sum;                                                                                          \
    }                                                                                                                  \
    static void combine_##op##_##type_(const void *a, int64_t a_stride, const void *b, void *out, int64_t n)           \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((T *)out)[i] = op_##op##_##type_(((const T *)a)[i * a_stride], ((const T *)b)[i]);                        \
    }                                                                                                                  \
    static int64_t differs_##op##_##type_(const void *a, const void *b, int64_t n)                                     \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T x = ((const T *)a)[i], y = ((const T *)b)[i];                                                      \
            if (!SAME_##CLASS(x, y))                                                                                   \
                return i;                                                                                              \
        }                                                                                                              \
        return -1;                                                                                                     \
    }
SPMV_OPERATOR_PAIRS(DEFINE)
#undef DEFINE

#define ROW(OP, op_, TYPE, type_, T, CLASS)                                                                            \
    {SPMV_##OP,                                                                                                        \
     SPMV_##TYPE,                                                                                                      \
     (int64_t)sizeof(T),                                                                                               \
     fill_##op_##_##type_,                                                                                             \
     scan_##op_##_##type_,                                                                                             \
     fold_##op_##_##type_,                                                                                             \
     combine_##op_##_##type_,                                                                                          \
     differs_##op_##_##type_},
static const struct pair pairs[] = {SPMV_OPERATOR_PAIRS(ROW)};
#undef ROW
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

/* Compares an array on the device with the expected values. */
static void expect(const struct pair *p, const char *what, const void *expected, const void *device, int64_t n)
{
    void *const got = malloc((size_t)(n * p->size) + 1);
    assert_non_null(got);
    assert_ok(context, spmv_download(context, device, got, n * p->size));
    const int64_t at = p->differs(expected, got, n);
    free(got);
    if (at >= 0)
        fail_msg("%s, %s %s, n = %lld: element %lld differs", what, spmv_op_name(p->op), spmv_type_name(p->type),
                 (long long)n, (long long)at);
}

static void check_reduce_and_scan(const struct pair *p, int64_t n, int skew, uint64_t *random)
{
    void *const in = malloc((size_t)(n * p->size)), *const expected = malloc((size_t)(n * p->size));
    assert_non_null(in);
    assert_non_null(expected);
    p->fill(in, n, random);
    void *in_block, *out_block;
    char *const device = upload_at(in, n * p->size, skew, &in_block);
    char *const out = upload_at(expected, n * p->size, skew, &out_block);
    const struct backend_table *const b = context->backend;

    p->fold(in, 0, n, expected, 0);
    assert_ok(context,
              b->reduce(context, p->op, p->type, device, out, n, scratch_of(b->reduce_scratch(context, p->type, n))));
    expect(p, "reduce", expected, out, 1);
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        p->scan(in, NULL, exclusive, expected, n);
        void *const scratch = scratch_of(b->scan_scratch(context, p->type, n));
        const spmv_scan_kind kind = exclusive ? SPMV_EXCLUSIVE : SPMV_INCLUSIVE;
        assert_ok(context, b->scan(context, kind, p->op, p->type, device, out, n, scratch));
        expect(p, exclusive ? "exclusive scan" : "inclusive scan", expected, out, n);
        if (exclusive) { /* in place */
            assert_ok(context, b->scan(context, kind, p->op, p->type, device, device, n, scratch));
            expect(p, "exclusive scan in place", expected, device, n);
        }
    }
    support_free_in(context, in_block, out_block);
    support_free(in, expected);
}

static void check_segments(const struct pair *p, enum cut_kind cut_kind, int64_t n, int variant, uint64_t *random)
{
    static const spmv_segment_form forms[] = {SPMV_SEGMENT_FLAGS, SPMV_SEGMENT_STARTS, SPMV_SEGMENT_OFFSETS};
    struct cut cut = make_cut(cut_kind, n, random);
    const int64_t cells = n > cut.count ? n : cut.count;
    void *const in = malloc((size_t)(cells * p->size)), *const expected = malloc((size_t)(cells * p->size));
    assert_non_null(in);
    assert_non_null(expected);
    p->fill(in, n, random);
    void *in_block, *out_block, *heads_block;
    char *const device = upload_at(in, n * p->size, 0, &in_block);
    out_block = alloc_poisoned(cells * p->size);
    const struct backend_table *const b = context->backend;
    const int exclusive = variant % 2, bits = variant / 2 % 2 ? 32 : 64;
    for (int f = 0; f < 3; f++) {
        const spmv_segments segments = upload_segments(&cut, forms[f], bits, variant % 4, &heads_block);
        if (n > 0) {
            p->scan(in, cut.flags, exclusive, expected, n);
            assert_ok(context,
                      b->segscan(context, exclusive ? SPMV_EXCLUSIVE : SPMV_INCLUSIVE, p->op, p->type, &segments,
                                 device, out_block, n, scratch_of(b->segscan_scratch(context, p->type, &segments, n))));
            expect(p, exclusive ? "exclusive segscan" : "inclusive segscan", expected, out_block, n);
        }
        if (forms[f] != SPMV_SEGMENT_FLAGS) {
            for (int64_t s = 0; s < cut.count; s++)
                p->fold(in, cut.positions[s], cut.positions[s + 1], expected, s);
            assert_ok(context, b->segreduce(context, p->op, p->type, &segments, device, out_block, n,
                                            scratch_of(b->segreduce_scratch(context, p->type, &segments, n))));
            expect(p, "segreduce", expected, out_block, cut.count);
        }
        if (n > 0 && f == variant % 3) { /* in place, once; then the input is restored */
            p->scan(in, cut.flags, exclusive, expected, n);
            assert_ok(context,
                      b->segscan(context, exclusive ? SPMV_EXCLUSIVE : SPMV_INCLUSIVE, p->op, p->type, &segments,
                                 device, device, n, scratch_of(b->segscan_scratch(context, p->type, &segments, n))));
            expect(p, "segscan in place", expected, device, n);
            assert_ok(context, spmv_upload(context, in, device, n * p->size));
        }
        spmv_free(context, heads_block);
    }
    support_free_in(context, in_block, out_block);
    support_free(in, expected);
    free_cut(&cut);
}

/* Sizes at the seams. tile: elements of a tile; chunks: their maximum number, which is small on the
 * host emulation. */
static int seams(int64_t tile, int64_t *sizes)
{
    const int64_t chunks = real_gpu ? 2048 : 6;
    const int64_t all[] = {
        1, 2, 31, 32, 33, tile - 1, tile, tile + 1, 3 * tile + 7, chunks * tile - 1, 2 * chunks * tile + 12345};
    const int64_t few[] = {33, 3 * tile + 7};
    memcpy(sizes, brief ? few : all, brief ? sizeof few : sizeof all);
    return (int)(brief ? sizeof few / sizeof few[0] : sizeof all / sizeof all[0]);
}

static void reduce_and_scan_at_seams(void **state)
{
    (void)state;
    uint64_t random = 11;
    int64_t sizes[32];
    for (int p = 0; p < PAIRS; p++) {
        const int count = seams(TILE_BYTES / pairs[p].size, sizes);
        for (int s = 0; s < count; s++)
            check_reduce_and_scan(&pairs[p], sizes[s], s % 2 ? (int)pairs[p].size : 0, &random);
    }
}

static void segments_at_seams(void **state)
{
    (void)state;
    uint64_t random = 12;
    int64_t sizes[32];
    int variant = 0;
    for (int p = 0; p < PAIRS; p++) {
        const int count = seams(TILE_BYTES / pairs[p].size, sizes);
        for (int kind = 0; kind < CUT_KINDS; kind++)
            /* every size for the first and the last pair, a few sizes for the others; on an emulated GPU
             * for the first pair, and two sizes */
            for (int s = p + kind; s < p + kind +
                                           (brief                                    ? 1
                                            : p == 0 || (real_gpu && p == PAIRS - 1) ? count
                                            : real_gpu                               ? 3
                                                                                     : 2);
                 s++)
                check_segments(&pairs[p], (enum cut_kind)kind, sizes[s % count], variant++, &random);
    }
    for (int p = 0; p < PAIRS; p++)
        check_segments(&pairs[p], EMPTY_ENDS, 0, p, &random);
    if (brief && real_gpu) /* all chunks, some with two tiles */
        check_segments(&pairs[0], RANDOM, 2049 * (TILE_BYTES / pairs[0].size) + 5, 0, &random);
}

/* ------------------------------------------------------- map, gather, scatter */

/* The sum of the type; its fill and differs serve all functions of numbers. */
static const struct pair *sum_of(spmv_type type)
{
    for (int p = 0; p < PAIRS; p++)
        if (pairs[p].op == SPMV_ADD && pairs[p].type == type)
            return &pairs[p];
    fail_msg("no sum of %s", spmv_type_name(type));
    return NULL;
}

struct function_pair {
    spmv_function function;
    spmv_type type;
    void (*apply)(const void *in, void *out, int64_t n);
};
#define DEFINE(FN, fn, TYPE, type_, T, CLASS)                                                                          \
    static void apply_##fn##_##type_(const void *in, void *out, int64_t n)                                             \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((T *)out)[i] = function_##fn##_##type_(((const T *)in)[i]);                                               \
    }
SPMV_FUNCTION_PAIRS(DEFINE)
#undef DEFINE
#define ROW(FN, fn, TYPE, type_, T, CLASS) {SPMV_MAP_##FN, SPMV_##TYPE, apply_##fn##_##type_},
static const struct function_pair function_pairs[] = {SPMV_FUNCTION_PAIRS(ROW)};
#undef ROW
enum { FUNCTION_PAIRS = sizeof function_pairs / sizeof function_pairs[0] };

static void check_function(const struct function_pair *f, int64_t n, int skew, uint64_t *random)
{
    const struct pair *const p = sum_of(f->type);
    void *const in = support_zeros(n, (size_t)p->size), *const expected = support_zeros(n, (size_t)p->size);
    p->fill(in, n, random);
    f->apply(in, expected, n);
    void *block;
    void *const device = upload_at(in, n * p->size, skew * (int)p->size, &block);
    assert_ok(context, context->backend->map(context, f->function, f->type, device, device, n));
    expect(p, spmv_function_name(f->function), expected, device, n);
    spmv_free(context, block);
    support_free(in, expected);
}

/* out[i] = a[i] op b[i] in place of b, and s op a[i], where s is the last element of b. */
static void check_binary(const struct pair *p, int64_t n, int skew, uint64_t *random)
{
    const int64_t bytes = n * p->size;
    char *const a = malloc((size_t)bytes), *const b = malloc((size_t)bytes), *const expected = malloc((size_t)bytes);
    assert_true(a != NULL && b != NULL && expected != NULL);
    p->fill(a, n, random);
    p->fill(b, n, random);
    void *a_block, *b_block;
    void *const device_a = upload_at(a, bytes, skew * (int)p->size, &a_block);
    void *const device_b = upload_at(b, bytes, 0, &b_block);
    p->combine(a, 1, b, expected, n);
    assert_ok(context, context->backend->map_binary(context, p->op, p->type, device_a, device_b, device_b, n));
    expect(p, "map_binary", expected, device_b, n);
    const char *const scalar = b + bytes - p->size;
    p->combine(scalar, 0, a, expected, n);
    assert_ok(context, context->backend->map_scalar(context, p->op, p->type, scalar, device_a, device_b, n));
    expect(p, "map_scalar", expected, device_b, n);
    support_free_in(context, a_block, b_block);
    support_free(a, b, expected);
}

/* Element i = value, converted to the number type. */
static void put_number(spmv_type type, void *values, int64_t i, double value)
{
    switch ((int)type) {
#define CASE(NAME, name, number, T, CLASS, ARG)                                                                        \
    case SPMV_##NAME:                                                                                                  \
        ((T *)values)[i] = (T)value;                                                                                   \
        break;
        SPMV_NUMBER_TYPES(CASE, )
#undef CASE
    }
}

/* out[i] = 3 - 2 i, and 3 everywhere */
static void check_index(spmv_type type, int64_t n, int skew)
{
    const struct pair *const p = sum_of(type);
    void *const expected = support_zeros(n, (size_t)p->size), *const scalars = support_zeros(2, (size_t)p->size);
    const void *const first = scalars, *const step = (const char *)scalars + p->size;
    put_number(type, scalars, 0, 3);
    put_number(type, scalars, 1, -2);
    void *const block = alloc_poisoned((n + 1) * p->size);
    void *const device = (char *)block + skew * p->size;
    for (int64_t i = 0; i < n; i++)
        put_number(type, expected, i, 3 - 2 * (double)i);
    assert_ok(context, context->backend->map_index(context, type, first, step, device, n));
    expect(p, "map_index", expected, device, n);
    for (int64_t i = 0; i < n; i++)
        put_number(type, expected, i, 3);
    assert_ok(context, context->backend->map_index(context, type, first, NULL, device, n));
    expect(p, "fill", expected, device, n);
    spmv_free(context, block);
    support_free(expected, scalars);
}

/* a / b with b a power of two, alpha x + beta y with the scalars on the device or absent, and x .
 * y; all are exact. */
static void check_reals(spmv_type type, int64_t n, int skew, uint64_t *random)
{
    const struct pair *const p = sum_of(type);
    const int64_t bytes = n * p->size;
    const struct backend_table *const b = context->backend;
    double *const x = support_zeros(n, sizeof *x), *const y = support_zeros(n, sizeof *y);
    void *const expected = support_zeros(n, sizeof(double));
    const double scalars[2] = {3, -2};
    double dot = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = (double)(support_random(random) % 15) - 7;
        y[i] = 1 << support_random(random) % 4;
        dot += x[i] * y[i];
    }
    void *const host_x = support_as(type, x, n, 0), *const host_y = support_as(type, y, n, 0);
    void *const host_scalars = support_as(type, scalars, 2, 0);
    void *x_block, *y_block, *scalar_block;
    void *const dx = upload_at(host_x, bytes, skew * (int)p->size, &x_block);
    void *const dy = upload_at(host_y, bytes, 0, &y_block);
    char *const ds = upload_at(host_scalars, 2 * p->size, 0, &scalar_block);
    void *const scratch = scratch_of(b->dot_scratch(context, type, n));
    for (int form = 0; form < 4; form++) {
        const double alpha = form % 2 ? scalars[0] : 1, beta = form / 2 ? scalars[1] : 1;
        assert_ok(context, spmv_upload(context, host_y, dy, bytes));
        for (int64_t i = 0; i < n; i++)
            real_set(type, expected, i, alpha * x[i] + beta * y[i]);
        assert_ok(context,
                  b->map_axpby(context, type, form % 2 ? ds : NULL, dx, form / 2 ? ds + p->size : NULL, dy, n));
        expect(p, "axpby", expected, dy, n);
    }
    assert_ok(context, spmv_upload(context, host_y, dy, bytes));
    assert_ok(context, b->dot(context, type, dx, dy, ds, n, scratch));
    real_set(type, expected, 0, dot);
    expect(p, "dot", expected, ds, 1);
    for (int64_t i = 0; i < n; i++)
        real_set(type, expected, i, x[i] / y[i]);
    assert_ok(context, b->map_divide(context, type, dx, dy, dx, n));
    expect(p, "divide", expected, dx, n);
    void *const blocks[] = {x_block, y_block, scalar_block};
    for (int k = 0; k < 3; k++)
        spmv_free(context, blocks[k]);
    void *const all[] = {x, y, expected, host_x, host_y, host_scalars};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        free(all[k]);
}

static void maps_at_seams(void **state)
{
    (void)state;
    uint64_t random = 13;
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 255, 257, 1023, 1025, 4099};
    for (int s = 0; s < (int)(sizeof sizes / sizeof sizes[0]); s += brief ? 4 : 1) {
        for (int skew = 0; skew < 2; skew++) {
            for (int f = 0; f < FUNCTION_PAIRS; f++)
                check_function(&function_pairs[f], sizes[s], skew, &random);
#define CALL(NAME, name, value, T, CLASS, ARG) check_index(SPMV_##NAME, sizes[s], skew);
            SPMV_NUMBER_TYPES(CALL, )
#undef CALL
#define CALL(NAME, name, T) check_reals(SPMV_##NAME, sizes[s], skew, &random);
            REAL_LIST(CALL)
#undef CALL
            for (int p = 0; p < PAIRS; p++)
                check_binary(&pairs[p], sizes[s], skew, &random);
        }
    }
    if (real_gpu && !brief) { /* more than the maximum number of blocks of a grid */
        check_reals(SPMV_F64, 10000001, 0, &random);
        check_binary(&pairs[0], (int64_t)(1 << 16) * 256 * 4 + 77, 1, &random);
    }
}

/* Gather and scatter with a random permutation in which some indices are invalid: those elements
 * must not change. */
static void move(spmv_type type, int bits, int64_t n, uint64_t *random)
{
    const struct pair p = {SPMV_ADD,
                           type,
                           (int64_t)spmv_type_size(type),
                           NULL,
                           NULL,
                           NULL,
                           NULL,
                           type == SPMV_I32 ? differs_add_i32 : differs_add_i64};
    const int64_t bytes = n * p.size;
    char *const in = malloc((size_t)bytes), *const kept = malloc((size_t)bytes),
                *const expected = malloc((size_t)bytes);
    int64_t *const index = malloc((size_t)n * sizeof *index);
    int32_t *const narrow = malloc((size_t)n * sizeof *narrow);
    assert_true(in != NULL && kept != NULL && expected != NULL && index != NULL && narrow != NULL);
    for (int64_t b = 0; b < bytes; b++) {
        in[b] = (char)support_random(random);
        kept[b] = (char)support_random(random);
    }
    for (int64_t i = 0; i < n; i++)
        index[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t other = (int64_t)(support_random(random) % (uint64_t)(i + 1)), mine = index[i];
        index[i] = index[other];
        index[other] = mine;
    }
    for (int64_t i = 0; i < n; i += 3)
        index[i] = i % 2 ? n + i : -1 - i;
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (int32_t)index[i];
    void *in_block, *out_block, *index_block;
    void *const device = upload_at(in, bytes, 0, &in_block), *const out = upload_at(kept, bytes, 0, &out_block);
    void *const indices = upload_at(bits == 32 ? (void *)narrow : (void *)index, n * bits / 8, 0, &index_block);

    const struct move move = {NULL, type, device, indices, bits, out, n, n};
    memcpy(expected, kept, (size_t)bytes);
    for (int64_t i = 0; i < n; i++)
        if (index[i] >= 0 && index[i] < n)
            memcpy(expected + i * p.size, in + index[i] * p.size, (size_t)p.size);
    assert_ok(context, context->backend->gather(context, &move));
    expect(&p, "gather", expected, out, n);

    memcpy(expected, kept, (size_t)bytes);
    assert_ok(context, spmv_upload(context, kept, out, bytes));
    for (int64_t i = 0; i < n; i++)
        if (index[i] >= 0 && index[i] < n)
            memcpy(expected + index[i] * p.size, in + i * p.size, (size_t)p.size);
    assert_ok(context, context->backend->scatter(context, &move));
    expect(&p, "scatter", expected, out, n);

    support_free_in(context, in_block, out_block, index_block);
    support_free(in, kept, expected, index, narrow);
}

static void gather_and_scatter_at_seams(void **state)
{
    (void)state;
    uint64_t random = 14;
    static const int64_t sizes[] = {1, 255, 256, 257, 1023, 1024, 1025, 5000};
    for (int s = 0; s < (int)(sizeof sizes / sizeof sizes[0]); s++) {
        move(SPMV_I32, 32, sizes[s], &random);
        move(SPMV_I32, 64, sizes[s], &random);
        move(SPMV_I64, 32, sizes[s], &random);
        move(SPMV_I64, 64, sizes[s], &random);
    }
    if (real_gpu && !brief)
        move(SPMV_I64, 32, (int64_t)(1 << 16) * 256 * 4 + 99, &random);
}

/* Sums with rounding errors have the same bits every time. */
static void bits_repeat(void **state)
{
    (void)state;
    const int64_t n = real_gpu && !brief ? 9000001 : 40001;
    const int repeats = repeat_often ? 200 : real_gpu && !brief ? 20 : 3;
    uint64_t random = 15;
    double *const in = malloc((size_t)n * sizeof *in), *const first = malloc((size_t)n * sizeof *first);
    double *const again = malloc((size_t)n * sizeof *again);
    assert_true(in != NULL && first != NULL && again != NULL);
    for (int64_t i = 0; i < n; i++)
        in[i] = support_uniform(&random);
    struct cut cut = make_cut(RANDOM, n, &random);
    void *in_block, *out_block, *heads_block;
    void *const device = upload_at(in, n * 8, 0, &in_block), *const out = upload_at(in, n * 8, 0, &out_block);
    const spmv_segments segments = upload_segments(&cut, SPMV_SEGMENT_OFFSETS, 32, 0, &heads_block);
    void *const scratch = scratch_of(128 * 1024);
    spmv_context *noise = support_context();
    void *noise_block;
    assert_ok(noise, spmv_alloc(noise, n * 8, &noise_block));
    assert_ok(noise, spmv_upload(noise, in, noise_block, n * 8));
    const struct backend_table *const b = context->backend;
    for (int call = 0; call < 4; call++) {
        for (int repeat = 0; repeat < repeats; repeat++) {
            if (repeat_often) /* concurrently on another stream */
                assert_ok(noise, spmv_map(noise, SPMV_MAP_SQRT, SPMV_F64, noise_block, noise_block, n));
            int64_t count = n;
            if (call == 0) {
                assert_ok(context, b->scan(context, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, device, out, n, scratch));
            } else if (call == 1) {
                assert_ok(context,
                          b->segscan(context, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_F64, &segments, device, out, n, scratch));
            } else if (call == 2) {
                count = cut.count < n ? cut.count : n;
                assert_true(cut.count <= n);
                assert_ok(context, b->segreduce(context, SPMV_ADD, SPMV_F64, &segments, device, out, n, scratch));
            } else {
                count = 1;
                assert_ok(context, b->reduce(context, SPMV_ADD, SPMV_F64, device, out, n, scratch));
            }
            assert_ok(context, spmv_download(context, out, repeat == 0 ? first : again, count * 8));
            if (repeat > 0)
                assert_memory_equal(first, again, (size_t)count * 8);
        }
    }
    spmv_free(noise, noise_block);
    spmv_context_destroy(noise);
    support_free_in(context, in_block, out_block, heads_block);
    free_cut(&cut);
    support_free(in, first, again);
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    brief = support_brief(argc, argv);
    repeat_often = support_mode(argc, argv, "repeat");
    context = support_context();
    real_gpu = !support_host_plays(context);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_repeat),
        cmocka_unit_test(reduce_and_scan_at_seams),
        cmocka_unit_test(segments_at_seams),
        cmocka_unit_test(maps_at_seams),
        cmocka_unit_test(gather_and_scatter_at_seams),
    };
    const struct CMUnitTest repeats[] = {cmocka_unit_test(bits_repeat)};
    const int failed =
        repeat_often ? cmocka_run_group_tests(repeats, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
    spmv_context_destroy(context);
    return failed;
}
