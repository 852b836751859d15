/* Lists of names that options and arguments accept (core/choice.h). They come from the tables of the
 * library and of bench; help, checks and messages use them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "app/name_lists.h"
#include "app/output.h"
#include "bench/ops/work.h"
#include "bench/suites.h"

void names_add_words(struct names *names, char *text)
{
    for (char *end; (end = strchr(text, ' ')) != NULL; text = end + 1) {
        *end = '\0';
        names_add(names, text);
    }
}

/* The most names in a message. */
enum { LISTED_MOST = 32 };

spmv_status names_refuse(const struct names *names, const char *what, const char *word, size_t length)
{
    char text[1200];
    const char *const list = names->count > LISTED_MOST ? "those that the command's --help lists" : NULL;
    names_unknown(names, what, word, length, list, text, sizeof text);
    complain("%s", text);
    return SPMV_ERROR_ARGUMENT;
}

spmv_status names_check(const struct names *names, const char *what, const char *text, bool several)
{
    for (const char *word = text; word != NULL;) {
        const size_t length = several ? strcspn(word, ",") : strlen(word);
        if (names_find(names, word, length) < 0)
            return names_refuse(names, what, word, length);
        word = word[length] == ',' ? word + length + 1 : NULL;
    }
    return SPMV_OK;
}

/* ---------------------------------------------------------------- the lists */

static void of_backends(struct names *names, spmv_backend backend, const char *(*name)(spmv_backend, int))
{
    static const spmv_backend all[] = {SPMV_BACKEND_CUDA, SPMV_BACKEND_OMP, SPMV_BACKEND_REF};
    for (int b = 0; b < 3; b++)
        if (spmv_backend_built(all[b]) && (backend == SPMV_BACKEND_AUTO || backend == all[b]))
            for (int i = 0; name(all[b], i) != NULL; i++)
                names_add(names, name(all[b], i));
}

void names_of_methods(struct names *names, spmv_backend backend)
{
    of_backends(names, backend, spmv_method_name);
}

void names_of_spgemm_methods(struct names *names, spmv_backend backend)
{
    of_backends(names, backend, spmv_spgemm_method_name);
}

void names_of_rungs(struct names *names, spmv_backend backend)
{
    of_backends(names, backend, spmv_cg_rung_name);
}

void names_of_solvers(struct names *names)
{
    for (int i = 0; spmv_solver_name(i) != NULL; i++)
        names_add(names, spmv_solver_name(i));
    for (int i = 0; spmv_least_squares_name(i) != NULL; i++)
        names_add(names, spmv_least_squares_name(i));
    names_add(names, "auto");
}

void names_of_eigen_solvers(struct names *names)
{
    for (int i = 0; spmv_eigen_name(i) != NULL; i++)
        names_add(names, spmv_eigen_name(i));
    names_add(names, "auto");
}

void names_of_preconditioners(struct names *names)
{
    for (int i = 0; spmv_preconditioner_name(i) != NULL; i++)
        names_add(names, spmv_preconditioner_name(i));
    names_add(names, "auto");
    names_add(names, "all");
}

void names_of_operations(struct names *names)
{
    for (int i = 0; operation_at(i) != NULL; i++)
        names_add(names, operation_at(i)->name);
}

void names_of_suites(struct names *names)
{
    const char *about;
    for (int i = 0; suite_name(i, &about) != NULL; i++)
        names_add(names, suite_name(i, &about));
}
