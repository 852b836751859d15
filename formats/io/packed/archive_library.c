/* Opens libarchive and zlib at run time. Linking them would load a dozen other libraries with
 * libarchive.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/packed/archive_library.h"

#ifdef SPMV_HAVE_ARCHIVE

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static struct archive_library lib;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct function {
    const char *name;
    void *pointer;
};

/* Finds the functions in the library, which stays open until the program ends. */
static bool find_functions(const char *name, const struct function *functions, size_t count)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library != NULL && i < count; i++) {
        void *const symbol = dlsym(library, functions[i].name);
        if (symbol == NULL)
            library = NULL;
        /* C has no cast from an object pointer to a function pointer */
        memcpy(functions[i].pointer, &symbol, sizeof symbol);
    }
    return library != NULL;
}

static void open_libraries(void)
{
#define ENTRY(name) {#name, &lib.name},
#define FILTER(NAME, name, form, magic, other) ENTRY(archive_write_add_filter_##name)
    static const struct function of_archive[] = {ARCHIVE_FUNCTIONS(ENTRY) COMPRESSION_LIST(FILTER)},
                                 of_zlib[] = {ZLIB_FUNCTIONS(ENTRY)};
#undef FILTER
#undef ENTRY
    lib.zlib_open = find_functions("libz.so.1", of_zlib, sizeof of_zlib / sizeof of_zlib[0]);
    lib.open =
        lib.zlib_open && find_functions("libarchive.so.13", of_archive, sizeof of_archive / sizeof of_archive[0]);
    if (!lib.open) {
        const char *const why = dlerror();
        snprintf(lib.why, sizeof lib.why, "%s", why != NULL ? why : "a function is missing");
    }
}

const struct archive_library *archive_library(void)
{
    pthread_once(&once, open_libraries);
    return &lib;
}

#endif
