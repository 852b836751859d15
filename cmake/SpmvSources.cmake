# spmv_sources(FILE...): adds files of this folder to the library.
# spmv_cuda_sources(FILE...): adds files of the backend cuda. The tests build them for the host too
# (tests/emulated_gpu), from the list in the global property SPMV_CUDA_SOURCES.
# spmv_cuda_units(): call it after all of them. Without a GPU (SPMV_QUICK_NVCC) nvcc takes longer to
# read its own headers than for most files, so several are compiled together: files of a unit share
# no name, so they are from different folders. The units are in the global property SPMV_CUDA_UNITS.
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
endfunction()

function(spmv_cuda_units)
  get_property(alone GLOBAL PROPERTY SPMV_CUDA_SOURCES)
  if(SPMV_QUICK_NVCC)
    set(unit_1 gather scatter index_check reduce reduce_ladder dot histogram sort sddmm least_squares_persistent)
    set(unit_2 scan segscan segreduce flags compact expand map_reduce amg_nodes)
    set(unit_3 scan_ladder map map_scan runtime csr_check transpose matrix_rows precond_fsai)
    set(unit_4 spmv epilogue group group_rows group_levels krylov_symmetry)
    set(unit_5 spmv_4_tiles backward_error octets precond krylov_ranks)
    set(unit_6 groups columns batch exchange precond_triangles)
    set(unit_7 cg_4_persistent amg_blocks padded wide eigen_passes spgemm_expand)
    set(unit_8 segscan_ladder krylov_passes cg_3_graph long spmv_3_fused amg_product by_columns)
    set(unit_9 amg blocked spgemm krylov_least_squares cg_3_graph_columns krylov_queue)
    set(unit_10 slices spmv_4_tiles_hubs krylov_columns wide_residual)
    set(unit_11 krylov_persistent panels amg_roots)
    foreach(number RANGE 1 11)
      set(unit unit_${number})
      list(JOIN ${unit} "|" names)
      set(together ${alone})
      list(FILTER together INCLUDE REGEX "/(${names})(_cuda)?[.]cu$")
      list(REMOVE_ITEM alone ${together})
      list(TRANSFORM together REPLACE "(.+)" "#include \"\\1\"\n")
      list(JOIN together "" text)
      file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/cuda_${unit}.cu" CONTENT "${text}" @ONLY)
      list(APPEND units "${PROJECT_BINARY_DIR}/cuda_${unit}.cu")
    endforeach()
    set_property(GLOBAL PROPERTY SPMV_CUDA_UNITS ${units})
  endif()
  target_sources(spmv_objects PRIVATE ${alone} ${units})
endfunction()

function(spmv_no_cuda_source file)
  set_property(GLOBAL PROPERTY SPMV_NO_CUDA_SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  if(NOT SPMV_HAVE_CUDA)
    target_sources(spmv_objects PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endif()
endfunction()
