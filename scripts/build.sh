# Configures and builds, the same way for every script that sources this file. Sets root and jobs;
# defines build_tree FOLDER TARGET OPTION..., build_architecture and wheel_architectures NVCC.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=${JOBS:-$(nproc)}

# build_tree FOLDER TARGET OPTION...: configures the tree in FOLDER and builds TARGET
build_tree() {
    local folder=$1 target=$2
    shift 2
    # A folder configured for another tree (a copied checkout) cannot be used.
    if [ -e "$folder/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
        rm -rf "$folder"
    fi
    cmake -S "$root" -B "$folder" -G Ninja "$@" </dev/null && cmake --build "$folder" --target "$target" -j "$jobs" </dev/null
}

# The architecture for which tests compile CUDA code: that of this machine, or 9.0 without a GPU.
# The library itself is built for more (cmake/SpmvCuda.cmake); check.sh release compiles them all.
# test.sh takes only PTX of 9.0 (90-virtual) then.
build_architecture() {
    if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then echo native; else echo 90-real; fi
}

# wheel_architectures NVCC: those of the wheel with CUDA; empty for an nvcc that does not know them.
wheel_architectures() {
    local release
    release=$("$1" --version | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 0\2/p')
    # shellcheck disable=SC2086 # two numbers
    set -- $release
    # A100, H100 and H200, B200, RTX 50, and PTX for later ones; 8.6 and 8.9 run the code for 8.0
    if [ "$1${2: -2}" -ge 1208 ]; then echo "80-real;90-real;100-real;120-real;120-virtual"; fi
}
