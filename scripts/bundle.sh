#!/bin/bash
# Packs programs, tests, examples, modules of benchmark peers that need no library other than
# CUDA's, and the shared libraries missing on a plain machine, into a folder or a tarball. It runs
# from any place on another Linux with the same kind of processor, without packages. CUDA's
# libraries are not included: they come from the machine with the GPU. The bundle needs a C library
# at least as new as this machine's. Its README.txt describes its use.
#
# usage: bundle.sh [-o FILE.tar.xz | -d FOLDER] [--architectures LIST]
#
#   -o FILE.tar.xz        default: bundle/spmv-VERSION-PROCESSOR.tar.xz in this tree
#   -d FOLDER             unpacked, into a new or empty folder
#   --architectures LIST  CMake's CMAKE_CUDA_ARCHITECTURES, separated by ";" or ",": 90-real is H100
#                         and H200 only. Default: the architectures of the project
#
# JOBS=N: number of parallel compilers. SPMV_CUDA=OFF builds without the CUDA backend; ON fails
# without nvcc. SPMV_CUSPARSE_ROOT=FOLDER: another cuSPARSE than the toolkit's
# (docs/benchmarking.md).
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/packages.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/build.sh"

# Part of every Linux that can run these programs, and must be that system's own.
system_libraries='^(linux-vdso|ld-linux.*|libc|libm|libmvec|libpthread|libdl|librt|libresolv|libutil|libnsl|libanl)\.so'
cuda_libraries='^lib(cuda|cudart|cusparse|cublas|cublasLt|nvJitLink|nvrtc|nvidia-[a-z0-9-]*)\.so'
# Modules of peers in the bundle: those on a GPU, and those on the CPU without another library.
peers=(cusparse cusparse_op cusparse_spgemm cusparse_cg cublas cub probe loops eigen)
# Modules for ranks under mpirun. Their MPI library is that of the machine, whose mpirun starts the ranks.
transports=(openmpi mpich)
# Programs must run on other processors than this machine's.
peer_flags="-O3"
[ "$(uname -m)" != x86_64 ] || peer_flags="-O3 -march=x86-64-v3"
most_bytes=$((40 * 1024 * 1024))

fail() {
    echo "bundle.sh: $*" >&2
    exit 1
}

tarball="" folder="" architectures=""
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || fail "unknown option or missing value: $1; see the head of this script"
    case $1 in
    -o) tarball=$2 ;;
    -d) folder=$2 ;;
    --architectures) architectures=${2//,/;} ;;
    *) fail "unknown option $1; see the head of this script" ;;
    esac
    shift 2
done
[ -z "$tarball" ] || [ -z "$folder" ] || fail "-o and -d exclude each other"
if [ -n "$folder" ] && [ -e "$folder" ] && [ -n "$(ls -A "$folder")" ]; then fail "$folder is not empty"; fi

packages_install build tests
command -v xz >/dev/null || fail "xz is not installed (Debian, Ubuntu: xz-utils)"
build=$root/build/bundle
moving=$root/scripts/bundle/bundle.cmake
# All executables there are packed, so those of earlier runs are removed.
for earlier in "$build/bench" "$build/bench/peers" "$build/examples"; do
    [ ! -d "$earlier" ] || find "$earlier" -maxdepth 1 -type f -perm -u+x -delete
done
# -U: forget the architectures of an earlier run
build_tree "$build" all -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=ON -DSPMV_CUDA="${SPMV_CUDA:-AUTO}" \
    -DSPMV_CUSPARSE_ROOT="${SPMV_CUSPARSE_ROOT:-}" \
    -DSPMV_PEER_FLAGS="$peer_flags" -DCMAKE_PROJECT_spmv_INCLUDE="$moving" -U CMAKE_CUDA_ARCHITECTURES \
    ${architectures:+"-DCMAKE_CUDA_ARCHITECTURES=$architectures"}
# The examples are built like a reader would: with the installed shared library.
rm -rf "$build/installed"
cmake --install "$build" --prefix "$build/installed" >/dev/null
cmake -S "$root/examples" -B "$build/examples" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$build/installed" \
    -DCMAKE_PROJECT_spmv_examples_INCLUDE="$moving" -DEXAMPLES_LIBRARY=spmv::spmv </dev/null
cmake --build "$build/examples" -j "$jobs" </dev/null

version=$("$build/app/spmv" --version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1 || true)
[ -n "$version" ] || version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
name=spmv-$version-$(uname -m)
pack=$build/pack
rm -rf "$pack"
bundle=$pack/$name
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/tests"

# Programs and tests.
ctest --test-dir "$build" --show-only=json-v1 | python3 "$root/scripts/bundle/bundle_tests.py" "$root" "$build" "$bundle" >"$pack/files"
while IFS=$'\t' read -r from to; do
    mkdir -p "$(dirname "$bundle/$to")"
    cp -L "$from" "$bundle/$to"
done <"$pack/files"
cp "$root/scripts/bundle/bundle_run.sh" "$bundle/run_tests.sh"
chmod +x "$bundle/run_tests.sh"
mkdir -p "$bundle/source/scripts/checks"
cp "$root"/scripts/checks/{gates,bits,speed,registers,abi}.py "$bundle/source/scripts/checks/"
# files that tests read
for part in app/spmv.1 data docs/formats.md include primitives tests/data; do
    mkdir -p "$(dirname "$bundle/source/$part")"
    cp -r "$root/$part" "$bundle/source/$part"
done
cp "$root/LICENSE" "$root/NOTICE" "$bundle/"
find "$build/bench" "$build/examples" -maxdepth 1 -type f -perm -u+x -exec cp {} "$bundle/bin/" \;
cp "$build/app/spmv" "$bundle/bin/"
mkdir -p "$bundle/lib/spmv/peers"
for peer in "${peers[@]}"; do
    module=$build/bench/peers/spmv_peer_$peer.so
    [ ! -e "$module" ] || cp "$module" "$bundle/lib/spmv/peers/"
done
mkdir -p "$bundle/lib/spmv/modules"
for mpi in "${transports[@]}"; do
    module=$build/solvers/modules/spmv_transport_$mpi.so
    [ ! -e "$module" ] || cp "$module" "$bundle/lib/spmv/modules/"
done
while IFS= read -r example; do
    # shellcheck disable=SC2016 # for run_tests.sh
    printf 'entry %q examples 300 77 "$here"/bin/%q\n' "example.$example" "$example"
done < <(find "$build/examples" -maxdepth 1 -type f -perm -u+x -printf '%f\n' | sort) >>"$bundle/tests/list.sh"

# The libraries that the loader finds for them here, except those of the system and of CUDA.
cp -L "$build/installed/lib/"*/libspmv.so.0 "$bundle/lib/" 2>/dev/null || cp -L "$build/installed/lib/libspmv.so.0" "$bundle/lib/"
mapfile -t programs < <(find "$bundle/bin" "$bundle/tests" -type f -perm -u+x)
mapfile -t modules < <(find "$bundle/lib/spmv/peers" -type f)
libraries=$(for program in "${programs[@]}" "${modules[@]}" "$bundle/lib/libspmv.so.0"; do ldd "$program"; done |
    awk '$2 == "=>" { print $1, $3 == "not" ? "missing" : $3 }' | sort -u)
while read -r library path; do
    if [[ $library =~ $system_libraries || $library =~ $cuda_libraries || -e $bundle/lib/$library ]]; then continue; fi
    [ "$path" != missing ] || fail "library $library was not found"
    cp -L "$path" "$bundle/lib/$library"
done <<<"$libraries"
mapfile -t -O "${#modules[@]}" modules < <(find "$bundle/lib/spmv/modules" -type f)
strip --strip-unneeded "${programs[@]}" "${modules[@]}" "$bundle"/lib/*.so*

# A program that contains this tree's path must read SPMV_SOURCE_DIR first.
while IFS= read -r program; do
    grep -qF SPMV_SOURCE_DIR "$program" || fail "$(basename "$program") contains the path $root but does not read SPMV_SOURCE_DIR"
done < <(grep -lF "$root" "${programs[@]}" "${modules[@]}" || true)
glibc=$(objdump -T "${programs[@]}" "${modules[@]}" "$bundle"/lib/*.so* | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
# the requested architectures, or the project's default
cuda=$(sed -n 's/^CMAKE_CUDA_ARCHITECTURES:[A-Z]*=//p' "$build/CMakeCache.txt")

cat >"$bundle/README.txt" <<README
spmv $version for $(uname -m), $(git -C "$root" describe --always --dirty --tags 2>/dev/null || echo "unknown commit")

Runs from any folder on a Linux with ${glibc/_/ } or later. CUDA: ${cuda:-not in this build}${cuda:+ (needs an NVIDIA driver)}.

  bin/spmv --help             the program
  bin/spmv doctor             describes this machine and runs a self-test
  ./run_tests.sh              all tests; ./run_tests.sh -l lists them and their labels
  ./run_tests.sh gpu          the tests on a GPU; also gpu-sanitize, gpu-repeat, gpu-large, gpu-matrices
  SPMV_MATRICES=FOLDER ./run_tests.sh gpu-matrices
                              tests on a folder of NAME.mtx.xz and catalog.csv
  source/scripts/checks/bits.py OLD NEW --backends cuda
  source/scripts/checks/speed.py OLD NEW --backend cuda
                              compare two unpacked bundles: results bit by bit, and speed
  bin/spmv bench A...         measures also other libraries: the modules in lib/spmv/peers.
                              cuSPARSE is part of the CUDA Toolkit; if it is not in
                              /usr/local/cuda, put its folder in LD_LIBRARY_PATH
  mpirun -n 2 bin/spmv solve A.mtx
                              ranks, with the Open MPI or MPICH of this machine

Tests are skipped with a message if they need something that is missing: a GPU, compute-sanitizer of
the CUDA Toolkit (tests labelled gpu-sanitize), or Python 3.8 or later.
README

unpacked=$(du -sm "$bundle" | cut -f1)
if [ -n "$folder" ]; then
    mkdir -p "$folder"
    cp -a "$bundle/." "$folder/"
    echo "$folder: $unpacked MiB, ${#programs[@]} programs, needs ${glibc/_/ }"
else
    tarball=${tarball:-$root/bundle/$name.tar.xz}
    mkdir -p "$(dirname "$tarball")"
    # Each test contains a copy of the library; a large dictionary compresses all copies together.
    tar -C "$pack" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$name" | xz --lzma2=preset=6,dict=256MiB >"$tarball"
    bytes=$(stat -c %s "$tarball")
    echo "$tarball: $((bytes / 1024)) KiB packed, $unpacked MiB unpacked, ${#programs[@]} programs, needs ${glibc/_/ }"
    [ "$bytes" -lt "$most_bytes" ] || fail "more than $((most_bytes / 1024 / 1024)) MiB"
fi
