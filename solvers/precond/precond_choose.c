/* Preconditioner "auto": the table `rules`, which is read from top to bottom. The first rule that
 * applies to the counted facts is taken, and its reason is told. `replacements` has what is made
 * where a choice cannot be made.
 *
 * The facts: one pass examines the diagonal, its ratio to the rest of its row, the signs of the
 * off-diagonal entries, the envelope, and the size. The growth of a short breadth-first search from
 * row 0 gives the dimension, and so how many rows there are along a side: where errors are smooth,
 * methods that pass information from neighbour to neighbour need some iterations for each. It also
 * gives the distance to the farthest row: the rows at the same distance are about as many as an
 * envelope is wide. On a GPU, pass and search run there. Nothing is timed, so the choice is
 * repeatable for any number of threads. docs/preconditioners.md has the
 * figures behind the limits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "core/choice.h"
#include "formats/matrix_internal.h"
#include "solvers/precond/precond_costs.h"
#include "solvers/precond/precond_internal.h"
#include "solvers/precond/precond_loops.h"

/* ------------------------------------------------------------------ limits */

/* At this ratio the diagonal is at least twice the rest of each row: the eigenvalues of D^-1 A lie
 * in [1/2, 3/2]. */
static const double STRONG = 0.5;

/* Scaling by a diagonal that varies less than this changes little: jacobi costs more than it
 * saves. */
static const double EVEN = 2;

/* Iterations of jacobi for each row along a side, where errors are smooth: of conjugate gradients, on
 * a grid with an even diagonal and elsewhere, and of gmres with restarts. All times the rest of a row
 * over its diagonal, if that is larger than 1: the eigenvalues of D^-1 A reach so much farther. */
static const double EVEN_STEPS = 2, STEPS = 2.5, GENERAL_STEPS = 5;

/* Weakly coupled equations, as those of reacting species, move the sum of a row by less than this part of its
 * diagonal entry. So do symmetric Helmholtz equations, which are not definite. */
static const double NEARLY = 0.05;

/* On a GPU: with a mean row of more, smooth errors are not all, and multigrid takes hundreds of iterations, or does not
 * pay. */
static const double NEARLY_EVERYWHERE = 1.5;

/* On a CPU: rows that are so many times as heavy as the mean are few. They give a few large eigenvalues, which
 * conjugate gradients find in as many steps. On a GPU multigrid costs little beside the steps of hard systems, which
 * the heaviest row tells. */
static const double TYPICAL = 2;

/* On a GPU, times so many for Laplacians in space: the costs of multigrid are those of meshes, and grids take less
 * (docs/notebook/multigrid-gpu.md#where-auto-changes). */
static const double SPACE_STEPS = 1.5;

/* On a CPU, a hierarchy takes as long as so many iterations; the first number is for vectors that fit
 * in a cache. */
enum { HIERARCHY = 300, LARGE_HIERARCHY = 200, LARGE_ROWS = 300000 };

/* With several unknowns to a node, two of two or more, of which some may be given: this part of the rows has the
 * columns of the row before. Multigrid, which is not given rigid body modes, then takes so many times as long. */
static const double NODES = 0.35;
enum { NODES_TIMES = 2 };

/* On a CPU: with a diagonal that varies so much, jacobi needs many more iterations than the
 * distance, and from so many rows on a hierarchy pays. */
static const double VARIED = 1000;
enum { VARIED_ROWS = 100000 };

/* Iterations that are expected if nothing more is known of a matrix, at most one for each row. */
static const double MANY = 650;

/* The same where a solve tries preconditioners on a sample of the matrix. */
static const double SURE = 60;

/* Beyond this size, a factor costs more than it saves, because its solves have little
 * parallelism. */
enum { FACTOR_ROWS = 10000 };

/* On a CPU: an iteration, and finding the order of the rows, take as long as so many
 * multiplications of a complete factorization for each entry of the matrix. */
static const double PRODUCTS = 2, ORDER = 70;

/* The factorization is serial. In all it may have at most so many multiplications, which take some
 * 0.2 s, or so many for each entry of the matrix. */
static const double ALL_PRODUCTS = 4e8, FEW_PRODUCTS = 50;

/* The width of an envelope beside the mean number of rows at the same distance: mostly at least the first, mostly at
 * most the second. */
static const double LEAST_WIDTH = 0.35, USUAL_WIDTH = 1.5;

/* A complete factor as the rival of multigrid may have so many multiplications, a second or two, if it has the least
 * width. What it really takes is found before it is made. */
static const double RIVAL_PRODUCTS = 2e9;

/* Of a matrix that is not symmetric, no hierarchy is made for fewer rows. */
enum { FEW_ROWS = 2000 };

/* The most work of a set-up: for each entry and row of A, in the time of some thousands of
 * iterations, or in all, a few seconds, for small systems. */
static const double MOST_WORK = 20000, SMALL_WORK = 2e9;

/* For each entry and row: the set-up of an incomplete factor that takes as long as multigrid in all, of
 * convection and diffusion in a plane; in space multigrid takes a half more. */
static const double FACTOR_WORK = 60;

/* Times so much more: where errors are not smooth, and only factors without fill-in could stand in. Their
 * iterations usually cost that or more. */
enum { DEAR = 2 };

int64_t precond_factor_work(const spmv_csr *a)
{
    return (int64_t)fmin(FACTOR_WORK * (double)(a->nnz + a->rows), 0x1p62);
}

double precond_products(const spmv_csr *a, double steps)
{
    return steps * PRODUCTS * (double)a->nnz;
}

int64_t precond_most_work(const spmv_csr *a)
{
    return (int64_t)fmin(fmax(MOST_WORK * (double)(a->nnz + a->rows), SMALL_WORK), 0x1p62);
}

/* ------------------------------------------------------------------ counting */

static double larger(double a, double b)
{
    return a > b ? a : b; /* fmax is a call */
}

/* Maxima, minima and counts: the same for any number of threads. So is the sum of products: it is
 * exact below 2^52, far above every limit for it. */
static struct precond_look look_on_host(const spmv_context *ctx, const struct precond_source *source)
{
    const spmv_csr *a = &source->host;
    double heaviest = 0, smallest = INFINITY, largest = 0, products = 0;
    int64_t beside = 0, positive = 0, mixed = 0, balanced = 0, weights = 0, alike = 0;
#pragma omp parallel for schedule(static) num_threads(heavy_team(ctx, a->nnz)) reduction(max : heaviest, largest)          \
    reduction(min : smallest) reduction(+ : beside, positive, mixed, balanced, weights, alike, products)
    for (int64_t i = 0; i < a->rows; i++) {
        const double diagonal = fabs(source->diagonal[i]), sign = source->diagonal[i] < 0 ? -1 : 1;
        struct precond_row row = {0};
        int64_t first = i;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            const double value = sign * precond_value(a, k);
            if (a->col[k] != i && value != 0) {
                first = min_i64(first, a->col[k]);
                precond_row_add(&row, value);
            }
        }
        beside += row.beside;
        positive += row.positive;
        mixed += precond_row_is_mixed(&row, diagonal);
        balanced += precond_row_is_balanced(&row, diagonal);
        products += 0.5 * (double)((i - first) * (i - first));
        weights += precond_weight(row.sum / diagonal);
        alike += i > 0 && precond_row_is_alike(a->col, row_first(a, i - 1), row_first(a, i), row_first(a, i + 1));
        if (row.sum > heaviest * diagonal)
            heaviest = row.sum / diagonal;
        smallest = -larger(-smallest, -diagonal);
        largest = larger(largest, diagonal);
    }
    return (struct precond_look){.heaviest = heaviest,
                                 .smallest = smallest,
                                 .largest = largest,
                                 .products = products,
                                 .beside = beside,
                                 .positive = positive,
                                 .mixed = mixed,
                                 .balanced = balanced,
                                 .weights = weights,
                                 .alike = alike};
}

static spmv_status look_at(spmv_context *ctx, const struct precond_source *source, struct precond_look *look)
{
    if (source->whole != NULL) {
        *look = source->whole->look;
        return SPMV_OK;
    }
    if (source->device_diagonal != NULL)
        return precond_look_cuda(ctx, source->a, 0, source->device_diagonal, look);
    *look = look_on_host(ctx, source);
    return SPMV_OK;
}

/* A search from a row. seen: 1 for each row that an earlier search has reached, else 0. queue:
 * PRECOND_BALL numbers. */
static struct precond_ball ball_from(const spmv_csr *a, int64_t row, char *seen, int32_t *queue)
{
    int32_t steps = 0, reached[PRECOND_BALL_STEPS + 1];
    int64_t begin = 0, here = 1, end = 1;
    seen[row] = 1;
    queue[0] = (int32_t)row;
    reached[0] = 1;
    for (; begin < here && here <= PRECOND_BALL && steps < PRECOND_BALL_STEPS; here = end) {
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
    return (struct precond_ball){steps, reached[steps], reached[steps / 2], begin == here};
}

/* From row 0, or if few rows can be reached from there, from the row in the middle: rows of
 * boundary values often have nothing beside the diagonal. */
static spmv_status ball_on_host(spmv_context *ctx, const spmv_csr *a, struct precond_ball *ball)
{
    int32_t *queue = NULL;
    char *seen = NULL;
    spmv_status st = SPMV_OK;
    TRY(host_alloc(ctx, PRECOND_BALL * 4, "a search", (void **)&queue));
    TRY(host_alloc(ctx, a->rows, "a search", (void **)&seen));
    memset(seen, 0, (size_t)a->rows);
    *ball = ball_from(a, 0, seen, queue);
    if (ball->ended && ball->rows < a->rows / 2)
        *ball = ball_from(a, a->rows / 2, seen, queue);
done:
    host_free_all(queue, seen);
    return st;
}

/* The dimension of a domain in which balls grow like this power of their radius: boundaries, which end
 * balls, make it seem smaller. */
static double dimension_of(double growth)
{
    return fmin(fmax(ceil(growth - 0.3), 1), 3);
}

/* Estimates of the largest distance of a row from row 0, in steps along entries, and of the number of
 * rows along a side. A ball of s steps is taken to have c s^g rows; the last one and that of half as
 * many steps determine c and g. A ball that has reached all its rows is taken for a plane domain, or a
 * line. */
static spmv_status estimate_size(spmv_context *ctx, const struct precond_source *source, double *distance,
                                 double *dimension, double *length)
{
    struct precond_ball ball = {0};
    spmv_status st = SPMV_OK;
    if (source->whole != NULL)
        st = source->whole->find_ball(source->whole->self, &ball);
    else if (source->device_diagonal != NULL)
        st = precond_ball_cuda(ctx, source->a, &ball);
    else
        st = ball_on_host(ctx, &source->host, &ball);
    if (st != SPMV_OK)
        return st;
    *distance = ball.steps;
    *dimension = 2;
    *length = fmax(sqrt(ball.rows), 0.5 * ball.steps);
    if (!ball.ended && ball.steps >= 2) {
        const double rows = (double)source->a->rows;
        const double growth = log((double)ball.rows / ball.inside) / log((double)ball.steps / (ball.steps / 2));
        *distance *= pow(rows / ball.rows, 1 / fmax(growth, 1));
        *dimension = dimension_of(growth);
        *length = pow(rows, 1 / *dimension);
    }
    return SPMV_OK;
}

/* ------------------------------------------------------------------ the facts */

/* A stage is counted before the first rule that needs it. */
enum stage { STAGE_GIVEN, STAGE_ROWS, STAGE_ENVELOPE };

struct system_facts {
    spmv_context *ctx;
    bool gpu, ranks;
    enum precond_for purpose;
    struct precond_source *source; /* NULL for minres */
    const spmv_csr *a;

    /* STAGE_ROWS */
    struct precond_look look;
    bool dominant;  /* no diagonal entry is less than the rest of its row */
    bool laplacian; /* dominant, and the positive entries beside the diagonal weigh little */
    bool balanced;  /* most rows have the sum 0: a constant vector is nearly in the null space */
    bool smooth;    /* errors can be smooth, and slow to vanish: one of these, or nearly a Laplacian */
    bool nearly;    /* for cg on a GPU: dominant, or nearly so in the mean; else multigrid takes many iterations */
    bool nodes;     /* several unknowns to a node: most rows have the columns of the row before or after */
    bool sampled;   /* a solve tries preconditioners on a sample */
    bool even;      /* the diagonal entries are nearly equal; otherwise jacobi takes more iterations */
    double distance, dimension;
    double iterations; /* expected of none or jacobi; on a CPU */
    double steps;      /* the same where errors are smooth: by the rows along a side */
    double worth;      /* multiplications for which a complete factor takes as long as the iterations */

    bool envelope; /* STAGE_ENVELOPE: it was looked for, since it may be narrow enough */
};

/* Multiplications for which a complete factor takes as long as so many iterations. */
static double worth_of(const spmv_csr *a, double iterations)
{
    const double entries = (double)a->nnz;
    return fmin((PRODUCTS * iterations - ORDER) * entries, fmax(ALL_PRODUCTS, FEW_PRODUCTS * entries));
}

/* The eigenvalues of D^-1 A lie within 1 - heaviest and 1 + heaviest, which bounds the iterations
 * of conjugate gradients for a tolerance of 1e-8: sqrt(condition number) log(2e8) / 2. The distance
 * is found where the choice may depend on it. */
static spmv_status count_rows(struct system_facts *f)
{
    const spmv_csr *a = f->a;
    if (f->source == NULL || f->source->bad < a->rows) /* nothing that the facts say */
        return SPMV_OK;
    spmv_status st = look_at(f->ctx, f->source, &f->look);
    if (st != SPMV_OK)
        return st;
    const double heaviest = f->look.heaviest, mean = precond_mean_weight(&f->look, a->rows);
    const bool cg = f->purpose == PRECOND_FOR_CG;
    double length = 0;
    f->dominant = heaviest <= 1 + 1e-6; /* files often have few digits */
    f->laplacian = f->look.mixed == 0 && f->look.beside > 0 && f->dominant;
    f->balanced = f->look.balanced > a->rows / 2 && f->look.beside > 0;
    f->smooth =
        f->laplacian || f->balanced || (!cg && f->look.mixed == 0 && mean >= 1 - NEARLY && heaviest <= 1 + NEARLY);
    f->nearly = !f->gpu || !cg || f->dominant || mean <= NEARLY_EVERYWHERE;
    f->nodes = (double)f->look.alike >= NODES * (double)a->rows;
    f->even = f->look.largest <= EVEN * f->look.smallest;
    const double bound = heaviest < 1 ? 9.6 * sqrt((1 + heaviest) / (1 - heaviest)) : INFINITY;
    f->sampled = f->source->sampled && !f->gpu && a->rows >= PRECOND_SAMPLED_ROWS;
    f->iterations = fmin(fmin(f->sampled && !f->dominant ? SURE : MANY, bound), (double)a->rows);
    f->worth = worth_of(a, f->iterations);
    const bool needed =
        f->gpu || !cg ? f->smooth && heaviest > STRONG && a->rows > HIERARCHY
                      : f->look.beside > 0 && f->worth > 0 && (f->dominant || f->smooth || f->look.products > f->worth);
    if (needed)
        st = estimate_size(f->ctx, f->source, &f->distance, &f->dimension, &length);
    const double each = !cg ? GENERAL_STEPS : f->even && f->dominant ? EVEN_STEPS : STEPS;
    const double weight = f->gpu ? heaviest : fmin(heaviest, TYPICAL * mean);
    if (needed)
        f->steps = fmin(cg ? fmin(bound, (double)a->rows) : INFINITY, each * fmax(1, weight) * length);
    if (needed && f->dominant)
        f->iterations = fmin(f->iterations, f->steps);
    f->worth = worth_of(a, f->iterations);
    if (f->smooth && a->rows > HIERARCHY) { /* a hierarchy may take less than the iterations */
        const struct precond_cost amg = precond_cost(f->gpu, PRECOND_FOR_CG, "amg", a->rows, a->nnz, 0);
        f->worth = fmin(f->worth, worth_of(a, precond_cost_of_all(&amg)));
    }
    return st;
}

/* Estimated multiplications of a complete factor whose envelope is so many times as wide as the mean number of
 * rows at the same distance. */
static double products_of(const struct system_facts *f, double width)
{
    const double rows = (double)f->a->rows, wide = f->distance > 0 ? fmin(rows, width * rows / f->distance) : rows;
    return fmin(f->look.products, 0.5 * rows * wide * wide);
}

/* On a CPU: the order of the envelope is found only if the matrix's own has a small one, or if the distance allows
 * one: where errors are not smooth, at its least width, if finding the order takes a tenth of what is at stake. */
static spmv_status count_envelope(struct system_facts *f)
{
    const bool cheap = !f->smooth && 10 * ORDER * (double)f->a->nnz <= f->worth;
    if (f->gpu || f->ranks || f->look.beside == 0 || products_of(f, cheap ? LEAST_WIDTH : USUAL_WIDTH) > f->worth)
        return SPMV_OK;
    const spmv_status st = envelope_find(f->ctx, f->source);
    f->envelope = st == SPMV_OK;
    return st;
}

/* ------------------------------------------------------------------ the rules */

static bool for_minres(const struct system_facts *f)
{
    return f->purpose == PRECOND_FOR_MINRES;
}

/* Of a matrix that is not symmetric: convection and diffusion. Smaller systems are solved before a hierarchy
 * is made. */
static bool smooth_unsymmetric(const struct system_facts *f)
{
    return f->purpose == PRECOND_FOR_UNSYMMETRIC && f->smooth && f->look.heaviest > STRONG && f->a->rows > FEW_ROWS;
}

/* The iterations of jacobi take longer than multigrid in all, and those that show it, more than a part of that. */
static bool smooth_unsymmetric_on_gpu(const struct system_facts *f)
{
    static const double PART = 0.1;
    const spmv_csr *const a = f->a;
    if (!smooth_unsymmetric(f) || !f->gpu)
        return false;
    const struct precond_cost amg = precond_cost(true, PRECOND_FOR_UNSYMMETRIC, "amg", a->rows, a->nnz, 0);
    const struct precond_cost jacobi = precond_cost(true, PRECOND_FOR_UNSYMMETRIC, "jacobi", a->rows, a->nnz, 0);
    return f->steps * jacobi.step > precond_cost_of_all(&amg) &&
           PRECOND_TRIAL * jacobi.step > PART * precond_cost_of_all(&amg);
}

/* Ranks make no factors together. */
static bool smooth_unsymmetric_on_ranks(const struct system_facts *f)
{
    return smooth_unsymmetric(f) && f->ranks && !f->gpu;
}

/* Few rows: factors without fill-in, whose iterations are a part of those of jacobi. From PRECOND_SAMPLED_ROWS rows on,
 * a sample decides. */
static bool smooth_unsymmetric_on_cpu(const struct system_facts *f)
{
    return f->purpose == PRECOND_FOR_UNSYMMETRIC && f->smooth && !f->gpu && !f->ranks;
}

static bool for_unsymmetric_on_cpu(const struct system_facts *f)
{
    return f->purpose == PRECOND_FOR_UNSYMMETRIC && !f->gpu;
}

static bool for_unsymmetric(const struct system_facts *f)
{
    return f->purpose == PRECOND_FOR_UNSYMMETRIC;
}

static bool no_rows(const struct system_facts *f)
{
    return f->a->rows == 0;
}

static bool not_positive(const struct system_facts *f)
{
    return f->source->bad < f->a->rows;
}

static bool near_null_given(const struct system_facts *f)
{
    const spmv_preconditioner_options *const o = f->source->options;
    return o->near_nulls > 0 || (f->ranks && o->dimensions > 0);
}

/* Errors are smooth, by sums of rows, but the matrix is no Laplacian: multigrid may be best, or not converge at all, as
 * with shells and frames. */
static bool to_be_sampled(const struct system_facts *f)
{
    return f->sampled && f->smooth && !f->dominant;
}

/* A complete factor takes less time than the iterations of others, and not too much memory. */
static bool narrow(const struct system_facts *f)
{
    const struct envelope *const e = &f->source->envelope;
    return f->envelope && e->products <= f->worth &&
           e->entries <= f->source->options->fill * ((double)f->a->nnz + (double)f->a->rows);
}

/* A Laplacian for which a hierarchy may pay. */
static bool hierarchy_possible(const struct system_facts *f)
{
    return f->smooth && f->look.heaviest > STRONG && f->a->rows > HIERARCHY;
}

/* On a CPU: the iterations that a hierarchy saves take longer than it does. */
static bool many_steps(const struct system_facts *f)
{
    const int scalar = f->a->rows >= LARGE_ROWS ? LARGE_HIERARCHY : HIERARCHY;
    return hierarchy_possible(f) && !f->gpu && f->steps >= (f->nodes ? NODES_TIMES * scalar : scalar);
}

static bool varied_diagonal(const struct system_facts *f)
{
    return hierarchy_possible(f) && !f->gpu && f->look.largest >= VARIED * f->look.smallest &&
           f->a->rows >= VARIED_ROWS;
}

/* On a GPU: the same, for what is nearly a Laplacian in most rows: else the rows along a side tell little, and jacobi, which
 * begins then, shows what it takes. A grid has few different values. */
static bool many_steps_on_gpu(const struct system_facts *f)
{
    if (!hierarchy_possible(f) || !f->gpu || !f->nearly)
        return false;
    const bool grid = f->dominant && f->even;
    const struct precond_cost amg =
        precond_cost(true, PRECOND_FOR_CG, "amg", f->a->rows, f->a->nnz, grid ? PRECOND_LIGHT : 0);
    const struct precond_cost jacobi =
        precond_cost(true, PRECOND_FOR_CG, "jacobi", f->a->rows, f->a->nnz, grid ? PRECOND_LIGHT : 0);
    const double times = f->dominant && f->dimension == 3 ? SPACE_STEPS : 1;
    return times * f->steps * jacobi.step > precond_cost_of_all(&amg);
}

static bool only_diagonal(const struct system_facts *f)
{
    return f->look.beside == 0;
}

static bool strong_diagonal(const struct system_facts *f)
{
    return f->look.heaviest <= STRONG && !f->even;
}

static bool even_diagonal(const struct system_facts *f)
{
    return f->even && (f->dominant || f->gpu);
}

static bool on_gpu(const struct system_facts *f)
{
    return f->gpu;
}

static bool all_positive(const struct system_facts *f)
{
    return f->look.positive == f->look.beside;
}

static bool few_steps(const struct system_facts *f)
{
    return f->laplacian && f->look.largest < VARIED * f->look.smallest;
}

static bool small_factor(const struct system_facts *f)
{
    return f->a->rows <= FACTOR_ROWS && !f->sampled;
}

static bool otherwise(const struct system_facts *f)
{
    (void)f;
    return true;
}

/* Most rows have two couplings that are about equal and far above the others, as on grids of elongated cells: strong
 * lines, along which a factor without fill-in is complete, whatever their order. A sample of rows is looked at. */
static bool along_lines(const struct system_facts *f)
{
    static const double FAR_ABOVE = 1.8, EQUAL = 1.5;
    enum { SAMPLE = 4096 };
    const spmv_csr *const a = &f->source->host;
    if (!hierarchy_possible(f) || f->gpu || f->ranks || f->nodes || f->purpose != PRECOND_FOR_CG)
        return false;
    const int64_t stride = ceil_divide(f->a->rows, SAMPLE);
    int64_t rows = 0, lines = 0;
    for (int64_t i = stride / 2; i < f->a->rows; i += stride) {
        double most[3] = {0, 0, 0}; /* the largest couplings of the row */
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            double value = a->col[k] == i ? 0 : fabs(precond_value(a, k));
            for (int m = 0; m < 3; m++)
                if (value > most[m]) {
                    const double less = most[m];
                    most[m] = value;
                    value = less;
                }
        }
        rows++;
        lines += most[1] > FAR_ABOVE * most[2] && most[0] < EQUAL * most[1];
    }
    return 3 * lines > 2 * rows;
}

static const char MULTIGRID[] =
    "{kind} of {rows} rows with a diagonal from {smallest} to {largest}: other methods take about {steps} iterations, "
    "by the rows along a side, multigrid about two dozen";

static const char SMOOTH_UNSYMMETRIC[] =
    "rows that mostly have the sum 0, as those of convection and diffusion: errors are smooth, and multigrid reduces "
    "them";

static const struct rule {
    const char *name;
    const char *smooth, *rival; /* what races against it: where errors are smooth; elsewhere */
    enum stage needs;
    bool (*when)(const struct system_facts *);
    const char *reason;
} rules[] = {
    {"jacobi", NULL, NULL, STAGE_GIVEN, for_minres,
     "minres needs a positive definite one, and the diagonal is positive"},
    {"amg", "jacobi", NULL, STAGE_ROWS, smooth_unsymmetric_on_gpu, SMOOTH_UNSYMMETRIC},
    {"amg", "jacobi", NULL, STAGE_ROWS, smooth_unsymmetric_on_ranks, SMOOTH_UNSYMMETRIC},
    {"ilu0", "ilut", NULL, STAGE_ROWS, smooth_unsymmetric_on_cpu,
     "few rows that mostly have the sum 0, as those of convection and diffusion: a factor without fill-in takes few "
     "iterations"},
    {"ilut", "ilu0", "ilu0", STAGE_GIVEN, for_unsymmetric_on_cpu,
     "an incomplete factor with fill-in: of the preconditioners for matrices that are not symmetric it solves the most "
     "systems"},
    {"jacobi", "amg", NULL, STAGE_ROWS, smooth_unsymmetric,
     "errors are smooth, and on a GPU the first iterations, which show whether multigrid pays, take little"},
    {"jacobi", "amg", "isai", STAGE_GIVEN, for_unsymmetric,
     "on a GPU, its iterations often take less than making incomplete factors"},
    /* for cg */
    {"none", NULL, NULL, STAGE_GIVEN, no_rows, "the matrix has no rows"},
    {"none", NULL, NULL, STAGE_GIVEN, not_positive,
     "the diagonal entry of row {bad row} is {bad value}: the matrix is not positive definite, as other "
     "preconditioners require"},
    {"amg", NULL, NULL, STAGE_GIVEN, near_null_given,
     "near-null-space vectors or coordinates are given, which only multigrid uses"},
    {"cholesky", NULL, NULL, STAGE_ENVELOPE, narrow,
     "a complete factor within an envelope of {envelope} entries, {fill} times those of the matrix, takes {products} "
     "multiplications: less time than the iterations of other methods"},
    {"jacobi", "amg", NULL, STAGE_ENVELOPE, to_be_sampled,
     "rows that mostly have the sum 0, so errors are smooth, and a diagonal from {smallest} to {largest}: a sample of "
     "the matrix shows what suits it"},
    {"ic0", "amg", NULL, STAGE_ENVELOPE, along_lines,
     "most rows have two couplings far above the others, as on elongated cells: a factor without fill-in is nearly "
     "complete along such lines"},
    {"amg", "ic0", NULL, STAGE_ENVELOPE, many_steps, MULTIGRID},
    {"amg", "ic0", NULL, STAGE_ENVELOPE, varied_diagonal, MULTIGRID},
    {"amg", "jacobi", NULL, STAGE_ENVELOPE, many_steps_on_gpu, MULTIGRID},
    {"jacobi", NULL, NULL, STAGE_ENVELOPE, only_diagonal, "the matrix is diagonal"},
    {"jacobi", NULL, NULL, STAGE_ENVELOPE, strong_diagonal,
     "the diagonal exceeds the rest of each row by a factor of at least {strength}"},
    {"none", "amg", NULL, STAGE_ENVELOPE, even_diagonal,
     "the diagonal is from {smallest} to {largest}, so scaling by it would change little, and other methods cost more "
     "than the iterations they save"},
    {"jacobi", "amg", "fsai", STAGE_ENVELOPE, on_gpu,
     "the diagonal is from {smallest} to {largest}, and jacobi is part of the solver's kernels, whose iterations take "
     "microseconds; other methods cost more than the iterations they save"},
    {"jacobi", "amg", "ic0", STAGE_ENVELOPE, all_positive,
     "all entries are positive, as those of mass matrices, for which scaling by the diagonal, from {smallest} to "
     "{largest}, saves most iterations"},
    {"jacobi", "amg", NULL, STAGE_ENVELOPE, few_steps,
     "a Laplacian with a diagonal from {smallest} to {largest}: about {iterations} iterations, in which a factor does "
     "not pay"},
    {"ic0", "amg", "cholesky", STAGE_ENVELOPE, small_factor,
     "the diagonal is from {smallest} to {largest}, the rest of a row up to {heaviest} times as much: a factor takes "
     "account of both"},
    {"jacobi", "amg", "ic0", STAGE_ENVELOPE, otherwise,
     "the diagonal is from {smallest} to {largest}, and a factor of {rows} rows is solved mostly row by row"},
};

/* A complete factor, which needs no iterations, takes a time that is known: it bounds that of a preconditioner
 * whose iterations are many. */
static bool factor_bounds(const struct system_facts *f)
{
    if (f->purpose != PRECOND_FOR_CG || f->gpu)
        return false;
    const double rows = (double)f->a->rows, products = products_of(f, LEAST_WIDTH);
    return products > 0 && products <= RIVAL_PRODUCTS &&
           sqrt(2 * products / rows) * rows <= f->source->options->fill * ((double)f->a->nnz + rows);
}

static const char *rival_of(const struct system_facts *f, const struct rule *rule)
{
    const bool smooth = f->smooth && f->a->rows > HIERARCHY;
    const char *rival = smooth ? rule->smooth : rule->rival;
    if (smooth && !f->nearly && !f->ranks && rival != NULL && strcmp(rival, "amg") == 0)
        rival = "fsai"; /* multigrid is the third one, of many iterations */
    if (f->ranks && rival != NULL && strcmp(rival, "isai") == 0)
        rival = "amg"; /* which ranks make together */
    return rival != NULL && strcmp(rival, "cholesky") == 0 && !factor_bounds(f) ? NULL : rival;
}

bool precond_is_of_ranks(const char *name)
{
    static const char *const names[] = {"none", "jacobi", "chebyshev", "amg"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Several ranks: of the choice, its rival and its spare the first that they make together, then the next. For those
 * that are left out jacobi comes last. */
static void leave_out_factors(struct precond_choice *choice)
{
    enum { MOST = 4 };
    const char *const names[MOST] = {choice->name, choice->rival, choice->spare, "jacobi"};
    const char *left[2] = {NULL, NULL};
    bool factors = false;
    int count = 0;
    for (int i = 0; i < MOST && count < 2; i++) {
        const bool is_left = names[i] != NULL && precond_is_of_ranks(names[i]);
        factors = factors || (names[i] != NULL && !is_left);
        if (is_left && (i + 1 < MOST || factors) && (count == 0 || strcmp(names[i], left[0]) != 0))
            left[count++] = names[i];
    }
    choice->name = left[0];
    choice->rival = choice->spare = left[1];
    if (choice->name != names[0])
        snprintf(choice->why, sizeof choice->why, "ranks have no %s; without it, %s is next", names[0], choice->name);
}

static void explain(const struct system_facts *f, const char *reason, char *why)
{
    static const struct precond_source none = {.a = NULL};
    const struct precond_source *const source = f->source != NULL ? f->source : &none;
    char row[64] = "";
    if (f->source != NULL && not_positive(f))
        snprintf(row, sizeof row, "%lld%s", context_number(f->ctx, source->bad), context_counted(f->ctx));
    const struct choice_fact facts[] = {
        {.name = "kind",
         .text = f->dominant ? "a Laplacian" : "rows that mostly have the sum 0, so errors are smooth: a matrix"},
        {.name = "rows", .number = f->a != NULL ? (double)f->a->rows : 0},
        {.name = "bad row", .text = row},
        {.name = "bad value", .number = source->bad_value, .digits = 6},
        {.name = "smallest", .number = f->look.smallest, .digits = 3},
        {.name = "largest", .number = f->look.largest, .digits = 3},
        {.name = "heaviest", .number = f->look.heaviest, .digits = 3},
        {.name = "strength", .number = 1 / f->look.heaviest, .digits = 3},
        {.name = "iterations", .number = f->iterations},
        {.name = "steps", .number = f->steps},
        {.name = "envelope", .number = source->envelope.entries, .digits = 3},
        {.name = "fill", .number = f->a != NULL ? source->envelope.entries / (double)f->a->nnz : 0, .digits = 3},
        {.name = "products", .number = source->envelope.products, .digits = 3},
        {.name = NULL},
    };
    choice_reason(reason, facts, why, PRECOND_SENTENCE);
}

spmv_status precond_choose(spmv_context *ctx, enum precond_for purpose, struct precond_source *source,
                           struct precond_choice *choice)
{
    spmv_status st = SPMV_OK;
    struct system_facts f = {.ctx = ctx,
                             .gpu = context_on_device(ctx),
                             .ranks = source != NULL && source->whole != NULL,
                             .purpose = purpose,
                             .source = source,
                             .a = source != NULL ? source->a : NULL};
    const struct rule *rule = rules;
    for (enum stage counted = STAGE_GIVEN;; rule++) {
        if (counted < STAGE_ROWS && rule->needs >= STAGE_ROWS)
            TRY(count_rows(&f));
        if (counted < STAGE_ENVELOPE && rule->needs >= STAGE_ENVELOPE)
            TRY(count_envelope(&f));
        counted = rule->needs > counted ? rule->needs : counted;
        if (rule->when(&f))
            break;
    }
    memset(choice->sampled, 0, sizeof choice->sampled);
    choice->purpose = purpose;
    choice->name = rule->name;
    choice->rival = choice->spare = rival_of(&f, rule);
    if (choice->rival != NULL && factor_bounds(&f)) {
        if (strcmp(rule->name, "amg") == 0)
            choice->rival = "cholesky";
        else if (f.sampled || strcmp(choice->rival, "ic0") == 0)
            choice->spare = "cholesky";
    }
    if (f.gpu && !f.ranks && purpose == PRECOND_FOR_CG && choice->rival != NULL) /* a third one */
        choice->spare = strcmp(choice->rival, "fsai") == 0 ? "amg" : "fsai";
    choice->nodes = f.nodes;
    choice->expected = f.smooth && f.distance > 0 ? f.steps : 0;
    choice->rival_setup = f.a != NULL && f.a->nnz > 0 ? products_of(&f, LEAST_WIDTH) / precond_products(f.a, 1) : 0;
    choice->replaced = false;
    explain(&f, rule->reason, choice->why);
    if (f.ranks)
        leave_out_factors(choice);
done:
    return st;
}

/* ------------------------------------------------------------------ what replaces a choice */

/* Whether a choice that failed like this cannot be made. */
static bool cannot_be_made(enum precond_for purpose, spmv_status st)
{
    return st == SPMV_ERROR_MEMORY || st == SPMV_ERROR_LIMIT || st == SPMV_ERROR_NOT_POSITIVE ||
           st == SPMV_ERROR_NOT_FINITE || st == SPMV_ERROR_UNSUPPORTED ||
           (st == SPMV_ERROR_SINGULAR && purpose != PRECOND_FOR_CG);
}

/* The first row that applies; a NULL name is any. */
static const struct {
    const char *name;
    bool too_large; /* only if memory or work is short */
    const char *next;
} replacements[] = {
    {"none", false, NULL},
    {"jacobi", false, "none"},
    {"ilut", true, "ilu0"},
    {NULL, false, "jacobi"},
};

/* A factor with fill-in may take twice as much as its rival is predicted to need in all, by a sample: that may need
 * more; multigrid under conjugate gradients twice as much as the iterations that it saves. */
int64_t precond_choice_work(const struct precond_choice *choice, const spmv_csr *a)
{
    enum { TIMES = 2 };
    const struct precond_estimate *const first = &choice->sampled[0], *const next = &choice->sampled[1];
    if (choice->purpose == PRECOND_FOR_CG)
        return strcmp(choice->name, "amg") == 0 && choice->expected > 0
                   ? precond_work_of(PRECOND_FOR_CG, "amg", a->rows, a->nnz, TIMES * choice->expected)
                   : 0;
    if (choice->rival == NULL || (first->name != NULL && next->name == NULL))
        return 0;
    if (first->name != NULL)
        return precond_work_of(PRECOND_FOR_UNSYMMETRIC, choice->name, a->rows, a->nnz,
                               TIMES * precond_cost_of_all(&next->cost));
    return precond_factor_work(a) * (strcmp(choice->rival, "ilu0") == 0 ? DEAR : 1);
}

/* ilu0 only stands in for ilut, but by a sample. */
const char *precond_choice_rival(const struct precond_choice *choice)
{
    const bool stands_in =
        choice->rival != NULL && strcmp(choice->rival, "ilu0") == 0 && choice->sampled[0].name == NULL;
    return stands_in ? NULL : choice->rival;
}

bool precond_choose_next(const spmv_context *ctx, spmv_status st, struct precond_choice *choice)
{
    const bool too_large = st == SPMV_ERROR_MEMORY || st == SPMV_ERROR_LIMIT;
    const bool dear = st == SPMV_ERROR_LIMIT && choice->rival != NULL;
    const size_t told = strlen(choice->why), used = choice->replaced ? told : 0;
    char prefix[PRECOND_NAME + 32], text[200];
    const char *message = ctx->error;
    int row = 0;
    if (!cannot_be_made(choice->purpose, st))
        return false;
    while (replacements[row].name != NULL &&
           (strcmp(replacements[row].name, choice->name) != 0 || (replacements[row].too_large && !too_large)))
        row++;
    const char *next = replacements[row].next;
    if (next == NULL)
        return false;
    if (dear)
        next = choice->rival;
    snprintf(prefix, sizeof prefix, "preconditioner %s: ", choice->name);
    if (strncmp(message, prefix, strlen(prefix)) == 0)
        message += strlen(prefix);
    snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, message);
    if (dear && choice->sampled[0].name != NULL)
        snprintf(choice->why + told, sizeof choice->why - told, "; %s would take more: %s", choice->name, text);
    else if (dear)
        snprintf(choice->why, sizeof choice->why, "%s would take more work, an estimate: %s", choice->name, text);
    else if (!choice->replaced)
        snprintf(choice->why, sizeof choice->why, "the first choice, %s, cannot be made: %s", choice->name, text);
    else if (strstr(choice->why, text) == NULL) /* often all fail for the same reason */
        snprintf(choice->why + used, sizeof choice->why - used, "; %s cannot be made: %s", choice->name, text);
    /* factors that are too dear may still be worth their work */
    choice->rival = dear && strcmp(choice->name, "ilut") == 0 ? choice->name : NULL;
    choice->name = next;
    choice->replaced = true;
    return true;
}
