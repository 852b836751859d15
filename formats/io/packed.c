/* Unpacking through libarchive. Only its headers are needed to build; the library is opened at run time, as the machine
 * has it, for it brings a dozen others with it.
 *
 * A decompression bomb is met by its ratio: text may be some thousand times as long as what it is unpacked from, which
 * no matrix of different entries comes near, but for the first megabytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "packed.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef SPMV_HAVE_ARCHIVE
#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <pthread.h>
#endif

const char *packed_form(const char *head, int64_t bytes)
{
    static const struct {
        const char *form, *magic;
        int64_t at, length;
    } known[] = {
        {"gz", "\x1f\x8b", 0, 2}, {"xz", "\xfd\x37zXZ\0", 0, 6}, {"zst", "\x28\xb5\x2f\xfd", 0, 4},
        {"bz2", "BZh", 0, 3},     {"tar", "ustar", 257, 5},
    };
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (bytes >= known[k].at + known[k].length &&
            memcmp(head + known[k].at, known[k].magic, (size_t)known[k].length) == 0)
            return known[k].form;
    return NULL;
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

bool packed_gzip(const char *text, int64_t bytes, char **to, int64_t *to_bytes)
{
    (void)text;
    (void)bytes;
    *to = NULL;
    *to_bytes = 0;
    return false;
}

#else

/* ---------------------------------------------------------------- the library */

#define ARCHIVE_FUNCTIONS(X)                                                                                           \
    X(archive_read_new)                                                                                                \
    X(archive_read_free)                                                                                               \
    X(archive_read_support_filter_gzip)                                                                                \
    X(archive_read_support_filter_xz)                                                                                  \
    X(archive_read_support_filter_zstd)                                                                                \
    X(archive_read_support_filter_bzip2)                                                                               \
    X(archive_read_support_format_tar)                                                                                 \
    X(archive_read_support_format_raw)                                                                                 \
    X(archive_read_support_format_empty)                                                                               \
    X(archive_read_open)                                                                                               \
    X(archive_read_next_header)                                                                                        \
    X(archive_read_data)                                                                                               \
    X(archive_error_string)                                                                                            \
    X(archive_format)                                                                                                  \
    X(archive_filter_code)                                                                                             \
    X(archive_entry_pathname)                                                                                          \
    X(archive_entry_pathname_utf8)                                                                                     \
    X(archive_entry_filetype)                                                                                          \
    X(archive_entry_new)                                                                                               \
    X(archive_entry_free)                                                                                              \
    X(archive_entry_set_filetype)                                                                                      \
    X(archive_write_new)                                                                                               \
    X(archive_write_free)                                                                                              \
    X(archive_write_add_filter_gzip)                                                                                   \
    X(archive_write_set_format_raw)                                                                                    \
    X(archive_write_set_bytes_per_block)                                                                               \
    X(archive_write_open_memory)                                                                                       \
    X(archive_write_header)                                                                                            \
    X(archive_write_data)                                                                                              \
    X(archive_write_close)

static struct {
    bool open;
    char why[256];
#define POINTER(name) __typeof__(&name) name;
    ARCHIVE_FUNCTIONS(POINTER)
#undef POINTER
} lib;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_library(void)
{
#define ENTRY(name) {#name, &lib.name},
    static const struct {
        const char *name;
        void *pointer;
    } functions[] = {ARCHIVE_FUNCTIONS(ENTRY)};
#undef ENTRY
    void *library = dlopen("libarchive.so.13", RTLD_NOW | RTLD_LOCAL); /* stays open until the program ends */
    for (size_t i = 0; library != NULL && i < sizeof functions / sizeof functions[0]; i++) {
        void *const symbol = dlsym(library, functions[i].name);
        if (symbol == NULL)
            library = NULL;
        memcpy(functions[i].pointer, &symbol, sizeof symbol); /* C has no cast from an object to a function */
    }
    lib.open = library != NULL;
    if (!lib.open) {
        const char *const why = dlerror();
        snprintf(lib.why, sizeof lib.why, "%s", why != NULL ? why : "a function is missing");
    }
}

spmv_status packed_available(spmv_context *ctx, const char *name)
{
    pthread_once(&once, open_library);
    if (lib.open)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                        "%.300s: libarchive, which packs and unpacks, cannot be opened: %.200s; install it (Debian, "
                        "Ubuntu: libarchive13)",
                        name, lib.why);
}

/* ---------------------------------------------------------------- members */

enum { NAME_BYTES = 256, INPUT_BYTES = 256 << 10 };

struct packed {
    spmv_context *ctx;
    const char *name;
    const struct packed_input *input;
    struct packed_limits limits;
    struct archive *archive;
    char *buffer;
    int64_t taken, given; /* packed bytes read, text bytes handed out */
    spmv_status failed;   /* of the input */
    bool ended;
    char form[16];
    bool summed;           /* gzip alone: its checksum is compared, for libarchive does not */
    uint32_t sum;          /* of the text so far */
    unsigned char tail[8]; /* the last packed bytes */
    /* what an archive without the member looked for has instead */
    int matrices;
    char first[NAME_BYTES], second[NAME_BYTES];
};

static const char *base_of(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool ends_with(const char *text, size_t length, const char *ending)
{
    const size_t n = strlen(ending);
    if (length < n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (tolower((unsigned char)text[length - n + i]) != ending[i])
            return false;
    return true;
}

/* Length of the name without the endings of archives and compressed files. */
static size_t stem_length(const char *name)
{
    static const char *const endings[] = {".gz", ".xz", ".zst", ".bz2", ".tgz", ".tar", ".mtx"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (ends_with(name, length, endings[i]))
            length -= strlen(endings[i]);
    return length;
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
    if (!ends_with(base, length, ".mtx"))
        return false;
    if (same_stem(base, length - 4, own, stem_length(own)))
        return true;
    if (base == path)
        return false;
    const char *folder = base - 1;
    while (folder > path && folder[-1] != '/')
        folder--;
    return same_stem(base, length - 4, folder, (size_t)(base - 1 - folder));
}

/* The member's path, its last part, that without ".mtx", or (from '_' on) what follows the name of the archive's
 * matrix. */
static bool is_called(const char *path, const char *member, const char *archive)
{
    const char *const base = base_of(path), *const own = base_of(archive);
    const size_t length = strlen(base), stem = ends_with(base, length, ".mtx") ? length - 4 : length;
    if (strcmp(path, member) == 0 || strcmp(base, member) == 0 || same_stem(base, stem, member, strlen(member)))
        return true;
    const size_t n = stem_length(own), m = strlen(member);
    return member[0] == '_' && stem == n + m && memcmp(base, own, n) == 0 && memcmp(base + n, member, m) == 0;
}

/* For sentences: what does not print is replaced. */
static void show_name(const char *path, char shown[NAME_BYTES])
{
    size_t i = 0;
    for (; path[i] != '\0' && i < 100; i++)
        shown[i] = isprint((unsigned char)path[i]) ? path[i] : '?';
    shown[i] = '\0';
}

/* ---------------------------------------------------------------- gzip's checksum */

/* CRC-32 as RFC 1952 has it, eight bytes at a time: table[k][b] is what byte b does k bytes further on. M. E. Kounavis,
 * F. L. Berry, "Novel table lookup-based algorithms for high-performance CRC generation", IEEE Transactions on
 * Computers 57, 2008. */
static uint32_t crc_table[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void make_crc_table(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t c = b;
        for (int bit = 0; bit < 8; bit++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
        crc_table[0][b] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            crc_table[k][b] = crc_table[k - 1][b] >> 8 ^ crc_table[0][crc_table[k - 1][b] & 0xff];
}

static uint32_t crc_add(uint32_t crc, const char *text, int64_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        const uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        crc = crc_table[7][low & 0xff] ^ crc_table[6][low >> 8 & 0xff] ^ crc_table[5][low >> 16 & 0xff] ^
              crc_table[4][low >> 24] ^ crc_table[3][p[4]] ^ crc_table[2][p[5]] ^ crc_table[1][p[6]] ^
              crc_table[0][p[7]];
    }
    for (; n > 0; n--)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *p++) & 0xff];
    return ~crc;
}

static uint32_t little(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The file ends with checksum and length of its text, or, where it has several pieces, of the last: then the lengths
 * differ, and nothing is known. */
static bool sum_is_wrong(const struct packed *p)
{
    return p->summed && little(p->tail + 4) == (uint32_t)p->given && little(p->tail) != p->sum;
}

/* ---------------------------------------------------------------- reading */

static la_ssize_t on_read(struct archive *archive, void *user, const void **bytes)
{
    struct packed *const p = user;
    (void)archive;
    const int64_t n = p->input->read(p->input->user, p->buffer, INPUT_BYTES, &p->failed);
    *bytes = p->buffer;
    p->taken += max_i64(n, 0);
    const size_t last = n >= 8 ? 8 : (size_t)max_i64(n, 0);
    memmove(p->tail, p->tail + last, 8 - last);
    memcpy(p->tail + 8 - last, p->buffer + max_i64(n, 0) - last, last);
    return n < 0 ? ARCHIVE_FATAL : (la_ssize_t)n;
}

/* A filter that libarchive would leave to a program is none. */
static bool support(struct archive *a)
{
    const bool compressed = lib.archive_read_support_filter_gzip(a) == ARCHIVE_OK &&
                            lib.archive_read_support_filter_bzip2(a) == ARCHIVE_OK &&
                            lib.archive_read_support_filter_xz(a) == ARCHIVE_OK &&
                            lib.archive_read_support_filter_zstd(a) == ARCHIVE_OK;
    return compressed && lib.archive_read_support_format_tar(a) == ARCHIVE_OK &&
           lib.archive_read_support_format_raw(a) == ARCHIVE_OK &&
           lib.archive_read_support_format_empty(a) == ARCHIVE_OK;
}

static spmv_status fail_damaged(struct packed *p)
{
    if (p->failed != SPMV_OK)
        return p->failed;
    const char *const why = lib.archive_error_string(p->archive);
    return context_fail(p->ctx, SPMV_ERROR_FORMAT,
                        "%.480s: damaged after %lld bytes of text (%lld packed ones): %.200s", p->name,
                        (long long)p->given, (long long)p->taken, why != NULL ? why : "libarchive does not say why");
}

static spmv_status begin(struct packed *p)
{
    if (p->archive != NULL)
        lib.archive_read_free(p->archive);
    p->taken = 0;
    p->archive = lib.archive_read_new();
    if (p->archive == NULL)
        return context_fail_memory(p->ctx, "unpacking a file", INPUT_BYTES);
    if (!support(p->archive))
        return context_fail(p->ctx, SPMV_ERROR_UNSUPPORTED, "%.480s: this machine's libarchive lacks a compression",
                            p->name);
    return lib.archive_read_open(p->archive, p, NULL, on_read, NULL) == ARCHIVE_OK ? SPMV_OK : fail_damaged(p);
}

static const char *filter_name(int code)
{
    switch (code) {
    case ARCHIVE_FILTER_GZIP:
        return "gz";
    case ARCHIVE_FILTER_XZ:
        return "xz";
    case ARCHIVE_FILTER_ZSTD:
        return "zst";
    case ARCHIVE_FILTER_BZIP2:
        return "bz2";
    default:
        return "";
    }
}

static void note_form(struct packed *p)
{
    const bool raw = lib.archive_format(p->archive) == ARCHIVE_FORMAT_RAW;
    const char *const filter = filter_name(lib.archive_filter_code(p->archive, 0));
    p->summed = raw && lib.archive_filter_code(p->archive, 0) == ARCHIVE_FILTER_GZIP &&
                lib.archive_filter_code(p->archive, 1) == ARCHIVE_FILTER_NONE;
    snprintf(p->form, sizeof p->form, "%s%s%s", raw ? "" : "tar", raw || filter[0] == '\0' ? "" : ".", filter);
}

static void note_matrix(struct packed *p, const char *path)
{
    if (!ends_with(path, strlen(path), ".mtx"))
        return;
    if (p->matrices == 0)
        snprintf(p->first, sizeof p->first, "%s", path);
    else if (p->matrices == 1)
        snprintf(p->second, sizeof p->second, "%s", path);
    p->matrices++;
}

/* Goes on to the text or to the member; exact: the member's path (of an earlier look); *found. */
static spmv_status find(struct packed *p, const char *member, const char *exact, bool *found)
{
    struct archive_entry *entry = NULL;
    for (*found = false; !*found;) {
        const int r = lib.archive_read_next_header(p->archive, &entry);
        if (r == ARCHIVE_EOF)
            return SPMV_OK;
        if (r < ARCHIVE_WARN)
            return fail_damaged(p);
        note_form(p);
        if (lib.archive_format(p->archive) == ARCHIVE_FORMAT_RAW) {
            *found = member == NULL;
            return SPMV_OK;
        }
        const char *path = lib.archive_entry_pathname(entry);
        if (path == NULL)
            path = lib.archive_entry_pathname_utf8(entry);
        if (path == NULL || lib.archive_entry_filetype(entry) != AE_IFREG)
            continue;
        note_matrix(p, path);
        *found = exact != NULL    ? strcmp(path, exact) == 0
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
    if (p->form[0] == '\0' && member == NULL)
        return SPMV_OK; /* an empty text */
    if (p->form[0] != '\0' && strncmp(p->form, "tar", 3) != 0)
        return context_fail(p->ctx, SPMV_ERROR_OPEN, "%.400s: no archive, so it has no member %.100s", p->name, member);
    if (member != NULL)
        return context_fail(p->ctx, SPMV_ERROR_OPEN, "%.400s: the archive has no member %.100s", p->name, member);
    if (p->matrices == 0)
        return context_fail(p->ctx, SPMV_ERROR_OPEN, "%.480s: the archive has no member whose name ends in .mtx",
                            p->name);
    return context_fail(p->ctx, SPMV_ERROR_OPEN,
                        "%.300s: the archive has %d matrices, %.100s and %.100s for two; name one behind a colon",
                        p->name, p->matrices, first, p->matrices > 1 ? second : "");
}

/* No member has the name that the matrix of an archive has: the only one will do. It has gone by, so once more. */
static spmv_status take_the_only_one(struct packed *p, bool *found)
{
    char only[NAME_BYTES];
    if (p->matrices != 1 || p->input->rewind == NULL || !p->input->rewind(p->input->user))
        return SPMV_OK;
    memcpy(only, p->first, sizeof only);
    const spmv_status st = begin(p);
    return st == SPMV_OK ? find(p, NULL, only, found) : st;
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
    pthread_once(&crc_once, make_crc_table);
    struct packed *const p = calloc(1, sizeof *p);
    if (p == NULL)
        return context_fail_memory(ctx, "unpacking a file", (int64_t)sizeof *p);
    *packed = p;
    *p = (struct packed){.ctx = ctx, .name = name, .input = input, .limits = *limits};
    TRY(host_alloc(ctx, INPUT_BYTES, "unpacking a file", &buffer));
    p->buffer = buffer;
    TRY(begin(p));
    TRY(find(p, member, NULL, &found));
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
    if (packed->archive != NULL)
        lib.archive_read_free(packed->archive);
    host_free(packed->buffer);
    free(packed);
}

/* The first so many bytes of text may come from anything. */
enum { UNPACKED_FREELY = 16 << 20 };

spmv_status packed_read(struct packed *p, char *to, int64_t bytes, int64_t *got)
{
    *got = 0;
    if (p->ended)
        return SPMV_OK;
    const la_ssize_t n = lib.archive_read_data(p->archive, to, (size_t)bytes);
    if (n < 0)
        return fail_damaged(p);
    *got = (int64_t)n;
    p->given += *got;
    p->ended = n == 0;
    if (p->summed)
        p->sum = crc_add(p->sum, to, *got);
    if (p->ended && sum_is_wrong(p))
        return context_fail(p->ctx, SPMV_ERROR_FORMAT, "%.480s: damaged: the checksum of its text does not match",
                            p->name);
    if (p->given > p->limits.bytes)
        return context_fail(p->ctx, SPMV_ERROR_LIMIT, "%.480s: unpacks to more than the %lld bytes that are allowed",
                            p->name, (long long)p->limits.bytes);
    if (p->given > UNPACKED_FREELY && p->given / p->limits.ratio > p->taken)
        return context_fail(p->ctx, SPMV_ERROR_LIMIT,
                            "%.480s: %lld bytes unpack to %lld and more: over %lld times as many, which is the limit",
                            p->name, (long long)p->taken, (long long)p->given, (long long)p->limits.ratio);
    return SPMV_OK;
}

int64_t packed_taken(const struct packed *packed)
{
    return packed->taken;
}

const char *packed_form_of(const struct packed *packed)
{
    return packed->form;
}

/* ---------------------------------------------------------------- writing */

static bool gzip_into(const char *text, int64_t bytes, char *to, int64_t room, size_t *used)
{
    struct archive *const a = lib.archive_write_new();
    struct archive_entry *const entry = lib.archive_entry_new();
    bool fine = a != NULL && entry != NULL && lib.archive_write_add_filter_gzip(a) == ARCHIVE_OK &&
                lib.archive_write_set_format_raw(a) == ARCHIVE_OK &&
                lib.archive_write_set_bytes_per_block(a, 0) == ARCHIVE_OK &&
                lib.archive_write_open_memory(a, to, (size_t)room, used) == ARCHIVE_OK;
    if (fine) {
        lib.archive_entry_set_filetype(entry, AE_IFREG);
        fine = lib.archive_write_header(a, entry) == ARCHIVE_OK &&
               lib.archive_write_data(a, text, (size_t)bytes) == (la_ssize_t)bytes &&
               lib.archive_write_close(a) == ARCHIVE_OK;
    }
    if (entry != NULL)
        lib.archive_entry_free(entry);
    if (a != NULL)
        lib.archive_write_free(a);
    return fine;
}

bool packed_gzip(const char *text, int64_t bytes, char **to, int64_t *to_bytes)
{
    /* what deflate cannot shorten it stores, in pieces of 64 KiB with five bytes each; and the frame */
    const int64_t room = bytes + bytes / 1000 + 1024;
    void *memory = NULL;
    size_t used = 0;
    pthread_once(&once, open_library);
    if (!lib.open || host_alloc(NULL, room, "", &memory) != SPMV_OK || !gzip_into(text, bytes, memory, room, &used)) {
        host_free(memory);
        *to = NULL;
        *to_bytes = 0;
        return false;
    }
    *to = memory;
    *to_bytes = (int64_t)used;
    return true;
}

#endif
