# Finds mmio, the Matrix Market I/O library of NIST (header mmio.h).
#
# Looks in MMIO_ROOT (mmio.h with mmio.c, or with a library), then for a system mmio, then for the copy that lp_solve
# ships (Debian: liblpsolve55-dev), whose position-independent mmio.o is taken out of liblpsolve55_pic.a. Gives:
#   MMIO::MMIO         include directory (interface)
#   MMIO_OBJECTS       object files or sources that go into our libraries, or empty
#   MMIO_LIBRARY       a library to link instead, or empty
#
# SPDX-License-Identifier: BSD-3-Clause
include(FindPackageHandleStandardArgs)

set(MMIO_OBJECTS "")
set(MMIO_LIBRARY "")
set(MMIO_SOURCE "not found")

# 1. MMIO_ROOT, as a variable or in the environment. 2. The system.
find_path(MMIO_INCLUDE_DIR NAMES mmio.h HINTS ${MMIO_ROOT} ENV MMIO_ROOT PATH_SUFFIXES include)
if(MMIO_INCLUDE_DIR)
  find_file(MMIO_C NAMES mmio.c HINTS ${MMIO_INCLUDE_DIR} ${MMIO_ROOT} ENV MMIO_ROOT PATH_SUFFIXES src NO_DEFAULT_PATH)
  find_library(MMIO_LIB NAMES mmio HINTS ${MMIO_ROOT} ENV MMIO_ROOT PATH_SUFFIXES lib)
  if(MMIO_C)
    set(MMIO_OBJECTS "${MMIO_C}")
    set(MMIO_SOURCE "${MMIO_C}")
  elseif(MMIO_LIB)
    set(MMIO_LIBRARY "${MMIO_LIB}")
    set(MMIO_SOURCE "${MMIO_LIB}")
  endif()
endif()

# 3. lp_solve's copy.
if(NOT MMIO_OBJECTS AND NOT MMIO_LIBRARY)
  unset(MMIO_INCLUDE_DIR CACHE)
  find_path(MMIO_INCLUDE_DIR NAMES mmio.h PATH_SUFFIXES lpsolve)
  find_file(MMIO_LPSOLVE_ARCHIVE NAMES liblpsolve55_pic.a PATHS /usr/lib /usr/local/lib PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE} lp_solve)
  if(MMIO_INCLUDE_DIR AND MMIO_LPSOLVE_ARCHIVE)
    set(_mmio_dir "${CMAKE_BINARY_DIR}/mmio")
    file(MAKE_DIRECTORY "${_mmio_dir}")
    execute_process(COMMAND ${CMAKE_AR} x "${MMIO_LPSOLVE_ARCHIVE}" mmio.o WORKING_DIRECTORY "${_mmio_dir}"
      RESULT_VARIABLE _mmio_result)
    if(_mmio_result EQUAL 0 AND EXISTS "${_mmio_dir}/mmio.o")
      set(MMIO_OBJECTS "${_mmio_dir}/mmio.o")
      set(MMIO_SOURCE "mmio.o of ${MMIO_LPSOLVE_ARCHIVE}")
    endif()
  endif()
endif()

if(MMIO_OBJECTS OR MMIO_LIBRARY)
  set(_mmio_usable TRUE)
endif()
find_package_handle_standard_args(MMIO REQUIRED_VARS MMIO_INCLUDE_DIR _mmio_usable
  REASON_FAILURE_MESSAGE "mmio (Matrix Market I/O) was not found: install Debian's package liblpsolve55-dev, or set MMIO_ROOT to a folder that holds mmio.h and mmio.c")

if(MMIO_FOUND AND NOT TARGET MMIO::MMIO)
  add_library(MMIO::MMIO INTERFACE IMPORTED)
  set_target_properties(MMIO::MMIO PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${MMIO_INCLUDE_DIR}")
  if(MMIO_LIBRARY)
    set_target_properties(MMIO::MMIO PROPERTIES INTERFACE_LINK_LIBRARIES "${MMIO_LIBRARY}")
  endif()
  message(STATUS "mmio: ${MMIO_SOURCE}")
endif()
mark_as_advanced(MMIO_INCLUDE_DIR MMIO_C MMIO_LIB MMIO_LPSOLVE_ARCHIVE)
