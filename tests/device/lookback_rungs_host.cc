/* The table of the single-pass rungs for the host that plays a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/device/lookback_rungs.cu"
