/* Zip archives: see zip.h. What is read is the central directory, which every archive has at its end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/exchange/zip.h"

#include <stdio.h>

#include "formats/io/packed/deflate.h"

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, END_64 = 0x06064b50, LOCATOR_64 = 0x07064b50 };
enum { LOCAL_BYTES = 30, CENTRAL_BYTES = 46, END_BYTES = 22, END_64_BYTES = 56, LOCATOR_BYTES = 20 };
enum { STORED = 0, DEFLATED = 8, EXTRA_64 = 1, VERSION_64 = 45 };
#define FULL_32 0xffffffffu

/* Fuzzing reaches the code after the checksums without them. */
#ifdef ZIP_WITHOUT_SUMS
#define COMPARE_SUMS false
#else
#define COMPARE_SUMS true
#endif

static int u16_at(const unsigned char *b)
{
    return b[0] | b[1] << 8;
}

/* The end record: the last one, before a comment of at most 64 KiB. */
static const unsigned char *find_end_record(const struct exchange *x)
{
    const int64_t first = max_i64(0, x->size - END_BYTES - UINT16_MAX);
    for (int64_t at = x->size - END_BYTES; at >= first; at--)
        if (u32_at(x->bytes + at, false) == END)
            return x->bytes + at;
    return NULL;
}

/* Takes sizes and place from the extra field of zip64, where the head has none. */
static bool take_extra(const unsigned char *extra, int bytes, struct zip_member *m, uint64_t *place)
{
    uint64_t packed = (uint64_t)m->packed, unpacked = (uint64_t)m->unpacked;
    for (int at = 0; at + 4 <= bytes; at += 4 + u16_at(extra + at + 2)) {
        const unsigned char *p = extra + at + 4, *const end = p + u16_at(extra + at + 2);
        if (end > extra + bytes)
            return false;
        if (u16_at(extra + at) != EXTRA_64)
            continue;
        uint64_t *const wanted[3] = {&unpacked, &packed, place};
        for (int i = 0; i < 3; i++)
            if (*wanted[i] == FULL_32) {
                if (p + 8 > end)
                    return false;
                *wanted[i] = u64_at(p, false);
                p += 8;
            }
    }
    m->packed = (int64_t)packed;
    m->unpacked = (int64_t)unpacked;
    return packed <= INT64_MAX && unpacked <= INT64_MAX;
}

/* Reads a record of the directory. *next: the byte after it. */
static spmv_status read_record(struct exchange *x, const unsigned char *b, const unsigned char *end,
                               struct zip_member *m, const unsigned char **next)
{
    if (end - b < CENTRAL_BYTES || u32_at(b, false) != CENTRAL)
        return exchange_fail(x, b, "no entry of the archive's directory");
    const int name = u16_at(b + 28), extra = u16_at(b + 30), comment = u16_at(b + 32);
    if (end - b < CENTRAL_BYTES + name + extra + comment)
        return exchange_fail(x, b, "an entry of the archive's directory is cut short");
    *m = (struct zip_member){.name = (const char *)b + CENTRAL_BYTES,
                             .name_length = name,
                             .method = u16_at(b + 10),
                             .encrypted = (u16_at(b + 8) & 1) != 0,
                             .crc = u32_at(b + 16, false),
                             .packed = (int64_t)u32_at(b + 20, false),
                             .unpacked = (int64_t)u32_at(b + 24, false)};
    uint64_t place = u32_at(b + 42, false);
    if (!take_extra(b + CENTRAL_BYTES + name, extra, m, &place) || place > (uint64_t)x->size ||
        (uint64_t)x->size - place < LOCAL_BYTES)
        return exchange_fail(x, b, "this entry of the archive's directory points outside the file");
    m->at = x->bytes + place;
    *next = b + CENTRAL_BYTES + name + extra + comment;
    return SPMV_OK;
}

spmv_status zip_list(struct exchange *x, struct zip_member **members, int64_t *count)
{
    const unsigned char *const end = x->size >= END_BYTES ? find_end_record(x) : NULL;
    void *memory = NULL;
    *members = NULL;
    *count = 0;
    if (end == NULL)
        return exchange_fail(x, NULL, "a zip archive that is cut short: its directory is missing");
    uint64_t n = (uint64_t)u16_at(end + 10), at = u32_at(end + 16, false);
    if (end - x->bytes >= LOCATOR_BYTES && u32_at(end - LOCATOR_BYTES, false) == LOCATOR_64) {
        const uint64_t record = u64_at(end - LOCATOR_BYTES + 8, false);
        if (x->size < END_64_BYTES || record > (uint64_t)(x->size - END_64_BYTES) ||
            u32_at(x->bytes + record, false) != END_64)
            return exchange_fail(x, end - LOCATOR_BYTES, "the archive's directory is outside the file");
        n = u64_at(x->bytes + record + 32, false);
        at = u64_at(x->bytes + record + 48, false);
    }
    if (at > (uint64_t)(end - x->bytes) || n > ((uint64_t)(end - x->bytes) - at) / CENTRAL_BYTES)
        return exchange_fail(x, end, "the archive's directory is outside the file");
    spmv_status st =
        host_alloc(x->ctx, max_i64(1, (int64_t)n) * (int64_t)sizeof **members, "members of an archive", &memory);
    *members = memory;
    const unsigned char *p = x->bytes + at;
    for (uint64_t i = 0; i < n && st == SPMV_OK; i++)
        st = read_record(x, p, end, &(*members)[i], &p);
    *count = (int64_t)n;
    return st;
}

spmv_status zip_read(struct exchange *x, const struct zip_member *m, const unsigned char **bytes, int64_t *n,
                     void **memory)
{
    char what[256];
    *memory = NULL;
    snprintf(what, sizeof what, "%.150s: %.*s", x->name, (int)min_i64(m->name_length, 64), m->name);
    if (m->encrypted || (m->method != STORED && m->method != DEFLATED))
        return exchange_refuse(x, SPMV_ERROR_UNSUPPORTED, "%.*s is %s; only stored and deflated members are read",
                               (int)min_i64(m->name_length, 64), m->name,
                               m->encrypted ? "encrypted" : "compressed in another way");
    const int64_t left = x->bytes + x->size - m->at;
    if (u32_at(m->at, false) != LOCAL)
        return exchange_fail(x, m->at, "%.*s does not begin here", (int)min_i64(m->name_length, 64), m->name);
    const int64_t head = LOCAL_BYTES + u16_at(m->at + 26) + u16_at(m->at + 28);
    if (head > left || m->packed > left - head || (m->method == STORED && m->packed != m->unpacked))
        return exchange_fail(x, m->at, "%.*s has %lld bytes, which the file does not have",
                             (int)min_i64(m->name_length, 64), m->name, (long long)m->packed);
    *bytes = m->at + head;
    *n = m->packed;
    if (m->method == DEFLATED) {
        const spmv_status st =
            deflate_unpack(x->ctx, what, m->at + head, m->packed, true, min_i64(m->unpacked, x->max_bytes), memory, n);
        if (st != SPMV_OK)
            return st;
        *bytes = *memory;
    }
    if (*n != m->unpacked || (COMPARE_SUMS && crc32_of(0, *bytes, *n) != m->crc))
        return exchange_fail(x, m->at, "%.*s: damaged: its length or checksum does not match",
                             (int)min_i64(m->name_length, 64), m->name);
    return SPMV_OK;
}

/* ---------------------------------------------------------------- writing */

/* The part that local and central heads share, from the version on; the sizes follow in the field of zip64. */
static spmv_status put_common(struct sink *sink, const struct zip_written *m, int extra)
{
    enum { JANUARY_1980 = 0x21 };
    const struct {
        int64_t value;
        int width;
    } parts[] = {{VERSION_64, 2},
                 {0, 2},
                 {STORED, 2},
                 {0, 2},
                 {JANUARY_1980, 2},
                 {m->crc, 4},
                 {FULL_32, 4},
                 {FULL_32, 4},
                 {(int64_t)strlen(m->name), 2},
                 {extra, 2}};
    spmv_status st = SPMV_OK;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && st == SPMV_OK; i++)
        st = sink_put_integer(sink, parts[i].value, parts[i].width, false);
    return st;
}

static spmv_status put_extra(struct sink *sink, const struct zip_written *m, bool place)
{
    spmv_status st = SPMV_OK;
    TRY(sink_put_integer(sink, EXTRA_64, 2, false));
    TRY(sink_put_integer(sink, place ? 24 : 16, 2, false));
    TRY(sink_put_integer(sink, m->bytes, 8, false));
    TRY(sink_put_integer(sink, m->bytes, 8, false));
    if (place)
        TRY(sink_put_integer(sink, m->place, 8, false));
done:
    return st;
}

spmv_status zip_begin_member(struct sink *sink, struct zip_written *m)
{
    spmv_status st = SPMV_OK;
    m->place = sink->total;
    TRY(sink_put_integer(sink, LOCAL, 4, false));
    TRY(put_common(sink, m, 20));
    TRY(sink_put(sink, m->name, (int64_t)strlen(m->name)));
    TRY(put_extra(sink, m, false));
done:
    return st;
}

static spmv_status put_record(struct sink *sink, const struct zip_written *m)
{
    spmv_status st = SPMV_OK;
    TRY(sink_put_integer(sink, CENTRAL, 4, false));
    TRY(sink_put_integer(sink, VERSION_64, 2, false));
    TRY(put_common(sink, m, 28));
    TRY(sink_put_integer(sink, 0, 2, false)); /* comment */
    TRY(sink_put_integer(sink, 0, 4, false)); /* disk, attributes */
    TRY(sink_put_integer(sink, 0, 4, false));
    TRY(sink_put_integer(sink, FULL_32, 4, false));
    TRY(sink_put(sink, m->name, (int64_t)strlen(m->name)));
    TRY(put_extra(sink, m, true));
done:
    return st;
}

spmv_status zip_end(struct sink *sink, const struct zip_written *members, int count)
{
    spmv_status st = SPMV_OK;
    const int64_t directory = sink->total;
    for (int i = 0; i < count; i++)
        TRY(put_record(sink, &members[i]));
    const int64_t end = sink->total;
    const struct {
        int64_t value;
        int width;
    } parts[] = {{END_64, 4},
                 {END_64_BYTES - 12, 8},
                 {VERSION_64, 2},
                 {VERSION_64, 2},
                 {0, 4},
                 {0, 4},
                 {count, 8},
                 {count, 8},
                 {end - directory, 8},
                 {directory, 8}, /* the end of zip64 */
                 {LOCATOR_64, 4},
                 {0, 4},
                 {end, 8},
                 {1, 4},
                 {END, 4},
                 {0, 4},
                 {UINT16_MAX, 2},
                 {UINT16_MAX, 2},
                 {FULL_32, 4},
                 {FULL_32, 4},
                 {0, 2}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        TRY(sink_put_integer(sink, parts[i].value, parts[i].width, false));
done:
    return st;
}
