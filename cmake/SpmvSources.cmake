# spmv_sources(FILE...): adds files of this folder to the library.
# spmv_cuda_sources(FILE...): adds files of the backend cuda. The tests build them for the host too
# (tests/emulated_gpu), from the list in the global property SPMV_CUDA_SOURCES.
# spmv_no_cuda_source(FILE): adds what stands for them in a build without CUDA, to the global
# property SPMV_NO_CUDA_SOURCE.
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

function(spmv_no_cuda_source file)
  set_property(GLOBAL PROPERTY SPMV_NO_CUDA_SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  if(NOT SPMV_HAVE_CUDA)
    target_sources(spmv_objects PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endif()
endfunction()
