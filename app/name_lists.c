/* Lists of names that options and arguments accept, and the name most similar to a mistyped word.
 *
 * Help, checks and messages use these lists, which come from the tables of the library and of
 * bench.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "app/name_lists.h"
#include "app/output.h"
#include "bench/ops/work.h"
#include "bench/peers/peer_list.h"
#include "bench/suites.h"

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

bool names_have(const struct names *names, const char *word, size_t length)
{
    for (int i = 0; i < names->count; i++)
        if (is_word(word, length, names->name[i]))
            return true;
    return false;
}

void names_add(struct names *names, const char *name)
{
    if (names->count < NAMES_MOST && !names_have(names, name, strlen(name)))
        names->name[names->count++] = name;
}

void names_add_words(struct names *names, char *text)
{
    for (char *end; (end = strchr(text, ' ')) != NULL; text = end + 1) {
        *end = '\0';
        names_add(names, text);
    }
}

void names_join(const struct names *names, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < names->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", names->name[i]);
}

/* ---------------------------------------------------------------- did you mean */

enum { WORD_MOST = 40 };

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
    int d[WORD_MOST + 1][WORD_MOST + 1];
    if (m > WORD_MOST || n > WORD_MOST)
        return WORD_MOST;
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

/* The most names in a message. */
enum { LISTED_MOST = 32 };

spmv_status names_refuse(const struct names *names, const char *what, const char *word, size_t length)
{
    char known[1024];
    const char *const nearest = names_nearest(names, word, length);
    names_join(names, known, sizeof known);
    if (names->count > LISTED_MOST)
        snprintf(known, sizeof known, "those that the command's --help lists");
    if (nearest != NULL)
        complain("unknown %s %.*s; did you mean %s? There are: %s", what, (int)length, word, nearest, known);
    else
        complain("unknown %s %.*s; there are: %s", what, (int)length, word, known);
    return SPMV_ERROR_ARGUMENT;
}

spmv_status names_check(const struct names *names, const char *what, const char *text, bool several)
{
    for (const char *word = text; word != NULL;) {
        const size_t length = several ? strcspn(word, ",") : strlen(word);
        if (!names_have(names, word, length))
            return names_refuse(names, what, word, length);
        word = word[length] == ',' ? word + length + 1 : NULL;
    }
    return SPMV_OK;
}

/* ---------------------------------------------------------------- the lists */

static void of_backends(struct names *names, spmv_backend backend, const char *(*name)(spmv_backend, int))
{
    static const spmv_backend all[] = {SPMV_BACKEND_CUDA, SPMV_BACKEND_OMP, SPMV_BACKEND_REF};
    for (int b = 0; b < 3; b++)
        if (spmv_backend_built(all[b]) && (backend == SPMV_BACKEND_AUTO || backend == all[b]))
            for (int i = 0; name(all[b], i) != NULL; i++)
                names_add(names, name(all[b], i));
}

void names_of_methods(struct names *names, spmv_backend backend)
{
    of_backends(names, backend, spmv_method_name);
}

void names_of_multiply_methods(struct names *names, spmv_backend backend)
{
    of_backends(names, backend, spmv_multiply_method_name);
}

void names_of_rungs(struct names *names, spmv_backend backend)
{
    of_backends(names, backend, spmv_cg_method_name);
}

void names_of_solvers(struct names *names)
{
    for (int i = 0; spmv_solver_method_name(i) != NULL; i++)
        names_add(names, spmv_solver_method_name(i));
    names_add(names, "auto");
}

void names_of_preconditioners(struct names *names)
{
    for (int i = 0; spmv_preconditioner_name(i) != NULL; i++)
        names_add(names, spmv_preconditioner_name(i));
    names_add(names, "auto");
    names_add(names, "all");
}

void names_of_operations(struct names *names)
{
    for (int i = 0; operation_at(i) != NULL; i++)
        names_add(names, operation_at(i)->name);
}

void names_of_suites(struct names *names)
{
    const char *about;
    for (int i = 0; suite_name(i, &about) != NULL; i++)
        names_add(names, suite_name(i, &about));
}

void names_of_peers(struct names *names)
{
#define MODULE(module, backend, peers, operations, from) #module " "
#define PEERS(module, backend, peers, operations, from) peers " "
    static const char modules[] = "all none " PEER_MODULE_LIST(MODULE), all[] = PEER_MODULE_LIST(PEERS);
#undef MODULE
#undef PEERS
    static char text[sizeof modules + sizeof all];
    memcpy(text, modules, sizeof modules - 1);
    memcpy(text + sizeof modules - 1, all, sizeof all);
    names->count = 0;
    names_add_words(names, text);
}
