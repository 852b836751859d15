/* Lists of rungs by name, shared by the fronts of the primitives. A list is an array of structs that
 * begin with their name; it ends with a NULL name.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUNGS_H
#define RUNGS_H

#include "core/backend.h"

struct rung_list {
    const void *rungs; /* NULL: an empty list */
    size_t size;       /* of a struct */
};
#define RUNG_LIST(rungs) ((struct rung_list){(rungs), sizeof *(rungs)})

/* NULL and "auto" leave the choice to the library. */
bool rung_is_auto(const char *name);

/* The name at this place; NULL if there is none. */
const char *rung_name_at(struct rung_list list, int index);

/* The last rung of a list that is not empty. */
const void *rung_last(struct rung_list list);

/* *rung = the rung whose name is the first `length` characters of name. SPMV_ERROR_METHOD with
 * "caller: unknown rung "name" on omp; there are: auto, ..." if there is none. */
spmv_status rung_find(spmv_context *ctx, const char *caller, struct rung_list list, const char *name, size_t length,
                      const void **rung);

#endif
