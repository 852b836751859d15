/* One row of the backward error (backward_error.h), for the host and for kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BACKWARD_ERROR_ROW_H
#define BACKWARD_ERROR_ROW_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

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

/* ------------------------------------------------------------- the quick pass */

/* Of some rows: an upper bound of the largest omega_i, the first row that has it, and the sum of |r_i|^2.
 * Infinite: a row's numbers are outside of the range below, so nothing is known. */
struct error_quick {
    double omega, square;
    int64_t row;
};

/* The quick pass scales nothing. If (|A| |x| + |b|)_i is in this range, neither a product nor a square
 * that matters overflows or underflows. */
#define ERROR_QUICK_LEAST 0x1p-400
#define ERROR_QUICK_MOST 0x1p400

/* A product of numbers other than 0 that underflows to 0 counts as DBL_MIN: a row of such products only
 * is then outside of the range, and in other rows that is nothing. The norm of the row is not needed. */
HOST_DEVICE_FN void error_quick_entry(struct error_row *row, double a, double x)
{
    const double product = a * x;
    row->re -= product;
    row->terms += product == 0 && a != 0 && x != 0 ? DBL_MIN : fabs(product);
}

/* One root for |a| |x|. Too small a term only makes the bound larger. */
HOST_DEVICE_FN void error_quick_entry_complex(struct error_row *row, double a_re, double a_im, double x_re, double x_im)
{
    const double least = 0x1p-1000, a = a_re * a_re + a_im * a_im, x = x_re * x_re + x_im * x_im, square = a * x;
    row->re -= a_re * x_re - a_im * x_im;
    row->im -= a_re * x_im + a_im * x_re;
    if (a < least || x < least || square < least)
        row->terms += (a_re != 0 || a_im != 0) && (x_re != 0 || x_im != 0) ? DBL_MIN : 0;
    else
        row->terms += sqrt(square);
}

/* Adds row i. r: |r_i|; terms: (|A| |x| + |b|)_i. */
HOST_DEVICE_FN void error_quick_add(struct error_quick *sum, int64_t i, bool has_entries, double r, double terms)
{
    sum->square += r * r;
    if (terms != 0 && !(terms >= ERROR_QUICK_LEAST && terms < ERROR_QUICK_MOST)) {
        if (sum->omega < (double)INFINITY) {
            sum->omega = (double)INFINITY;
            sum->row = i;
        }
    } else if (has_entries && r > sum->omega * terms) { /* most rows need no division */
        sum->omega = r / terms;
        sum->row = i;
    }
}

HOST_DEVICE_FN void error_quick_add_all(struct error_quick *sum, struct error_quick more)
{
    sum->square += more.square;
    if (more.omega > sum->omega || (more.omega == sum->omega && more.row < sum->row)) {
        sum->omega = more.omega;
        sum->row = more.row;
    }
}

/* Whether the sum over all rows proves that no omega_i exceeds the bound, and its norm is right. */
HOST_DEVICE_FN bool error_quick_decides(struct error_quick sum, double bound)
{
    const bool underflows = sum.square < 0x1p-900 && (sum.square > 0 || sum.omega > 0);
    return sum.omega < (double)INFINITY && sum.omega <= bound && !underflows;
}

#endif
