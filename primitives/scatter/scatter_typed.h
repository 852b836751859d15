/* scatter for one type (each_type.h): moves_typed.h. flags: see there.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/gather/moves_typed.h"

static void TYPED(scatter)(const struct move *m, const uint8_t *flags, int64_t from, int64_t to)
{
    TYPED(move_flagged)(m, true, flags, from, to);
}
