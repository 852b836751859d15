/* spmv: sparse matrix-vector products, solvers, files and data-parallel primitives. Includes every
 * public C header:
 *
 *   types.h           statuses, element types
 *   context.h         contexts, memory, error messages; the rules for all headers
 *   matrix.h          CSR matrices, conversions, statistics, generated matrices
 *   io.h              files of matrices and vectors
 *   plan.h            y = alpha op(A) x + beta y: plans, products, the check of a result
 *   spgemm.h          C = A B: products of sparse matrices
 *   sddmm.h           Y = P o (A B'): sampled products, and the softmax of rows
 *   batch.h           many small systems A_k x_k = b_k with one pattern
 *   solvers.h         A x = b by conjugate gradients
 *   eigen.h           eigenvalues of symmetric matrices by LOBPCG and Lanczos, singular values
 *   least_squares.h   min ||A x - b|| by LSMR, LSQR and CGLS
 *   preconditioner.h  preconditioners for conjugate gradients
 *   group.h           products and solves on several ranks
 *   primitives.h      map, gather, scatter, reduce, scan, compact, sort, histogram, ...
 *   operators.h       operators, map functions and predicates of the primitives
 *
 * Old names (types.h, SPMV_NO_OLD_NAMES): multiply.h is spgemm.h, operator.h is plan.h.
 *
 * The example in README.md multiplies a matrix by a vector in ten lines; examples/ has whole
 * programs. For CUDA C++ there is also spmv/device.cuh, the primitives as templates.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SPMV_H
#define SPMV_SPMV_H

#include <spmv/batch.h>
#include <spmv/context.h>
#include <spmv/eigen.h>
#include <spmv/group.h>
#include <spmv/io.h>
#include <spmv/least_squares.h>
#include <spmv/matrix.h>
#include <spmv/operators.h>
#include <spmv/plan.h>
#include <spmv/preconditioner.h>
#include <spmv/primitives.h>
#include <spmv/sddmm.h>
#include <spmv/solvers.h>
#include <spmv/spgemm.h>
#include <spmv/types.h>

#endif
