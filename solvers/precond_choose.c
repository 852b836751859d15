/* Preconditioner "auto": the choice from the matrix and the backend, with the reason.
 *
 * One pass examines the diagonal, its ratio to the rest of its row, the signs of the off-diagonal
 * entries, and the size. For a Laplacian, a short breadth-first search from row 0 also estimates the
 * distance to the farthest row: methods that pass information from neighbour to neighbour need about
 * as many iterations. On a GPU, pass and search run there. Nothing is timed, so the choice is
 * repeatable for any number of threads. docs/preconditioners.md has the figures behind the limits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "matrix_internal.h"
#include "precond_internal.h"
#include "precond_loops.h"

/* At this ratio the diagonal is at least twice the rest of each row: the eigenvalues of D^-1 A lie
 * in [1/2, 3/2]. */
static const double STRONG = 0.5;

/* Scaling by a diagonal that varies less than this changes little: jacobi costs more than it saves. */
static const double EVEN = 2;

/* On a CPU, a hierarchy takes as long as the iterations for such a distance; the first number is for
 * vectors that fit in a cache. */
enum { HIERARCHY = 300, LARGE_HIERARCHY = 200, LARGE_ROWS = 300000 };

/* On a CPU: with a diagonal that varies so much, jacobi needs many more iterations than the distance, and
 * from so many rows on a hierarchy pays. */
static const double VARIED = 1000;
enum { VARIED_ROWS = 100000 };

/* On a GPU: a larger system does not fit the rung persistent of conjugate gradients. */
enum { CACHED_ROWS = 245000 };

/* Beyond this size, a factor costs more than it saves, because its solves have little parallelism. */
enum { FACTOR_ROWS = 10000 };

/* ------------------------------------------------------------------ the matrix */

static struct precond_look look_on_host(const struct precond_source *source)
{
    const spmv_csr *a = &source->host;
    struct precond_look look = {.smallest = INFINITY};
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

static spmv_status look_at(spmv_context *ctx, const struct precond_source *source, struct precond_look *look)
{
#ifdef SPMV_HAVE_CUDA
    if (source->device_diagonal != NULL)
        return precond_look_cuda(ctx, source->a, source->device_diagonal, look);
#endif
    (void)ctx;
    *look = look_on_host(source);
    return SPMV_OK;
}

static spmv_status ball_on_host(spmv_context *ctx, const spmv_csr *a, struct precond_ball *ball)
{
    int32_t *queue = NULL, *reached = NULL;
    char *seen = NULL;
    int32_t steps = 0;
    int64_t begin = 0, end = 1;
    spmv_status st = SPMV_OK;
    TRY(host_alloc(ctx, PRECOND_BALL * 4, "a search", (void **)&queue));
    TRY(host_alloc(ctx, PRECOND_BALL * 4, "a search", (void **)&reached));
    TRY(host_alloc(ctx, a->rows, "a search", (void **)&seen));
    memset(seen, 0, (size_t)a->rows);
    seen[0] = 1;
    queue[0] = 0;
    reached[0] = 1;
    for (int64_t here = 1; begin < here && here <= PRECOND_BALL; here = end) {
        for (; begin < here; begin++)
            for (int64_t k = row_first(a, queue[begin]); k < row_first(a, queue[begin] + 1); k++)
                if (!seen[a->col[k]]) {
                    seen[a->col[k]] = 1;
                    if (end < PRECOND_BALL)
                        queue[end] = a->col[k];
                    end++;
                }
        if (end > here && end <= PRECOND_BALL)
            reached[++steps] = (int32_t)end;
    }
    *ball = (struct precond_ball){steps, reached[steps], reached[steps / 2], end <= PRECOND_BALL};
done:
    host_free_all(queue, reached, seen);
    return st;
}

/* An estimate of the largest distance of a row from row 0, in steps along entries. A ball of s steps
 * is taken to have c s^g rows; the last one and that of half as many steps determine c and g. */
static spmv_status estimate_distance(spmv_context *ctx, const struct precond_source *source, double *distance)
{
    struct precond_ball ball = {0};
    spmv_status st = SPMV_OK;
#ifdef SPMV_HAVE_CUDA
    if (source->device_diagonal != NULL)
        st = precond_ball_cuda(ctx, source->a, &ball);
    else
#endif
        st = ball_on_host(ctx, &source->host, &ball);
    if (st != SPMV_OK)
        return st;
    *distance = ball.steps;
    if (!ball.ended && ball.steps >= 2) {
        const double growth = log((double)ball.rows / ball.inside) / log((double)ball.steps / (ball.steps / 2));
        *distance *= pow((double)source->a->rows / ball.rows, 1 / fmax(growth, 1));
    }
    return SPMV_OK;
}

/* ------------------------------------------------------------------ the choice */

/* Whether a hierarchy takes less time than the iterations that it saves. even: the diagonal entries are
 * nearly equal; otherwise jacobi takes more iterations. A GPU, in microseconds: a step of a system
 * that fits the rung persistent and of a larger one; set-up and solve with a hierarchy, of which a
 * part does not depend on the size, since kernels start and the host waits. */
static bool is_worth(spmv_context *ctx, const spmv_csr *a, double distance, bool even)
{
    const double rows = 1e-6 * (double)a->rows, entries = 1e-6 * (double)a->nnz;
    if (ctx->backend->id != SPMV_BACKEND_CUDA)
        return (even ? 1 : 2) * distance >= (a->rows >= LARGE_ROWS ? LARGE_HIERARCHY : HIERARCHY);
    const double iterations = (even ? 1.35 : 2.1) * distance;
    const double step = a->rows <= CACHED_ROWS ? 3 + 9 * rows : 6 + 15 * rows + 0.9 * entries;
    return iterations * step > 3300 + 2000 * rows + 330 * entries;
}

spmv_status precond_choose(spmv_context *ctx, const struct precond_source *source, const char **name, char *why)
{
    const spmv_csr *a = source->a;
    const bool gpu = ctx->backend->id == SPMV_BACKEND_CUDA;
    struct precond_look look;
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
    if (source->options->near_nulls > 0) {
        *name = "amg";
        snprintf(why, PRECOND_SENTENCE, "near-null-space vectors are given, which only multigrid uses");
        return SPMV_OK;
    }
    spmv_status st = look_at(ctx, source, &look);
    if (st != SPMV_OK)
        return st;
    const bool dominant = look.heaviest <= 1 + 1e-6; /* files often have few digits */
    const bool laplacian = look.positive == 0 && look.beside > 0 && dominant;
    const bool even = look.largest <= EVEN * look.smallest;
    if (laplacian && look.heaviest > STRONG && a->rows > HIERARCHY) {
        double distance = 0;
        st = estimate_distance(ctx, source, &distance);
        if (st != SPMV_OK)
            return st;
        const bool varied = !gpu && look.largest >= VARIED * look.smallest && a->rows >= VARIED_ROWS;
        if (varied || is_worth(ctx, a, distance, even)) {
            *name = "amg";
            snprintf(why, PRECOND_SENTENCE,
                     "a Laplacian of %lld rows with distances of about %.0f steps and a diagonal from %.3g to %.3g: "
                     "other methods take about as many iterations as steps%s, multigrid about two dozen",
                     (long long)a->rows, distance, look.smallest, look.largest, even ? "" : " or more");
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
    } else if (even && (dominant || gpu)) {
        *name = "none";
        snprintf(why, PRECOND_SENTENCE,
                 "the diagonal is from %.3g to %.3g, so scaling by it would change little, and other methods cost more "
                 "than the iterations they save",
                 look.smallest, look.largest);
    } else if (gpu) {
        *name = "jacobi";
        snprintf(why, PRECOND_SENTENCE,
                 "the diagonal is from %.3g to %.3g, and jacobi is part of the solver's kernels, whose iterations take "
                 "microseconds; other methods cost more than the iterations they save",
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
