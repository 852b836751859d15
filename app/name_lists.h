/* Lists of names that the user may give, and what is said about an unknown one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAME_LISTS_H
#define NAME_LISTS_H

#include <spmv/context.h>
#include <spmv/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/name_list.h"

/* Adds the words of a text, each of which ends with a blank, which is overwritten. */
void names_add_words(struct names *names, char *text);

/* Complains of a word that is not one of the names (names_unknown). Returns SPMV_ERROR_ARGUMENT. */
spmv_status names_refuse(const struct names *names, const char *what, const char *word, size_t length);

/* Complains of a text that is not one of the names; NULL is valid. several: text is a list of names
 * separated by commas. */
spmv_status names_check(const struct names *names, const char *what, const char *text, bool several);

/* The lists of names. Methods of products and rungs of the solver: of one backend or
 * (SPMV_BACKEND_AUTO) of all that are built. Preconditioners: with auto and all. Then operations
 * and suites of bench; its peers: candidate_list_peers. */
void names_of_methods(struct names *names, spmv_backend backend);
void names_of_spgemm_methods(struct names *names, spmv_backend backend);
void names_of_rungs(struct names *names, spmv_backend backend);
void names_of_solvers(struct names *names);
void names_of_eigen_solvers(struct names *names);
void names_of_preconditioners(struct names *names);
void names_of_operations(struct names *names);
void names_of_suites(struct names *names);

#endif
