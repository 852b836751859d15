/* The inside of groups and of their matrices.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GROUP_INTERNAL_H
#define GROUP_INTERNAL_H

#include <spmv/group.h>
#include <spmv/primitives.h>

#include "core/reals.h"
#include "distributed/boards.h"
#include "distributed/exchange.h"
#include "distributed/group_rows.h"
#include "distributed/near.h"
#include "distributed/transport.h"
#include "product/plan_internal.h"
#include "solvers/precond/precond_internal.h"

struct spmv_group {
    spmv_context *ctx;
    struct transport transport;
    bool settled;          /* all ranks know of the failure that ends the present call */
    void *nccl;            /* the communicator of the exchange nccl; NULL: not yet needed */
    struct boards *boards; /* memory of this rank's GPU that others use; NULL: none yet */
    struct near *near;     /* what set-ups of levels exchange between GPUs; NULL: nothing yet */
    bool near_possible;    /* ranks have opened each other's GPU memory */
    /* made with the group, so that ranks need no memory to tell each other that there is none */
    int64_t *offset;         /* ranks + 1: for gathers */
    struct group_word *word; /* ranks: what they say in an agreement */
};

/* The square block of a rank's own rows and columns, or only its diagonal (group_cg.c). */
struct group_square {
    struct group_arrays arrays; /* on cuda: in the context's memory */
    int64_t *row_ptr;
    int32_t *col;
    void *val;
    spmv_csr view;
};
spmv_status group_square_make(spmv_group_matrix *m, bool diagonal, struct group_square *b);
void group_square_release(spmv_context *ctx, struct group_square *b);

/* The elements of vectors that ranks exchange for a product. */
struct halo {
    int64_t before, after;  /* elements of other ranks in front of and behind the own ones */
    int64_t room;           /* elements in front, with those that only align the own ones */
    int32_t *ghost;         /* before + after: the numbers of these elements in the whole vector, ascending */
    int64_t *wide_ghost;    /* the same in place of ghost, of a matrix that is wide; else NULL */
    int64_t count;          /* elements that are sent */
    int32_t *index;         /* count: the own elements that are sent, rank after rank */
    int32_t *context_index; /* on cuda: the same in the context's memory; NULL of a level's index: only there */
    /* the parcels of an exchange; memory of received ones is set for each vector */
    struct transport_parcel *send, *receive;
    int64_t *receive_at; /* the first element of each received parcel, counted from the own first one */
    int sends, receives;
    int most_vectors;     /* for which packed has room; between exchanges parcels are for one */
    void *packed;         /* count elements of each vector that are sent, in host memory */
    void *context_packed; /* on cuda: the same in the context's memory */
    void *arrived;        /* on cuda: the received elements in host memory */
    bool borrows;         /* ghost, index and context_index are of the first matrix (group_levels.c) */
};

/* The tree in which the parts of chunks are added (group_sums.c). */
enum { SUM_TREE_LEVELS = 40, SUM_TREE_EDGES = 4 * SUM_TREE_LEVELS }; /* for 2^39 chunks; of two ranges of chunks */
struct sum_tree {
    int levels;
    int64_t first[SUM_TREE_LEVELS + 1]; /* the number of each level's first node; the last: of all nodes */
    void *nodes;                        /* the numbers of most_sums sums, node by node */
    void *sent, *received;              /* edges on their way */
};

struct spmv_group_matrix {
    spmv_group *group;
    spmv_context *ctx;
    spmv_plan *plan;
    spmv_plan *first_plan; /* after new values: that of the first ones, if preconditioners of the caller use it */
    bool lent;             /* they may */
    bool updates;          /* the plan takes new values */
    const char *method;    /* on cuda: of the products of all ranks; NULL: as in the options */
    /* this rank's rows, with columns as in struct plan_ranks: in host memory, or on cuda in `there`; then own has only
     * sizes until group_rows_to_host */
    spmv_csr own, there;
    bool pattern;     /* they have no values */
    bool needs_all;   /* of a level: all columns of others are needed, whatever the rows are */
    bool wide;        /* numbers of columns have 64 bits: there are more than INT32_MAX */
    spmv_type type;   /* of vectors and sums */
    int64_t cols;     /* of the whole matrix */
    int64_t *row_ptr; /* the arrays of own */
    int32_t *col;
    int64_t *wide_col; /* in place of col, until columns are renumbered; else NULL */
    void *val;
    struct group_arrays arrays; /* of there */
    int64_t all_chunks;
    int64_t *chunk_of_rank;             /* ranks + 1: the first chunk of each rank */
    int64_t *row_of_rank, *col_of_rank; /* ranks + 1: the first row and element of x of each rank */
    int64_t *work_of_rank;              /* ranks: rows plus nonzeros */
    int64_t *given_entry, *own_entry;   /* ranks + 1: the first nonzero that each rank gave, and that it owns */
    bool takes_values;                  /* the caller gave the rows, and may give new values */
    int64_t version;                    /* how often values were replaced */
    int64_t *chunk;                     /* the chunks of this rank, see struct plan_ranks */
    int64_t *chunk_entry;               /* chunks + 1: the first entry of each chunk, counted from the rank's first */
    bool *edge;
    int32_t *context_ghosts; /* on cuda: halo.ghost in the context's memory */
    struct halo halo;
    struct plan_ranks ranks;
    void *x;     /* a vector with room for the elements of other ranks; points to the own ones */
    void *x_at;  /* its memory */
    void *parts; /* of dot products: those of this rank's chunks, in host memory */
    struct sum_tree tree;
    int most_sums; /* for which the tree has room */
    /* on cuda, in the context's memory: the parts of EXCHANGE_SUMS sums; chunk */
    void *context_parts;
    int64_t *context_chunk;
    char *met; /* ranks: for meetings of all ranks */
    struct exchange exchange;
    /* the matrices of hierarchies made of this one (group_levels.c), a list: they exchange in the same mode. first:
     * of such a level; while they are open, they use the streams of its exchange */
    spmv_group_matrix *levels, *next_level, *first;
    bool multiplied; /* a product has loaded its kernels, on all ranks */
    int64_t most_ghosts, all_ghosts;
    double seconds; /* in exchanges */
    char note[256];
};

/* Together: makes a preconditioner for the rows of this rank, for the purpose, between group_begin and group_end
 * (group_cg.c). */
spmv_status group_precond_make(spmv_group_matrix *m, enum precond_for purpose, const char *name,
                               const spmv_preconditioner_options *options, spmv_preconditioner **precond);

/* Together: the same of the whole matrix, by each rank alike (group_whole.c). */
spmv_status group_precond_whole(spmv_group_matrix *m, enum precond_for purpose, const char *name,
                                const spmv_preconditioner_options *options, spmv_preconditioner **made);
#define GROUP_ALIKE "of the whole matrix, on each rank alike" /* begins its layout */

/* Whether "auto" takes the one of this name of the whole matrix: one that ranks do not make together, as far as it
 * takes little memory. "auto": whether it chooses among those only. */
bool group_makes_whole(const spmv_group_matrix *m, enum precond_for purpose, const char *name);

/* Whether "auto" chooses for cg by facts of the whole matrix, on each rank alike; together: that choice. */
bool group_chooses_whole(const spmv_group_matrix *m, const spmv_preconditioner_options *options);
spmv_status group_choose_whole(spmv_group_matrix *m, const spmv_preconditioner_options *options,
                               struct precond_choice *choice);

/* Together: dense factors of the whole matrix, for vectors of own rows. */
struct direct;
spmv_status group_direct_dense(spmv_group_matrix *m, struct direct **direct);

/* This rank's rows, or those of -A, in host memory, with the columns of the whole matrix (group_solver.c). */
struct group_own_rows {
    spmv_csr view;
    int32_t *col;
    int64_t *wide_col; /* in place of col, of a matrix that is wide; else NULL */
    void *val;
};
spmv_status group_take_rows(spmv_group_matrix *m, bool negative, struct group_own_rows *rows);
void group_own_rows_release(struct group_own_rows *rows);

/* Together: the smallest or the largest (SPMV_MIN, SPMV_MAX) diagonal entry of a real matrix (group_solver.c). */
spmv_status group_find_extreme(spmv_group_matrix *m, spmv_op op, double *extreme);

/* Together: a matrix with the options of another one (group_solver.c). wide_col: as in struct group_given. */
spmv_status group_matrix_like(spmv_group_matrix *m, const spmv_csr *own, const int64_t *wide_col,
                              spmv_group_matrix **made);

/* Together: R A C (group_scaled.c). row, col: own rows numbers each, the exponents of own rows and columns. */
spmv_status group_matrix_scale(spmv_group_matrix *m, int *row, int *col, spmv_group_matrix **made);

/* The callback of rank 0, and each rank's function that cancels: all ranks learn what they return, so
 * all stop after the same iteration. */
struct group_callback {
    spmv_group *group;
    spmv_cg_fn tell;         /* for the solve, with this struct; NULL: nobody asks */
    spmv_cg_fn on_iteration; /* NULL: none */
    spmv_cancel_fn cancel;   /* NULL: none */
    void *user, *cancel_user;
    int64_t *stops; /* of each rank; host_free */
    bool stopped;
    spmv_status failed;
};

/* A copy of n elements of a vector in the context's memory. */
static inline spmv_status group_copy(const spmv_group_matrix *m, const void *from, void *to, int64_t n)
{
    return spmv_map(m->ctx, SPMV_MAP_COPY, type_part(m->type), from, to, n * type_parts(m->type));
}

/* Whether ranks have this rung of conjugate gradients; "auto" is one. */
spmv_status group_check_rung(const spmv_group_matrix *m, const char *call, const char *name);

/* Together: asks which ranks have a callback. While it is in use, the function that cancels must not be called by the
 * context. */
spmv_status group_callback_open(spmv_group_matrix *m, spmv_cg_fn on_iteration, void *user,
                                struct group_callback *callback);

/* Together: what comes before a solve with m->x, and after it, which ended with st. zero_start: x is not read. */
spmv_status group_solve_begin(spmv_group_matrix *m, const void *x, bool zero_start, spmv_cg_fn on_iteration, void *user,
                              struct group_callback *callback);
spmv_status group_solve_end(spmv_group_matrix *m, void *x, const struct group_callback *callback, spmv_status st);

/* A function that ranks call together begins and ends with these. A failure that the ranks have not
 * agreed on breaks the group. */
void group_begin(spmv_group *group);
spmv_status group_end(spmv_group *group, spmv_status st);

/* Element i of ghost, or of wide_ghost. */
static inline int64_t group_ghost(const struct halo *h, int64_t i)
{
    return h->wide_ghost != NULL ? h->wide_ghost[i] : h->ghost[i];
}

/* The number in the whole matrix of a column of own rows, which is a place in a vector with room. */
static inline int64_t group_number_of(const spmv_group_matrix *m, int32_t place)
{
    const struct halo *const h = &m->halo;
    const int rank = m->group->transport.rank;
    const int64_t own = place - h->room, own_cols = m->col_of_rank[rank + 1] - m->col_of_rank[rank];
    return own < 0          ? group_ghost(h, own + h->before)
           : own < own_cols ? m->col_of_rank[rank] + own
                            : group_ghost(h, h->before + own - own_cols);
}

/* As the functions of struct transport; a failure is stored in the context. */
spmv_status group_gather(spmv_group *group, const void *own, void *all, const int64_t *offset);
spmv_status group_start(spmv_group *group, const struct transport_parcel *send, int sends,
                        const struct transport_parcel *receive, int receives);
spmv_status group_finish(spmv_group *group);

/* The failure that broke the group, stored in the context; SPMV_OK: none. */
spmv_status group_failure(spmv_group *group);

/* Together: all[r] = own of rank r, bytes each. */
spmv_status group_gather_equal(spmv_group *group, const void *own, void *all, int64_t bytes);

/* Together: all = own of rank from. */
spmv_status group_broadcast(spmv_group *group, int from, const void *own, void *all, int64_t bytes);

/* Together: checks that the numbers are the same on all ranks; else SPMV_ERROR_ARGUMENT on all.
 * what: for the message. Also passes on the status of each rank, as spmv_group_agree. */
spmv_status group_agree_on(spmv_group *group, spmv_status status, const char *what, uint64_t numbers);

/* Whether no rank told a failure in the last agreement; then ranks that differ have ended it. */
bool group_all_succeeded(const spmv_group *group);

/* Mixes bytes into a number for group_agree_on. */
uint64_t group_mix(uint64_t numbers, const void *bytes, size_t size);

/* The rows that this rank gives for a matrix. */
struct group_given {
    const char *call; /* for messages */
    const spmv_csr *own;
    bool given_up;   /* the arrays of own may be overwritten, so that no rank needs memory for two copies */
    bool has_wide;   /* columns are in wide_col, in place of own->col */
    bool stays_wide; /* has_wide, and the matrix is wide whatever its number of columns is; on all ranks alike */
    const int64_t *wide_col; /* own->nnz columns */
};

/* spmv_group_matrix_create between group_begin and group_end. */
spmv_status group_matrix_make(spmv_group *group, const struct group_given *given,
                              const spmv_group_matrix_options *options, spmv_group_matrix **matrix);

/* Together: spmv_group_matrix_update_values between group_begin and group_end. */
spmv_status group_matrix_renew(spmv_group_matrix *m, const void *values);

/* On cuda, sets m->method from the rows of all ranks, whose columns are still those of the whole
 * matrix. name, compression: the options. Together. */
spmv_status group_choose_method(spmv_group_matrix *m, const char *name, int compression);

/* Together: *block = the rows of a node, if all nodes have the same number of rows, else 1. own: the rows that this
 * rank gives, from number `first` on; rows: of the whole square matrix. */
spmv_status group_find_nodes(spmv_group *group, const spmv_csr *own, int64_t first, int64_t rows, int *block);

/* Makes the members of the matrix for sums and dot products (group_sums.c), and those of the halo
 * (group_halo.c). */
spmv_status group_sums_prepare(spmv_group_matrix *m);
void group_sums_release(spmv_group_matrix *m);
spmv_status group_sum(void *matrix, spmv_type type, const void *parts, int64_t stride, int count, void *sums);
spmv_status group_dot_in_context(void *matrix, spmv_type type, const void *a, const void *b, void *dot);
spmv_status group_largest(void *matrix, double *value);

/* A plan of the same rows and type for several vectors. */
spmv_status group_matrix_columns(spmv_group_matrix *m, int vectors, spmv_plan **plan);

/* Finds the elements of other ranks that own rows need, and renumbers the columns. near: the numbers of elements that
 * are sent go from one GPU to the other (near.h), and halo.index stays NULL. Together. */
spmv_status group_halo_prepare(spmv_group_matrix *m, bool near);
spmv_status group_halo_buffers(spmv_group_matrix *m); /* after the type is known */
void group_halo_release(spmv_group_matrix *m);
spmv_status group_fetch_start(void *matrix, void *x, int vectors);
spmv_status group_fetch_finish(void *matrix, void *x, int vectors);

/* Frees arrays of context_alloc in the order of the stream, without a wait (group_halo.c). */
#define group_free_queued(ctx, ...) group_free_each(ctx, MEMORY_LIST(__VA_ARGS__))
void group_free_each(spmv_context *ctx, void *const *memory, size_t count);

/* What a hierarchy of matrices needs of the ranks (group_levels.c). */
extern const struct rank_tools group_rank_tools;

/* parts[c] = the sum of a_i b_i over the rows i of chunk c, each of which has `of` numbers, on the device;
 * chunk: chunks + 1 rows in the context's memory. */
spmv_status group_chunk_dots_cuda(spmv_context *ctx, spmv_type type, const int64_t *chunk, int64_t chunks, int of,
                                  const void *a, const void *b, void *parts) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
