/* The functions of loops_sums.c, declared for one type: see loops_sums.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* in[begin] + ... + in[end-1], begin < end <= limit. May read elements before limit. */
T TYPED(total)(const T *in, int64_t begin, int64_t end, int64_t limit);

/* out[j] = in[head[j]] + ... + in[head[j + 1] - 1], or 0 for an empty segment, for
 * 0 <= j < SUMS_AT_ONCE. No segment has more than longest elements. May read that many elements after
 * head[SUMS_AT_ONCE]. */
void TYPED(side_by_side)(const T *in, const int64_t *head, int64_t longest, T *out);

/* As in struct op_loops. */
void TYPED(fold)(const void *in, int64_t begin, int64_t end, void *out);
void TYPED(inclusive)(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream);
void TYPED(exclusive)(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream);
void TYPED(seg_inclusive)(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,
                          int64_t end, bool stream);
void TYPED(seg_exclusive)(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,
                          int64_t end, bool stream);
