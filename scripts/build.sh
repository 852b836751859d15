# Configuring and building, the same way for every script. Sourced: sets root and jobs; build_tree FOLDER TARGET OPTION...;
# build_architecture
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=${JOBS:-$(nproc)}

# build_tree FOLDER TARGET OPTION...: configures the tree in FOLDER and builds TARGET
build_tree() {
    local folder=$1 target=$2
    shift 2
    # A folder that was configured for a tree elsewhere (a copied checkout) cannot be used again.
    if [ -e "$folder/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
        rm -rf "$folder"
    fi
    cmake -S "$root" -B "$folder" -G Ninja "$@" </dev/null && cmake --build "$folder" --target "$target" -j "$jobs" </dev/null
}

# The one architecture that tests compile CUDA code for: this machine's, and 9.0 where there is no GPU. The library itself
# is built for more (cmake/SpmvCuda.cmake); check.sh release compiles them all.
build_architecture() {
    if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then echo native; else echo 90-real; fi
}
