/* The list of compressions of files, and what is derived from the ending of a name.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPRESSIONS_H
#define COMPRESSIONS_H

#include <stdbool.h>
#include <stddef.h>

/* X(NAME, name, form, magic, other): NAME and name as libarchive's filter, ARCHIVE_FILTER_NAME and
 * archive_write_add_filter_name. A file's name ends in "." form; the file begins with the bytes of
 * magic or, if that is not "", of other. gzip is unpacked by zlib (unpack.c), the others by
 * libarchive. Portions of a text are compressed one by one (text_portions.h), so a compressed text
 * must be able to follow another one in a file. */
#define COMPRESSION_LIST(X)                                                                                            \
    X(GZIP, gzip, "gz", "\x1f\x8b", "")                                                                                \
    X(XZ, xz, "xz", "\xfd\x37zXZ\0", "")                                                                               \
    X(ZSTD, zstd, "zst", "\x28\xb5\x2f\xfd", "\x50\x2a\x4d\x18") /* the other: of pzstd */                             \
    X(BZIP2, bzip2, "bz2", "BZh", "")

#define COMPRESSION_ENUM_(NAME, name, form, magic, other) COMPRESSION_##NAME,
enum compression { COMPRESSION_NONE, COMPRESSION_LIST(COMPRESSION_ENUM_) };
#undef COMPRESSION_ENUM_

/* The endings for messages: " .gz .xz" and so on. */
#define COMPRESSION_ENDING_(NAME, name, form, magic, other) " ." form
#define COMPRESSION_ENDINGS COMPRESSION_LIST(COMPRESSION_ENDING_)

/* The compression of a file that begins with these bytes. */
enum compression compression_of(const char *head, size_t bytes);

/* Its name in messages and results: "gz". "" for COMPRESSION_NONE. */
const char *compression_form(enum compression compression);

/* Whether path[0 .. length) ends with ending, in upper or lower case, after a non-empty name. */
bool path_ends_with(const char *path, size_t length, const char *ending);

/* Removes the ending of a compression from the length. */
enum compression cut_compression(const char *path, size_t *length);

/* Length of a file's name without the endings of archives, compressions, .mtx and .spmv. */
size_t path_stem_length(const char *name);

#endif
