# Build and run dependencies: how to test for each one, and the system package that provides it.
# Other scripts source this file: packages_install GROUP... installs what is missing;
# packages_gpu_hint prints a note if there is a GPU without a CUDA toolkit, which no script here
# installs. Run directly, it installs groups: `packages.sh peers` the libraries for benchmark peers,
# `packages.sh direct` that of the solver direct, `packages.sh python` those for building the Python
# package.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash

# group | what | Debian 12 | Ubuntu 24.04 | test whether it is installed
packages_table() {
    cat <<'TABLE'
build | C compiler            | gcc libc6-dev   | gcc libc6-dev   | packages_compiles cc c
build | C++ compiler          | g++             | g++             | packages_compiles c++ c++
build | CMake 3.24 or later   | cmake           | cmake           | packages_cmake
build | Ninja                 | ninja-build     | ninja-build     | command -v ninja
build | pkg-config            | pkg-config      | pkgconf         | command -v pkg-config
build | mmio (in lp_solve)    | liblpsolve55-dev | liblpsolve55-dev | packages_mmio
build | jansson (JSON)        | libjansson-dev  | libjansson-dev  | pkg-config --exists jansson
build | libarchive, zlib (compressed files) | libarchive-dev zlib1g-dev | libarchive-dev zlib1g-dev | pkg-config --exists 'libarchive >= 3.4' zlib
tests | cmocka                | libcmocka-dev   | libcmocka-dev   | pkg-config --exists cmocka
tests | cairo (optional: pictures) | libcairo2-dev | libcairo2-dev | pkg-config --exists 'cairo >= 1.16' cairo-png cairo-svg
tests | binutils              | binutils        | binutils        | command -v readelf
tests | Python 3            | python3         | python3         | command -v python3
tests | Open MPI (optional: ranks) | libopenmpi-dev openmpi-bin | libopenmpi-dev openmpi-bin | command -v mpicc.openmpi && command -v mpirun.openmpi
tests | MPICH (optional: ranks) | libmpich-dev mpich | libmpich-dev mpich | command -v mpicc.mpich && command -v mpirun.mpich
tests | codespell (optional: spelling) | codespell | codespell | command -v codespell
check | clang                 | clang           | clang           | command -v clang
check | clang-format          | clang-format    | clang-format    | command -v clang-format
check | Git                   | git             | git             | command -v git
check | abidiff               | abigail-tools   | abigail-tools   | command -v abidiff
peers | Eigen 3.4             | libeigen3-dev   | libeigen3-dev   | pkg-config --exists 'eigen3 >= 3.4'
peers | librsb                | librsb-dev      | librsb-dev      | pkg-config --exists 'librsb >= 1.2'
peers | SuiteSparse:GraphBLAS | libgraphblas-dev | libgraphblas-dev | packages_graphblas
peers | oneTBB                | libtbb-dev      | libtbb-dev      | pkg-config --exists 'tbb >= 2021'
peers | hypre with MPI        | libhypre-dev mpi-default-dev mpi-default-bin | libhypre-dev mpi-default-dev mpi-default-bin | packages_hypre && command -v mpiexec
peers | PETSc with MPI        | petsc-dev mpi-default-dev mpi-default-bin | petsc-dev mpi-default-dev mpi-default-bin | packages_petsc
direct | SuiteSparse (solver direct) | libsuitesparse-dev | libsuitesparse-dev | packages_klu
direct | MUMPS (optional: symmetric matrices) | libmumps-seq-dev | libmumps-seq-dev | packages_mumps
direct | OpenBLAS (optional: faster factors) | libopenblas0 | libopenblas0 | packages_openblas
python | Python headers, venv  | python3-dev python3-venv | python3-dev python3-venv | packages_python
report | matplotlib (report.py) | python3-matplotlib | python3-matplotlib | python3 -c 'import matplotlib'
report | Chromium (its test)   | chromium        | chromium-browser | command -v chromium || command -v chromium-browser
release | debhelper, dh-python | debhelper dh-python | debhelper dh-python | command -v dh && command -v dh_python3
release | lintian            | lintian         | lintian         | command -v lintian
release | debootstrap        | debootstrap     | debootstrap     | [ -x /usr/sbin/debootstrap ]
release | Python headers, NumPy | python3-dev python3-numpy | python3-dev python3-numpy | [ -x /usr/bin/python3-config ] && /usr/bin/python3 -c 'import numpy'
cross   | cross compilers    | gcc-aarch64-linux-gnu g++-aarch64-linux-gnu | gcc-aarch64-linux-gnu g++-aarch64-linux-gnu | command -v aarch64-linux-gnu-g++
cross   | emulator           | qemu-user       | qemu-user       | command -v qemu-aarch64
release | cairo              | libcairo2-dev   | libcairo2-dev   | pkg-config --exists 'cairo >= 1.16' cairo-png cairo-svg
TABLE
}

packages_compiles() {
    command -v "$1" >/dev/null && echo 'int main(void) { return 0; }' | "$1" -x "$2" -fopenmp -o /dev/null - 2>/dev/null
}

packages_cmake() {
    command -v cmake >/dev/null || return 1
    local version
    version=$(cmake --version | sed -n 's/^cmake version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    # shellcheck disable=SC2086 # two numbers
    set -- $version
    [ "$1" -gt 3 ] || { [ "$1" -eq 3 ] && [ "$2" -ge 24 ]; }
}

packages_mmio() {
    [ -n "${MMIO_ROOT-}" ] || [ -e /usr/include/mmio.h ] || [ -e /usr/local/include/mmio.h ] || [ -e /usr/include/lpsolve/mmio.h ]
}

packages_graphblas() {
    [ -e /usr/include/GraphBLAS.h ] || [ -e /usr/include/suitesparse/GraphBLAS.h ] || [ -e /usr/local/include/GraphBLAS.h ] ||
        [ -e /usr/local/include/suitesparse/GraphBLAS.h ]
}

# with any Python 3.11 or later, for example not the system's
packages_python() {
    python3 -c 'import ensurepip, os, sys, sysconfig, venv
sys.exit(sys.version_info < (3, 11) or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null
}

packages_openblas() {
    ls /usr/lib/*/openblas*/libblas.so.3 /usr/lib/*/libopenblas.so.0 >/dev/null 2>&1
}

packages_klu() {
    [ -e /usr/include/suitesparse/klu.h ] || [ -e /usr/include/klu.h ] || [ -e /usr/local/include/suitesparse/klu.h ] ||
        [ -e /usr/local/include/klu.h ]
}

packages_mumps() {
    local folder
    for folder in /usr/include /usr/local/include; do
        [ -e "$folder/dmumps_c.h" ] && { [ -e "/usr/lib/$(uname -m)-linux-gnu/libdmumps_seq.so" ] || [ -e /usr/local/lib/libdmumps_seq.so ]; } && return 0
    done
    return 1
}

packages_hypre() {
    { [ -e /usr/include/hypre/HYPRE.h ] || [ -e /usr/include/HYPRE.h ] || [ -e /usr/local/include/HYPRE.h ]; } && command -v mpicc
}

packages_petsc() {
    { pkg-config --exists 'PETSc >= 3.17' || pkg-config --exists 'petsc >= 3.17'; } && command -v mpicc && command -v mpiexec
}

packages_groups() {
    packages_table | sed 's/ *|.*//' | sort -u
}

# The column of the table: 3 for Debian, 4 for Ubuntu and its derivatives; 0 without apt.
packages_column() {
    command -v apt-get >/dev/null || { echo 0 && return; }
    local id="" like=""
    if [ -r /etc/os-release ]; then
        id=$(sed -n 's/^ID=//p' /etc/os-release | tr -d '"')
        like=$(sed -n 's/^ID_LIKE=//p' /etc/os-release | tr -d '"')
    fi
    case " $id $like " in
    *" ubuntu "*) echo 4 ;;
    *) echo 3 ;;
    esac
}

# The rows of the given groups whose test fails.
packages_missing() {
    local group what debian ubuntu check
    packages_table | while IFS='|' read -r group what debian ubuntu check; do
        case " $* " in *" ${group// /} "*) ;; *) continue ;; esac
        eval "$check" >/dev/null 2>&1 </dev/null || printf '%s|%s|%s|%s\n' "$group" "$what" "$debian" "$ubuntu"
    done
}

packages_names() {
    awk -F'|' -v column="$1" '{ print $column }' | tr -s ' ' '\n' | sed '/^$/d' | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# Runs a command as root, with sudo if needed.
packages_as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@" </dev/null
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo -n "$@" </dev/null # without a terminal, nobody can type a password
    fi
}

packages_install() {
    local missing column names
    missing=$(packages_missing "$@")
    [ -n "$missing" ] || return 0
    column=$(packages_column)
    if [ "$column" -eq 0 ]; then
        echo "This system has no apt-get. Please install:" >&2
        cut -d'|' -f2 <<<"$missing" >&2
        return 1
    fi
    names=$(packages_names "$column" <<<"$missing")
    echo "Missing: $(cut -d'|' -f2 <<<"$missing" | sed 's/^ *//; s/ *$//' | paste -sd, | sed 's/,/, /g')"
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        echo "Cannot install packages: this user is not root and there is no sudo. As root, run: apt-get install $names" >&2
        return 1
    fi
    echo "Installing with apt-get: $names"
    # The package lists may be absent or old; updating them is only worth the time if something is
    # missing.
    # shellcheck disable=SC2086 # a list of names
    if ! packages_as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update ||
        ! packages_as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get -q -y -o Dpkg::Use-Pty=0 install --no-install-recommends $names; then
        echo "apt-get could not install: $names (see above)" >&2
        return 1
    fi
    missing=$(packages_missing "$@")
    if [ -n "$missing" ]; then
        echo "Installed, but still not usable:$(cut -d'|' -f2 <<<"$missing" | tr '\n' ',')" >&2
        return 1
    fi
}

packages_gpu_hint() {
    local gpu=""
    if [ -d /proc/driver/nvidia/gpus ] || { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }; then
        gpu=yes
    elif command -v lspci >/dev/null && lspci 2>/dev/null | grep -Ei '(vga|3d|display).*nvidia' >/dev/null; then
        gpu=yes
    fi
    if [ -n "$gpu" ] && ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ] && [ -z "${CUDACXX-}" ]; then
        echo "Note: this machine has an NVIDIA GPU but no CUDA Toolkit (nvcc), so this build is for the CPU. For the GPU,"
        echo "install the package cuda-toolkit from NVIDIA's repository for this system (12.0 or later), and run this again."
    fi
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    [ $# -gt 0 ] || { echo "usage: packages.sh GROUP...; groups: $(packages_groups | paste -sd' ')" >&2 && exit 2; }
    for group in "$@"; do
        packages_groups | grep -qxF -e "$group" || { echo "packages.sh: unknown group $group; groups: $(packages_groups | paste -sd' ')" >&2 && exit 2; }
    done
    packages_install "$@"
fi
