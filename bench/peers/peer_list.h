/* The list of all peer modules, also those that a build lacks.
 *
 * X(module, backend, names of its peers, operation of each (enum peer_op, in lower case), what it
 * needs)
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PEER_LIST_H
#define BENCH_PEER_LIST_H

#define PEER_MODULE_LIST(X)                                                                                            \
    X(cusparse, CUDA,                                                                                                  \
      "cusparse-csr-alg1 cusparse-csr-alg1-pre cusparse-csr-alg2 cusparse-csr-alg2-pre cusparse-coo-alg1 "             \
      "cusparse-coo-alg2 cusparse-sell cusparse-spmm-alg1 cusparse-spmm-alg1-columns cusparse-spmm-alg2 "              \
      "cusparse-spmm-alg3 cusparse-sddmm",                                                                             \
      "spmv spmv spmv spmv spmv spmv spmv spmm spmm spmm spmm sddmm",                                                  \
      "the CUDA Toolkit, 12.4 or later, with cuSPARSE")                                                                \
    X(cusparse_op, CUDA, "cusparse-op-alg1 cusparse-op-alg2", "spmv spmv",                                             \
      "cuSPARSE 12.9.4 or a later one with cusparseSpMVOp (docs/benchmarking.md)")                                     \
    X(cusparse_spgemm, CUDA, "cusparse-spgemm-alg1 cusparse-spgemm-alg2 cusparse-spgemm-alg3 cusparse-spgemm-reuse",   \
      "spgemm spgemm spgemm spgemm-numeric", "the CUDA Toolkit, 12.4 or later, with cuSPARSE")                         \
    X(cusparse_cg, CUDA, "cusparse-cg-host cusparse-cg-graph", "cg cg",                                                \
      "the CUDA Toolkit, 12.4 or later, with cuSPARSE and cuBLAS")                                                     \
    X(cublas, CUDA, "cublas-dot-alg1 cublas-dot-alg2", "spmv-dot spmv-dot",                                            \
      "the CUDA Toolkit, 12.4 or later, with cuSPARSE and cuBLAS")                                                     \
    X(cub, CUDA, "cub-scan cub-scan-by-key cub-reduce cub-segmented-reduce cub-select cub-radix-sort cub-histogram",   \
      "scan segscan reduce segreduce compact sort histogram", "the CUDA Toolkit")                                      \
    X(probe, CUDA, "probe-gather", "spmv", "the CUDA Toolkit")                                                         \
    X(loops, OMP, "loops-static loops-guided loops-merge", "spmv spmv spmv", "OpenMP")                                 \
    X(eigen, OMP, "eigen eigen-spmm eigen-cg eigen-spgemm", "spmv spmm cg spgemm",                                     \
      "Eigen 3.4 (Debian: libeigen3-dev)")                                                                             \
    X(librsb, OMP, "librsb librsb-spmm", "spmv spmm", "librsb (Debian: librsb-dev)")                                   \
    X(mkl, OMP, "mkl mkl-spmm", "spmv spmm", "Intel oneMKL (PyPI: mkl), its lib folder in LD_LIBRARY_PATH")            \
    X(graphblas, OMP, "graphblas graphblas-spgemm", "spmv spgemm", "SuiteSparse:GraphBLAS (Debian: libgraphblas-dev)") \
    X(tbb, OMP, "tbb-scan tbb-reduce tbb-sort", "scan reduce sort", "oneTBB with libstdc++ (Debian: libtbb-dev)")      \
    X(petsc, OMP, "petsc petsc-cg petsc-gamg-cg", "spmv cg cg-precond", "PETSc with MPI (Debian: petsc-dev)")          \
    X(hypre, OMP, "hypre-cg hypre-amg-cg", "cg cg-precond", "hypre with MPI (Debian: libhypre-dev)")

#endif
