# spmv_sources(FILE...): adds files of this folder to the library.
# spmv_cuda_sources(FILE...): adds files of the backend cuda. The tests build them for the host too
# (tests/emulated_gpu), from the list in the global property SPMV_CUDA_SOURCES.
# spmv_units(VARIABLE ENDING FILE...): sets VARIABLE to these files. Without a GPU (SPMV_QUICK_NVCC) the
# compilers take longer to read headers than for most files, so several are compiled together, in units
# cuda_unit_N and ENDING in the build folder: files of a unit share no name, so they are from different
# folders.
# spmv_cuda_units(): adds the files of the backend cuda to the library, in units, which are in the global
# property SPMV_CUDA_UNITS. Call it after all spmv_cuda_sources.
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

function(spmv_units variable ending)
  set(alone ${ARGN})
  set(units "")
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
    set(unit_10 slices spmv_4_tiles_hubs krylov_columns wide_residual abreast row_counts)
    set(unit_11 krylov_persistent panels amg_roots)
    foreach(number RANGE 1 11)
      list(JOIN unit_${number} "|" names)
      set(together ${alone})
      list(FILTER together INCLUDE REGEX "/(${names})(_cuda)?[.]cu$")
      list(REMOVE_ITEM alone ${together})
      set(text "")
      foreach(file IN LISTS together)
        file(RELATIVE_PATH file "${PROJECT_SOURCE_DIR}" "${file}") # so that mutate.py compiles it with a changed copy
        string(APPEND text "#include \"${file}\"\n")
      endforeach()
      set(unit "${CMAKE_CURRENT_BINARY_DIR}/cuda_unit_${number}${ending}")
      file(CONFIGURE OUTPUT "${unit}" CONTENT "${text}" @ONLY)
      list(APPEND units "${unit}")
    endforeach()
  endif()
  set(${variable} ${alone} ${units} PARENT_SCOPE)
endfunction()

function(spmv_cuda_units)
  get_property(sources GLOBAL PROPERTY SPMV_CUDA_SOURCES)
  spmv_units(units .cu ${sources})
  set_property(GLOBAL PROPERTY SPMV_CUDA_UNITS ${units})
  target_sources(spmv_objects PRIVATE ${units})
endfunction()

function(spmv_no_cuda_source file)
  set_property(GLOBAL PROPERTY SPMV_NO_CUDA_SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  if(NOT SPMV_HAVE_CUDA)
    target_sources(spmv_objects PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endif()
endfunction()
