/* A type of each_sum.h: includes TEMPLATE and removes the macros of the type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include TEMPLATE
#undef T
#undef LANE
#undef MASK
#undef LANES
#undef TYPED
