/* Solves a system (precond_system.h) with Eigen's ConjugateGradient and IncompleteCholesky, ordered
 * by approximate minimum degree, its default. Prints one line.
 *
 * usage: precond_with_eigen FILE THREADS MOST_ITERATIONS
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <Eigen/IterativeLinearSolvers>
#include <Eigen/SparseCore>

#include "bench/programs/precond_system.h"
#include "core/clock.h"

int main(int argc, char **argv)
{
    using Matrix = Eigen::SparseMatrix<double, Eigen::RowMajor, std::int32_t>;
    using Vector = Eigen::VectorXd;
    /* IncompleteCholesky reads the lower triangle; with both, products use threads. */
    using Solver =
        Eigen::ConjugateGradient<Matrix, Eigen::Lower | Eigen::Upper,
                                 Eigen::IncompleteCholesky<double, Eigen::Lower, Eigen::AMDOrdering<std::int32_t>>>;
    struct precond_system s = {};
    if (argc != 4 || precond_system_read(argv[1], &s) != 0)
        return 1;
    Eigen::setNbThreads(std::atoi(argv[2]));
    const Eigen::Map<const Matrix> a(s.rows, s.rows, s.nnz, s.row_ptr, s.col, s.val);
    const Eigen::Map<const Vector> b(s.b, s.rows);
    struct precond_times times = {};
    for (;;) {
        const double used = processor_seconds();
        const double begin = monotonic_seconds();
        Solver solver;
        solver.setTolerance(1e-8);
        solver.setMaxIterations(std::atoi(argv[3]));
        solver.compute(a);
        const double made = monotonic_seconds();
        const Vector x = solver.solve(b);
        const double end = monotonic_seconds();
        if (!precond_times_add(&times, made - begin, end - made, processor_seconds() - used)) {
            precond_system_print(&s, x.data(), solver.iterations(), &times);
            return 0;
        }
    }
}
