# Decides whether this build has the CUDA backend, and enables the language only then.
#
# SPMV_CUDA=AUTO builds it if nvcc is found and works; GPU does so only if this machine has a GPU,
# and compiles for that GPU; ON fails without nvcc; OFF does not search. Sets:
#   SPMV_HAVE_CUDA     ON or OFF; folders list their CUDA sources under if(SPMV_HAVE_CUDA)
#   SPMV_CUDA_LACKS    in the cache: what was not found, if that is why the backend is off
#
# SPDX-License-Identifier: BSD-3-Clause
set(SPMV_HAVE_CUDA OFF)
set(SPMV_CUDA_LACKS "" CACHE INTERNAL "")
set(_architectures 80-real 90-real 90-virtual)
set(_gpu OFF)
if(SPMV_CUDA STREQUAL "GPU")
  set(_architectures native)
  spmv_find_gpu(_gpu)
endif()

# Without the table of the backend the source tree has no CUDA backend.
set(_backend "${PROJECT_SOURCE_DIR}/core/backend_cuda.c")
if(NOT EXISTS "${_backend}")
  if(SPMV_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SPMV_CUDA=ON, but this version has no CUDA backend; use SPMV_CUDA=OFF or AUTO")
  endif()
elseif(SPMV_CUDA STREQUAL "GPU" AND NOT _gpu)
  set(SPMV_CUDA_LACKS "an NVIDIA GPU" CACHE INTERNAL "")
  message(STATUS "CUDA backend: off (no NVIDIA GPU was found; SPMV_CUDA=ON compiles it for other machines)")
elseif(NOT SPMV_CUDA STREQUAL "OFF")
  # By default, machine code for two generations of GPUs, and PTX that the driver compiles for later
  # ones. CMake reads CUDAARCHS from the environment if the variable is not defined.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND "$ENV{CUDAARCHS}" STREQUAL "")
    set(CMAKE_CUDA_ARCHITECTURES ${_architectures} CACHE STRING "GPU architectures")
  endif()
  # CMake searches CMAKE_CUDA_COMPILER, CUDACXX and PATH, which often lack the usual folder of the
  # toolkit.
  if(NOT CMAKE_CUDA_COMPILER AND "$ENV{CUDACXX}" STREQUAL "")
    find_program(SPMV_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(SPMV_NVCC)
    if(SPMV_NVCC)
      set(ENV{CUDACXX} "${SPMV_NVCC}")
    endif()
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    # Check first: with AUTO, a toolkit that does not work with this host compiler must not stop the
    # configuration.
    include(CheckLanguage)
    check_language(CUDA)
  endif()
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(SPMV_HAVE_CUDA ON)
    message(STATUS "CUDA backend: on, toolkit ${CUDAToolkit_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
  elseif(SPMV_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SPMV_CUDA=ON, but no working nvcc was found: install the CUDA Toolkit (12.0 or later), or set "
      "CUDACXX to its nvcc, or use SPMV_CUDA=AUTO")
  else()
    set(SPMV_CUDA_LACKS "a working nvcc" CACHE INTERNAL "")
    message(STATUS "CUDA backend: off (no working nvcc was found)")
  endif()
endif()
