/* Arrays of NumPy: the head, and the numbers behind it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NPY_H
#define NPY_H

#include "formats/io/exchange/exchange.h"

enum { NPY_DIMENSIONS = 3 };

struct npy {
    struct numbers numbers; /* n: the product of the shape */
    int dimensions;
    int64_t shape[NPY_DIMENSIONS];
    bool by_columns; /* in the order of Fortran */
    bool is_text;    /* bytes or characters, numbers.width of them each; numbers.at: the first */
};

/* Reads an array of size bytes. what: its name in messages. */
spmv_status npy_parse(struct exchange *x, const char *what, const unsigned char *bytes, int64_t size,
                      struct npy *array);

/* Takes an array of at most two dimensions as a dense one. */
spmv_status npy_dense(struct exchange *x, const char *what, const struct npy *array);

/* Makes the head of an array; returns its bytes. shape: as text, "(3, 4)". */
enum { NPY_HEAD = 128 };
int npy_head(char head[NPY_HEAD], const char *type, const char *shape);

/* The shape of vectors as such a text. */
void npy_shape(const struct exchange_vectors *vectors, char shape[64]);

/* The type of values in such a head, "<f8". */
const char *npy_type(spmv_type type);

#endif
