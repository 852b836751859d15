/* Modules of the solvers: how they are found and opened.
 *
 * A module is never unloaded, because MPI does not support that.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr1, secure_getenv */
#endif
#include "solvers/solver_module.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/trust.h"

enum { PATH_SIZE = 4096, WHY_SIZE = 600 };

/* Whether FILE is in FOLDER/BEHIND; path is then its name. */
static bool is_there(const char *file, const char *folder, int length, const char *behind, char *path)
{
    const int n = snprintf(path, PATH_SIZE, "%.*s/%s%s%s", length, folder, behind, *behind != '\0' ? "/" : "", file);
    return n > 0 && n < PATH_SIZE && access(path, F_OK) == 0;
}

/* Whether it is in a folder near the library or program. */
static bool is_near(const char *file, const char *library, char *path)
{
    static const char *const near[] = {"spmv/modules", "solvers/modules", "../lib/spmv/modules",
                                       "../" MODULE_LIBDIR "/spmv/modules", "../solvers/modules"};
    const char *slash = strrchr(library, '/');
    const int length = slash != NULL ? (int)(slash - library) : 0;
    for (size_t i = 0; i < sizeof near / sizeof near[0] && slash != NULL; i++)
        if (is_there(file, library, length, near[i], path))
            return true;
    return false;
}

static bool own_program(char *path)
{
    const ssize_t n = readlink("/proc/self/exe", path, PATH_SIZE - 1);
    path[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The path of this library; of the program if it contains the library. (For a program, dladdr
 * returns argv[0], which the caller of the program sets.) */
static bool own_library(char *path)
{
    static const char here[] = ""; /* an address in this library */
    Dl_info info;
    void *more = NULL;
    if (dladdr1(here, &info, &more, RTLD_DL_LINKMAP) == 0)
        return own_program(path);
    const struct link_map *const map = more;
    if (map->l_name == NULL || map->l_name[0] == '\0')
        return own_program(path);
    const int n = snprintf(path, PATH_SIZE, "%s", map->l_name);
    return n > 0 && n < PATH_SIZE;
}

static bool find(const char *file, char *path)
{
    char own[PATH_SIZE];
    /* A program with more rights than its user ignores folders that the user names. */
    for (const char *list = secure_getenv("SPMV_MODULE_PATH"); list != NULL && *list != '\0';) {
        const size_t length = strcspn(list, ":");
        if (length > 0 && length < PATH_SIZE && is_there(file, list, (int)length, "", path))
            return true;
        list += length + (list[length] == ':');
    }
    return (own_library(own) && is_near(file, own, path)) || (own_program(own) && is_near(file, own, path));
}

/* Opens the library at path, unless others can have written it. NULL: why has the reason. */
static void *open_library(const char *path, char *why, size_t size)
{
    char own[PATH_SIZE];
    if (distrust_module(path, own_library(own) ? own : NULL, why, size))
        return NULL;
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const char *const error = library == NULL ? dlerror() : NULL;
    if (library == NULL)
        snprintf(why, size, "cannot open %.200s: %.300s", path, error != NULL ? error : "no reason");
    return library;
}

static const struct {
    const char *file, *purpose;
} modules[] = {{"spmv_direct_cudss.so", "solver direct:cudss"}, {"spmv_direct_cholmod.so", "solver direct:cholmod"},
               {"spmv_direct_klu.so", "solver direct:klu"},     {"spmv_direct_umfpack.so", "solver direct:umfpack"},
               {"spmv_direct_mumps.so", "solver direct:mumps"}, {"spmv_transport_openmpi.so", "ranks with Open MPI"},
               {"spmv_transport_mpich.so", "ranks with MPICH"}};

const char *spmv_module_file(int index, const char **purpose, char *text, size_t size, int *usable)
{
    char path[PATH_SIZE] = "", why[WHY_SIZE] = "not found";
    if (index < 0 || (size_t)index >= sizeof modules / sizeof *modules)
        return NULL;
    const char *const file = modules[index].file;
    const bool wanted = text != NULL && size > 0, found = (wanted || usable != NULL) && find(file, path);
    void *const library = found ? open_library(path, why, sizeof why) : NULL;
    if (wanted)
        snprintf(text, size, "%s", library != NULL ? path : why);
    if (library != NULL)
        dlclose(library);
    if (purpose != NULL)
        *purpose = modules[index].purpose;
    if (usable != NULL)
        *usable = library != NULL;
    return file;
}

const void *solver_module_open(spmv_context *ctx, const struct solver_module *module)
{
    char path[PATH_SIZE] = "", why[WHY_SIZE];
    if (!find(module->file, path)) {
        (void)context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s (%s was not found)", module->what_to_do, module->file);
        return NULL;
    }
    void *const library = open_library(path, why, sizeof why);
    if (library == NULL) {
        (void)context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s (%s)", module->what_to_do, why);
        return NULL;
    }
    /* POSIX allows a function pointer to be read from dlsym's result; C has no cast for that. */
    const void *(*get)(void) = NULL;
    void *symbol = dlsym(library, module->symbol);
    memcpy(&get, &symbol, sizeof get);
    const int *content = get != NULL ? get() : NULL; /* the first member of the struct is its abi */
    if (content == NULL || *content != module->abi) {
        (void)context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                           "%s: %.300s is a module of another version: build both from the same source",
                           module->subject, path);
        dlclose(library);
        return NULL;
    }
    return content;
}
