/* Compiles test_functors.cc with nvcc.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/device/test_functors.cc"
