/* Faults from environment variables, for programs of tests: SPMV_TEST_PLANT_ERROR, SPMV_TEST_CACHE_BYTES.
 *
 * Linked in place of bench/no_faults.c, which the linker then leaves in its archive.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "faults.h"

#include <stdlib.h>

const char *fault_text(enum fault fault)
{
    return getenv(fault == FAULT_ERROR ? "SPMV_TEST_PLANT_ERROR" : "SPMV_TEST_CACHE_BYTES");
}
