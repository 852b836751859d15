/* Solves one system by Eigen, for scripts/tables/general_table.py: BiCGSTAB or GMRES(50) with
 * IncompleteLUT and Eigen's defaults, to 1e-8.
 *
 * usage: eigen_system bicgstab|gmres SYSTEM X
 *   SYSTEM  rows, nonzeros, whether complex (64-bit integers); row offsets and columns (32-bit
 *           integers); values; b
 *   X       receives x
 * Prints status, iterations and seconds of processor time as JSON. If the true residual is above the
 * tolerance although the solver converged, it goes on with a tenth of the tolerance, three times.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <Eigen/IterativeLinearSolvers>
#include <Eigen/SparseCore>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <unsupported/Eigen/IterativeSolvers>
#include <vector>

namespace
{

constexpr double RTOL = 1e-8;

struct outcome {
    bool converged;
    long iterations;
};

template <typename T> using Matrix = Eigen::SparseMatrix<T, Eigen::RowMajor>;
template <typename T> using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

void set_restart(...)
{
}

template <typename A, typename M> void set_restart(Eigen::GMRES<A, M> *solver)
{
    solver->set_restart(50);
}

template <typename Solver, typename T> outcome solve(const Matrix<T> &a, const Vector<T> &b, Vector<T> &x)
{
    Solver solver;
    outcome o{false, 0};
    set_restart(&solver);
    solver.compute(a);
    x.setZero(b.size());
    if (solver.info() != Eigen::Success)
        return o;
    for (int k = 0; k < 4; k++) {
        solver.setTolerance(RTOL * std::pow(0.1, k));
        x = solver.solveWithGuess(b, x).eval();
        o.iterations += solver.iterations();
        o.converged = solver.info() == Eigen::Success;
        if (!o.converged || (b - a * x).norm() <= RTOL * b.norm())
            break;
    }
    return o;
}

template <typename T> bool take(std::FILE *from, std::vector<T> &numbers, std::int64_t count)
{
    numbers.resize(static_cast<std::size_t>(count));
    return std::fread(numbers.data(), sizeof(T), numbers.size(), from) == numbers.size();
}

template <typename T>
bool run(const char *method, std::FILE *from, std::int64_t rows, std::int64_t nonzeros, const char *result)
{
    std::vector<std::int32_t> ptr, col;
    std::vector<T> val, right;
    if (!take(from, ptr, rows + 1) || !take(from, col, nonzeros) || !take(from, val, nonzeros) ||
        !take(from, right, rows))
        return false;
    const std::clock_t began = std::clock();
    const Matrix<T> a = Eigen::Map<const Matrix<T>>(rows, rows, nonzeros, ptr.data(), col.data(), val.data());
    const Vector<T> b = Eigen::Map<const Vector<T>>(right.data(), rows);
    Vector<T> x;
    const outcome o = std::strcmp(method, "gmres") == 0
                          ? solve<Eigen::GMRES<Matrix<T>, Eigen::IncompleteLUT<T>>>(a, b, x)
                          : solve<Eigen::BiCGSTAB<Matrix<T>, Eigen::IncompleteLUT<T>>>(a, b, x);
    std::printf("{\"status\": \"%s\", \"iterations\": %ld, \"seconds\": %.6f}\n", o.converged ? "done" : "stopped",
                o.iterations, static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
    std::FILE *const to = std::fopen(result, "wb");
    if (to == nullptr)
        return false;
    const bool written = std::fwrite(x.data(), sizeof(T), static_cast<std::size_t>(rows), to) == right.size();
    return std::fclose(to) == 0 && written;
}

} // namespace

int main(int argc, char **argv)
{
    std::int64_t head[3] = {0, 0, 0};
    std::FILE *const from = argc == 4 ? std::fopen(argv[2], "rb") : nullptr;
    if (from == nullptr || std::fread(head, sizeof head[0], 3, from) != 3) {
        std::fprintf(stderr, "usage: eigen_system bicgstab|gmres SYSTEM X\n");
        return 2;
    }
    const bool done = head[2] != 0 ? run<std::complex<double>>(argv[1], from, head[0], head[1], argv[3])
                                   : run<double>(argv[1], from, head[0], head[1], argv[3]);
    std::fclose(from);
    return done ? 0 : 1;
}
