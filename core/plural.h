/* The end of a plural in messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PLURAL_H
#define PLURAL_H

#include <stdint.h>

/* "" for one, else "s":
 *
 *     printf("%lld row%s", (long long)rows, plural(rows)); */
static inline const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
