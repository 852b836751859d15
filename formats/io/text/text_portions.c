/* Writes long texts with all threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/text/text_portions.h"

#include "formats/matrix_internal.h"

/* PORTION_BYTES: largest portion. ROUND: portions made at a time, enough for a team and small enough to
 * limit memory. */
enum { PORTION_BYTES = 3 << 20, ROUND = 64 };

struct portion {
    char *text;
    char *packed;
    int64_t bytes;
};

static int64_t items_of_portion(const struct text_portions *text)
{
    return min_i64(text->items, max_i64(1, PORTION_BYTES / text->item_bytes));
}

static bool make_portion(const struct text_portions *text, int64_t first, int64_t end, struct portion *portion)
{
    portion->bytes = text->make(text->user, first, end, portion->text) - portion->text;
    portion->packed = NULL;
    if (text->compression == COMPRESSION_NONE || portion->bytes == 0)
        return true;
    return packed_pack(text->compression, portion->text, portion->bytes, &portion->packed, &portion->bytes);
}

/* Makes and writes one round of at most `count` portions, from item first on. */
static spmv_status write_round(struct output_file *output, const struct text_portions *text, int64_t first,
                               int64_t count, struct portion *portions)
{
    spmv_status st = SPMV_OK;
    const int64_t each = items_of_portion(text);
    const int n = (int)min_i64(count, ceil_divide(text->items - first, each));
    int fine = 1;
#pragma omp parallel for num_threads(host_team(output->ctx, text->items)) schedule(dynamic, 1) reduction(& : fine)
    for (int t = 0; t < n; t++)
        fine &= make_portion(text, first + t * each, min_i64(text->items, first + (t + 1) * each), &portions[t]);
    if (!fine)
        st = context_fail_memory(output->ctx, "compressing a file", PORTION_BYTES);
    for (int t = 0; t < n; t++) {
        if (st == SPMV_OK)
            st = output_put(output, portions[t].packed != NULL ? portions[t].packed : portions[t].text,
                            portions[t].bytes, min_i64(each, text->items - first - t * each));
        host_free(portions[t].packed);
    }
    return st;
}

spmv_status text_portions_write(struct output_file *output, const struct text_portions *text)
{
    spmv_status st = SPMV_OK;
    struct portion portions[ROUND] = {{NULL, NULL, 0}};
    void *memory = NULL;
    if (text->items == 0)
        return SPMV_OK;
    const int64_t each = items_of_portion(text);
    int64_t limit = 0, count = min_i64(ROUND, ceil_divide(text->items, each));
    /* an answer is also written where a memory limit leaves little */
    while (count > 1 && count * each * text->item_bytes > memory_limit_left(&limit) / 2)
        count /= 2;
    TRY(host_alloc(output->ctx, count * each * text->item_bytes, "writing a file", &memory));
    for (int64_t t = 0; t < count; t++)
        portions[t].text = (char *)memory + t * each * text->item_bytes;
    for (int64_t first = 0; first < text->items; first += count * each)
        TRY(write_round(output, text, first, count, portions));
done:
    host_free(memory);
    return st;
}

spmv_status text_portions_head(struct output_file *output, const char *text, int64_t n, enum compression compression)
{
    char *packed = NULL;
    int64_t bytes = n;
    if (compression != COMPRESSION_NONE && !packed_pack(compression, text, n, &packed, &bytes))
        return context_fail_memory(output->ctx, "compressing a file", n);
    const spmv_status st = output_put(output, packed != NULL ? packed : text, bytes, 0);
    host_free(packed);
    return st;
}
