/* gather for one type (each_type.h): moves_typed.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/gather/moves_typed.h"

static void TYPED(gather)(const struct move *m, int64_t from, int64_t to)
{
    TYPED(move_flagged)(m, false, m->filter != NULL ? m->filter->mask + from : NULL, from, to);
}
