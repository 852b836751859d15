/* Preconditioner hypre-amg: a V-cycle of algebraic multigrid by hypre's BoomerAMG, which a module
 * provides (modules/precond_hypre.c). This file finds and opens the module when it is first needed.
 *
 * The module is spmv_precond_hypre.so. It is searched in the folders of the environment variable
 * SPMV_MODULE_PATH (separated by :), then, relative to this library or program, in spmv/modules,
 * solvers/modules, ../lib/spmv/modules and ../solvers/modules. It is never unloaded, because MPI
 * does not support that.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "matrix_internal.h"
#include "precond_internal.h"
#include "precond_module.h"

enum { PATH_SIZE = 4096 };

static const char file_name[] = "spmv_precond_hypre.so";
static const char what_to_do[] =
    "preconditioner hypre-amg needs the library hypre and a module: install hypre (Debian, Ubuntu: "
    "libhypre-dev; scripts/packages.sh amg) and build again, or set SPMV_MODULE_PATH to the module's folder";

/* Whether the module is in FOLDER/BEHIND; path is then its name. */
static bool is_there(const char *folder, int length, const char *behind, char *path)
{
    const int n =
        snprintf(path, PATH_SIZE, "%.*s/%s%s%s", length, folder, behind, *behind != '\0' ? "/" : "", file_name);
    return n > 0 && n < PATH_SIZE && access(path, F_OK) == 0;
}

static bool is_near(const char *file, char *path)
{
    static const char *const near[] = {"spmv/modules", "solvers/modules", "../lib/spmv/modules", "../solvers/modules"};
    const char *slash = strrchr(file, '/');
    const int length = slash != NULL ? (int)(slash - file) : 0;
    for (size_t i = 0; i < sizeof near / sizeof near[0] && slash != NULL; i++)
        if (is_there(file, length, near[i], path))
            return true;
    return false;
}

static bool find_module(char *path)
{
    for (const char *list = getenv("SPMV_MODULE_PATH"); list != NULL && *list != '\0';) {
        const size_t length = strcspn(list, ":");
        if (length > 0 && length < PATH_SIZE && is_there(list, (int)length, "", path))
            return true;
        list += length + (list[length] == ':');
    }
    Dl_info library;
    if (dladdr(file_name, &library) != 0 && library.dli_fname != NULL && is_near(library.dli_fname, path))
        return true;
    char program[PATH_SIZE];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        return false;
    program[n] = '\0';
    return is_near(program, path);
}

/* Returns the module, or NULL with a message. */
static const struct precond_module *open_module(spmv_context *ctx)
{
    char path[PATH_SIZE] = "";
    if (!find_module(path)) {
        (void)context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s (%s was not found)", what_to_do, file_name);
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        const char *error = dlerror();
        (void)context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s (cannot open %.200s: %.300s)", what_to_do, path,
                           error != NULL ? error : "no reason");
        return NULL;
    }
    /* POSIX allows a function pointer to be read from dlsym's result; C has no cast for that. */
    const struct precond_module *(*get)(void) = NULL;
    void *symbol = dlsym(library, "spmv_precond_module");
    memcpy(&get, &symbol, sizeof get);
    const struct precond_module *module = get != NULL ? get() : NULL;
    if (module == NULL || module->abi != PRECOND_MODULE_ABI) {
        (void)context_fail(
            ctx, SPMV_ERROR_UNSUPPORTED,
            "preconditioner hypre-amg: %.300s is a module of another version: build both from the same source", path);
        dlclose(library);
        return NULL;
    }
    return module;
}

struct amg {
    spmv_preconditioner *m;
    const struct precond_module *module;
    void *state;
};

static spmv_status apply(void *self, const void *r, void *z)
{
    const struct amg *amg = self;
    char why[PRECOND_WHY] = "";
    if (amg->module->apply(amg->state, r, z, why) != 0)
        return context_fail(amg->m->ctx, SPMV_ERROR_NOT_FINITE, "preconditioner hypre-amg: %s", why);
    return SPMV_OK;
}

static void destroy(void *self)
{
    struct amg *amg = self;
    if (amg->state != NULL)
        amg->module->close(amg->state);
    host_free(amg);
}

static spmv_status supports(spmv_context *ctx, spmv_type type, int64_t nnz)
{
    if (ctx->backend->id == SPMV_BACKEND_CUDA)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "preconditioner hypre-amg needs the backend ref or omp, because it computes on the CPU");
    if (type != SPMV_F64)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "preconditioner hypre-amg supports only f64, not vectors of type %s", spmv_type_name(type));
    if (nnz > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "preconditioner hypre-amg: %lld nonzeros exceed hypre's 32-bit integers", (long long)nnz);
    return open_module(ctx) != NULL ? SPMV_OK : SPMV_ERROR_UNSUPPORTED;
}

/* Copies A as the module requires it: ascending columns without duplicates, 64-bit offsets, values
 * in f64. */
static spmv_status take_matrix(spmv_context *ctx, const spmv_csr *a, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    int64_t *row = NULL;
    double *val = NULL;
    TRY(host_alloc(ctx, a->nnz * 8, "rows of a matrix", (void **)&row));
    TRY(host_alloc(ctx, a->nnz * 8, "values of a matrix", (void **)&val));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            row[k] = i;
            val[k] = precond_value(a, k);
        }
    TRY(spmv_matrix_from_coo(ctx, a->rows, a->cols, a->nnz, row, a->col, val, SPMV_F64, matrix, NULL));
done:
    host_free(row);
    host_free(val);
    return st;
}

spmv_status precond_make_hypre_amg(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = m->ctx;
    struct amg *amg = NULL;
    spmv_matrix *matrix = NULL;
    char why[PRECOND_WHY] = "";
    const double strength = source->options->strength == 0 ? 0.25 : source->options->strength;
    TRY(supports(ctx, m->type, source->host.nnz));
    TRY(host_alloc(ctx, sizeof *amg, "a preconditioner", (void **)&amg));
    *amg = (struct amg){.m = m, .module = open_module(ctx)};
    if (m->rows > 0) {
        TRY(take_matrix(ctx, &source->host, &matrix));
        const struct precond_problem problem = {.rows = matrix->rows,
                                                .nnz = matrix->nnz,
                                                .row_ptr = matrix->row_ptr,
                                                .col = matrix->col,
                                                .val = matrix->val,
                                                .strength = strength};
        if (amg->module->open(&problem, &amg->state, why) != 0) {
            st = context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "preconditioner hypre-amg: %s", why);
            goto done;
        }
    }
    m->self = amg;
    m->apply = apply;
    m->destroy = destroy;
    snprintf(m->layout, sizeof m->layout,
             "BoomerAMG, %s: a V-cycle, HMIS, extended+i, l1 Gauss-Seidel forward and backward, strength %g",
             amg->module->version, strength);
done:
    spmv_matrix_destroy(matrix);
    if (st != SPMV_OK && amg != NULL)
        destroy(amg);
    return st;
}
