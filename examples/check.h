/* CHECK(call): if a call of the library fails, prints why and jumps to the label done. The function
 * that uses it has the variables st (spmv_status) and ctx (spmv_context *).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXAMPLES_CHECK_H
#define EXAMPLES_CHECK_H

#include <spmv/spmv.h>
#include <stdio.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((st = (call)) != SPMV_OK) {                                                                                \
            fprintf(stderr, "%s: %s: %s\n", #call, spmv_status_text(st), spmv_last_error(ctx));                        \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

#endif
