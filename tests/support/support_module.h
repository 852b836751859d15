/* Files that take the place of modules of the solvers and are not libraries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_MODULE_H
#define SUPPORT_MODULE_H

#include <stdio.h>
#include <unistd.h>

#include "tests/support/support.h"

struct broken_module {
    char folder[64], path[128];
};

/* From now on the library finds this file in place of the module of that name. */
static inline struct broken_module broken_module_begin(const char *name)
{
    struct broken_module m = {.folder = "/tmp/spmv_test_module_XXXXXX"};
    assert_non_null(mkdtemp(m.folder));
    snprintf(m.path, sizeof m.path, "%s/%s", m.folder, name);
    FILE *const f = fopen(m.path, "w");
    assert_non_null(f);
    fputs("no library\n", f);
    fclose(f);
    setenv("SPMV_MODULE_PATH", m.folder, 1);
    return m;
}

static inline void broken_module_end(const struct broken_module *m)
{
    unsetenv("SPMV_MODULE_PATH");
    remove(m->path);
    rmdir(m->folder);
}

static char no_modules_folder[64];

static inline void no_modules_end(void)
{
    char path[128];
    for (int i = 0; spmv_module_file(i, NULL, NULL, 0, NULL) != NULL; i++) {
        snprintf(path, sizeof path, "%s/%s", no_modules_folder, spmv_module_file(i, NULL, NULL, 0, NULL));
        remove(path);
    }
    rmdir(no_modules_folder);
}

/* From now on to the end of the program, no module can be opened: "auto" does without direct. */
static inline void no_modules(void)
{
    char path[128];
    snprintf(no_modules_folder, sizeof no_modules_folder, "/tmp/spmv_test_modules_XXXXXX");
    assert_non_null(mkdtemp(no_modules_folder));
    for (int i = 0; spmv_module_file(i, NULL, NULL, 0, NULL) != NULL; i++) {
        snprintf(path, sizeof path, "%s/%s", no_modules_folder, spmv_module_file(i, NULL, NULL, 0, NULL));
        FILE *const f = fopen(path, "w");
        assert_non_null(f);
        fclose(f);
    }
    setenv("SPMV_MODULE_PATH", no_modules_folder, 1);
    atexit(no_modules_end);
}

/* Like SUPPORT_MAIN, without modules. */
#define SUPPORT_MAIN_WITHOUT_MODULES(...)                                                                              \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        support_begin(argc, argv);                                                                                     \
        no_modules();                                                                                                  \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                               \
        return cmocka_run_group_tests(tests, NULL, NULL);                                                              \
    }

#endif
