/* The typed part of scan_ref.c, included once per pair of operator and type (each_pair.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static void TYPED(inclusive)(const T *in, T *out, int64_t n)
{
    T all = out[0] = in[0];
    for (int64_t i = 1; i < n; i++)
        out[i] = all = TYPED(op)(all, in[i]);
}

static void TYPED(exclusive)(const T *in, T *out, int64_t n)
{
    T all = TYPED(identity)();
    for (int64_t i = 0; i < n; i++) {
        const T x = in[i];
        out[i] = all;
        all = TYPED(op)(all, x);
    }
}

static void TYPED(scan)(spmv_scan_kind kind, const void *in, void *out, int64_t n)
{
    (kind == SPMV_INCLUSIVE ? TYPED(inclusive) : TYPED(exclusive))(in, out, n);
}
