/* What the check of symmetry (krylov_symmetry.c) computes on the host and on a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef KRYLOV_SYMMETRY_H
#define KRYLOV_SYMMETRY_H

#include "core/host_device_fn.h"
#include "core/runtime.h"
#include "core/splitmix.h"

enum { SYMMETRY_VECTORS = 3 };

/* Random bits of element i, from which all vectors are made. */
HOST_DEVICE_FN uint64_t symmetry_bits(int64_t i)
{
    return splitmix_mix(((uint64_t)i + ((uint64_t)1 << 40)) * SPLITMIX_GAMMA);
}

/* Element of vector number `which`, from eleven of these bits: 1 + k / 1024, 0 <= k < 1024, or its
 * negative. */
HOST_DEVICE_FN double symmetry_element(uint64_t bits, int which)
{
    const uint64_t own = bits >> (11 * which);
    const int sign = (int)(own & 1) * 2 - 1; /* no branch, which would be taken at random */
    return (double)(sign * (1024 + (int)(own >> 1 & 1023))) / 1024;
}

/* The sums of one part from a product A v: u'A v for each other vector u, of complex vectors the real part, with and
 * without conjugation of u; and ||A v||^2. Squares may leave the
 * range of f64, so those of small elements, of large ones and of the others are apart, the first two divided
 * and multiplied by SYMMETRY_SCALE (J. L. Blue, "A portable Fortran program to find the Euclidean norm of a
 * vector", ACM TOMS 4, 1978). */
enum { SYMMETRY_SMALL, SYMMETRY_OTHERS, SYMMETRY_LARGE, SYMMETRY_SQUARES };
struct symmetry_sums {
    double dot[SYMMETRY_VECTORS], bilinear[SYMMETRY_VECTORS], square[SYMMETRY_SQUARES];
};
#define SYMMETRY_SCALE 0x1p-1200L

/* Adds the square of a number. */
HOST_DEVICE_FN void symmetry_add_square(double value, double square[SYMMETRY_SQUARES])
{
    const double size = value < 0 ? -value : value;
    const double small = value * 0x1p600, large = value * 0x1p-600;
    if (size < 0x1p-450)
        square[SYMMETRY_SMALL] += small * small;
    else if (size > 0x1p450)
        square[SYMMETRY_LARGE] += large * large;
    else
        square[SYMMETRY_OTHERS] += value * value; /* also what is not a number */
}

struct symmetry_sample {
    void *in, *out;             /* v and A v, in the context's memory: count real numbers each */
    int64_t count;              /* rows times vectors, times 2 if complex */
    int64_t first;              /* the number of the first element among those of all ranks */
    int64_t parts;              /* of the sums */
    const int64_t *begin;       /* parts + 1: of each part, in the context's memory */
    struct symmetry_sums *sums; /* SYMMETRY_VECTORS times parts, in the context's memory */
    spmv_type type;
    bool complex; /* the numbers are real and imaginary parts in turn */
    int team;     /* threads for loops on the host */
};

/* Both only queue their work. */
spmv_status krylov_symmetry_fill_cuda(spmv_context *ctx, const struct symmetry_sample *s, int which)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status krylov_symmetry_add_up_cuda(spmv_context *ctx, const struct symmetry_sample *s, int which,
                                        struct symmetry_sums *of) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
