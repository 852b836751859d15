/* Finds and opens modules: libraries that are opened when a solver or a transport needs them, so that
 * libspmv does not link the packages behind them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVER_MODULE_H
#define SOLVER_MODULE_H

#include "core/runtime.h"

struct solver_module {
    const char *subject;    /* begins the messages: "direct" */
    const char *file;       /* "spmv_direct_klu.so" */
    const char *symbol;     /* its only symbol, a function without arguments that returns a struct */
    const char *what_to_do; /* the message if the module is missing: what needs what, the package */
    int abi;                /* the first member of the struct */
};

/* what_to_do of a module that needs this library, which `source` has: "KLU of SuiteSparse", "KLU".
 * package: of Debian; part: the argument of scripts/packages.sh. */
#define MODULE_NEEDS(subject, library, source, package, part)                                                          \
    subject " needs the library " library " and a module: install " source " (Debian, Ubuntu: " package                \
            "; scripts/packages.sh " part ") and build again, or set SPMV_MODULE_PATH to the module's folder"

/* Opens the module and returns the struct that its symbol returns. It is searched in the folders of
 * the environment variable SPMV_MODULE_PATH (separated by :; ignored in a set-uid program), then, relative to this library or
 * program, in spmv/modules, solvers/modules, ../lib/spmv/modules, ../LIBDIR/spmv/modules (LIBDIR:
 * CMAKE_INSTALL_LIBDIR) and ../solvers/modules. The module and its folder must belong to root, the
 * effective user or the owner of this library, and others must not be able to write to them
 * (trust.h). It is never unloaded. NULL after an error:
 * SPMV_ERROR_UNSUPPORTED with a message. */
const void *solver_module_open(spmv_context *ctx, const struct solver_module *module);

#endif
