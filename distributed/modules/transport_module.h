/* The interface of a transport module: MPI behind functions on plain memory, so that libspmv links
 * no MPI. A module is a shared object spmv_transport_NAME.so with one symbol,
 * spmv_transport_module; it is compiled once for each MPI.
 *
 * Functions return 0, or another value with a message in why.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRANSPORT_MODULE_H
#define TRANSPORT_MODULE_H

#include <stdint.h>

enum { TRANSPORT_MODULE_ABI = 2, TRANSPORT_MODULE_WHY = 512 };

/* A parcel: memory that is sent to a rank, or received from it. */
struct transport_parcel {
    int rank;
    void *memory;
    int64_t bytes;
};

struct transport_module {
    int abi;

    /* Initializes MPI if need be, and sets the number of this rank and the number of ranks. */
    int (*open)(int *rank, int *ranks, char *why);

    /* As the functions of the same names in transport.h. */
    int (*gather)(const void *own, void *all, const int64_t *offset, char *why);
    int (*start)(const struct transport_parcel *send, int sends, const struct transport_parcel *receive, int receives,
                 char *why);
    int (*finish)(char *why);

    void (*progress)(void);  /* lets the library go on with messages of calls that have returned */
    void (*abort)(int code); /* ends all processes */
    void (*close)(void);     /* finalizes MPI if open has initialized it */
};

__attribute__((visibility("default"))) const struct transport_module *spmv_transport_module(void);

#endif
