/* Modules of peers that the loader must refuse. A macro selects what is wrong.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/peers/peer.h"

#ifdef ODD_SYMBOL
PEER_EXPORT int another_symbol(void);
int another_symbol(void)
{
    return 0;
}
#else

static int open_odd(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    (void)problem, (void)state, (void)why, (void)why_size;
    return -1;
}

#ifdef ODD_UNDEFINED
int function_of_an_absent_library(void *state);
#define RUN function_of_an_absent_library
#else
static int run_odd(void *state)
{
    (void)state;
    return -1;
}
#define RUN run_odd
#endif

#define PEER(text)                                                                                                     \
    {                                                                                                                  \
        .name = text, .op = PEER_SPMV, .settings = "", .open = open_odd, .run = RUN                                    \
    }

const struct peer_module *spmv_peer_module(void)
{
#ifdef ODD_NAMES
    static const struct peer peers[] = {PEER("loops-static"), PEER("loops-guide"), PEER("loops-merge")};
#else
    static const struct peer peers[] = {PEER("loops-static"), PEER("loops-guided"), PEER("loops-merge")};
#endif
    static const struct peer_module module = {
#ifdef ODD_ABI
        .abi = PEER_ABI + 1,
#else
        .abi = PEER_ABI,
#endif
#ifdef ODD_COUNT
        .count = 2,
#else
        .count = 3,
#endif
        .library = "odd",
        .peers = peers};
#ifdef ODD_NOTHING
    return &module - &module == 0 ? NULL : &module;
#else
    return &module;
#endif
}

#endif
