#!/bin/bash
# Everything from nothing: installs what is missing, builds with warnings as errors, runs all tests. Ends with the closing
# lines of ctest; the exit status is its own. JOBS=N sets how many compilers and tests run at once; SPMV_CUDA=OFF leaves
# the CUDA backend out where it could be built. CUDA code is compiled for one architecture (build.sh); check.sh release
# compiles it for all.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/packages.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/build.sh"

packages_install build tests
packages_gpu_hint
build_tree "$root/build/test" all -DCMAKE_BUILD_TYPE=Release -DSPMV_WERROR=ON -DSPMV_CUDA="${SPMV_CUDA:-AUTO}" -DBUILD_TESTING=ON \
    -DCMAKE_CUDA_ARCHITECTURES="$(build_architecture)"
# Tests that run side by side must not spin while they wait for a core.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
ctest --test-dir "$root/build/test" --output-on-failure --no-tests=error -j "$jobs" </dev/null
