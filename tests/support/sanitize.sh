#!/bin/sh
# Runs a test program under a checker of the CUDA Toolkit: the least that launches each of its kernels ("cuda brief").
#
# usage: sanitize.sh TOOL PROGRAM      TOOL: memcheck, racecheck, initcheck, synccheck
#
# compute-sanitizer is the one of COMPUTE_SANITIZER, of the PATH, or of /usr/local/cuda. Exit status 77 (skipped): none of them, or
# no GPU, of which the program itself is asked first ("cuda none").
#
# racecheck leaves out kernels whose name contains "_pipeline". There one lane of a warp arrives at an mbarrier for all lanes, after
# __syncwarp (device/pipeline.cuh). That orders the accesses of all lanes (PTX ISA, memory
# consistency model), but racecheck sees those of the arriving lane only: with arrivals of all lanes
# it reports no hazard (docs/notebook/gpu-primitives.md).
#
# initcheck does not see what the copy engine writes from shared to device memory (cp.async.bulk.global), so it reports reads of
# results of the pipelines of scan, segmented scan and compact. Tests leave out matrices whose plans need such a scan if
# SPMV_TEST_CHECKER is initcheck.
#
# SPDX-License-Identifier: BSD-3-Clause
tool=$1 program=$2
leave_out=""
[ "$tool" != racecheck ] || leave_out="--kernel-name-exclude kns=_pipeline"
"$program" cuda none || exit
export SPMV_TEST_CHECKER="$tool"
for checker in "${COMPUTE_SANITIZER:-compute-sanitizer}" /usr/local/cuda/bin/compute-sanitizer; do
    if command -v "$checker" >/dev/null; then
        # shellcheck disable=SC2086 # two words or none
        exec "$checker" --tool "$tool" $leave_out --error-exitcode 1 "$program" cuda brief
    fi
done
echo "skipped: no compute-sanitizer on this machine"
exit 77
