# spmv_bits(NAME LIBRARY): builds bits.c with a library without hidden symbols. It is in a file of
# its own so that scripts/checks/bits.py can build the same program in the tree of another commit.
#
# SPDX-License-Identifier: BSD-3-Clause
set(SPMV_BITS_SOURCE "${CMAKE_CURRENT_LIST_DIR}/bits.c")
function(spmv_bits name library)
  add_executable(${name} "${SPMV_BITS_SOURCE}")
  target_compile_definitions(${name} PRIVATE _POSIX_C_SOURCE=200809L)
  target_link_libraries(${name} PRIVATE spmv_flags ${library})
endfunction()
