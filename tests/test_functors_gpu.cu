/* Compiles test_functors.cc with nvcc.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test_functors.cc"
