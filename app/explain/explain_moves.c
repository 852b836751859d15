/* spmv explain of the primitives that move or count elements: expand, gather with a filter, sort,
 * histogram.
 *
 * The arrays come from calls of the library on the host: scans from its traces. The positions of a
 * split are checked with the library's sort.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/explain/explain.h"
#include "app/options.h"
#include "app/output.h"
#include "core/plural.h"
#include "core/reals.h"

/* Reads the values as 32-bit integers. */
static spmv_status read_whole(struct explain_job *job, const char *const *words, int count, int64_t *whole)
{
    bool bars = false;
    const spmv_status st = explain_values(job, words, count, false, &bars);
    for (int64_t i = 0; st == SPMV_OK && i < job->n; i++) {
        const double value = ((const double *)job->values)[i];
        if (!(value >= INT32_MIN && value <= INT32_MAX) || value != (double)(int32_t)value) {
            complain("%s: a whole number from %" PRId32 " to %" PRId32 " is needed", words[i], INT32_MIN, INT32_MAX);
            return SPMV_ERROR_ARGUMENT;
        }
        whole[i] = (int64_t)value;
    }
    return st;
}

/* Adds an array to the page only; the caller makes its JSON. */
static void show(struct explain_job *job, const char *title, const int64_t *values, int64_t n)
{
    explain_array(&job->page, NULL, title, SPMV_I64, values, n, NULL);
}

static json_t *json_whole(const int64_t *values, int64_t n)
{
    json_t *all = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(all, json_integer((json_int_t)values[i]));
    return all;
}

/* ---------------------------------------------------------------- sort */

/* One pass: elements with bit 0 move to the front, those with bit 1 after them, both in their
 * order. */
static spmv_status show_split(struct explain_job *job, int bit, int64_t *keys)
{
    int64_t zeros[EXPLAIN_MOST], before[EXPLAIN_MOST], to[EXPLAIN_MOST], moved[EXPLAIN_MOST];
    /* Bit 31 is the sign, so numbers with it go to the front. */
    const int64_t n = job->n, sign = bit == 31;
    for (int64_t i = 0; i < n; i++)
        zeros[i] = ((uint32_t)keys[i] >> bit & 1) == (uint32_t)sign;
    explain_text(&job->page, bit == 31 ? "bit 31, the sign, inverted" : "bit %d", bit);
    show(job, "zeros: the bit is 0", zeros, n);
    explain_next_trace(&job->page);
    spmv_status st = explain_trace_steps(job, EXPLAIN_EXCLUSIVE, SPMV_ADD, SPMV_I64, NULL, zeros, before, n);
    if (st != SPMV_OK)
        return st;
    const int64_t all = before[n - 1] + zeros[n - 1];
    for (int64_t i = 0; i < n; i++)
        to[i] = zeros[i] ? before[i] : all + i - before[i];
    show(job, "before: zeros on the left", before, n);
    explain_text(&job->page, "to[i] = before[i] where zeros[i] is 1, else %lld + i - before[i]; %lld of %lld are zeros",
                 (long long)all, (long long)all, (long long)n);
    show(job, "to: the new places", to, n);
    st = explain_status(job, spmv_scatter(job->ctx, SPMV_I64, keys, to, 64, moved, n, n));
    memcpy(keys, moved, (size_t)n * sizeof *keys);
    show(job, "keys, split", keys, n);
    json_t *pass = json_pack("{s:i}", "bit", bit);
    json_put(pass, "zeros", json_whole(zeros, n));
    json_put(pass, "before", json_whole(before, n));
    json_put(pass, "to", json_whole(to, n));
    json_put(pass, "keys", json_whole(keys, n));
    json_array_append_new(json_object_get(job->more, "passes"), pass);
    return st;
}

/* Checks the result against the library's sort. */
static spmv_status check_sorted(const struct explain_job *job, const int64_t *in, const int64_t *sorted)
{
    int64_t right[EXPLAIN_MOST];
    const spmv_status st =
        explain_status(job, spmv_sort_by_key(job->ctx, SPMV_I64, 0, 64, in, NULL, 0, right, NULL, job->n));
    if (st == SPMV_OK && memcmp(right, sorted, (size_t)job->n * sizeof *right) != 0)
        return report(SPMV_ERROR_CHECK, "the splits gave a different order than the library's sort");
    return st;
}

spmv_status explain_sort(struct explain_job *job, const char *const *words, int count)
{
    int64_t in[EXPLAIN_MOST], keys[EXPLAIN_MOST];
    uint32_t differ = 0;
    int passes = 0;
    spmv_status st = count <= EXPLAIN_MOST ? SPMV_OK : explain_check_size(job->o, "values", count);
    if (st == SPMV_OK)
        st = read_whole(job, words, count, in);
    if (st == SPMV_OK) /* with n = 0: reports an unknown rung even if no bit differs */
        st = explain_trace_steps(job, EXPLAIN_EXCLUSIVE, SPMV_ADD, SPMV_I64, NULL, in, keys, 0);
    if (st != SPMV_OK)
        return st;
    for (int64_t i = 0; i < job->n; i++)
        differ |= (uint32_t)in[i] ^ (uint32_t)in[0];
    memcpy(keys, in, sizeof keys);
    json_put(job->more, "passes", json_array());
    explain_text(&job->page, "sort of %lld whole number%s by split, bit by bit; the scans by the rung %s",
                 (long long)job->n, job->n == 1 ? "" : "s", job->rung);
    explain_rung(job, "sort", "split");
    explain_rung(job, "scan", job->rung);
    explain_text(&job->page, "*: the step changed the cell");
    explain_array(&job->page, "in", "in", SPMV_I64, in, job->n, NULL);
    for (int bit = 0; bit < 32 && st == SPMV_OK; bit++)
        if ((differ >> bit & 1) != 0) {
            passes++;
            st = show_split(job, bit, keys);
        }
    if (st == SPMV_OK)
        st = check_sorted(job, in, keys);
    explain_array(&job->page, "out", "out", SPMV_I64, keys, job->n, NULL);
    explain_text(&job->page, "%d of 32 bits split: the others are the same in all keys and move nothing", passes);
    explain_end(job, -1);
    return st;
}

/* ---------------------------------------------------------------- histogram */

/* Counts the elements from first to before end whose turn is at most most. */
static spmv_status count(const struct explain_job *job, const int64_t *index, const int64_t *turn, int64_t most,
                         int64_t first, int64_t end, int64_t bins, int64_t *counts)
{
    int32_t chosen[EXPLAIN_MOST];
    for (int64_t i = first; i < end; i++)
        chosen[i - first] = turn == NULL || turn[i] <= most ? (int32_t)index[i] : -1;
    return explain_status(job, spmv_histogram(job->ctx, SPMV_I64, chosen, counts, bins, NULL, end - first));
}

/* Shows one addition per element to its bin; additions to the same bin take turns. */
static spmv_status show_atomic(struct explain_job *job, const int64_t *index, int64_t bins)
{
    int64_t turn[EXPLAIN_MOST], counts[EXPLAIN_MOST], turns = 0, done = 0;
    for (int64_t i = 0; i < job->n; i++) {
        turn[i] = 0;
        for (int64_t k = 0; k <= i && index[i] >= 0; k++)
            turn[i] += index[k] == index[i];
        turns = turn[i] > turns ? turn[i] : turns;
    }
    explain_array(&job->page, "turn", "turn at its bin", SPMV_I64, turn, job->n, NULL);
    spmv_status st = SPMV_OK;
    for (int64_t t = 0; t <= turns && st == SPMV_OK; t++) {
        char label[64];
        st = count(job, index, turn, t, 0, job->n, bins, counts);
        for (int64_t i = 0; i < job->n; i++)
            done += t > 0 && turn[i] == t;
        snprintf(label, sizeof label, t == 0 ? "the bins start at 0" : "those of turn %lld add 1", (long long)t);
        const spmv_trace step = {.launch = "histogram_atomic",
                                 .label = label,
                                 .step = (int)t,
                                 .host_cells = counts,
                                 .n = bins,
                                 .type = SPMV_I64,
                                 .operations = done};
        explain_step(&step, &job->page);
    }
    return st;
}

/* Shows blocks that count separately and then add their counts to the result. */
static spmv_status show_private(struct explain_job *job, const int64_t *index, int64_t bins, int64_t block)
{
    int64_t own[EXPLAIN_MOST], counts[EXPLAIN_MOST] = {0}, done = 0;
    spmv_status st = SPMV_OK;
    for (int64_t first = 0, b = 0; first < job->n && st == SPMV_OK; first += block, b++) {
        const int64_t end = job->n - first < block ? job->n : first + block;
        char label[80];
        st = count(job, index, NULL, 0, first, end, bins, own);
        if (st == SPMV_OK)
            st = count(job, index, NULL, 0, 0, end, bins, counts);
        for (int64_t i = 0; i < bins; i++)
            done += own[i] + 1; /* the elements of the bin, and one addition to the result */
        snprintf(label, sizeof label, "own counts of values %lld to %lld", (long long)first, (long long)end - 1);
        spmv_trace step = {.launch = "histogram_private",
                           .label = label,
                           .block = b,
                           .host_cells = own,
                           .n = bins,
                           .type = SPMV_I64,
                           .operations = done - bins};
        explain_step(&step, &job->page);
        explain_text(&job->page, "added to the result, one addition per bin");
        snprintf(label, sizeof label, "result after block %lld", (long long)b);
        show(job, label, counts, bins);
        job->page.operations = done;
    }
    return st;
}

/* "private:4": elements per block, 4 by default. */
static spmv_status private_block(const char *rung, int64_t *block)
{
    long long number = 4;
    const char *const colon = strchr(rung, ':');
    const bool read = colon == NULL || integer_read(colon + 1, &number) == INTEGER_READ;
    *block = number;
    if (read && number >= 1 && number <= EXPLAIN_MOST)
        return SPMV_OK;
    complain("--rung %s: the block size must be from 1 to %d", rung, EXPLAIN_MOST);
    return SPMV_ERROR_METHOD;
}

spmv_status explain_histogram(struct explain_job *job, const char *const *words, int count_of_words)
{
    int64_t index[EXPLAIN_MOST], counts[EXPLAIN_MOST], bins = 1, outside = 0, block = 0;
    const bool private = strncmp(job->rung, "private", 7) == 0 && (job->rung[7] == '\0' || job->rung[7] == ':');
    spmv_status st = count_of_words <= EXPLAIN_MOST ? SPMV_OK : explain_check_size(job->o, "values", count_of_words);
    if (!private && strcmp(job->rung, "atomic") != 0) {
        complain("--rung %s: explain --op histogram supports the rungs atomic and private (private:4: blocks of 4)",
                 job->rung);
        return SPMV_ERROR_METHOD;
    }
    if (st == SPMV_OK && private)
        st = private_block(job->rung, &block);
    if (st == SPMV_OK)
        st = read_whole(job, words, count_of_words, index);
    for (int64_t i = 0; st == SPMV_OK && i < job->n; i++) {
        bins = index[i] >= bins ? index[i] + 1 : bins;
        outside += index[i] < 0;
    }
    if (st == SPMV_OK)
        st = explain_check_size(job->o, "bins", bins);
    if (st != SPMV_OK)
        return st;
    explain_text(&job->page, "histogram of %lld whole number%s, %lld bin%s, by the rung %s", (long long)job->n,
                 job->n == 1 ? "" : "s", (long long)bins, bins == 1 ? "" : "s", job->rung);
    explain_rung(job, "histogram", job->rung);
    explain_text(&job->page, "*: the step changed the cell");
    explain_array(&job->page, "in", "in: numbers of bins", SPMV_I64, index, job->n, NULL);
    st = private ? show_private(job, index, bins, block) : show_atomic(job, index, bins);
    if (st == SPMV_OK)
        st = count(job, index, NULL, 0, 0, job->n, bins, counts);
    explain_array(&job->page, "out", "out: counts", SPMV_I64, counts, bins, NULL);
    if (outside > 0)
        explain_text(&job->page, "%lld value%s below 0, without a bin: left out", (long long)outside,
                     outside == 1 ? " is" : "s are");
    job->page.widest = 0; /* cells are bins here, not values */
    explain_end(job, job->n - outside);
    return st;
}

/* ---------------------------------------------------------------- expand */

/* The values are the numbers of outputs: value 3 gives 3 outputs. */
spmv_status explain_expand(struct explain_job *job, const char *const *words, int count_of_words)
{
    int64_t in[EXPLAIN_MOST], offsets[EXPLAIN_MOST + 1], places[EXPLAIN_MOST], source[EXPLAIN_MOST], rank[EXPLAIN_MOST];
    int64_t out[EXPLAIN_MOST], total = 0;
    spmv_status st = count_of_words <= EXPLAIN_MOST ? SPMV_OK : explain_check_size(job->o, "values", count_of_words);
    if (st == SPMV_OK)
        st = read_whole(job, words, count_of_words, in);
    for (int64_t i = 0; st == SPMV_OK && i < job->n; i++) {
        if (in[i] < 0) {
            complain("%s: value i is the number of outputs of element i, at least 0", words[i]);
            return SPMV_ERROR_ARGUMENT;
        }
        total += in[i];
    }
    if (st == SPMV_OK)
        st = explain_check_size(job->o, "outputs", total);
    if (st != SPMV_OK)
        return st;
    explain_text(&job->page, "expand of %lld whole number%s: element i makes in[i] outputs; the scan by the rung %s",
                 (long long)job->n, job->n == 1 ? "" : "s", job->rung);
    explain_rung(job, "expand", "scatter");
    explain_rung(job, "expand", "gather");
    explain_rung(job, "scan", job->rung);
    explain_text(&job->page, "*: the step changed the cell");
    explain_array(&job->page, "in", "in: numbers of outputs", SPMV_I64, in, job->n, NULL);
    explain_text(&job->page, "exclusive scan of the numbers");
    st = explain_trace_steps(job, EXPLAIN_EXCLUSIVE, SPMV_ADD, SPMV_I64, NULL, in, places, job->n);
    if (st == SPMV_OK)
        st = explain_status(job, spmv_expand_offsets(job->ctx, in, 64, offsets, job->n));
    if (st == SPMV_OK)
        st = explain_status(job, spmv_expand(job->ctx, SPMV_EXPAND_GATHER, SPMV_I64, in, offsets, job->n, 64, out,
                                             source, rank, total));
    if (st != SPMV_OK)
        return st;
    explain_array(&job->page, "offsets", "offsets", SPMV_I64, offsets, job->n + 1, NULL);
    explain_text(&job->page,
                 "%lld output%s: the last offset. scatter: element i writes outputs offsets[i] to "
                 "offsets[i + 1] - 1",
                 (long long)total, plural(total));
    explain_text(&job->page, "gather: output j finds the last element i with offsets[i] <= j");
    explain_array(&job->page, "source", "source: the element", SPMV_I64, source, total, NULL);
    explain_array(&job->page, "rank", "rank: j - offsets[source]", SPMV_I64, rank, total, NULL);
    explain_array(&job->page, "out", "out = in[source]", SPMV_I64, out, total, NULL);
    explain_end(job, job->n - 1);
    return st;
}

/* ---------------------------------------------------------------- gather */

/* Parses "10 20 30 | 2 -1 0": values, then indices. */
static spmv_status read_indices(struct explain_job *job, const char *const *words, int count, int *values,
                                int64_t *index, int64_t *n)
{
    *values = 0;
    while (*values < count && strcmp(words[*values], "|") != 0)
        ++*values;
    *n = count - *values - 1;
    if (*values == 0 || *n < 1) {
        complain("explain --op gather needs values, '|' and indices, such as: spmv explain --op gather 10 20 30 '|' 2 "
                 "-1 0 --keep greater:15");
        return SPMV_ERROR_ARGUMENT;
    }
    const spmv_status st = explain_check_size(job->o, "indices", *n);
    for (int64_t i = 0; st == SPMV_OK && i < *n; i++) {
        long long number = 0;
        const char *const word = words[*values + 1 + i];
        if (integer_read(word, &number) != INTEGER_READ || number < INT32_MIN || number > INT32_MAX) {
            complain("%s: must be an index, an integer", word);
            return SPMV_ERROR_ARGUMENT;
        }
        index[i] = number;
    }
    return st;
}

/* Gathers the elements as bytes of the job's type, 0 for an index outside; then applies the
 * filter. */
static spmv_status gather(struct explain_job *job, const int64_t *index, int64_t n, void *named, void *out)
{
    const spmv_type type = job->o->type;
    spmv_predicate predicate = SPMV_IS_NONZERO;
    double scalar = 0;
    spmv_status st = explain_status(job, spmv_gather(job->ctx, type, job->values, job->n, index, 64, named, n));
    if (st != SPMV_OK || job->o->keep == NULL) {
        memcpy(out, named, (size_t)n * spmv_type_size(type));
        return st;
    }
    st = explain_predicate(job->o->keep, &predicate, &scalar);
    const union real typed = real_scalar(type, scalar);
    if (st == SPMV_OK)
        st = explain_status(
            job, spmv_gather_if(job->ctx, predicate, 1, type, &typed, job->values, job->n, index, 64, out, n));
    int64_t kept[EXPLAIN_MOST];
    if (st == SPMV_OK)
        st = explain_kept(job, predicate, scalar, named, n, kept);
    for (int64_t i = 0; i < n && st == SPMV_OK; i++)
        kept[i] = kept[i] && index[i] >= 0 && index[i] < job->n;
    char title[64];
    snprintf(title, sizeof title, "kept: %.40s", job->o->keep);
    explain_array(&job->page, "kept", title, SPMV_I64, kept, n, NULL);
    return st;
}

spmv_status explain_gather(struct explain_job *job, const char *const *words, int count_of_words)
{
    int64_t index[EXPLAIN_MOST], inside[EXPLAIN_MOST], n = 0, within = 0;
    double named[EXPLAIN_MOST] = {0}, out[EXPLAIN_MOST] = {0}; /* room for either type */
    int values = 0;
    bool bars = false;
    if (strcmp(job->rung, "direct") != 0) {
        complain("--rung %s: explain --op gather supports the rung direct", job->rung);
        return SPMV_ERROR_METHOD;
    }
    spmv_status st = read_indices(job, words, count_of_words, &values, index, &n);
    if (st == SPMV_OK)
        st = explain_values(job, words, values, false, &bars);
    if (st != SPMV_OK)
        return st;
    for (int64_t i = 0; i < n; i++)
        within += inside[i] = index[i] >= 0 && index[i] < job->n;
    explain_text(&job->page, "gather of %lld of %lld value%s (%s)%s by the rung direct", (long long)n,
                 (long long)job->n, job->n == 1 ? "" : "s", spmv_type_name(job->o->type),
                 job->o->keep != NULL ? ", filtered," : "");
    explain_rung(job, "gather", job->rung);
    explain_array(&job->page, "in", "in", job->o->type, job->values, job->n, NULL);
    explain_array(&job->page, "index", "index", SPMV_I64, index, n, NULL);
    explain_array(&job->page, "inside", "inside: 0 <= index < values", SPMV_I64, inside, n, NULL);
    if (within < n)
        explain_text(&job->page, "an index outside, such as -1, is skipped: out keeps its value, here 0");
    const int64_t at = job->page.count;
    st = gather(job, index, n, named, out);
    if (st == SPMV_OK && job->page.count > at)
        explain_text(&job->page, "the filter tests in[index]; if it rejects a value, out keeps its value, here 0");
    explain_array(&job->page, "out", "out = in[index]", job->o->type, out, n, NULL);
    return st;
}
