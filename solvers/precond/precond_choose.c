/* Preconditioner "auto": the choice from the matrix and the backend, with the reason.
 *
 * One pass examines the diagonal, its ratio to the rest of its row, the signs of the off-diagonal
 * entries, the envelope, and the size. A short breadth-first search from row 0 also estimates the
 * distance to the farthest row: for a Laplacian, methods that pass information from neighbour to
 * neighbour need about as many iterations, and the rows at the same distance are about as many as an
 * envelope is wide. On a GPU, pass and search run there, for Laplacians only. Nothing is timed, so the
 * choice is repeatable for any number of threads. docs/preconditioners.md has the figures behind the
 * limits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "formats/matrix_internal.h"
#include "solvers/precond/precond_internal.h"
#include "solvers/precond/precond_loops.h"

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

/* Iterations that are expected if nothing more is known of a matrix, at most one for each row. */
static const double MANY = 650;

/* On a CPU: an iteration, and finding the order of the rows, take as long as so many multiplications
 * of a complete factorization for each entry of the matrix. */
static const double PRODUCTS = 2, ORDER = 70;

/* The factorization is serial. In all it may have at most so many multiplications, which take some
 * 0.2 s, or so many for each entry of the matrix. */
static const double ALL_PRODUCTS = 4e8, FEW_PRODUCTS = 50;

/* On a GPU: a larger system does not fit the rung persistent of conjugate gradients. */
enum { CACHED_ROWS = 245000 };

/* Beyond this size, a factor costs more than it saves, because its solves have little parallelism. */
enum { FACTOR_ROWS = 10000 };

/* ------------------------------------------------------------------ the matrix */

static double larger(double a, double b)
{
    return a > b ? a : b; /* fmax is a call */
}

/* Maxima, minima and counts: the same for any number of threads. So is the sum of products: it is exact
 * below 2^52, far above every limit for it. */
static struct precond_look look_on_host(const spmv_context *ctx, const struct precond_source *source)
{
    const spmv_csr *a = &source->host;
    double heaviest = 0, smallest = INFINITY, largest = 0, products = 0;
    int64_t beside = 0, positive = 0;
#pragma omp parallel for schedule(static) num_threads(host_team(ctx, a->nnz)) reduction(max : heaviest, largest)           \
    reduction(min : smallest) reduction(+ : beside, positive, products)
    for (int64_t i = 0; i < a->rows; i++) {
        const double diagonal = source->diagonal[i];
        double sum = 0;
        int64_t first = i;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            const double value = precond_value(a, k);
            if (a->col[k] != i && value != 0) {
                first = min_i64(first, a->col[k]);
                sum += fabs(value);
                beside++;
                positive += value > 0;
            }
        }
        products += 0.5 * (double)((i - first) * (i - first));
        if (sum > heaviest * diagonal)
            heaviest = sum / diagonal;
        smallest = -larger(-smallest, -diagonal);
        largest = larger(largest, diagonal);
    }
    return (struct precond_look){.heaviest = heaviest,
                                 .smallest = smallest,
                                 .largest = largest,
                                 .products = products,
                                 .beside = beside,
                                 .positive = positive};
}

static spmv_status look_at(spmv_context *ctx, const struct precond_source *source, struct precond_look *look)
{
#ifdef SPMV_HAVE_CUDA
    if (source->device_diagonal != NULL)
        return precond_look_cuda(ctx, source->a, source->device_diagonal, look);
#endif
    *look = look_on_host(ctx, source);
    return SPMV_OK;
}

/* A search from a row. seen: 1 for each row that an earlier search has reached, else 0. queue and
 * reached: PRECOND_BALL numbers. */
static struct precond_ball ball_from(const spmv_csr *a, int64_t row, char *seen, int32_t *queue, int32_t *reached)
{
    int32_t steps = 0;
    int64_t begin = 0, end = 1;
    seen[row] = 1;
    queue[0] = (int32_t)row;
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
    return (struct precond_ball){steps, reached[steps], reached[steps / 2], end <= PRECOND_BALL};
}

/* From row 0, or if few rows can be reached from there, from the row in the middle: rows of boundary
 * values often have nothing beside the diagonal. */
static spmv_status ball_on_host(spmv_context *ctx, const spmv_csr *a, struct precond_ball *ball)
{
    int32_t *queue = NULL, *reached = NULL;
    char *seen = NULL;
    spmv_status st = SPMV_OK;
    TRY(host_alloc(ctx, PRECOND_BALL * 4, "a search", (void **)&queue));
    TRY(host_alloc(ctx, PRECOND_BALL * 4, "a search", (void **)&reached));
    TRY(host_alloc(ctx, a->rows, "a search", (void **)&seen));
    memset(seen, 0, (size_t)a->rows);
    *ball = ball_from(a, 0, seen, queue, reached);
    if (ball->ended && ball->rows < a->rows / 2)
        *ball = ball_from(a, a->rows / 2, seen, queue, reached);
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

/* What the choice depends on. */
struct traits {
    struct precond_look look;
    bool dominant;  /* no diagonal entry is less than the rest of its row */
    bool laplacian; /* dominant, with no positive entry beside the diagonal */
    bool even;      /* the diagonal entries are nearly equal; otherwise jacobi takes more iterations */
    double distance;
    double iterations; /* expected of none or jacobi; on a CPU */
};

/* Multiplications for which a complete factor takes as long as so many iterations. */
static double worth_of(const spmv_csr *a, double iterations)
{
    const double entries = (double)a->nnz;
    return fmin((PRODUCTS * iterations - ORDER) * entries, fmax(ALL_PRODUCTS, FEW_PRODUCTS * entries));
}

/* The eigenvalues of D^-1 A lie within 1 - heaviest and 1 + heaviest, which bounds the iterations of
 * conjugate gradients for a tolerance of 1e-8: sqrt(condition number) log(2e8) / 2. The distance is
 * found where the choice may depend on it. */
static spmv_status find_traits(spmv_context *ctx, const struct precond_source *source, struct traits *t)
{
    const spmv_csr *a = source->a;
    spmv_status st = look_at(ctx, source, &t->look);
    if (st != SPMV_OK)
        return st;
    const double heaviest = t->look.heaviest;
    t->dominant = heaviest <= 1 + 1e-6; /* files often have few digits */
    t->laplacian = t->look.positive == 0 && t->look.beside > 0 && t->dominant;
    t->even = t->look.largest <= EVEN * t->look.smallest;
    t->iterations = fmin(MANY, (double)a->rows);
    if (heaviest < 1)
        t->iterations = fmin(t->iterations, 9.6 * sqrt((1 + heaviest) / (1 - heaviest)));
    const double worth = worth_of(a, t->iterations);
    const bool needed = ctx->backend->id == SPMV_BACKEND_CUDA
                            ? t->laplacian && heaviest > STRONG && a->rows > HIERARCHY
                            : t->look.beside > 0 && worth > 0 && (t->dominant || t->look.products > worth);
    if (needed)
        st = estimate_distance(ctx, source, &t->distance);
    if (needed && t->dominant)
        t->iterations = fmin(t->iterations, (t->even ? 1 : 2) * t->distance);
    return st;
}

/* On a CPU: whether a complete factor takes less time than the iterations of others. Its order is
 * found only if the matrix's own has a small envelope, or if the distance promises one: 1.5 times as
 * wide as the mean number of rows at the same distance. */
static spmv_status is_narrow(spmv_context *ctx, struct precond_source *source, const struct traits *t, bool *narrow)
{
    const spmv_csr *a = source->a;
    const double rows = (double)a->rows, worth = worth_of(a, t->iterations);
    const double width = t->distance > 0 ? 1.5 * rows / t->distance : rows;
    *narrow = false;
    if (ctx->backend->id == SPMV_BACKEND_CUDA || t->look.beside == 0 ||
        fmin(t->look.products, 0.5 * rows * width * width) > worth)
        return SPMV_OK;
    const spmv_status st = envelope_find(ctx, source);
    *narrow = st == SPMV_OK && source->envelope.products <= worth &&
              source->envelope.entries <= source->options->fill * ((double)a->nnz + rows);
    return st;
}

/* Whether a hierarchy takes less time than the iterations that it saves. A GPU, in microseconds: a
 * step of a system that fits the rung persistent and of a larger one; set-up and solve with a
 * hierarchy, of which a part does not depend on the size, since kernels start and the host waits. */
static bool is_worth(const spmv_context *ctx, const spmv_csr *a, const struct traits *t)
{
    const double rows = 1e-6 * (double)a->rows, entries = 1e-6 * (double)a->nnz;
    if (!t->laplacian || t->look.heaviest <= STRONG || a->rows <= HIERARCHY)
        return false;
    if (ctx->backend->id != SPMV_BACKEND_CUDA)
        return t->iterations >= (a->rows >= LARGE_ROWS ? LARGE_HIERARCHY : HIERARCHY) ||
               (t->look.largest >= VARIED * t->look.smallest && a->rows >= VARIED_ROWS);
    const double iterations = (t->even ? 1.35 : 2.1) * t->distance;
    const double step = a->rows <= CACHED_ROWS ? 3 + 9 * rows : 6 + 15 * rows + 0.9 * entries;
    return iterations * step > 3300 + 2000 * rows + 330 * entries;
}

/* The choice between none, jacobi and ic0. */
static const char *choose_simple(const spmv_csr *a, const struct traits *t, bool gpu, char *why)
{
    const struct precond_look *const look = &t->look;
    if (look->beside == 0) {
        snprintf(why, PRECOND_SENTENCE, "the matrix is diagonal");
        return "jacobi";
    }
    if (look->heaviest <= STRONG && !t->even) {
        snprintf(why, PRECOND_SENTENCE, "the diagonal exceeds the rest of each row by a factor of at least %.3g",
                 1 / look->heaviest);
        return "jacobi";
    }
    if (t->even && (t->dominant || gpu)) {
        snprintf(why, PRECOND_SENTENCE,
                 "the diagonal is from %.3g to %.3g, so scaling by it would change little, and other methods cost more "
                 "than the iterations they save",
                 look->smallest, look->largest);
        return "none";
    }
    if (gpu) {
        snprintf(why, PRECOND_SENTENCE,
                 "the diagonal is from %.3g to %.3g, and jacobi is part of the solver's kernels, whose iterations take "
                 "microseconds; other methods cost more than the iterations they save",
                 look->smallest, look->largest);
        return "jacobi";
    }
    if (look->positive == look->beside) {
        snprintf(why, PRECOND_SENTENCE,
                 "all entries are positive, as those of mass matrices, for which scaling by the diagonal, from %.3g to "
                 "%.3g, saves most iterations",
                 look->smallest, look->largest);
        return "jacobi";
    }
    if (t->laplacian && look->largest < VARIED * look->smallest) {
        snprintf(why, PRECOND_SENTENCE,
                 "a Laplacian with a diagonal from %.3g to %.3g: about %.0f iterations, in which a factor does not pay",
                 look->smallest, look->largest, t->iterations);
        return "jacobi";
    }
    if (a->rows <= FACTOR_ROWS) {
        snprintf(why, PRECOND_SENTENCE,
                 "the diagonal is from %.3g to %.3g, the rest of a row up to %.3g times as much: a factor takes "
                 "account of both",
                 look->smallest, look->largest, look->heaviest);
        return "ic0";
    }
    snprintf(why, PRECOND_SENTENCE,
             "the diagonal is from %.3g to %.3g, and a factor of %lld rows is solved mostly row by row", look->smallest,
             look->largest, (long long)a->rows);
    return "jacobi";
}

spmv_status precond_choose(spmv_context *ctx, struct precond_source *source, const char **name, char *why)
{
    const spmv_csr *a = source->a;
    struct traits t = {.distance = 0};
    bool narrow = false;
    spmv_status st = SPMV_OK;
    if (a->rows == 0 || source->bad < a->rows) {
        *name = "none";
        if (a->rows == 0)
            snprintf(why, PRECOND_SENTENCE, "the matrix has no rows");
        else
            snprintf(why, PRECOND_SENTENCE,
                     "the diagonal entry of row %lld%s is %g: the matrix is not positive definite, as other "
                     "preconditioners require",
                     context_number(ctx, source->bad), context_counted(ctx), source->bad_value);
        return SPMV_OK;
    }
    if (source->options->near_nulls > 0) {
        *name = "amg";
        snprintf(why, PRECOND_SENTENCE, "near-null-space vectors are given, which only multigrid uses");
        return SPMV_OK;
    }
    TRY(find_traits(ctx, source, &t));
    TRY(is_narrow(ctx, source, &t, &narrow));
    if (narrow) {
        *name = "cholesky";
        snprintf(why, PRECOND_SENTENCE,
                 "a complete factor within an envelope of %.3g entries, %.3g times those of the matrix, takes %.3g "
                 "multiplications: less time than the iterations of other methods",
                 source->envelope.entries, source->envelope.entries / (double)a->nnz, source->envelope.products);
    } else if (is_worth(ctx, a, &t)) {
        *name = "amg";
        snprintf(why, PRECOND_SENTENCE,
                 "a Laplacian of %lld rows with distances of about %.0f steps and a diagonal from %.3g to %.3g: "
                 "other methods take about as many iterations as steps%s, multigrid about two dozen",
                 (long long)a->rows, t.distance, t.look.smallest, t.look.largest, t.even ? "" : " or more");
    } else {
        *name = choose_simple(a, &t, ctx->backend->id == SPMV_BACKEND_CUDA, why);
    }
done:
    return st;
}
