/* The steps of algebraic multigrid: what each does to one row, for C and CUDA C++. A step NAME is a
 * function TYPED(amg_NAME)(arguments, row) in the file of its subject below, with a struct for its
 * arguments. Arrays are in the context's memory; T is the type of the hierarchy.
 *
 * amg_loops.c calls the functions in loops, amg_cuda.cu in kernels. So all backends do the same
 * operations in the same order, and the hierarchy has the same bits. Each function writes only
 * elements of its own row, and reads of other rows only what no call of the same step writes.
 *
 * Included as it is, this file and those below declare the arguments. As the TEMPLATE of each_real.h
 * it defines the functions for each T; a file may use functions of those above it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/amg/amg_given_rows.h"

#include "solvers/amg/amg_aggregate_rows.h"
#include "solvers/amg/amg_classical_rows.h"
#include "solvers/amg/amg_coarsest_rows.h"
#include "solvers/amg/amg_galerkin_rows.h"
#include "solvers/amg/amg_nodes_rows.h"
#include "solvers/amg/amg_prolong_rows.h"
#include "solvers/amg/amg_ranks_rows.h"
#include "solvers/amg/amg_smoother_rows.h"
#include "solvers/amg/amg_strength_rows.h"

#ifndef AMG_ROWS_H
#define AMG_ROWS_H

/* X(NAME, name, arguments) for each step; the arguments are a struct amg_arguments. A new step is one
 * line here and one function. */
#define AMG_STEP_LIST(X)                                                                                               \
    X(CHECK, check, given)                                                                                             \
    X(SYMMETRY, symmetry, symmetry)                                                                                    \
    X(ALONE, alone, given)                                                                                             \
    X(CONVERT, convert, conversion)                                                                                    \
    X(NARROW, narrow, scaling)                                                                                         \
    X(WIDEN, widen, scaling)                                                                                           \
    X(DIAGONAL, diagonal, diagonal)                                                                                    \
    X(BOUND, bound, bound)                                                                                             \
    X(POWER_BEGIN, power_begin, bound)                                                                                 \
    X(POWER, power, bound)                                                                                             \
    X(SMOOTHER, smoother, smoother)                                                                                    \
    X(HALVES_COUNT, halves_count, halves)                                                                              \
    X(HALVES_FILL, halves_fill, halves)                                                                                \
    X(STRONGEST, strongest, strength)                                                                                  \
    X(MOVE_NEEDED, move_needed, strength)                                                                              \
    X(MOVE_SAMPLE, move_sample, strength)                                                                              \
    X(MOVE, move, strength)                                                                                            \
    X(MOVE_MEAN, move_mean, strength)                                                                                  \
    X(STRONG_COUNT, strong_count, strength)                                                                            \
    X(STRONG_FILL, strong_fill, strength)                                                                              \
    X(STRONG_VALUES, strong_values, strength)                                                                          \
    X(MIS_BEGIN, mis_begin, aggregates)                                                                                \
    X(MIS_SPREAD, mis_spread, aggregates)                                                                              \
    X(MIS_DECIDE, mis_decide, aggregates)                                                                              \
    X(ROOT, root, roots)                                                                                               \
    X(JOIN_ROOT, join_root, roots)                                                                                     \
    X(JOIN_NEAR, join_near, aggregates)                                                                                \
    X(PROLONG_COUNT, prolong_count, prolongation)                                                                      \
    X(PROLONG_FILL, prolong_fill, prolongation)                                                                        \
    X(PROLONG_VALUES, prolong_values, prolongation)                                                                    \
    X(TENTATIVE_COUNT, tentative_count, prolongation)                                                                  \
    X(TENTATIVE_FILL, tentative_fill, prolongation)                                                                    \
    X(TENTATIVE_SMOOTH, tentative_smooth, prolongation)                                                                \
    X(NODE_LIKE, node_like, likeness)                                                                                  \
    X(NODE_BEGIN, node_begin, places)                                                                                  \
    X(NODE_FIRST, node_first, places)                                                                                  \
    X(NODE_SIZE, node_size, places)                                                                                    \
    X(NODE_COMPONENT, node_component, places)                                                                          \
    X(NODE_PLACE, node_place, places)                                                                                  \
    X(NODE_COUNT, node_count, nodes)                                                                                   \
    X(NODE_FILL, node_fill, nodes)                                                                                     \
    X(SLOT_BASIS, slot_basis, slot_basis)                                                                              \
    X(COMPONENTS, components, basis)                                                                                   \
    X(ORTHONORMAL, orthonormal, basis)                                                                                 \
    X(BASIS_COUNT, basis_count, basis)                                                                                 \
    X(BASIS_FILL, basis_fill, basis)                                                                                   \
    X(SEE, see, sample)                                                                                                \
    X(ONE_WAY, one_way, sample)                                                                                        \
    X(DEPENDENCE, dependence, dependence)                                                                              \
    X(SPLIT_BEGIN, split_begin, split)                                                                                 \
    X(SPLIT_DECIDE, split_decide, split)                                                                               \
    X(SPLIT_EXCLUDE, split_exclude, split)                                                                             \
    X(COARSE_NEAR, coarse_near, interpolation)                                                                         \
    X(INTERPOLATE, interpolate, interpolation)                                                                         \
    X(INTERPOLATE_PLACE, interpolate_place, interpolation)                                                             \
    X(INTERPOLATE_VALUES, interpolate_values, interpolation)                                                           \
    X(TRANSPOSE, transpose, transposed)                                                                                \
    X(FILTER_BEGIN, filter_begin, filter)                                                                              \
    X(FILTER_COUNT, filter_count, filter)                                                                              \
    X(FILTER_FILL, filter_fill, filter)                                                                                \
    X(FILTER_VALUES, filter_values, filter)                                                                            \
    X(COARSE_MASS, coarse_mass, coarse)                                                                                \
    X(COARSE_CHECK, coarse_check, coarse)                                                                              \
    X(RENUMBER, renumber, renumbering)                                                                                 \
    X(LENGTHS, lengths, lengths)                                                                                       \
    X(BOTH, both, both)                                                                                                \
    X(DENSE_CLEAR, dense_clear, coarsest)                                                                              \
    X(DENSE_FILL, dense_fill, coarsest)                                                                                \
    X(DENSE_TAKE, dense_take, coarsest)

enum amg_step {
#define AMG_STEP(NAME, name, arguments) AMG_##NAME,
    AMG_STEP_LIST(AMG_STEP)
#undef AMG_STEP
        AMG_STEPS
};

#endif
