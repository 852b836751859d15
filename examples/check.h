/* What the examples share. CHECK(call): if a call of the library fails, prints why and jumps to the
 * label done. The function has the variables st (spmv_status) and ctx (spmv_context *).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXAMPLES_CHECK_H
#define EXAMPLES_CHECK_H

#include <limits.h>
#include <spmv/spmv.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((st = (call)) != SPMV_OK) {                                                                                \
            fprintf(stderr, "%s: %s: %s\n", #call, spmv_status_text(st), spmv_last_error(ctx));                        \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

/* Reads the arguments [N [M]] into number[], which has their defaults: 1 <= N <= most, 1 <= M.
 * Returns 0 after printing the usage if they are wrong. */
static inline int numbers_read(int argc, char **argv, long long most, const char *usage, long long number[2])
{
    for (int i = 0; i < 2 && i + 1 < argc; i++)
        number[i] = atoll(argv[i + 1]);
    if (argc <= 3 && number[0] >= 1 && number[0] <= most && number[1] >= 1 && number[1] <= INT_MAX)
        return 1;
    fprintf(stderr, "usage: %s\n", usage);
    return 0;
}

#endif
