#!/bin/bash
# Builds and tests from scratch: installs missing packages, builds with warnings as errors, runs all
# tests. Ends with the summary and the exit status of ctest. JOBS=N sets the number of parallel
# compilers and tests; SPMV_CUDA=OFF builds without the CUDA backend, and without the tests of its
# kernels on an emulated GPU (SPMV_EMULATED_GPU=ON: with them). CUDA code is compiled for one
# architecture (build.sh); check.sh release compiles it for all.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/packages.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/build.sh"

packages_install build tests
packages_gpu_hint
# Without a GPU no device code runs: nvcc compiles it to PTX, hardly optimises it and makes no machine
# code, which takes most of its time.
architecture=$(build_architecture) quick=OFF
if [ "$architecture" != native ]; then architecture=90-virtual quick=ON; fi
build_tree "$root/build/test" all -DCMAKE_BUILD_TYPE=Release -DSPMV_WERROR=ON -DSPMV_CUDA="${SPMV_CUDA:-AUTO}" -DBUILD_TESTING=ON \
    -DCMAKE_CUDA_ARCHITECTURES="$architecture" -DSPMV_QUICK_NVCC="$quick" \
    -DSPMV_EMULATED_GPU="${SPMV_EMULATED_GPU:-AUTO}"
# Parallel tests must not spin while they wait for a core. Three tests more than cores, because some
# wait for other programs, such as mpirun, most of their time.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
ctest --test-dir "$root/build/test" --output-on-failure --no-tests=error -j $((jobs + 3)) </dev/null
