/* Compressed texts (unpack.h), and members of archives, which libarchive reads. Only the headers
 * are needed to build; the libraries are opened at run time.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/packed/packed.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/io/packed/archive_library.h"
#include "formats/io/packed/unpack.h"

bool packed_begins(const char *head, int64_t bytes)
{
    enum { MAGIC_AT = 257, MAGIC_BYTES = 5 };
    return compression_of(head, (size_t)bytes) != COMPRESSION_NONE ||
           (bytes >= MAGIC_AT + MAGIC_BYTES && memcmp(head + MAGIC_AT, "ustar", MAGIC_BYTES) == 0);
}

#ifndef SPMV_HAVE_ARCHIVE

spmv_status packed_available(spmv_context *ctx, const char *name)
{
    return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                        "%.480s: compressed files and archives are not part of this build (libarchive was not found)",
                        name);
}

spmv_status packed_open(spmv_context *ctx, const char *name, const char *member, const struct packed_input *input,
                        const struct packed_limits *limits, struct packed **packed)
{
    (void)member;
    (void)input;
    (void)limits;
    *packed = NULL;
    return packed_available(ctx, name);
}

void packed_close(struct packed *packed)
{
    (void)packed;
}

spmv_status packed_read(struct packed *packed, char *to, int64_t bytes, int64_t *got)
{
    (void)packed;
    (void)to;
    (void)bytes;
    *got = 0;
    return SPMV_ERROR_UNSUPPORTED;
}

int64_t packed_taken(const struct packed *packed)
{
    (void)packed;
    return 0;
}

const char *packed_form_of(const struct packed *packed)
{
    (void)packed;
    return "";
}

bool packed_pack(enum compression compression, const char *text, int64_t bytes, char **to, int64_t *to_bytes)
{
    (void)compression;
    (void)text;
    (void)bytes;
    *to = NULL;
    *to_bytes = 0;
    return false;
}

spmv_status packed_can_pack(spmv_context *ctx, const char *name, enum compression compression)
{
    (void)compression;
    return packed_available(ctx, name);
}

#else

/* ---------------------------------------------------------------- the library */

spmv_status packed_available(spmv_context *ctx, const char *name)
{
    if (archive_library()->open)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                        "%.300s: libarchive, which packs and unpacks, cannot be opened: %.200s; install it (Debian, "
                        "Ubuntu: libarchive13)",
                        name, archive_library()->why);
}

/* ---------------------------------------------------------------- members */

enum { NAME_BYTES = 256, INPUT_BYTES = 256 << 10 };

struct packed {
    spmv_context *ctx;
    const char *name;
    const struct packed_input *input;
    struct packed_limits limits;
    struct unpack *unpack;
    struct archive *archive; /* NULL: not an archive */
    char *buffer;
    int64_t given; /* text bytes returned */
    bool ended;
    char form[16];
    /* the .mtx members of an archive, for the error message if the matrix is not found */
    int matrices;
    char first[NAME_BYTES], second[NAME_BYTES];
    spmv_status failed; /* status of the input */
};

static const char *base_of(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool same_stem(const char *base, size_t length, const char *name, size_t name_length)
{
    return length == name_length && memcmp(base, name, length) == 0;
}

/* "ldoor/ldoor.mtx", or "any/ldoor.mtx" in ldoor.tar.gz. */
static bool is_the_matrix(const char *path, const char *archive)
{
    const char *const base = base_of(path), *const own = base_of(archive);
    const size_t length = strlen(base);
    if (!path_ends_with(base, length, ".mtx"))
        return false;
    if (same_stem(base, length - 4, own, path_stem_length(own)))
        return true;
    if (base == path)
        return false;
    const char *folder = base - 1;
    while (folder > path && folder[-1] != '/')
        folder--;
    return same_stem(base, length - 4, folder, (size_t)(base - 1 - folder));
}

/* Whether member names this path: by the path, its last component, that without ".mtx", or (if it
 * begins with '_') the part after the name of the archive's matrix. */
static bool is_called(const char *path, const char *member, const char *archive)
{
    const char *const base = base_of(path), *const own = base_of(archive);
    const size_t length = strlen(base), stem = path_ends_with(base, length, ".mtx") ? length - 4 : length;
    if (strcmp(path, member) == 0 || strcmp(base, member) == 0 || same_stem(base, stem, member, strlen(member)))
        return true;
    const size_t n = path_stem_length(own), m = strlen(member);
    return member[0] == '_' && stem == n + m && memcmp(base, own, n) == 0 && memcmp(base + n, member, m) == 0;
}

/* Copies a name for messages; unprintable characters are replaced. */
static void show_name(const char *path, char shown[NAME_BYTES])
{
    size_t i = 0;
    for (; path[i] != '\0' && i < 100; i++)
        shown[i] = isprint((unsigned char)path[i]) ? path[i] : '?';
    shown[i] = '\0';
}

/* ---------------------------------------------------------------- reading */

static la_ssize_t on_read(struct archive *archive, void *user, const void **bytes)
{
    struct packed *const p = user;
    int64_t n = 0;
    (void)archive;
    p->failed = unpack_read(p->unpack, p->buffer, INPUT_BYTES, &n);
    *bytes = p->buffer;
    return p->failed != SPMV_OK ? ARCHIVE_FATAL : (la_ssize_t)n;
}

static spmv_status fail_damaged(struct packed *p)
{
    if (p->failed != SPMV_OK)
        return p->failed;
    const char *const why = archive_library()->archive_error_string(p->archive);
    return context_fail(
        p->ctx, SPMV_ERROR_FORMAT, "%.480s: damaged after %lld bytes of text (%lld packed bytes): %.200s", p->name,
        (long long)p->given, (long long)unpack_taken(p->unpack), why != NULL ? why : "no reason from libarchive");
}

/* An archive is recognised by the magic number in its first member's head or (older than POSIX) by
 * the checksum of that head, in which the checksum's own bytes count as blanks. */
static bool begins_as_tar(const char *head, int64_t bytes)
{
    enum { SUM_AT = 148, SUM_BYTES = 8 };
    const bool packed = packed_begins(head, bytes);
    char digits[SUM_BYTES + 1] = "";
    long sum = 0;
    if (packed || bytes < PACKED_HEAD || head[0] == '\0')
        return packed;
    for (int i = 0; i < PACKED_HEAD; i++)
        sum += i >= SUM_AT && i < SUM_AT + SUM_BYTES ? ' ' : (unsigned char)head[i];
    memcpy(digits, head + SUM_AT, SUM_BYTES);
    return strtol(digits, NULL, 8) == sum;
}

static spmv_status open_archive(struct packed *p)
{
    p->archive = archive_library()->archive_read_new();
    if (p->archive == NULL)
        return context_fail_memory(p->ctx, "unpacking a file", INPUT_BYTES);
    if (archive_library()->archive_read_support_format_tar(p->archive) != ARCHIVE_OK)
        return context_fail(p->ctx, SPMV_ERROR_UNSUPPORTED, "%.480s: this machine's libarchive cannot read tar",
                            p->name);
    return archive_library()->archive_read_open(p->archive, p, NULL, on_read, NULL) == ARCHIVE_OK ? SPMV_OK
                                                                                                  : fail_damaged(p);
}

static void close_all(struct packed *p)
{
    if (p->archive != NULL)
        archive_library()->archive_read_free(p->archive);
    p->archive = NULL;
    unpack_close(p->unpack);
    p->unpack = NULL;
}

static spmv_status begin(struct packed *p)
{
    int64_t n = 0;
    close_all(p);
    const spmv_status st = unpack_open(p->ctx, p->name, p->input, &p->limits, &p->unpack);
    if (st != SPMV_OK)
        return st;
    const char *const head = unpack_head(p->unpack, &n), *const form = unpack_form(p->unpack);
    const bool tar = begins_as_tar(head, n);
    snprintf(p->form, sizeof p->form, "%s%s%s", tar ? "tar" : "", tar && form[0] != '\0' ? "." : "", form);
    return tar ? open_archive(p) : SPMV_OK;
}

static void note_matrix(struct packed *p, const char *path)
{
    if (!path_ends_with(path, strlen(path), ".mtx"))
        return;
    if (p->matrices == 0)
        snprintf(p->first, sizeof p->first, "%s", path);
    else if (p->matrices == 1)
        snprintf(p->second, sizeof p->second, "%s", path);
    p->matrices++;
}

/* Advances to the text or to the member. member NULL: to the archive's matrix or, with any, to the
 * first one. Sets *found. */
static spmv_status find(struct packed *p, const char *member, bool any, bool *found)
{
    struct archive_entry *entry = NULL;
    *found = p->archive == NULL && member == NULL;
    while (p->archive != NULL && !*found) {
        const int r = archive_library()->archive_read_next_header(p->archive, &entry);
        if (r == ARCHIVE_EOF)
            return SPMV_OK;
        if (r < ARCHIVE_WARN)
            return fail_damaged(p);
        const char *path = archive_library()->archive_entry_pathname(entry);
        if (path == NULL)
            path = archive_library()->archive_entry_pathname_utf8(entry);
        if (path == NULL || archive_library()->archive_entry_filetype(entry) != AE_IFREG)
            continue;
        note_matrix(p, path);
        *found = any              ? p->matrices > 0
                 : member != NULL ? is_called(path, member, p->name)
                                  : is_the_matrix(path, p->name);
    }
    return SPMV_OK;
}

static spmv_status fail_missing(struct packed *p, const char *member)
{
    char first[NAME_BYTES], second[NAME_BYTES];
    show_name(p->first, first);
    show_name(p->second, second);
    if (p->archive == NULL)
        return context_fail(p->ctx, SPMV_ERROR_OPEN, "%.400s: not an archive, so it has no member %.100s", p->name,
                            member);
    if (member != NULL)
        return context_fail(p->ctx, SPMV_ERROR_OPEN, "%.400s: the archive has no member %.100s", p->name, member);
    if (p->matrices == 0)
        return context_fail(p->ctx, SPMV_ERROR_OPEN, "%.480s: the archive has no member whose name ends in .mtx",
                            p->name);
    return context_fail(p->ctx, SPMV_ERROR_OPEN,
                        "%.300s: the archive has %d %s, such as %.100s%s%.100s; give a name after a colon", p->name,
                        p->matrices, p->matrices > 1 ? "matrices" : "matrix", first, p->matrices > 1 ? " and " : "",
                        p->matrices > 1 ? second : "");
}

/* If no member is named like the archive, the only matrix is taken. It has been passed already, so
 * the archive is read again. */
static spmv_status take_the_only_one(struct packed *p, bool *found)
{
    if (p->matrices != 1 || p->input->rewind == NULL || !p->input->rewind(p->input->user))
        return SPMV_OK;
    p->matrices = 0;
    const spmv_status st = begin(p);
    return st == SPMV_OK ? find(p, NULL, true, found) : st;
}

spmv_status packed_open(spmv_context *ctx, const char *name, const char *member, const struct packed_input *input,
                        const struct packed_limits *limits, struct packed **packed)
{
    void *buffer = NULL;
    bool found = false;
    *packed = NULL;
    spmv_status st = packed_available(ctx, name);
    if (st != SPMV_OK)
        return st;
    struct packed *const p = calloc(1, sizeof *p);
    if (p == NULL)
        return context_fail_memory(ctx, "unpacking a file", (int64_t)sizeof *p);
    *packed = p;
    *p = (struct packed){.ctx = ctx, .name = name, .input = input, .limits = *limits};
    TRY(host_alloc(ctx, INPUT_BYTES, "unpacking a file", &buffer));
    p->buffer = buffer;
    TRY(begin(p));
    TRY(find(p, member, false, &found));
    if (!found && member == NULL)
        TRY(take_the_only_one(p, &found));
    if (!found) {
        p->ended = true;
        st = fail_missing(p, member);
    }
done:
    return st;
}

void packed_close(struct packed *packed)
{
    if (packed == NULL)
        return;
    close_all(packed);
    host_free(packed->buffer);
    free(packed);
}

/* Reads the rest of a compressed archive after the member, because its checksums are at the
 * end. */
static spmv_status read_to_the_end(struct packed *p)
{
    int64_t n = unpack_form(p->unpack)[0] != '\0';
    spmv_status st = SPMV_OK;
    while (n > 0 && st == SPMV_OK)
        st = unpack_read(p->unpack, p->buffer, INPUT_BYTES, &n);
    return st;
}

spmv_status packed_read(struct packed *p, char *to, int64_t bytes, int64_t *got)
{
    *got = 0;
    if (p->ended)
        return SPMV_OK;
    if (p->archive == NULL) {
        const spmv_status st = unpack_read(p->unpack, to, bytes, got);
        if (st != SPMV_OK)
            return st;
    } else {
        const la_ssize_t n = archive_library()->archive_read_data(p->archive, to, (size_t)bytes);
        if (n < 0)
            return fail_damaged(p);
        *got = (int64_t)n;
    }
    p->given += *got;
    p->ended = *got == 0;
    if (p->ended && p->archive != NULL)
        return read_to_the_end(p);
    if (p->given > p->limits.bytes)
        return context_fail(p->ctx, SPMV_ERROR_LIMIT, "%.480s: unpacks to more than the allowed %lld bytes", p->name,
                            (long long)p->limits.bytes);
    return SPMV_OK;
}

int64_t packed_taken(const struct packed *packed)
{
    return unpack_taken(packed->unpack);
}

const char *packed_form_of(const struct packed *packed)
{
    return packed->form;
}

/* ---------------------------------------------------------------- writing */

/* A filter for which libarchive would run a program is refused. gzip's time stamp is left empty, so
 * that the same matrix gives the same file. */
static bool add_filter(struct archive *a, enum compression compression)
{
    const struct archive_library *const lib = archive_library();
    bool fine = false;
    switch (compression) {
#define CASE(NAME, name, form, magic, other)                                                                           \
    case COMPRESSION_##NAME:                                                                                           \
        fine = lib->archive_write_add_filter_##name(a) == ARCHIVE_OK;                                                  \
        break;
        COMPRESSION_LIST(CASE)
#undef CASE
    case COMPRESSION_NONE:
        break;
    }
    if (compression == COMPRESSION_GZIP)
        fine = fine && lib->archive_write_set_filter_option(a, "gzip", "timestamp", NULL) == ARCHIVE_OK;
    return fine;
}

static bool pack_into(enum compression compression, const char *text, int64_t bytes, char *to, int64_t room,
                      size_t *used)
{
    const struct archive_library *const lib = archive_library();
    struct archive *const a = lib->archive_write_new();
    struct archive_entry *const entry = lib->archive_entry_new();
    bool fine = a != NULL && entry != NULL && add_filter(a, compression) &&
                lib->archive_write_set_format_raw(a) == ARCHIVE_OK &&
                lib->archive_write_set_bytes_per_block(a, 0) == ARCHIVE_OK &&
                lib->archive_write_open_memory(a, to, (size_t)room, used) == ARCHIVE_OK;
    if (fine) {
        lib->archive_entry_set_filetype(entry, AE_IFREG);
        fine = lib->archive_write_header(a, entry) == ARCHIVE_OK &&
               lib->archive_write_data(a, text, (size_t)bytes) == (la_ssize_t)bytes &&
               lib->archive_write_close(a) == ARCHIVE_OK;
    }
    if (entry != NULL)
        lib->archive_entry_free(entry);
    if (a != NULL)
        lib->archive_write_free(a);
    return fine;
}

bool packed_pack(enum compression compression, const char *text, int64_t bytes, char **to, int64_t *to_bytes)
{
    /* Incompressible data needs more room than the text: bzip2 needs the most, 1 % and 600
     * bytes. */
    const int64_t room = bytes + bytes / 50 + 4096;
    void *memory = NULL;
    size_t used = 0;
    if (!archive_library()->open || host_alloc(NULL, room, "", &memory) != SPMV_OK ||
        !pack_into(compression, text, bytes, memory, room, &used)) {
        host_free(memory);
        *to = NULL;
        *to_bytes = 0;
        return false;
    }
    *to = memory;
    *to_bytes = (int64_t)used;
    return true;
}

spmv_status packed_can_pack(spmv_context *ctx, const char *name, enum compression compression)
{
    const spmv_status st = packed_available(ctx, name);
    struct archive *const a = st == SPMV_OK ? archive_library()->archive_write_new() : NULL;
    const bool can = a != NULL && add_filter(a, compression);
    if (a != NULL)
        archive_library()->archive_write_free(a);
    return st != SPMV_OK || can
               ? st
               : context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                              "%.480s: this machine's libarchive does not support the compression", name);
}

#endif
