/* Passes over blocks of vectors for eigenvalue problems (eigen_passes.h), on the host.
 *
 * gram: panels of both blocks are packed as f64; 4 x 8 sums stay in registers over ROWS rows.
 * combine: 4 rows are packed; 4 x 8 results stay in registers over all columns.
 * AVX2 does not change a bit: products are rounded before they are added.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/eigen/eigen_passes.h"

#include <string.h>

#include "core/loops/host_tiles.h"

enum { ROWS = 128, PANEL = 32 };

#define ALWAYS_INLINE inline __attribute__((always_inline))
#ifdef __x86_64__
#define TARGET_AVX2 __attribute__((target("avx2")))
#else
#define TARGET_AVX2
#endif

typedef double four __attribute__((vector_size(32), aligned(8)));

#define VALUE double
#define TYPED(name) name##_f64
#include "solvers/eigen/eigen_passes_typed.h"
#undef VALUE
#undef TYPED
#define VALUE float
#define TYPED(name) name##_f32
#include "solvers/eigen/eigen_passes_typed.h"
#undef VALUE
#undef TYPED

static bool has_avx2(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

/* Runs a pass; work: of a row. */
#define RUN(v, e, name, work)                                                                                          \
    run_tiles(v, e,                                                                                                    \
              (e)->type == SPMV_F64 ? (has_avx2() ? name##_avx2_f64 : name##_tile_f64)                                 \
                                    : (has_avx2() ? name##_avx2_f32 : name##_tile_f32),                                \
              work)

static void run_tiles(const struct eigen_vectors *v, struct eigen_pass *e, tile_fn *tile, int64_t work)
{
    tiles_each_of(v->ctx, eigen_stripes(e), e->n * work, tile, e);
}

/* ------------------------------------------------------------- memory */

spmv_status eigen_vectors_open(spmv_context *ctx, spmv_type type, int64_t n, int most, int64_t sums,
                               struct eigen_vectors *v)
{
    enum { MANY_SUMS = 1 << 14, LEAST_STRIPES = 16 };
    spmv_status st = SPMV_OK;
    const int64_t parts = type_parts(type), wide = most * parts + 8, size = wide * wide * (int64_t)sizeof(double);
    /* with many sums there are fewer stripes: panels of the sums are shared out too */
    const int64_t stripes =
        max_i64(LEAST_STRIPES, min_i64(EIGEN_MOST_STRIPES, EIGEN_MOST_STRIPES * MANY_SUMS / (sums * parts * parts)));
    *v = (struct eigen_vectors){.ctx = ctx, .type = type, .n = n, .most = most};
    v->stripe_rows = max_i64(EIGEN_LEAST_ROWS, ceil_divide(ceil_divide(n, stripes), 32) * 32);
    TRY(context_lend(ctx, max_i64(1, ceil_divide(n, v->stripe_rows)) * sums * parts * parts * (int64_t)sizeof(double),
                     &v->parts));
    TRY(host_alloc(ctx, size, "coefficients", (void **)&v->expanded));
    if (context_on_device(ctx))
        TRY(context_lend(ctx, size, &v->coefficients));
done:
    return st;
}

void eigen_vectors_close(struct eigen_vectors *v)
{
    if (v->ctx == NULL)
        return;
    context_take_back(v->ctx, v->parts);
    context_take_back(v->ctx, v->coefficients);
    host_free(v->expanded);
    *v = (struct eigen_vectors){.ctx = NULL};
}

/* ------------------------------------------------------------- X'Y */

static struct eigen_pass begin(const struct eigen_vectors *v)
{
    return (struct eigen_pass){.type = type_part(v->type),
                               .n = v->n,
                               .stripe_rows = v->stripe_rows,
                               .parts = v->parts,
                               .parts_of_number = type_parts(v->type)};
}

/* From X'Y of real columns the numbers of the type: conj(x) y. */
static void fold(int parts, int p, int q, const double *from, double *to)
{
    if (parts == 1) {
        memcpy(to, from, (size_t)((int64_t)p * q) * sizeof *to);
        return;
    }
    for (int64_t a = 0; a < p; a++)
        for (int64_t b = 0; b < q; b++) {
            const double *const re = from + (2 * a * q + b) * 2, *const im = re + 2 * (int64_t)q;
            to[2 * (a * q + b)] = re[0] + im[1];
            to[2 * (a * q + b) + 1] = re[1] - im[0];
        }
}

spmv_status block_gram(const struct eigen_vectors *v, struct eigen_block x, struct eigen_block y,
                       const struct eigen_block *z, double *to_y, double *to_z)
{
    spmv_status st = SPMV_OK;
    const int parts = type_parts(v->type);
    struct eigen_pass e = begin(v);
    e.p = x.columns * parts;
    e.q = y.columns * parts;
    e.x = x.at;
    e.y = y.at;
    e.x_stride = x.stride * parts;
    e.y_stride = y.stride * parts;
    if (z != NULL) {
        e.z = z->at;
        e.z_stride = z->stride * parts;
    }
    const int64_t size = (int64_t)e.p * e.q * (z != NULL ? 2 : 1);
    double *sums = v->parts, *copy = NULL;
    if (context_on_device(v->ctx)) {
        TRY(host_alloc(v->ctx, size * (int64_t)sizeof *copy, "sums", (void **)&copy));
        if (v->n > 0) {
            TRY(eigen_gram_cuda(v->ctx, &e));
            TRY(spmv_download(v->ctx, v->parts, copy, size * (int64_t)sizeof *copy));
        } else {
            memset(copy, 0, (size_t)size * sizeof *copy);
        }
        sums = copy;
    } else {
        RUN(v, &e, gram, size / 16);
        for (int64_t stripe = 1; stripe < eigen_stripes(&e); stripe++)
            for (int64_t k = 0; k < size; k++)
                sums[k] += sums[stripe * size + k];
    }
    fold(parts, x.columns, y.columns, sums, to_y);
    if (z != NULL)
        fold(parts, x.columns, y.columns, sums + (int64_t)e.p * e.q, to_z);
done:
    host_free(copy);
    return st;
}

/* ------------------------------------------------------------- X C */

/* C for real columns, in rows of `width` numbers. */
static void expand(int parts, int p, int q, const double *c, int width, double *to)
{
    memset(to, 0, (size_t)((int64_t)p * parts * width) * sizeof *to);
    for (int64_t a = 0; a < p; a++)
        for (int64_t b = 0; b < q; b++) {
            const double *const from = c + (a * q + b) * parts;
            double *const at = to + a * parts * width + b * parts;
            at[0] = from[0];
            if (parts == 1)
                continue;
            at[1] = from[1];
            at[width] = -from[1];
            at[width + 1] = from[0];
        }
}

spmv_status block_combine(const struct eigen_vectors *v, struct eigen_block x, const double *c, struct eigen_block to)
{
    spmv_status st = SPMV_OK;
    const int parts = type_parts(v->type);
    struct eigen_pass e = begin(v);
    e.p = x.columns * parts;
    e.q = to.columns * parts;
    e.x = x.at;
    e.x_stride = x.stride * parts;
    e.to = to.at;
    e.to_stride = to.stride * parts;
    if (v->n == 0 || e.q == 0)
        return st;
    const bool gpu = context_on_device(v->ctx);
    const int width = gpu ? e.q : (e.q + 7) / 8 * 8;
    expand(parts, x.columns, to.columns, c, width, v->expanded);
    e.c = v->expanded;
    if (!gpu) {
        RUN(v, &e, combine, (int64_t)e.p * e.q / 16);
        return st;
    }
    TRY(spmv_upload(v->ctx, v->expanded, v->coefficients, (int64_t)e.p * e.q * (int64_t)sizeof(double)));
    e.c = v->coefficients;
    TRY(eigen_combine_cuda(v->ctx, &e));
done:
    return st;
}

/* ------------------------------------------------------------- residuals */

/* On a GPU, the numbers of columns go to v->coefficients: values of all columns, sizes, and `which`. */
static spmv_status place_numbers(const struct eigen_vectors *v, struct eigen_pass *e, int columns, const double *size)
{
    spmv_status st = SPMV_OK;
    e->size = size;
    if (!context_on_device(v->ctx))
        return st;
    double *const at = v->expanded, *const there = v->coefficients;
    int *const which = (int *)(void *)(at + columns + e->count);
    for (int c = 0; c < columns; c++)
        at[c] = e->values != NULL ? e->values[c] : 0;
    for (int c = 0; c < e->count; c++) {
        at[columns + c] = size != NULL ? size[c] : 1;
        which[c] = e->which != NULL ? e->which[c] : c;
    }
    TRY(spmv_upload(v->ctx, at, there,
                    (columns + e->count) * (int64_t)sizeof(double) + e->count * (int64_t)sizeof(int)));
    e->values = e->values != NULL ? there : NULL;
    e->size = there + columns;
    e->which = (const int *)(const void *)(there + columns + e->count);
done:
    return st;
}

static struct eigen_pass begin_residuals(const struct eigen_vectors *v, const struct block_residuals *r)
{
    struct eigen_pass e = begin(v);
    e.x = r->a.at;
    e.x_stride = r->a.stride * e.parts_of_number;
    e.y = r->b.at;
    e.y_stride = r->b.stride * e.parts_of_number;
    e.values = r->values;
    e.which = r->which;
    e.count = r->which != NULL ? r->count : r->a.columns;
    e.weight = r->weight;
    return e;
}

spmv_status block_squares(const struct eigen_vectors *v, const struct block_residuals *r, double *squares)
{
    spmv_status st = SPMV_OK;
    struct eigen_pass e = begin_residuals(v, r);
    const int count = e.count;
    const double *const sums = v->parts;
    for (int c = 0; c < count; c++)
        squares[c] = 0;
    if (v->n == 0)
        return st;
    TRY(place_numbers(v, &e, r->a.columns, NULL));
    if (context_on_device(v->ctx)) {
        TRY(eigen_squares_cuda(v->ctx, &e));
        return spmv_download(v->ctx, v->parts, squares, count * (int64_t)sizeof *squares);
    }
    RUN(v, &e, squares, count * e.parts_of_number);
    for (int64_t stripe = 0; stripe < eigen_stripes(&e); stripe++)
        for (int c = 0; c < count; c++)
            squares[c] += sums[stripe * count + c];
done:
    return st;
}

spmv_status block_send(const struct eigen_vectors *v, const struct block_residuals *r, const double *size,
                       spmv_type other, void *to, int64_t stride)
{
    spmv_status st = SPMV_OK;
    struct eigen_pass e = begin_residuals(v, r);
    e.other = other;
    e.to = to;
    e.to_stride = stride;
    if (v->n == 0)
        return st;
    TRY(place_numbers(v, &e, r->a.columns, size));
    if (context_on_device(v->ctx))
        return eigen_send_cuda(v->ctx, &e);
    RUN(v, &e, send, stride * e.parts_of_number);
done:
    return st;
}

spmv_status block_receive(const struct eigen_vectors *v, spmv_type other, const void *from, int64_t stride,
                          const double *size, struct eigen_block to)
{
    spmv_status st = SPMV_OK;
    struct eigen_pass e = begin(v);
    e.x = from;
    e.x_stride = stride;
    e.other = other;
    e.count = to.columns;
    e.to = to.at;
    e.to_stride = to.stride * e.parts_of_number;
    if (v->n == 0)
        return st;
    TRY(place_numbers(v, &e, 0, size));
    if (context_on_device(v->ctx))
        return eigen_receive_cuda(v->ctx, &e);
    RUN(v, &e, receive, e.count * e.parts_of_number);
done:
    return st;
}

spmv_status block_copy(const struct eigen_vectors *v, struct eigen_block from, struct eigen_block to)
{
    /* real numbers of the own type: a complex column is two columns */
    const int parts = type_parts(v->type);
    struct eigen_vectors real = *v;
    double *const ones = v->expanded + (int64_t)(v->most * (int64_t)parts + 8) * 4;
    real.type = type_part(v->type);
    to.columns = from.columns * parts;
    to.stride *= parts;
    for (int c = 0; c < to.columns; c++)
        ones[c] = 1;
    return block_receive(&real, real.type, from.at, from.stride * parts, ones, to);
}

/* Number k of a row of real columns is random number row * q + k. */
spmv_status block_random(const struct eigen_vectors *v, struct eigen_block to, uint64_t seed)
{
    struct eigen_pass e = begin(v);
    e.q = to.columns * e.parts_of_number;
    e.to = to.at;
    e.to_stride = to.stride * e.parts_of_number;
    e.seed = seed;
    if (v->n == 0)
        return SPMV_OK;
    if (context_on_device(v->ctx))
        return eigen_random_cuda(v->ctx, &e);
    RUN(v, &e, random, e.q);
    return SPMV_OK;
}
