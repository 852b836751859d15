/* spmv solve with several right-hand sides: the result of each, and their summary.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/output.h"
#include "app/solve/solve.h"

/* Lines of the table without -v. */
enum { LINES = 10 };

const char *status_word(spmv_status st)
{
    static char word[64];
    const char *name = spmv_status_name(st);
    const char *const prefixes[] = {"SPMV_", "ERROR_"};
    for (int i = 0; i < 2; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            name += strlen(prefixes[i]);
    size_t n = 0;
    for (; name[n] != '\0' && n < sizeof word - 1; n++)
        word[n] = (char)tolower((unsigned char)name[n]);
    word[n] = '\0';
    return word;
}

/* residual / tolerance; 0 for a residual of 0, infinite if the residual is not finite. */
static double distance(const spmv_solver_result *r)
{
    if (r->true_residual == 0)
        return 0;
    return isfinite(r->true_residual) ? r->true_residual / r->tolerance : INFINITY;
}

/* A failed solve is worse than a solved one; of two with the same result, the one farther from its
 * tolerance is worse. */
static bool is_worse(const spmv_solver_result *r, const spmv_solver_result *than)
{
    if ((r->status == SPMV_OK) != (than->status == SPMV_OK))
        return r->status != SPMV_OK;
    return distance(r) > distance(than);
}

void columns_summary(struct attempt *a)
{
    int64_t iterations = 0, restarts = 0;
    a->worst = 0;
    for (int v = 0; v < a->columns; v++) {
        const spmv_solver_result *r = &a->each[v];
        iterations = r->iterations > iterations ? r->iterations : iterations;
        restarts += r->restarts;
        if (is_worse(r, &a->each[a->worst]))
            a->worst = v;
    }
    a->result = a->each[a->worst];
    a->result.iterations = iterations;
    a->result.restarts = restarts;
}

/* A right-hand side to be sorted: the worst first, ties by number. It includes its result, because
 * the comparison function of qsort gets only two elements. */
struct placed {
    const spmv_solver_result *result;
    int number;
};

static int compare(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    if (is_worse(a->result, b->result))
        return -1;
    if (is_worse(b->result, a->result))
        return 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* How many right-hand sides began in the space of the solutions before, and what that gained. */
static void remark_recycled(const struct attempt *a)
{
    int told = 0, begun = 0;
    double sum = 0;
    for (int v = 0; v < a->columns; v++) {
        const spmv_solver_result *const r = &a->each[v];
        told += r->given_residual >= 0;
        if (r->recycled == 0 || !(r->start_residual > 0))
            continue;
        begun++;
        sum += log10(r->given_residual / r->start_residual);
    }
    if (told > 0)
        remark(LEVEL_NORMAL, "recycling: %d of %d right-hand sides began in the span of solutions before%s", begun,
               a->columns, begun > 0 ? "" : ", so it gained nothing");
    if (begun > 0)
        remark(LEVEL_NORMAL, "recycling: their starts reduced the residual by a factor of %.2g (geometric mean)",
               pow(10, sum / begun));
}

void remark_columns(const struct attempt *a)
{
    struct placed *placed = NULL;
    if (allocate("a table of right-hand sides", a->columns, sizeof *placed, (void **)&placed) != SPMV_OK)
        return;
    int solved = 0;
    for (int v = 0; v < a->columns; v++) {
        placed[v] = (struct placed){&a->each[v], v};
        solved += a->each[v].status == SPMV_OK;
    }
    qsort(placed, (size_t)a->columns, sizeof *placed, compare);
    const int lines = messages_level() >= LEVEL_VERBOSE || a->columns <= LINES ? a->columns : LINES;
    remark(LEVEL_NORMAL, "%d of %d right-hand sides solved%s", solved, a->columns,
           a->columns > 1 ? "; the worst first:" : "");
    remark_row("  %8s %10s %12s %12s %12s %12s%s  %s", "number", "iterations", "||b||", "tolerance", "||b - A x||",
               "recurrence", a->error != NULL ? "   error" : "", "status");
    for (int i = 0; i < lines; i++) {
        const spmv_solver_result *r = placed[i].result;
        char error[32] = "";
        if (a->error != NULL)
            snprintf(error, sizeof error, " %7.1e", a->error[placed[i].number]);
        remark_row("  %8d %10lld %12.6g %12.3g %12.3g %12.3g%s  %s", placed[i].number + 1, (long long)r->iterations,
                   r->norm_b, r->tolerance, r->true_residual, r->recurrence_residual, error, status_word(r->status));
    }
    remark_recycled(a);
    if (lines < a->columns)
        remark(LEVEL_NORMAL, "the other %d are not worse; -v lists all", a->columns - lines);
    free(placed);
}

json_t *json_columns(const struct attempt *a)
{
    json_t *all = json_array();
    for (int v = 0; v < a->columns; v++) {
        const spmv_solver_result *r = &a->each[v];
        json_t *one = json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "status", status_word(r->status), "iterations",
                                (json_int_t)r->iterations, "restarts", (json_int_t)r->restarts, "norm_b",
                                json_number(r->norm_b), "tolerance", json_number(r->tolerance), "recurrence_residual",
                                json_number(r->recurrence_residual), "true_residual", json_number(r->true_residual));
        if (a->error != NULL)
            json_put(one, "largest_error", json_number(a->error[v]));
        json_put(one, "estimated_error_energy_norm", json_estimate(r));
        json_backward(one, r);
        if (r->given_residual >= 0) {
            json_put(one, "recycled", json_integer((json_int_t)r->recycled));
            json_put(one, "given_residual", json_number(r->given_residual));
            json_put(one, "start_residual", json_number(r->start_residual));
        }
        if (json_array_append_new(all, one) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}
