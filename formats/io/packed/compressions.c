/* Compressions by their first bytes and by the endings of names: see compressions.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* strncasecmp is part of X/Open */
#define _XOPEN_SOURCE 700
#include "formats/io/packed/compressions.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *form, *ending;
    struct {
        const char *bytes;
        size_t count;
    } magic[2]; /* count 0: none */
} compressions[] = {[COMPRESSION_NONE] = {"", "", {{"", 0}, {"", 0}}},
#define ROW(NAME, name, form, magic, other)                                                                            \
    [COMPRESSION_##NAME] = {form, "." form, {{magic, sizeof magic - 1}, {other, sizeof other - 1}}},
                    COMPRESSION_LIST(ROW)
#undef ROW
};
enum { COMPRESSIONS = sizeof compressions / sizeof compressions[0] };

enum compression compression_of(const char *head, size_t bytes)
{
    for (int i = 0; i < COMPRESSIONS; i++)
        for (int k = 0; k < 2; k++) {
            const size_t count = compressions[i].magic[k].count;
            if (count > 0 && bytes >= count && memcmp(head, compressions[i].magic[k].bytes, count) == 0)
                return (enum compression)i;
        }
    return COMPRESSION_NONE;
}

const char *compression_form(enum compression compression)
{
    return compressions[compression].form;
}

bool path_ends_with(const char *path, size_t length, const char *ending)
{
    const size_t n = strlen(ending);
    return length > n && strncasecmp(path + length - n, ending, n) == 0;
}

enum compression cut_compression(const char *path, size_t *length)
{
    for (int i = COMPRESSION_NONE + 1; i < COMPRESSIONS; i++)
        if (path_ends_with(path, *length, compressions[i].ending)) {
            *length -= strlen(compressions[i].ending);
            return (enum compression)i;
        }
    return COMPRESSION_NONE;
}

size_t path_stem_length(const char *name)
{
    static const char *const endings[] = {".tgz", ".tar", ".mtx", ".spmv"};
    size_t length = strlen(name);
    while (cut_compression(name, &length) != COMPRESSION_NONE)
        continue;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (path_ends_with(name, length, endings[i]))
            length -= strlen(endings[i]);
    return length;
}
