/* spmv solve --backend auto: what is known about the job, for the choice in solve_place.c.
 *
 * A job begins on the CPU, where its matrix is read and counted. CUDA is started afterwards, if the
 * choice takes a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/name_lists.h"
#include "app/options.h"
#include "app/output.h"
#include "app/solve/solve_job.h"
#include "app/solve/solve_place.h"
#include "core/choice.h"
#include "core/reals.h"

/* ---------------------------------------------------------------- the options */

typedef void list_of_backend(struct names *names, spmv_backend backend);

static bool is_on(list_of_backend *list, spmv_backend backend, const char *name)
{
    struct names names = {.count = 0};
    list(&names, backend);
    return choice_is_auto(name) || names_find(&names, name, strlen(name)) >= 0;
}

static bool is_only_on(list_of_backend *list, spmv_backend backend, const char *name)
{
    const spmv_backend other = backend == SPMV_BACKEND_OMP ? SPMV_BACKEND_CUDA : SPMV_BACKEND_OMP;
    return is_on(list, backend, name) && !is_on(list, other, name);
}

bool job_decides(const struct options *o)
{
    return o->backend == SPMV_BACKEND_AUTO && o->device < 0 && o->compression != SPMV_COMPRESSION_VALUES &&
           !is_only_on(names_of_methods, SPMV_BACKEND_CUDA, o->method) &&
           !is_only_on(names_of_rungs, SPMV_BACKEND_CUDA, o->rung) && strcmp(o->solver, "direct:cudss") != 0;
}

/* The option that names something for the CPU only; NULL: none does. Factors by other modules
 * than that of cuDSS are made and applied on the CPU on any backend. */
static const char *cpu_only(const struct options *o, char *text, size_t size)
{
    const struct {
        const char *option, *name;
        bool only;
    } named[] = {{"method", o->method, is_only_on(names_of_methods, SPMV_BACKEND_OMP, o->method)},
                 {"rung", o->rung, is_only_on(names_of_rungs, SPMV_BACKEND_OMP, o->rung)},
                 {"solver", o->solver, strncmp(o->solver, "direct", strlen("direct")) == 0},
                 {"precond", o->precond, strcmp(o->precond, "ic0") == 0 || strcmp(o->precond, "cholesky") == 0}};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (named[i].only) {
            snprintf(text, size, "--%s %.60s", named[i].option, named[i].name);
            return text;
        }
    return NULL;
}

/* ---------------------------------------------------------------- the matrix */

/* Facts about the values of a matrix. */
struct values {
    double heaviest;          /* largest ratio of the rest of a row to its diagonal entry */
    double smallest, largest; /* diagonal entries of rows that have entries; of complex ones the moduli */
    int64_t below, above;     /* rows whose sum is clearly below, above 0 */
};

/* A sum of rounding errors is smaller, in proportion to the moduli. */
static const double CLEARLY = 1e-6;

static const double MOST = 0.6; /* of the rows */

static double modulus_at(const spmv_csr *a, int64_t k)
{
    return hypot(real_at(type_part(a->type), a->val, 2 * k), real_at(type_part(a->type), a->val, 2 * k + 1));
}

/* A short loop is not worth a team of threads. */
enum { TEAM_WORTH = 1 << 18 };

/* One pass: minima, maxima and counts, the same for any number of threads. The entries of a pattern
 * are 1. */
static struct values look_at_values(const spmv_csr *a, int threads)
{
    const bool complex = a->val != NULL && type_is_complex(a->type);
    double heaviest = 0, smallest = INFINITY, largest = -INFINITY;
    int64_t below = 0, above = 0;
    const int team = a->nnz < TEAM_WORTH ? 1 : threads;
#pragma omp parallel for schedule(static) num_threads(team) reduction(max : heaviest, largest)                         \
    reduction(min : smallest) reduction(+ : below, above)
    for (int64_t i = 0; i < a->rows; i++) {
        double diagonal = 0, sum = 0, moduli = 0;
        for (int64_t k = row_begin(a, i); k < row_begin(a, i + 1); k++) {
            const double value = a->val == NULL ? 1 : complex ? modulus_at(a, k) : real_at(a->type, a->val, k);
            sum += value;
            moduli += fabs(value);
            diagonal = a->col[k] == i ? value : diagonal;
        }
        if (moduli == 0)
            continue;
        const double size = fabs(diagonal);
        heaviest = fmax(heaviest, size > 0 ? (moduli - size) / size : INFINITY);
        smallest = fmin(smallest, diagonal);
        largest = fmax(largest, diagonal);
        below += sum < -CLEARLY * moduli;
        above += sum > CLEARLY * moduli;
    }
    return (struct values){heaviest, smallest, largest, below, above};
}

/* Whether a symmetric matrix is certainly, or probably, neither positive nor negative definite:
 *   - the diagonal of a definite matrix has one sign;
 *   - away from a boundary, sums of rows of a differential operator are those of its term without
 *     derivatives. If most have the other sign than the diagonal, it is a Helmholtz operator. */
static bool is_indefinite(const spmv_csr *a, const struct values *v)
{
    if ((a->val != NULL && type_is_complex(a->type)) || !(v->smallest <= v->largest))
        return false;
    const double most = MOST * (double)a->rows;
    return v->smallest > 0 ? (double)v->below > most : v->largest >= 0 || (double)v->above > most;
}

/* ---------------------------------------------------------------- the choice */

/* What --precond auto takes for certain. */
static bool wants_amg(const struct options *o)
{
    return choice_is_auto(o->precond) && (o->near_null != NULL || o->coordinates != NULL);
}

/* named: memory for the name in cpu_only. */
static struct solve_facts facts_of(const struct options *o, const spmv_csr *a, spmv_type type, int columns,
                                   bool symmetric, int threads, char *named, size_t size)
{
    const struct values values = look_at_values(a, threads);
    return (struct solve_facts){.rows = a->rows,
                                .entries = a->nnz,
                                .matrix_bytes = a->val != NULL ? (int)spmv_type_size(a->type) : 0,
                                .vector_bytes = (int)spmv_type_size(type),
                                .columns = columns,
                                .symmetric = symmetric,
                                .indefinite = is_indefinite(a, &values),
                                .heaviest = values.heaviest,
                                .solver = o->solver,
                                .precond = wants_amg(o) ? "amg" : o->precond,
                                .most_steps = o->max_iterations,
                                .threads = threads,
                                .cpu_only = cpu_only(o, named, size)};
}

struct solve_place solve_place_of(const struct options *o, const spmv_csr *a, spmv_type type, bool symmetric,
                                  int threads)
{
    char named[80];
    const struct solve_facts facts = facts_of(o, a, type, 1, symmetric, threads, named, sizeof named);
    return solve_place(&facts);
}

spmv_status job_decide(const struct job *job)
{
    struct place *const place = job->place;
    char named[80];
    if (!place_is_open(place))
        return SPMV_OK;
    const struct solve_facts facts = facts_of(job->o, &job->in.view, job->type, job->columns, job_is_symmetric(job),
                                              spmv_context_threads(place->ctx), named, sizeof named);
    const struct solve_place choice = solve_place(&facts);
    if (facts.cpu_only == NULL)
        remark(LEVEL_VERBOSE, "estimates for %s, with %.0f steps: %.3g ms on the CPU, %.3g ms with the start of a GPU",
               choice.kind, choice.steps, choice.cpu_ms, choice.gpu_ms);
    return place_settle(place, choice.gpu, choice.why);
}
