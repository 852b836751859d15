/* Reads and writes banners with mmio, and checks its input and output.
 *
 * mmio (1996) reads the banner with sscanf into 64-byte buffers, from a line buffer of 1025 bytes,
 * and compares the tag case-sensitively. So the line is split into words here, the length of every
 * word is checked, and mmio gets a rewritten banner: one blank between words, all in lower case
 * except the tag. mmio's type code then determines the kind of file. mmio does not report which
 * word it rejects; the words are compared with mmio's own to name it.
 *
 * Writing uses a stream in memory too. Copies of mmio differ in the return value of mm_write_banner
 * (the original always reports failure) and in whether they use a static buffer, which two threads
 * must not share. So a lock is held, and the output is checked instead of the return value.
 * mm_typecode_to_str is not called directly: some copies return memory to be freed, others static
 * memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/mtx/mmio_banner.h"

#include <pthread.h>
#include <stdio.h>

enum { TAG, OBJECT, FORMAT, FIELD, SYMMETRY, WORDS };

struct word {
    const char *begin, *end;
};

static const char *const word_names[WORDS] = {"tag", "object", "format", "field", "symmetry"};

/* Fields that are not in the standard, and the standard's word for what they say. SciPy writes
 * unsigned-integer for matrices of uint32 and uint64. */
static const struct {
    const char *word, *standard;
} other_fields[] = {{"unsigned-integer", MM_INT_STR}, {"double", MM_REAL_STR}};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool word_is(const struct word *word, const char *text)
{
    const char *p = word->begin;
    while (p < word->end && *text != '\0' && lower(*p) == lower(*text))
        p++, text++;
    return p == word->end && *text == '\0';
}

/* The standard's word for another field; NULL: there is none. */
static const char *standard_field(const struct word *field)
{
    for (size_t k = 0; k < sizeof other_fields / sizeof other_fields[0]; k++)
        if (word_is(field, other_fields[k].word))
            return other_fields[k].standard;
    return NULL;
}

/* Skips what some files have before the banner: a byte order mark, blanks. */
static const char *skip_before(const char *line, const char *line_end)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (line_end - line >= 3 && memcmp(line, mark, 3) == 0)
        line += 3;
    return text_skip_blanks(line);
}

bool banner_tag(const char *line, const char *line_end)
{
    line = skip_before(line, line_end);
    const struct word first = {line, text_token_end(line)};
    return line < line_end && (word_is(&first, MatrixMarketBanner) || word_is(&first, &MatrixMarketBanner[1]));
}

/* Warns of a banner that deviates from the standard but is unambiguous. */
static spmv_status warn_of_tag(struct text_source *source, const char *line, const char *line_end)
{
    const char *const tag = skip_before(line, line_end);
    const bool mark = tag - line >= 3 && *line == '\xef', blanks = tag - line > (mark ? 3 : 0),
               short_tag = tag[1] != '%';
    if (!mark && !blanks && !short_tag)
        return SPMV_OK;
    return text_warn(source, ":1:1: the banner is accepted, but other readers may reject it:%s%s%s",
                     mark ? " a byte order mark precedes it" : "",
                     blanks ? (mark ? ", blanks precede it" : " blanks precede it") : "",
                     short_tag ? (mark || blanks ? ", its tag has one percent sign" : " its tag has one percent sign")
                               : "");
}

/* Warns of a field that is not in the standard. */
static spmv_status warn_of_field(struct text_source *source, const char *line, const struct word *field)
{
    const char *const standard = standard_field(field);
    char shown[TEXT_SHOWN];
    if (standard == NULL)
        return SPMV_OK;
    return text_warn(source,
                     ":1:%lld: the banner is accepted, but other readers may reject it: field \"%s\" is read as %s",
                     (long long)(field->begin - line + 1), text_show(field->begin, field->end, shown), standard);
}

/* Writes a banner of the words for mmio. Their lengths have been checked. */
static int normalise(const struct word words[WORDS], char text[BANNER_TEXT])
{
    int n = snprintf(text, BANNER_TEXT, "%s", MatrixMarketBanner);
    const char *const field = standard_field(&words[FIELD]);
    for (int w = OBJECT; w < WORDS; w++) {
        text[n++] = ' ';
        const bool other = w == FIELD && field != NULL;
        const char *const end = other ? field + strlen(field) : words[w].end;
        for (const char *p = other ? field : words[w].begin; p < end; p++)
            text[n++] = lower(*p);
    }
    text[n++] = '\n';
    return n;
}

static spmv_status fail_word(struct text_source *source, spmv_status status, const char *line, int w,
                             const struct word *word, const char *why)
{
    char shown[TEXT_SHOWN];
    return text_fail(source, status, 1, word->begin - line + 1, "%s \"%s\" %s", word_names[w],
                     text_show(word->begin, word->end, shown), why);
}

/* Fails: not a Matrix Market file. */
static spmv_status fail_tag(struct text_source *source, const char *line, const char *line_end)
{
    char shown[TEXT_SHOWN];
    return text_fail(source, SPMV_ERROR_FORMAT, 1, 1,
                     "bad banner: line 1 must read \"%s matrix coordinate|array real|integer|complex|pattern "
                     "general|symmetric|skew-symmetric|hermitian\", found \"%s\"",
                     MatrixMarketBanner, text_show(line, line_end, shown));
}

/* Fails after mmio rejected the words: names the first that mmio does not have. */
static spmv_status fail_unknown(struct text_source *source, const char *line, const struct word words[WORDS])
{
    static const char *const known[WORDS][5] = {
        {NULL},
        {MM_MTX_STR},
        {MM_COORDINATE_STR, MM_ARRAY_STR},
        {MM_REAL_STR, MM_INT_STR, MM_PATTERN_STR, MM_COMPLEX_STR},
        {MM_GENERAL_STR, MM_SYMM_STR, MM_SKEW_STR, MM_HERM_STR},
    };
    static const char *const why[WORDS] = {
        "",
        "is unknown; it must be matrix",
        "is unknown; it must be coordinate or array",
        "is unknown; it must be real, integer, complex or pattern",
        "is unknown; it must be general, symmetric, skew-symmetric or hermitian",
    };
    for (int w = OBJECT; w < WORDS; w++) {
        bool found = w == FIELD && standard_field(&words[w]) != NULL;
        for (int k = 0; known[w][k] != NULL; k++)
            found = found || word_is(&words[w], known[w][k]);
        if (!found && w == OBJECT && word_is(&words[w], "vector"))
            return fail_word(source, SPMV_ERROR_UNSUPPORTED, line, w, &words[w],
                             "is not supported; write a vector as \"matrix array\" with one column");
        if (!found)
            return fail_word(source, SPMV_ERROR_FORMAT, line, w, &words[w], why[w]);
    }
    return text_fail(source, SPMV_ERROR_FORMAT, 1, 1, "bad banner: mmio rejects it");
}

/* Rejects combinations that mmio accepts and the standard does not. */
static spmv_status check_code(struct text_source *source, const char *line, const struct word words[WORDS],
                              MM_typecode code)
{
    if (mm_is_pattern(code) && mm_is_dense(code))
        return fail_word(source, SPMV_ERROR_FORMAT, line, FIELD, &words[FIELD],
                         "cannot be combined with array: no values would be stored");
    if (mm_is_pattern(code) && mm_is_skew(code))
        return fail_word(source, SPMV_ERROR_FORMAT, line, SYMMETRY, &words[SYMMETRY],
                         "cannot be combined with pattern, which has no signs");
    if (mm_is_hermitian(code) && !mm_is_complex(code))
        return text_warn(source,
                         ":1:%lld: the banner is accepted, but other readers may reject it: a hermitian matrix "
                         "that is not complex is a symmetric one",
                         (long long)(words[SYMMETRY].begin - line + 1));
    return SPMV_OK;
}

static spmv_status cut_words(struct text_source *source, const char *line, const char *line_end,
                             struct word words[WORDS])
{
    const char *p = skip_before(line, line_end);
    for (int w = TAG; w < WORDS; w++) {
        p = text_skip_blanks(p);
        words[w] = (struct word){p, text_token_end(p)};
        if (p == line_end)
            return text_fail(source, SPMV_ERROR_FORMAT, 1, p - line + 1, "bad banner: the %s is missing",
                             word_names[w]);
        if (words[w].end - p >= MM_MAX_TOKEN_LENGTH)
            return fail_word(source, SPMV_ERROR_FORMAT, line, w, &words[w], "is unknown: it is too long");
        if (memchr(p, '\0', (size_t)(words[w].end - p)) != NULL)
            return fail_word(source, SPMV_ERROR_FORMAT, line, w, &words[w], "is unknown: it contains a zero byte");
        p = words[w].end;
    }
    p = text_skip_blanks(p);
    const struct word rest = {p, line_end};
    if (p == line_end)
        return SPMV_OK;
    char shown[TEXT_SHOWN];
    if (p[-1] == '\r')
        return text_fail(source, SPMV_ERROR_FORMAT, 1, p - line,
                         "a carriage return alone does not end a line; convert the file: tr '\\r' '\\n' <FILE >NEW");
    return text_fail(source, SPMV_ERROR_FORMAT, 1, p - line + 1, "bad banner: extra text \"%s\" after the symmetry",
                     text_show(rest.begin, rest.end, shown));
}

spmv_status banner_read(struct text_source *source, const char *line, const char *line_end, MM_typecode *code,
                        int64_t *field_column)
{
    struct word words[WORDS];
    char text[BANNER_TEXT];
    if (!banner_tag(line, line_end))
        return fail_tag(source, line, line_end);
    spmv_status st = cut_words(source, line, line_end, words);
    if (st == SPMV_OK)
        st = warn_of_tag(source, line, line_end);
    if (st == SPMV_OK)
        st = warn_of_field(source, line, &words[FIELD]);
    if (st != SPMV_OK)
        return st;
    *field_column = words[FIELD].begin - line + 1;
    const int n = normalise(words, text);
    FILE *stream = fmemopen(text, (size_t)n, "r");
    if (stream == NULL)
        return context_fail_memory(source->ctx, "reading a banner", n);
    const int refused = mm_read_banner(stream, code);
    fclose(stream);
    return refused ? fail_unknown(source, line, words) : check_code(source, line, words, *code);
}

spmv_status banner_write(spmv_context *ctx, MM_typecode code, char text[BANNER_TEXT])
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    memset(text, 0, BANNER_TEXT);
    FILE *stream = fmemopen(text, BANNER_TEXT - 1, "w");
    if (stream == NULL)
        return context_fail_memory(ctx, "writing a banner", BANNER_TEXT);
    pthread_mutex_lock(&one_at_a_time);
    mm_write_banner(stream, code);
    pthread_mutex_unlock(&one_at_a_time);
    fclose(stream);
    char *const end = strchr(text, '\n');
    if (end == NULL || !banner_tag(text, end))
        return context_fail(ctx, SPMV_ERROR_WRITE, "mmio wrote no banner");
    *end = '\0';
    return SPMV_OK;
}
