/* The candidates of a measurement: our methods and the peers asked for.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_CANDIDATE_LIST_H
#define BENCH_CANDIDATE_LIST_H

#include "peer.h"
#include "work.h"

enum { CANDIDATES_MOST = 48, NAME_SIZE = 48 };

struct candidate {
    char name[NAME_SIZE]; /* our method as asked for ("auto"), or the peer's name */
    bool ours;
    char precond[NAME_SIZE]; /* ours, of solutions: the preconditioner as asked for; "": iterations are measured */
    bool optional;           /* of a list with "all": a pair that is not supported is no failure */
    const struct peer *peer; /* NULL: ours, or missing */
    const struct peer_module *module; /* the peer's */
    char missing[WHY_SIZE];           /* why the peer is not here; "": it is */
};

struct candidate_list {
    struct candidate candidates[CANDIDATES_MOST];
    int count;
};

/* methods: names separated by commas, "all" (auto and every method), NULL: auto. peers: names of
 * peers or of modules, separated by commas; "all": those of the operation and the backend; "none";
 * NULL: all. Modules are opened and stay open. folder: where modules are; NULL: the usual places
 * (peer_load.h). A peer that is named but does another operation or belongs to another backend is
 * a candidate that is missing. SPMV_ERROR_ARGUMENT: an unknown peer, with the sentence in why; our
 * methods' names are for the operation to refuse. */
spmv_status candidate_list_make(const struct operation *operation, spmv_backend backend, const char *methods,
                                const char *peers, const char *folder, struct candidate_list *list, char *why);

/* Gives each method of ours a preconditioner: one candidate for each pair of a method and a name
 * of the list (separated by commas; "all": every preconditioner of the library).
 * SPMV_ERROR_ARGUMENT: an unknown name, or too many pairs, with the sentence in why. */
spmv_status candidate_list_precondition(const char *names, struct candidate_list *list, char *why);

#endif
