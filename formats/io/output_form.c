/* Endings of file names. The ending of a kind of file that is not written is an error, because
 * readers rely on it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* strncasecmp is part of X/Open */
#define _XOPEN_SOURCE 700
#include "output_form.h"

#include <strings.h>

static bool ends_with(const char *path, size_t length, const char *ending)
{
    const size_t n = strlen(ending);
    return length > n && strncasecmp(path + length - n, ending, n) == 0;
}

bool path_ends_with(const char *path, const char *ending)
{
    return ends_with(path, strlen(path), ending);
}

static const struct {
    const char *ending;
    enum packing packing;
} packings[] = {{".gz", PACKING_GZIP}, {".xz", PACKING_XZ}, {".zst", PACKING_ZSTD}, {".bz2", PACKING_BZIP2}};
enum { PACKINGS = sizeof packings / sizeof packings[0] };

/* Removes the ending of a compression from the length. */
static enum packing cut_packing(const char *path, size_t *length)
{
    for (int i = 0; i < PACKINGS; i++)
        if (ends_with(path, *length, packings[i].ending)) {
            *length -= strlen(packings[i].ending);
            return packings[i].packing;
        }
    return PACKING_NONE;
}

/* The ending of an archive, or of a compression that cannot be written; NULL: neither. */
static const char *foreign_ending(const char *path, size_t length)
{
    static const char *const endings[] = {".tar", ".tgz", ".txz", ".tbz",  ".tbz2", ".tzst", ".zip", ".7z",  ".rar",
                                          ".Z",   ".lz",  ".lz4", ".lzma", ".lzo",  ".br",   ".bz",  ".zstd"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (ends_with(path, length, endings[i]))
            return endings[i];
    return NULL;
}

spmv_status output_form_of(spmv_context *ctx, const char *path, struct output_form *form)
{
    size_t length = strlen(path);
    *form = (struct output_form){OUTPUT_OTHER, PACKING_NONE};
    form->packing = cut_packing(path, &length);
    if (foreign_ending(path, length) != NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "%.300s: %s cannot be written; supported compressions: .gz, .xz, .zst and .bz2", path,
                            foreign_ending(path, length));
    size_t inner = length;
    if (form->packing != PACKING_NONE && cut_packing(path, &inner) != PACKING_NONE)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%.300s: only one compression is possible: use one such ending",
                            path);
    form->content = ends_with(path, length, ".mtx")    ? OUTPUT_MTX
                    : ends_with(path, length, ".spmv") ? OUTPUT_BINARY
                                                       : OUTPUT_OTHER;
    if (form->packing == PACKING_NONE)
        return SPMV_OK;
    if (form->content == OUTPUT_BINARY)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "%.300s: the binary form cannot be compressed: it is mapped into memory; use a name that "
                            "ends in .spmv",
                            path);
    return packed_can_pack(ctx, path, form->packing);
}
