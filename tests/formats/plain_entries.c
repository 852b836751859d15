/* Replaces tile_entries_avx2 with a function that returns NULL, as on a processor without AVX2. The
 * linker option --wrap selects it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/text/tile_entries.h"

tile_entries_way *__wrap_tile_entries_avx2(void);

tile_entries_way *__wrap_tile_entries_avx2(void)
{
    return NULL;
}
