/* In place of tile_entries_avx2, for programs that are linked so: a processor without such instructions.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tile_entries.h"

tile_entries_way *__wrap_tile_entries_avx2(void);

tile_entries_way *__wrap_tile_entries_avx2(void)
{
    return NULL;
}
