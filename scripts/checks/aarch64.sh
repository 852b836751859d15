#!/bin/bash
# Builds for aarch64 with Debian's cross compilers, runs the tests of the CPU under emulation (qemu-user), and
# compares the bits of products, solves and primitives with those of this machine.
#
# usage: aarch64.sh [FOLDER]     the build; default: build/aarch64
#
# The libraries come from the packages of this machine's distribution, for aarch64, and are unpacked into
# FOLDER/root: nothing of them is installed. Programs that tests start by themselves need the kernel to know the
# emulator (binfmt_misc, as root); without it those tests are left out, and that is told. Ranks under mpirun
# and the GPU are left out.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../packages.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../build.sh"
folder=$(mkdir -p "${1:-$root/build/aarch64}" && cd "${1:-$root/build/aarch64}" && pwd)
sysroot=$folder/root

packages_install build tests cross

unpack_libraries() {
    local apt=$folder/apt package
    local options=(-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$apt" -o Dir::State::status="$apt/status"
        -o Dir::Cache="$apt" -o APT::Install-Recommends=false -o Debug::NoLocking=1)
    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    : >"$apt/status"
    if ! { apt-get "${options[@]}" update && apt-get "${options[@]}" install -y --download-only libc6-dev libgomp1 \
        libstdc++-12-dev libcmocka-dev liblpsolve55-dev libjansson-dev libarchive-dev zlib1g-dev; } >"$folder/apt.log" 2>&1; then
        tail -n 5 "$folder/apt.log" >&2
        return 1
    fi
    for package in "$apt"/archives/*.deb; do dpkg -x "$package" "$sysroot"; done
    # what a script of these packages does when they are installed
    (cd "$sysroot/usr/lib/aarch64-linux-gnu" && ln -sf blas/libblas.so.3 lapack/liblapack.so.3 .)
    rm -rf "$apt"
    touch "$sysroot/complete"
}
[ -e "$sysroot/complete" ] || unpack_libraries

cat >"$folder/toolchain.cmake" <<TOOLCHAIN
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT "$sysroot")
set(CMAKE_FIND_ROOT_PATH "$sysroot")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "$sysroot")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "$sysroot")
set(ENV{PKG_CONFIG_LIBDIR} "$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig:$sysroot/usr/share/pkgconfig")
TOOLCHAIN
options=(-DCMAKE_BUILD_TYPE=Release -DSPMV_WERROR=ON -DSPMV_CUDA=OFF -DSPMV_EMULATED_GPU=OFF -DSPMV_MPI=OFF -DBUILD_TESTING=ON)
build_tree "$folder" all -DCMAKE_TOOLCHAIN_FILE="$folder/toolchain.cmake" -DSPMV_PEER_FLAGS=-O3 -DSPMV_TEST_TIMEOUT=3600 \
    "${options[@]}"
build_tree "$folder/here" bits "${options[@]}"

# What the program compiles for an exercise, it loads.
mkdir -p "$folder/bin"
printf '#!/bin/sh\nexec aarch64-linux-gnu-gcc --sysroot="%s" "$@"\n' "$sysroot" >"$folder/bin/cc"
printf '#!/bin/sh\nexec aarch64-linux-gnu-g++ --sysroot="%s" "$@"\n' "$sysroot" >"$folder/bin/c++"
chmod +x "$folder/bin/cc" "$folder/bin/c++"

# The emulator of the kernel starts programs as if they were of this machine.
# test_mtx_read asks for the peak memory of the process, which is that of the emulator.
export QEMU_LD_PREFIX=$sysroot
if "$folder/app/spmv" --version >/dev/null 2>&1; then
    tests=(-E '^test_mtx_read$')
else
    echo "aarch64.sh: the kernel does not start programs for aarch64: only programs that ctest starts are tested"
    tests=(-L quick -E '^(test_mtx_read|test_trust|test_solve|test_reports|ranks_files.*)$')
fi
PATH=$folder/bin:$PATH OMP_WAIT_POLICY=passive ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$jobs" -LE 'install|scripts' "${tests[@]}" </dev/null

# Of omp; ref adds in long double, which has other digits there (docs/repeatable.md).
status=0
for group in maps moves compacts pairs sorts products solves multiplies; do
    "$folder/here/tests/bits" omp --group "$group" >"$folder/bits.here"
    qemu-aarch64 -L "$sysroot" "$folder/tests/bits" omp --group "$group" >"$folder/bits.there"
    differ=$(comm -23 <(sort "$folder/bits.here") <(sort "$folder/bits.there") | wc -l)
    echo "aarch64.sh: bits of $group: $(wc -l <"$folder/bits.here") cases, $differ differ"
    [ "$differ" -eq 0 ] || status=1
done
exit $status
