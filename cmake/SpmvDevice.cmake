# The headers that spmv/device.cuh includes: rungs of primitives/, copied into include/spmv/device/ of the
# build tree and installed from there, so that they find each other by name as in the source tree.
# Targets of the tree that include spmv/device.cuh link spmv_device_headers.
#
# SPDX-License-Identifier: BSD-3-Clause
set(SPMV_DEVICE_HEADERS
  compact/compact_2_count_write.cuh
  device/device_context.cuh
  device/device_rungs.cuh
  map/map_1_packs.cuh
  reduce/reduce_6_packs.cuh
  runtime/block.cuh
  runtime/filter.cuh
  runtime/host_device.cuh
  runtime/launch.cuh
  runtime/lookback.cuh
  runtime/ops.cuh
  runtime/segments.cuh
  runtime/tiles.cuh
  runtime/vector_tiles.cuh
  scan/scan_5_lookback.cuh
  segscan/segreduce_1_walk.cuh
  segscan/segscan_1_chunks.cuh
  segscan/segscan_2_lookback.cuh)
set(SPMV_DEVICE_INCLUDE "${PROJECT_BINARY_DIR}/device_include")
foreach(header IN LISTS SPMV_DEVICE_HEADERS)
  get_filename_component(name "${header}" NAME)
  configure_file("primitives/${header}" "${SPMV_DEVICE_INCLUDE}/spmv/device/${name}" COPYONLY)
endforeach()
add_library(spmv_device_headers INTERFACE)
target_include_directories(spmv_device_headers INTERFACE "${PROJECT_SOURCE_DIR}/include" "${SPMV_DEVICE_INCLUDE}")
