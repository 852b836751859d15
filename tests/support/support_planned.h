/* Plans of one method with their arrays on the device, and the check of a product of integers, which
 * is exact. For tests of methods that the backend cuda chooses by the matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_PLANNED_H
#define SUPPORT_PLANNED_H

#include <math.h>

#include "product/plan_internal.h"
#include "tests/support/support_lengths.h"
#include "tests/support/support_one_context.h"

#ifdef HOST_CUDA
#include <cuda_runtime_api.h>
#endif

struct setting {
    const char *method;
    spmv_type stored, sums;
    int compression;
    bool scaled, wide, pattern, updates;
    int skew;          /* unused elements before each array */
    size_t most_bytes; /* largest allocation while the plan is made (host only); 0: no limit */
};

/* An array in context memory: the block, and the array in it. */
struct placed {
    void *block, *at;
};

static struct placed place_bytes(const void *host, int64_t n, int64_t size, int skew)
{
    struct placed p;
    assert_ok(ctx, spmv_alloc(ctx, (n + skew + 1) * size, &p.block));
    p.at = (char *)p.block + skew * size;
    assert_ok(ctx, spmv_upload(ctx, host, p.at, n * size));
    return p;
}

static struct placed place_values(spmv_type type, const double *values, int64_t n, int skew)
{
    void *const copy = support_as(type, values, n, 0);
    const struct placed p = place_bytes(copy, n, (int64_t)spmv_type_size(type), skew);
    free(copy);
    return p;
}

/* A plan with its arrays, on the device. */
struct planned {
    struct setting s;
    struct placed row_ptr, col, val;
    spmv_plan *plan;
};

static spmv_status try_plan(const struct matrix *m, struct setting s, struct planned *p)
{
    s.pattern |= m->val == NULL;
    *p = (struct planned){.s = s};
    p->row_ptr = place_bytes(m->row_ptr, m->rows + 1, 8, s.skew);
    p->col = place_bytes(m->col, m->nnz, 4, s.skew);
    if (!s.pattern)
        p->val = place_values(s.stored, m->val, m->nnz, s.skew);
    const spmv_csr a = support_csr_there(m->rows, m->cols, m->nnz, p->row_ptr.at, 64, p->col.at, p->val.at, s.stored);
    spmv_plan_options options = support_plan_options();
    options.method = s.method;
    options.type = s.sums;
    options.compression = s.compression;
    options.update_values = s.updates;
#ifdef HOST_CUDA
    const size_t room = host_cuda.most_bytes;
    host_cuda.most_bytes = s.most_bytes > 0 ? s.most_bytes : room;
#endif
    spmv_status st = spmv_plan_create(ctx, &a, &options, &p->plan);
#ifdef HOST_CUDA
    host_cuda.most_bytes = room;
#endif
    if (st == SPMV_OK && s.wide) { /* 64-bit offsets, which plans keep from 2^31 nonzeros on */
        plan_release_state(p->plan);
        p->plan->a.row_ptr = p->row_ptr.at;
        p->plan->a.row_ptr_bits = 64;
        st = method_prepare(p->plan);
    }
    return st;
}

/* A setting of one type. */
static inline struct setting in_type(struct setting s, const char *method, spmv_type type)
{
    s.method = method;
    s.stored = s.sums = type;
    return s;
}

/* A setting of a plan of the method whose values change. */
static inline struct setting updating(struct setting s, const char *method)
{
    s.method = method;
    s.updates = true;
    return s;
}

static struct planned make_plan(const struct matrix *m, struct setting s)
{
    struct planned p;
    assert_ok(ctx, try_plan(m, s, &p));
    return p;
}

/* A plan of the method with this name. */
static inline struct planned make_named_plan(const struct matrix *m, const char *method, struct setting s)
{
    s.method = method;
    const struct planned p = make_plan(m, s);
    assert_string_equal(p.plan->method->name, method);
    return p;
}

static inline void check_layout(const char *name, const struct planned *p, const char *says)
{
    if (strstr(p->plan->layout, says) == NULL)
        fail_msg("%s: \"%s\" does not contain \"%s\"", name, p->plan->layout, says);
}

static void free_plan(struct planned *p)
{
    spmv_plan_destroy(p->plan);
    support_free_in(ctx, p->row_ptr.block, p->col.block, p->val.block);
}

static const double alpha = 2, beta = -3;
static const float alpha32 = 2, beta32 = -3;

/* A vector of the setting. */
static struct placed place(const struct planned *p, const double *values, int64_t n)
{
    return place_values(p->s.sums, values, n, p->s.skew);
}

static void apply(const struct planned *p, struct placed x, struct placed y)
{
    const bool f32 = p->s.sums == SPMV_F32;
    assert_ok(ctx, !p->s.scaled ? spmv_apply(p->plan, NULL, x.at, NULL, y.at)
                   : f32        ? spmv_apply(p->plan, &alpha32, x.at, &beta32, y.at)
                                : spmv_apply(p->plan, &alpha, x.at, &beta, y.at));
}

/* A copy of y as stored; to be freed. */
static void *bytes_of(const struct planned *p, struct placed y)
{
    const int64_t rows = p->plan->a.rows;
    void *const copy = support_zeros(rows, 8);
    assert_ok(ctx, spmv_download(ctx, y.at, copy, rows * (int64_t)spmv_type_size(p->s.sums)));
    return copy;
}

/* The bytes of y after two products that began with y0, NAN where it must not be read; to be freed.
 * Both products must give the same bits: the counters of cut rows are 0 again. */
static void *product_of(const struct planned *p, const double *x, const double *y0)
{
    const int64_t rows = p->plan->a.rows;
    double *const poison = support_zeros(rows, sizeof *poison);
    for (int64_t i = 0; i < rows; i++)
        poison[i] = NAN;
    const struct placed dx = place(p, x, p->plan->a.cols);
    void *y[2];
    for (int turn = 0; turn < 2; turn++) {
        const struct placed dy = place(p, p->s.scaled ? y0 : poison, rows);
        apply(p, dx, dy);
        y[turn] = bytes_of(p, dy);
        spmv_free(ctx, dy.block);
    }
    assert_memory_equal(y[0], y[1], (size_t)rows * spmv_type_size(p->s.sums));
    spmv_free(ctx, dx.block);
    support_free(poison, y[1]);
    return y[0];
}

/* The product of integers is exact; val: the values that it should have, NULL for a pattern. */
static void check_product(const char *name, const struct matrix *m, const struct planned *p, const double *val)
{
    double *const x = make_vector(m->cols, 3, true), *const y0 = make_vector(m->rows, 4, true);
    void *const got = product_of(p, x, y0);
    for (int64_t i = 0; i < m->rows; i++) {
        double expected = 0;
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            expected += (p->s.pattern ? 1 : val[k]) * x[m->col[k]];
        if (p->s.scaled)
            expected = alpha * expected + beta * y0[i];
        const double y = p->s.sums == SPMV_F32 ? (double)((float *)got)[i] : ((double *)got)[i];
        if (y != expected)
            fail_msg("%s, %s, %s, compression %d%s%s%s, skew %d: row %lld of %lld (%lld entries) is %g, not %g (%s)",
                     name, spmv_type_name(p->s.stored), spmv_type_name(p->s.sums), p->s.compression,
                     p->s.scaled ? ", scaled" : "", p->s.wide ? ", wide" : "", p->s.pattern ? ", pattern" : "",
                     p->s.skew, (long long)i, (long long)m->rows, (long long)(m->row_ptr[i + 1] - m->row_ptr[i]), y,
                     expected, p->plan->layout);
    }
    support_free(got, x, y0);
}

/* Replaces the values of the plan by these numbers and checks its product. */
static inline void check_update(const struct matrix *m, struct planned *p, const double *values)
{
    void *const there = support_upload_as(ctx, p->s.stored, values, m->nnz, 0);
    assert_ok(ctx, spmv_plan_update_values(p->plan, there));
    check_product("new values", m, p, values);
    assert_ok(ctx, spmv_synchronize(ctx));
    spmv_free(ctx, p->val.block);
    p->val = (struct placed){there, there};
}

/* Makes the plan and checks its product. */
static inline void check_setting(const char *name, const struct matrix *m, struct setting s)
{
    struct planned p = make_plan(m, s);
    check_product(name, m, &p, m->val);
    free_plan(&p);
}

/* Checks whether a plan takes a method, and its product. Which other method it takes may depend on
 * the device. */
static inline void check_choice_of(const struct matrix *m, struct setting s, const char *method, bool wanted)
{
    struct planned p = make_plan(m, s);
    if ((strcmp(p.plan->method->name, method) == 0) != wanted)
        fail_msg("method %s (%s; %s), %s %s", p.plan->method->name, p.plan->why, p.plan->layout,
                 wanted ? "not" : "and not another than", method);
    check_product("the plan's choice", m, &p, m->val);
    free_plan(&p);
}

static inline void check_taken(const struct matrix *m, struct setting s, const char *method)
{
    check_choice_of(m, s, method, true);
}

static inline void check_not_taken(const struct matrix *m, struct setting s, const char *method)
{
    check_choice_of(m, s, method, false);
}

/* y, z + gamma y and w'y of one call; w is another vector, and y itself. */
static inline void check_epilogue(const struct matrix *m, const char *method)
{
    const struct setting s = {.method = method, .stored = SPMV_F64, .sums = SPMV_F64, .compression = -1};
    struct planned p = make_plan(m, s);
    double *const x = make_vector(m->cols, 3, true), *const w = make_vector(m->rows, 5, true);
    double *const z = make_vector(m->rows, 6, true), *const y = product_of(&p, x, NULL);
    double *const got = support_zeros(m->rows, 8);
    const double gamma = 3;
    void *const dx = support_upload(ctx, x, m->cols * 8), *const dw = support_upload(ctx, w, m->rows * 8);
    void *const gamma_there = support_upload(ctx, &gamma, 8);
    for (int itself = 0; itself < 2; itself++) {
        double dot = NAN, expected = 0;
        void *const dz = support_upload(ctx, z, m->rows * 8), *const dy = support_upload(ctx, got, m->rows * 8);
        void *const dot_there = support_upload(ctx, &dot, 8);
        const spmv_epilogue e = support_epilogue(itself ? dy : dw, dot_there, gamma_there, dz);
        assert_ok(ctx, spmv_apply_with(p.plan, NULL, dx, NULL, dy, &e));
        assert_ok(ctx, spmv_download(ctx, dy, got, m->rows * 8));
        assert_memory_equal(got, y, (size_t)m->rows * 8);
        assert_ok(ctx, spmv_download(ctx, dz, got, m->rows * 8));
        assert_ok(ctx, spmv_download(ctx, dot_there, &dot, 8));
        for (int64_t i = 0; i < m->rows; i++) {
            assert_true(got[i] == z[i] + gamma * y[i]);
            expected += (itself ? y[i] : w[i]) * y[i];
        }
        assert_true(dot == expected);
        support_free_in(ctx, dz, dy, dot_there);
    }
    support_free_in(ctx, dx, dw, gamma_there);
    support_free(x, w, z, y, got);
    free_plan(&p);
}

#ifdef HOST_CUDA
/* Counts the plans without and with 16-bit columns everywhere. */
static inline void count_widths(const struct planned *p, void *counts)
{
    ((int *)counts)[strstr(p->plan->layout, "16-bit columns in 100 %") != NULL]++;
}

/* Makes plans whose largest allocation is limited to first bytes, then to a step-th more each time,
 * below last. Calls look for each plan that can be made and checks its product. Returns the number of
 * plans that were refused. Asserts that no memory leaks, and that a plan that is made leaves no
 * message. */
static inline int plans_with_little_memory(const struct matrix *m, struct setting s, size_t first, size_t last,
                                           size_t step, void (*look)(const struct planned *, void *), void *user)
{
    int refused = 0;
    for (s.most_bytes = first; s.most_bytes < last; s.most_bytes += s.most_bytes / step) {
        const int64_t before = host_cuda.allocations;
        struct planned p;
        ctx->error[0] = '\0';
        const spmv_status st = try_plan(m, s, &p);
        if (st == SPMV_OK) {
            assert_string_equal(spmv_last_error(ctx), "");
            look(&p, user);
            check_product("little memory", m, &p, m->val);
        } else {
            assert_int_equal(st, SPMV_ERROR_MEMORY);
            refused++;
        }
        free_plan(&p);
        assert_int_equal(host_cuda.allocations, before);
    }
    return refused;
}
#endif

#endif
