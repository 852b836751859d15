/* The old name of plan.h, until 0.11. SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/plan.h>
