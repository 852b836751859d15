# spmv_sources(FILE...): adds files of this folder to the library.
# spmv_cuda_sources(FILE...): adds files of the backend cuda. The tests build them for the host too
# (tests/emulated_gpu), from the list in the global property SPMV_CUDA_SOURCES.
#
# SPDX-License-Identifier: BSD-3-Clause
function(spmv_sources)
  target_sources(spmv_objects PRIVATE ${ARGN})
endfunction()

function(spmv_cuda_sources)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_property(GLOBAL APPEND PROPERTY SPMV_CUDA_SOURCES ${ARGN})
  if(SPMV_HAVE_CUDA)
    target_sources(spmv_objects PRIVATE ${ARGN})
  endif()
endfunction()
