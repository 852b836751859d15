/* test_functors.cc for nvcc.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test_functors.cc"
