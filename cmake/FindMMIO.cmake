# Finds mmio, the Matrix Market I/O library of NIST (header mmio.h).
#
# Searches MMIO_ROOT (mmio.h with mmio.c, or with a library), then the system, then the copy in
# lp_solve (Debian: liblpsolve55-dev), whose position-independent mmio.o is extracted from
# liblpsolve55_pic.a. Sets:
#   MMIO::MMIO         include directory (interface)
#   MMIO_OBJECTS       object files or sources that go into the project's libraries, or empty
#   MMIO_LIBRARY       a library to link instead, or empty
# Only MMIO_ROOT is cached, so that a change of it takes effect.
#
# SPDX-License-Identifier: BSD-3-Clause
include(FindPackageHandleStandardArgs)

set(MMIO_ROOT "$ENV{MMIO_ROOT}" CACHE PATH "A folder with mmio.h and mmio.c, or with mmio.h and libmmio")
set(MMIO_OBJECTS "")
set(MMIO_LIBRARY "")
set(_mmio_source "")
foreach(_variable MMIO_INCLUDE_DIR _mmio_c _mmio_library _mmio_archive)
  unset(${_variable})
  unset(${_variable} CACHE)
endforeach()

# 1. MMIO_ROOT. 2. The system.
find_path(MMIO_INCLUDE_DIR NAMES mmio.h HINTS ${MMIO_ROOT} PATH_SUFFIXES include NO_CACHE)
if(MMIO_INCLUDE_DIR)
  find_file(_mmio_c NAMES mmio.c HINTS ${MMIO_INCLUDE_DIR} ${MMIO_ROOT} PATH_SUFFIXES src NO_DEFAULT_PATH NO_CACHE)
  find_library(_mmio_library NAMES mmio HINTS ${MMIO_ROOT} PATH_SUFFIXES lib NO_CACHE)
  if(_mmio_c)
    set(MMIO_OBJECTS "${_mmio_c}")
    set(_mmio_source "${_mmio_c}")
  elseif(_mmio_library)
    set(MMIO_LIBRARY "${_mmio_library}")
    set(_mmio_source "${_mmio_library}")
  endif()
endif()
if(MMIO_ROOT AND NOT _mmio_source)
  message(WARNING "MMIO_ROOT=${MMIO_ROOT} has no mmio.h with mmio.c or libmmio; searching elsewhere")
endif()

# 3. The copy in lp_solve.
if(NOT _mmio_source)
  unset(MMIO_INCLUDE_DIR)
  find_path(MMIO_INCLUDE_DIR NAMES mmio.h PATH_SUFFIXES lpsolve NO_CACHE)
  find_file(_mmio_archive NAMES liblpsolve55_pic.a PATHS /usr/lib /usr/local/lib
    PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE} lp_solve NO_CACHE)
  if(MMIO_INCLUDE_DIR AND _mmio_archive)
    set(_mmio_dir "${CMAKE_BINARY_DIR}/mmio")
    file(MAKE_DIRECTORY "${_mmio_dir}")
    execute_process(COMMAND ${CMAKE_AR} x "${_mmio_archive}" mmio.o WORKING_DIRECTORY "${_mmio_dir}"
      RESULT_VARIABLE _mmio_result)
    if(_mmio_result EQUAL 0 AND EXISTS "${_mmio_dir}/mmio.o")
      set(MMIO_OBJECTS "${_mmio_dir}/mmio.o")
      set(_mmio_source "mmio.o of ${_mmio_archive}")
    endif()
  endif()
endif()

find_package_handle_standard_args(MMIO REQUIRED_VARS _mmio_source MMIO_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "mmio (Matrix Market I/O) was not found: install the package liblpsolve55-dev (Debian, Ubuntu), or set MMIO_ROOT to a folder with mmio.h and mmio.c")

if(MMIO_FOUND AND NOT TARGET MMIO::MMIO)
  add_library(MMIO::MMIO INTERFACE IMPORTED)
  set_target_properties(MMIO::MMIO PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${MMIO_INCLUDE_DIR}")
  if(MMIO_LIBRARY)
    set_target_properties(MMIO::MMIO PROPERTIES INTERFACE_LINK_LIBRARIES "${MMIO_LIBRARY}")
  endif()
endif()
