/* A file that takes the place of a module of the solvers and is not a library.
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

#endif
