# The headers that spmv/device.cuh includes: rungs of primitives/ and what they need of device/,
# copied into include/spmv/device/ of the build tree and installed from there. All copies are in one
# folder and include each other by name, without the folders of the source tree. Targets of the tree
# that include spmv/device.cuh link spmv_device_headers.
#
# SPDX-License-Identifier: BSD-3-Clause
set(SPMV_DEVICE_HEADERS
  device/block.cuh
  device/filter.cuh
  device/host_device.cuh
  device/launch.cuh
  device/lookback.cuh
  device/ops.cuh
  device/segments.cuh
  device/tiles.cuh
  device/vector_tiles.cuh
  primitives/compact/compact_2_count_write.cuh
  primitives/functors/device_context.cuh
  primitives/functors/device_rungs.cuh
  primitives/map/map_1_packs.cuh
  primitives/reduce/reduce_6_packs.cuh
  primitives/scan/scan_5_lookback.cuh
  primitives/segscan/segreduce_1_walk.cuh
  primitives/segscan/segscan_3_chunks.cuh
  primitives/segscan/segscan_5_lookback.cuh)
set(SPMV_DEVICE_INCLUDE "${PROJECT_BINARY_DIR}/device_include")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${SPMV_DEVICE_HEADERS})
foreach(header IN LISTS SPMV_DEVICE_HEADERS)
  get_filename_component(name "${header}" NAME)
  set(copy "${SPMV_DEVICE_INCLUDE}/spmv/device/${name}")
  file(READ "${PROJECT_SOURCE_DIR}/${header}" text)
  string(REGEX REPLACE "(#[ ]*include \")[^\"\n]*/" "\\1" text "${text}")
  set(before "")
  if(EXISTS "${copy}")
    file(READ "${copy}" before)
  endif()
  if(NOT text STREQUAL before) # an unchanged copy keeps its time
    file(WRITE "${copy}" "${text}")
  endif()
endforeach()
add_library(spmv_device_headers INTERFACE)
target_include_directories(spmv_device_headers INTERFACE "${PROJECT_SOURCE_DIR}/include" "${SPMV_DEVICE_INCLUDE}")
