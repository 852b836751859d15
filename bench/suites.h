/* The suites of matrices: lists of SPECs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_SUITES_H
#define BENCH_SUITES_H

/* The SPECs of a suite, terminated by NULL; NULL: no suite has that name. */
const char *const *suite_find(const char *name);

/* The names of the suites: 0, 1, ... until NULL. *about: a description. */
const char *suite_name(int index, const char **about);

#endif
