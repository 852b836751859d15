#!/bin/bash
# The checks to run before submitting a change.
#
# usage: check.sh [STAGE...]     these stages; default: all
#        check.sh ^STAGE...      all other stages
#
#   format    clang-format agrees with every source; shellcheck, if installed, with every script
#   layers    includes point one way and name whole paths; the checker finds planted violations
#   build     the tree builds with warnings as errors (gcc, and clang if installed)
#   tests     all tests except those of installation; the five largest known twins
#   asan      all tests with the address, leak and undefined-behaviour sanitizers
#   ubsan     all tests, optimised, with clang's undefined-behaviour sanitizer
#   release   the first step of release.sh (versions, Dockerfiles; needs a package index); CUDA code
#             for the architectures of the library, its size; one file for those of the wheel
#             (needs nvcc)
#   install   installs into a fresh prefix, builds the examples outside the tree four ways
#   ranks     spmv on up to 4 ranks, two hosts (network namespaces), a killed rank; skips what this
#             machine cannot start
#   symbols   both libraries export only spmv_*
#   python    the wheels of the Python package, their tests in fresh environments (needs Python 3.11
#             and a package index), the sdist
#   fuzz      every fuzz target: its corpus once, then FUZZ_SECONDS (60) seconds of fuzzing
#   mutate    planted bugs, each of which a named test must catch (mutate.py)
#   bits      no result differs from those of an earlier commit, except those in GATE_EXPECTED=FILE
#             (bits.py)
#   abi       the library's binary interface is compatible with that commit's (abi.py)
#   registers no CUDA kernel uses more registers or spills more than in that commit (registers.py);
#             passes without cuobjdump
#   aarch64   builds for aarch64, runs the tests under emulation, compares bits (aarch64.sh)
#   speed     nothing is slower than in that commit (speed.py; also on a GPU if there is one); for a
#             quiet machine
#
# GATE_BASE=COMMIT is the commit for the last four; default: where this branch left main, on main
# the previous commit. JOBS=N sets the number of parallel compilers and tests. The summary has one
# line per stage; exit status 0 if none failed.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # stages are called by name
set -uo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/packages.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/build.sh"
cd "$root" || exit 1
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

all_stages=(format layers build tests ranks asan ubsan release install symbols python fuzz mutate bits abi registers aarch64 speed)
check_build=$root/build/check

run_ctest() {
    local folder=$1
    shift
    ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$jobs" "$@"
}

build_check() {
    build_tree "$check_build" all -DCMAKE_BUILD_TYPE=Release -DSPMV_WERROR=ON -DSPMV_CUDA="${SPMV_CUDA:-AUTO}" -DBUILD_TESTING=ON \
        -DCMAKE_CUDA_ARCHITECTURES="$(build_architecture)"
}

# build_with NAME BUILD_TYPE COMPILER FLAGS TARGET OPTION...: a CPU build in build/NAME
build_with() {
    local name=$1 type=$2 compiler=$3 flags=$4 target=$5
    shift 5
    local cxx=${compiler/%gcc/g++}
    [ "$compiler" != clang ] || cxx=clang++
    build_tree "$root/build/$name" "$target" -DCMAKE_BUILD_TYPE="$type" -DSPMV_WERROR=ON -DSPMV_CUDA=OFF -DSPMV_EMULATED_GPU=ON -DBUILD_TESTING=ON \
        -DCMAKE_C_COMPILER="$compiler" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" "$@"
}

stage_format() {
    local sources scripts
    sources=$(git ls-files '*.c' '*.h' '*.cc' '*.cpp' '*.cu' '*.cuh')
    # shellcheck disable=SC2086 # a list of files without blanks
    clang-format --dry-run -Werror $sources || return 1
    scripts=$(git ls-files '*.sh' .ci/run app/completion)
    if command -v shellcheck >/dev/null; then
        # shellcheck disable=SC2086
        shellcheck -x $scripts || return 1
    fi
    # shellcheck disable=SC2086
    if grep -nE '[[:blank:]]+$' $sources $scripts; then
        echo "the lines above end with white space"
        return 1
    fi
    local file
    for file in $sources $scripts; do
        grep -q 'SPDX-License-Identifier: BSD-3-Clause' "$file" || { echo "$file has no SPDX line" && return 1; }
    done
}

stage_layers() {
    bash scripts/checks/check_layers.sh && bash scripts/checks/check_layers.sh --self-test
}

stage_build() {
    build_check || return 1
    if command -v clang >/dev/null; then
        build_with check-clang Release clang "" all || return 1
    fi
}

stage_tests() {
    build_check && SPMV_TEST_ALL=1 run_ctest "$check_build" -LE install && "$check_build/tests/test_twin_known" all
}

stage_ranks() {
    local status=0 mpi n
    build_check || return 1
    for mpi in openmpi mpich; do
        if ! command -v "mpirun.$mpi" >/dev/null || [ ! -e "$check_build/solvers/modules/spmv_transport_$mpi.so" ]; then
            continue
        fi
        for n in 1 2 3 4; do
            OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none \
                SPMV_MODULE_PATH=$check_build/solvers/modules \
                timeout 300 "mpirun.$mpi" -n "$n" "$check_build/tests/test_group" omp mpi </dev/null || return 1
        done
    done
    SPMV_TEST_ALL=1 run_ctest "$check_build" -R '^(test_ranks|ranks_files[.]omp)$' || return 1
    bash scripts/checks/two_hosts.sh "$check_build/app/spmv" || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ]
}
stage_asan() {
    cmake --preset cpu-asan </dev/null && cmake --build --preset cpu-asan -j "$jobs" </dev/null &&
        ctest --preset cpu-asan --no-tests=error -j "$jobs"
}

stage_ubsan() {
    # clang has the check of function types for C++ only, and C programs then lack its run-time part
    local flags="-fsanitize=undefined,float-cast-overflow -fno-sanitize=function -fno-sanitize-recover=all"
    build_with check-ubsan Release clang "$flags" all &&
        UBSAN_OPTIONS=print_stacktrace=1 run_ctest "$root/build/check-ubsan" -LE install
}

stage_release() {
    bash scripts/release.sh check || return 1
    local tree=$root/build/release
    build_tree "$tree" cuda_code -DCMAKE_BUILD_TYPE=Release -DSPMV_WERROR=ON -DSPMV_CUDA="${SPMV_CUDA:-AUTO}" -DBUILD_TESTING=ON \
        -U CMAKE_CUDA_ARCHITECTURES || return 1
    if ctest --test-dir "$tree" -N -R '^cuda_build$' | grep -q '^Total Tests: 0'; then
        echo "no nvcc: nothing to compile"
        return 0
    fi
    run_ctest "$tree" -R '^cuda_build$' || return 1
    # The wheel has code for more architectures, and takes an hour. What depends on the architecture
    # (device/launch.cuh, device/pipeline.cuh) is in this object too.
    local nvcc architectures
    nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' "$tree/CMakeCache.txt")
    architectures=$(wheel_architectures "$nvcc")
    [ -z "$architectures" ] ||
        build_tree "$root/build/release-wheel" CMakeFiles/spmv_objects.dir/primitives/compact/compact_cuda.cu.o \
            -DCMAKE_BUILD_TYPE=Release -DSPMV_WERROR=ON -DSPMV_CUDA=ON -DBUILD_TESTING=OFF -DCMAKE_CUDA_ARCHITECTURES="$architectures"
}

stage_install() {
    build_check && run_ctest "$check_build" -L install
}

stage_symbols() {
    build_check && run_ctest "$check_build" -R '^install\.symbols$'
}

stage_python() {
    if ! "${PYTHON:-python3}" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "no Python 3.11 with venv: nothing built"
        return 0
    fi
    CUDAARCHS=${CUDAARCHS:-$(build_architecture)} bash scripts/python.sh
}

stage_fuzz() {
    # a build type without its own optimisation level, which would override -O1
    local flags="-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all"
    build_with check-fuzz Debug clang "$flags" fuzz_targets -DSPMV_FUZZ=ON || return 1
    local tree=$root/build/check-fuzz target name found
    # Each corpus once, with the other seeds.
    run_ctest "$tree" -R '^fuzz_.*[.]corpus$' || return 1
    for target in "$tree"/tests/fuzz_*; do
        name=${target##*/fuzz_}
        found=$tree/found_$name # kept for the next run and for corpus.sh
        mkdir -p "$found"
        (cd "$tree" && "$target" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
            "$found" "corpus_$name" "$root/data" "$root/tests/data/mangled" "$root/tests/data/exchange" </dev/null >"fuzz_$name.log" 2>&1) ||
            { tail -n 40 "$tree/fuzz_$name.log" && return 1; }
        tail -n 8 "$tree/fuzz_$name.log"
    done
}

stage_mutate() {
    # without CUDA: changed headers need no nvcc run, and mutants of kernels are tested on the host
    build_with mutate Release gcc "" all && python3 scripts/checks/mutate.py "$root/build/mutate"
}

# Each gate first shows that it detects a planted change.
stage_bits() {
    python3 scripts/checks/bits.py --self-test --backends ref && python3 scripts/checks/bits.py ${GATE_EXPECTED:+--expected "$GATE_EXPECTED"}
}

stage_abi() {
    python3 scripts/checks/abi.py --self-test && python3 scripts/checks/abi.py
}

stage_registers() {
    python3 scripts/checks/registers.py --self-test || return 1
    if ! command -v cuobjdump >/dev/null && [ ! -x /usr/local/cuda/bin/cuobjdump ]; then
        echo "cuobjdump of the CUDA Toolkit is not installed: nothing compared"
        return 0
    fi
    python3 scripts/checks/registers.py
}

stage_aarch64() {
    bash scripts/checks/aarch64.sh
}

stage_speed() {
    python3 scripts/checks/speed.py --self-test && python3 scripts/checks/speed.py || return 1
    if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then
        python3 scripts/checks/speed.py --backend cuda
    fi
}

# The named stages, or all except those with ^.
stages=()
excluded=" "
for argument in "$@"; do
    name=${argument#^}
    case " ${all_stages[*]} " in
    *" $name "*) ;;
    *)
        echo "check.sh: unknown stage $name; stages: ${all_stages[*]}" >&2
        exit 2
        ;;
    esac
    if [ "$name" = "$argument" ]; then stages+=("$name"); else excluded+="$name "; fi
done
[ ${#stages[@]} -gt 0 ] || stages=("${all_stages[@]}")

packages_install build tests check || exit 1
summary=""
failed=0
for stage in "${stages[@]}"; do
    case "$excluded" in *" $stage "*) continue ;; esac
    echo "== $stage"
    start=$SECONDS
    if "stage_$stage"; then result=ok; else result=FAILED failed=1; fi
    summary+=$(printf '%-9s %-6s %5d s' "$stage" "$result" $((SECONDS - start)))$'\n'
done
printf '\n%s' "$summary"
exit $failed
