/* Faults from environment variables, for programs of tests.
 *
 * Linked in place of bench/no_faults.c, which the linker then leaves in its archive.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/faults.h"

#include <stdlib.h>

const char *fault_text(enum fault fault)
{
    static const char *const names[] = {[FAULT_ERROR] = "SPMV_TEST_PLANT_ERROR",
                                        [FAULT_CACHE_BYTES] = "SPMV_TEST_CACHE_BYTES",
                                        [FAULT_SHORT_TIMES] = "SPMV_TEST_SHORT_TIMES",
                                        [FAULT_CUDA_BUILT] = "SPMV_TEST_CUDA_BUILT"};
    return getenv(names[fault]);
}
