/* Preconditioner "auto": the choice from the matrix and the backend, with the reason.
 *
 * One pass examines the diagonal, its ratio to the rest of its row, the signs of the off-diagonal
 * entries, and the size. For a Laplacian, a breadth-first search also finds the distance from row 0
 * to the farthest row: methods that pass information from neighbour to neighbour need about as many
 * iterations. On a GPU, only the diagonal counts. Nothing is timed, so the choice is repeatable for
 * any number of threads. docs/preconditioners.md has the figures behind the limits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "matrix_internal.h"
#include "precond_internal.h"

/* At this ratio the diagonal is at least twice the rest of each row: the eigenvalues of D^-1 A lie
 * in [1/2, 3/2]. */
static const double STRONG = 0.5;

/* Scaling by a diagonal that varies less than this changes little: jacobi costs more than it saves. */
static const double EVEN = 2;

/* A hierarchy takes as long as so many iterations without it; the first number is for vectors that
 * fit in a cache. */
enum { HIERARCHY = 800, LARGE_HIERARCHY = 350, LARGE_ROWS = 300000 };

/* Beyond this size, a factor costs more than it saves, because its solves have little parallelism. */
enum { FACTOR_ROWS = 10000 };

struct look {
    double heaviest;          /* the largest sum of |a_ij|, j != i, over a_ii */
    double smallest, largest; /* of the diagonal */
    int64_t beside;           /* off-diagonal entries that are not 0 */
    int64_t positive;         /* of these */
};

static struct look look_at(const struct precond_source *source)
{
    const spmv_csr *a = &source->host;
    struct look look = {.smallest = INFINITY};
    for (int64_t i = 0; i < a->rows; i++) {
        const double diagonal = source->diagonal[i];
        double sum = 0;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            const double value = precond_value(a, k);
            if (a->col[k] != i && value != 0) {
                sum += fabs(value);
                look.beside++;
                look.positive += value > 0;
            }
        }
        look.heaviest = fmax(look.heaviest, sum / diagonal);
        look.smallest = fmin(look.smallest, diagonal);
        look.largest = fmax(look.largest, diagonal);
    }
    return look;
}

/* The largest distance, in steps along entries, of a row reachable from row 0. */
static spmv_status longest_way(spmv_context *ctx, const spmv_csr *a, int64_t *steps)
{
    spmv_status st = SPMV_OK;
    int32_t *queue = NULL, *far = NULL;
    int64_t begin = 0, end = 0;
    *steps = 0;
    TRY(host_alloc(ctx, a->rows * 4, "a search", (void **)&queue));
    TRY(host_alloc(ctx, a->rows * 4, "a search", (void **)&far));
    for (int64_t i = 0; i < a->rows; i++)
        far[i] = -1;
    far[0] = 0;
    queue[end++] = 0;
    while (begin < end) {
        const int32_t row = queue[begin++];
        *steps = far[row];
        for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++)
            if (far[a->col[k]] < 0) {
                far[a->col[k]] = far[row] + 1;
                queue[end++] = a->col[k];
            }
    }
done:
    host_free(queue);
    host_free(far);
    return st;
}

/* From the diagonal alone, which may be on the device. */
static spmv_status choose_on_gpu(spmv_context *ctx, const struct precond_source *source, const char **name, char *why)
{
    double smallest = 0, largest = 0;
    const spmv_status st = precond_diagonal_range(ctx, source, &smallest, &largest);
    if (st != SPMV_OK)
        return st;
    const bool even = largest <= EVEN * smallest;
    *name = even ? "none" : "jacobi";
    snprintf(why, PRECOND_SENTENCE,
             even ? "the diagonal is from %.3g to %.3g, so scaling by it would change little, and other methods cost "
                    "more than the iterations they save"
                  : "the diagonal is from %.3g to %.3g, and jacobi is part of the solver's kernels, whose iterations "
                    "take microseconds; other methods cost more than the iterations they save",
             smallest, largest);
    return SPMV_OK;
}

spmv_status precond_choose(spmv_context *ctx, const struct precond_source *source, const char **name, char *why)
{
    const spmv_csr *a = &source->host;
    if (a->rows == 0 || source->bad < a->rows) {
        *name = "none";
        if (a->rows == 0)
            snprintf(why, PRECOND_SENTENCE, "the matrix has no rows");
        else
            snprintf(why, PRECOND_SENTENCE,
                     "the diagonal entry of row %lld is %g: the matrix is not positive definite, as other "
                     "preconditioners require",
                     (long long)source->bad + 1, source->bad_value);
        return SPMV_OK;
    }
    if (ctx->backend->id == SPMV_BACKEND_CUDA)
        return choose_on_gpu(ctx, source, name, why);
    const struct look look = look_at(source);
    const bool laplacian = look.positive == 0 && look.beside > 0 && look.heaviest <= 1 + 1e-12;
    const bool even = look.largest <= EVEN * look.smallest;
    const int64_t worth = a->rows >= LARGE_ROWS ? LARGE_HIERARCHY : HIERARCHY;
    if (laplacian && a->rows > worth && look.heaviest > STRONG) {
        int64_t way = 0;
        const spmv_status st = longest_way(ctx, a, &way);
        if (st != SPMV_OK)
            return st;
        if ((even ? way : 2 * way) >= worth) {
            *name = "amg";
            snprintf(why, PRECOND_SENTENCE,
                     "a Laplacian of %lld rows and diameter %lld: other methods take about as many iterations as the "
                     "diameter%s, multigrid about two dozen",
                     (long long)a->rows, (long long)way, even ? "" : " or twice as many");
            return SPMV_OK;
        }
    }
    if (look.beside == 0 || (look.heaviest <= STRONG && !even)) {
        *name = "jacobi";
        if (look.beside == 0)
            snprintf(why, PRECOND_SENTENCE, "the matrix is diagonal");
        else
            snprintf(why, PRECOND_SENTENCE, "the diagonal exceeds the rest of each row by a factor of at least %.3g",
                     1 / look.heaviest);
    } else if (even && look.heaviest <= 1 + 1e-12) {
        *name = "none";
        snprintf(why, PRECOND_SENTENCE,
                 "the diagonal is from %.3g to %.3g, so scaling by it would change little, and other methods cost more "
                 "than the iterations they save",
                 look.smallest, look.largest);
    } else if (a->rows <= FACTOR_ROWS) {
        *name = "ic0";
        snprintf(why, PRECOND_SENTENCE,
                 "the diagonal is from %.3g to %.3g, the rest of a row up to %.3g times as much: a factor takes "
                 "account of both",
                 look.smallest, look.largest, look.heaviest);
    } else {
        *name = "jacobi";
        snprintf(why, PRECOND_SENTENCE,
                 "the diagonal is from %.3g to %.3g, and a factor of %lld rows is solved mostly row by row",
                 look.smallest, look.largest, (long long)a->rows);
    }
    return SPMV_OK;
}
