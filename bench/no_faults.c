/* No faults, for all programs except test programs, which link tests/support/faults.c instead.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "bench/faults.h"

const char *fault_text(enum fault fault)
{
    (void)fault;
    return NULL;
}
