/* Writes long texts with all threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "text_pieces.h"

#include "matrix_internal.h"

/* PIECE_BYTES: largest piece. ROUND: pieces made at a time, enough for a team and small enough to
 * limit memory. */
enum { PIECE_BYTES = 3 << 20, ROUND = 64 };

struct piece {
    char *text;
    char *packed;
    int64_t bytes;
};

static int64_t items_of_piece(const struct text_pieces *text)
{
    return min_i64(text->items, max_i64(1, PIECE_BYTES / text->item_bytes));
}

static bool make_piece(const struct text_pieces *text, int64_t first, int64_t end, struct piece *piece)
{
    piece->bytes = text->make(text->user, first, end, piece->text) - piece->text;
    piece->packed = NULL;
    if (text->compression == COMPRESSION_NONE || piece->bytes == 0)
        return true;
    return packed_pack(text->compression, piece->text, piece->bytes, &piece->packed, &piece->bytes);
}

/* Makes and writes one round of pieces, from item first on. */
static spmv_status write_round(struct output_file *output, const struct text_pieces *text, int64_t first,
                               struct piece *pieces)
{
    spmv_status st = SPMV_OK;
    const int64_t each = items_of_piece(text);
    const int n = (int)min_i64(ROUND, ceil_divide(text->items - first, each));
    int fine = 1;
#pragma omp parallel for num_threads(host_team(output->ctx, text->items)) schedule(dynamic, 1) reduction(& : fine)
    for (int t = 0; t < n; t++)
        fine &= make_piece(text, first + t * each, min_i64(text->items, first + (t + 1) * each), &pieces[t]);
    if (!fine)
        st = context_fail_memory(output->ctx, "compressing a file", PIECE_BYTES);
    for (int t = 0; t < n; t++) {
        if (st == SPMV_OK)
            st = output_put(output, pieces[t].packed != NULL ? pieces[t].packed : pieces[t].text, pieces[t].bytes,
                            min_i64(each, text->items - first - t * each));
        host_free(pieces[t].packed);
    }
    return st;
}

spmv_status text_pieces_write(struct output_file *output, const struct text_pieces *text)
{
    spmv_status st = SPMV_OK;
    struct piece pieces[ROUND] = {{NULL, NULL, 0}};
    void *memory = NULL;
    if (text->items == 0)
        return SPMV_OK;
    const int64_t each = items_of_piece(text), count = min_i64(ROUND, ceil_divide(text->items, each));
    TRY(host_alloc(output->ctx, count * each * text->item_bytes, "writing a file", &memory));
    for (int64_t t = 0; t < count; t++)
        pieces[t].text = (char *)memory + t * each * text->item_bytes;
    for (int64_t first = 0; first < text->items; first += ROUND * each)
        TRY(write_round(output, text, first, pieces));
done:
    host_free(memory);
    return st;
}

spmv_status text_pieces_head(struct output_file *output, const char *text, int64_t n, enum compression compression)
{
    char *packed = NULL;
    int64_t bytes = n;
    if (compression != COMPRESSION_NONE && !packed_pack(compression, text, n, &packed, &bytes))
        return context_fail_memory(output->ctx, "compressing a file", n);
    const spmv_status st = output_put(output, packed != NULL ? packed : text, bytes, 0);
    host_free(packed);
    return st;
}
