/* Zip archives in memory, as NumPy writes them: members are stored or deflated. Source: APPNOTE.TXT of PKWARE.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZIP_H
#define ZIP_H

#include "formats/io/exchange/exchange.h"

struct zip_member {
    const char *name; /* in the file; not ended by a zero byte */
    int name_length;
    int method; /* 0: stored, 8: deflated */
    bool encrypted;
    uint32_t crc;
    int64_t packed, unpacked; /* bytes */
    const unsigned char *at;  /* its local head */
};

/* The members of the archive x->bytes, in their order (host_free). */
spmv_status zip_list(struct exchange *x, struct zip_member **members, int64_t *count);

/* The bytes of a member: in the file, or unpacked into *memory (host_free; NULL if not used). Compares the checksum. */
spmv_status zip_read(struct exchange *x, const struct zip_member *member, const unsigned char **bytes, int64_t *n,
                     void **memory);

/* Writes archives of stored members. Each begins at a place that the caller keeps for zip_end. */
struct zip_written {
    const char *name;
    int64_t bytes, place;
    uint32_t crc;
};
spmv_status zip_begin_member(struct sink *sink, struct zip_written *member);
spmv_status zip_end(struct sink *sink, const struct zip_written *members, int count);

#endif
