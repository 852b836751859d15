/* Where a command runs: in one context, or on the ranks of a group (spmv/group.h).
 *
 * A command is one function. It runs once in one context, or once on each rank: on threads of this
 * process with --ranks and --gpus, in each process under mpirun. On ranks a matrix and its vectors
 * are divided among them. Rank 0 reads and writes the files and prints; what the others would print
 * is dropped.
 *
 * A vector of a place is in host memory in one context; on ranks it is the rank's own part in the
 * memory of its context. "Together" means that all ranks call the function; it returns the same
 * status on all of them. One that fails has said why, on rank 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PLACE_H
#define PLACE_H

#include <jansson.h>
#include <spmv/group.h>
#include <stdbool.h>

#include "app/input.h"
#include "app/options.h"

/* The command line, and where the command writes its answer (NULL: nowhere). */
struct wish {
    const char *const *arguments;
    int count;
    const char *answer;
    bool settles; /* under --backend auto, place_settle decides between the CPU and a GPU */
};

struct place {
    const struct options *o;
    spmv_context *ctx;
    spmv_group *group; /* NULL: one context */
    /* on ranks, from place_load */
    spmv_group_matrix *matrix;
    spmv_group_matrix_info part;
    double plan_seconds;
    /* on ranks: of the step between place_start and place_stop, and its part in exchanges */
    double began, exchanged, seconds, exchange_seconds;
    spmv_context *checker; /* for products that are checked */
    void *collected;       /* rank 0: see place_collect */
    char why[256];         /* why this backend; "": it is open */
    /* in one context */
    bool open;           /* ctx is on the CPU until place_settle */
    spmv_context *found; /* that of --backend auto, if place_load has opened it; else NULL */
    bool estimated;      /* why is from place_settle */
};

/* ---------------------------------------------------------------- place.c: the place */

/* Whether the command runs on ranks: with --ranks or --gpus, or started by mpirun. */
bool place_has_ranks(const struct options *o);

/* Runs the command. refuse: a sentence about options that are not possible on ranks; NULL: all are. */
typedef const char *place_refuse(const struct options *o);
typedef spmv_status place_work(struct place *place, const struct wish *wish);
spmv_status place_run(const struct options *o, place_refuse *refuse, place_work *work, const struct wish *wish);

bool place_on_ranks(const struct place *place);

/* Whether --backend auto may find a GPU: the build has CUDA. */
bool place_may_have_gpu(const struct options *o);

/* Whether the backend is still open: the context is on the CPU so far, and CUDA is not started. That
 * is so only if wish->settles, under --backend auto, in a build with CUDA. */
bool place_is_open(const struct place *place);

/* Ends that, if the backend is open. gpu: opens the context of --backend auto, which is on the CPU
 * where no GPU is usable; else the command stays on the CPU. why: the reason. */
spmv_status place_settle(struct place *place, bool gpu, const char *why);

/* Whether this is the one that reads, writes and prints: rank 0, or the only context. */
bool place_writes(const struct place *place);

/* The result of a library call (in one context, or together). Complains of a failure. */
spmv_status place_passed(struct place *place, spmv_status st);

/* Together: the result of a step that each rank has made by itself. Rank 0 has complained of its own
 * failure; it complains of the first one of another rank. */
spmv_status place_agree(struct place *place, spmv_status st);

/* Under mpirun: the ranks on this host, from the launcher's variables; 1 if unknown. */
int place_ranks_here(void);

/* The clock of products and iterations, for the share of the time that exchanges take. */
void place_start(struct place *place);
void place_stop(struct place *place);

/* On ranks: lines about them in the summary, and the object "ranks" of the JSON. */
void place_remark(const struct place *place);
json_t *place_json(const struct place *place);

/* ---------------------------------------------------------------- place_data.c: matrices and vectors */

/* Together: loads the matrix as input_load; on ranks also makes the plan, with this method of
 * products. There in->view has the sizes of the matrix but no arrays. solves: see plan_compression.
 * If the place is open and the host's memory does not suffice, looks for a GPU. */
spmv_status place_load(struct place *place, enum job_kind job, const char *argument, const char *method, bool solves,
                       struct input *in);

/* k vectors: in one context in host memory, by rows. On ranks in the context's memory, one after the other.
 *
 * Together: memory for them, in one context of so many bytes; what: their name. */
spmv_status place_vectors(struct place *place, const char *what, spmv_group_side side, int k, int64_t bytes,
                          void **vectors);

/* On ranks: vector v of them. NULL: NULL. */
void *place_one(const struct place *place, spmv_group_side side, const void *vectors, int v);

/* On ranks: copies k vectors to memory by rows, or back. rows: as many elements as `vectors`. */
spmv_status place_interleave(struct place *place, spmv_group_side side, int k, void *vectors, void *rows, bool back);

/* Together: vectors of n numbers from a file; see vectors_load. */
spmv_status place_load_vectors(struct place *place, spmv_group_side side, const char *path, spmv_type type, int64_t n,
                               const char *what, const char *why_n, void **vector, int *k);

/* Together: known_vector, for k vectors of n elements, of which element i of vector v is number i k + v. */
spmv_status place_known_vectors(struct place *place, spmv_type type, int64_t n, int k, bool random, void **vectors);

/* Releases a vector: of place_vectors or place_known_vectors; of place_load_vectors. NULL: nothing. */
void place_free(struct place *place, void *vector);
void place_free_loaded(struct place *place, void *vector);

/* Together: *all = the whole vectors of n numbers in host memory, by rows; NULL on ranks but 0. They are valid
 * until the next call. */
spmv_status place_collect(struct place *place, spmv_group_side side, spmv_type type, int64_t n, int k,
                          const void *vectors, const void **all);

#endif
