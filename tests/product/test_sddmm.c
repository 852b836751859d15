/* Sampled products of dense matrices, and the softmax of rows: on ref the definition; on omp and cuda the
 * bits of the order of sums that the header states, whatever the strides and the alignment.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/reals.h"
#include "product/sddmm/sddmm_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_slow.h"

/* Entry value * (a b) in the order of the header, of k elements of a type whose sums are of type T. volatile: each
 * operation is rounded. Of 16-bit types the last rounding is left to the caller. */
#define SUMMED(T)                                                                                                      \
    static T summed_##T(spmv_type type, const void *a, const void *b, int k, T value)                                  \
    {                                                                                                                  \
        const int size = (int)spmv_type_size(type), pack = 16 / size;                                                  \
        volatile T sum[32] = {0}, product[8];                                                                          \
        for (int c = 0; c < k; c += pack) {                                                                            \
            for (int i = 0; i < pack; i++)                                                                             \
                product[i] = c + i < k ? (T)real_at(type, a, c + i) * (T)real_at(type, b, c + i) : 0;                  \
            for (int of = pack; of > 1; of /= 2)                                                                       \
                for (int i = 0; i < of / 2; i++)                                                                       \
                    product[i] = product[2 * i] + product[2 * i + 1];                                                  \
            sum[c / pack % 32] += product[0];                                                                          \
        }                                                                                                              \
        for (int of = 32; of > 1; of /= 2)                                                                             \
            for (int i = 0; i < of / 2; i++)                                                                           \
                sum[i] = sum[2 * i] + sum[2 * i + 1];                                                                  \
        return value * sum[0];                                                                                         \
    }
SUMMED(float)
SUMMED(double)

struct variant {
    spmv_type type;
    bool pattern;
    int k, a_gap, b_gap;
    int shift; /* elements by which A, B and y are moved from an aligned address */
};

static const spmv_type tested[] = {SPMV_F32, SPMV_F64, SPMV_BF16, SPMV_F16};
enum { TESTED = 4 };

static void *random_numbers(spmv_type type, int64_t n, uint64_t seed)
{
    void *const values = support_zeros(n + 1, 8);
    for (int64_t i = 0; i < n; i++)
        real_set(type, values, i, support_uniform(&seed));
    return values;
}

static void check_entry(const struct variant *v, const void *a, const void *b, double value, const void *y, int64_t e)
{
    const double got = real_at(v->type, y, e);
    if (support_backend != SPMV_BACKEND_REF) {
        const double sum = v->type == SPMV_F64 ? summed_double(v->type, a, b, v->k, value)
                                               : (double)summed_float(v->type, a, b, v->k, (float)value);
        char rounded[8];
        real_set(v->type, rounded, 0, sum);
        if (got != real_at(v->type, rounded, 0))
            fail_msg("%s, k %d, shift %d: entry %lld has other bits", spmv_type_name(v->type), v->k, v->shift,
                     (long long)e);
        return;
    }
    long double sum = 0, all = 0;
    for (int c = 0; c < v->k; c++) {
        const long double product = (long double)real_at(v->type, a, c) * (long double)real_at(v->type, b, c);
        sum += product;
        all += fabsl(product);
    }
    const struct real_limits limits = real_limits_of(v->type);
    const long double error = (long double)got - sum * (long double)value;
    assert_true(fabsl(error) <=
                2 * (long double)limits.roundoff * all * fabsl((long double)value) + (long double)limits.subnormal);
}

static void check(spmv_context *ctx, const spmv_csr *pattern, const struct variant *v)
{
    const int64_t size = (int64_t)spmv_type_size(v->type), a_stride = v->k + v->a_gap, b_stride = v->k + v->b_gap;
    const int64_t a_n = pattern->rows * a_stride + v->shift, b_n = pattern->cols * b_stride + v->shift;
    char *const a = random_numbers(v->type, a_n, 1), *const b = random_numbers(v->type, b_n, 2);
    void *const val = random_numbers(v->type, pattern->nnz, 3), *const y = support_zeros(pattern->nnz + v->shift, 8);
    spmv_csr p = *pattern;
    spmv_sddmm_options o;
    spmv_sddmm *s = NULL;
    p.val = v->pattern ? NULL : val;
    p.type = v->type;
    spmv_sddmm_options_init(&o, sizeof o);
    o.type = v->pattern ? v->type : SPMV_TYPE_DEFAULT;
    o.vectors = v->k;
    o.a_stride = v->a_gap > 0 ? a_stride : 0;
    o.b_stride = v->b_gap > 0 ? b_stride : 0;
    char *const device_a = support_upload(ctx, a, a_n * size), *const device_b = support_upload(ctx, b, b_n * size);
    char *const device_y = support_upload(ctx, y, (p.nnz + v->shift) * size);
    assert_ok(ctx, spmv_sddmm_create(ctx, &p, &o, &s));
    assert_true(spmv_sddmm_bytes(s) >= p.nnz * 4);
    const int64_t shift = v->shift * size;
    assert_ok(ctx, spmv_sddmm_apply(s, device_a + shift, device_b + shift, device_y + shift));
    assert_ok(ctx, spmv_download(ctx, device_y + shift, y, p.nnz * size));
    if (support_backend == SPMV_BACKEND_CUDA && s->p.row_ptr_bits == 32 && v->k * size > 64) {
        char *const other = support_zeros(p.nnz, 8); /* the other kernel: the same bits */
        s->by_rows = !s->by_rows;
        assert_ok(ctx, spmv_upload(ctx, other, device_y + shift, p.nnz * size));
        assert_ok(ctx, spmv_sddmm_apply(s, device_a + shift, device_b + shift, device_y + shift));
        assert_ok(ctx, spmv_download(ctx, device_y + shift, other, p.nnz * size));
        assert_memory_equal(other, y, (size_t)(p.nnz * size));
        support_free(other);
    }
    spmv_sddmm_destroy(s);
    for (int64_t i = 0; i < p.rows; i++)
        for (int64_t e = ((const int64_t *)p.row_ptr)[i]; e < ((const int64_t *)p.row_ptr)[i + 1]; e++)
            check_entry(v, a + shift + i * a_stride * size, b + shift + p.col[e] * b_stride * size,
                        v->pattern ? 1 : real_at(v->type, val, e), y, e);
    support_free_in(ctx, device_a, device_b, device_y);
    support_free(a, b, val, y);
}

/* Rows of 0 to 40 entries, and long ones; k below, at and above the sums and the columns of a load. */
static void products(void **state)
{
    spmv_context *const ctx = *state;
    static const char *const specs[] = {"uniform:70,90,12", "powerlaw:200,3,2,150", "longrows:2,100,95"};
    static const int ks[] = {1, 3, 4, 15, 16, 17, 32, 64, 130, 264, 520};
    enum { KS = sizeof ks / sizeof ks[0] };
    for (int i = 0; i < 3; i++) {
        spmv_matrix *matrix = NULL;
        spmv_csr p;
        assert_ok(ctx, spmv_matrix_generate(ctx, specs[i], SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &p);
        for (int k = 0; k < KS; k++)
            for (int t = 0; t < TESTED; t++)
                if ((!SLOW || (i + k) % 3 == 0 || ks[k] == 17) && (ks[k] < 200 || i == 2) && (t < 2 || (i + k + t) % 2))
                    check(ctx, &p,
                          &(const struct variant){.type = tested[t],
                                                  .pattern = (i + k) % 2,
                                                  .k = ks[k],
                                                  .a_gap = k % 3 == 1 ? 8 : 0,
                                                  .b_gap = k % 3 == 2 ? 3 : 0,
                                                  .shift = (i + k + t) % 4 == 3});
        spmv_matrix_destroy(matrix);
    }
}

/* Each y is within some roundings of the definition, which needs no exact exponential. */
static void check_softmax(const spmv_csr *p, spmv_type type, const void *x, const void *y)
{
    const int64_t *const row_ptr = p->row_ptr;
    for (int64_t i = 0; i < p->rows; i++) {
        long double largest = -INFINITY, sum = 0;
        for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++)
            largest = fmaxl(largest, (long double)real_at(type, x, e));
        for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++)
            sum += expl((long double)real_at(type, x, e) - largest);
        for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++) {
            const struct real_limits sums = real_limits_of(type_of_sums(type)), last = real_limits_of(type);
            const long double expected = expl((long double)real_at(type, x, e) - largest) / sum;
            const long double bound =
                ((long double)(row_ptr[i + 1] - row_ptr[i] + 16) * 2 * (long double)sums.roundoff +
                 (type_is_half(type) ? (long double)last.roundoff : 0)) *
                    expected +
                (long double)last.normal;
            if (!(fabsl((long double)real_at(type, y, e) - expected) <= bound))
                fail_msg("softmax, entry %lld: %g, expected %Lg", (long long)e, real_at(type, y, e), expected);
        }
    }
}

static void softmax(void **state)
{
    spmv_context *const ctx = *state;
    for (int t = 0; t < TESTED; t++) {
        const spmv_type type = tested[t];
        const int64_t size = (int64_t)spmv_type_size(type);
        spmv_matrix *matrix = NULL;
        spmv_csr p;
        spmv_sddmm *s = NULL;
        spmv_sddmm_options o;
        assert_ok(ctx, spmv_matrix_generate(ctx, "longrows:2,300,200", SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &p);
        p.val = NULL;
        void *const x = random_numbers(type, p.nnz, 5), *const y = support_zeros(p.nnz, 8),
                    *const again = support_zeros(p.nnz, 8);
        real_set(type, x, 7, 700); /* whose exponential overflows in f32 */
        spmv_sddmm_options_init(&o, sizeof o);
        o.type = type;
        void *const device_x = support_upload(ctx, x, p.nnz * size), *const device_y =
                                                                         support_upload(ctx, y, p.nnz * size);
        assert_ok(ctx, spmv_sddmm_create(ctx, &p, &o, &s));
        assert_ok(ctx, spmv_sddmm_softmax(s, device_x, device_y));
        assert_ok(ctx, spmv_download(ctx, device_y, y, p.nnz * size));
        check_softmax(&p, type, x, y);
        assert_ok(ctx, spmv_sddmm_softmax(s, device_x, device_x));
        assert_ok(ctx, spmv_download(ctx, device_x, again, p.nnz * size));
        assert_memory_equal(y, again, (size_t)(p.nnz * size));
        spmv_sddmm_destroy(s);
        spmv_matrix_destroy(matrix);
        support_free_in(ctx, device_x, device_y);
        support_free(x, y, again);
    }
}

static void refusals(void **state)
{
    spmv_context *const ctx = *state;
    const int64_t row_ptr[] = {0, 1, 2};
    const int32_t col[] = {0, 1};
    const double val[] = {1, 2};
    double numbers[8] = {0};
    spmv_csr p = support_view(2, 2, 2, row_ptr, col, val, SPMV_F64);
    spmv_sddmm_options o;
    spmv_sddmm *s = NULL;
    spmv_sddmm_options_init(&o, sizeof o);
    o.vectors = 0;
    assert_fails(ctx, spmv_sddmm_create(ctx, &p, &o, &s), SPMV_ERROR_ARGUMENT, "vectors");
    o.vectors = 4;
    o.b_stride = 3;
    assert_fails(ctx, spmv_sddmm_create(ctx, &p, &o, &s), SPMV_ERROR_ARGUMENT,
                 "b_stride is 3, less than the 4 vectors");
    o.b_stride = 0;
    o.type = SPMV_F32;
    assert_fails(ctx, spmv_sddmm_create(ctx, &p, &o, &s), SPMV_ERROR_TYPE, "values of type f64");
    o.type = SPMV_C128;
    assert_fails(ctx, spmv_sddmm_create(ctx, &p, &o, &s), SPMV_ERROR_TYPE, "type c128");
    assert_null(s);
    p = support_view(2, 2, 0, (const int64_t[]){0, 0, 0}, NULL, NULL, SPMV_F64);
    assert_ok(ctx, spmv_sddmm_create(ctx, &p, NULL, &s));
    assert_ok(ctx, spmv_sddmm_apply(s, NULL, NULL, NULL)); /* there is no entry */
    assert_ok(ctx, spmv_sddmm_softmax(s, NULL, NULL));
    spmv_sddmm_destroy(s);
    p = support_view(2, 2, 2, row_ptr, col, val, SPMV_F64);
    assert_ok(ctx, spmv_sddmm_create(ctx, &p, NULL, &s));
    assert_fails(ctx, spmv_sddmm_apply(s, numbers, NULL, numbers), SPMV_ERROR_ARGUMENT, "b is NULL");
    assert_fails(ctx, spmv_sddmm_softmax(s, numbers, NULL), SPMV_ERROR_ARGUMENT, "y is NULL");
    spmv_sddmm_destroy(s);
    spmv_sddmm_destroy(NULL);
    assert_true(spmv_sddmm_bytes(NULL) == 0);
}

SUPPORT_MAIN(with_context(products), with_context(softmax), with_context(refusals))
