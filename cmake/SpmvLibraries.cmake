# The libraries libspmv.so and libspmv.a, built from the objects in spmv_objects and mmio. Both
# export only spmv_*.
#
# SPDX-License-Identifier: BSD-3-Clause

# mmio as source: a separate object, without the project's warnings.
if(MMIO_OBJECTS MATCHES "\\.c$")
  add_library(spmv_mmio OBJECT ${MMIO_OBJECTS})
  set_target_properties(spmv_mmio PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden C_EXTENSIONS ON)
  set(MMIO_OBJECTS $<TARGET_OBJECTS:spmv_mmio>)
endif()

# The C++ runtime by name: one file of the library is C++ (std::from_chars), and a C program that
# links the static library must not need a C++ compiler.
set(SPMV_CXX_RUNTIME ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER SPMV_CXX_RUNTIME INCLUDE REGEX "^(stdc\\+\\+|c\\+\\+|c\\+\\+abi)$")
list(REMOVE_DUPLICATES SPMV_CXX_RUNTIME)

# Link-time dependencies of the objects.
add_library(spmv_links INTERFACE)
target_link_libraries(spmv_links INTERFACE OpenMP::OpenMP_C ${MMIO_LIBRARY} ${SPMV_CXX_RUNTIME} m)
if(SPMV_HAVE_CUDA)
  target_link_libraries(spmv_links INTERFACE CUDA::cudart_static)
  target_compile_definitions(spmv_links INTERFACE SPMV_HAVE_CUDA)
endif()

# ------------------------------------------------------------------ shared
# mmio.o and static archives (the CUDA runtime) are not compiled with hidden symbols. The version
# script and --exclude-libs hide theirs.
set(SPMV_VERSION_SCRIPT "${PROJECT_SOURCE_DIR}/cmake/spmv.map")
add_library(spmv_shared SHARED $<TARGET_OBJECTS:spmv_objects> ${MMIO_OBJECTS})
set_target_properties(spmv_shared PROPERTIES OUTPUT_NAME spmv VERSION ${PROJECT_VERSION} SOVERSION 0 EXPORT_NAME spmv
  LINKER_LANGUAGE CXX LINK_DEPENDS "${SPMV_VERSION_SCRIPT}")
target_link_options(spmv_shared PRIVATE "LINKER:--version-script=${SPMV_VERSION_SCRIPT}" LINKER:--exclude-libs,ALL)
if(NOT "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize")
  # a sanitizer's runtime is linked with the program, not with the library
  target_link_options(spmv_shared PRIVATE LINKER:--no-undefined)
endif()
target_link_libraries(spmv_shared PRIVATE $<BUILD_INTERFACE:spmv_links>)

# ------------------------------------------------------------------ static
# An archive cannot hide a symbol that two of its members share. So all objects are linked into one
# (a partial link), and every symbol except spmv_* is then made local. Three kinds of symbols need
# more:
#   - COMDAT groups (inline functions and templates of C++) are matched by name with those of the
#     caller. If the linker kept the caller's copy, local symbols of the library would point into a
#     discarded section. --force-group-allocation turns the groups into plain sections.
#   - Common symbols (a named OpenMP critical) stay global until they are allocated: -d does so.
#   - Unique symbols (static variables of C++ inline functions and templates) always stay global:
#     -fno-gnu-unique (below) tells the compiler to make none.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-fno-gnu-unique SPMV_HAVE_NO_GNU_UNIQUE)
if(SPMV_HAVE_NO_GNU_UNIQUE)
  target_compile_options(spmv_objects PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-gnu-unique>)
endif()
set(_partial "${CMAKE_CURRENT_BINARY_DIR}/spmv_partial.o")
set(_object "${CMAKE_CURRENT_BINARY_DIR}/spmv_all.o")
add_custom_command(OUTPUT "${_object}"
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -Wl,--force-group-allocation -Wl,-d -o "${_partial}"
    "$<TARGET_OBJECTS:spmv_objects>" ${MMIO_OBJECTS}
  COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=spmv_*" "${_partial}" "${_object}"
  COMMAND ${CMAKE_COMMAND} -E rm -f "${_partial}"
  DEPENDS "$<TARGET_OBJECTS:spmv_objects>" ${MMIO_OBJECTS}
  COMMAND_EXPAND_LISTS VERBATIM
  COMMENT "Joining the objects of libspmv.a and hiding all but spmv_*")
add_library(spmv_static STATIC "${_object}")
set_source_files_properties("${_object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set_target_properties(spmv_static PROPERTIES OUTPUT_NAME spmv LINKER_LANGUAGE C)
target_link_libraries(spmv_static PRIVATE OpenMP::OpenMP_C ${MMIO_LIBRARY} ${SPMV_CXX_RUNTIME} m)
if(SPMV_HAVE_CUDA)
  target_link_libraries(spmv_static PRIVATE CUDA::cudart_static)
endif()

foreach(library spmv_shared spmv_static)
  target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
# In the build both have the names that find_package gives them.
add_library(spmv::spmv ALIAS spmv_shared)
add_library(spmv::spmv_static ALIAS spmv_static)
