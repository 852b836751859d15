/* spmv solve: what to try next when the solver stopped before the tolerance (exit 7) or cannot
 * take the matrix (exit 8).
 *
 * Names only what this program has and what the call did not use already.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app/input.h"
#include "app/options.h"
#include "app/solve/solve.h"
#include "core/choice.h"

static const char least_squares[] =
    "--solver lsmr, lsqr or cgls, or auto, finds a least-squares solution; not on ranks";

/* Adds a part of a sentence to the text. */
__attribute__((format(printf, 2, 3))) static void add(struct advice *to, const char *format, ...)
{
    va_list values;
    const size_t used = strlen(to->text);
    va_start(values, format);
    vsnprintf(to->text + used, sizeof to->text - used, format, values);
    va_end(values);
}

/* A tolerance that the reached relative residual satisfies: rounded up to one digit. */
static double reachable(double relative)
{
    const double power = pow(10, floor(log10(relative)));
    return ceil(1.000001 * relative / power) * power;
}

static bool is_f32(const struct options *o)
{
    return o->type == SPMV_F32;
}

static bool is_cg(const struct attempt *a)
{
    return strcmp(a->result.solver, "cg") == 0;
}

/* Whether the solve used this preconditioner. */
static bool used(const struct attempt *a, const char *precond)
{
    return strcmp(a->result.precond, precond) == 0;
}

/* Adds a preconditioner that was not tried. Returns whether there is one. */
static bool add_preconditioner(struct advice *to, const struct options *o, const struct attempt *a)
{
    if (strcmp(o->precond, "none") == 0)
        add(to, "--precond auto, which takes fewer iterations");
    else if (!is_cg(a) && !used(a, "ilut"))
        add(to, "--precond ilut");
    else if (strcmp(o->precond, "all") != 0)
        add(to, "--precond all, which tries each preconditioner");
    else
        return false;
    return true;
}

static void at_the_limit(struct advice *to, const struct options *o, const struct attempt *a)
{
    add(to, "try ");
    if (add_preconditioner(to, o, a))
        add(to, ", or ");
    if (o->max_iterations > 0)
        add(to, "a --max-iterations above %d", o->max_iterations);
    else
        add(to, "more iterations than 10 times the rows (--max-iterations N)");
    if (is_f32(o))
        add(to, ", or --type f64");
    else if (!is_cg(a))
        add(to, ", or --solver direct");
}

/* Methods other than cg stop making progress before the precision of the type is reached. */
static void without_progress(struct advice *to, const struct options *o, const struct attempt *a)
{
    add(to, "try ");
    if (add_preconditioner(to, o, a))
        add(to, ", ");
    if (strcmp(a->result.solver, "gmres") == 0)
        add(to, "a --restart above %d, ", o->restart > 0 ? o->restart : 50);
    add(to, "or --solver direct");
}

static void at_the_precision(struct advice *to, const struct options *o, const struct attempt *a)
{
    const double relative = a->result.true_residual / a->result.norm_b;
    /* a larger residual is not a useful answer */
    const bool known = relative > 0 && relative < 0.1;
    const bool limited = strstr(a->failure, "the rounding errors of b - A x") != NULL;
    if (!limited && !is_cg(a) && strcmp(a->result.solver, "direct") != 0 && !(relative < (is_f32(o) ? 1e-5 : 1e-12))) {
        without_progress(to, o, a);
        return;
    }
    add(to, "rounding errors of %s limit the residual: try ", o->inner || is_f32(o) ? "f32" : "f64");
    if (o->inner)
        add(to, "it without --inner");
    else if (is_f32(o))
        add(to, "--type f64");
    else if ((limited || !add_preconditioner(to, o, a)) && !known)
        add(to, "a larger --rtol");
    if (known)
        add(to, "%s--rtol %.0e, which it reached", strchr(to->text, '-') != NULL ? ", or accept " : "",
            reachable(relative));
}

/* Whether incomplete factors could not be made because A is singular: the solver's message says so, or
 * the reason for another preconditioner. a NULL: nothing was solved. */
static bool is_singular(const struct attempt *a)
{
    static const char words[] = "is singular: at most";
    return a != NULL && (strstr(a->failure, words) != NULL || strstr(a->result.why_precond, words) != NULL);
}

static void without_inverse(struct advice *to, const struct options *o, const struct attempt *a)
{
    const bool gmres = strcmp(a->result.solver, "gmres") == 0, direct = strcmp(a->result.solver, "direct") == 0;
    add(to, "the matrix has no inverse: look for rows and columns that are zero or repeated (spmv info)");
    if (is_cg(a) || direct || !used(a, "none"))
        add(to, "; if b is consistent, --solver minres or gmres with --precond none may find a solution");
    else if (!gmres)
        add(to, "; if b is consistent, --solver gmres with --precond none may find a solution");
    else if (a->stop != SPMV_ERROR_BREAKDOWN)
        add(to, "; if b is consistent, a --restart above %d may find a solution", o->restart > 0 ? o->restart : 50);
}

static void not_finite(struct advice *to, const struct options *o, const struct attempt *a)
{
    if (strstr(a->failure, " in row ") != NULL)
        return; /* the number is named */
    if (strstr(a->failure, "factors are unstable") != NULL)
        add(to, "try --precond auto, or --solver direct");
    else if (is_f32(o))
        add(to, "numbers exceeded the range of f32: try --type f64");
    else if (!used(a, "none"))
        add(to, "try --precond none, and look for numbers that are very large or not finite in A and b (spmv info)");
    else
        add(to, "look for numbers that are very large or not finite in A and b (spmv info), and scale them");
}

/* A singular A, of which the message says more. */
static void without_solution(struct advice *to, const struct attempt *a)
{
    const spmv_solver_result *const r = &a->result;
    const bool known = strstr(a->failure, "smallest possible") != NULL;
    if (known && a->columns == 1 && r->true_residual > hypot(r->null_part, 2 * r->tolerance))
        add(to,
            "make b consistent first; x has not the smallest residual, unless A has other null vectors, which --null "
            "gives");
    else if (known)
        add(to, "x is a least-squares solution: no other x has a smaller residual");
    else if (strcmp(a->result.solver, "direct") == 0)
        add(to, "if b is consistent, --solver auto, minres or gmres may find a solution");
    else
        add(to, "x is a least-squares solution; a larger --rtol accepts it, or make b consistent: it must have no part "
                "along the null vectors of A (for a Laplacian, a mean of 0)");
}

static void not_positive(struct advice *to, const struct options *o, const spmv_csr *matrix, const struct attempt *a)
{
    if (matrix->val == NULL)
        add(to, "the matrix is a pattern without values, so each entry is 1: use a matrix with values");
    else if (strcmp(o->solver, "gmres") == 0 || strcmp(o->solver, "bicgstab") == 0)
        add(to, "try --precond auto or ilut, which need not be positive definite");
    else if (strcmp(o->solver, "cocg") == 0)
        add(to, "try --precond auto or none");
    else if (choice_is_auto(o->solver) && !o->inner && a->columns == 1 && !used(a, "none"))
        add(to, "try --precond none or auto");
    else
        add(to, "try --solver minres%s", o->inner ? " without --inner" : used(a, "none") ? "" : " --precond none");
}

bool solve_is_triangle(const spmv_csr *a)
{
    int64_t lower = 0, upper = 0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_begin(a, i); k < row_begin(a, i + 1); k++) {
            lower += a->col[k] < i;
            upper += a->col[k] > i;
        }
    return (lower == 0) != (upper == 0);
}

static void not_symmetric(struct advice *to, const spmv_csr *matrix)
{
    if (solve_is_triangle(matrix))
        add(to, "only one triangle of the matrix has entries: if the file stores half of a symmetric matrix, its first "
                "line must have symmetric instead of general");
    else
        add(to, "try --solver gmres, or auto");
}

struct advice solve_advice(const struct options *o, const spmv_csr *matrix, const struct attempt *a, spmv_status stop)
{
    struct advice to = {""};
    if (is_singular(a))
        stop = SPMV_ERROR_SINGULAR;
    switch (stop) {
    case SPMV_ERROR_ITERATIONS:
        at_the_limit(&to, o, a);
        break;
    case SPMV_ERROR_STAGNATION:
        if (is_wrong_row(&a->result))
            add(&to, "%s",
                strcmp(a->result.solver, "direct") == 0
                    ? "scale the rows so that their largest entries are alike"
                    : "try --solver direct, or scale the rows so that their largest entries are alike");
        else
            at_the_precision(&to, o, a);
        break;
    case SPMV_ERROR_BREAKDOWN:
        without_progress(&to, o, a);
        break;
    case SPMV_ERROR_SINGULAR:
        without_inverse(&to, o, a);
        break;
    case SPMV_ERROR_INCONSISTENT:
        without_solution(&to, a);
        break;
    case SPMV_ERROR_NOT_FINITE:
        not_finite(&to, o, a);
        break;
    case SPMV_ERROR_NOT_SQUARE:
        add(&to, "%s", least_squares);
        break;
    case SPMV_ERROR_NOT_SYMMETRIC:
        not_symmetric(&to, matrix);
        break;
    case SPMV_ERROR_NOT_POSITIVE:
        not_positive(&to, o, matrix, a);
        break;
    default:
        break;
    }
    return to;
}

struct advice solve_advice_on_ranks(const struct options *o, const struct attempt *a, spmv_status stop)
{
    struct advice to = {""};
    if (stop == SPMV_ERROR_NOT_SQUARE)
        add(&to, "%s", least_squares);
    if (a == NULL)
        return to;
    if (stop == SPMV_ERROR_NOT_SYMMETRIC)
        add(&to, "try --solver gmres, or auto");
    else if (stop == SPMV_ERROR_NOT_POSITIVE)
        add(&to, "%s",
            !choice_is_auto(o->precond) && strcmp(o->precond, "none") != 0 ? "try --precond auto or none"
                                                                           : "try --solver minres, or auto");
    else if (stop == SPMV_ERROR_BREAKDOWN)
        add(&to, "try --solver gmres, or auto");
    else if (stop == SPMV_ERROR_ITERATIONS)
        add(&to, "try %sa --max-iterations above %lld%s", used(a, "amg") ? "" : "--precond amg, or ",
            (long long)a->result.iterations, is_f32(o) ? ", or --type f64" : "");
    else if (stop == SPMV_ERROR_STAGNATION && is_wrong_row(&a->result))
        add(&to, "try --precond jacobi, or scale the rows so that their largest entries are alike; without ranks, x is "
                 "corrected");
    else if (stop == SPMV_ERROR_STAGNATION)
        add(&to, "rounding errors of %s limit the residual: try %s--rtol %.0e, which it reached",
            is_f32(o) ? "f32" : "f64", is_f32(o) ? "--type f64, or accept " : "",
            reachable(a->result.true_residual / a->result.norm_b));
    else if (stop == SPMV_ERROR_NOT_FINITE && strstr(a->failure, " in row ") == NULL) /* else it is named */
        add(&to, "%s",
            is_f32(o) ? "numbers exceeded the range of f32: try --type f64"
                      : "look for numbers that are very large or not finite in A and b (spmv info)");
    return to;
}
