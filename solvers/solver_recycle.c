/* A start for the next right-hand side from the solutions of those before (solver_recycle.h).
 *
 * The space has the ways d_k = x_k - (given start of solve k) of the last solves. Its basis W and Q = A W, with D = W R
 * for the ways D from the oldest to the newest one and an upper triangle R, is orthonormal in the energy of A, W'Q = I,
 * if conjugate gradients solve; else Q'Q = I. Of r = b - A x, the start is
 *
 *     x + W c,   c = W'r: the smallest error in the energy norm,   or c = Q'r: the smallest residual.
 *
 * A start costs a product and three passes over the space. After the solve, e = x - (start) is what is new of the way,
 * and nearly orthogonal to the space, because the start was the best one. So one pass of classical Gram-Schmidt makes it
 * orthogonal, with one more product; two where there was no start. Where the space is full, the oldest way leaves it in
 * the same combination: R without its first column is a triangle again after one rotation of neighbouring rows for each
 * column, and W and Q are multiplied by these rotations. So the space is exactly that of the last ways, and nothing is
 * computed again.
 *
 * If A gets new values, products of the space with the new A would cost as much as they save. So from then on the
 * space keeps each way d with its product q by the A of its time, as they are, and the matrix G = Q'Q. The start is
 * x + D c, where Q c is nearest to r: G c = Q'r, by a Cholesky factor with pivots of Q with columns of norm 1. As long as
 * A changes slowly, this is as near to the solution as the best point of the span. It costs two products, one of which
 * tells whether the start is better, and two passes over the space; a new pair, which replaces the oldest one, takes one
 * more of each. (b - A x of the given x in place of the product of a way is wrong by the residual that is left: steps rose.)
 *
 * Complex numbers are pairs of real ones, and coefficients are real.
 *
 * Sources: P. F. Fischer, Comput. Methods Appl. Mech. Eng. 163, 1998 (energy); T. F. Chan, W. L. Wan, SIAM J. Sci.
 * Comput. 18, 1997 (projections for several right-hand sides); J. W. Daniel, W. B. Gragg, L. Kaufman, G. W. Stewart, Math.
 * Comp. 30, 1976 (leaving out a column); L. Giraud, J. Langou, M. Rozloznik, Comput. Math. Appl. 50, 2005 (twice is
 * enough).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/solver_recycle.h"

#include <math.h>
#include <spmv/primitives.h>

#include "core/backend.h"
#include "core/hypot.h"
#include "core/loops/host_tiles.h"
#include "product/plan_internal.h"
#include "solvers/eigen/eigen_passes.h"

struct recycle {
    spmv_context *ctx;
    spmv_type type; /* of the vectors; part: of their real numbers */
    spmv_type part;
    int64_t n, bytes;
    int most, count;
    bool energy;
    bool stale;                                        /* new values have come since the last start */
    bool mixed;                                        /* W and Q have ways and their products with A of their times */
    double gram[RECYCLE_MOST * RECYCLE_MOST];          /* mixed: Q'Q, by rows of `most` */
    int oldest;                                        /* mixed: the next to be replaced */
    void *basis, *image;                               /* W and Q by rows, most + 1 numbers each; NULL: not made yet */
    double r[(RECYCLE_MOST + 1) * (RECYCLE_MOST + 1)]; /* R by rows of as many */
    /* of the solve that runs; begin NULL: none runs */
    void *begin;                /* its start */
    double c[RECYCLE_MOST + 1]; /* coefficients of the start */
    bool projected;             /* the start is from the space */
    double *sums;               /* on a host: of tiles of rows */
};

spmv_status recycle_create(spmv_context *ctx, spmv_type type, int64_t n, int most, struct recycle **space)
{
    struct recycle *s = NULL;
    *space = NULL;
    const spmv_status st = host_alloc(ctx, sizeof *s, "a space of solutions", (void **)&s);
    if (st != SPMV_OK)
        return st;
    *s = (struct recycle){.ctx = ctx, .type = type, .part = type_part(type), .n = n * type_parts(type), .most = most};
    *space = s;
    return st;
}

void recycle_destroy(struct recycle *s)
{
    if (s == NULL)
        return;
    context_take_back(s->ctx, s->begin);
    context_free_all(s->ctx, s->basis, s->image);
    host_free(s->sums);
    host_free(s);
}

int64_t recycle_bytes(const struct recycle *s)
{
    return s != NULL ? s->bytes : 0;
}

void recycle_renew(struct recycle *s)
{
    if (s != NULL)
        s->stale = true;
}

/* ------------------------------------------------------------- blocks */

/* A new vector is taken before the oldest one is left out. */
static int room_of(const struct recycle *s)
{
    return s->most + 1;
}

static struct eigen_block part_of(const struct recycle *s, void *vectors, int first, int columns)
{
    return block_part((struct eigen_block){vectors, room_of(s), room_of(s)}, s->part, first, columns);
}

static struct eigen_block alone(void *vector)
{
    return (struct eigen_block){vector, 1, 1};
}

static spmv_status open(const struct recycle *s, struct eigen_vectors *v)
{
    return eigen_vectors_open(s->ctx, s->part, s->n, room_of(s), (int64_t)room_of(s) * room_of(s), v);
}

static spmv_status lend(const struct recycle *s, void **vector)
{
    return context_lend(s->ctx, s->n * (int64_t)spmv_type_size(s->part), vector);
}

static spmv_status copy(const struct recycle *s, const void *from, void *to)
{
    return spmv_map(s->ctx, SPMV_MAP_COPY, s->part, from, to, s->n);
}

/* ------------------------------------------------------------- passes, with one vector on one side
 *
 * On a host: a loop over the numbers of a row, in tiles of rows whose sums are added in their order. */

enum { TILE_ROWS = 1024 };

struct pass {
    const struct recycle *s;
    struct eigen_block block;
    const void *r, *other;
    void *x;
    const double *c;
};

static int64_t row_tiles(const struct recycle *s)
{
    return ceil_divide(s->n, TILE_ROWS);
}

#define LOOPS(T, NAME)                                                                                                 \
    static void gram_##NAME(const struct pass *p, int64_t begin, int64_t end, double *sums)                            \
    {                                                                                                                  \
        const int k = p->block.columns;                                                                                \
        const int64_t stride = p->block.stride;                                                                        \
        const T *const r = p->r, *const w = p->block.at, *const other = p->other;                                      \
        double sum[RECYCLE_MOST + 1] = {0}, square = 0;                                                                \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            for (int j = 0; j < k; j++)                                                                                \
                sum[j] += (double)r[i] * (double)w[i * stride + j];                                                    \
            square += (double)r[i] * (double)other[i];                                                                 \
        }                                                                                                              \
        memcpy(sums, sum, (size_t)k * sizeof *sums);                                                                   \
        sums[k] = square;                                                                                              \
    }                                                                                                                  \
    static void add_##NAME(const struct pass *p, int64_t begin, int64_t end, double *square)                           \
    {                                                                                                                  \
        const int k = p->block.columns;                                                                                \
        const int64_t stride = p->block.stride;                                                                        \
        T *const x = p->x;                                                                                             \
        const T *const w = p->block.at;                                                                                \
        *square = 0;                                                                                                   \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            double sum = 0;                                                                                            \
            for (int j = 0; j < k; j++)                                                                                \
                sum += (double)w[i * stride + j] * p->c[j];                                                            \
            x[i] = (T)((double)x[i] + sum);                                                                            \
            *square += (double)x[i] * (double)x[i];                                                                    \
        }                                                                                                              \
    }
LOOPS(double, f64)
LOOPS(float, f32)
#undef LOOPS

static void gram_tile(void *state, int64_t tile)
{
    const struct pass *const p = state;
    const int64_t begin = tile * TILE_ROWS, end = min_i64(p->s->n, begin + TILE_ROWS);
    double *const sums = p->s->sums + tile * (p->block.columns + 1);
    if (p->s->part == SPMV_F64)
        gram_f64(p, begin, end, sums);
    else
        gram_f32(p, begin, end, sums);
}

static void add_tile(void *state, int64_t tile)
{
    const struct pass *const p = state;
    const int64_t begin = tile * TILE_ROWS, end = min_i64(p->s->n, begin + TILE_ROWS);
    if (p->s->part == SPMV_F64)
        add_f64(p, begin, end, p->s->sums + tile);
    else
        add_f32(p, begin, end, p->s->sums + tile);
}

/* The sums of all tiles, k numbers each. */
static void add_tiles(const struct recycle *s, int k, double *to)
{
    for (int j = 0; j < k; j++)
        to[j] = 0;
    for (int64_t t = 0; t < row_tiles(s); t++)
        for (int j = 0; j < k; j++)
            to[j] += s->sums[t * k + j];
}

/* c = vectors' r, of the first `count` vectors, and *product = r'other. */
static spmv_status multiply_first(const struct recycle *s, const struct eigen_vectors *v, void *vectors, int count,
                                  void *r, void *other, double *c, double *product)
{
    spmv_status st = SPMV_OK;
    const struct eigen_block block = part_of(s, vectors, 0, count);
    double all[RECYCLE_MOST + 2];
    if (context_on_device(s->ctx)) {
        if (count > 0)
            TRY(block_gram(v, alone(r), block, NULL, c, NULL));
        return block_gram(v, alone(r), alone(other), NULL, product, NULL);
    }
    struct pass p = {.s = s, .block = block, .r = r, .other = other};
    tiles_each_of(s->ctx, row_tiles(s), s->n * (count + 1), gram_tile, &p);
    add_tiles(s, count + 1, all);
    for (int j = 0; j < count; j++)
        c[j] = all[j];
    *product = all[count];
done:
    return st;
}

/* The same of all vectors of the space. */
static spmv_status multiply(const struct recycle *s, const struct eigen_vectors *v, void *vectors, void *r, void *other,
                            double *c, double *product)
{
    return multiply_first(s, v, vectors, s->count, r, other, c, product);
}

/* x = x + sign vectors c, and *square = x'x if that is not NULL; t: a vector */
static spmv_status add_combination(const struct recycle *s, const struct eigen_vectors *v, void *vectors,
                                   const double *c, double sign, void *t, void *x, double *square)
{
    spmv_status st = SPMV_OK;
    double signed_c[RECYCLE_MOST + 1];
    const struct eigen_block block = part_of(s, vectors, 0, s->count);
    for (int j = 0; j < s->count; j++)
        signed_c[j] = sign * c[j];
    if (!context_on_device(s->ctx)) {
        struct pass p = {.s = s, .block = block, .x = x, .c = signed_c};
        tiles_each_of(s->ctx, row_tiles(s), s->n * s->count, add_tile, &p);
        if (square != NULL)
            add_tiles(s, 1, square);
        return st;
    }
    TRY(block_combine(v, block, signed_c, alone(t)));
    TRY(spmv_map_axpby(s->ctx, s->part, NULL, t, NULL, x, s->n));
    if (square != NULL)
        TRY(block_gram(v, alone(x), alone(x), NULL, square, NULL));
done:
    return st;
}

/* ------------------------------------------------------------- another norm */

/* g, by rows, = U'U; then u = U, inverse = U^-1. False: g is not positive definite to rounding. */
static bool factorise(int n, const double *g, double *u, double *inverse)
{
    memset(u, 0, (size_t)n * (size_t)n * sizeof *u);
    memset(inverse, 0, (size_t)n * (size_t)n * sizeof *inverse);
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) {
            double sum = (g[i * n + j] + g[j * n + i]) / 2;
            for (int k = 0; k < i; k++)
                sum -= u[k * n + i] * u[k * n + j];
            if (i == j && !(sum > 0x1p-20 * g[i * n + i] && isfinite(sum)))
                return false;
            u[i * n + j] = i == j ? sqrt(sum) : sum / u[i * n + i];
        }
    for (int j = 0; j < n; j++)
        for (int i = j; i >= 0; i--) {
            double sum = i == j;
            for (int k = i + 1; k <= j; k++)
                sum -= u[i * n + k] * inverse[k * n + j];
            inverse[i * n + j] = sum / u[i * n + i];
        }
    return true;
}

/* r = u r, upper triangles; r has rows of most + 1 numbers. */
static void multiply_triangle(struct recycle *s, const double *u)
{
    const int n = s->count, m = room_of(s);
    for (int j = 0; j < n; j++)
        for (int i = 0; i <= j; i++) {
            double sum = 0;
            for (int k = i; k <= j; k++)
                sum += u[i * n + k] * s->r[k * m + j];
            s->r[i * m + j] = sum;
        }
}

/* Q = A W, and both orthonormal again. w, q: two vectors. */
static spmv_status renew(struct recycle *s, const struct eigen_vectors *v, spmv_plan *plan, bool energy, void *w,
                         void *q)
{
    spmv_status st = SPMV_OK;
    const int k = s->count;
    double *g = NULL;
    if (k == 0)
        goto done;
    TRY(host_alloc(s->ctx, 3 * (int64_t)k * k * (int64_t)sizeof *g, "a space of solutions", (void **)&g));
    double *const u = g + k * k, *const inverse = u + k * k;
    for (int j = 0; j < k; j++) {
        TRY(block_copy(v, part_of(s, s->basis, j, 1), alone(w)));
        TRY(spmv_apply(plan, NULL, w, NULL, q));
        TRY(block_copy(v, alone(q), part_of(s, s->image, j, 1)));
    }
    TRY(block_gram(v, part_of(s, energy ? s->basis : s->image, 0, k), part_of(s, s->image, 0, k), NULL, g, NULL));
    if (factorise(k, g, u, inverse)) {
        TRY(block_combine(v, part_of(s, s->basis, 0, k), inverse, part_of(s, s->basis, 0, k)));
        TRY(block_combine(v, part_of(s, s->image, 0, k), inverse, part_of(s, s->image, 0, k)));
        multiply_triangle(s, u);
    } else {
        s->count = 0;
    }
done:
    if (st == SPMV_OK)
        s->energy = energy;
    host_free(g);
    return st;
}

/* ------------------------------------------------------------- values that change */

/* The pairs of W and Q as they are, whose products are those with the values before. */
static spmv_status mix(struct recycle *s, const struct eigen_vectors *v)
{
    spmv_status st = SPMV_OK;
    const int k = s->count;
    double *g = NULL;
    TRY(host_alloc(s->ctx, (int64_t)k * k * (int64_t)sizeof *g, "a space of solutions", (void **)&g));
    TRY(block_gram(v, part_of(s, s->image, 0, k), part_of(s, s->image, 0, k), NULL, g, NULL));
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++)
            s->gram[i * s->most + j] = (g[i * k + j] + g[j * k + i]) / 2;
    s->oldest = 0;
    s->mixed = true;
done:
    host_free(g);
    return st;
}

/* c = G^-1 c, without vectors that depend on others. */
static void fit(const struct recycle *s, double *c)
{
    /* of squares of columns of norm 1, so sines of 1e-6: below, rounding errors of G would decide */
    const double least = 1e-12;
    enum { MOST = RECYCLE_MOST };
    const int n = s->count, m = s->most;
    double l[MOST][MOST], left[MOST], size[MOST], y[MOST];
    int order[MOST], rank = 0;
    for (int i = 0; i < n; i++) {
        const double square = s->gram[i * m + i];
        size[i] = square > 0 && isfinite(square) ? 1 / sqrt(square) : 0;
        left[i] = size[i] > 0 ? 1 : 0;
        order[i] = i;
    }
    for (; rank < n; rank++) {
        int pivot = rank;
        for (int i = rank + 1; i < n; i++)
            if (left[order[i]] > left[order[pivot]])
                pivot = i;
        const int p = order[pivot];
        if (!(left[p] > least))
            break;
        order[pivot] = order[rank];
        order[rank] = p;
        l[p][rank] = sqrt(left[p]);
        for (int i = rank + 1; i < n; i++) {
            const int q = order[i];
            double sum = s->gram[q * m + p] * size[q] * size[p];
            for (int k = 0; k < rank; k++)
                sum -= l[q][k] * l[p][k];
            l[q][rank] = sum / l[p][rank];
            left[q] -= l[q][rank] * l[q][rank];
        }
        y[rank] = c[p] * size[p];
        for (int k = 0; k < rank; k++)
            y[rank] -= l[p][k] * y[k];
        y[rank] /= l[p][rank];
    }
    for (int i = rank - 1; i >= 0; i--) {
        for (int k = i + 1; k < rank; k++)
            y[i] -= l[order[k]][i] * y[k];
        y[i] /= l[order[i]][i];
    }
    for (int i = 0; i < n; i++)
        c[order[i]] = i < rank ? y[i] * size[order[i]] : 0;
}

/* to = b - A x */
static spmv_status residual(const struct recycle *s, spmv_plan *plan, const void *b, const void *x, void *to)
{
    spmv_status st = SPMV_OK;
    spmv_c128 minus = {0}, one = {0}; /* scalars of the type, real or complex */
    real_set(s->part, &minus, 0, -1);
    real_set(s->part, &one, 0, 1);
    TRY(copy(s, b, to));
    TRY(spmv_apply(plan, &minus, x, &one, to));
done:
    return st;
}

/* x = x + D c. r: b - A x, which stays; t: a vector */
static spmv_status start_mixed(struct recycle *s, const struct eigen_vectors *v, spmv_plan *plan, const void *b,
                               void *x, void *r, void *t, struct recycle_told *told)
{
    spmv_status st = SPMV_OK;
    double given = 0, start = 0;
    void *u = NULL;
    TRY(lend(s, &u));
    TRY(multiply(s, v, s->image, r, r, s->c, &given));
    fit(s, s->c);
    TRY(copy(s, s->begin, u));
    TRY(add_combination(s, v, s->basis, s->c, 1, t, u, NULL));
    TRY(residual(s, plan, b, u, t));
    TRY(multiply_first(s, v, s->image, 0, t, t, NULL, &start));
    told->given = told->start = sqrt(given);
    if (!(start < given))
        goto done;
    TRY(copy(s, u, x));
    told->start = sqrt(start);
    told->vectors = s->count;
done:
    context_take_back(s->ctx, u);
    return st;
}

/* The way w with q = A w, in place of the oldest one where the space is full. */
static spmv_status append_mixed(struct recycle *s, const struct eigen_vectors *v, void *w, void *q)
{
    spmv_status st = SPMV_OK;
    const int m = s->most, at = s->count < m ? s->count : s->oldest;
    double h[RECYCLE_MOST + 1], square = 0;
    TRY(multiply(s, v, s->image, q, q, h, &square));
    if (!(square > 0 && isfinite(square)))
        goto done;
    TRY(block_copy(v, alone(w), part_of(s, s->basis, at, 1)));
    TRY(block_copy(v, alone(q), part_of(s, s->image, at, 1)));
    for (int j = 0; j < s->count; j++)
        s->gram[at * m + j] = s->gram[j * m + at] = h[j];
    s->gram[at * m + at] = square;
    if (s->count < m)
        s->count++;
    else
        s->oldest = (at + 1) % m;
done:
    return st;
}

/* ------------------------------------------------------------- the start */

static spmv_status project(struct recycle *s, const struct eigen_vectors *v, spmv_plan *plan, bool energy,
                           bool from_zero, const void *b, void *x, struct recycle_told *told)
{
    spmv_status st = SPMV_OK;
    double given = 0, start = 0;
    void *r = NULL, *t = NULL;
    TRY(lend(s, &r));
    TRY(lend(s, &t));
    if (s->stale && !s->mixed)
        TRY(mix(s, v));
    s->stale = false;
    if (!s->mixed && s->energy != energy)
        TRY(renew(s, v, plan, energy, r, t));
    if (s->count == 0)
        goto done;
    TRY(from_zero ? copy(s, b, r) : residual(s, plan, b, x, r));
    if (s->mixed) {
        TRY(start_mixed(s, v, plan, b, x, r, t, told));
        goto done;
    }
    TRY(multiply(s, v, energy ? s->basis : s->image, r, r, s->c, &given));
    TRY(add_combination(s, v, s->image, s->c, -1, t, r, &start));
    told->given = sqrt(given);
    told->start = told->given;
    if (!(start < given))
        goto done;
    TRY(add_combination(s, v, s->basis, s->c, 1, t, s->begin, NULL));
    TRY(copy(s, s->begin, x));
    s->projected = true;
    told->start = sqrt(start);
    told->vectors = s->count;
done:
    context_take_back(s->ctx, t);
    context_take_back(s->ctx, r);
    return st;
}

spmv_status recycle_start(struct recycle *s, spmv_plan *plan, bool energy, bool from_zero, const void *b, void *x,
                          struct recycle_told *told)
{
    spmv_status st = SPMV_OK;
    struct eigen_vectors v = {.ctx = NULL};
    *told = (struct recycle_told){0, -1, -1};
    s->projected = false;
    TRY(lend(s, &s->begin));
    if (from_zero) /* all bits 0, also as floats */
        TRY(spmv_map_index(s->ctx, s->part, &(const double){0}, NULL, s->begin, s->n));
    else
        TRY(copy(s, x, s->begin));
    if (s->count > 0) {
        TRY(open(s, &v));
        TRY(project(s, &v, plan, energy, from_zero, b, x, told));
    }
    if (s->count == 0) {
        s->energy = energy;
        s->stale = s->mixed = false;
    }
done:
    eigen_vectors_close(&v);
    if (st == SPMV_OK)
        return st;
    s->count = 0;
    context_take_back(s->ctx, s->begin);
    s->begin = NULL;
    if (told->vectors > 0 || st != SPMV_ERROR_MEMORY)
        return st;
    s->ctx->error[0] = '\0'; /* without memory, the solve begins at the given x */
    return SPMV_OK;
}

/* ------------------------------------------------------------- the next solution */

/* R, of k columns, without its first one is a triangle again after rotations of its rows: q, k x k, is their product. */
static void drop_oldest(struct recycle *s, int k, double *q)
{
    const int m = room_of(s);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++)
            q[i * k + j] = i == j;
    for (int i = 0; i < k; i++) /* the columns move up */
        for (int j = 0; j + 1 < k; j++)
            s->r[i * m + j] = s->r[i * m + j + 1];
    for (int i = 0; i + 1 < k; i++) {
        const double a = s->r[i * m + i], b = s->r[(i + 1) * m + i], size = real_hypot(a, b);
        const double cosine = size > 0 ? a / size : 1, sine = size > 0 ? b / size : 0;
        for (int j = 0; j < k; j++) {
            const double upper = q[i * k + j], lower = q[(i + 1) * k + j];
            q[i * k + j] = cosine * upper + sine * lower;
            q[(i + 1) * k + j] = cosine * lower - sine * upper;
        }
        for (int j = i; j + 1 < k; j++) {
            const double upper = s->r[i * m + j], lower = s->r[(i + 1) * m + j];
            s->r[i * m + j] = cosine * upper + sine * lower;
            s->r[(i + 1) * m + j] = cosine * lower - sine * upper;
        }
        s->r[(i + 1) * m + i] = 0;
    }
}

/* The new way, which is c in the basis and e = w, whose part in the basis is h and whose other part has this norm,
 * becomes the last column of R; the space takes e less that part, in place of the oldest way where it is full: one
 * combination of the basis and e. */
static spmv_status take(struct recycle *s, const struct eigen_vectors *v, void *w, void *q, const double *h,
                        double norm)
{
    spmv_status st = SPMV_OK;
    const int k = s->count, m = room_of(s), all = k + 1, first = k < s->most ? k : 0, kept = k < s->most ? 1 : k;
    double *z = NULL; /* all x kept */
    TRY(host_alloc(s->ctx, 2 * (int64_t)all * all * (int64_t)sizeof *z, "rotations", (void **)&z));
    double *const rotations = z + all * all;
    for (int j = 0; j < k; j++) {
        s->r[j * m + k] = s->c[j];
        s->r[k * m + j] = 0;
    }
    s->r[k * m + k] = norm;
    if (k == s->most)
        drop_oldest(s, all, rotations);
    for (int i = 0; i < all; i++)
        for (int j = 0; j < kept; j++) {
            /* row i of (I, -h / norm; 0, 1 / norm), times column j of the rotations transposed */
            const double *const g = rotations + j * all;
            const double last = i < k ? -h[i] / norm : 1 / norm;
            z[i * kept + j] = kept == 1 && first == k ? last : (i < k ? g[i] : 0) + last * g[k];
        }
    TRY(block_copy(v, alone(w), part_of(s, s->basis, k, 1)));
    TRY(block_copy(v, alone(q), part_of(s, s->image, k, 1)));
    TRY(block_combine(v, part_of(s, s->basis, 0, all), z, part_of(s, s->basis, first, kept)));
    TRY(block_combine(v, part_of(s, s->image, 0, all), z, part_of(s, s->image, first, kept)));
    s->count = first + kept;
done:
    host_free(z);
    return st;
}

/* Adds w, with q = A w, unless nothing of it is outside of the space. t: a vector */
static spmv_status append(struct recycle *s, const struct eigen_vectors *v, void *w, void *q, void *t)
{
    enum { PASSES = 3 };
    spmv_status st = SPMV_OK;
    const double least = 1024 * real_limits_of(s->part).roundoff;
    double h[RECYCLE_MOST + 1], before = 0, size = 0, after = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        TRY(multiply(s, v, s->energy ? s->basis : s->image, q, s->energy ? w : q, h, &size));
        before = pass == 0 ? size : before;
        after = size;
        for (int j = 0; j < s->count; j++) {
            s->c[j] += h[j];
            after -= h[j] * h[j];
        }
        /* without a start the second pass is the one that counts; h is small then */
        if ((pass > 0 || s->projected || s->count == 0) && (after > 0.5 * size || pass + 1 == PASSES))
            break;
        TRY(add_combination(s, v, s->basis, h, -1, t, w, NULL));
        TRY(add_combination(s, v, s->image, h, -1, t, q, NULL));
    }
    if (isfinite(before) && after > least * least * before)
        TRY(take(s, v, w, q, h, sqrt(after)));
done:
    return st;
}

static spmv_status alloc_basis(struct recycle *s)
{
    spmv_status st = SPMV_OK;
    const int64_t bytes = max_i64(1, s->n * room_of(s) * (int64_t)spmv_type_size(s->part));
    if (s->basis != NULL && s->image != NULL)
        return st;
    if (s->basis == NULL)
        TRY(context_alloc(s->ctx, bytes, &s->basis));
    if (s->sums == NULL && !context_on_device(s->ctx))
        TRY(host_alloc(s->ctx, max_i64(1, row_tiles(s)) * (room_of(s) + 1) * (int64_t)sizeof *s->sums, "sums",
                       (void **)&s->sums));
    TRY(context_alloc(s->ctx, bytes, &s->image));
    s->bytes = 2 * bytes;
done:
    return st;
}

spmv_status recycle_add(struct recycle *s, spmv_plan *plan, const void *x, bool solved)
{
    spmv_status st = SPMV_OK;
    struct eigen_vectors v = {.ctx = NULL};
    void *w = s->begin, *q = NULL, *t = NULL;
    const union real minus = real_scalar(s->part, -1);
    s->begin = NULL;
    if (w == NULL || !solved || s->n == 0)
        goto done;
    TRY(alloc_basis(s));
    TRY(lend(s, &q));
    TRY(lend(s, &t));
    TRY(open(s, &v));
    if (!s->projected)
        memset(s->c, 0, sizeof s->c);
    TRY(spmv_map_scalar(s->ctx, SPMV_MUL, s->part, &minus, w, t, s->n)); /* t = x - start */
    TRY(spmv_map_axpby(s->ctx, s->part, NULL, x, NULL, t, s->n));
    TRY(spmv_apply(plan, NULL, t, NULL, q));
    TRY(s->mixed ? append_mixed(s, &v, t, q) : append(s, &v, t, q, w));
done:
    eigen_vectors_close(&v);
    context_take_back(s->ctx, t);
    context_take_back(s->ctx, q);
    context_take_back(s->ctx, w);
    if (st != SPMV_OK)
        s->count = 0;
    if (st == SPMV_ERROR_MEMORY) { /* the solve is none the worse */
        s->ctx->error[0] = '\0';
        st = SPMV_OK;
    }
    return st;
}
