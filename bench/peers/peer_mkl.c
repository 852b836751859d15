/* Intel oneMKL: its inspector-executor sparse products of a CSR matrix, told to expect a thousand calls.
 *
 * The library is opened when the module is, by its run-time dispatcher libmkl_rt (PyPI: mkl), which the linker's
 * search path must have. Nothing of it is built in: the declarations below are those of its reference manual
 * ("Inspector-executor Sparse BLAS Routines"), with integers of 32 bits (LP64). Its threads are those of GNU OpenMP,
 * as are ours: with Intel's, two sets of threads would share the cores.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/peer.h"

/* From the manual. */
enum {
    INDEX_FROM_0 = 0,
    NON_TRANSPOSE = 10,
    GENERAL = 20,
    ROW_MAJOR = 101,
    COLUMN_MAJOR = 102,
    SUCCESS = 0,
    THREADS_OF_GNU = 3
};
struct description {
    int type, fill, diagonal;
};

/* They expect so many products. */
enum { CALLS = 1000 };

static struct {
    int (*set_threading_layer)(int layer);
    int (*set_threads)(int threads);
    void (*version)(char *text, int size);
    int (*create_f64)(void **a, int base, int rows, int cols, int *begin, int *end, int *col, double *val);
    int (*create_f32)(void **a, int base, int rows, int cols, int *begin, int *end, int *col, float *val);
    int (*hint_mv)(void *a, int operation, struct description, int calls);
    int (*hint_mm)(void *a, int operation, struct description, int layout, int columns, int calls);
    int (*optimize)(void *a);
    int (*mv_f64)(int operation, double alpha, void *a, struct description, const double *x, double beta, double *y);
    int (*mv_f32)(int operation, float alpha, void *a, struct description, const float *x, float beta, float *y);
    int (*mm_f64)(int operation, double alpha, void *a, struct description, int layout, const double *x, int columns,
                  int x_stride, double beta, double *y, int y_stride);
    int (*mm_f32)(int operation, float alpha, void *a, struct description, int layout, const float *x, int columns,
                  int x_stride, float beta, float *y, int y_stride);
    int (*destroy)(void *a);
} mkl;

static const struct {
    const char *name;
    void *at;
} functions[] = {
    {"MKL_Set_Threading_Layer", &mkl.set_threading_layer},
    {"MKL_Set_Num_Threads_Local", &mkl.set_threads},
    {"mkl_get_version_string", &mkl.version},
    {"mkl_sparse_d_create_csr", &mkl.create_f64},
    {"mkl_sparse_s_create_csr", &mkl.create_f32},
    {"mkl_sparse_set_mv_hint", &mkl.hint_mv},
    {"mkl_sparse_set_mm_hint", &mkl.hint_mm},
    {"mkl_sparse_optimize", &mkl.optimize},
    {"mkl_sparse_d_mv", &mkl.mv_f64},
    {"mkl_sparse_s_mv", &mkl.mv_f32},
    {"mkl_sparse_d_mm", &mkl.mm_f64},
    {"mkl_sparse_s_mm", &mkl.mm_f32},
    {"mkl_sparse_destroy", &mkl.destroy},
};

static const struct description general = {.type = GENERAL};

struct product {
    const struct peer_problem *problem;
    void *a;
};

/* Opens the library once. Returns whether it is there and has the functions. */
static int open_library(void)
{
    static const char *const files[] = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"};
    static int is_open;
    void *library = NULL;
    if (is_open)
        return 1;
    for (size_t f = 0; f < sizeof files / sizeof files[0] && library == NULL; f++)
        library = dlopen(files[f], RTLD_NOW | RTLD_LOCAL);
    for (size_t f = 0; f < sizeof functions / sizeof functions[0] && library != NULL; f++) {
        void *const symbol = dlsym(library, functions[f].name);
        if (symbol == NULL)
            return 0;
        *(void **)functions[f].at = symbol;
    }
    if (library == NULL)
        return 0;
    mkl.set_threading_layer(THREADS_OF_GNU);
    is_open = 1;
    return 1;
}

static void close_product(void *state)
{
    struct product *product = state;
    if (product->a != NULL)
        mkl.destroy(product->a);
    free(product);
}

static int layout_of(const struct peer_problem *p)
{
    return p->by_columns ? COLUMN_MAJOR : ROW_MAJOR;
}

static int prepare(struct product *product)
{
    const struct peer_problem *const p = product->problem;
    const int rows = (int)p->rows, cols = (int)p->cols;
    int *const row_ptr = (int *)p->row_ptr, *const col = (int *)p->col; /* which it does not write */
    int status =
        p->type == SPMV_F64
            ? mkl.create_f64(&product->a, INDEX_FROM_0, rows, cols, row_ptr, row_ptr + 1, col, (double *)p->val)
            : mkl.create_f32(&product->a, INDEX_FROM_0, rows, cols, row_ptr, row_ptr + 1, col, (float *)p->val);
    if (status == SUCCESS)
        status = p->op == PEER_SPMM ? mkl.hint_mm(product->a, NON_TRANSPOSE, general, layout_of(p), p->vectors, CALLS)
                                    : mkl.hint_mv(product->a, NON_TRANSPOSE, general, CALLS);
    return status == SUCCESS ? mkl.optimize(product->a) : status;
}

static int open_product(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    struct product *product = calloc(1, sizeof *product);
    if (product == NULL) {
        snprintf(why, why_size, "out of memory: %zu bytes", sizeof *product);
        return -1;
    }
    product->problem = problem;
    const int caller = mkl.set_threads(problem->threads), status = prepare(product);
    mkl.set_threads(caller);
    if (status != SUCCESS) {
        snprintf(why, why_size, "oneMKL: %lld x %lld with %lld entries: sparse_status_t %d", (long long)problem->rows,
                 (long long)problem->cols, (long long)problem->nnz, status);
        close_product(product);
        return -1;
    }
    *state = product;
    return 0;
}

static int multiply(const struct product *product)
{
    const struct peer_problem *const p = product->problem;
    const int k = p->vectors, layout = layout_of(p);
    const int x_lead = p->by_columns ? (int)p->cols : k, y_lead = p->by_columns ? (int)p->rows : k;
    if (p->op == PEER_SPMV)
        return p->type == SPMV_F64 ? mkl.mv_f64(NON_TRANSPOSE, 1, product->a, general, p->x, 0, p->y)
                                   : mkl.mv_f32(NON_TRANSPOSE, 1, product->a, general, p->x, 0, p->y);
    return p->type == SPMV_F64
               ? mkl.mm_f64(NON_TRANSPOSE, 1, product->a, general, layout, p->x, k, x_lead, 0, p->y, y_lead)
               : mkl.mm_f32(NON_TRANSPOSE, 1, product->a, general, layout, p->x, k, x_lead, 0, p->y, y_lead);
}

static int run_product(void *state)
{
    const struct product *product = state;
    const int caller = mkl.set_threads(product->problem->threads), status = multiply(product);
    mkl.set_threads(caller);
    return status == SUCCESS ? 0 : -1;
}

static const struct peer peers[] = {
    {.name = "mkl",
     .op = PEER_SPMV,
     .settings = "mkl_sparse_optimize after a hint of 1000 calls; mkl_sparse_?_mv; threads of GNU OpenMP",
     .open = open_product,
     .run = run_product,
     .close = close_product},
    {.name = "mkl-spmm",
     .op = PEER_SPMM,
     .settings = "mkl_sparse_optimize after a hint of 1000 calls; mkl_sparse_?_mm; threads of GNU OpenMP",
     .open = open_product,
     .run = run_product,
     .close = close_product},
};

const struct peer_module *spmv_peer_module(void)
{
    static char library[200];
    static const struct peer_module module = {PEER_ABI, library, peers, sizeof peers / sizeof peers[0]};
    if (!open_library())
        return NULL;
    mkl.version(library, sizeof library - 1);
    for (size_t end = strlen(library); end > 0 && library[end - 1] == ' '; end--)
        library[end - 1] = '\0'; /* it fills with blanks */
    return &module;
}
