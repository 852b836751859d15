/* Reading of a matrix file by all ranks.
 *
 * Rank 0 opens the file and finds out what it holds (mtx_read.h); the others wait for its word. Of
 * a plain coordinate file each rank parses the lines that begin in its share of the bytes. Where
 * that is not possible (a packed file, standard input, a file that other hosts do not have), rank 0
 * reads or unpacks the text and deals it to the ranks in turns. The entries then go to the ranks
 * that make rows of them (group_entries.h). Of the binary form each rank copies its rows. Anything
 * else rank 0 reads alone.
 *
 * Errors have the line numbers of the whole file, although a rank does not know how many lines
 * precede its part while it parses it. After an error, the ranks add up the lines and entries of
 * the parts before, and the rank with the first error parses its part again.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "distributed/group_entries.h"
#include "formats/io/binary/binary_form.h"
#include "formats/io/binary/checksum.h"
#include "formats/io/mtx/mtx_read.h"
#include "formats/io/text/coordinates.h"

static const char *const what = "reading a file";

/* Bytes of a rank's part in a turn of dealing, and of all parts together. */
enum { MOST_OF_PART = 1 << 20, LEAST_OF_PART = 64 << 10, TURN_BYTES = 8 << 20 };

/* What rank 0 tells the others. */
enum word { READ_ALONE, READ_COORDINATES, READ_BINARY };
struct announcement {
    enum word word;
    bool any_place; /* the text may be read anywhere, from a file with this number of bytes */
    int64_t total, max_bytes;
    struct mtx_header header;
    spmv_type type;
};

/* What a rank has found in its part. */
struct share {
    spmv_status status;
    struct coordinates_part part;
};

struct reading {
    spmv_group *group;
    const char *path;
    const spmv_read_options *options;
    bool shared;          /* all ranks have their rows */
    spmv_status together; /* on rank 0: of what all ranks did, within matrix_read_shared */
    struct announcement a;
    struct text_source *source; /* rank 0: the text; others: NULL unless they read it, too */
    struct group_entries entries;
    struct share *share; /* of each rank */
    /* of all turns so far */
    int64_t lines, read;
    struct remarks rounded, not_finite;
    int64_t open_line_bytes;
};

static int ranks_of(const struct reading *r)
{
    return r->group->transport.ranks;
}

static bool leads(const struct reading *r)
{
    return r->group->transport.rank == 0;
}

/* ------------------------------------------------------------- a part, and the first error */

static spmv_status begin_entries(struct reading *r)
{
    const struct mtx_header *const h = &r->a.header;
    return group_entries_begin(r->group, h->rows, h->cols, r->a.type, h->field == SPMV_FIELD_PATTERN,
                               coordinates_most(h), &r->entries);
}

/* Fails on all ranks as rank first has failed. */
static spmv_status fail_as(struct reading *r, int first, spmv_status status)
{
    struct failure {
        spmv_status status;
        char text[1024];
    } own = {.status = status}, of_first = {.status = status};
    snprintf(own.text, sizeof own.text, "%s", spmv_last_error(r->group->ctx));
    const spmv_status st = group_broadcast(r->group, first, &own, &of_first, sizeof own);
    r->group->settled = st == SPMV_OK;
    return st != SPMV_OK ? st : context_fail(r->group->ctx, of_first.status, "%s", of_first.text);
}

/* Parses a part again, whose position is known now, for its message. */
static spmv_status parse_again(struct reading *r, struct text_source *source, int part, int parts)
{
    spmv_status st = SPMV_OK;
    struct coordinates_part found;
    group_entries_free(&r->entries);
    TRY(begin_entries(r));
    source->line = r->a.header.size_line + 1 + r->lines;
    TRY(coordinates_parse(source, &r->a.header, r->a.type, part, parts, r->read, &r->entries.buckets, &found));
    st = text_read_failed(source, SPMV_ERROR_CHANGED, 0); /* it was wrong, and now it is right */
done:
    return st;
}

/* Each rank parses its part of a turn: part number part of parts of the source. Together. */
static spmv_status read_turn(struct reading *r, struct text_source *source, int part, int parts)
{
    spmv_status st = SPMV_OK;
    struct share own = {.status = SPMV_OK};
    const int rank = r->group->transport.rank;
    source->line = 0;
    own.status = coordinates_parse(source, &r->a.header, r->a.type, part, parts, 0, &r->entries.buckets, &own.part);
    if (own.status == SPMV_OK)
        own.status = group_entries_turn(&r->entries);
    TRY(group_gather_equal(r->group, &own, r->share, sizeof own));
    for (int i = 0; i < ranks_of(r); i++) {
        const struct coordinates_part *const its = &r->share[i].part;
        spmv_status failed = r->share[i].status;
        if (failed != SPMV_OK || its->entries > r->a.header.entries - r->read) {
            if (i == rank && failed != SPMV_ERROR_MEMORY && failed != SPMV_CANCELLED)
                failed = parse_again(r, source, part, parts);
            TRY(fail_as(r, i, failed));
        }
        remarks_add(&r->rounded, &its->rounded, r->a.header.size_line + 1 + r->lines);
        remarks_add(&r->not_finite, &its->not_finite, r->a.header.size_line + 1 + r->lines);
        r->lines += its->lines;
        r->read += its->entries;
        r->open_line_bytes = max_i64(r->open_line_bytes, its->open_line_bytes);
    }
done:
    return st;
}

/* ------------------------------------------------------------- each rank reads its share */

/* Opens the file on another rank than 0. Returns whether it is the one that rank 0 reads. */
static bool open_same(struct reading *r, struct text_source *source)
{
    struct mtx_header header;
    const struct mtx_header *const h = &r->a.header;
    return text_open(r->group->ctx, r->path, NULL, source) == SPMV_OK && text_is_random(source) &&
           source->total == r->a.total && mtx_header_read(source, &header) == SPMV_OK && !header.array &&
           header.rows == h->rows && header.cols == h->cols && header.entries == h->entries &&
           header.field == h->field && header.symmetry == h->symmetry && header.size_line == h->size_line;
}

/* Whether all ranks say yes. Together. */
static spmv_status all_say(struct reading *r, bool yes, bool *all)
{
    spmv_status st = SPMV_OK;
    bool *of_ranks = NULL;
    TRY(host_alloc(r->group->ctx, ranks_of(r) * (int64_t)sizeof yes, what, (void **)&of_ranks));
    TRY(group_gather_equal(r->group, &yes, of_ranks, sizeof yes));
    *all = true;
    for (int i = 0; i < ranks_of(r); i++)
        *all = *all && of_ranks[i];
done:
    host_free(of_ranks);
    return st;
}

/* ------------------------------------------------------------- rank 0 deals the text */

/* On rank 0: the text of a turn, and the line that is not complete. */
struct dealer {
    char *text;
    int64_t have, room, carried; /* carried: bytes behind the text of the last turn */
    bool ended;
};

/* The text of a turn, as all ranks know it: rank r has the bytes from at[r] to at[r + 1] - 1. */
struct turn {
    spmv_status status;
    bool last;
    int64_t at[];
};

static spmv_status make_room(struct reading *r, struct dealer *d, int64_t room)
{
    char *more = NULL;
    const spmv_status st = host_alloc(r->group->ctx, room, what, (void **)&more);
    if (st != SPMV_OK)
        return st;
    if (d->have > 0)
        memcpy(more, d->text, (size_t)d->have);
    host_free(d->text);
    d->text = more;
    d->room = room;
    return SPMV_OK;
}

/* The byte after the last line end before end; 0: there is none. */
static int64_t after_line(const struct dealer *d, int64_t end)
{
    while (end > 0 && d->text[end - 1] != '\n')
        end--;
    return end;
}

/* Reads the text of the next turn: whole lines, except at the end of the text and if a line is too
 * long. */
static spmv_status next_turn(struct reading *r, struct dealer *d, struct turn *turn)
{
    spmv_status st = SPMV_OK;
    const int ranks = ranks_of(r);
    const int64_t part = max_i64(LEAST_OF_PART, min_i64(MOST_OF_PART, TURN_BYTES / ranks));
    int64_t end = 0;
    if (d->carried > 0)
        memmove(d->text, d->text + d->have - d->carried, (size_t)d->carried);
    d->have = d->carried;
    for (int64_t wanted = max_i64(ranks * part, d->have + part); end == 0 && !d->ended; wanted *= 2) {
        if (wanted > d->room)
            TRY(make_room(r, d, wanted));
        while (d->have < wanted && !d->ended) {
            int64_t got = 0;
            TRY(text_read_next(r->source, d->text + d->have, wanted - d->have, &got));
            d->have += got;
            d->ended = got == 0;
        }
        end = d->ended || d->have >= TEXT_BLOCK + ranks * part ? d->have : after_line(d, d->have);
    }
    d->carried = d->have - end;
    turn->last = d->ended;
    for (int i = 1; i < ranks; i++)
        turn->at[i] = max_i64(turn->at[i - 1], after_line(d, end * i / ranks));
    turn->at[ranks] = end;
    TRY(text_tell(r->source));
done:
    return st;
}

/* Sends each rank its part of the turn. *text: that of this rank, in *memory if it has come from
 * rank 0. */
static spmv_status deal(struct reading *r, const struct dealer *d, const struct turn *turn,
                        struct transport_parcel *parcels, char **memory, const char **text)
{
    spmv_status st = SPMV_OK;
    const int rank = r->group->transport.rank, ranks = ranks_of(r);
    const int64_t own = turn->at[rank + 1] - turn->at[rank];
    int sends = 0;
    if (leads(r))
        for (int i = 1; i < ranks; i++)
            if (turn->at[i + 1] > turn->at[i])
                parcels[sends++] = (struct transport_parcel){i, d->text + turn->at[i], turn->at[i + 1] - turn->at[i]};
    *text = d->text;
    if (!leads(r)) {
        TRY(host_alloc(r->group->ctx, own, what, (void **)memory));
        parcels[0] = (struct transport_parcel){0, *memory, own};
        *text = *memory;
    }
    TRY(group_start(r->group, parcels, sends, parcels, !leads(r) && own > 0));
    TRY(group_finish(r->group));
done:
    return st;
}

/* Reads a text that only rank 0 has. Together. */
static spmv_status read_dealt(struct reading *r)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = r->group->ctx;
    const int rank = r->group->transport.rank, ranks = ranks_of(r);
    const int64_t bytes = (int64_t)sizeof(struct turn) + (ranks + 1) * (int64_t)sizeof(int64_t);
    struct dealer d = {.text = NULL};
    struct turn *own = NULL, *turn = NULL;
    struct transport_parcel *parcels = NULL;
    char *memory = NULL;
    st = host_alloc(ctx, bytes, what, (void **)&own);
    if (st == SPMV_OK)
        st = host_alloc(ctx, bytes, what, (void **)&turn);
    if (st == SPMV_OK)
        st = host_alloc(ctx, ranks * (int64_t)sizeof *parcels, what, (void **)&parcels);
    TRY(spmv_group_agree(r->group, st));
    memset(own, 0, (size_t)bytes);
    do {
        const char *text = NULL;
        struct text_source part;
        if (leads(r))
            own->status = next_turn(r, &d, own);
        TRY(group_broadcast(r->group, 0, own, turn, bytes));
        if (turn->status != SPMV_OK)
            TRY(fail_as(r, 0, turn->status));
        TRY(deal(r, &d, turn, parcels, &memory, &text));
        text_from_lines(ctx, r->path, text, turn->at[rank + 1] - turn->at[rank], &part);
        TRY(read_turn(r, &part, 0, 1));
        host_free(memory);
        memory = NULL;
    } while (!turn->last);
    if (leads(r))
        st = text_check_unchanged(r->source);
    TRY(spmv_group_agree(r->group, st));
done:
    host_free_all(d.text, own, turn, parcels, memory);
    return st;
}

/* ------------------------------------------------------------- coordinate files */

/* Reads all lines, in one turn or several. Together. */
static spmv_status read_lines(struct reading *r)
{
    spmv_status st = SPMV_OK;
    struct text_source other = {.owns_fd = false};
    spmv_status own = SPMV_OK, of_first = SPMV_OK;
    bool all = false;
    if (!leads(r))
        r->source = &other;
    TRY(all_say(r, r->a.any_place && (leads(r) || open_same(r, &other)), &all));
    TRY(all ? read_turn(r, r->source, r->group->transport.rank, ranks_of(r)) : read_dealt(r));
    if (leads(r)) {
        r->source->taken = all ? r->source->total : r->source->taken;
        r->source->line = r->a.header.size_line + 1 + r->lines;
        r->source->open_line_bytes = r->open_line_bytes;
        own = coordinates_complete(r->source, &r->a.header, r->read);
        if (own == SPMV_OK)
            own = remarks_warn(r->source, &r->rounded, &r->not_finite, r->a.type);
    }
    TRY(group_broadcast(r->group, 0, &own, &of_first, sizeof own));
    if (of_first != SPMV_OK)
        TRY(fail_as(r, 0, of_first));
done:
    if (!leads(r)) {
        r->source = NULL;
        text_close(&other);
    }
    return st;
}

/* Reads the entries. Together: r->a is known. */
static spmv_status read_coordinates(struct reading *r, spmv_matrix **matrix, int64_t *duplicates)
{
    spmv_status st = SPMV_OK;
    int64_t repeats[2] = {0, 0};
    st = host_alloc(r->group->ctx, ranks_of(r) * (int64_t)sizeof *r->share, what, (void **)&r->share);
    if (st == SPMV_OK)
        st = begin_entries(r);
    TRY(spmv_group_agree(r->group, st));
    TRY(read_lines(r));
    TRY(group_entries_matrix(&r->entries, r->a.max_bytes, matrix, repeats));
    *duplicates = repeats[r->a.header.symmetry != SPMV_SYMMETRY_GENERAL];
done:
    group_entries_free(&r->entries);
    host_free(r->share);
    return st;
}

/* ------------------------------------------------------------- the binary form */

/* Whether the checksums of all ranks together are those of the file. Together. */
static spmv_status sums_match(struct reading *r, const struct binary_sums *sums, bool *match)
{
    spmv_status st = SPMV_OK;
    const int ranks = ranks_of(r);
    int64_t *tiles = NULL, *offset = NULL;
    uint64_t *all = NULL;
    TRY(host_alloc(r->group->ctx, 3 * ranks * (int64_t)sizeof *tiles, what, (void **)&tiles));
    TRY(host_alloc(r->group->ctx, (ranks + 1) * (int64_t)sizeof *offset, what, (void **)&offset));
    TRY(group_gather_equal(r->group, sums->tiles, tiles, sizeof sums->tiles));
    for (int k = 0; k < 3; k++) {
        offset[0] = 0;
        for (int i = 0; i < ranks; i++)
            offset[i + 1] = offset[i] + tiles[3 * i + k] * (int64_t)sizeof *all;
        host_free(all);
        TRY(host_alloc(r->group->ctx, max_i64(1, offset[ranks]), what, (void **)&all));
        TRY(group_gather(r->group, sums->sum[k], all, offset));
        *match = *match && checksum_join(all, offset[ranks] / (int64_t)sizeof *all) == sums->want[k];
    }
done:
    host_free_all(tiles, offset, all);
    return st;
}

/* Each rank copies its rows of the file. *taken false: something is wrong, which rank 0 finds when
 * it reads the whole file. fd: of rank 0. Together. */
static spmv_status read_binary(struct reading *r, int fd, spmv_matrix **matrix, bool *taken)
{
    spmv_status st = SPMV_OK;
    struct binary_sums sums = {.want = {0}};
    struct text_source other = {.owns_fd = false};
    if (!leads(r)) {
        st = text_open(r->group->ctx, r->path, NULL, &other);
        fd = other.fd;
    }
    if (st == SPMV_OK && (leads(r) || (other.file_size == r->a.total && binary_form_begins(fd))))
        st = binary_form_read_rows(r->group->ctx, r->path, fd, r->a.type, r->group->transport.rank, ranks_of(r), &sums,
                                   matrix);
    TRY(all_say(r, *matrix != NULL && !type_is_complex((*matrix)->type), taken));
    if (*taken)
        TRY(sums_match(r, &sums, taken));
done:
    if (st != SPMV_OK || !*taken) {
        spmv_matrix_destroy(*matrix);
        *matrix = NULL;
    }
    binary_sums_free(&sums);
    if (!leads(r))
        text_close(&other);
    return st;
}

/* ------------------------------------------------------------- rank 0 leads */

static spmv_status announce(struct reading *r)
{
    const struct announcement own = r->a;
    return group_broadcast(r->group, 0, &own, &r->a, sizeof own);
}

static spmv_status lead_coordinates(void *self, struct text_source *source, const struct mtx_header *header,
                                    spmv_type type, int64_t max_bytes, spmv_matrix **matrix, int64_t *duplicates)
{
    spmv_status st = SPMV_OK;
    struct reading *const r = self;
    r->source = source;
    r->shared = true;
    r->a = (struct announcement){.word = READ_COORDINATES,
                                 .any_place = text_is_random(source) && source->owns_fd,
                                 .total = source->total,
                                 .max_bytes = max_bytes,
                                 .header = *header,
                                 .type = type};
    TRY(announce(r));
    TRY(read_coordinates(r, matrix, duplicates));
done:
    r->together = st;
    return st;
}

static spmv_status lead_binary(void *self, const char *name, int fd, int64_t bytes, spmv_type type,
                               spmv_matrix **matrix, bool *taken)
{
    spmv_status st = SPMV_OK;
    struct reading *const r = self;
    (void)name;
    r->a = (struct announcement){.word = READ_BINARY, .total = bytes, .type = type};
    TRY(announce(r));
    TRY(read_binary(r, fd, matrix, taken));
    r->shared = *taken;
done:
    r->together = st;
    return st;
}

/* Reads the rows of rank 0. Fails where the others fail, too, or wait for a call that this rank does
 * not make: it must make none after it. *own: a failure of this rank alone, after which the others wait
 * for its word. */
static spmv_status lead(struct reading *r, spmv_matrix **matrix, spmv_read_info *info, spmv_status *own)
{
    const struct read_sharing sharing = {r, ranks_of(r), lead_coordinates, lead_binary};
    *own = matrix_read_shared(r->group->ctx, r->path, r->options, &sharing, matrix, info, sizeof *info);
    if (r->together != SPMV_OK || r->shared)
        return r->together;
    r->a = (struct announcement){.word = READ_ALONE};
    return announce(r);
}

/* Reads the rows of another rank. */
static spmv_status follow(struct reading *r, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    int64_t duplicates = 0;
    while (!r->shared) {
        TRY(announce(r));
        if (r->a.word == READ_ALONE)
            break;
        r->shared = r->a.word == READ_COORDINATES;
        TRY(r->shared ? read_coordinates(r, matrix, &duplicates) : read_binary(r, -1, matrix, &r->shared));
    }
done:
    return st;
}

static spmv_status read_and_make(spmv_group *group, const char *path, const spmv_read_options *reading,
                                 const spmv_group_matrix_options *options, spmv_group_matrix **made,
                                 spmv_read_info *info)
{
    static const int64_t no_rows[1] = {0};
    spmv_status st = SPMV_OK, own = SPMV_OK;
    struct reading r = {.group = group, .path = path, .options = reading};
    spmv_matrix *matrix = NULL;
    spmv_csr view = {.row_ptr = no_rows, .row_ptr_bits = 64, .type = SPMV_F64, .memory = SPMV_MEMORY_HOST};
    TRY(spmv_group_agree(
        group, path != NULL ? SPMV_OK
                            : context_fail(group->ctx, SPMV_ERROR_ARGUMENT, "spmv_group_matrix_read: path is NULL")));
    TRY(leads(&r) ? lead(&r, &matrix, info, &own) : follow(&r, &matrix));
    TRY(spmv_group_agree(group, own));
    if (matrix != NULL)
        spmv_matrix_view(matrix, &view);
    const struct group_given given = {
        .call = "spmv_group_matrix_read", .own = &view, .given_up = matrix != NULL && matrix->map == NULL};
    TRY(group_matrix_make(group, &given, options, made));
    if (r.a.word == READ_BINARY)
        info->entries = (*made)->ranks.nnz;
done:
    spmv_matrix_destroy(matrix);
    return st;
}

spmv_status spmv_group_matrix_read(spmv_group *group, const char *path, const spmv_read_options *reading,
                                   const spmv_group_matrix_options *options, spmv_group_matrix **matrix,
                                   spmv_read_info *info, size_t size)
{
    spmv_read_info full = {.size = sizeof full};
    if (group == NULL || matrix == NULL)
        return context_need(group != NULL ? group->ctx : NULL, "spmv_group_matrix_read", "matrix", matrix);
    *matrix = NULL;
    group_begin(group);
    const spmv_status st = group_end(group, read_and_make(group, path, reading, options, matrix, &full));
    result_write(info, size, &full, sizeof full);
    return st;
}
