/* Selects methods and peers by name.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/candidate_list.h"

#include <stdio.h>
#include <string.h>

#include "bench/peers/peer_list.h"
#include "bench/peers/peer_load.h"

struct known {
    const char *module, *peers, *operations, *package;
    spmv_backend backend;
};
#define ROW(module_, backend_, peers_, operations_, package_)                                                          \
    {.module = #module_,                                                                                               \
     .peers = (peers_),                                                                                                \
     .operations = (operations_),                                                                                      \
     .package = (package_),                                                                                            \
     .backend = SPMV_BACKEND_##backend_},
static const struct known known[] = {PEER_MODULE_LIST(ROW)};
#undef ROW
enum { KNOWN = sizeof known / sizeof known[0] };

/* The next word of a list: its start, and its length in *length; NULL at the end. */
static const char *next_word(const char **list, char separator, size_t *length)
{
    const char *const word = *list;
    const char *const end = word == NULL ? NULL : strchr(word, separator);
    if (word == NULL)
        return NULL;
    *length = end != NULL ? (size_t)(end - word) : strlen(word);
    *list = end != NULL ? end + 1 : NULL;
    return word;
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

static bool list_has(const char *list, char separator, const char *name)
{
    size_t length;
    for (const char *word; (word = next_word(&list, separator, &length)) != NULL;)
        if (is_word(word, length, name))
            return true;
    return false;
}

/* Adds the candidate of that name if it is not in the list; NULL: it is, or there is no room. */
static struct candidate *add(struct candidate_list *list, const char *name, size_t length, bool ours)
{
    for (int e = 0; e < list->count; e++)
        if (list->candidates[e].ours == ours && is_word(name, length, list->candidates[e].name))
            return NULL;
    if (list->count == CANDIDATES_MOST || length >= NAME_SIZE)
        return NULL;
    struct candidate *const candidate = &list->candidates[list->count++];
    *candidate = (struct candidate){.ours = ours};
    memcpy(candidate->name, name, length);
    return candidate;
}

static void add_methods(const struct operation *operation, spmv_backend backend, const char *methods,
                        struct candidate_list *list)
{
    size_t length;
    for (const char *word; (word = next_word(&methods, ',', &length)) != NULL;) {
        if (!is_word(word, length, "all")) {
            add(list, word, length, true);
            continue;
        }
        add(list, "auto", 4, true);
        for (int i = 0; operation->methods.name(backend, i) != NULL; i++)
            add(list, operation->methods.name(backend, i), strlen(operation->methods.name(backend, i)), true);
        for (int e = 0; e < list->count; e++)
            list->candidates[e].optional = true;
    }
}

void candidate_list_peers(struct names *names)
{
#define PEERS(module_, backend_, peers_, operations_, package_) peers_ " "
    static const char all[] = PEER_MODULE_LIST(PEERS);
#undef PEERS
    static char text[sizeof all];
    memcpy(text, all, sizeof all);
    names_add(names, "all");
    names_add(names, "none");
    for (int k = 0; k < KNOWN; k++)
        names_add(names, known[k].module);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        names_add(names, word);
}

static const struct peer *find_peer(const struct peer_module *module, const char *name)
{
    for (int p = 0; module != NULL && p < module->count; p++)
        if (strcmp(module->peers[p].name, name) == 0)
            return &module->peers[p];
    return NULL;
}

/* Peers for whole solutions are listed as "cg-precond". */
static const char PRECOND[] = "-precond";

/* Whether a peer that is listed for this work can do the operation. */
static bool can_do(const char *listed, size_t length, const struct operation *operation, bool solutions)
{
    const size_t own = strlen(operation->name);
    return is_word(listed, length, operation->name) ||
           (solutions && length > own && memcmp(listed, operation->name, own) == 0 &&
            is_word(listed + own, length - own, PRECOND));
}

/* Whether the module has a peer for the operation. */
static bool has_one_for(const struct known *row, const struct operation *operation, bool solutions)
{
    const char *list = row->operations;
    size_t length;
    for (const char *word; (word = next_word(&list, ' ', &length)) != NULL;)
        if (can_do(word, length, operation, solutions))
            return true;
    return false;
}

/* Adds the module's peers that are in the list wanted. A module is opened only if it belongs to the
 * backend and one of its peers is wanted. */
static void add_module(const struct known *row, const struct operation *operation, spmv_backend backend, bool solutions,
                       const char *wanted, const char *folder, struct candidate_list *list)
{
    const struct peer_module *module = NULL;
    char why[WHY_SIZE] = "";
    const bool whole = list_has(wanted, ',', row->module), all = list_has(wanted, ',', "all");
    const bool here = row->backend == backend || (row->backend == SPMV_BACKEND_OMP && backend == SPMV_BACKEND_REF);
    const char *peers = row->peers, *operations = row->operations;
    size_t length, operation_length = 0;
    if (!here)
        snprintf(why, sizeof why, "it needs the backend %s", spmv_backend_name(row->backend));
    for (const char *word; (word = next_word(&peers, ' ', &length)) != NULL;) {
        char name[NAME_SIZE] = "";
        const char *const does = next_word(&operations, ' ', &operation_length);
        const bool fits = can_do(does, operation_length, operation, solutions);
        memcpy(name, word, length < NAME_SIZE ? length : NAME_SIZE - 1);
        /* If a peer has its module's name, the name selects the module, unless no peer of it
         * fits. */
        const bool of_module = strcmp(name, row->module) == 0 && has_one_for(row, operation, solutions);
        if (!(list_has(wanted, ',', name) && !of_module) && !((whole || (all && here)) && fits))
            continue;
        if (here && fits && module == NULL && why[0] == '\0' && peer_load(row->module, folder, &module, why) != 0)
            module = NULL;
        struct candidate *const candidate = add(list, name, strlen(name), false);
        if (candidate == NULL)
            continue;
        candidate->module = fits ? module : NULL;
        candidate->peer = fits ? find_peer(module, name) : NULL;
        if (!fits && here && can_do(does, operation_length, operation, true))
            snprintf(candidate->missing, sizeof candidate->missing, "it takes part with --precond only");
        else if (!fits && here)
            snprintf(candidate->missing, sizeof candidate->missing, "it does not support %s", operation->name);
        else if (candidate->peer == NULL)
            snprintf(candidate->missing, sizeof candidate->missing, "%s", why);
    }
}

/* Whether the solver can use it: ilu0 and ilut are not symmetric. */
static bool can_use(const struct operation *operation, const char *precond)
{
    return operation->unsymmetric || (strcmp(precond, "ilu0") != 0 && strcmp(precond, "ilut") != 0);
}

/* The names of preconditioners begin with all and auto. */
enum { ALL_AND_AUTO = 2 };

/* Replaces "all" in the list by every name after it and auto. False: there is an unknown name, at *word, of *length
 * characters. */
static bool expand_preconditioners(const struct names *known_names, const char *names, char *list, size_t size,
                                   const char **word, size_t *length)
{
    size_t used = 0;
    list[0] = '\0';
    while ((*word = next_word(&names, ',', length)) != NULL) {
        if (names_find(known_names, *word, *length) < 0)
            return false;
        const bool all = is_word(*word, *length, "all");
        for (int i = ALL_AND_AUTO; all && i < known_names->count && used < size; i++)
            if (strcmp(known_names->name[i], "schur") != 0) /* for systems of two fields */
                used += (size_t)snprintf(list + used, size - used, "%s%s", used > 0 ? "," : "", known_names->name[i]);
        if (!all && used < size)
            used += (size_t)snprintf(list + used, size - used, "%s%.*s", used > 0 ? "," : "", (int)*length, *word);
    }
    return used < size;
}

spmv_status candidate_list_precondition(const struct operation *operation, const char *names,
                                        struct candidate_list *list, char *why)
{
    char wanted[WHY_SIZE];
    const char *word = NULL;
    size_t length = 0;
    const bool optional = list_has(names, ',', "all");
    const struct candidate_list before = *list;
    struct names valid = {.count = 0};
    names_add(&valid, "all");
    names_add(&valid, "auto");
    for (int i = 0; spmv_preconditioner_name(i) != NULL; i++)
        if (can_use(operation, spmv_preconditioner_name(i)))
            names_add(&valid, spmv_preconditioner_name(i));
    if (!expand_preconditioners(&valid, names, wanted, sizeof wanted, &word, &length)) {
        if (word != NULL)
            names_unknown(&valid, "preconditioner", word, length, NULL, why, WHY_SIZE);
        else
            snprintf(why, WHY_SIZE, "the list of preconditioners is too long");
        return SPMV_ERROR_ARGUMENT;
    }
    list->count = 0;
    for (int e = 0; e < before.count; e++) {
        const char *rest = before.candidates[e].ours ? wanted : "";
        while ((word = next_word(&rest, ',', &length)) != NULL) {
            if (list->count == CANDIDATES_MOST) {
                snprintf(why, WHY_SIZE, "more than %d pairs of a method and a preconditioner, or peers",
                         CANDIDATES_MOST);
                return SPMV_ERROR_ARGUMENT;
            }
            struct candidate *const candidate = &list->candidates[list->count++];
            *candidate = before.candidates[e];
            memcpy(candidate->precond, word, length);
            candidate->optional = candidate->optional || optional;
        }
    }
    return SPMV_OK;
}

spmv_status candidate_list_make(const struct operation *operation, spmv_backend backend, bool solutions,
                                const char *methods, const char *peers, const char *folder, struct candidate_list *list,
                                char *why)
{
    const char *rest = peers != NULL ? peers : "all";
    const char *const wanted = rest;
    size_t length;
    list->count = 0;
    struct names names = {.count = 0}, modules = {.count = 0};
    candidate_list_peers(&names);
    for (int k = 0; k < KNOWN; k++)
        names_add(&modules, known[k].module);
    for (const char *word; (word = next_word(&rest, ',', &length)) != NULL;)
        if (names_find(&names, word, length) < 0) {
            char text[512], known_modules[600];
            names_join(&modules, text, sizeof text);
            snprintf(known_modules, sizeof known_modules, "all, none, the modules %s, and their peers by name", text);
            names_unknown(&names, "peer", word, length, known_modules, why, WHY_SIZE);
            return SPMV_ERROR_ARGUMENT;
        }
    if (operation->methods.open != NULL)
        add_methods(operation, backend, methods != NULL ? methods : "auto", list);
    if (operation->peer_op < 0 || list_has(wanted, ',', "none"))
        return SPMV_OK;
    for (int k = 0; k < KNOWN; k++)
        add_module(&known[k], operation, backend, solutions, wanted, folder, list);
    return SPMV_OK;
}
