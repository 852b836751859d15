/* What MATLAB files of version 5 and 7.3 share: the choice of a variable.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MAT_H
#define MAT_H

#include "formats/io/exchange/exchange.h"

enum { MAT_NAME = 128 };

/* A variable with numbers. A field F of a struct S is "S.F". */
struct mat_variable {
    char name[MAT_NAME];
    bool sparse, logical;
    bool real_class; /* double or single: whole numbers are no integers */
    int64_t rows, cols;
    const unsigned char *at, *end; /* of version 5: the parts after the name */
    bool complex, big;
};

struct mat_list {
    struct mat_variable *variable; /* host_free */
    int64_t count, room;
};

/* Appends a variable. */
spmv_status mat_list_add(struct exchange *x, struct mat_list *list, const struct mat_variable *variable);

/* Puts the name of a field after that of a struct. */
void mat_name(char name[MAT_NAME], const char *prefix, const char *field, int64_t length);

/* The variable that is named; otherwise for a matrix the only sparse one, or Problem.A as in the SuiteSparse
 * collection, or the only dense one; for vectors the only dense one, or Problem.b, or the only sparse one.
 * SPMV_ERROR_OPEN lists the variables. */
spmv_status mat_choose(struct exchange *x, const struct mat_list *list, const struct mat_variable **chosen);

#endif
