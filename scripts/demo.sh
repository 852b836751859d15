#!/bin/bash
# A demonstration from scratch: installs missing packages, builds the program and the library,
# multiplies a matrix of data/ by a vector, shows the result and its check, and does the same with a
# million rows. At the end it prints where the program is.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/packages.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/build.sh"

packages_install build
packages_gpu_hint
build_tree "$root/build/demo" spmv_installed -DCMAKE_BUILD_TYPE=Release -DSPMV_CUDA="${SPMV_CUDA:-GPU}" -DBUILD_TESTING=OFF
program=$root/build/demo/app/spmv
cd "$root"

show() {
    echo
    echo "\$ spmv $*"
}

matrix=data/lecture3x3.mtx x=data/lecture3x3_x.txt y=build/demo/y.txt
show "$matrix" "$x"
"$program" "$matrix" "$x" </dev/null

show matvec poisson2d:1000 -o "$y"
"$program" matvec poisson2d:1000 -o "$y" </dev/null
echo "$(wc -l <"$y") values in $y; the first three: $(head -n 3 "$y" | tr '\n' ' ')"

echo
echo "The program is $program"
lacks=$(sed -n 's/^SPMV_CUDA_LACKS:INTERNAL=//p' build/demo/CMakeCache.txt)
[ -z "$lacks" ] || echo "It is for the CPU, because $lacks was not found. With CUDA: SPMV_CUDA=ON scripts/demo.sh"
echo "To install it with the library, the man page and the documents:"
echo "    cmake --install $root/build/demo --prefix FOLDER    (default: /usr/local)"
