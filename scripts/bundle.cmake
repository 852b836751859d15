# What scripts/bundle.sh adds to a build: programs that can be moved. Their libraries are found beside them, also those that
# a library needs (--disable-new-dtags: DT_RPATH is passed on, DT_RUNPATH is not), and no message holds a path of this machine.
#
# SPDX-License-Identifier: BSD-3-Clause
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
add_link_options(LINKER:--disable-new-dtags)
add_compile_options(
  "$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>")
