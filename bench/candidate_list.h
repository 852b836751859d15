/* The candidates of a measurement: spmv's methods and the requested peers.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_CANDIDATE_LIST_H
#define BENCH_CANDIDATE_LIST_H

#include "bench/ops/work.h"
#include "bench/peers/peer.h"
#include "core/choice.h"

enum { CANDIDATES_MOST = 48, NAME_SIZE = 48 };

struct candidate {
    char name[NAME_SIZE]; /* spmv's method as requested ("auto"), or the peer's name */
    bool ours;
    /* spmv, for whole solutions: the preconditioner as requested; "": iterations are measured */
    char precond[NAME_SIZE];
    /* from a list with "all": an unsupported pair is not an error */
    bool optional;
    const struct peer *peer;          /* NULL: spmv, or missing */
    const struct peer_module *module; /* the peer's */
    char missing[WHY_SIZE];           /* why the peer is missing; "": it is present */
};

struct candidate_list {
    struct candidate candidates[CANDIDATES_MOST];
    int count;
};

/* solutions: whole solutions are compared, so peers with a preconditioner of their own take part.
 * methods: names separated by commas, "all" (auto and every method), NULL: auto. peers: names of
 * peers or of modules, separated by commas; "all": those of the operation and the backend; "none";
 * NULL: all. folder: where modules are; NULL: the default places (peer_load.h).
 *
 * Modules are opened and stay open. A named peer of another operation or backend becomes a missing
 * candidate. SPMV_ERROR_ARGUMENT: an unknown peer, with a message in why. The names of spmv's
 * methods are checked by the operation. */
spmv_status candidate_list_make(const struct operation *operation, spmv_backend backend, bool solutions,
                                const char *methods, const char *peers, const char *folder, struct candidate_list *list,
                                char *why);

/* Pairs each method of spmv with each name of the list (separated by commas; "all": every
 * preconditioner of the library that the operation can use). SPMV_ERROR_ARGUMENT: an unknown name, or too many pairs, with a
 * message in why. */
spmv_status candidate_list_precondition(const struct operation *operation, const char *names,
                                        struct candidate_list *list, char *why);

/* Adds the names that candidate_list_make accepts as peers: all, none, the modules, their peers. */
void candidate_list_peers(struct names *names);

#endif
