# spmv_bits(NAME LIBRARY): the program of bits.c with a library that shows its insides. A function of its own file, so that
# scripts/bits.py can build this very program in the tree of another commit.
#
# SPDX-License-Identifier: BSD-3-Clause
set(SPMV_BITS_SOURCE "${CMAKE_CURRENT_LIST_DIR}/bits.c")
function(spmv_bits name library)
  add_executable(${name} "${SPMV_BITS_SOURCE}")
  target_compile_definitions(${name} PRIVATE _POSIX_C_SOURCE=200809L)
  target_link_libraries(${name} PRIVATE spmv_flags ${library})
endfunction()
