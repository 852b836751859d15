/* The old name of spgemm.h, until 0.11. SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/spgemm.h>
