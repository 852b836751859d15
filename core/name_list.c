/* Lists of names: see name_list.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/name_list.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

static bool is_word(const char *word, size_t length, const char *name)
{
    size_t same = 0; /* most names differ in the first character */
    while (same < length && name[same] != '\0' && name[same] == word[same])
        same++;
    return same == length && name[same] == '\0';
}

int names_find(const struct names *names, const char *word, size_t length)
{
    for (int i = 0; i < names->count; i++)
        if (is_word(word, length, names->name[i]))
            return i;
    return -1;
}

void names_add_row(struct names *names, const char *name, const void *row)
{
    if (names_find(names, name, strlen(name)) >= 0)
        return;
    assert(names->count < NAMES_MOST);
    names->name[names->count] = name;
    names->row[names->count++] = row;
}

void names_add(struct names *names, const char *name)
{
    names_add_row(names, name, NULL);
}

/* The row at this place of a table; NULL at its end. */
static const void *row_at(const void *rows, size_t size, int index)
{
    const char *row = rows;
    for (int i = 0; row != NULL && *(const char *const *)(const void *)row != NULL; i++, row += size)
        if (i == index)
            return row;
    return NULL;
}

const char *names_at(const void *rows, size_t size, int index)
{
    const void *const row = row_at(rows, size, index);
    return row != NULL ? *(const char *const *)row : NULL;
}

void names_add_table(struct names *names, const void *rows, size_t size)
{
    const char *name = NULL;
    for (int i = 0; (name = names_at(rows, size, i)) != NULL; i++)
        names_add_row(names, name, row_at(rows, size, i));
}

/* Appends to a text of *used characters, as far as it has room. */
static void append(char *text, size_t size, size_t *used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void append(char *text, size_t size, size_t *used, const char *format, ...)
{
    va_list values;
    if (*used >= size)
        return;
    va_start(values, format);
    *used += (size_t)vsnprintf(text + *used, size - *used, format, values);
    va_end(values);
}

void names_join(const struct names *names, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < names->count; i++)
        append(text, size, &used, "%s%s", i > 0 ? ", " : "", names->name[i]);
}

void names_unknown(const struct names *names, const char *what, const char *word, size_t length, const char *list,
                   char *text, size_t size)
{
    enum { WORD_MOST = 64 };
    size_t used = 0;
    const char *const nearest = names_nearest(names, word, length), *const on = names->on;
    append(text, size, &used, "unknown %s \"%.*s\"%s%s; ", what, (int)(length < WORD_MOST ? length : WORD_MOST), word,
           on != NULL ? " on " : "", on != NULL ? on : "");
    if (nearest != NULL)
        append(text, size, &used, "did you mean %s? There are: ", nearest);
    else
        append(text, size, &used, "there are: ");
    if (list != NULL)
        append(text, size, &used, "%s", list);
    else if (used < size)
        names_join(names, text + used, size - used);
}

/* ------------------------------------------------------------- did you mean */

enum { COMPARED_MOST = 40 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static char lower(char c)
{
    return (char)tolower((unsigned char)c);
}

/* The number of insertions, deletions, replacements and swaps of neighbours that turn one word into
 * the other, ignoring case (F. J. Damerau, "A technique for computer detection and correction of
 * spelling errors", 1964). */
static int distance(const char *a, size_t m, const char *b, size_t n)
{
    int d[COMPARED_MOST + 1][COMPARED_MOST + 1];
    if (m > COMPARED_MOST || n > COMPARED_MOST)
        return COMPARED_MOST;
    for (size_t i = 0; i <= m; i++)
        for (size_t j = 0; j <= n; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (int)(i + j);
                continue;
            }
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            d[i][j] = least(d[i - 1][j - 1] + !same, least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[m][n];
}

const char *names_nearest(const struct names *names, const char *word, size_t length)
{
    const char *nearest = NULL;
    int best = length < 3 ? 1 : (int)(length + 2) / 3; /* one error per three letters */
    for (int i = 0; i < names->count; i++) {
        const char *const name = names->name[i];
        const size_t size = strlen(name);
        const bool begins = (length >= 3 && strncmp(word, name, length) == 0) ||
                            (size >= 4 && size < length && memcmp(word, name, size) == 0);
        const int far = begins ? 1 : distance(word, length, name, size);
        if (far < (int)length && (far < best || (far == best && nearest == NULL))) {
            nearest = name;
            best = far;
        }
    }
    return nearest;
}
