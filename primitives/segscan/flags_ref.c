/* Conversion between flags as bytes and flags as bits, the definition: flag by flag.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"

spmv_status flags_pack_ref(spmv_context *ctx, const uint8_t *flags, uint32_t *bits, int64_t n)
{
    (void)ctx;
    for (int64_t i = 0; i < n; i++) {
        if (i % 32 == 0)
            bits[i / 32] = 0;
        bits[i / 32] |= (uint32_t)(flags[i] != 0) << (i % 32);
    }
    return SPMV_OK;
}

spmv_status flags_unpack_ref(spmv_context *ctx, const uint32_t *bits, uint8_t *flags, int64_t n)
{
    (void)ctx;
    for (int64_t i = 0; i < n; i++)
        flags[i] = flag_bit(bits, i);
    return SPMV_OK;
}
