/* Products and solves on several ranks: threads of one process, or processes that MPI
 * has started on one or more hosts.
 *
 * A rank is an ordinary context with a contiguous block of the rows of a matrix. All ranks of a
 * group call the functions that are marked "together", in the same order and with the same options:
 *
 *     spmv_status one_rank(spmv_group *group, void *user)
 *     {
 *         spmv_group_matrix *a = NULL;
 *         spmv_cg_result result;
 *         spmv_status st = spmv_group_matrix_create(group, &own_rows, NULL, &a);
 *         if (st == SPMV_OK)
 *             st = spmv_group_cg(a, b, x, NULL, &result, sizeof result);
 *         spmv_group_matrix_destroy(a);
 *         return st;
 *     }
 *
 *     spmv_group_run(4, NULL, one_rank, user, message, sizeof message);
 *
 * Determinism. On one backend, y = A x, dot products, and x, iterations and residuals of solves
 * have the same bits for any number of ranks, any transport, and any number of threads.
 * They may differ from those of spmv_apply, spmv_dot and spmv_solver_solve, which do not divide the rows in
 * chunks. docs/distributed.md says how, and what is measured.
 *
 * Failures. If a rank fails in a function that ranks call together, all ranks return a status. The
 * message of the others begins with "rank N: ". Where ranks cannot know of the failure of another
 * one before they wait for it (memory that runs out within a solve, for example), the group is
 * broken: each later call on it returns the same status. With the transport mpi, a broken group
 * ends all processes by MPI_Abort, because MPI cannot wake a waiting process. Before that, the
 * message is passed to the context's on_event as a warning.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_GROUP_H
#define SPMV_GROUP_H

#include <spmv/io.h>
#include <spmv/solvers.h>

SPMV_BEGIN_DECLS

/* One rank's handle of a group. As a context, it is used by one thread at a time. */
typedef struct spmv_group spmv_group;

/* The largest number of ranks of spmv_group_create_threads. */
#define SPMV_GROUP_MAX_THREADS 256

/* Makes a group of the transport "threads": ranks of one process, which exchange data by copies.
 *
 *   ctx     ranks contexts of the same backend, one for each rank; each must outlive its handle
 *   ranks   1 to SPMV_GROUP_MAX_THREADS
 *   group   receives ranks handles; NULL each after an error
 *
 * Each handle is then used by a thread of its own. The message of a failure is in ctx[0].
 *
 * Errors: SPMV_ERROR_ARGUMENT (also: contexts of different backends), SPMV_ERROR_MEMORY. */
SPMV_API spmv_status spmv_group_create_threads(spmv_context *const *ctx, int ranks, spmv_group **group);

/* Together: makes the group of all processes that mpirun (mpiexec, srun) has started. The transport
 * "mpi" is a module that is opened here; libspmv does not link MPI. If MPI is not initialized, the
 * call initializes it with MPI_THREAD_SERIALIZED, and spmv_group_destroy finalizes it. A process
 * can do this once.
 *
 *   ctx     the context of this process; it must outlive the group
 *   *group  the group; NULL after an error
 *
 * Errors: SPMV_ERROR_UNSUPPORTED (no launcher, no module for its MPI, or MPI with less thread
 * support), SPMV_ERROR_ARGUMENT, SPMV_ERROR_MEMORY. */
SPMV_API spmv_status spmv_group_create_mpi(spmv_context *ctx, spmv_group **group);

/* The MPI whose launcher has started this process, from the variables that it sets: "openmpi" or
 * "mpich" (and its derivatives); NULL: no launcher. The variable SPMV_MPI overrides this by one of
 * the two names. Static storage. */
SPMV_API const char *spmv_group_launcher(void);

/* Releases the handle of one rank. Matrices made from it are destroyed first. With mpi:
 * together. */
SPMV_API void spmv_group_destroy(spmv_group *group);

/* The number of this rank, from 0, and the number of ranks; 0 for NULL. */
SPMV_API int spmv_group_rank(const spmv_group *group);
SPMV_API int spmv_group_ranks(const spmv_group *group);

/* The context of this rank; NULL for NULL. */
SPMV_API spmv_context *spmv_group_context(const spmv_group *group);

/* "threads" or "mpi"; "" for NULL. Static storage. */
SPMV_API const char *spmv_group_transport(const spmv_group *group);

/* Together: tells all ranks whether one of them has failed.
 *
 *   status  of this rank; if it is not SPMV_OK, the message is taken from its context
 *
 * Returns status if it is not SPMV_OK, else the status of the lowest rank that failed, else
 * SPMV_OK: then all ranks have arrived here. */
SPMV_API spmv_status spmv_group_agree(spmv_group *group, spmv_status status);

/* Together: as spmv_group_agree, and checks that a text is the same on all ranks, such as the
 * options of a job. Ranks that run different jobs would wait for each other without end.
 *
 *   text  compared by a hash of 64 bits; NULL means ""
 *   what  for the message "rank 1 has WHAT than rank 0", such as "other options"
 *
 * Errors: as spmv_group_agree; SPMV_ERROR_ARGUMENT on all ranks if a text differs, or if a rank is
 * in another function that ranks call together and that begins with an agreement. */
SPMV_API spmv_status spmv_group_agree_on(spmv_group *group, spmv_status status, const char *what, const char *text);

/* Together: copies data of rank 0 to the other ranks.
 *
 *   data   bytes bytes in host memory; NULL allowed for 0
 *   bytes  the same on all ranks
 *
 * Errors, on all ranks: SPMV_ERROR_ARGUMENT, SPMV_ERROR_MEMORY, those of another rank. */
SPMV_API spmv_status spmv_group_broadcast(spmv_group *group, void *data, int64_t bytes);

/* Breaks the group: waiting ranks and later calls return status with this message. With mpi, ends
 * all processes with the exit code status / 100. */
SPMV_API void spmv_group_break(spmv_group *group, spmv_status status, const char *message);

/* What one rank does. A status other than SPMV_OK breaks the group. */
typedef spmv_status (*spmv_group_fn)(spmv_group *group, void *user);

/* Runs a function on ranks threads, each with a context of its own.
 *
 *   options  of the contexts; threads: of all ranks together (default: as for one context), at
 *            least one a rank. stream must be NULL. on_event: of rank 0, whose thread is the
 *            caller's.
 *   run      called once for each rank, with user
 *   message  NULL, or receives the message of the failure ("" without), at most size bytes
 *
 * Returns the status of the lowest rank that failed; SPMV_OK if all succeeded.
 * Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_MEMORY, those of spmv_context_create and of run. */
SPMV_API spmv_status spmv_group_run(int ranks, const spmv_context_options *options, spmv_group_fn run, void *user,
                                    char *message, size_t size);

typedef struct spmv_group_run_options {
    size_t size;                         /* sizeof(spmv_group_run_options), set by its init function */
    const spmv_context_options *context; /* as options of spmv_group_run; default NULL: defaults */
    /* cuda: GPUs that the ranks use: rank r has the device number first + r mod gpus, where first is
     * context->device, or 0 if that is -1. Default 0: all ranks have the device of context. */
    int gpus;
} spmv_group_run_options;

/* Fills options with the defaults. size: sizeof(spmv_group_run_options). */
SPMV_API void spmv_group_run_options_init(spmv_group_run_options *options, size_t size);

/* As spmv_group_run, with ranks on several GPUs. options: NULL means defaults.
 * Errors: also SPMV_ERROR_NO_DEVICE (fewer GPUs than options->gpus). */
SPMV_API spmv_status spmv_group_run_with(int ranks, const spmv_group_run_options *options, spmv_group_fn run,
                                         void *user, char *message, size_t size);

/* The number of this process among those of its host, from 0, from the variables that the launchers of
 * MPI set (OMPI_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID, SLURM_LOCALID); -1: unknown. A process of
 * several GPUs takes the device of this number. */
SPMV_API int spmv_group_local_rank(void);

/* ---------------------------------------------------------------- matrices */

/* One rank's part of a matrix, and its plan for products. */
typedef struct spmv_group_matrix spmv_group_matrix;

typedef struct spmv_group_matrix_options {
    size_t size;        /* sizeof(spmv_group_matrix_options), set by its init function */
    spmv_type type;     /* of vectors and sums: as in spmv_plan_options; of complex values their type */
    const char *method; /* of the products: definition (ref), tiles (omp), slices, groups, padded,
                           tiles, vector or scalar (cuda); default NULL or "auto": the first of them
                           that suits the whole matrix */
    /* cuda: how ranks exchange data, see docs/distributed.md: peer, nccl or host; default NULL or
     * "auto": the first that is possible */
    const char *exchange;
    int compression; /* as in spmv_plan_options; default SPMV_COMPRESSION_AUTO */
    /* rows of a node, 1 to 8: chunks begin at multiples of it. Default 0: of a square matrix, the
     * largest number for which the rows of each node have entries in the same nodes. */
    int block;
} spmv_group_matrix_options;

/* Fills options with the defaults. size: sizeof(spmv_group_matrix_options). */
SPMV_API void spmv_group_matrix_options_init(spmv_group_matrix_options *options, size_t size);

/* Together: makes a matrix of rows that the ranks give, and sends each row to the rank that owns
 * it.
 *
 * Rows are cut into at most 1056 chunks of whole rows. The cut depends on the row lengths of the
 * whole matrix only: with W the number of rows plus nonzeros, chunk c begins at the first row i
 * with i + row_ptr[i] >= c w. w is W / 128, but at least 1024 and at most 4096. For W > 2^22 it is
 * the multiple of 4096 from W / 1024 on. On cuda it is W / 528 for W > 528 * 4096, W / 1056 for
 * W > 1056 * 16384, and i is a multiple of 256. It is also a multiple of the rows of a node (block). Rank r of N owns the chunks C r / N to
 * C (r + 1) / N - 1 of C. It owns the elements of x of the same numbers if the matrix is square,
 * else the r-th of N equal parts.
 *
 *   own      the rows that this rank gives, in host memory: the rows of rank 0 are the first of the
 *            matrix, those of rank 1 follow, and so on. A rank may give none. cols: of the whole
 *            matrix (ignored without rows); columns in any order.
 *   options  NULL means defaults
 *   *matrix  the matrix; NULL after an error
 *
 * The arrays of own may change after the call.
 *
 * Errors, on all ranks: those of spmv_matrix_check and spmv_plan_create; SPMV_ERROR_ARGUMENT and
 * SPMV_ERROR_SIZE (ranks with different types, columns or options). */
SPMV_API spmv_status spmv_group_matrix_create(spmv_group *group, const spmv_csr *own,
                                              const spmv_group_matrix_options *options, spmv_group_matrix **matrix);

/* Together: the same with columns of 64 bits, for matrices of more than INT32_MAX columns.
 *
 *   own  its col is ignored, and cols may be more than INT32_MAX
 *   col  own->nnz columns in host memory, 0 <= col[k] < own->cols; NULL allowed for 0
 * Other parameters as for spmv_group_matrix_create. The arrays may change after the call. Some ranks may call that
 * function in place of this one, if they give no rows.
 *
 * Columns have 64 bits until they are with the rank that owns their row. There they are renumbered to 32 bits. So a
 * rank must not have more than INT32_MAX elements of x, with those that it needs of other ranks. Bits are those of
 * spmv_group_matrix_create. On cuda, "auto" chooses the method by renumbered columns: name one if it must not
 * depend on the number of ranks. A matrix of at most INT32_MAX columns becomes one of spmv_group_matrix_create.
 *
 * With more columns there is no transpose, no preconditioner "amg" and no null_space or null_block of a solver
 * (SPMV_ERROR_UNSUPPORTED). "auto" then takes the preconditioner "jacobi", and block 0 means 1.
 *
 * Errors, on all ranks: also SPMV_ERROR_LIMIT (a rank has too many elements of x; the message says how many ranks
 * to take). */
SPMV_API spmv_status spmv_group_matrix_create_wide(spmv_group *group, const spmv_csr *own, const int64_t *col,
                                                   const spmv_group_matrix_options *options,
                                                   spmv_group_matrix **matrix);
SPMV_API void spmv_group_matrix_destroy(spmv_group_matrix *matrix);

/* Together: replaces the values of the matrix; its pattern, cut and halo stay. The first call makes
 * another plan, of the same method, which takes new values; later ones keep it. Products then have the
 * bits of a new matrix with these values.
 *
 *   values  those of the rows that this rank gave to spmv_group_matrix_create, in the order of own.val
 *           and of its type, in host memory. NULL: allowed if this rank gave no entries
 *
 * The array may change after the call. Solvers of the matrix make their set-up again, in the next solve.
 * Preconditioners of spmv_group_preconditioner_create must be made again by the caller. A transpose
 * keeps the values that it was made of.
 *
 * Errors, on all ranks: SPMV_ERROR_UNSUPPORTED (a pattern; a matrix of spmv_group_matrix_read or
 * _transpose), SPMV_ERROR_ARGUMENT, SPMV_ERROR_MEMORY, SPMV_ERROR_DEVICE; those of another rank. */
SPMV_API spmv_status spmv_group_matrix_update_values(spmv_group_matrix *matrix, const void *values);

/* Together: reads a matrix file, as spmv_matrix_read, and makes the same matrix as
 * spmv_group_matrix_create. Each rank reads a part, and none has much more than its own rows in
 * memory:
 *
 *   - A coordinate file in Matrix Market format: each rank parses the lines in its share of the
 *     bytes. If a rank cannot open the file under this path, or the text is packed or comes from
 *     standard input, rank 0 reads or unpacks it and sends portions of text to the others.
 *   - The binary format: each rank copies its rows from a map of the file.
 *   - Arrays, and files with a cache folder: rank 0 reads them alone, then sends each rank its
 *     rows.
 *
 *   path     the same on all ranks
 *   reading  as for spmv_matrix_read; that of rank 0 counts, the others may give NULL. max_bytes:
 *            limit for each rank
 *   options  as for spmv_group_matrix_create
 *   *matrix  the matrix; NULL after an error
 *   info     facts about the file, on rank 0; may be NULL
 *   size     sizeof(spmv_read_info)
 *
 * Errors, on all ranks: those of spmv_matrix_read, with the message of one rank (a line number
 * counts in the whole file), and those of spmv_group_matrix_create. */
SPMV_API spmv_status spmv_group_matrix_read(spmv_group *group, const char *path, const spmv_read_options *reading,
                                            const spmv_group_matrix_options *options, spmv_group_matrix **matrix,
                                            spmv_read_info *info, size_t size);

/* The description of one rank's part. Strings are valid until the matrix is destroyed. */
typedef struct spmv_group_matrix_info {
    size_t size;                     /* of this struct in bytes */
    int64_t rows, cols, nnz;         /* of the whole matrix */
    int64_t chunks;                  /* of the whole matrix */
    int64_t first_row, own_rows;     /* of this rank; own_rows: the elements of y */
    int64_t first_col, own_cols;     /* of this rank; own_cols: the elements of x */
    int64_t own_nnz, own_chunks;     /* of this rank */
    int64_t ghosts;                  /* elements of x that this rank gets for a product */
    int64_t most_ghosts, all_ghosts; /* the largest of all ranks, and the sum */
    double imbalance;                /* largest (rows + nonzeros) of a rank / mean of all ranks */
    const char *note;                /* one sentence if ranks or cut are unsuitable; else "" */
    const char *method;              /* of the products */
    spmv_type type;                  /* of vectors and sums */
    int64_t bytes;                   /* of this rank's arrays and plan */
    double exchange_seconds;         /* time of this rank in exchanges since the matrix was made */
    const char *exchange;            /* peer, nccl or host */
} spmv_group_matrix_info;

/* Describes the matrix.
 *
 *   info  the result
 *   size  sizeof(spmv_group_matrix_info)
 *
 * Errors: SPMV_ERROR_ARGUMENT (NULL). */
SPMV_API spmv_status spmv_group_matrix_describe(const spmv_group_matrix *matrix, spmv_group_matrix_info *info,
                                                size_t size);

/* Together: y = alpha A x + beta y.
 *
 *   x  own_cols elements of this rank in the context's memory
 *   y  own_rows elements of this rank in the context's memory; no overlap with x
 * Other parameters as for spmv_apply. x may be NULL if own_cols is 0, y if own_rows is 0.
 *
 * On cuda the first product of a matrix waits; later ones return when all ranks have queued their work, if the exchange
 * is peer and each rank has a GPU of its own.
 * Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_DEVICE, those of another rank. */
SPMV_API spmv_status spmv_group_apply(spmv_group_matrix *matrix, const void *host_alpha, const void *x,
                                      const void *host_beta, void *y);

/* Together: *host_dot = a'b, one part for each chunk, the parts added in a fixed tree.
 *
 *   a, b      own_rows elements of this rank in the context's memory; may be the same
 *   host_dot  one number of the type in host memory, the same on all ranks. Of complex vectors the real part,
 *             a real number
 *
 * Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_DEVICE, those of another rank. */
SPMV_API spmv_status spmv_group_dot(spmv_group_matrix *matrix, const void *a, const void *b, void *host_dot);

/* Together: sends a vector from rank 0 to the ranks that own its elements, or back.
 *
 *   side       SPMV_GROUP_ROWS: as y, SPMV_GROUP_COLS: as x
 *   host_all   on rank 0: rows or cols elements in host memory; ignored on other ranks
 *   own        own_rows or own_cols elements in the context's memory; NULL allowed for 0
 *
 * Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_MEMORY, SPMV_ERROR_DEVICE, those of another rank. */
typedef enum spmv_group_side { SPMV_GROUP_ROWS = 0, SPMV_GROUP_COLS = 1 } spmv_group_side;
SPMV_API spmv_status spmv_group_scatter(spmv_group_matrix *matrix, spmv_group_side side, const void *host_all,
                                        void *own);
SPMV_API spmv_status spmv_group_gather(spmv_group_matrix *matrix, spmv_group_side side, const void *own,
                                       void *host_all);

/* Together: checks y = alpha A x + beta y0 against another backend, as spmv_verify, each rank its
 * own rows. x and y0 are those of the product; y0 may be NULL if beta is 0.
 *
 *   reference    a context of the backend ref or omp, for this rank alone
 *   x, y0, y     of this rank in the context's memory, as for spmv_group_apply
 *   result       NULL, or the result for the whole matrix, the same on all ranks: rows count from
 *                the first of the matrix
 *   size         sizeof(spmv_verify_result)
 *
 * Returns SPMV_OK if every row passes, else SPMV_ERROR_CHECK on all ranks.
 * Errors: those of spmv_verify and of another rank. */
SPMV_API spmv_status spmv_group_verify(spmv_group_matrix *matrix, spmv_context *reference, const void *host_alpha,
                                       const void *x, const void *host_beta, const void *y0, const void *y,
                                       spmv_verify_result *result, size_t size);

/* ---------------------------------------------------------------- conjugate gradients */

/* Together: makes a preconditioner for the rows of this rank, for spmv_group_cg.
 *
 *   name      a name of spmv_preconditioner_name. With "none", "jacobi", "chebyshev" and "amg"
 *             iterations and bits do not depend on the number of ranks; the hierarchy of "amg" is that
 *             which one rank makes of the whole matrix. Any other is made of the square block
 *             of each rank's own rows and columns (block Jacobi over ranks): iterations and bits
 *             depend on the number of ranks. NULL or "auto": that which is
 *             chosen without ranks, by the same facts, except factors; the first one after it, if it cannot
 *             be made. spmv_preconditioner_describe tells which, and why. With the option general: one for
 *             gmres and bicgstab.
 *   *precond  release it with spmv_preconditioner_destroy before the matrix
 *
 * Errors: SPMV_ERROR_NOT_SQUARE; SPMV_ERROR_NOT_POSITIVE (a diagonal entry is not positive; the
 * message names the row); SPMV_ERROR_UNSUPPORTED; those of spmv_preconditioner_create and of
 * another rank. */
SPMV_API spmv_status spmv_group_preconditioner_create(spmv_group_matrix *matrix, const char *name,
                                                      spmv_preconditioner **precond);

/* Together: the same with options, which must be the same on all ranks: those of
 * spmv_preconditioner_create. near_null: own_rows times near_nulls elements. coordinates: of the nodes
 * of own rows, nodes is their number; dimensions is the same on all ranks. block of amg: 1, or a divisor
 * of the rows of a node of the group's matrix (spmv_group_matrix_options). plan must be NULL,
 * update_values is not supported (SPMV_ERROR_UNSUPPORTED). NULL: defaults. */
SPMV_API spmv_status spmv_group_preconditioner_create_with(spmv_group_matrix *matrix, const char *name,
                                                           const spmv_preconditioner_options *options,
                                                           spmv_preconditioner **precond);

/* Together: solves A x = b by conjugate gradients, as spmv_cg for one right-hand side.
 *
 *   b, x     own_rows elements of this rank in the context's memory
 *   options  as for spmv_cg, the same on all ranks. precond: of spmv_group_preconditioner_create.
 *            on_iteration: that of rank 0 counts; what it returns is sent to all ranks. So is
 *            what a context's function of spmv_context_set_cancel returns, which is asked after
 *            each iteration: all ranks return SPMV_CANCELLED. inner and on_iterate must be NULL.
 *   result   may be NULL; the same numbers on all ranks
 *   size     sizeof(spmv_cg_result)
 *
 * Methods: textbook; on omp also fused, where products of rows without elements of other ranks run
 * while these are on their way; on cuda, with the exchange peer or nccl, also graph and fused, in
 * which the host does not wait for other ranks.
 * Errors: those of spmv_cg; SPMV_ERROR_UNSUPPORTED; SPMV_ERROR_ARGUMENT (also: options that differ
 * between ranks); those of another rank. */
SPMV_API spmv_status spmv_group_cg(spmv_group_matrix *matrix, const void *b, void *x, const spmv_cg_options *options,
                                   spmv_cg_result *result, size_t size);

/* ---------------------------------------------------------------- every solver */

/* The solver of a matrix of a group: as spmv_solver_create, with the same choices under "auto" but for
 * factors of large matrices. */
typedef struct spmv_group_solver spmv_group_solver;

/* Together: makes a solver for A x = b.
 *
 *   options  as for spmv_solver_create, the same on all ranks. precond: as for
 *            spmv_group_preconditioner_create; for gmres and bicgstab a rank's block need not be
 *            symmetric. precond_options: as for spmv_group_preconditioner_create_with. null_space: own_rows
 *            times null_vectors elements. on_iteration: as for spmv_group_cg. The solver direct, inner,
 *            plan, own_precond and on_iterate are not supported (SPMV_ERROR_UNSUPPORTED; the message
 *            says what to take instead). type is that of the matrix. NULL: defaults
 *   *solver  release it with spmv_group_solver_destroy before the matrix; NULL after an error
 *
 * "auto" takes cg, minres, gmres or bicgstab as spmv_solver_create does, by the same facts of the whole
 * matrix, and others follow one that fails; preconditioners race, null vectors of singular matrices are split
 * off, and rows of very different sizes are corrected. The preconditioner "auto" is the same as without ranks
 * for small matrices, of which each rank makes factors, also dense ones; else "amg" or "jacobi" takes the place
 * of factors. So is ilut, which follows others that fail, else of each rank's block (docs/distributed.md).
 *
 * Bits do not depend on the number of ranks where those of products, dot products and of the
 * preconditioner do not.
 *
 * Errors, on all ranks: those of spmv_solver_create, of spmv_group_preconditioner_create and of another
 * rank. */
SPMV_API spmv_status spmv_group_solver_create(spmv_group_matrix *matrix, const spmv_solver_options *options,
                                              spmv_group_solver **solver);
SPMV_API void spmv_group_solver_destroy(spmv_group_solver *solver);

/* Together: solves A x = b.
 *
 *   b, x    own_rows elements of this rank in the context's memory (times k for k right-hand sides, which are
 *           stored by rows), which must not overlap; x: also the start, unless zero_start; after a failure as
 *           spmv_solver_solve leaves it
 *   result  NULL, or k structs that are size bytes apart; the same numbers on all ranks
 *   size    sizeof(spmv_solver_result)
 *
 * Several right-hand sides (the option vectors) are solved with one set-up, also of complex matrices. Each has
 * the bits of a solve alone, except that "auto" begins with the preconditioner that has won a race before. One
 * that fails does not stop the others, unless memory, a device or a rank fails. On CPUs, cg with amg, none
 * or jacobi solves for up to 64 real ones in the same iterations where that takes less time, also under "auto"; the
 * function of spmv_context_set_cancel then ends all that are not solved yet, and the result of each names the rung
 * "fused". With a callback, and otherwise, they are solved one after the other. The callback counts each from
 * iteration 0.
 *
 * Errors: those of spmv_solver_solve, the same on all ranks; those of another rank. */
SPMV_API spmv_status spmv_group_solver_solve(spmv_group_solver *solver, const void *b, void *x,
                                             spmv_solver_result *result, size_t size);

/* Together: replaces the values of the solver's matrix, as spmv_group_matrix_update_values, and makes
 * everything that depends on them again: the choices under "auto" and the preconditioner. Null vectors
 * and near-null vectors of the options must still be there. The next solve has the bits of one by a new solver.
 *
 *   values  as for spmv_group_matrix_update_values
 *
 * Errors, on all ranks: those of spmv_group_matrix_update_values and spmv_group_solver_create. If one comes from
 * the set-up, the matrix has the new values, and solves return it. */
SPMV_API spmv_status spmv_group_solver_update_values(spmv_group_solver *solver, const void *values);

/* As spmv_solver_describe. */
SPMV_API spmv_status spmv_group_solver_describe(const spmv_group_solver *solver, spmv_solver_info *info, size_t size);

/* Together: *transpose = A', cols x rows for a matrix of rows x cols, not conjugated, with the same type
 * and exchange. A rank has the rows that are its columns of A. Its entries are in the order of the rows
 * of A, for any number of ranks. Release it with spmv_group_matrix_destroy; NULL after an error.
 * Errors: those of spmv_group_matrix_create. */
SPMV_API spmv_status spmv_group_matrix_transpose(spmv_group_matrix *matrix, spmv_group_matrix **transpose);

SPMV_END_DECLS

#endif
