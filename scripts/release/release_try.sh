#!/bin/bash
# Tries the files of a release: the wheels, the Debian packages and the source tarball, each without
# the others. release.sh runs it in a bare Debian 12, with the files in /home/files.
#
# usage: release_try.sh VERSION
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
files=/home/files
version=${1-}
if [ -z "$version" ] || [ ! -d "$files" ]; then
    echo "release_try.sh: there is no version or no $files; release.sh starts this script" >&2
    exit 1
fi
work=$(mktemp -d)
cd "$work"
chmod 755 "$work" # apt reads packages as another user
export DEBIAN_FRONTEND=noninteractive OMP_WAIT_POLICY=passive

fail() {
    echo "release_try.sh: $*" >&2
    exit 1
}

install_packages() {
    apt-get -qq -o Dpkg::Use-Pty=0 install --no-install-recommends "$@" >"$work/apt.log" 2>&1 </dev/null ||
        { tail -n 20 "$work/apt.log" && fail "apt-get could not install $*"; }
}

# try_program SPMV: writes a small matrix, multiplies by ones, and solves for them
try_program() {
    local program=$1
    "$program" --version | grep -F "spmv $version" >/dev/null || fail "$program is not of version $version"
    "$program" gen poisson2d:40 -q -o A.mtx
    # the sum of the row sums: 1 for each of the 4 x 40 neighbours outside the grid
    "$program" A.mtx -q --verify=bitwise -o b.txt
    [ "$(awk '{ sum += $1 } END { print sum }' b.txt)" = 160 ] || fail "wrong product"
    "$program" solve A.mtx b.txt -q -o x.txt
    awk '{ if ($1 - 1 > 1e-6 || 1 - $1 > 1e-6) wrong++ } END { exit wrong > 0 || NR != 1600 }' x.txt || fail "wrong solution"
    rm A.mtx b.txt x.txt
}

# try_python PYTHON: a product and a solve, and the version
try_python() {
    (cd / && "$1" - "$version") <<'PYTHON'
import sys
import numpy as np
import spmv

data, indices, indptr = np.array([2.0, 1, 1, 3, 4]), np.array([0, 1, 0, 1, 2]), np.array([0, 2, 4, 5])
plan = spmv.Plan((data, indices, indptr), shape=(3, 3))
assert np.array_equal(plan @ np.array([1.0, 2, 3]), [4, 7, 12])
x, info = spmv.cg(plan, np.array([4.0, 7, 12]), rtol=1e-12)
assert info == 0 and np.allclose(x, [1, 2, 3], rtol=1e-9, atol=0)
assert spmv.__version__ == sys.argv[1], spmv.__version__
PYTHON
}

# try_wheel FILE: in a new environment, with NumPy of this system
try_wheel() {
    local name=${1##*/}
    name=${name%%-*}
    rm -rf venv
    python3 -m venv --system-site-packages venv
    venv/bin/pip install -q --no-index --find-links "$files" "$name==$version"
    try_python "$work/venv/bin/python"
    # where there is no GPU, a wheel with CUDA must say so, and use the CPU
    venv/bin/python - "$name" <<'PYTHON'
import sys
import spmv

assert spmv.cuda_built() == (sys.argv[1] != "spmv"), sys.argv[1]
try:
    print(sys.argv[1], "on", spmv.Context("cuda"))
except RuntimeError as error:
    print(f"{sys.argv[1]}: {error}")
PYTHON
}

try_wheels() {
    install_packages python3-venv python3-numpy
    for program in cc gcc c++ clang nvcc; do
        if command -v $program >/dev/null; then fail "there is a compiler: $program"; fi
    done
    for wheel in "$@"; do try_wheel "$wheel"; done
    # both at once: a warning
    venv/bin/pip install -q --no-index --find-links "$files" --no-deps "$@"
    if [ $# -gt 1 ]; then
        venv/bin/python -c 'import spmv' 2>&1 | grep -F 'pip uninstall spmv spmv-cu' >/dev/null || fail "no warning of two packages"
    fi
    # the Debian packages must bring what they need
    apt-get -qq purge --autoremove python3-venv python3-numpy >/dev/null </dev/null
}

try_debs() {
    install_packages "$@"
    try_program spmv
    [ -s /usr/share/man/man1/spmv.1.gz ] || fail "no man page"
    bash -c '. /usr/share/bash-completion/completions/spmv && complete -p spmv' >/dev/null || fail "no completion"
    try_python /usr/bin/python3
    # the module for LU factors, which the program and the library find in the folder of libspmv0
    spmv solve convdiff2d:40,5 --solver direct -q >/dev/null || fail "the program has no solver direct"
    /usr/bin/python3 - <<'PYTHON' || fail "python3-spmv has no solver direct"
import numpy as np
import spmv

assert spmv.solve(spmv.generate("convdiff2d:40,5"), np.ones(1600), method="direct").converged
PYTHON
    install_packages gcc libc6-dev pkg-config
    # shellcheck disable=SC2046 # a list of options
    cc /usr/share/doc/libspmv-dev/examples/linear_system.c $(pkg-config --cflags --libs spmv) -lm -o linear_system
    ./linear_system 50 >/dev/null
    apt-get -qq purge spmv libspmv0 libspmv-dev python3-spmv >/dev/null </dev/null
    left=$(find / -xdev -path /home -prune -o -path "$work" -prune -o -path /proc -prune -o -name '*spmv*' -print)
    [ -z "$left" ] || fail "files are left after purge: $left"
}

try_tarball() {
    install_packages xz-utils
    tar -xf "$1"
    bash "spmv-$version/scripts/packages.sh" build >"$work/apt.log" 2>&1 </dev/null || { tail -n 20 "$work/apt.log" && fail "packages.sh"; }
    {
        cmake -S "spmv-$version" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF
        cmake --build build --target spmv_installed ${JOBS:+-j "$JOBS"}
        cmake --install build --prefix "$work/installed"
    } >"$work/build.log" 2>&1 </dev/null || { tail -n 40 "$work/build.log" && fail "the tarball does not build"; }
    try_program "$work/installed/bin/spmv"
}

# try_files WHAT FUNCTION FILE...: calls the function with the files; a step that was not run made none
try_files() {
    echo "-- $1"
    if [ -e "$3" ]; then "${@:2}"; else echo "there are none"; fi
}

apt-get -qq update </dev/null
try_files wheels try_wheels "$files"/spmv*-"$version"-*.whl
try_files "Debian packages" try_debs "$files"/*.deb
try_files "source tarball" try_tarball "$files/spmv-$version.tar.xz"
echo "release_try.sh: these files of $version work"
