/* What the module petsc and its workers say to each other.
 *
 * A worker is one rank of petsc_worker FOLDER. FOLDER holds two files that both sides map: "problem" (the header below,
 * then row_ptr, x, val, col, each from a multiple of 64 bytes on), which both let go once the workers have their
 * matrix, and "result" (y). It also holds a socket that each rank connects to: it sends one reply when it is ready,
 * then one after each command. A connection that ends is how either side learns that the other is gone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PETSC_SHARED_H
#define PETSC_SHARED_H

#include <stdint.h>

enum { PETSC_MAGIC = 0x53505631, PETSC_TEXT = 200, PETSC_ALIGN = 64 };

struct petsc_problem {
    int64_t rows, cols, nnz;
    int64_t row_ptr, x, val, col; /* where each begins in the file */
    int64_t bytes;                /* of the file */
};

enum petsc_command_op {
    PETSC_MULTIPLY = 1, /* repeats times, timed */
    PETSC_FETCH = 2,    /* writes y to "result" */
    PETSC_QUIT = 3      /* no reply */
};

struct petsc_command {
    int32_t op, repeats;
};

struct petsc_reply {
    int32_t magic, rank;
    int32_t failed;
    int32_t pad;
    double seconds;        /* that this rank took for the repeats */
    char text[PETSC_TEXT]; /* why it failed */
};

static inline int64_t petsc_aligned(int64_t bytes)
{
    return (bytes + PETSC_ALIGN - 1) / PETSC_ALIGN * PETSC_ALIGN;
}

#endif
