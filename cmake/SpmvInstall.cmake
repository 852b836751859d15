# What cmake --install installs: headers, libraries, the program and its man page, files for
# pkg-config and find_package, the documentation, and the scripts for results and for the
# SuiteSparse collection.
#
# SPDX-License-Identifier: BSD-3-Clause
include(CMakePackageConfigHelpers)

set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/spmv")

install(DIRECTORY include/spmv DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
install(DIRECTORY "${SPMV_DEVICE_INCLUDE}/spmv" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
# One export file per library, so that a program with the shared one does not need the dependencies
# of the static one.
install(TARGETS spmv_shared EXPORT spmvSharedTargets)
install(TARGETS spmv_static EXPORT spmvStaticTargets)
install(EXPORT spmvSharedTargets NAMESPACE spmv:: DESTINATION "${_package}")
install(EXPORT spmvStaticTargets NAMESPACE spmv:: DESTINATION "${_package}")
if(TARGET spmv_program)
  install(TARGETS spmv_program)
endif()
install(FILES app/spmv.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES app/completion/spmv DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES app/completion/spmv DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" RENAME _spmv)
# README.md links to the pages as docs/NAME.md.
install(FILES LICENSE NOTICE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# The scripts find their data (lists, twins.csv, the HTML template) at the same relative paths as in
# the source tree.
set(_scripts "${CMAKE_INSTALL_DATADIR}/spmv")
install(PROGRAMS scripts/report.py scripts/suitesparse.py DESTINATION "${_scripts}/scripts")
install(FILES scripts/report_charts.py scripts/report_numbers.py scripts/report_page.html DESTINATION "${_scripts}/scripts")
install(DIRECTORY scripts/suitesparse DESTINATION "${_scripts}/scripts")
install(FILES data/twins.csv DESTINATION "${_scripts}/data")

# Builds everything that is installed: the libraries, the program, and the modules of
# preconditioners and peers.
add_custom_target(spmv_installed)
add_dependencies(spmv_installed spmv_shared spmv_static)
foreach(folder app bench/peers solvers/modules distributed/modules)
  get_directory_property(targets DIRECTORY "${folder}" BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(EXECUTABLE|MODULE_LIBRARY)$")
      add_dependencies(spmv_installed ${target})
    endif()
  endforeach()
endforeach()

configure_package_config_file(cmake/spmvConfig.cmake.in spmvConfig.cmake INSTALL_DESTINATION "${_package}"
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(spmvConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/spmvConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/spmvConfigVersion.cmake"
  DESTINATION "${_package}")

# pkg-config: paths relative to the file itself, so that an installed tree can be moved.
# Dependencies of the static library are given by name: the user may have another compiler, whose
# -fopenmp selects another runtime.
file(RELATIVE_PATH SPMV_PC_PREFIX "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" SPMV_PC_PREFIX "${SPMV_PC_PREFIX}")
file(RELATIVE_PATH SPMV_PC_LIBDIR "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_LIBDIR}")
file(RELATIVE_PATH SPMV_PC_INCLUDEDIR "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
set(_private ${OpenMP_C_LIB_NAMES} ${SPMV_CXX_RUNTIME} m)
set(SPMV_PC_PRIVATE "")
if(SPMV_HAVE_CUDA)
  list(PREPEND _private cudart_static dl rt pthread)
  string(APPEND SPMV_PC_PRIVATE " -L${CUDAToolkit_LIBRARY_DIR}")
endif()
foreach(name IN LISTS _private)
  string(APPEND SPMV_PC_PRIVATE " -l${name}")
endforeach()
if(MMIO_LIBRARY)
  string(APPEND SPMV_PC_PRIVATE " ${MMIO_LIBRARY}")
endif()
configure_file(cmake/spmv.pc.in spmv.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/spmv.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
