/* Products of sparse matrices: hand values, every method against the backend ref bit by bit, ref
 * against sums in long double, types and patterns, new values, both memories, refused matrices.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>

#include "spgemm/spgemm_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_coo.h"

static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
enum { TYPES = sizeof types / sizeof types[0] };

/* Fills the values with random numbers, also the imaginary parts. */
static void fill(spmv_matrix *m, uint64_t seed)
{
    const int64_t numbers = (type_is_complex(m->type) ? 2 : 1) * m->nnz;
    for (int64_t k = 0; k < numbers; k++)
        real_set(type_part(m->type), m->val, k, support_uniform(&seed));
}

static spmv_matrix *make(spmv_context *ctx, const char *spec, spmv_type type, uint64_t seed)
{
    spmv_matrix *m = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, type, &m));
    fill(m, seed);
    return m;
}

static spmv_csr view_of(const spmv_matrix *m)
{
    spmv_csr view;
    spmv_matrix_view(m, &view);
    return view;
}

static spmv_spgemm_options options_for(const char *method)
{
    spmv_spgemm_options options = support_spgemm_options();
    options.method = method;
    return options;
}

/* ----------------------------------------------------------------------------- by hand */

/*  | 1 2 . |   | . 1 . 2 |   | 6 1 8 2 |
 *  | . . . | x | 3 . 4 . | = | . . . . |   The last entry of C is 5 - 5 = 0 and stays.
 *  | . 5 5 |   | -3 . . . |  | 0 . 20 . | */
static const int32_t hand_a_ptr[] = {0, 2, 2, 4}, hand_a_col[] = {0, 1, 1, 2};
static const double hand_a_val[] = {1, 2, 5, 5};
static const int32_t hand_b_ptr[] = {0, 2, 4, 5}, hand_b_col[] = {1, 3, 0, 2, 0};
static const double hand_b_val[] = {1, 2, 3, 4, -3};
static const int64_t hand_c_ptr[] = {0, 4, 4, 6};
static const int32_t hand_c_col[] = {0, 1, 2, 3, 0, 2};
static const double hand_c_val[] = {6, 1, 8, 2, 0, 20};
static const double hand_c_pattern[] = {1, 1, 1, 1, 2, 1};

static void small_by_hand(void **state)
{
    spmv_context *ctx = *state;
    const spmv_csr full_a = support_csr(3, 3, hand_a_ptr, hand_a_col, hand_a_val);
    const spmv_csr full_b = support_csr(3, 4, hand_b_ptr, hand_b_col, hand_b_val);
    for (int i = 0; spmv_spgemm_method_name(support_backend, i) != NULL; i++)
        for (int patterns = 0; patterns < 2; patterns++) {
            const spmv_spgemm_options options = options_for(spmv_spgemm_method_name(support_backend, i));
            spmv_csr a = full_a, b = full_b;
            if (patterns)
                a.val = b.val = NULL;
            spmv_matrix *m = NULL;
            assert_ok(ctx, spmv_spgemm(ctx, &a, &b, &options, &m));
            const spmv_csr c = view_of(m);
            assert_true(c.rows == 3 && c.cols == 4 && c.nnz == 6 && c.row_ptr_bits == 64);
            assert_int_equal(c.memory, SPMV_MEMORY_HOST);
            assert_int_equal(c.type, SPMV_F64);
            assert_memory_equal(c.row_ptr, hand_c_ptr, sizeof hand_c_ptr);
            assert_memory_equal(c.col, hand_c_col, sizeof hand_c_col);
            assert_memory_equal(c.val, patterns ? hand_c_pattern : hand_c_val, sizeof hand_c_val);
            spmv_matrix_destroy(m);
        }
}

/* The sum begins with the first product, and k ascends: -0 stays -0, and 1e16 + 1 - 1e16 is 0. */
static void order_of_sums(void **state)
{
    spmv_context *ctx = *state;
    static const int32_t a_ptr[] = {0, 3}, a_col[] = {0, 1, 2}, b_ptr[] = {0, 2, 3, 4}, b_col[] = {0, 1, 0, 0};
    static const double a_val[] = {1, 1, 1}, b_val[] = {1e16, -0.0, 1, -1e16};
    const spmv_csr a = support_csr(1, 3, a_ptr, a_col, a_val), b = support_csr(3, 2, b_ptr, b_col, b_val);
    for (int i = 0; spmv_spgemm_method_name(support_backend, i) != NULL; i++) {
        const spmv_spgemm_options options = options_for(spmv_spgemm_method_name(support_backend, i));
        spmv_matrix *m = NULL;
        assert_ok(ctx, spmv_spgemm(ctx, &a, &b, &options, &m));
        const double *const val = view_of(m).val;
        assert_true(val[0] == 0 && val[1] == 0 && signbit(val[1]));
        spmv_matrix_destroy(m);
    }
}

/* ------------------------------------------------------------ ref against long double */

struct wide {
    long double re, im;
};

static long double magnitude(struct wide x)
{
    return x.im == 0 ? fabsl(x.re) : hypotl(x.re, x.im);
}

static struct wide wide_at(const spmv_csr *a, int64_t k)
{
    if (a->val == NULL)
        return (struct wide){1, 0};
    const spmv_type part = type_part(a->type);
    return type_is_complex(a->type) ? (struct wide){real_at(part, a->val, 2 * k), real_at(part, a->val, 2 * k + 1)}
                                    : (struct wide){real_at(part, a->val, k), 0};
}

/* C against sums in long double. Bound: a sum of n products has an error of at most
 * (n + 3) u sum |a_ik| |b_kj| with the unit roundoff u (N. J. Higham, "Accuracy and stability of
 * numerical algorithms", 2nd ed., sections 3.1 and 3.6: 4 u for a complex product). */
static void assert_is_product(const spmv_csr *a, const spmv_csr *b, const spmv_csr *c)
{
    const spmv_type part = type_part(c->type);
    const long double u = part == SPMV_F32 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
    struct wide *sum = support_zeros(b->cols, sizeof *sum);
    long double *size = support_zeros(b->cols, sizeof *size);
    int64_t *terms = support_zeros(b->cols, sizeof *terms);
    assert_true(c->rows == a->rows && c->cols == b->cols);
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t columns = 0;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            for (int64_t l = row_first(b, a->col[k]); l < row_first(b, a->col[k] + 1); l++) {
                const struct wide x = wide_at(a, k), y = wide_at(b, l);
                const int32_t j = b->col[l];
                columns += terms[j]++ == 0;
                sum[j].re += x.re * y.re - x.im * y.im;
                sum[j].im += x.re * y.im + x.im * y.re;
                size[j] += magnitude(x) * magnitude(y);
            }
        assert_int_equal(row_first(c, i + 1) - row_first(c, i), columns);
        for (int64_t e = row_first(c, i); e < row_first(c, i + 1); e++) {
            const int32_t j = c->col[e];
            assert_true(e == row_first(c, i) || c->col[e - 1] < j);
            assert_true(terms[j] > 0);
            const struct wide got = wide_at(c, e);
            const struct wide off = {got.re - sum[j].re, got.im - sum[j].im};
            assert_true(magnitude(off) <= (long double)(terms[j] + 3) * u * size[j]);
            sum[j] = (struct wide){0, 0};
            size[j] = 0;
            terms[j] = 0;
        }
    }
    support_free(sum, size, terms);
}

/* ----------------------------------------------------------------- methods against ref */

/* A product in both memories by every method, and new values, against the product on ref, which is
 * checked too. */
static void check_pair(spmv_context *ctx, spmv_context *ref, const spmv_csr *a, const spmv_csr *b, const void *a_new,
                       const void *b_new)
{
    static int turn;
    spmv_matrix *first = NULL, *second = NULL, *there[2];
    turn++;
    spmv_csr a_other = *a, b_other = *b;
    assert_ok(ref, spmv_spgemm(ref, a, b, NULL, &first));
    const spmv_csr expected = view_of(first);
    assert_is_product(a, b, &expected);
    a_other.val = a_new;
    b_other.val = b_new;
    assert_ok(ref, spmv_spgemm(ref, &a_other, &b_other, NULL, &second));
    const spmv_csr expected_new = view_of(second);
    assert_ok(ctx, spmv_matrix_copy(ctx, a, SPMV_MEMORY_CONTEXT, &there[0]));
    assert_ok(ctx, spmv_matrix_copy(ctx, b, SPMV_MEMORY_CONTEXT, &there[1]));
    const int64_t size = (int64_t)spmv_type_size(expected.type), bytes = max_i64(expected.nnz, 1) * size;
    for (int i = 0; spmv_spgemm_method_name(support_backend, i) != NULL; i++) {
        const spmv_spgemm_options options = options_for(spmv_spgemm_method_name(support_backend, i));
        spmv_matrix *m = NULL, *here = NULL;
        const spmv_csr a_there = view_of(there[0]), b_there = view_of(there[1]);
        /* host memory; without a real GPU one of the memories, in turns */
        const int memory = support_backend != SPMV_BACKEND_CUDA || support_host_plays(ctx) ? (turn + i) % 2 : -1;
        if (memory != 1) {
            assert_ok(ctx, spmv_spgemm(ctx, a, b, &options, &m));
            const spmv_csr c = view_of(m);
            assert_int_equal(c.memory, SPMV_MEMORY_HOST);
            assert_same_csr(&c, &expected);
            spmv_matrix_destroy(m);
        }
        if (memory != 0) { /* the context's memory */
            assert_ok(ctx, spmv_spgemm(ctx, &a_there, &b_there, &options, &m));
            spmv_csr c = view_of(m);
            assert_int_equal(c.memory, SPMV_MEMORY_CONTEXT);
            assert_ok(ctx, spmv_matrix_copy(ctx, &c, SPMV_MEMORY_HOST, &here));
            c = view_of(here);
            assert_same_csr(&c, &expected);
            spmv_matrix_destroy(here);
            spmv_matrix_destroy(m);
        }
        /* a plan of host arrays, twice with values */
        spmv_spgemm_plan *plan = NULL;
        assert_ok(ctx, spmv_spgemm_plan_create(ctx, a, b, &options, &plan));
        void *const c_values = support_upload(ctx, expected.val, bytes), *const host = support_zeros(bytes, 1);
        void *const av = a_new != NULL ? support_upload(ctx, a_new, a->nnz * size) : NULL;
        void *const bv = b_new != NULL ? support_upload(ctx, b_new, b->nnz * size) : NULL;
        assert_ok(ctx, spmv_spgemm_values(plan, a_there.val, b_there.val, c_values));
        assert_ok(ctx, spmv_spgemm_values(plan, av, bv, c_values));
        assert_ok(ctx, spmv_download(ctx, c_values, host, bytes));
        assert_memory_equal(host, expected_new.val, (size_t)(expected.nnz * size));
        assert_ok(ctx, spmv_spgemm_values(plan, a_there.val, b_there.val, c_values));
        assert_ok(ctx, spmv_download(ctx, c_values, host, bytes));
        assert_memory_equal(host, expected.val, (size_t)(expected.nnz * size));
        spmv_spgemm_plan_destroy(plan);
        support_free_in(ctx, c_values, av, bv);
        free(host);
    }
    for (int i = 0; i < 2; i++)
        spmv_matrix_destroy(there[i]);
    spmv_matrix_destroy(first);
    spmv_matrix_destroy(second);
}

/* Pairs with rows of every kind: empty, one entry, many; narrow and wide. */
static const char *const pairs[][2] = {
    {"poisson2d:23", "poisson2d:23"},
    {"uniform:300,170,6", "uniform:170,400,5"},
    {"uniform:40,3000,90", "uniform:3000,20,2"},
    {"empty:500,0.7", "empty:500,0.5"},
    {"diagonal:333", "uniform:333,1000,7"},
    {"uniform:200,100,0.9", "powerlaw:100,5,2,90"},
    {"arrow:150", "arrow:150"},
    {"dense:1,300", "uniform:300,2000,4"},
    {"dense:70,1", "dense:1,130"},
    {"dense:37,41", "dense:41,43"},
    {"longrows:30,900,200", "longrows:900,700,33"},
    {"rmat:8,6", "rmat:8,6"},
    {"uniform:200,100,2", "uniform:100,4000,64"}, /* many columns for a row's products */
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

/* Pair p. t: a type; TYPES and above: a pattern times f32, c128 times a pattern, two patterns. */
static void check_types(spmv_context *ctx, spmv_context *ref, int p, int t)
{
    const spmv_type type = t < TYPES ? types[t] : t == TYPES ? SPMV_F32 : SPMV_C128;
    spmv_matrix *a = make(ref, pairs[p][0], type, 3), *b = make(ref, pairs[p][1], type, 4);
    spmv_matrix *a2 = make(ref, pairs[p][0], type, 5), *b2 = make(ref, pairs[p][1], type, 6);
    spmv_csr va = view_of(a), vb = view_of(b);
    const bool a_ones = t == TYPES || t == TYPES + 2, b_ones = t >= TYPES + 1;
    if (a_ones)
        va.val = NULL;
    if (b_ones)
        vb.val = NULL;
    check_pair(ctx, ref, &va, &vb, a_ones ? NULL : a2->val, b_ones ? NULL : b2->val);
    spmv_matrix_destroy(a);
    spmv_matrix_destroy(b);
    spmv_matrix_destroy(a2);
    spmv_matrix_destroy(b2);
}

/* "brief": every method, on rows in tables and on long ones. */
static void each_method(void **state)
{
    (void)state;
    spmv_context *ctx = support_context(), *ref = support_context_on(SPMV_BACKEND_REF, 1);
    static const int some[] = {1, 2, 11};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        check_types(ctx, ref, some[i], (int)i % TYPES);
    spmv_context_destroy(ref);
    spmv_context_destroy(ctx);
}

static void pairs_against_ref(void **state)
{
    (void)state;
    spmv_context *ref = support_context_on(SPMV_BACKEND_REF, 1);
    static const int teams[] = {1, 2, 5};
    for (int team = 0; team < (support_backend == SPMV_BACKEND_OMP ? 3 : 1); team++) {
        spmv_context *ctx = support_context_on(support_backend, support_backend == SPMV_BACKEND_OMP ? teams[team] : 0);
        for (int p = 0; p < PAIRS; p++)
            for (int t = 0; t < TYPES + 3; t++) {
                /* omp: the teams take turns. An emulated GPU is slow: there f64, and of each third pair in turn c64
                 * and a pattern times f32. */
                const bool turn = (p + t + team) % 3 == 0;
                if (support_backend == SPMV_BACKEND_OMP   ? turn
                    : support_backend == SPMV_BACKEND_REF ? turn || t == 0
                    : support_host_plays(ctx) ? t == 0 || (p % 6 == 0 && t == 3) || (p % 6 == 3 && t == TYPES)
                                              : true)
                    check_types(ctx, ref, p, t);
            }
        spmv_context_destroy(ctx);
    }
    spmv_context_destroy(ref);
}

/* The same bits in each of 50 runs (3 where one takes long), with rows of all kinds. */
static void same_bits_each_time(void **state)
{
    (void)state;
    spmv_context *ctx = support_context_on(support_backend, support_backend == SPMV_BACKEND_OMP ? 5 : 0);
    const bool slow = support_backend == SPMV_BACKEND_REF || support_host_plays(ctx);
    spmv_matrix *a = make(ctx, slow ? "rmat:8,6" : "rmat:11,8", SPMV_F64, 3), *first = NULL, *there = NULL;
    const spmv_csr host = view_of(a);
    assert_ok(ctx, spmv_matrix_copy(ctx, &host, SPMV_MEMORY_CONTEXT, &there));
    const spmv_csr view = view_of(there);
    for (int run = 0; run < (slow ? 3 : 50); run++) {
        spmv_matrix *c = NULL, *here = NULL;
        assert_ok(ctx, spmv_spgemm(ctx, &view, &view, NULL, &c));
        const spmv_csr c_view = view_of(c);
        assert_ok(ctx, spmv_matrix_copy(ctx, &c_view, SPMV_MEMORY_HOST, &here));
        if (run > 0)
            assert_same_matrix(here, first);
        spmv_matrix_destroy(run == 0 ? NULL : here);
        first = run == 0 ? here : first;
        spmv_matrix_destroy(c);
    }
    spmv_matrix_destroy(first);
    spmv_matrix_destroy(there);
    spmv_matrix_destroy(a);
    spmv_context_destroy(ctx);
}

/* Offsets of 32 bits, in both memories. */
static void narrow_offsets(void **state)
{
    spmv_context *ctx = *state;
    const spmv_csr a = support_csr(3, 3, hand_a_ptr, hand_a_col, hand_a_val);
    const spmv_csr b = support_csr(3, 4, hand_b_ptr, hand_b_col, hand_b_val);
    spmv_csr there[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        there[i].row_ptr = support_upload(ctx, there[i].row_ptr, 4 * (there[i].rows + 1));
        there[i].col = support_upload(ctx, there[i].col, 4 * there[i].nnz);
        there[i].val = support_upload(ctx, there[i].val, 8 * there[i].nnz);
        there[i].memory = SPMV_MEMORY_CONTEXT;
    }
    for (int i = 0; spmv_spgemm_method_name(support_backend, i) != NULL; i++) {
        const spmv_spgemm_options options = options_for(spmv_spgemm_method_name(support_backend, i));
        spmv_matrix *m = NULL, *here = NULL;
        assert_ok(ctx, spmv_spgemm(ctx, &there[0], &there[1], &options, &m));
        const spmv_csr c = view_of(m);
        assert_ok(ctx, spmv_matrix_copy(ctx, &c, SPMV_MEMORY_HOST, &here));
        assert_memory_equal(here->row_ptr, hand_c_ptr, sizeof hand_c_ptr);
        assert_memory_equal(here->col, hand_c_col, sizeof hand_c_col);
        assert_memory_equal(here->val, hand_c_val, sizeof hand_c_val);
        spmv_matrix_destroy(here);
        spmv_matrix_destroy(m);
    }
    for (int i = 0; i < 2; i++) {
        support_free_in(ctx, (void *)there[i].row_ptr, (void *)there[i].col, (void *)there[i].val);
    }
}

/* Rows whose columns span more than the sums of a cache, with few entries and with many. */
static void wide_rows(void **state)
{
    (void)state;
    spmv_context *ctx = support_context(), *ref = support_context_on(SPMV_BACKEND_REF, 1);
    for (int t = 0; t < TYPES; t++) {
        if (support_backend == SPMV_BACKEND_REF && t % 2 != 0)
            continue; /* it has no sums of a cache */
        spmv_matrix *a = make(ref, "uniform:8,60,12", types[t], 8);
        spmv_matrix *few = make(ref, "uniform:60,600000,9", types[t], 9);
        spmv_matrix *many = make(ref, "longrows:60,600000,1500", types[t], 9);
        const spmv_csr va = view_of(a), vf = view_of(few), vm = view_of(many);
        check_pair(ctx, ref, &va, &vf, a->val, few->val);
        if (!support_host_plays(ctx))
            check_pair(ctx, ref, &va, &vm, a->val, many->val);
        spmv_matrix_destroy(a);
        spmv_matrix_destroy(few);
        spmv_matrix_destroy(many);
    }
    spmv_context_destroy(ref);
    spmv_context_destroy(ctx);
}

/* Working memory for some products at a time: the method expand works in parts. */
static void in_parts(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *a = make(ctx, "uniform:300,170,6", SPMV_F64, 3), *b = make(ctx, "uniform:170,400,5", SPMV_F64, 4);
    spmv_matrix *whole = NULL, *m = NULL;
    const spmv_csr va = view_of(a), vb = view_of(b);
    spmv_spgemm_options options = options_for("expand");
    assert_ok(ctx, spmv_spgemm(ctx, &va, &vb, &options, &whole));
    static const int64_t limits[] = {1 << 20, 200000, 60000, 45000};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        options.max_bytes = limits[i];
        assert_ok(ctx, spmv_spgemm(ctx, &va, &vb, &options, &m));
        assert_same_matrix(m, whole);
        spmv_matrix_destroy(m);
    }
    options.max_bytes = 500; /* less than one row */
    assert_fails(ctx, spmv_spgemm(ctx, &va, &vb, &options, &m), SPMV_ERROR_MEMORY, "500 are allowed");
    spmv_matrix_destroy(whole);
    spmv_matrix_destroy(a);
    spmv_matrix_destroy(b);
}

/* A band that is not the same in all rows: some entries are missing, some last entries of a row lie further
 * right, and all values of some rows are -0. So the columns of a row of A A mostly are those of the row
 * before, moved by one, and then have one more, one less, or only sums of -0. */
static spmv_matrix *make_near_band(spmv_context *ctx, spmv_type type)
{
    enum { MISSING = 173, LONGER = 37, FURTHER = 9, ZERO = 29 };
    spmv_matrix *m = make(ctx, "banded:300,5", type, 7);
    const int64_t size = (int64_t)spmv_type_size(type), parts = type_is_complex(type) ? 2 : 1;
    int64_t kept = 0;
    for (int64_t i = 0, k = 0; i < m->rows; i++) {
        const int64_t end = m->row_ptr[i + 1];
        for (; k < end; k++) {
            if (k % MISSING == 0)
                continue;
            m->col[kept] = m->col[k] + (k == end - 1 && i % LONGER == 0 && m->col[k] + FURTHER < m->cols ? FURTHER : 0);
            memmove((char *)m->val + kept * size, (char *)m->val + k * size, (size_t)size);
            for (int64_t part = 0; part < parts && i % ZERO == 0; part++)
                real_set(type_part(type), m->val, parts * kept + part, -0.0);
            kept++;
        }
        m->row_ptr[i + 1] = kept;
    }
    m->nnz = kept;
    return m;
}

static void near_band(void **state)
{
    (void)state;
    spmv_context *ctx = support_context(), *ref = support_context_on(SPMV_BACKEND_REF, 1);
    for (int t = 0; t < TYPES; t += TYPES - 1) { /* f64 and c64 */
        spmv_matrix *a = make_near_band(ref, types[t]), *one = make(ref, "banded:300,5", types[t], 7);
        for (int64_t k = 0; k < a->nnz; k++) /* positive: products with -0 are -0 */
            real_set(type_part(types[t]), one->val, k, 1);
        const spmv_csr va = view_of(a), vo = view_of(one);
        check_pair(ctx, ref, &va, &va, a->val, a->val);
        check_pair(ctx, ref, &va, &vo, a->val, one->val);
        if (t == 0 || !support_host_plays(ctx)) { /* an emulated GPU is slow */
            spmv_csr wide = vo;                   /* with more columns than products */
            wide.cols = 100000;
            check_pair(ctx, ref, &va, &wide, a->val, one->val);
            check_pair(ctx, ref, &vo, &va, one->val, a->val);
        }
        spmv_matrix_destroy(a);
        spmv_matrix_destroy(one);
    }
    spmv_context_destroy(ref);
    spmv_context_destroy(ctx);
}

/* A limit of the working memory that does not bind: the same bits, also where the values are otherwise
 * computed with the pattern. Rows have up to 8, up to 64, and more entries. */
static void phases_apart(void **state)
{
    static const char *const specs[] = {"poisson2d:40", "uniform:400,400,6", "rmat:8,6", "empty:500,0.8"};
    spmv_context *ctx = *state;
    spmv_spgemm_options options = options_for(NULL);
    options.max_bytes = (int64_t)1 << 40;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        for (int t = support_host_plays(ctx) ? (int)i % 2 : 0; t < TYPES; t += support_host_plays(ctx) ? 2 : 1) {
            spmv_matrix *a = make(ctx, specs[i], types[t], 5), *together = NULL, *apart = NULL;
            const spmv_csr va = view_of(a);
            assert_ok(ctx, spmv_spgemm(ctx, &va, &va, NULL, &together));
            assert_ok(ctx, spmv_spgemm(ctx, &va, &va, &options, &apart));
            assert_same_matrix(apart, together);
            spmv_matrix_destroy(a);
            spmv_matrix_destroy(together);
            spmv_matrix_destroy(apart);
        }
}

static void nothing_at_all(void **state)
{
    spmv_context *ctx = *state;
    static const int32_t zeros[8] = {0};
    static const int64_t sizes[][3] = {{0, 0, 0}, {0, 5, 3}, {4, 0, 3}, {4, 5, 0}, {4, 5, 3}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const spmv_csr a = support_csr(sizes[s][0], sizes[s][1], zeros, NULL, hand_a_val);
        const spmv_csr b = support_csr(sizes[s][1], sizes[s][2], zeros, NULL, hand_b_val);
        for (int i = 0; spmv_spgemm_method_name(support_backend, i) != NULL; i++) {
            const spmv_spgemm_options options = options_for(spmv_spgemm_method_name(support_backend, i));
            spmv_matrix *m = NULL;
            spmv_spgemm_plan *plan = NULL;
            assert_ok(ctx, spmv_spgemm(ctx, &a, &b, &options, &m));
            const spmv_csr c = view_of(m);
            assert_true(c.rows == a.rows && c.cols == b.cols && c.nnz == 0 && c.val != NULL);
            for (int64_t r = 0; r <= c.rows; r++)
                assert_int_equal(row_first(&c, r), 0);
            spmv_matrix_destroy(m);
            assert_ok(ctx, spmv_spgemm_plan_create(ctx, &a, &b, &options, &plan));
            assert_ok(ctx, spmv_spgemm_values(plan, NULL, NULL, NULL));
            spmv_spgemm_plan_destroy(plan);
        }
    }
}

/* Entries in both factors, but no products: all entries of A meet empty rows of B. */
static void no_products(void **state)
{
    spmv_context *ctx = *state;
    static const int32_t a_ptr[] = {0, 1, 3}, a_col[] = {2, 0, 2}, b_ptr[] = {0, 0, 1, 1, 2}, b_col[] = {0, 2};
    const spmv_csr a = support_csr(2, 4, a_ptr, a_col, hand_a_val), b = support_csr(4, 3, b_ptr, b_col, hand_b_val);
    spmv_matrix *m = NULL;
    assert_ok(ctx, spmv_spgemm(ctx, &a, &b, NULL, &m));
    const spmv_csr c = view_of(m);
    assert_true(c.rows == 2 && c.cols == 3 && c.nnz == 0 && c.val != NULL);
    for (int64_t i = 0; i <= c.rows; i++)
        assert_int_equal(row_first(&c, i), 0);
    spmv_matrix_destroy(m);
}

static void triple(void **state)
{
    (void)state;
    spmv_context *ctx = support_context(), *ref = support_context_on(SPMV_BACKEND_REF, 1);
    spmv_matrix *r = make(ref, "uniform:60,400,20", SPMV_F64, 1), *a = make(ref, "poisson2d:20", SPMV_F64, 2);
    spmv_matrix *p = make(ref, "uniform:400,70,1", SPMV_F64, 3), *ap = NULL, *rap = NULL, *got = NULL, *here = NULL;
    const spmv_csr vr = view_of(r), va = view_of(a), vp = view_of(p);
    assert_ok(ref, spmv_spgemm(ref, &va, &vp, NULL, &ap));
    const spmv_csr vap = view_of(ap);
    assert_ok(ref, spmv_spgemm(ref, &vr, &vap, NULL, &rap));
    assert_ok(ctx, spmv_spgemm_triple(ctx, &vr, &va, &vp, NULL, &got));
    assert_int_equal(view_of(got).memory, SPMV_MEMORY_HOST);
    assert_same_matrix(got, rap);
    spmv_matrix_destroy(got);
    spmv_matrix *there[3];
    const spmv_csr *const views[3] = {&vr, &va, &vp};
    spmv_csr moved[3];
    for (int i = 0; i < 3; i++) {
        assert_ok(ctx, spmv_matrix_copy(ctx, views[i], SPMV_MEMORY_CONTEXT, &there[i]));
        moved[i] = view_of(there[i]);
    }
    assert_ok(ctx, spmv_spgemm_triple(ctx, &moved[0], &moved[1], &moved[2], NULL, &got));
    const spmv_csr c = view_of(got);
    assert_int_equal(c.memory, SPMV_MEMORY_CONTEXT);
    assert_ok(ctx, spmv_matrix_copy(ctx, &c, SPMV_MEMORY_HOST, &here));
    assert_same_matrix(here, rap);
    spmv_matrix_destroy(got);
    assert_fails(ctx, spmv_spgemm_triple(ctx, &moved[0], &va, &moved[2], NULL, &got), SPMV_ERROR_ARGUMENT, "memory");
    assert_null(got);
    assert_fails(ctx, spmv_spgemm_triple(ctx, &va, &vr, &vp, NULL, &got), SPMV_ERROR_SIZE, "R is 400 x 400");
    for (int i = 0; i < 3; i++)
        spmv_matrix_destroy(there[i]);
    spmv_matrix *const all[] = {r, a, p, ap, rap, here};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        spmv_matrix_destroy(all[i]);
    spmv_context_destroy(ref);
    spmv_context_destroy(ctx);
}

/* ------------------------------------------------------------------------- refusals */

static void wrong_arrays(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        int32_t ptr[4], col[4];
        const char *text;
    } bad[] = {
        {{0, 2, 2, 4}, {1, 0, 1, 2}, "must ascend"}, /* not sorted */
        {{0, 2, 2, 4}, {0, 1, 2, 2}, "must ascend"}, /* repeated */
        {{0, 2, 2, 4}, {0, 3, 1, 2}, "outside"},     /* column 3 of 3 */
        {{0, 2, 2, 4}, {-1, 1, 1, 2}, "outside"},    /* column -1 */
        {{1, 2, 2, 4}, {0, 1, 1, 2}, "row_ptr"},     /* starts at 1 */
        {{0, 2, 2, 3}, {0, 1, 1, 2}, "row_ptr"},     /* ends before the last entry */
        {{0, 3, 2, 4}, {0, 1, 2, 2}, "ends before it starts"},
        {{0, 9, 2, 4}, {0, 1, 1, 2}, ""}, /* an offset beyond the entries */
    };
    const spmv_csr good = support_csr(3, 3, hand_a_ptr, hand_a_col, hand_a_val);
    for (size_t t = 0; t < sizeof bad / sizeof bad[0]; t++)
        for (int there = 0; there < 2; there++)
            for (int second = 0; second < 2; second++) {
                spmv_csr wrong = good, other = good;
                wrong.row_ptr = bad[t].ptr;
                wrong.col = bad[t].col;
                spmv_csr *const views[2] = {&wrong, &other};
                void *memory[2][3] = {{NULL}};
                for (int v = 0; there && v < 2; v++) {
                    memory[v][0] = support_upload(ctx, views[v]->row_ptr, 16);
                    memory[v][1] = support_upload(ctx, views[v]->col, 16);
                    memory[v][2] = support_upload(ctx, views[v]->val, 32);
                    views[v]->row_ptr = memory[v][0];
                    views[v]->col = memory[v][1];
                    views[v]->val = memory[v][2];
                    views[v]->memory = SPMV_MEMORY_CONTEXT;
                }
                spmv_matrix *m = NULL;
                assert_fails(ctx, spmv_spgemm(ctx, second ? &other : &wrong, second ? &wrong : &other, NULL, &m),
                             SPMV_ERROR_SIZE, bad[t].text);
                assert_null(m);
                for (int v = 0; v < 2; v++)
                    for (int i = 0; i < 3; i++)
                        spmv_free(ctx, memory[v][i]);
            }
}

static void wrong_arguments(void **state)
{
    spmv_context *ctx = *state;
    const spmv_csr a = support_csr(3, 3, hand_a_ptr, hand_a_col, hand_a_val);
    const spmv_csr b = support_csr(3, 4, hand_b_ptr, hand_b_col, hand_b_val);
    spmv_csr odd = a;
    spmv_matrix *m = NULL;
    spmv_spgemm_plan *plan = NULL;
    assert_fails(ctx, spmv_spgemm(ctx, &b, &a, NULL, &m), SPMV_ERROR_SIZE, "A is 3 x 4 and B is 3 x 3");
    odd.type = SPMV_F32;
    assert_fails(ctx, spmv_spgemm(ctx, &odd, &b, NULL, &m), SPMV_ERROR_TYPE, "A has type f32 and B type f64");
    odd.type = SPMV_I32;
    assert_fails(ctx, spmv_spgemm(ctx, &odd, &odd, NULL, &m), SPMV_ERROR_TYPE, "no products in type i32");
    odd = a;
    odd.memory = SPMV_MEMORY_CONTEXT;
    assert_fails(ctx, spmv_spgemm(ctx, &odd, &b, NULL, &m), SPMV_ERROR_ARGUMENT, "spmv_matrix_copy");
    assert_fails(ctx, spmv_spgemm_plan_create(ctx, &a, &odd, NULL, &plan), SPMV_ERROR_ARGUMENT, "spmv_matrix_copy");
    spmv_spgemm_options options = options_for("no-such");
    assert_fails(ctx, spmv_spgemm(ctx, &a, &b, &options, &m), SPMV_ERROR_METHOD, "auto, ");
    options = options_for(NULL);
    options.max_bytes = -1;
    assert_fails(ctx, spmv_spgemm(ctx, &a, &b, &options, &m), SPMV_ERROR_ARGUMENT, "max_bytes");
    options.max_bytes = 1;
    assert_fails(ctx, spmv_spgemm(ctx, &a, &b, &options, &m), SPMV_ERROR_MEMORY, "bytes");
    assert_null(m);
    assert_null(plan);
    assert_ok(ctx, spmv_spgemm_plan_create(ctx, &a, &b, NULL, &plan));
    spmv_spgemm_info info;
    assert_ok(ctx, spmv_spgemm_describe(plan, &info, sizeof info));
    assert_string_equal(info.method, spmv_spgemm_method_name(support_backend, 0));
    assert_true(info.rows == 3 && info.cols == 4 && info.nnz == 6 && info.products == 7);
    assert_true(info.type == SPMV_F64 && info.bytes > 0 && info.seconds >= 0 && strlen(info.why) > 0);
    spmv_csr pattern;
    spmv_spgemm_pattern(plan, &pattern);
    assert_true(pattern.rows == 3 && pattern.cols == 4 && pattern.nnz == 6 && pattern.val == NULL &&
                pattern.memory == SPMV_MEMORY_CONTEXT);
    double *const values = support_upload(ctx, hand_c_val, sizeof hand_c_val);
    assert_fails(ctx, spmv_spgemm_values(plan, NULL, values, values), SPMV_ERROR_ARGUMENT, "a_values is NULL");
    assert_fails(ctx, spmv_spgemm_values(plan, values, NULL, values), SPMV_ERROR_ARGUMENT, "b_values is NULL");
    assert_fails(ctx, spmv_spgemm_values(plan, values, values, NULL), SPMV_ERROR_ARGUMENT, "c_values is NULL");
    assert_fails(ctx, spmv_spgemm_values(plan, values, values, values), SPMV_ERROR_ARGUMENT, "same array");
    spmv_free(ctx, values);
    spmv_spgemm_plan_destroy(plan);
}

/* A product whose entries no memory holds is refused before the work: arrow times itself is dense,
 * 10^12 entries. */
static void too_large(void **state)
{
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* its methods allocate what they need and say what is missing */
    spmv_context *ctx = *state;
    spmv_matrix *a = make(ctx, "arrow:1000000", SPMV_F64, 1), *c = NULL;
    const spmv_csr view = view_of(a);
    assert_fails(ctx, spmv_spgemm(ctx, &view, &view, NULL, &c), SPMV_ERROR_MEMORY, "bytes");
    assert_null(c);
    spmv_matrix_destroy(a);
}

static void names(void **state)
{
    (void)state;
    assert_non_null(spmv_spgemm_method_name(SPMV_BACKEND_REF, 0));
    assert_string_equal(spmv_spgemm_method_name(SPMV_BACKEND_OMP, 0), "rows");
    assert_null(spmv_spgemm_method_name(SPMV_BACKEND_OMP, 99));
    assert_null(spmv_spgemm_method_name(SPMV_BACKEND_OMP, -1));
    assert_null(spmv_spgemm_method_name(SPMV_BACKEND_AUTO, 0));
    assert_null(spmv_spgemm_method_name((spmv_backend)77, 0));
}

SUPPORT_MAIN_OR_BRIEF((cmocka_unit_test(each_method)), with_context(small_by_hand), with_context(order_of_sums),
                      cmocka_unit_test(pairs_against_ref), cmocka_unit_test(same_bits_each_time),
                      with_context(narrow_offsets), cmocka_unit_test(wide_rows), with_context(in_parts),
                      with_context(phases_apart), with_context(nothing_at_all), with_context(no_products),
                      cmocka_unit_test(near_band), cmocka_unit_test(triple), with_context(wrong_arrays),
                      with_context(wrong_arguments), with_context(too_large), cmocka_unit_test(names))
