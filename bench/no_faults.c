/* No faults: what every program has but those of tests, which link tests/faults.c in its place.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "faults.h"

const char *fault_text(enum fault fault)
{
    (void)fault;
    return NULL;
}
