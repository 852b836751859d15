# The peers on a GPU: CUB and a probe, which need only nvcc, and cuSPARSE and cuBLAS if the toolkit
# has them.
#
# Each module is linked with its library and, statically, with a CUDA runtime. An installed module
# searches its library in its own folder, then in the usual folder of the toolkit, because a module
# may have been moved to a machine with another path.
#
# All modules with cuSPARSE use the same one, because a process loads only one library of that name.
#
# SPDX-License-Identifier: BSD-3-Clause
set(SPMV_CUSPARSE_ROOT "" CACHE PATH "Folder with include/cusparse.h and lib/libcusparse.so.* (empty: the toolkit's)")
if(SPMV_CUSPARSE_ROOT)
  file(GLOB cusparse_library "${SPMV_CUSPARSE_ROOT}/lib/libcusparse.so*")
  list(SORT cusparse_library)
  if(NOT EXISTS "${SPMV_CUSPARSE_ROOT}/include/cusparse.h" OR NOT cusparse_library)
    message(FATAL_ERROR "SPMV_CUSPARSE_ROOT: include/cusparse.h and lib/libcusparse.so.* not found in ${SPMV_CUSPARSE_ROOT}")
  endif()
  list(GET cusparse_library 0 cusparse_library)
  set(cusparse_header "${SPMV_CUSPARSE_ROOT}/include/cusparse.h")
  add_library(spmv_cusparse INTERFACE)
  # SYSTEM: no warnings of the header. nvcc reads the toolkit's header all the same, which fits the newer library.
  target_include_directories(spmv_cusparse SYSTEM INTERFACE "${SPMV_CUSPARSE_ROOT}/include")
  target_link_libraries(spmv_cusparse INTERFACE "${cusparse_library}")
  message(STATUS "cuSPARSE: ${cusparse_library}")
elseif(TARGET CUDA::cusparse)
  find_file(cusparse_header cusparse.h PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH NO_CACHE)
  add_library(spmv_cusparse ALIAS CUDA::cusparse)
endif()
# cusparseSpMVOp is experimental. Earlier forms of it have no algorithms.
set(cusparse_op "")
if(cusparse_header)
  file(STRINGS "${cusparse_header}" cusparse_op REGEX "CUSPARSE_SPMVOP_ALG2" LIMIT_COUNT 1)
endif()

function(spmv_cuda_peer name)
  spmv_peer(${name} ${ARGN} spmv_flags CUDA::cudart_static)
  set_target_properties(spmv_peer_${name} PROPERTIES LINKER_LANGUAGE CXX INSTALL_RPATH "$ORIGIN;/usr/local/cuda/lib64")
endfunction()

spmv_cuda_peer(cub SOURCES peer_cub.cu LIBRARIES)
# a variable of CUB, if gcc optimises with -O1 only
target_compile_options(spmv_peer_cub PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wno-maybe-uninitialized>)
spmv_cuda_peer(probe SOURCES peer_probe.cu LIBRARIES)
set(SPMV_CUDA_PEERS cub probe)
# 12.4: preprocessing of products
if(TARGET spmv_cusparse AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.4)
  spmv_cuda_peer(cusparse SOURCES peer_cusparse.c peer_cusparse_spmm.c peer_cusparse_sddmm.c cusparse_product.c sliced_ell.cu turn.cu LIBRARIES spmv_cusparse)
  spmv_cuda_peer(cusparse_spgemm SOURCES peer_cusparse_spgemm.c LIBRARIES spmv_cusparse)
  list(APPEND SPMV_CUDA_PEERS cusparse cusparse_spgemm)
else()
  spmv_no_peer(cusparse "cuSPARSE of CUDA 12.4")
  spmv_no_peer(cusparse_spgemm "cuSPARSE of CUDA 12.4")
endif()
if(TARGET spmv_cusparse AND cusparse_op AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.4)
  spmv_cuda_peer(cusparse_op SOURCES peer_cusparse_op.c cusparse_product.c LIBRARIES spmv_cusparse)
  list(APPEND SPMV_CUDA_PEERS cusparse_op)
else()
  spmv_no_peer(cusparse_op "a cuSPARSE with the algorithms of cusparseSpMVOp (SPMV_CUSPARSE_ROOT)")
endif()
if(TARGET spmv_cusparse AND TARGET CUDA::cublas AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.4)
  spmv_cuda_peer(cusparse_cg SOURCES peer_cusparse_cg.cu LIBRARIES spmv_cusparse CUDA::cublas)
  spmv_cuda_peer(cublas SOURCES peer_cublas.c cusparse_product.c LIBRARIES spmv_cusparse CUDA::cublas)
  list(APPEND SPMV_CUDA_PEERS cusparse_cg cublas)
else()
  spmv_no_peer(cusparse_cg "cuSPARSE of CUDA 12.4 with cuBLAS")
  spmv_no_peer(cublas "cuSPARSE and cuBLAS of CUDA 12.4")
endif()
set_property(GLOBAL PROPERTY SPMV_CUDA_PEERS "${SPMV_CUDA_PEERS}")
