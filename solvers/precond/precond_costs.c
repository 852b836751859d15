/* What preconditioners cost: see precond_costs.h. The numbers are means of measurements on grids and
 * finite-element matrices (docs/notebook/preconditioners.md), and hold within a factor of two.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/precond/precond_costs.h"

#include <math.h>
#include <string.h>

/* On a CPU: nanoseconds of making it, for each entry and row, in all and for each unit of work; of a step, for each row
 * and for each entry. Measured on two threads (docs/notebook/preconditioners.md, "Costs on a CPU as measured"); on
 * sixteen a step speeds up more than a set-up. work, steps: without a sample. NULL: of all others. */
static const struct row {
    enum precond_for purpose;
    const char *name;
    double setup, unit, row, entry, work, steps;
} on_cpu[] = {
    {PRECOND_FOR_CG, "amg", 0, 1.3, 26, 1.9, 50, 16},             /* a V-cycle */
    {PRECOND_FOR_CG, "amg of nodes", 0, 1.3, 40, 1.9, 40, 50},    /* with several unknowns to a node */
    {PRECOND_FOR_CG, "ic0", 21, 0, 5.3, 0.9, 0, 100},             /* two triangular solves */
    {PRECOND_FOR_CG, "fsai", 20, 0.6, 11, 0.43, 45, 100},         /* two products */
    {PRECOND_FOR_CG, "cholesky", 18, 0, 100, 2, 0, 2},            /* and its multiplications */
    {PRECOND_FOR_CG, NULL, 0, 0, 2, 0.28, 0, 200},                /* none, jacobi */
    {PRECOND_FOR_UNSYMMETRIC, "ilut", 100, 2, 21, 6.5, 100, 20},  /* few vectors, much fill-in */
    {PRECOND_FOR_UNSYMMETRIC, "ilu0", 52, 1.8, 21, 1.1, 3.5, 45}, /* most vectors until a restart */
    {PRECOND_FOR_UNSYMMETRIC, "amg", 40, 1.5, 31, 3, 90, 12},     /* few vectors */
    {PRECOND_FOR_UNSYMMETRIC, NULL, 0, 0, 17.5, 0.25, 0, 200},    /* none, jacobi */
    {PRECOND_FOR_MINRES, "ic0", 20, 0, 8, 1.1, 0, 100},           /* two triangular solves */
    {PRECOND_FOR_MINRES, "fsai", 20, 0.6, 15, 0.4, 45, 100},      /* two products */
    {PRECOND_FOR_MINRES, "schur", 80, 0, 35, 2.5, 0, 80},         /* a V-cycle for each field, products */
    {PRECOND_FOR_MINRES, NULL, 0, 0, 4.3, 0.28, 0, 100},          /* none, jacobi */
};

/* purpose: the solver that begins. Beside minres, factors of general matrices are for gmres. */
static const struct row *find_row(enum precond_for purpose, const char *name)
{
    const bool general = purpose != PRECOND_FOR_UNSYMMETRIC && precond_is_unsymmetric(name);
    const enum precond_for of = general ? PRECOND_FOR_UNSYMMETRIC : purpose;
    const struct row *row = on_cpu;
    while (row->purpose != of || (row->name != NULL && strcmp(row->name, name) != 0))
        row++;
    return row;
}

/* Nanoseconds of a step, for each row. */
static double step_of(const struct row *row, double rows, double nnz)
{
    return row->row + row->entry * nnz / rows;
}

struct precond_cost precond_cost_sampled(enum precond_for purpose, const char *name, int64_t rows, int64_t nnz,
                                         double work, double steps)
{
    const struct row *const row = find_row(purpose, name);
    const double n = fmax((double)rows, 1), entries = (double)nnz,
                 none = step_of(find_row(purpose, "none"), n, entries);
    return (struct precond_cost){(row->setup + row->unit * work) * (1 + entries / n) / none,
                                 step_of(row, n, entries) / none, steps};
}

int64_t precond_work_of(enum precond_for purpose, const char *name, int64_t rows, int64_t nnz, double steps)
{
    const struct row *const row = find_row(purpose, name);
    const double n = fmax((double)rows, 1), entries = (double)nnz;
    const double all = steps * step_of(find_row(purpose, "none"), n, entries) * n;
    return row->unit > 0 ? (int64_t)fmin(fmax((all - row->setup * (n + entries)) / row->unit, 1), 0x1p62) : 0;
}

double precond_nanoseconds(bool gpu, enum precond_for purpose, int64_t rows, int64_t nnz, double steps)
{
    const double n = fmax((double)rows, 1);
    return steps * (gpu ? 1000 : step_of(find_row(purpose, "none"), n, (double)nnz) * n);
}

/* On a GPU, a system of at most so many rows and entries fits the rung persistent of conjugate
 * gradients. */
enum { CACHED_ROWS = 245000, CACHED_ENTRIES = 1000000 };

/* minres beside gmres, in microseconds a step: in one kernel for many steps, and of more rows than
 * that takes (krylov_persistent.cu) in several a step. */
static const double MINRES = 2, MINRES_IN_KERNELS = 12;
enum { MINRES_ROWS = 250000 };

/* The vectors of so many million rows fit the last-level cache. */
static const double CACHED_MILLIONS = 0.2;

/* A step of gmres with a basis of 25 vectors, which is that of the usual restart on average. */
static struct precond_cost general_on_gpu(const char *name, double rows, double entries)
{
    const double millions = 1e-6 * rows, read = 1e-6 * entries;
    const double beyond = millions > CACHED_MILLIONS ? millions - CACHED_MILLIONS : 0;
    const double step = 7.5 + 60 * millions + 100 * beyond + 4 * read;
    if (strcmp(name, "amg") == 0)
        return (struct precond_cost){6000 + 3700 * read, 125 + 400 * millions, 12};
    if (strcmp(name, "fsai") == 0) /* two products with its factors, and kernels of their own for the vectors */
        return (struct precond_cost){2000 + 6000 * read, step + 30 + 20 * read, 200};
    if (strcmp(name, "isai") == 0) /* made on the host; products with its factors */
        return (struct precond_cost){800 + 230000 * millions + 90000 * read, 65 + 60 * millions + 10 * read, 150};
    if (strcmp(name, "ilut") == 0) /* made on the host; rows wait for each other in the triangular solves */
        return (struct precond_cost){500 + 400000 * (millions + read), step + 250 + 190000 * millions, 15};
    if (strcmp(name, "schur") == 0) /* the fields are taken apart on the host */
        return (struct precond_cost){40000 + 20000 * read, 60 + 7000 * millions, 80};
    return (struct precond_cost){0, step, 100};
}

static struct precond_cost on_gpu(const char *name, double rows, double entries, bool light)
{
    const double millions = 1e-6 * rows, read = 1e-6 * entries;
    if (strcmp(name, "amg") == 0)
        return (struct precond_cost){4000 + 520 * read, 95 + 150 * millions + 12 * read, 16};
    if (strcmp(name, "fsai") == 0)
        return (struct precond_cost){2000 + 6000 * read, 10 + 20 * read, 400};
    const bool cached = rows <= CACHED_ROWS && (light || entries <= CACHED_ENTRIES);
    const double step = cached ? 2.5 + 0.1 * entries / fmax(rows, 1) + 4 * millions : 6 + 15 * millions;
    return (struct precond_cost){0, step + (light ? 0.9 : cached ? 3 : 4) * read, 500};
}

struct precond_cost precond_cost(bool gpu, enum precond_for purpose, const char *name, int64_t rows, int64_t nnz,
                                 int is)
{
    if (gpu && purpose == PRECOND_FOR_CG)
        return on_gpu(name, (double)rows, (double)nnz, (is & PRECOND_LIGHT) != 0);
    if (gpu) {
        struct precond_cost cost = general_on_gpu(name, (double)rows, (double)nnz);
        if (purpose == PRECOND_FOR_MINRES && cost.setup == 0)
            cost.step += rows <= MINRES_ROWS ? MINRES : MINRES_IN_KERNELS;
        return cost;
    }
    if ((is & PRECOND_NODES) != 0 && purpose == PRECOND_FOR_CG && strcmp(name, "amg") == 0)
        name = "amg of nodes";
    const struct row *const row = find_row(purpose, name);
    return precond_cost_sampled(purpose, name, rows, nnz, row->work, row->steps);
}

double precond_setup_of_longest(const char *name, int64_t longest)
{
    const double entries = (double)max_i64(longest, 0);
    return strcmp(name, "amg") == 0 ? 3e-4 * entries * entries : strcmp(name, "fsai") == 0 ? 1.25 * entries : 0;
}
