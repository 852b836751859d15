/* For test programs whose tests share one context. ONE_CONTEXT_MAIN is their main.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_ONE_CONTEXT_H
#define SUPPORT_ONE_CONTEXT_H

#include "tests/support/support.h"

static spmv_context *ctx; /* on the backend of argv[1] */
static bool brief;        /* argv[2] is "brief": a few cases only */

static inline bool on_cuda(void)
{
    return support_backend == SPMV_BACKEND_CUDA;
}

/* Whether ctx is on a GPU that the host does not play. */
static inline bool on_real_gpu(void)
{
    return on_cuda() && !support_host_plays(ctx);
}

/* main: runs these cmocka tests in order. */
#define ONE_CONTEXT_MAIN(...)                                                                                          \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        support_begin(argc, argv);                                                                                     \
        brief = support_brief(argc, argv);                                                                             \
        ctx = support_context();                                                                                       \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                               \
        const int failed = cmocka_run_group_tests(tests, NULL, NULL);                                                  \
        spmv_context_destroy(ctx);                                                                                     \
        return failed;                                                                                                 \
    }

#endif
