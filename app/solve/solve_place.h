/* Where spmv solve computes under --backend auto: on the CPU or on a GPU. See solve_place.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVE_PLACE_H
#define SOLVE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/* What is known before CUDA is started. */
struct solve_facts {
    int64_t rows, entries;
    int matrix_bytes, vector_bytes; /* of a value of the matrix, of an element of a vector */
    int columns;                    /* right-hand sides */
    bool symmetric;                 /* of complex types Hermitian */
    bool indefinite;                /* certainly or probably: neither A nor -A is positive definite */
    double heaviest;                /* largest ratio of the rest of a row to its diagonal entry; INFINITY: unknown */
    const char *solver, *precond;   /* "auto", or named */
    int64_t most_steps;             /* 0: no limit was given */
    int threads;                    /* of the CPU */
    const char *cpu_only;           /* what was named and is for the CPU only, such as "--rung NAME"; NULL: nothing */
};

struct solve_place {
    bool gpu;
    const char *kind;      /* of system, as in the table; static storage */
    double steps;          /* expected */
    double cpu_ms, gpu_ms; /* estimates; the one of the GPU includes the start of CUDA */
    char why[200];         /* the reason, a sentence without its subject */
};

/* A pure function of the facts: the clock is not read. */
struct solve_place solve_place(const struct solve_facts *facts);

#endif
