/* The slots of a backend's table that are the same for all backends whose context memory is host
 * memory. Included into the table.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
.close = host_memory_close,
.alloc = host_memory_alloc,
.free = host_memory_free,
.upload = host_memory_upload,
.download = host_memory_download,
.synchronize = host_memory_synchronize,
.segments_check = segments_check_host,
