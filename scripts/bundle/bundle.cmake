# Added to a build by scripts/bundle.sh: makes programs relocatable. Their libraries, and those that
# a library needs, are found relative to the program (--disable-new-dtags: DT_RPATH is inherited,
# DT_RUNPATH is not), and messages contain no path of this machine.
#
# SPDX-License-Identifier: BSD-3-Clause
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
add_link_options(LINKER:--disable-new-dtags)
add_compile_options(
  "$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>")
