/* Choices by name: a method, a rung, a preconditioner, an exchange. The caller names one of a list,
 * or leaves the choice to the library with NULL or "auto".
 *
 * A list is filled in the order in which messages show it. The row of "auto" is the default:
 *
 *     struct names names = {.on = "omp"};
 *     names_add_row(&names, "auto", &table[DEFAULT]);
 *     names_add_table(&names, table, sizeof *table);
 *     st = choice_take(ctx, SPMV_ERROR_METHOD, "spmv_sort_rung", "rung", &names, name, &row);
 *
 * An unknown name has the same message everywhere:
 *
 *     spmv_sort_rung: unknown rung "radx" on cuda; did you mean radix? There are: auto, radix
 *
 * Where "auto" looks at the matrix, the rules are a table in one file
 * (solvers/precond/precond_choose.c, solvers/solver_choose.c), and choice_reason writes the
 * sentence that says why a rule was taken.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CHOICE_H
#define CHOICE_H

#include <spmv/context.h>

#include "core/name_list.h"

/* Whether the name leaves the choice to the library. */
static inline bool choice_is_auto(const char *name)
{
    return name == NULL || strcmp(name, "auto") == 0;
}

/* The reason for a choice that was not left to the library. */
#define CHOICE_NAMED "requested by name"

/* *row = the row of the name; of "auto", for NULL too. For an unknown name it returns this status,
 * with the message of names_unknown after the name of the caller. */
spmv_status choice_take(spmv_context *ctx, spmv_status status, const char *caller, const char *what,
                        const struct names *names, const char *name, const void **row);

/* The same for a table of rungs on the context's backend, whose last row is the default. */
spmv_status choice_take_rung(spmv_context *ctx, const char *caller, const void *rows, size_t size, const char *name,
                             const void **row);

/* A counted fact, for the reason of an automatic choice. */
struct choice_fact {
    const char *name;
    double number;
    int digits;       /* significant ones; 0: the number is an integer */
    const char *text; /* in place of the number, if it is not NULL */
};

/* Writes a reason in which {name} stands for the fact of that name. A NULL name ends the facts.
 * Each "{" of a reason has its "}". */
void choice_reason(const char *reason, const struct choice_fact *facts, char *text, size_t size);

#endif
