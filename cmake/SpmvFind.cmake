# Finds C libraries, and a GPU.
#
# spmv_find_c_library(NAME HEADER FOLDER LIBRARY...): finds a C library that has no package file of
# CMake. Sets the cache variables NAME_INCLUDE_DIR (of HEADER, also in FOLDER of an include folder) and,
# for each LIBRARY, LIBRARY_LIBRARY in capitals.
#
# spmv_find_gpu(VARIABLE): whether the driver of this machine lists an NVIDIA GPU.
#
# SPDX-License-Identifier: BSD-3-Clause
function(spmv_find_c_library name header folder)
  find_path(${name}_INCLUDE_DIR ${header} PATH_SUFFIXES ${folder})
  mark_as_advanced(${name}_INCLUDE_DIR)
  foreach(library IN LISTS ARGN)
    string(TOUPPER ${library} capitals)
    find_library(${capitals}_LIBRARY ${library})
    mark_as_advanced(${capitals}_LIBRARY)
  endforeach()
endfunction()

function(spmv_find_gpu variable)
  set(listed "")
  find_program(SPMV_NVIDIA_SMI nvidia-smi)
  mark_as_advanced(SPMV_NVIDIA_SMI)
  if(SPMV_NVIDIA_SMI)
    execute_process(COMMAND "${SPMV_NVIDIA_SMI}" -L OUTPUT_VARIABLE listed ERROR_QUIET)
  endif()
  if(listed MATCHES "^GPU ")
    set(${variable} ON PARENT_SCOPE)
  else()
    set(${variable} OFF PARENT_SCOPE)
  endif()
endfunction()
