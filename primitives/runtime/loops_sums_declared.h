/* The functions of loops_sums.c, declared for one type: see loops_sums.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* in[begin] + ... + in[end-1], begin < end <= limit; elements before limit may be read */
T TYPED(run)(const T *in, int64_t begin, int64_t end, int64_t limit);

/* out[j] = in[head[j]] + ... + in[head[j + 1] - 1], 0 when there are none, 0 <= j < SUM_GROUP; none has more than
 * longest; that many elements behind head[SUM_GROUP] may be read */
void TYPED(side_by_side)(const T *in, const int64_t *head, int64_t longest, T *out);

/* As in struct op_loops. */
void TYPED(fold)(const void *in, int64_t begin, int64_t end, void *out);
void TYPED(inclusive)(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream);
void TYPED(exclusive)(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream);
void TYPED(seg_inclusive)(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,
                          int64_t end, bool stream);
void TYPED(seg_exclusive)(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,
                          int64_t end, bool stream);
