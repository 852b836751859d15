/* Eigen: its row-major sparse matrix over our arrays, the one product with a sparse matrix that it runs in threads
 * (TopicMultiThreading in its documentation): schedule(dynamic) over chunks of a quarter of a thread's rows, above
 * 20000 entries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <Eigen/SparseCore>
#include <cstdio>
#include <new>

#include "peer.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define VERSION TEXT(EIGEN_WORLD_VERSION) "." TEXT(EIGEN_MAJOR_VERSION) "." TEXT(EIGEN_MINOR_VERSION)

namespace
{

template <typename T> void multiply(const peer_problem *problem)
{
    using Matrix = Eigen::SparseMatrix<T, Eigen::RowMajor, std::int32_t>;
    using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
    const Eigen::Map<const Matrix> a(problem->rows, problem->cols, problem->nnz, problem->row_ptr, problem->col,
                                     static_cast<const T *>(problem->val));
    const Eigen::Map<const Vector> x(static_cast<const T *>(problem->x), problem->cols);
    Eigen::Map<Vector> y(static_cast<T *>(problem->y), problem->rows);
    y.noalias() = a * x;
}

int open_eigen(const peer_problem *problem, void **state, char *, size_t)
{
    *state = const_cast<peer_problem *>(problem); /* all there is to know; it outlives the state */
    return 0;
}

int run_eigen(void *state)
{
    const peer_problem *problem = static_cast<const peer_problem *>(state);
    Eigen::setNbThreads(problem->threads); /* a variable of this module's own copy of Eigen */
    if (problem->type == SPMV_F64)
        multiply<double>(problem);
    else
        multiply<float>(problem);
    return 0;
}

} // namespace

const peer_module *spmv_peer_module(void)
{
    static const peer peers[] = {{"eigen", PEER_SPMV, "Map<SparseMatrix, RowMajor, int>, OpenMP; " PEER_FLAGS, 0,
                                  open_eigen, run_eigen, nullptr, nullptr, nullptr}};
    static const peer_module module = {PEER_ABI, "Eigen " VERSION, peers, 1};
    return &module;
}
