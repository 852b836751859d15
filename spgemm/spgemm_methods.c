/* The methods of sparse products.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "spgemm/spgemm_internal.h"

const struct spgemm_method spgemm_methods_ref[] = {
    {"rows", spgemm_rows_symbolic_ref, spgemm_rows_numeric_ref, NULL, NULL},
    {"expand", spgemm_expand_symbolic, spgemm_expand_numeric, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct spgemm_method spgemm_methods_omp[] = {
    {"rows", spgemm_rows_symbolic_omp, spgemm_rows_numeric_omp, spgemm_rows_at_once_omp, spgemm_rows_destroy_omp},
    {"expand", spgemm_expand_symbolic, spgemm_expand_numeric, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct spgemm_method spgemm_methods_cuda[] = {
    {"rows", spgemm_rows_symbolic_cuda, spgemm_rows_numeric_cuda, NULL, spgemm_rows_destroy_cuda},
    {"expand", spgemm_expand_symbolic, spgemm_expand_numeric, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
