# Adds the program of this tree's tests/bits.c to the build of another commit, as bits_gate and
# bits_gate_host_cuda. Passed to CMake as CMAKE_PROJECT_spmv_INCLUDE. The libraries are those of the
# other commit's tests.
#
# SPDX-License-Identifier: BSD-3-Clause
include("${CMAKE_CURRENT_LIST_DIR}/../../tests/bits.cmake")
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL spmv_bits bits_gate spmv_internal)
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL spmv_bits bits_gate_host_cuda spmv_host_cuda)
