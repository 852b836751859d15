#!/bin/bash
# Checks of what cmake --install installs. usage: install_checks.sh CHECK
#
#   prefix     installs into WORK/first and moves it to WORK/prefix for the other checks
#   headers    each public header compiles alone, as C and as C++, without a warning
#   symbols    both libraries export only spmv_*; the SONAME
#   examples   builds examples/ outside the tree in four ways (pkg-config, find_package; shared,
#              static), runs them and checks the output
#   device     spmv/device.cuh compiles alone with nvcc, also after macros with common names; builds
#              examples/device outside the tree and runs it if there is a GPU
#   documents  the documents of README and the scripts are installed; the scripts find their data
#              and the program
#   program    the installed program runs without libspmv.so; the man page is installed if the
#              source has one
#
# The environment (see tests/install/CMakeLists.txt) has BUILD, SOURCE, WORK (a folder for this
# test), LIBDIR, INCLUDEDIR, DATADIR, DOCDIR (relative), CC, CXX, NM, READELF, CMAKE, C_FLAGS (the
# sanitizer of the libraries), LINKER (an option that chooses it, or empty), and CUDA_INCLUDE,
# CUDA_LIBDIR, NVCC (empty without CUDA) and NVCC_QUICK (its option that hardly optimises, or empty).
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail

prefix=$WORK/prefix
lib=$prefix/$LIBDIR
include=$prefix/$INCLUDEDIR
# shellcheck disable=SC2153 # from the environment
read -ra c_flags <<<"$C_FLAGS"
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

fail() {
    echo "install: $*" >&2
    exit 1
}

check_prefix() {
    rm -rf "$WORK"
    mkdir -p "$WORK"
    "$CMAKE" --install "$BUILD" --prefix "$WORK/first" >"$WORK/install.log"
    mv "$WORK/first" "$prefix"
    local file
    for file in "$lib/libspmv.so" "$lib/libspmv.a" "$lib/pkgconfig/spmv.pc" "$lib/cmake/spmv/spmvConfig.cmake" \
        "$lib/cmake/spmv/spmvConfigVersion.cmake" "$include/spmv/spmv.h"; do
        [ -e "$file" ] || fail "$file was not installed"
    done
    local stray
    stray=$(grep -rlF -e "$BUILD" -e "$SOURCE" -e "$WORK/first" "$lib/cmake" "$lib/pkgconfig" || true)
    [ -z "$stray" ] || fail "these files contain paths of the build or of the first prefix: $stray"
}

check_headers() {
    local header count=0
    for header in "$include"/spmv/*.h; do
        echo "#include <spmv/$(basename "$header")>" >"$WORK/header.c"
        cp "$WORK/header.c" "$WORK/header.cpp"
        "$CC" -std=c11 -Wall -Wextra -pedantic -Werror -I"$include" -fsyntax-only "$WORK/header.c" ||
            fail "$header does not compile alone as C"
        "$CXX" -std=c++11 -Wall -Wextra -pedantic -Werror -I"$include" -fsyntax-only "$WORK/header.cpp" ||
            fail "$header does not compile alone as C++"
        count=$((count + 1))
    done
    # members by their old names, also in C++20
    printf '#include <spmv/spmv.h>\nspmv_solver_options solver = {.method = "cg"};\nspmv_cg_options cg = {.method = "textbook"};\n' >"$WORK/header.c"
    cp "$WORK/header.c" "$WORK/header.cpp"
    "$CC" -std=c11 -I"$include" -fsyntax-only "$WORK/header.c" || fail "the old names of members do not compile as C"
    "$CXX" -std=c++20 -I"$include" -fsyntax-only "$WORK/header.cpp" || fail "the old names of members do not compile as C++"
    [ "$count" -ge 7 ] || fail "only $count headers installed"
    echo "$count headers, each alone, as C and as C++"
}

# The list on standard input must contain only spmv_*, and the function $2, which every version has.
only_ours() {
    local symbols strangers
    symbols=$(cat)
    grep -qx "$2" <<<"$symbols" || fail "$1 does not export $2"
    strangers=$(grep -v '^spmv_' <<<"$symbols" || true)
    [ -z "$strangers" ] || fail "$1 exports symbols other than spmv_*:"$'\n'"$strangers"
    echo "$1: $(wc -l <<<"$symbols") symbols, all spmv_*"
}

check_symbols() {
    "$NM" -D --defined-only --format=posix "$lib/libspmv.so" | awk '{ print $1 }' | only_ours libspmv.so spmv_apply
    "$NM" -g --defined-only --format=posix "$lib/libspmv.a" | awk 'NF > 1 { print $1 }' | only_ours libspmv.a spmv_apply
    # both libraries export the same functions
    diff <("$NM" -D --defined-only --format=posix "$lib/libspmv.so" | awk '{ print $1 }' | sort) \
        <("$NM" -g --defined-only --format=posix "$lib/libspmv.a" | awk 'NF > 1 { print $1 }' | sort) ||
        fail "libspmv.so and libspmv.a export different functions"
    "$READELF" -d "$lib/libspmv.so" | grep -q 'SONAME.*\[libspmv\.so\.0\]' || fail "the SONAME is not libspmv.so.0"
    "$READELF" -d "$lib/libspmv.so" | grep -E 'NEEDED.*(cuda|cublas|cusparse|lpsolve)' && fail "libspmv.so needs the libraries above"
    # a library with static TLS cannot be opened with dlopen beside the CUDA runtime
    "$READELF" -d "$lib/libspmv.so" | grep -q 'FLAGS.*STATIC_TLS' && fail "libspmv.so uses static TLS"
    # every declared function is exported
    local name exported missing=""
    exported=$("$NM" -D --defined-only --format=posix "$lib/libspmv.so" | awk '{ print $1 }')
    for name in $(cat "$include"/spmv/*.h | tr '\n' ' ' | grep -oE 'SPMV_API [^;(]*\(' | grep -oE 'spmv_[a-z0-9_]+ *\(' |
        tr -d '( ' | sort -u); do
        grep -qx "$name" <<<"$exported" || missing="$missing $name"
    done
    [ -z "$missing" ] || fail "declared in a header but not exported by libspmv.so:$missing"
}

examples=(own_arrays repeat linear_system repeated_solves least_squares)
[ -z "$CUDA_INCLUDE" ] || examples+=(graph)

# run_examples WAY KIND FOLDER: runs the examples there, checks their output and how they are linked
run_examples() {
    local way=$1 kind=$2 folder=$3 example status
    for example in "${examples[@]}"; do
        status=0
        "$folder/$example" >"$folder/$example.out" || status=$?
        if [ "$example" = graph ] && [ $status = 77 ]; then
            grep -q '^skipped: ' "$folder/graph.out" || fail "graph ($way, $kind) prints no reason for its skip"
            echo "graph ($way, $kind): $(cat "$folder/graph.out")"
        elif [ $status != 0 ]; then
            fail "$example ($way, $kind) failed: $(cat "$folder/$example.out")"
        elif [ "$example" != own_arrays ]; then
            grep -q 'verified$' "$folder/$example.out" || fail "$example ($way, $kind): not verified"
        fi
        if "$READELF" -d "$folder/$example" | grep -q 'NEEDED.*libspmv\.so\.0'; then
            [ "$kind" = shared ] || fail "$example ($way, $kind) needs libspmv.so"
        else
            [ "$kind" = static ] || fail "$example ($way, $kind) is not linked with libspmv.so"
        fi
    done
    grep -qx 'y\[2\] = 19' "$folder/own_arrays.out" || fail "own_arrays ($way, $kind): wrong y"
    grep -q 'as computed by hand$' "$folder/own_arrays.out" || fail "own_arrays ($way, $kind): not checked"
    echo "$way, $kind: ${examples[*]}"
}

check_examples() {
    local outside=$WORK/outside kind folder example flags cuda
    rm -rf "$outside"
    mkdir -p "$outside"
    cp -r "$SOURCE/examples" "$outside/examples"
    for kind in shared static; do
        folder=$outside/pkg-config-$kind
        mkdir -p "$folder"
        if [ $kind = shared ]; then
            flags=$(pkg-config --cflags --libs spmv)
        else
            flags="$(pkg-config --cflags spmv) $(pkg-config --static --libs spmv | sed s/-lspmv/-l:libspmv.a/)"
        fi
        for example in "${examples[@]}"; do
            cuda=()
            [ "$example" != graph ] || cuda=(-isystem "$CUDA_INCLUDE" -L"$CUDA_LIBDIR" -lcudart_static -ldl -lrt -lpthread)
            # shellcheck disable=SC2086 # a list of flags
            "$CC" "${c_flags[@]}" $LINKER -std=c11 -Wall -Wextra -Wpedantic -Werror "$outside/examples/$example.c" $flags "${cuda[@]}" -lm \
                -o "$folder/$example"
        done
        run_examples pkg-config $kind "$folder"

        folder=$outside/find_package-$kind
        "$CMAKE" -S "$outside/examples" -B "$folder" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$CC" \
            -DCMAKE_C_FLAGS="$C_FLAGS" -DCMAKE_EXE_LINKER_FLAGS="$LINKER" -DEXAMPLES_LIBRARY="spmv::spmv$([ $kind = shared ] || echo _static)" \
            >"$folder.log" 2>&1 || fail "find_package ($kind): $(cat "$folder.log")"
        "$CMAKE" --build "$folder" >>"$folder.log" 2>&1 || fail "find_package ($kind): $(cat "$folder.log")"
        run_examples find_package $kind "$folder"
    done
}

# Names that macros of a program may have. spmv/device.cuh and its rungs must not use them.
hostile_names=(
    APART BLOCKS BLOCK_CUH BLOCK_WARPS CASE CELLS CHUNKS COMMUTES_ COMPACT_2_COUNT_WRITE_CUH
    COMPACT_2_SCRATCH_ELEMENTS COMPACT_STEPS COUNT COUNTED CUDA_CHUNKS CUDA_LOOKBACK_BYTES D
    DEVICE_CONTEXT_CUH DEVICE_RUNGS_CUH E EACH ENGINE_BELOW ENGINE_FROM FILTER_CUH
    FILTER_DEFINE_ GRID_CAP HAVE_COPY_ENGINE HAVE_KERNELS HOST_DEVICE_CUH ITEMS LAUNCH_CUH
    LEFT_EMPTY LOOKBACK_AGGREGATE LOOKBACK_BYTES LOOKBACK_CUH LOOKBACK_DEPTH LOOKBACK_EMPTY
    LOOKBACK_HEADER LOOKBACK_PREFIX LOOKBACK_WINDOWS LOOKS_AT_ELEMENTS MAP_1_PACKS_CUH
    MOST_TILES N OPS_CUH OPS_DEFINE_ PACKED PACKS_EACH PAUSE_NS REDUCE_6_PACKS_CUH
    REDUCE_6_SCRATCH_ELEMENTS REDUCE_HEADER RUN_OF_TICKETS SCAN_5_LOOKBACK_CUH SEGMENTS_CUH
    SEGREDUCE_1_WALK_CUH SEGSCAN_3_CHUNKS_CUH SEGSCAN_5_LOOKBACK_CUH SHARED_BYTES SIZE T THREADS
    THREADS_ TILES_CUH V VECTORS W WARP WARPS WARPS_ WINDOWS WORDS
)

# Prints the names in capitals that the installed rungs use. Allowed are those of the toolkit and of
# spmv, and parameters of macros, which macros of a program do not affect.
device_names() {
    local header
    for header in "$include"/spmv/device.cuh "$include"/spmv/device/*.cuh; do
        "$CXX" -fpreprocessed -dD -E -P -x c++ -w "$header"
    done | sed -e ':join' -e '/\\$/N; s/\\\n//; t join' -e 's|"[^"]*"||g' | grep -vE '^ *# *define' |
        grep -oE '\b[A-Z][A-Z0-9_]*\b' | sort -u | grep -vxE 'SPMV_[A-Z0-9_]*|NULL' || true
}

check_device() {
    local flags=(-std=c++17 -arch=sm_90 -Werror all-warnings -Xcompiler=-Wall -Xcompiler=-Wextra -I"$include" -ptx -o "$WORK/device.ptx")
    local name names outside=$WORK/outside_device status=0
    names=$(device_names | tr '\n' ' ')
    [ -z "$names" ] || fail "the installed rungs use names that may collide with a program's macros: $names"
    echo '#include <spmv/device.cuh>' >"$WORK/device.cu"
    "$NVCC" "${flags[@]}" "$WORK/device.cu" || fail "spmv/device.cuh does not compile alone"
    # The headers of the toolkit come first, because they need not work with these macros.
    printf '#include <cuda_runtime.h>\n#include <stdio.h>\n#include <math.h>\n#include <type_traits>\n' >"$WORK/device.cu"
    {
        for name in "${hostile_names[@]}"; do
            echo "#define $name 1 +* 2"
        done
        echo '#include <spmv/device.cuh>'
        for name in "${hostile_names[@]}"; do
            printf '#ifndef %s\n#error "%s is gone"\n#endif\n' "$name" "$name"
        done
    } >>"$WORK/device.cu"
    "$NVCC" "${flags[@]}" "$WORK/device.cu" || fail "spmv/device.cuh does not compile after a program's macros"

    rm -rf "$outside"
    mkdir -p "$outside"
    cp -r "$SOURCE/examples/device" "$outside/source"
    "$CMAKE" -S "$outside/source" -B "$outside/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$CXX" \
        -DCMAKE_CUDA_COMPILER="$NVCC" -DCMAKE_CUDA_FLAGS="$NVCC_QUICK -Werror all-warnings -Xcompiler -Wall,-Wextra" \
        >"$outside/log" 2>&1 || fail "examples/device: $(cat "$outside/log")"
    "$CMAKE" --build "$outside/build" >>"$outside/log" 2>&1 || fail "examples/device: $(cat "$outside/log")"
    "$outside/build/own_functors" >"$outside/out" || status=$?
    if [ $status = 77 ]; then
        grep -q '^skipped: ' "$outside/out" || fail "own_functors prints no reason for its skip"
    elif [ $status != 0 ] || ! grep -q 'verified$' "$outside/out"; then
        fail "own_functors failed ($status): $(cat "$outside/out")"
    fi
    echo "device.cuh alone and with ${#hostile_names[@]} macros; own_functors: $(cat "$outside/out")"
}

check_program() {
    local program=$prefix/bin/spmv
    [ -x "$program" ] || fail "$prefix/bin/spmv is missing"
    "$READELF" -d "$program" | grep -q 'NEEDED.*libspmv' && fail "the program needs libspmv.so"
    LD_LIBRARY_PATH="" "$program" --version | grep -q "$VERSION" || fail "spmv --version does not print $VERSION"
    [ ! -e "$SOURCE/app/spmv.1" ] || [ -e "$prefix/share/man/man1/spmv.1" ] || fail "the man page was not installed"
    bash -c '. "$1" && complete -p spmv' bash "$prefix/share/bash-completion/completions/spmv" >/dev/null || fail "bash has no completion"
    grep -q '^#compdef spmv' "$prefix/share/zsh/site-functions/_spmv" || fail "zsh has no completion"
    [ "$(pkg-config --modversion spmv)" = "$VERSION" ] || fail "spmv.pc does not have version $VERSION"
}

check_documents() {
    local document script scripts=$prefix/$DATADIR/spmv/scripts count=0
    while IFS= read -r document; do
        [ -s "$prefix/$DOCDIR/$document" ] || fail "README.md names $document, which was not installed"
        count=$((count + 1))
    done < <(grep -oE 'docs/[a-z0-9-]+\.md' "$prefix/$DOCDIR/README.md" | sort -u)
    [ "$count" -ge 5 ] || fail "README.md names only $count documents"
    diff -r "$SOURCE/docs" "$prefix/$DOCDIR/docs" || fail "not all documents were installed"
    for script in report.py suitesparse.py; do
        "$scripts/$script" --help >"$WORK/help" || fail "$script --help fails"
        grep -q "usage: $script" "$WORK/help" || fail "$script --help: $(cat "$WORK/help")"
    done
    [ ! -x "$prefix/bin/spmv" ] || python3 -B -c "import os, sys
sys.path.insert(0, '$scripts')
os.environ['PATH'] = ''
import report_numbers, suitesparse
assert os.path.exists(suitesparse.TWINS) and os.listdir(suitesparse.LISTS), suitesparse.TREE
assert os.path.samefile(suitesparse.find_program(None), '$prefix/bin/spmv')" ||
        fail "suitesparse.py does not find its data or the program"
    echo "$count documents"
}

case ${1-} in
prefix | headers | symbols | examples | documents | device | program) "check_$1" ;;
*) fail "unknown check: ${1-}" ;;
esac
