/* Endings of file names. The ending of a kind of file that is not written is an error, because
 * readers rely on it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/output_form.h"

#include <string.h>

/* The ending of an archive, or of a compression that cannot be written; NULL: neither. */
static const char *foreign_ending(const char *path, size_t length)
{
    static const char *const endings[] = {".tar", ".tgz", ".txz", ".tbz",  ".tbz2", ".tzst", ".zip", ".7z",  ".rar",
                                          ".Z",   ".lz",  ".lz4", ".lzma", ".lzo",  ".br",   ".bz",  ".zstd"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (path_ends_with(path, length, endings[i]))
            return endings[i];
    return NULL;
}

spmv_status output_form_of(spmv_context *ctx, const char *path, struct output_form *form)
{
    size_t length = strlen(path);
    *form = (struct output_form){.content = OUTPUT_OTHER};
    form->compression = cut_compression(path, &length);
    if (foreign_ending(path, length) != NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "%.300s: %s cannot be written; supported compressions:" COMPRESSION_ENDINGS, path,
                            foreign_ending(path, length));
    size_t inner = length;
    if (form->compression != COMPRESSION_NONE && cut_compression(path, &inner) != COMPRESSION_NONE)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%.300s: only one compression is possible: use one such ending",
                            path);
    form->exchange = exchange_ending(path, length);
    form->content = path_ends_with(path, length, ".mtx")    ? OUTPUT_MTX
                    : path_ends_with(path, length, ".spmv") ? OUTPUT_BINARY
                    : form->exchange != NULL                ? OUTPUT_EXCHANGE
                                                            : OUTPUT_OTHER;
    if (form->compression == COMPRESSION_NONE)
        return SPMV_OK;
    if (form->content == OUTPUT_BINARY)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "%.300s: the binary form cannot be compressed: it is mapped into memory; use a name that "
                            "ends in .spmv",
                            path);
    return packed_can_pack(ctx, path, form->compression);
}
