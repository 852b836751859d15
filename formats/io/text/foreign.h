/* Files of other kinds than those that are read, recognised by their content.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef FOREIGN_H
#define FOREIGN_H

/* A kind of file. */
struct foreign {
    const char *what; /* "a NumPy array (.npy)" */
    const char *how;  /* how to convert it: a clause */
};

/* The kind of the file that begins with [text, end), up to a line end: whole lines, or the part of
 * the first line that was read. NULL: unknown. Never a kind for a Matrix Market file or for a text
 * of numbers. */
const struct foreign *foreign_kind(const char *text, const char *end);

#endif
