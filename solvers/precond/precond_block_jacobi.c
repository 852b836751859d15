/* Preconditioner block-jacobi: M = the square blocks of `block` consecutive rows along the diagonal
 * of A.
 *
 * Idea: couplings between neighbouring rows are solved exactly; blocks are independent. The blocks
 * are inverted here, in f64, by Cholesky, so that an application is one small dense matrix-vector
 * product for each block: block products and additions a row. Inversion is safe for such small
 * blocks. A block whose pivots vanish relative to its diagonal (A is not positive definite there,
 * or nearly not) is replaced by its diagonal, and the layout states this. With the option general,
 * blocks are inverted by LU with partial pivoting, and one whose pivots vanish relative to their
 * columns is replaced. Traffic an application: block numbers a row and 2 vectors. Saad 2003,
 * section 12.2; inversion: Golub and Van Loan, 4th ed., sections 3.4 and 4.2.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "core/loops/host_tiles.h"
#include "core/plural.h"
#include "formats/matrix_internal.h"
#include "solvers/precond/precond_loops.h"

enum { TILE_ROWS = 1024, MOST = 64 };

struct block_jacobi {
    spmv_preconditioner *m;
    struct precond_blocks blocks;
    struct precond_blocks turned; /* the transposed blocks; inverse NULL: not made yet */
};

struct application {
    const struct block_jacobi *self;
    const struct precond_blocks *blocks;
    const void *r;
    void *z;
};

static int64_t blocks_of(const struct precond_blocks *b)
{
    return ceil_divide(b->rows, b->block);
}

static void apply_tile(void *state, int64_t tile)
{
    const struct application *application = state;
    const struct precond_blocks *b = application->blocks;
    const int64_t each = TILE_ROWS / b->block;
    precond_blocks_loop(application->self->m->type, b, application->r, application->z, tile * each,
                        min_i64((tile + 1) * each, blocks_of(b)));
}

static spmv_status multiply(const struct block_jacobi *j, const struct precond_blocks *blocks, const void *r, void *z)
{
    spmv_context *ctx = j->m->ctx;
    if (context_on_device(ctx))
        return precond_blocks_cuda(ctx, j->m->type, blocks, r, z);
    struct application application = {j, blocks, r, z};
    tiles_each(ctx, ceil_divide(blocks_of(blocks), TILE_ROWS / blocks->block), apply_tile, &application);
    return SPMV_OK;
}

static spmv_status apply(void *self, const void *r, void *z)
{
    const struct block_jacobi *j = self;
    return multiply(j, &j->blocks, r, z);
}

static spmv_status apply_transposed(void *self, const void *r, void *z)
{
    const struct block_jacobi *j = self;
    return multiply(j, &j->turned, r, z);
}

/* Copies the blocks, each transposed. */
static spmv_status transpose(void *self)
{
    spmv_status st = SPMV_OK;
    struct block_jacobi *const j = self;
    spmv_preconditioner *const m = j->m;
    const int block = j->blocks.block;
    const int64_t each = (int64_t)block * block, numbers = blocks_of(&j->blocks) * each;
    double *turned = NULL;
    void *copy = NULL, *there = NULL;
    const void *from = NULL;
    TRY(context_read(m->ctx, j->blocks.inverse, numbers * (int64_t)spmv_type_size(m->type), "inverse blocks", &copy,
                     &from));
    TRY(host_alloc(m->ctx, numbers * 8, "inverse blocks", (void **)&turned));
    for (int64_t k = 0; k < numbers; k++)
        turned[k] = real_at(m->type, from, k / each * each + k % block * block + k % each / block);
    TRY(precond_upload(m, turned, numbers, &there));
    j->turned = j->blocks;
    j->turned.inverse = there;
    m->apply_transposed = apply_transposed;
done:
    host_free(copy);
    host_free(turned);
    return st;
}

static void destroy(void *self)
{
    struct block_jacobi *j = self;
    spmv_free(j->m->ctx, (void *)j->blocks.inverse);
    spmv_free(j->m->ctx, (void *)j->turned.inverse);
    host_free(j);
}

/* The block of rows and columns first to first + n - 1 of A; unless it is unsymmetric, only its
 * lower triangle. */
static void take_block(const spmv_csr *a, int64_t first, int n, bool unsymmetric, double *block)
{
    memset(block, 0, (size_t)(n * n) * sizeof *block);
    for (int i = 0; i < n; i++)
        for (int64_t k = row_first(a, first + i); k < row_first(a, first + i + 1); k++) {
            const int64_t j = a->col[k] - first;
            if (j >= 0 && j < (unsymmetric ? n : i + 1))
                block[i * n + j] += precond_value(a, k);
        }
}

/* Replaces the lower triangle of a symmetric block by that of the inverse: the Cholesky factor L,
 * its inverse, and L^-T L^-1. Returns false if a pivot is within the rounding error (u) of 0. */
static bool invert(double *a, int n, double u)
{
    for (int j = 0; j < n; j++) {
        const double limit = 8 * n * u * a[j * n + j];
        for (int i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            if (i == j && !(sum > limit && isfinite(sum)))
                return false;
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
    }
    for (int j = 0; j < n; j++) {
        a[j * n + j] = 1 / a[j * n + j];
        for (int i = j + 1; i < n; i++) {
            double sum = 0;
            for (int k = j; k < i; k++)
                sum -= a[i * n + k] * a[k * n + j];
            a[i * n + j] = sum / a[i * n + i];
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;
            for (int k = i; k < n; k++)
                sum += a[k * n + i] * a[k * n + j];
            a[i * n + j] = sum;
        }
    return true;
}

static void swap_rows(double *a, int n, int i, int j)
{
    for (int k = 0; k < n && i != j; k++) {
        const double swap = a[i * n + k];
        a[i * n + k] = a[j * n + k];
        a[j * n + k] = swap;
    }
}

/* inverse = a^-1: the factors of P a = L U replace a, then L and U are solved for the rows of P.
 * Returns false if a pivot is within the rounding error (u) of 0. */
static bool invert_unsymmetric(double *a, int n, double u, double *inverse)
{
    double largest[MOST] = {0};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            largest[j] = fmax(largest[j], fabs(a[i * n + j]));
            inverse[i * n + j] = i == j;
        }
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k]))
                pivot = i;
        if (!(fabs(a[pivot * n + k]) > 8 * n * u * largest[k] && isfinite(a[pivot * n + k])))
            return false;
        swap_rows(a, n, k, pivot);
        swap_rows(inverse, n, k, pivot);
        for (int i = k + 1; i < n; i++) {
            a[i * n + k] /= a[k * n + k];
            for (int j = k + 1; j < n; j++)
                a[i * n + j] -= a[i * n + k] * a[k * n + j];
        }
    }
    for (int i = 1; i < n; i++)
        for (int k = 0; k < i; k++)
            for (int j = 0; j < n; j++)
                inverse[i * n + j] -= a[i * n + k] * inverse[k * n + j];
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            for (int j = 0; j < n; j++)
                inverse[i * n + j] -= a[i * n + k] * inverse[k * n + j];
        for (int j = 0; j < n; j++)
            inverse[i * n + j] /= a[i * n + i];
    }
    return true;
}

struct inversion {
    const struct precond_source *source;
    struct precond_blocks blocks;
    double u;
    double *inverse;
    bool *fell; /* one for each block */
};

/* Inverts one block into its place. */
static void invert_block(void *state, int64_t b)
{
    const struct inversion *inversion = state;
    const int block = inversion->blocks.block;
    const int64_t first = b * block;
    const int n = (int)min_i64(block, inversion->blocks.rows - first);
    const bool unsymmetric = inversion->source->options->general;
    double a[MOST * MOST], unsymmetric_inverse[MOST * MOST];
    double *to = inversion->inverse + first * block;
    take_block(&inversion->source->host, first, n, unsymmetric, a);
    inversion->fell[b] =
        unsymmetric ? !invert_unsymmetric(a, n, inversion->u, unsymmetric_inverse) : !invert(a, n, inversion->u);
    for (int j = 0; j < block; j++)
        for (int i = 0; i < block; i++)
            to[j * block + i] = i >= n || j >= n     ? 0
                                : inversion->fell[b] ? (i == j ? 1 / inversion->source->diagonal[first + i] : 0)
                                : unsymmetric        ? unsymmetric_inverse[i * n + j]
                                                     : a[i >= j ? i * n + j : j * n + i];
}

spmv_status precond_make_block_jacobi(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    struct block_jacobi *j = NULL;
    void *there = NULL;
    struct inversion inversion = {.source = source, .u = real_limits_of(m->type).roundoff};
    const int block = source->options->block;
    const struct precond_blocks blocks = {.rows = m->rows, .block = block == 0 ? 16 : block};
    const int64_t count = blocks_of(&blocks), numbers = count * blocks.block * blocks.block;
    int64_t first = -1;
    inversion.blocks = blocks;
    TRY(host_alloc(m->ctx, sizeof *j, "a preconditioner", (void **)&j));
    TRY(host_alloc(m->ctx, numbers * 8, "inverse blocks", (void **)&inversion.inverse));
    TRY(host_alloc(m->ctx, count, "inverse blocks", (void **)&inversion.fell));
    tiles_each(m->ctx, count, invert_block, &inversion);
    for (int64_t i = 0; i < m->rows; i++)
        if (inversion.fell[i / blocks.block])
            TRY(precond_check_reciprocal(m, i, source->diagonal[i]));
    for (int64_t i = 0; i < numbers; i++)
        if (!isfinite(real_rounded(m->type, inversion.inverse[i]))) {
            st = context_fail(m->ctx, SPMV_ERROR_NOT_FINITE,
                              "preconditioner %s: the inverse of the block at row %lld%s overflows", m->name,
                              context_number(m->ctx, i / (blocks.block * blocks.block) * blocks.block),
                              context_counted(m->ctx));
            goto done;
        }
    for (int64_t b = count - 1; b >= 0; b--)
        if (inversion.fell[b]) {
            m->fallen++;
            first = b;
        }
    TRY(precond_upload(m, inversion.inverse, numbers, &there));
    *j = (struct block_jacobi){.m = m, .blocks = blocks};
    j->blocks.inverse = there;
    m->self = j;
    m->apply = apply;
    m->transpose = source->options->general ? transpose : NULL; /* else M is symmetric */
    m->destroy = destroy;
    const int block_rows = (int)max_i64(1, min_i64(blocks.block, m->rows)); /* of a block, at most */
    const int n = snprintf(m->layout, sizeof m->layout, "%lld dense block%s of %s%d row%s, inverted", (long long)count,
                           plural(count), m->rows % block_rows == 0 ? "" : "up to ", block_rows, plural(block_rows));
    if (m->fallen > 0)
        snprintf(m->layout + n, sizeof m->layout - (size_t)n,
                 "; blocks that are %s, replaced by their diagonal: %lld (the first at row %lld%s)",
                 source->options->general ? "singular" : "not positive definite", (long long)m->fallen,
                 context_number(m->ctx, (int64_t)first * blocks.block), context_counted(m->ctx));
done:
    host_free(inversion.inverse);
    host_free(inversion.fell);
    if (st != SPMV_OK) {
        spmv_free(m->ctx, there);
        host_free(j);
    }
    return st;
}
