/* The suites of matrices: lists of SPECs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_SUITES_H
#define BENCH_SUITES_H

/* The SPECs of a suite, with NULL behind the last; NULL: there is no suite of that name. */
const char *const *suite_find(const char *name);

/* The suites' names: 0, 1, ... until NULL; *about: what it is. */
const char *suite_name(int index, const char **about);

#endif
