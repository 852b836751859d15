/* Eigen: its row-major sparse matrix over spmv's arrays, the only sparse product that it runs with
 * threads (TopicMultiThreading in its documentation): schedule(dynamic) with chunks of a quarter of
 * a thread's rows, above 20000 entries. Vectors that are stored one after the other it multiplies
 * one by one. And its ConjugateGradient with Lower|Upper, which makes its
 * products use threads; its vector operations use one thread. It allocates its vectors in each
 * solve.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <Eigen/IterativeLinearSolvers>
#include <Eigen/SparseCore>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>

#include "bench/peers/peer.h"

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

/* Y = A X, with X and Y in the given order. */
template <typename T, int Order> void multiply_block(const peer_problem *problem)
{
    using Matrix = Eigen::SparseMatrix<T, Eigen::RowMajor, std::int32_t>;
    using Block = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Order>;
    const Eigen::Map<const Matrix> a(problem->rows, problem->cols, problem->nnz, problem->row_ptr, problem->col,
                                     static_cast<const T *>(problem->val));
    const Eigen::Map<const Block> x(static_cast<const T *>(problem->x), problem->cols, problem->vectors);
    Eigen::Map<Block> y(static_cast<T *>(problem->y), problem->rows, problem->vectors);
    y.noalias() = a * x;
}

template <typename T> void multiply_vectors(const peer_problem *problem)
{
    if (problem->op == PEER_SPMV)
        multiply<T>(problem);
    else if (problem->by_columns)
        multiply_block<T, Eigen::ColMajor>(problem);
    else
        multiply_block<T, Eigen::RowMajor>(problem);
}

int open_eigen(const peer_problem *problem, void **state, char *, size_t)
{
    *state = const_cast<peer_problem *>(problem); /* needs nothing else; outlives the state */
    return 0;
}

int run_eigen(void *state)
{
    const peer_problem *problem = static_cast<const peer_problem *>(state);
    Eigen::setNbThreads(problem->threads); /* a variable of this module's copy of Eigen */
    if (problem->type == SPMV_F64)
        multiply_vectors<double>(problem);
    else
        multiply_vectors<float>(problem);
    return 0;
}

template <typename T> using Matrix = Eigen::SparseMatrix<T, Eigen::RowMajor, std::int32_t>;
template <typename T> using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

/* A solver for the type, which keeps a reference to the matrix. */
template <typename T> struct Solver {
    Eigen::Map<const Matrix<T>> a;
    Eigen::ConjugateGradient<Matrix<T>, Eigen::Lower | Eigen::Upper, Eigen::IdentityPreconditioner> cg;

    bool nothing_to_do; /* b is 0 */

    explicit Solver(const peer_problem *problem)
        : a(problem->rows, problem->cols, problem->nnz, problem->row_ptr, problem->col,
            static_cast<const T *>(problem->val))
    {
        cg.setTolerance(static_cast<T>(problem->rtol));
        cg.setMaxIterations(problem->max_iterations);
        cg.compute(a);
        nothing_to_do = Eigen::Map<const Vector<T>>(static_cast<const T *>(problem->b), problem->rows).isZero(0);
    }

    void solve(const peer_problem *problem)
    {
        const Eigen::Map<const Vector<T>> b(static_cast<const T *>(problem->b), problem->rows);
        Eigen::Map<Vector<T>> x(static_cast<T *>(problem->y), problem->rows);
        x = cg.solve(b);
        /* Eigen does not count the iteration that reaches the tolerance. */
        const bool last = cg.info() == Eigen::Success && cg.iterations() < cg.maxIterations() && !nothing_to_do;
        problem->solved->iterations = cg.iterations() + (last ? 1 : 0);
        problem->solved->residual = static_cast<double>(cg.error());
    }
};

struct Solve {
    const peer_problem *problem;
    std::unique_ptr<Solver<double>> f64; /* one of the two */
    std::unique_ptr<Solver<float>> f32;
};

/* C = A B. Eigen multiplies sparse matrices with one thread. */
template <typename T> struct Product {
    const peer_problem *problem;
    Matrix<T> c;
};

template <typename T> int multiply_sparse(Product<T> *product)
{
    const peer_problem *p = product->problem;
    const Eigen::Map<const Matrix<T>> a(p->rows, p->cols, p->nnz, p->row_ptr, p->col, static_cast<const T *>(p->val));
    const Eigen::Map<const Matrix<T>> b(p->cols, p->right_cols, p->right_nnz, p->right_row_ptr, p->right_col,
                                        static_cast<const T *>(p->right_val));
    try {
        product->c = a * b;
        return 0;
    } catch (const std::bad_alloc &) {
        return -1;
    }
}

template <typename T> int fetch_values(const Product<T> *product)
{
    std::copy_n(product->c.valuePtr(), product->c.nonZeros(), static_cast<T *>(product->problem->y));
    return 0;
}

int open_product(const peer_problem *problem, void **state, char *why, size_t why_size)
{
    *state = problem->type == SPMV_F64 ? static_cast<void *>(new (std::nothrow) Product<double>{problem, {}})
                                       : static_cast<void *>(new (std::nothrow) Product<float>{problem, {}});
    if (*state == nullptr)
        std::snprintf(why, why_size, "no memory for Eigen's product");
    return *state != nullptr ? 0 : -1;
}

/* The first member tells the type. */
bool is_f64(const void *state)
{
    return (*static_cast<const peer_problem *const *>(state))->type == SPMV_F64;
}

int run_product(void *state)
{
    return is_f64(state) ? multiply_sparse(static_cast<Product<double> *>(state))
                         : multiply_sparse(static_cast<Product<float> *>(state));
}

int fetch_product(void *state)
{
    return is_f64(state) ? fetch_values(static_cast<Product<double> *>(state))
                         : fetch_values(static_cast<Product<float> *>(state));
}

void close_product(void *state)
{
    if (is_f64(state))
        delete static_cast<Product<double> *>(state);
    else
        delete static_cast<Product<float> *>(state);
}

int open_cg(const peer_problem *problem, void **state, char *why, size_t why_size)
{
    Eigen::setNbThreads(problem->threads);
    try {
        auto solve = std::make_unique<Solve>();
        solve->problem = problem;
        if (problem->type == SPMV_F64)
            solve->f64 = std::make_unique<Solver<double>>(problem);
        else
            solve->f32 = std::make_unique<Solver<float>>(problem);
        *state = solve.release();
        return 0;
    } catch (const std::bad_alloc &) {
        std::snprintf(why, why_size, "no memory for Eigen's solver");
        return -1;
    }
}

int run_cg(void *state)
{
    const Solve *solve = static_cast<const Solve *>(state);
    Eigen::setNbThreads(solve->problem->threads);
    try {
        if (solve->f64)
            solve->f64->solve(solve->problem);
        else
            solve->f32->solve(solve->problem);
        return 0;
    } catch (const std::bad_alloc &) {
        return -1;
    }
}

void close_cg(void *state)
{
    delete static_cast<Solve *>(state);
}

} // namespace

const peer_module *spmv_peer_module(void)
{
    static const peer peers[] = {
        {"eigen", PEER_SPMV, "Map<SparseMatrix, RowMajor, int>, OpenMP; " PEER_FLAGS, 0, open_eigen, run_eigen, nullptr,
         nullptr, nullptr},
        {"eigen-spmm", PEER_SPMM, "Map<SparseMatrix, RowMajor, int> * Map<Matrix>, OpenMP; " PEER_FLAGS, 0, open_eigen,
         run_eigen, nullptr, nullptr, nullptr},
        {"eigen-cg", PEER_CG, "ConjugateGradient, Lower|Upper, IdentityPreconditioner, RowMajor, OpenMP; " PEER_FLAGS,
         0, open_cg, run_cg, nullptr, nullptr, close_cg},
        {"eigen-spgemm", PEER_SPGEMM, "SparseMatrix * SparseMatrix, RowMajor, int, one thread; " PEER_FLAGS, 0,
         open_product, run_product, nullptr, fetch_product, close_product}};
    static const peer_module module = {PEER_ABI, "Eigen " VERSION, peers, sizeof peers / sizeof peers[0]};
    return &module;
}
