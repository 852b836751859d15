/* One row of the backward error (backward_error.h), for the host and for kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BACKWARD_ERROR_ROW_H
#define BACKWARD_ERROR_ROW_H

#include <math.h>

#include "core/host_device_fn.h"

/* Sums over the entries of a row: -A_i x, |A_i| |x|, ||A_i||_1. */
struct error_row {
    double re, im, terms, norm;
};

/* A sum of squares, in three parts for numbers whose squares leave the range of f64 at either end (J. L.
 * Blue, "A portable Fortran program to find the Euclidean norm of a vector", ACM Trans. Math. Softw. 4,
 * 1978). */
struct error_norm {
    double small, middle, large; /* of numbers times ERROR_ROW_UP, as they are, times ERROR_ROW_DOWN */
};

/* A row is computed again with another of these factors if its numbers leave the range of f64. */
#define ERROR_ROW_UP 0x1p600
#define ERROR_ROW_DOWN 0x1p-600

HOST_DEVICE_FN void error_norm_add(struct error_norm *norm, double value)
{
    if (value < 0x1p-500)
        norm->small += (value * ERROR_ROW_UP) * (value * ERROR_ROW_UP);
    else if (value < 0x1p500)
        norm->middle += value * value;
    else
        norm->large += (value * ERROR_ROW_DOWN) * (value * ERROR_ROW_DOWN);
}

HOST_DEVICE_FN void error_norm_add_all(struct error_norm *norm, struct error_norm more)
{
    norm->small += more.small;
    norm->middle += more.middle;
    norm->large += more.large;
}

HOST_DEVICE_FN double error_norm_root(struct error_norm norm)
{
    return norm.large > 0    ? sqrt(norm.large) / ERROR_ROW_DOWN
           : norm.middle > 0 ? sqrt(norm.middle)
                             : sqrt(norm.small) / ERROR_ROW_UP;
}

HOST_DEVICE_FN void error_row_add(struct error_row *row, double a, double x)
{
    const double product = a * x;
    row->re -= product;
    row->terms += fabs(product);
    row->norm += fabs(a);
}

/* The power of two that makes the largest |x_i| about 1. It and its reciprocal are normal numbers. */
HOST_DEVICE_FN double error_scale(double largest)
{
    int exponent = 0;
    if (!(largest > 0) || !isfinite(largest))
        return 1;
    frexp(largest, &exponent);
    return ldexp(1.0, exponent > 1000 ? -1000 : exponent < -1000 ? 1000 : -exponent);
}

HOST_DEVICE_FN double error_modulus(double re, double im)
{
    return sqrt(re * re + im * im);
}

HOST_DEVICE_FN void error_row_add_complex(struct error_row *row, double a_re, double a_im, double x_re, double x_im)
{
    row->re -= a_re * x_re - a_im * x_im;
    row->im -= a_re * x_im + a_im * x_re;
    const double modulus = error_modulus(a_re, a_im);
    row->terms += modulus * error_modulus(x_re, x_im);
    row->norm += modulus;
}

/* The factor with which the row must be computed again; 1: none. b: its modulus, scaled. */
HOST_DEVICE_FN double error_row_factor(struct error_row row, double b, double largest)
{
    const double most = row.terms + b + row.norm * largest;
    return !(most < 0x1p1000) ? ERROR_ROW_DOWN : most < 0x1p-900 && most > 0 ? ERROR_ROW_UP : 1;
}

/* The denominator of omega_i; infinite for a row without entries. */
HOST_DEVICE_FN double error_row_size(struct error_row row, double b, double largest, double tiny)
{
    const double whole = row.norm * largest;
    return row.norm == 0 ? (double)INFINITY : row.terms + b > tiny * whole ? row.terms + b : row.terms + whole;
}

/* omega_i; r: the modulus of r_i. */
HOST_DEVICE_FN double error_row_omega(struct error_row row, double b, double r, double largest, double tiny)
{
    if (row.norm == 0 || r == 0)
        return 0;
    const double omega = r / error_row_size(row, b, largest, tiny);
    return omega == omega ? omega : (double)INFINITY;
}

#endif
