/* Lists of valid names, and the name most similar to a mistyped word. The library (choice.h), bench
 * and the program share them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAME_LIST_H
#define NAME_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A list has room for so many names. NAMES_HOLD(count) stands beside each table of names that grows,
 * so that a longer table does not compile. */
enum { NAMES_MOST = 96 };
#define NAMES_HOLD(count) _Static_assert((int)(count) <= (int)NAMES_MOST, "NAMES_MOST is less than the names of a list")

/* The names that an option or argument accepts. The strings live as long as the list. */
struct names {
    int count;
    const char *on; /* the backend, for messages; NULL: the names do not depend on it */
    const char *name[NAMES_MOST];
    const void *row[NAMES_MOST]; /* what the name stands for; NULL where only names matter */
};

/* Adds a name if it is not in the list, which must have room for it. */
void names_add(struct names *names, const char *name);
void names_add_row(struct names *names, const char *name, const void *row);

/* Adds the rows of a table: structs of this size that begin with their name. A NULL name ends
 * it. */
void names_add_table(struct names *names, const void *rows, size_t size);

/* The name at this place of such a table; NULL if there is none. */
const char *names_at(const void *rows, size_t size, int index);

/* The place of the first `length` characters of word in the list; -1: it is not there. */
int names_find(const struct names *names, const char *word, size_t length);

/* Writes "a, b, c", cut to the size of text. */
void names_join(const struct names *choice, char *text, size_t size);

/* The name that was probably meant: it differs by a few typing errors, or one is a prefix of the
 * other. NULL: no name is similar. */
const char *names_nearest(const struct names *choice, const char *word, size_t length);

/* Writes: unknown WHAT "WORD" on BACKEND; did you mean NAME? There are: a, b, c. list: in place of
 * all names; NULL: they are listed. */
void names_unknown(const struct names *names, const char *what, const char *word, size_t length, const char *list,
                   char *text, size_t size);

#endif
