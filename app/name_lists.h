/* Lists of names that the user may give, and what is said about an unknown one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAME_LISTS_H
#define NAME_LISTS_H

#include <spmv/context.h>
#include <spmv/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Valid names of an option or argument, in the order in which they were added. The strings live as
 * long as the program. */
enum { NAMES_MOST = 96 };
struct names {
    const char *name[NAMES_MOST];
    int count;
};

/* Adds a name if it is not in the list. */
void names_add(struct names *names, const char *name);

/* Adds the words of a text, each of which ends with a blank, which is overwritten. */
void names_add_words(struct names *names, char *text);

bool names_have(const struct names *names, const char *word, size_t length);

/* Writes "a, b, c"; cut to the size of text. */
void names_join(const struct names *names, char *text, size_t size);

/* The name that was probably meant: it differs by a few typing errors, or one is a prefix of the
 * other. NULL: no name is similar. */
const char *names_nearest(const struct names *names, const char *word, size_t length);

/* Complains: "unknown WHAT WORD; did you mean NAME? There are: a, b, c". Returns
 * SPMV_ERROR_ARGUMENT. */
spmv_status names_refuse(const struct names *names, const char *what, const char *word, size_t length);

/* Complains of a text that is not one of the names; NULL is valid. several: text is a list of names
 * separated by commas. */
spmv_status names_check(const struct names *names, const char *what, const char *text, bool several);

/* The lists of names. Methods of products and rungs of the solver: of one backend or
 * (SPMV_BACKEND_AUTO) of all that are built. Preconditioners: with auto and all. Then operations,
 * suites and peers of bench; peers with their modules, all and none. */
void names_of_methods(struct names *names, spmv_backend backend);
void names_of_multiply_methods(struct names *names, spmv_backend backend);
void names_of_rungs(struct names *names, spmv_backend backend);
void names_of_solvers(struct names *names);
void names_of_preconditioners(struct names *names);
void names_of_operations(struct names *names);
void names_of_suites(struct names *names);
void names_of_peers(struct names *names);

#endif
