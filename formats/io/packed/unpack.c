/* Unpacks in stages. Each stage decompresses the output of the stage below; the lowest one reads
 * the input. gzip uses zlib, because it checks length and checksum of every member and libarchive
 * does not. A caller that reads an archive reads all stages to the end, so that damage after the
 * member is found too.
 *
 * Decompression bombs are detected by their ratio: the output of a stage is limited to a multiple
 * of the input. The limit holds for every stage, so an inner stage that unpacks gigabytes is
 * detected even if the final text is short. The first megabytes of each stage do not count.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/packed/unpack.h"

#ifdef SPMV_HAVE_ARCHIVE

#include <stdlib.h>

#include "formats/io/packed/archive_library.h"

/* UNPACKED_FREELY: bytes of each stage that do not count for the ratio. */
enum { STAGES = 8, INPUT_BYTES = 256 << 10, UNPACKED_FREELY = 16 << 20 };

struct stage {
    struct unpack *all;
    struct stage *below; /* NULL: reads the input */
    char *buffer;        /* INPUT_BYTES bytes from below */
    bool below_ended;
    /* gzip */
    bool gzip, zlib_open, in_member, any_member;
    z_stream zlib;
    /* the other compressions */
    struct archive *archive;
    int64_t given; /* bytes produced */
    bool ended;
    struct packed_head head;
};

struct unpack {
    spmv_context *ctx;
    const char *name;
    const struct packed_input *input;
    const struct packed_limits *limits;
    const struct archive_library *lib;
    const char *form;
    int64_t taken;
    spmv_status failed; /* the message is set already */
    int count;
    struct stage stage[STAGES];
    struct packed_head head; /* of the input */
};

static int64_t stage_read(struct stage *s, char *to, int64_t bytes);

/* Reads bytes of the input; -1 after an error. */
static int64_t input_read(struct unpack *u, char *to, int64_t bytes)
{
    int64_t n = packed_head_give(&u->head, to, bytes);
    if (n > 0)
        return n;
    n = u->input->read(u->input->user, to, bytes, &u->failed);
    u->taken += max_i64(n, 0);
    return n;
}

static int64_t below_read(struct stage *s)
{
    const int64_t n =
        s->below != NULL ? stage_read(s->below, s->buffer, INPUT_BYTES) : input_read(s->all, s->buffer, INPUT_BYTES);
    s->below_ended = n <= 0;
    return n;
}

static int64_t fail_damaged(struct stage *s, const char *why)
{
    struct unpack *const u = s->all;
    if (u->failed == SPMV_OK)
        u->failed = context_fail(u->ctx, SPMV_ERROR_FORMAT,
                                 "%.480s: damaged after %lld bytes of text (%lld packed bytes): %.200s", u->name,
                                 (long long)s->given, (long long)u->taken, why != NULL ? why : "unknown reason");
    return -1;
}

/* ---------------------------------------------------------------- gzip */

static int64_t fail_zlib(struct stage *s, int result)
{
    struct unpack *const u = s->all;
    const char *const why = s->zlib.msg;
    if (result == Z_MEM_ERROR)
        u->failed = context_fail_memory(u->ctx, "unpacking a file", INPUT_BYTES);
    else if (why != NULL && strcmp(why, "incorrect data check") == 0)
        return fail_damaged(s, "the checksum of its text does not match");
    else if (why != NULL && strcmp(why, "incorrect length check") == 0)
        return fail_damaged(s, "the length of its text does not match");
    return fail_damaged(s, why);
}

/* A member may be followed by another one, and by zeros as padding. */
static void skip_zeros(struct stage *s)
{
    while (s->any_member && s->zlib.avail_in > 0 && *s->zlib.next_in == 0) {
        s->zlib.next_in++;
        s->zlib.avail_in--;
    }
}

static int64_t gzip_read(struct stage *s, char *to, int64_t bytes)
{
    z_stream *const z = &s->zlib;
    const uInt room = (uInt)min_i64(bytes, 1 << 30);
    z->next_out = (Bytef *)to;
    z->avail_out = room;
    while (z->avail_out == room) {
        if (!s->in_member)
            skip_zeros(s);
        if (z->avail_in == 0) {
            const int64_t n = s->below_ended ? 0 : below_read(s);
            if (n < 0)
                return -1;
            if (n == 0 && s->in_member)
                return fail_damaged(s, "it is truncated");
            if (n == 0)
                return 0;
            z->next_in = (Bytef *)s->buffer;
            z->avail_in = (uInt)n;
            continue;
        }
        s->in_member = s->any_member = true;
        const int result = s->all->lib->inflate(z, Z_NO_FLUSH);
        if (result == Z_STREAM_END) {
            s->in_member = false;
            s->all->lib->inflateReset(z);
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return fail_zlib(s, result);
        }
    }
    return (int64_t)(room - z->avail_out);
}

static bool gzip_open(struct stage *s)
{
    enum { GZIP_ALONE = 16 + MAX_WBITS };
    const int result = s->all->lib->inflateInit2_(&s->zlib, GZIP_ALONE, ZLIB_VERSION, (int)sizeof s->zlib);
    s->zlib_open = result == Z_OK;
    if (!s->zlib_open)
        fail_zlib(s, Z_MEM_ERROR);
    return s->zlib_open;
}

/* ---------------------------------------------------------------- the others, by libarchive */

static la_ssize_t on_read(struct archive *archive, void *user, const void **bytes)
{
    struct stage *const s = user;
    (void)archive;
    *bytes = s->buffer;
    const int64_t n = s->below_ended ? 0 : below_read(s);
    return n < 0 ? ARCHIVE_FATAL : (la_ssize_t)n;
}

/* Sets the single filter of the stage. A filter that is only enabled
 * (archive_read_support_filter_...) would be applied as often as its magic number is found, without
 * counting the output of the inner ones. A result other than ARCHIVE_OK means that libarchive would
 * run a program, which is refused. */
static bool set_filter(const struct archive_library *lib, struct archive *a, enum compression compression)
{
    static const int codes[] = {
#define CODE(NAME, name, form, magic, other) [COMPRESSION_##NAME] = ARCHIVE_FILTER_##NAME,
        COMPRESSION_LIST(CODE)
#undef CODE
    };
    return lib->archive_read_append_filter(a, codes[compression]) == ARCHIVE_OK &&
           lib->archive_read_support_format_raw(a) == ARCHIVE_OK &&
           lib->archive_read_support_format_empty(a) == ARCHIVE_OK;
}

static bool filter_open(struct stage *s, enum compression compression)
{
    struct unpack *const u = s->all;
    struct archive_entry *entry = NULL;
    s->archive = u->lib->archive_read_new();
    if (s->archive == NULL) {
        u->failed = context_fail_memory(u->ctx, "unpacking a file", INPUT_BYTES);
        return false;
    }
    if (!set_filter(u->lib, s->archive, compression)) {
        u->failed = context_fail(u->ctx, SPMV_ERROR_UNSUPPORTED,
                                 "%.480s: this machine's libarchive cannot unpack the compression %s", u->name,
                                 compression_form(compression));
        return false;
    }
    /* If a stream ends before its first byte of text, the only sign is this error text; without the
     * check it would be taken for an empty stream. */
    const bool opened = u->lib->archive_read_open(s->archive, s, NULL, on_read, NULL) == ARCHIVE_OK &&
                        u->lib->archive_error_string(s->archive) == NULL;
    const int result = opened ? u->lib->archive_read_next_header(s->archive, &entry) : ARCHIVE_FATAL;
    s->ended = result == ARCHIVE_EOF;
    if (result < ARCHIVE_WARN)
        fail_damaged(s, u->lib->archive_error_string(s->archive));
    return u->failed == SPMV_OK;
}

static int64_t filter_read(struct stage *s, char *to, int64_t bytes)
{
    const la_ssize_t n = s->all->lib->archive_read_data(s->archive, to, (size_t)bytes);
    return n >= 0 ? (int64_t)n : fail_damaged(s, s->all->lib->archive_error_string(s->archive));
}

/* ---------------------------------------------------------------- stages */

/* Produces up to bytes > 0 bytes; 0 at the end, -1 after an error. */
static int64_t stage_make(struct stage *s, char *to, int64_t bytes)
{
    struct unpack *const u = s->all;
    const int64_t ratio = u->limits->ratio;
    if (s->ended || u->failed != SPMV_OK)
        return s->ended ? 0 : -1;
    const int64_t n = s->gzip ? gzip_read(s, to, bytes) : filter_read(s, to, bytes);
    s->ended = n == 0;
    s->given += max_i64(n, 0);
    if (n < 0 || s->given <= UNPACKED_FREELY || s->given / ratio <= u->taken)
        return n;
    u->failed = context_fail(u->ctx, SPMV_ERROR_LIMIT,
                             "%.480s: %lld bytes unpack to %lld or more%s: more than the limit of %lld times as many",
                             u->name, (long long)u->taken, (long long)s->given,
                             s < &u->stage[u->count - 1] ? " in an inner compression" : "", (long long)ratio);
    return -1;
}

static int64_t stage_read(struct stage *s, char *to, int64_t bytes)
{
    const int64_t n = packed_head_give(&s->head, to, bytes);
    return n > 0 ? n : stage_make(s, to, bytes);
}

static bool read_head(struct stage *s)
{
    int64_t n = 1;
    while (s->head.bytes < PACKED_HEAD && n > 0) {
        n = stage_make(s, s->head.byte + s->head.bytes, PACKED_HEAD - s->head.bytes);
        s->head.bytes += max_i64(n, 0);
    }
    return n >= 0;
}

/* Adds a stage for the compression on top of the others. */
static bool add_stage(struct unpack *u, enum compression compression)
{
    struct stage *const s = &u->stage[u->count];
    void *buffer = NULL;
    if (u->count == STAGES) {
        u->failed = context_fail(u->ctx, SPMV_ERROR_LIMIT, "%.480s: compressed more than %d times", u->name, STAGES);
        return false;
    }
    *s = (struct stage){.all = u, .below = u->count > 0 ? s - 1 : NULL, .gzip = compression == COMPRESSION_GZIP};
    if (u->count++ == 0)
        u->form = compression_form(compression);
    u->failed = host_alloc(u->ctx, INPUT_BYTES, "unpacking a file", &buffer);
    s->buffer = buffer;
    return u->failed == SPMV_OK && (s->gzip ? gzip_open(s) : filter_open(s, compression)) && read_head(s);
}

const char *unpack_head(const struct unpack *u, int64_t *bytes)
{
    const struct stage *const top = u->count > 0 ? &u->stage[u->count - 1] : NULL;
    const struct packed_head *const head = top != NULL ? &top->head : &u->head;
    *bytes = head->bytes;
    return head->byte;
}

/* The compression of the top stage's output. */
static enum compression top_compression(const struct unpack *u)
{
    int64_t n = 0;
    const char *const head = unpack_head(u, &n);
    return compression_of(head, (size_t)n);
}

spmv_status unpack_open(spmv_context *ctx, const char *name, const struct packed_input *input,
                        const struct packed_limits *limits, struct unpack **unpack)
{
    struct unpack *const u = calloc(1, sizeof *u);
    *unpack = u;
    if (u == NULL)
        return context_fail_memory(ctx, "unpacking a file", (int64_t)sizeof *u);
    *u = (struct unpack){
        .ctx = ctx, .name = name, .input = input, .limits = limits, .lib = archive_library(), .form = ""};
    int64_t n = 1;
    while (u->head.bytes < PACKED_HEAD && n > 0) {
        n = input->read(input->user, u->head.byte + u->head.bytes, PACKED_HEAD - u->head.bytes, &u->failed);
        u->head.bytes += max_i64(n, 0);
    }
    u->taken = u->head.bytes;
    while (u->failed == SPMV_OK && top_compression(u) != COMPRESSION_NONE)
        if (!add_stage(u, top_compression(u)))
            break;
    return u->failed;
}

void unpack_close(struct unpack *u)
{
    if (u == NULL)
        return;
    for (int k = u->count - 1; k >= 0; k--) {
        struct stage *const s = &u->stage[k];
        if (s->zlib_open)
            u->lib->inflateEnd(&s->zlib);
        if (s->archive != NULL)
            u->lib->archive_read_free(s->archive);
        host_free(s->buffer);
    }
    free(u);
}

spmv_status unpack_read(struct unpack *u, char *to, int64_t bytes, int64_t *got)
{
    const int64_t n = u->failed != SPMV_OK ? -1
                      : u->count > 0       ? stage_read(&u->stage[u->count - 1], to, bytes)
                                           : input_read(u, to, bytes);
    *got = max_i64(n, 0);
    return n >= 0 ? SPMV_OK : u->failed;
}

int64_t unpack_taken(const struct unpack *u)
{
    return u->taken;
}

const char *unpack_form(const struct unpack *u)
{
    return u->form;
}

#endif
