/* spmv: sparse matrix times vector, and what it stands on. Includes every public C header.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SPMV_H
#define SPMV_SPMV_H

#include <spmv/context.h>
#include <spmv/io.h>
#include <spmv/matrix.h>
#include <spmv/operator.h>
#include <spmv/operators.h>
#include <spmv/preconditioner.h>
#include <spmv/primitives.h>
#include <spmv/solvers.h>
#include <spmv/types.h>

#endif
