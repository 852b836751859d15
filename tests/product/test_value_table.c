/* Value tables (plan option compression = 2). A product through a table has the bits of one
 * without: in every type, for every form of the columns, in short, empty and very long rows, with
 * an epilogue, with 64-bit offsets. 256 different values fit, 257 do not, wherever in the matrix
 * they are. Values may be replaced by few or many. A plan without a table describes the reason and
 * equals one without the option.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "product/plan_internal.h"

#include "tests/support/support_cache.h"

enum { MOST = 256, CAPACITY = 2048 };

struct matrix {
    int64_t rows, cols, nnz;
    int64_t *row_ptr;
    int32_t *col;
};

static void free_matrix(struct matrix *m)
{
    support_free(m->row_ptr, m->col);
}

/* Columns close together, so that 16 bits and a base suffice; in a few distant ranges;
 * anywhere. */
enum columns { TOGETHER, RANGES, ANYWHERE, FORMS };

/* Rows of 0 to 8 entries, one of several tiles, one just after it; enough for tiles of ordinary
 * size. large: for many more blocks than search for values. */
static struct matrix make_matrix(enum columns form, bool large)
{
    const int64_t rows = on_real_gpu() ? 400000 : large ? 12000 : 3000;
    uint64_t random = 7;
    struct matrix m = {.rows = rows, .cols = form == TOGETHER ? 3000 : 1 << 20, .row_ptr = support_zeros(rows + 1, 8)};
    for (int64_t i = 0; i < rows; i++)
        m.row_ptr[i + 1] = m.row_ptr[i] + (i == rows / 3       ? 3 * CAPACITY + 77
                                           : i == rows / 3 + 1 ? CAPACITY + 1
                                                               : (int64_t)(support_random(&random) % 9));
    m.nnz = m.row_ptr[rows];
    m.col = support_zeros(m.nnz, sizeof *m.col);
    for (int64_t k = 0; k < m.nnz; k++) {
        const uint64_t drawn = support_random(&random);
        m.col[k] =
            (int32_t)(form == RANGES ? drawn % 20 * 50000 + (drawn >> 32) % 2000 : (drawn >> 32) % (uint64_t)m.cols);
    }
    return m;
}

/* Stores number i of a set of different values as element k. */
static void put_value(spmv_type type, void *values, int64_t k, int64_t i)
{
    uint64_t seed = (uint64_t)i + 1000;
    const double value = support_uniform(&seed);
    if (type == SPMV_F32)
        ((float *)values)[k] = (float)value;
    else
        ((double *)values)[k] = value;
}

/* Order of `count` values among the nonzeros: in turn; each in a part of its own, so that no block
 * has many; all but the last in turn, and the last at the very end. */
enum spread { IN_TURN, IN_PARTS, ONE_AT_THE_END, SPREADS };

static void *make_values(spmv_type type, int64_t nnz, int count, enum spread spread)
{
    void *const values = support_zeros(nnz, 8);
    for (int64_t k = 0; k < nnz; k++)
        put_value(type, values, k,
                  count == 1           ? 0
                  : spread == IN_TURN  ? k % count
                  : spread == IN_PARTS ? k * count / nnz
                  : k == nnz - 1       ? count - 1
                                       : k % (count - 1));
    return values;
}

struct setting {
    const char *method;
    spmv_type stored, sums;
    spmv_operation operation;
    int compression, vectors;
    bool borrowed, updates;
    /* Where the host emulates a GPU: the largest block while the plan is made; 0: unlimited. */
    size_t most_bytes;
};

/* A plan with its arrays. */
struct planned {
    spmv_plan *plan;
    spmv_type type;
    int64_t rows, cols;
    void *row_ptr, *col, *val;
};

static spmv_status try_plan(const struct matrix *m, const void *values, struct setting s, struct planned *p)
{
    const int64_t size = (int64_t)spmv_type_size(s.stored);
    spmv_csr a = support_view(m->rows, m->cols, m->nnz, m->row_ptr, m->col, values, s.stored);
    spmv_plan_options options;
    *p = (struct planned){.type = s.sums};
    if (s.borrowed) {
        p->row_ptr = support_upload(ctx, m->row_ptr, (m->rows + 1) * 8);
        p->col = support_upload(ctx, m->col, m->nnz * 4);
        p->val = values != NULL ? support_upload(ctx, values, m->nnz * size) : NULL;
        a.row_ptr = p->row_ptr;
        a.col = p->col;
        a.val = p->val;
        a.memory = SPMV_MEMORY_CONTEXT;
    }
    spmv_plan_options_init(&options, sizeof options);
    options.method = s.method;
    options.type = s.sums;
    options.operation = s.operation;
    options.compression = s.compression;
    options.vectors = s.vectors > 0 ? s.vectors : 1;
    options.update_values = s.updates;
#ifdef HOST_CUDA
    const size_t room = host_cuda.most_bytes;
    host_cuda.most_bytes = s.most_bytes > 0 ? s.most_bytes : room;
#endif
    const spmv_status st = spmv_plan_create(ctx, &a, &options, &p->plan);
#ifdef HOST_CUDA
    host_cuda.most_bytes = room;
#endif
    if (st == SPMV_OK) {
        p->rows = p->plan->a.rows;
        p->cols = p->plan->a.cols;
    }
    return st;
}

static struct planned make_plan(const struct matrix *m, const void *values, struct setting s)
{
    struct planned p;
    assert_ok(ctx, try_plan(m, values, s, &p));
    return p;
}

static void free_plan(struct planned *p)
{
    spmv_plan_destroy(p->plan);
    support_free_in(ctx, p->row_ptr, p->col, p->val);
}

static spmv_plan_info info_of(const struct planned *p)
{
    spmv_plan_info info;
    assert_ok(ctx, spmv_plan_describe(p->plan, &info, sizeof info));
    return info;
}

static void check_layout(const struct planned *p, int count)
{
    char wanted[64];
    const char *const layout = info_of(p).layout;
    snprintf(wanted, sizeof wanted, "; a table of %d value%s, 1 byte per nonzero", count, count == 1 ? "" : "s");
    const bool has = strstr(layout, "a table of") != NULL, says = strstr(layout, "no table") != NULL;
    if (count <= MOST ? strstr(layout, wanted) == NULL || says
                      : has || strstr(layout, "; no table of values: more than 256 values") == NULL)
        fail_msg("%d values: \"%s\"", count, layout);
}

static void *vector(spmv_type type, int64_t n, uint64_t seed)
{
    void *const v = support_zeros(2 * n, 8);
    for (int64_t i = 0; i < (type_is_complex(type) ? 2 * n : n); i++) {
        const double value = support_uniform(&seed);
        if (type == SPMV_F32 || type == SPMV_C64)
            ((float *)v)[i] = (float)value;
        else
            ((double *)v)[i] = value;
    }
    return v;
}

/* y, z and the dot product of a product with all options, one after the other; without `with` only
 * y. The caller frees them. */
static void *outcome(const struct planned *p, bool with, int vectors, int64_t *bytes)
{
    static const double alpha[2] = {2.5, 0}, beta[2] = {-0.75, 0};
    static const float alpha32[2] = {2.5f, 0}, beta32[2] = {-0.75f, 0};
    const bool f32 = p->type == SPMV_F32 || p->type == SPMV_C64;
    const int64_t size = (int64_t)spmv_type_size(p->type), all = p->rows * size * vectors;
    void *const host_x = vector(p->type, p->cols * vectors, 3), *const host_y = vector(p->type, p->rows * vectors, 4);
    void *const x = support_upload(ctx, host_x, p->cols * size * vectors), *const y = support_upload(ctx, host_y, all);
    char *const result = support_zeros(2 * all + size, 1);
    const void *const a = f32 ? (const void *)alpha32 : alpha, *const b = f32 ? (const void *)beta32 : beta;
    *bytes = with ? 2 * all + size : all;
    if (with) {
        void *const z = support_upload(ctx, host_y, all), *const dot = support_upload(ctx, host_y, size);
        const spmv_epilogue e = support_epilogue(y, dot, NULL, z);
        assert_ok(ctx, spmv_apply_with(p->plan, a, x, b, y, &e));
        assert_ok(ctx, spmv_download(ctx, z, result + all, all));
        assert_ok(ctx, spmv_download(ctx, dot, result + 2 * all, size));
        support_free_in(ctx, z, dot);
    } else {
        assert_ok(ctx, spmv_apply(p->plan, a, x, b, y));
    }
    assert_ok(ctx, spmv_download(ctx, y, result, all));
    support_free_in(ctx, x, y);
    support_free(host_x, host_y);
    return result;
}

/* The products of two plans are the same, except for the bits of NaN. */
static void same_products(const struct planned *p, const struct planned *q, int vectors, const char *what)
{
    for (int with = 0; with < (vectors == 1 ? 2 : 1); with++) {
        int64_t bytes, as_many;
        void *const one = outcome(p, with, vectors, &bytes), *const other = outcome(q, with, vectors, &as_many);
        const bool f32 = p->type == SPMV_F32 || p->type == SPMV_C64;
        assert_int_equal(bytes, as_many);
        for (int64_t i = 0; i < bytes / (f32 ? 4 : 8); i++) {
            const double a = f32 ? (double)((float *)one)[i] : ((double *)one)[i];
            const double b = f32 ? (double)((float *)other)[i] : ((double *)other)[i];
            if (memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b)))
                fail_msg("%s, %s%s: number %lld is %.17g, not %.17g (%s)", what, spmv_type_name(p->type),
                         with ? ", with an epilogue" : "", (long long)i, a, b, info_of(p).layout);
        }
        support_free(one, other);
    }
}

static const struct {
    spmv_type stored, sums;
} reals[] = {{SPMV_F64, SPMV_F64}, {SPMV_F32, SPMV_F32}, {SPMV_F32, SPMV_F64}};
enum { REALS = sizeof reals / sizeof reals[0] };

/* The size of a table: bits and numbers of 256 values, then the codes. */
static int64_t table_bytes(spmv_type sums, int64_t nnz)
{
    return MOST * (8 + (int64_t)spmv_type_size(sums)) + nnz;
}

/* ------------------------------------------------------------------ products */

/* Compares a plan with the option, of a matrix with `count` values, with a plan without. */
static void check_count(const struct matrix *m, struct setting s, int count, enum columns form, bool retained)
{
    void *const values = make_values(s.stored, m->nnz, count, IN_TURN);
    s.compression = -1;
    struct planned without = make_plan(m, values, s);
    s.compression = 2;
    struct planned with = make_plan(m, values, s);
    const char *const layout = info_of(&with).layout;
    check_layout(&with, count);
    assert_null(strstr(info_of(&without).layout, "table"));
    assert_true((strstr(layout, "16-bit columns in 0 %") == NULL) == (form != ANYWHERE));
    assert_true((strstr(layout, "by ranges") != NULL) == (form == RANGES));
    assert_true((strstr(layout, "retained") != NULL) == retained);
    assert_int_equal(info_of(&with).bytes - info_of(&without).bytes, count <= MOST ? table_bytes(s.sums, m->nnz) : 0);
    same_products(&with, &without, 1, "a table");
    free_plan(&with);
    free_plan(&without);
    free(values);
}

static void same_bits_and_bytes_as_it_says(void **state)
{
    (void)state;
    static const int counts[] = {1, 2, 255, 256, 257, 1000};
    if (!on_cuda())
        return;
    const int64_t cache = change_cache(0);
    for (enum columns form = 0; form < (brief ? 1 : FORMS); form++) {
        struct matrix m = make_matrix(form, false);
        for (int number = 0; number < (brief ? 2 : 2 * REALS); number++) {
            const bool retained = number % 2;
            const struct setting s = {
                .method = "tiles", .stored = reals[number / 2].stored, .sums = reals[number / 2].sums};
            change_cache(retained ? 50000000 : 0); /* the whole matrix fits */
            /* an emulated GPU: every third number of values */
            for (size_t c = brief           ? 3
                            : on_real_gpu() ? 0
                                            : (form + number) % 3;
                 c < (brief ? 4 : sizeof counts / sizeof counts[0]); c += on_real_gpu() ? 1 : 3)
                check_count(&m, s, counts[c], form, retained);
        }
        free_matrix(&m);
    }
    change_cache(cache);
}

/* The share retained in the last-level cache counts the bytes that the product reads: one for each
 * value. */
static void retained_share(void **state)
{
    (void)state;
    if (!on_cuda())
        return;
    struct matrix m = make_matrix(TOGETHER, false);
    struct setting s = {.method = "tiles", .stored = SPMV_F64, .sums = SPMV_F64, .compression = 2, .updates = true};
    void *const few = make_values(s.stored, m.nnz, 20, IN_TURN), *const many =
                                                                     make_values(s.stored, m.nnz, 300, IN_TURN);
    const int64_t stream = m.nnz * (1 + 2) + m.rows * 4, vectors = (m.rows + m.cols) * 8;
    /* Two fifths of the cache are for vectors and the retained share. */
    const int64_t cache = change_cache((vectors + stream / 2) * 5 / 2);
    struct planned p = make_plan(&m, few, s);
    assert_non_null(strstr(info_of(&p).layout, "1 byte per nonzero; 50 % retained"));
    void *const there = support_upload(ctx, many, m.nnz * 8);
    const int64_t plain = m.nnz * (8 + 2) + m.rows * 4;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "more than 256 values; %.3g %% retained", 50.0 * (double)stream / (double)plain);
    assert_ok(ctx, spmv_plan_update_values(p.plan, there));
    if (strstr(info_of(&p).layout, wanted) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", info_of(&p).layout, wanted);
    change_cache(cache);
    free_plan(&p);
    spmv_free(ctx, there);
    support_free(few, many);
    free_matrix(&m);
}

/* A table is refused also if only the last nonzero exceeds it, or if no block has many values. */
static void values_are_found_wherever_they_are(void **state)
{
    (void)state;
    if (!on_cuda() || brief)
        return;
    struct matrix m = make_matrix(TOGETHER, true);
    for (enum spread spread = 0; spread < SPREADS; spread++)
        for (int count = 255; count <= 257; count++)
            for (int r = 0; r < 2; r++) {
                struct setting s = {
                    .method = "tiles", .stored = reals[r].stored, .sums = reals[r].sums, .compression = 2};
                void *const values = make_values(s.stored, m.nnz, count, spread);
                struct planned with = make_plan(&m, values, s);
                s.compression = 0;
                struct planned without = make_plan(&m, values, s);
                check_layout(&with, count);
                same_products(&with, &without, 1, "a table");
                free_plan(&with);
                free_plan(&without);
                free(values);
            }
    free_matrix(&m);
}

/* 64-bit offsets, which plans use only from 2^31 nonzeros on. */
static void wide_offsets(void **state)
{
    (void)state;
    if (!on_cuda() || brief)
        return;
    struct matrix m = make_matrix(RANGES, false);
    struct setting s = {.method = "tiles", .stored = SPMV_F64, .sums = SPMV_F64, .borrowed = true, .compression = 2};
    void *const values = make_values(s.stored, m.nnz, 200, IN_TURN);
    struct planned with = make_plan(&m, values, s);
    with.plan->method->release(with.plan);
    with.plan->a.row_ptr = with.row_ptr;
    with.plan->a.row_ptr_bits = 64;
    assert_ok(ctx, method_prepare(with.plan));
    s.compression = -1;
    struct planned without = make_plan(&m, values, s);
    check_layout(&with, 200);
    same_products(&with, &without, 1, "offsets of 64 bits");
    free_plan(&with);
    free_plan(&without);
    free(values);
    free_matrix(&m);
}

/* ---------------------------------------------------------------- special values */

/* Both zeros, infinities, NaNs with different bits, the value that marks an empty slot of the
 * search, all bits 1, the smallest and the largest numbers: 14 values. */
static const uint64_t special64[] = {0,
                                     0x8000000000000000,
                                     0x7ff0000000000000,
                                     0xfff0000000000000,
                                     0x7ff8000000000000,
                                     0xfff8000000000000,
                                     0x7ff8000000000001,
                                     0x7ff4c0dedeadbeef,
                                     0xffffffffffffffff,
                                     1,
                                     0x8000000000000001,
                                     0x000fffffffffffff,
                                     0x7fefffffffffffff,
                                     0x3ff0000000000000};
static const uint32_t special32[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                     0xffc00000, 0x7fc00001, 0x7fc0dead, 0xffffffff, 1,
                                     0x80000001, 0x007fffff, 0x7f7fffff, 0x3f800000};
enum { SPECIALS = sizeof special64 / sizeof special64[0] };

/* Only these; only two of them (the last in bit order looks like an empty slot); and with enough
 * others that there are 256 or 257 in total. */
static void bits_are_values(void **state)
{
    (void)state;
    static const int others[] = {0, 2 - SPECIALS, MOST - SPECIALS, MOST - SPECIALS + 1};
    assert_int_equal(SPECIALS, sizeof special32 / sizeof special32[0]);
    if (!on_cuda() || brief)
        return;
    struct matrix m = make_matrix(TOGETHER, false);
    for (int r = 0; r < REALS; r++)
        for (int o = 0; o < 4; o++) {
            struct setting s = {.method = "tiles", .stored = reals[r].stored, .sums = reals[r].sums, .compression = 2};
            void *const values = support_zeros(m.nnz, 8);
            const int count = SPECIALS + others[o];
            for (int64_t k = 0; k < m.nnz; k++) { /* not in every row */
                const int64_t which = count == 2 ? (k / 8 % 2 ? 7 : SPECIALS - 1) : k / 8 % count;
                if (which >= SPECIALS)
                    put_value(s.stored, values, k, which);
                else if (s.stored == SPMV_F32)
                    memcpy((float *)values + k, &special32[which], 4);
                else
                    memcpy((double *)values + k, &special64[which], 8);
            }
            struct planned with = make_plan(&m, values, s);
            s.compression = -1;
            struct planned without = make_plan(&m, values, s);
            check_layout(&with, count);
            same_products(&with, &without, 1, "special values");
            free_plan(&with);
            free_plan(&without);
            free(values);
        }
    free_matrix(&m);
}

/* -------------------------------------------------------------------- updates */

/* A plan made with `first` values gets others, few and many in turn; its memory stays. */
static void check_updates(const struct matrix *m, int first, struct setting s)
{
    static const int counts[] = {2, 1000, 3, 257, 256, 1};
    const int64_t size = (int64_t)spmv_type_size(s.stored);
    void *const values = make_values(s.stored, m->nnz, first, IN_TURN);
    s.compression = 2;
    s.updates = true;
    struct planned p = make_plan(m, values, s);
    const int64_t bytes = info_of(&p).bytes;
    void *last = NULL;
    check_layout(&p, first);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        void *const fresh = make_values(s.stored, m->nnz, counts[c], c % 2 ? IN_PARTS : IN_TURN);
        /* Values that did not occur before. */
        for (int64_t k = 0; k < m->nnz; k++)
            if (s.stored == SPMV_F32)
                ((float *)fresh)[k] += (float)c;
            else
                ((double *)fresh)[k] += (double)c;
        void *const there = support_upload(ctx, fresh, m->nnz * size);
        struct setting plain = s;
        plain.compression = 0;
        plain.updates = false;
        struct planned q = make_plan(m, fresh, plain);
#ifdef HOST_CUDA
        const int64_t allocations = host_cuda.allocations;
#endif
        assert_ok(ctx, spmv_plan_update_values(p.plan, there));
#ifdef HOST_CUDA
        assert_int_equal(host_cuda.allocations, allocations);
#endif
        check_layout(&p, counts[c]);
        assert_int_equal(info_of(&p).bytes, bytes);
        same_products(&p, &q, 1, "an update");
        free_plan(&q);
        free(fresh);
        /* A borrowed array stays in use until the next update. */
        spmv_free(ctx, last);
        last = there;
    }
    free_plan(&p);
    spmv_free(ctx, last);
    free(values);
}

static void updates(void **state)
{
    (void)state;
    if (!on_cuda())
        return;
    struct matrix m = make_matrix(TOGETHER, false);
    for (int number = 0; number < (brief ? 1 : 4 * REALS); number++) {
        const struct setting s = {.method = "tiles",
                                  .stored = reals[number % REALS].stored,
                                  .sums = reals[number % REALS].sums,
                                  .borrowed = number / REALS % 2,
                                  .operation = number / REALS < 3 ? SPMV_OPERATION_N : SPMV_OPERATION_T};
        check_updates(&m, number / REALS == 2 ? 300 : 7, s);
    }
    free_matrix(&m);
}

/* An update during a capture is refused before anything changes. After a failed update the plan
 * still works. */
static void updates_that_cannot_be(void **state)
{
    (void)state;
#ifdef HOST_CUDA
    struct matrix m = make_matrix(TOGETHER, false);
    struct setting s = {
        .method = "tiles", .stored = SPMV_F64, .sums = SPMV_F64, .borrowed = true, .updates = true, .compression = 2};
    void *const values = make_values(s.stored, m.nnz, 7, IN_TURN), *const fresh = vector(s.stored, m.nnz, 5);
    void *const there = support_upload(ctx, fresh, m.nnz * 8);
    struct planned p = make_plan(&m, values, s);
    s.compression = 0;
    struct planned q = make_plan(&m, values, s);
    host_cuda.capturing = 1;
    assert_fails(ctx, spmv_plan_update_values(p.plan, there), SPMV_ERROR_CAPTURE, "before the capture");
    host_cuda.capturing = 0;
    assert_false(host_cuda.capture_broken);
    check_layout(&p, 7);
    same_products(&p, &q, 1, "a refused update");
    free_plan(&p);
    free_plan(&q);
    spmv_free(ctx, there);
    support_free(values, fresh);
    free_matrix(&m);
#endif
}

/* A device with less and less memory: the plan is made or refused, without a leak. A plan that
 * borrows its matrix first gives up 16-bit columns, then the table, and is refused last. */
static void memory_runs_out(void **state)
{
    (void)state;
#ifdef HOST_CUDA
    struct matrix m = make_matrix(TOGETHER, false);
    struct setting s = {.method = "tiles", .stored = SPMV_F64, .sums = SPMV_F64, .compression = 2};
    void *const values = make_values(s.stored, m.nnz, 7, IN_TURN), *const fresh =
                                                                       make_values(s.stored, m.nnz, 9, IN_TURN);
    for (int borrowed = 0; borrowed < 2; borrowed++) {
        int refused = 0, made = 0, columns_alone_missing = 0, both_missing = 0;
        s.borrowed = s.updates = borrowed;
        s.most_bytes = 0;
        struct planned whole = make_plan(&m, values, s), renewed = make_plan(&m, fresh, s);
        void *const there = support_upload(ctx, fresh, m.nnz * 8);
        for (s.most_bytes = 1 << 10; s.most_bytes < (size_t)1 << 20; s.most_bytes += s.most_bytes / 8) {
            const int64_t before = host_cuda.allocations;
            struct planned p;
            const spmv_status st = try_plan(&m, values, s, &p);
            assert_true(st == SPMV_OK || st == SPMV_ERROR_MEMORY);
            refused += st != SPMV_OK;
            if (st == SPMV_OK) {
                const spmv_plan_info info = info_of(&p);
                const bool wide = strstr(info.layout, "; 16-bit columns in 0 % of the tiles") != NULL;
                const bool plain = strstr(info.layout, "; no table of values: no memory for it") != NULL;
                made += !wide && !plain;
                columns_alone_missing += wide && !plain;
                both_missing += wide && plain;
                if (wide || plain)
                    assert_string_equal(spmv_last_error(ctx), ""); /* no error */
                assert_int_equal(info_of(&whole).bytes - info.bytes,
                                 (wide ? m.nnz * 2 : 0) + (plain ? table_bytes(s.sums, m.nnz) : 0));
                same_products(&p, &whole, 1, "a plan with little memory");
                if (s.updates) {
                    assert_ok(ctx, spmv_plan_update_values(p.plan, there));
                    same_products(&p, &renewed, 1, "a plan with little memory and new values");
                }
                spmv_plan_destroy(p.plan);
                assert_int_equal(host_cuda.freed, 0); /* synchronized after the last free */
                p.plan = NULL;
            }
            free_plan(&p);
            assert_int_equal(host_cuda.allocations, before);
        }
        assert_true(refused > 10 && made > 5);
        assert_true((columns_alone_missing > 0) == borrowed && (both_missing > 0) == borrowed);
        spmv_free(ctx, there);
        free_plan(&whole);
        free_plan(&renewed);
    }
    support_free(values, fresh);
    free_matrix(&m);
#endif
}

/* ------------------------------------------------------------------ no table */

/* The plan with the option describes why it has no table, and equals one without the option. */
static void check_without(const struct matrix *m, const void *values, struct setting s, const char *says)
{
    char wanted[96];
    snprintf(wanted, sizeof wanted, "no table of values: %s", says);
    s.compression = -1;
    struct planned without = make_plan(m, values, s);
    s.compression = 2;
    struct planned with = make_plan(m, values, s);
    if (strstr(info_of(&with).layout, wanted) == NULL)
        fail_msg("%s: \"%s\" does not contain \"%s\"", s.method, info_of(&with).layout, wanted);
    assert_null(strstr(info_of(&without).layout, "table"));
    assert_int_equal(info_of(&with).bytes, info_of(&without).bytes);
    same_products(&with, &without, s.vectors > 0 ? s.vectors : 1, says);
    free_plan(&with);
    free_plan(&without);
}

static void where_there_is_none(void **state)
{
    (void)state;
    static const char only[] = "only the methods slices and tiles on cuda have them";
    struct matrix m = make_matrix(TOGETHER, false);
    void *const values = make_values(SPMV_F64, m.nnz, 2, IN_TURN);
    void *const ones = support_zeros(2 * m.nnz, 8); /* also read as complex numbers */
    const char *method;
    for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++)
        if (!on_cuda() || (strcmp(method, "tiles") != 0 && strcmp(method, "slices") != 0))
            check_without(&m, values, (struct setting){.method = method, .stored = SPMV_F64, .sums = SPMV_F64}, only);
    const struct setting several = {.stored = SPMV_F64, .sums = SPMV_F64, .vectors = 3};
    check_without(&m, values, several, only);
    if (on_cuda()) {
        const struct setting tiles = {.method = "tiles", .stored = SPMV_F64, .sums = SPMV_F64};
        struct setting complex = tiles;
        check_without(&m, NULL, tiles, "no values");
        complex.stored = complex.sums = SPMV_C128;
        check_without(&m, ones, complex, "complex values");
        complex.stored = complex.sums = SPMV_C64;
        check_without(&m, ones, complex, "complex values");
        const struct matrix none = {
            .rows = m.rows, .cols = m.cols, .row_ptr = support_zeros(m.rows + 1, 8), .col = m.col};
        check_without(&none, values, tiles, "no values");
        free(none.row_ptr);
        struct matrix head = m;
        head.rows = m.rows / 6;
        head.nnz = m.row_ptr[head.rows];
        check_without(&head, values, tiles, "a small matrix");
    }
    support_free(values, ones);
    free_matrix(&m);
}

/* Other values of the option are refused. */
static void refusals(void **state)
{
    (void)state;
    static const int wrong[] = {-2, 3, 1000};
    struct matrix m = make_matrix(TOGETHER, false);
    void *const values = make_values(SPMV_F64, m.nnz, 2, IN_TURN);
    for (int i = 0; i < 3; i++) {
        struct planned p;
        const struct setting s = {.stored = SPMV_F64, .sums = SPMV_F64, .compression = wrong[i]};
        assert_fails(ctx, try_plan(&m, values, s, &p), SPMV_ERROR_ARGUMENT, ": must be -1 to 2");
        assert_null(p.plan);
    }
    free(values);
    free_matrix(&m);
}

ONE_CONTEXT_MAIN(cmocka_unit_test(same_bits_and_bytes_as_it_says), cmocka_unit_test(retained_share),
                 cmocka_unit_test(values_are_found_wherever_they_are), cmocka_unit_test(wide_offsets),
                 cmocka_unit_test(bits_are_values), cmocka_unit_test(updates), cmocka_unit_test(updates_that_cannot_be),
                 cmocka_unit_test(memory_runs_out), cmocka_unit_test(where_there_is_none), cmocka_unit_test(refusals))
