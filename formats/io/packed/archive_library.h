/* libarchive and zlib, opened at run time if the machine has them. Their headers are needed to
 * build.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef ARCHIVE_LIBRARY_H
#define ARCHIVE_LIBRARY_H

#include "core/runtime.h"
#include "formats/io/packed/compressions.h"

#ifdef SPMV_HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#define ARCHIVE_FUNCTIONS(X)                                                                                           \
    X(archive_read_new)                                                                                                \
    X(archive_read_free)                                                                                               \
    X(archive_read_append_filter)                                                                                      \
    X(archive_read_support_format_tar)                                                                                 \
    X(archive_read_support_format_raw)                                                                                 \
    X(archive_read_support_format_empty)                                                                               \
    X(archive_read_open)                                                                                               \
    X(archive_read_next_header)                                                                                        \
    X(archive_read_data)                                                                                               \
    X(archive_error_string)                                                                                            \
    X(archive_entry_pathname)                                                                                          \
    X(archive_entry_pathname_utf8)                                                                                     \
    X(archive_entry_filetype)                                                                                          \
    X(archive_entry_new)                                                                                               \
    X(archive_entry_free)                                                                                              \
    X(archive_entry_set_filetype)                                                                                      \
    X(archive_write_new)                                                                                               \
    X(archive_write_free)                                                                                              \
    X(archive_write_set_filter_option)                                                                                 \
    X(archive_write_set_format_raw)                                                                                    \
    X(archive_write_set_bytes_per_block)                                                                               \
    X(archive_write_open_memory)                                                                                       \
    X(archive_write_header)                                                                                            \
    X(archive_write_data)                                                                                              \
    X(archive_write_close)

#define ZLIB_FUNCTIONS(X)                                                                                              \
    X(inflateInit2_)                                                                                                   \
    X(inflate)                                                                                                         \
    X(inflateReset)                                                                                                    \
    X(inflateEnd)

struct archive_library {
    bool open;      /* both */
    bool zlib_open; /* zlib */
    char why[256];  /* the reason if one is not open */
#define POINTER(name) __typeof__(&name) name;
    ARCHIVE_FUNCTIONS(POINTER)
    ZLIB_FUNCTIONS(POINTER)
#define FILTER(NAME, name, form, magic, other) POINTER(archive_write_add_filter_##name)
    COMPRESSION_LIST(FILTER)
#undef FILTER
#undef POINTER
};

/* The functions of both libraries. The first call opens them; any thread may call. */
const struct archive_library *archive_library(void);

#endif
#endif
