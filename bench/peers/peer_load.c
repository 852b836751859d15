/* Opens modules of peers: finds the file, opens it, and compares its exports with the row in
 * peer_list.h.
 *
 * RTLD_LOCAL, so that two modules may define the same symbols; RTLD_NOW, so that missing symbols
 * are found here and not during a run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "bench/peers/peer_load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/peers/peer_list.h"
#include "core/name_list.h"
#include "core/trust.h"

enum { PATH_SIZE = 4096 };

struct row {
    const char *name, *peers, *brings;
};

#define ROW(module, backend, peers, operations, brings) {#module, peers, brings},
static const struct row rows[] = {PEER_MODULE_LIST(ROW)};
#undef ROW

static const struct row *find_row(const char *name, char *why)
{
    struct names names = {.count = 0};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
        names_add_row(&names, rows[r].name, &rows[r]);
    const int at = names_find(&names, name, strlen(name));
    if (at < 0)
        names_unknown(&names, "module of peers", name, strlen(name), NULL, why, WHY_SIZE);
    return at < 0 ? NULL : names.row[at];
}

/* Whether FOLDER/spmv_peer_NAME.so exists. path: that name in any case, "" if it is too long. */
static int is_there(const char *folder, int length, const char *name, char *path)
{
    const int n = snprintf(path, PATH_SIZE, "%.*s/spmv_peer_%s.so", length, folder, name);
    if (n < 0 || n >= PATH_SIZE) {
        path[0] = '\0';
        return 0;
    }
    return access(path, F_OK) == 0;
}

/* Finds the path of the module: first in the folders of SPMV_PEER_PATH, then in those near the
 * program. */
static int find(const char *name, char *path)
{
    const char *list = secure_getenv("SPMV_PEER_PATH"); /* not in a set-uid program */
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, ":");
        if (length > 0 && length < PATH_SIZE && is_there(list, (int)length, name, path))
            return 1;
        list += length + (list[length] == ':');
    }
    static const char *const near[] = {"../lib/spmv/peers", "../" PEER_LIBDIR "/spmv/peers", "../bench/peers", "peers"};
    char program[PATH_SIZE / 2], folder[PATH_SIZE];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0 || (size_t)n == sizeof program - 1)
        return 0;
    program[n] = '\0';
    char *slash = strrchr(program, '/');
    if (slash == NULL)
        return 0;
    *slash = '\0';
    for (size_t f = 0; f < sizeof near / sizeof near[0]; f++) {
        const int length = snprintf(folder, sizeof folder, "%s/%s", program, near[f]);
        if (is_there(folder, length, name, path))
            return 1;
    }
    return 0;
}

/* Whether the peers match the row: same names, same order; and each has open and run. */
static int is_as_listed(const struct row *row, const struct peer_module *module, const char *path, char *why)
{
    const char *names = row->peers;
    for (int p = 0; p < module->count || *names != '\0'; p++) {
        const size_t length = strcspn(names, " ");
        const struct peer *peer = p < module->count ? &module->peers[p] : NULL;
        const char *has = peer == NULL ? "nothing" : peer->name == NULL ? "a peer without a name" : peer->name;
        if (length == 0 || strlen(has) != length || memcmp(has, names, length) != 0) {
            snprintf(why, WHY_SIZE, "%.256s: has %.64s instead of \"%.*s\": not built from this source", path, has,
                     (int)length, names);
            return 0;
        }
        if (peer->settings == NULL || peer->open == NULL || peer->run == NULL) {
            snprintf(why, WHY_SIZE, "%.256s: the peer %.64s lacks settings, open or run", path, has);
            return 0;
        }
        names += length + (names[length] == ' ');
    }
    return 1;
}

int peer_load(const char *name, const char *folder, const struct peer_module **module, char *why)
{
    *module = NULL;
    char path[PATH_SIZE] = "";
    const struct row *row = find_row(name, why);
    if (row == NULL)
        return -1;
    if (!(folder != NULL ? is_there(folder, (int)strnlen(folder, PATH_SIZE), name, path) : find(name, path))) {
        snprintf(why, WHY_SIZE, "the module spmv_peer_%s.so was not found%s%.256s: building it needs %s", name,
                 folder != NULL ? ", in " : "", folder != NULL ? folder : "", row->brings);
        return -1;
    }
    if (distrust_module(path, "/proc/self/exe", why, WHY_SIZE))
        return -1;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        const char *error = dlerror();
        snprintf(why, WHY_SIZE, "cannot open %.160s: %.240s; it needs %.80s", path, error != NULL ? error : "no reason",
                 row->brings);
        return -1;
    }
    /* POSIX allows a function pointer to be copied from the result of dlsym; C has no cast for
     * that. */
    const struct peer_module *(*get)(void) = NULL;
    void *symbol = dlsym(library, "spmv_peer_module");
    memcpy(&get, &symbol, sizeof get);
    if (get == NULL) {
        snprintf(why, WHY_SIZE, "%.256s: not a module of peers: no function spmv_peer_module", path);
        goto bad;
    }
    const struct peer_module *found = get();
    if (found == NULL) {
        snprintf(why, WHY_SIZE, "%.256s: its library does not start; it needs %.80s", path, row->brings);
        goto bad;
    }
    if (found->abi != PEER_ABI) {
        snprintf(why, WHY_SIZE,
                 "%.256s: made for version %d of the interface, this program has %d: build both from the same source",
                 path, found->abi, PEER_ABI);
        goto bad;
    }
    if (!is_as_listed(row, found, path, why))
        goto bad;
    *module = found;
    return 0;
bad:
    dlclose(library);
    return -1;
}
