# The peers on a GPU: CUB and a probe, which come with the compiler, and cuSPARSE where the toolkit has it.
#
# A module is linked to its library and to a CUDA runtime of its own, and shows spmv_peer_module alone. Its library is looked for
# where the toolkit usually lies, too: a module that was moved has nothing else to go by.
#
# SPDX-License-Identifier: BSD-3-Clause
set(SPMV_CUDA_PEERS "") # the modules that are built

function(spmv_cuda_peer name)
  cmake_parse_arguments(P "" "" "SOURCES;LIBRARIES" ${ARGN})
  set(module spmv_peer_${name})
  list(TRANSFORM P_SOURCES PREPEND "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/")
  add_library(${module} MODULE ${P_SOURCES})
  set_target_properties(${module} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench/peers"
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX INSTALL_RPATH "/usr/local/cuda/lib64;$ORIGIN")
  target_include_directories(${module} PRIVATE "${PROJECT_SOURCE_DIR}/bench" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(${module} PRIVATE spmv_flags CUDA::cudart_static ${P_LIBRARIES})
  target_link_options(${module} PRIVATE LINKER:--exclude-libs,ALL)
  install(TARGETS ${module} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/spmv/peers")
  set(SPMV_CUDA_PEERS ${SPMV_CUDA_PEERS} ${name} PARENT_SCOPE)
endfunction()

spmv_cuda_peer(cub SOURCES peer_cub.cu)
spmv_cuda_peer(probe SOURCES peer_probe.cu)
# 12.4: preprocessing of products
if(TARGET CUDA::cusparse AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.4)
  spmv_cuda_peer(cusparse SOURCES peer_cusparse.c sliced_ell.cu LIBRARIES CUDA::cusparse)
endif()
set_property(GLOBAL PROPERTY SPMV_CUDA_PEERS "${SPMV_CUDA_PEERS}")
