# The peers on a GPU: CUB and a probe, which need only nvcc, and cuSPARSE and cuBLAS if the toolkit
# has them.
#
# Each module is linked with its library and, statically, with a CUDA runtime. At run time the
# library is also searched in the usual folder of the toolkit, because a module may have been moved
# to a machine with another path.
#
# SPDX-License-Identifier: BSD-3-Clause
function(spmv_cuda_peer name)
  spmv_peer(${name} ${ARGN} spmv_flags CUDA::cudart_static)
  set_target_properties(spmv_peer_${name} PROPERTIES LINKER_LANGUAGE CXX INSTALL_RPATH "/usr/local/cuda/lib64;$ORIGIN")
endfunction()

spmv_cuda_peer(cub SOURCES peer_cub.cu LIBRARIES)
spmv_cuda_peer(probe SOURCES peer_probe.cu LIBRARIES)
set(SPMV_CUDA_PEERS cub probe)
# 12.4: preprocessing of products
if(TARGET CUDA::cusparse AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.4)
  spmv_cuda_peer(cusparse SOURCES peer_cusparse.c peer_cusparse_spmm.c cusparse_product.c sliced_ell.cu LIBRARIES CUDA::cusparse)
  list(APPEND SPMV_CUDA_PEERS cusparse)
else()
  spmv_no_peer(cusparse "cuSPARSE of CUDA 12.4")
endif()
if(TARGET CUDA::cusparse AND TARGET CUDA::cublas AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.4)
  spmv_cuda_peer(cusparse_cg SOURCES peer_cusparse_cg.cu LIBRARIES CUDA::cusparse CUDA::cublas)
  spmv_cuda_peer(cublas SOURCES peer_cublas.c cusparse_product.c LIBRARIES CUDA::cusparse CUDA::cublas)
  list(APPEND SPMV_CUDA_PEERS cusparse_cg cublas)
else()
  spmv_no_peer(cusparse_cg "cuSPARSE of CUDA 12.4 with cuBLAS")
  spmv_no_peer(cublas "cuSPARSE and cuBLAS of CUDA 12.4")
endif()
set_property(GLOBAL PROPERTY SPMV_CUDA_PEERS "${SPMV_CUDA_PEERS}")
