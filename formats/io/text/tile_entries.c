/* Parses tiles of coordinate files with instructions that every processor has.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/text/tile_entries_parse.h"

void tile_entries_plain(const struct tile_kind *kind, const struct text_tile *tile, struct tile_target target,
                        struct findings *found)
{
    parse_tile(kind, tile, target, found);
}
