/* Preconditioners for iterative solvers: z = M^-1 r for a matrix M near A, which reduces the number
 * of iterations (solvers.h).
 *
 * If A is symmetric positive definite, M is too, except for "ilu0" and "ilut". M is made once from
 * the matrix and applied once per iteration. Applications can supply their own
 * (spmv_preconditioner_wrap). docs/preconditioners.md says which one to choose.
 *
 *     spmv_preconditioner *m;
 *     spmv_preconditioner_create(ctx, "jacobi", &a, NULL, &m);
 *     options.precond = m;                                        (spmv_cg_options)
 *     spmv_cg(plan, b, x, &options, &result, sizeof result);
 *     spmv_preconditioner_destroy(m);
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_PRECONDITIONER_H
#define SPMV_PRECONDITIONER_H

#include <spmv/plan.h>

SPMV_BEGIN_DECLS

typedef struct spmv_preconditioner spmv_preconditioner;

/* The functions of an application's own preconditioner. */
typedef struct spmv_preconditioner_class {
    size_t size;      /* sizeof(spmv_preconditioner_class) */
    const char *name; /* copied by spmv_preconditioner_wrap */

    /* z = M^-1 r. M is symmetric positive definite and the same in every call.
     *
     *   self  the pointer given to spmv_preconditioner_wrap
     *   r, z  rows elements each in the context's memory, no overlap; rows > 0
     *
     * It queues its work on the context's stream and should neither allocate nor wait. Any status
     * other than SPMV_OK ends the solve. */
    spmv_status (*apply)(void *self, const void *r, void *z);

    void (*destroy)(void *self); /* releases self; NULL: nothing to release */

    /* z = M^-T r, as apply, for solves with the transpose of A; the same function if M is symmetric. Default NULL:
     * such solves are not supported, unless A is symmetric. */
    spmv_status (*apply_transposed)(void *self, const void *r, void *z);
} spmv_preconditioner_class;

typedef struct spmv_preconditioner_options {
    size_t size; /* sizeof(spmv_preconditioner_options), set by ..._options_init */

    /* The type of r and z: the type of the matrix, or f64 with an f32 matrix. Default: the type of
     * the matrix, f64 for a pattern. */
    spmv_type type;

    int block;  /* block-jacobi: rows of a block, 1 to 64; default 0: 16. amg: rows of a node, 1 to 8,
                   default 0: the largest number for which the rows of each node have entries in
                   the same nodes, or else nodes of different sizes whose rows have the same
                   columns. Rows k block to k block + block - 1 are the unknowns of node k,
                   such as displacements; they stay in one aggregate. SPMV_ERROR_SIZE: not a
                   multiple. */
    int degree; /* chebyshev: products per application, 0 to 100; default -1: 4. amg: products of a
                   smoother, 1 to 100; default -1: 2 or 3, see below. fsai: the most steps of the search for the
                   pattern of a row, of up to 4 entries each, 0 to 8 (more count as 8); default -1: 8. isai: steps of
                   refinement, 0 to 8 (more count as 8); default -1: 1, with general 2 */
    int steps;  /* chebyshev: steps of the eigenvalue estimate, 1 to 1000; default 0: 20 */

    /* chebyshev: the interval of the eigenvalues of D^-1 A, 0 < lowest < highest; both or none.
     * Default 0: both are estimated. */
    double lowest;
    double highest;

    double shift; /* ic0: first diagonal shift, relative to the diagonal; default 0: no shift */

    /* amg: threshold of strong couplings, 0 to 1. Default 0: 0.25. */
    double strength;

    /* chebyshev: a plan for products of A with one vector, of the same context and type. It must
     * outlive the preconditioner. Default NULL: the preconditioner makes its own plan. */
    spmv_plan *plan;

    /* amg: the smoother, "chebyshev" or "l1-jacobi". Default NULL: "chebyshev". */
    const char *smoother;

    /* amg: up to 8 vectors v for which A v is nearly 0, such as the rigid body modes of elasticity.
     * Element i of vector j is near_null[i * near_nulls + j], of the type near_null_type, in the
     * context's memory; read during the call (with update_values: until the preconditioner is
     * destroyed). Default NULL and 0: a vector of ones; with nodes of more rows than 1, block
     * vectors, of which vector j is 1 in row j of each node, else 0. Numbers that are not finite:
     * SPMV_ERROR_NOT_FINITE; all 0: SPMV_ERROR_ARGUMENT. */
    const void *near_null;
    int near_nulls;

    /* amg: 1: the values may be replaced later (spmv_preconditioner_update_values); default 0 */
    int update_values;

    /* jacobi, block-jacobi, isai, amg: 1: A need not be symmetric; default 0: symmetric positive definite.
     * With 1, isai takes the factors of ilu0, amg examines whether A is symmetric (see below), jacobi takes diagonal entries of
     * either sign, and block-jacobi inverts its blocks by LU with partial pivoting; a singular block
     * is replaced by its diagonal (info.fallen). A diagonal entry of 0 that would be needed gives
     * SPMV_ERROR_SINGULAR (amg: SPMV_ERROR_NOT_POSITIVE, also if their signs differ). */
    int general;

    /* ilut: entries below drop times the mean absolute value of their row are dropped, 0 <= drop <
     * 1; default -1: 1e-4 */
    double drop;

    /* cholesky, ilut: the most entries of the factors, relative to those of A, 1 to 1e6; default 0:
     * 10 */
    double fill;

    spmv_type near_null_type; /* of near_null: f64 or f32; default: the option type */

    /* amg: the coordinates of the nodes, of which the vectors of spmv_rigid_body_modes are made;
     * near_null must then be NULL. Coordinate j of node i is coordinates[i * dimensions + j], in
     * host memory; read during the call. A node has as many rows as A divided by nodes: 2 or 3 with
     * 2 dimensions, 3 or 6 with 3; the option block must be that or 0 (SPMV_ERROR_SIZE). A complex
     * matrix: SPMV_ERROR_UNSUPPORTED. Default NULL, 0 and 0: not given. */
    const double *coordinates;
    int64_t nodes;
    int dimensions; /* 2 or 3 */

    /* schur: the field of each row, in host memory: two different numbers of 0, 1 and 2, of which the smaller one is the
     * first field. Default NULL: the first field are the rows with a positive diagonal entry (if there are none, with a
     * negative one), and the second field are the others. A row of it without a diagonal entry has then no entries in the
     * columns of the second field. SPMV_ERROR_UNSUPPORTED: no such fields. */
    const int32_t *fields;

    /* schur: a positive definite matrix in the place of the Schur complement (if that is negative definite, of its
     * negative), with a row for each row of the second field in their order, such as the mass matrix of the pressure over
     * the viscosity. Of the type of A. Arrays in the context's memory must outlive the preconditioner. SPMV_ERROR_SIZE: it
     * has other sizes. Default NULL: see below. */
    const spmv_csr *schur;

    /* schur: in the place of the Schur complement "diagonal", "simple" or "commutator" (see below). Default NULL: "auto". */
    const char *schur_form;
} spmv_preconditioner_options;

/* Fills options with the defaults. size: sizeof(spmv_preconditioner_options). */
SPMV_API void spmv_preconditioner_options_init(spmv_preconditioner_options *options, size_t size);

/* Makes a preconditioner for a symmetric positive definite matrix A; "none", "ilu0", "ilut", and
 * with options.general "jacobi", "block-jacobi" and "isai", for any square matrix; with options.general
 * "amg", for one whose diagonal entries have one sign. May wait.
 *
 *   name          M (D is the diagonal of A)
 *   ------------  ---------------------------------------------------------------------------------
 *   none          I
 *   jacobi        D
 *   block-jacobi  square diagonal blocks of options.block rows, inverted by Cholesky. A block that
 *                 is not positive definite is replaced by its diagonal (info.fallen).
 *   chebyshev     M^-1 = p(D^-1 A) D^-1 with the Chebyshev polynomial p for an interval of
 *                 eigenvalues. Uses only products with A. The interval is estimated by a few
 *                 Lanczos steps from a fixed start vector and then widened. (1)
 *   ic0           L L', an incomplete Cholesky factorisation with the pattern of the lower triangle
 *                 of A. (2) If a pivot fails, A + shift D is factored instead. shift starts at
 *                 0.001 and is doubled until all pivots are positive (info.shift). (3) Backends
 *                 ref and omp.
 *   cholesky      A: L L', a factor with all fill-in, which lies inside the envelope, in f64. The rows
 *                 are in reverse Cuthill-McKee order or in the matrix's own, whichever takes fewer
 *                 multiplications. (7) A pivot of at most 2^-40 times the diagonal entry is replaced
 *                 by that entry (info.fallen). SPMV_ERROR_UNSUPPORTED if the envelope has more than
 *                 options.fill times the entries of A. Backends ref and omp.
 *   ilu0          L U, an incomplete LU factorisation with the pattern of A. (2) A pivot of at most
 *                 2^-40 (f32: 2^-20) times the largest entry of its row is replaced by 0.001 times
 *                 that entry (info.fallen).
 *   ilut          L U Q', an incomplete LU factorisation with fill-in, dropping by options.drop and
 *                 options.fill, and column pivoting. (6) L and U are triangles in an order of the
 *                 rows that depends on the matrix only. Pivots are replaced as for ilu0.
 *   fsai          M^-1 = G' G, a factorised sparse approximate inverse. (9) G is lower triangular;
 *                 with P the columns of row i before the diagonal, (G A)_ij = 0 for j in P, and (G
 *                 A G')_ii = 1. P is found row by row (10): up to options.degree times, up to 4
 *                 columns j < i are added where the gradient of (G A G')_ii, of A scaled to a
 *                 diagonal of ones, is largest; the search of a row ends after a step that reduces
 *                 its psi = 1 / (g_ii^2 a_ii) by less than 5 %. A column is left out if a pivot
 *                 would be at most 2^-40 (f32: 2^-20) (info.fallen), or if its row has more than
 *                 128 entries and more than 8 times those of the mean row. An application is a
 *                 product with G and one with G', without triangular solves. Under vectors of f64,
 *                 G is in f32 where its diagonal is well in that range (info.layout).
 *   isai          M^-1 = X' X, X an incomplete sparse approximate inverse of the factor L of ic0 (11): X has
 *                 the pattern of L, and (X L)_ij = (I)_ij there. With options.general M^-1 = Y X, of the
 *                 factors L U of ilu0: Y' is made of U' as X is of L. Each product y = X r is followed by
 *                 options.degree steps of refinement, y = y + X (r - L y), which makes up for what the pattern
 *                 lacks. An application is 1 + 2 options.degree products with each factor, without triangular
 *                 solves. Under vectors of f64, L, U, X and Y are in f32 where they are well in that range
 *                 (info.layout). Shifts are those of ic0, replaced pivots those of ilu0.
 *   amg           a V-cycle of algebraic multigrid by smoothed aggregation (4), (5). On each level
 *                 with matrix A, the rows form aggregates around a maximal independent set of
 *                 distance 2. P = (I - omega D^-1 F) P0, where F is A without weak couplings, D has
 *                 its row sums of absolute values, and column j of P0 is options.near_null in
 *                 aggregate j and 0 elsewhere. With k > 1 vectors, F is A, D is its diagonal, and each
 *                 aggregate has k columns,
 *                 which are made orthonormal. Where coefficients jump, P is classical interpolation
 *                 instead (8), unless options.near_null is given. The next matrix is P'AP. The
 *                 smoother is options.degree steps of the Chebyshev iteration for E^-1 A, whose
 *                 eigenvalues are at most 1: e_i = sum_j |a_ij| w_j / w_i with w_i =
 *                 sum_j |a_ij| / a_ii; with k > 1 vectors E is the diagonal. Default: 2; for k = 1
 *                 and aggregates 3 on all levels but the first, and there too if some e_i is above
 *                 2.25 a_ii. The correction P e is multiplied by 1.2, unless P is classical. A matrix
 *                 of at most 400 rows is inverted, unless that takes more than 100 multiplications
 *                 for each entry of A and another level can follow. Under vectors of f64 the hierarchy is in f32 where
 *                 that is precise enough (info.layout). For a singular positive semidefinite matrix,
 *                 M is positive definite too. With options.general, if some |a_ij - a_ji| is above
 *                 2^-20 sqrt(a_ii a_jj), options.block is at most 1 and no options.near_null is given:
 *                 P is classical interpolation of A, R' that of A', and the next matrix is R A P
 *                 without entries c_ij of up to 0.02 times the largest |c_ik| and |c_jk| beside the
 *                 diagonal, which are added to the diagonal. The smoother is Jacobi: two steps for rows that are
 *                 not coarse before the correction; a step for these, one for coarse rows, and one
 *                 for these after it (options.degree is not used). A matrix of at most 200 rows is
 *                 inverted. If all diagonal entries are negative, M is that of -A, times -1.
 *   schur         for K = (A, B'; B, -C) of two fields (options.fields): (F, 0; 0, S), and with options.general
 *                 (F, B'; 0, -S), where B' is any block K_12. F is amg of A, with options.block, degree, strength and
 *                 smoother. S is amg of options.schur, or with D, the diagonal of A, and G = B D^-1 B' + C, by
 *                 options.schur_form
 *                     diagonal    the diagonal of G
 *                     simple      amg of G
 *                     commutator  S^-1 = G~^-1 (B D^-1 A D^-1 B') G~^-1 with amg G~ of G; C must be 0 (12)
 *                     auto        if K is its transpose: the form for which S^-1 (B F^-1 B' + C) has the
 *                                 smallest condition by 8 or 24 steps of Lanczos' method; else commutator, or
 *                                 simple if C is not 0
 *                 If the diagonal entries of A are at least twice the rest of their rows, F is D.
 *                 Without general, and if K is its transpose, S is then divided by a power of two near the largest of
 *                 these eigenvalues. If the diagonal of A, or that of G, is negative, the sign of F or S is such that
 *                 (F, 0; 0, S) is positive definite. The diagonal entries of A, and those of G, have one sign each
 *                 (SPMV_ERROR_NOT_POSITIVE). info.layout names the fields and the form.
 *   auto          one of these, chosen from the matrix and the backend; info.why has the reason. If
 *                 it cannot be made (SPMV_ERROR_NOT_POSITIVE, SPMV_ERROR_NOT_FINITE,
 *                 SPMV_ERROR_UNSUPPORTED, SPMV_ERROR_MEMORY), jacobi is made, else none, and info.why
 *                 says so.
 *
 *   (1) Y. Saad, "Iterative Methods for Sparse Linear Systems", 2nd ed., 2003, section 12.3.2
 *   (2) J. A. Meijerink, H. A. van der Vorst, Math. Comp. 31, 1977
 *   (3) T. A. Manteuffel, Math. Comp. 34, 1980
 *   (4) P. Vanek, J. Mandel, M. Brezina, Computing 56, 1996
 *   (5) N. Bell, S. Dalton, L. Olson, SIAM J. Sci. Comput. 34(4), 2012
 *   (6) Y. Saad, Numer. Linear Algebra Appl. 1, 1994; Saad 2003, section 10.4.4
 *   (7) A. George, J. Liu, "Computer Solution of Large Sparse Positive Definite Systems", 1981
 *   (8) H. De Sterck, R. D. Falgout, J. W. Nolting, U. M. Yang, Numer. Linear Algebra Appl. 15, 2008
 *   (9) L. Yu. Kolotilina, A. Yu. Yeremin, SIAM J. Matrix Anal. Appl. 14, 1993
 *  (10) C. Janna, M. Ferronato, SIAM J. Sci. Comput. 33, 2011
 *  (11) H. Anzt, T. Huckle, J. Braeckle, J. Dongarra, Parallel Computing 71, 2018
 *  (12) H. Elman, V. E. Howle, J. Shadid, R. Shuttleworth, R. Tuminaro, SIAM J. Sci. Comput. 27(5), 2006
 *
 *   name             NULL means "auto"; with options.fields, schur or schur_form that is "schur"
 *   a                square. If only one triangle is used, it is the lower one. Arrays in host
 *                    memory may change after the call. Arrays in the context's memory must outlive
 *                    "amg", and a "chebyshev" that makes its own plan. The arrays are checked as by
 *                    spmv_matrix_check; of the values only the diagonal is checked, which must be
 *                    positive. Exceptions: "none" reads no array. "auto" takes any diagonal. "ilu0",
 *                    "ilut", "schur", and with options.general "isai", take any diagonal and check all values. In the memory of a GPU,
 *                    "jacobi", "fsai" and "auto" read the arrays there and do not check them. The
 *                    caller guarantees symmetry where it is required. Rows without entries other than 0,
 *                    such as isolated vertices of a graph, are left alone unless
 *                    options.update_values is set: M is made as if their diagonal entry were 1, and
 *                    info.layout names the first of them.
 *   options          NULL means defaults
 *   *preconditioner  the preconditioner; NULL after an error
 *
 * Errors: SPMV_ERROR_METHOD (no such name; the message lists the names), SPMV_ERROR_NOT_SQUARE,
 * SPMV_ERROR_NOT_POSITIVE (a diagonal entry is missing or not positive, the message names the row;
 * or the set-up found that A is not positive definite), SPMV_ERROR_SINGULAR (with options.general: a
 * diagonal entry is missing or 0, the message names the row), SPMV_ERROR_NOT_FINITE,
 * SPMV_ERROR_TYPE (also: complex),
 * SPMV_ERROR_UNSUPPORTED (the message says what to install or where it is supported),
 * SPMV_ERROR_ARGUMENT, SPMV_ERROR_SIZE (also: options.plan is for another matrix),
 * SPMV_ERROR_LIMIT, SPMV_ERROR_MEMORY.
 * Determinism: the same bits every run and for any number of threads. */
SPMV_API spmv_status spmv_preconditioner_create(spmv_context *ctx, const char *name, const spmv_csr *a,
                                                const spmv_preconditioner_options *options,
                                                spmv_preconditioner **preconditioner);

/* The rigid body modes of elasticity: displacements without strain, which are the translations along
 * the axes and the rotations around them, of nodes at given places. A v is nearly 0 for each mode v.
 * The modes are orthonormal: the coordinates are moved to the middle of the nodes and divided by the
 * largest distance from it, and each mode is made orthogonal to those before it.
 *
 *   a            the matrix, square, real, in either memory. In rows without entries beside the
 *                diagonal other than 0, such as those of Dirichlet values, each mode is 0. NULL: no
 *                row is left out.
 *   nodes        may be 0
 *   dimensions   d, 2 or 3
 *   coordinates  nodes x d numbers, those of a node side by side, in host memory
 *   block        the rows of a node: its d displacements along the axes and, if there are more rows,
 *                its rotations. d = 2: block 2, or 3 with one rotation. d = 3: block 3, or 6 with
 *                rotations around the three axes (shells, beams).
 *   modes        room for nodes x block x 3 (d = 2) or 6 (d = 3) numbers in host memory. Element i
 *                of mode j is modes[i * *count + j].
 *   *count       the modes made, 3 or 6. A mode that depends on those before it is left out: with
 *                d = 3 and block 3, one rotation if all nodes are on a line.
 *
 * Errors: SPMV_ERROR_ARGUMENT (NULL; dimensions; all of several nodes have the same coordinates),
 * SPMV_ERROR_SIZE (a block that does not fit d; nodes x block is not the number of rows),
 * SPMV_ERROR_NOT_FINITE (the message names the coordinate), SPMV_ERROR_LIMIT,
 * SPMV_ERROR_UNSUPPORTED (a complex matrix), SPMV_ERROR_MEMORY.
 * Determinism: the same bits every run and for any number of threads.
 * Source of the orthogonalisation: T. Fukaya, Y. Nakatsukasa, Y. Yanagisawa, Y. Yamamoto,
 * "CholeskyQR2", 2014. */
SPMV_API spmv_status spmv_rigid_body_modes(spmv_context *ctx, const spmv_csr *a, int64_t nodes, int dimensions,
                                           const double *coordinates, int block, double *modes, int *count);

/* Makes a preconditioner from the application's own functions.
 *
 *   type             of r and z: f64 or f32
 *   rows             the length of r and z
 *   functions        what it does; copied
 *   self             passed to the functions; may be NULL. After success the preconditioner owns it
 *                    and releases it with functions->destroy.
 *   *preconditioner  the preconditioner; NULL after an error
 *
 * Errors: SPMV_ERROR_ARGUMENT (also: no name or apply), SPMV_ERROR_TYPE, SPMV_ERROR_MEMORY. */
SPMV_API spmv_status spmv_preconditioner_wrap(spmv_context *ctx, spmv_type type, int64_t rows,
                                              const spmv_preconditioner_class *functions, void *self,
                                              spmv_preconditioner **preconditioner);

/* Replaces the values of the matrix that "amg" was made for. The sparsity pattern, the aggregates
 * and the patterns of the hierarchy stay; its values are computed again. May wait.
 *
 *   preconditioner  made with the option update_values from a matrix with values, whose columns
 *                   ascend in each row (of another matrix: SPMV_ERROR_UNSUPPORTED)
 *   values          nnz elements of the matrix's type in the context's memory, in the order of the
 *                   matrix; must outlive the preconditioner or the next new values
 *
 * Errors: SPMV_ERROR_UNSUPPORTED (another preconditioner, or the option is missing),
 * SPMV_ERROR_BUSY (a solve or an application uses it), SPMV_ERROR_NOT_POSITIVE,
 * SPMV_ERROR_NOT_FINITE, SPMV_ERROR_ARGUMENT, SPMV_ERROR_MEMORY. After any but the first two, and
 * SPMV_ERROR_ARGUMENT, the preconditioner fails until it gets other values.
 * Determinism: as for spmv_preconditioner_create. */
SPMV_API spmv_status spmv_preconditioner_update_values(spmv_preconditioner *preconditioner, const void *values);

/* Destroys a preconditioner. */
SPMV_API void spmv_preconditioner_destroy(spmv_preconditioner *preconditioner);

/* z = M^-1 r. Queued. The built-in preconditioners allocate nothing and do not wait. Two calls with one
 * preconditioner must not run at the same time.
 *
 *   r, z  rows elements each, of the preconditioner's type
 *
 * Aliasing: no overlap.
 * Errors: SPMV_ERROR_ARGUMENT (NULL, r == z), SPMV_ERROR_BUSY (inside an application of the same
 * one), and any status of the application's own function.
 * Determinism: the built-in ones give the same bits every run and for any number of threads. */
SPMV_API spmv_status spmv_preconditioner_apply(const spmv_preconditioner *preconditioner, const void *r, void *z);

/* z = M^-T r: the transpose of what spmv_preconditioner_apply computes, as far as rounding allows. That is z = M^-1 r for
 * a symmetric M: all but "ilu0" and "ilut", and with options.general "block-jacobi", "isai", "schur", and "amg" of a matrix that
 * is not symmetric. For these the first call makes and keeps transposed copies: of the factors; of the blocks; for "amg"
 * of the matrices, R and P, whose cycle runs in reverse order. It allocates and may wait; later calls are queued, and
 * neither allocate nor wait.
 *
 *   r, z  as for spmv_preconditioner_apply
 *
 * Aliasing, determinism: as for spmv_preconditioner_apply.
 * Errors: the same; SPMV_ERROR_UNSUPPORTED (an own preconditioner without apply_transposed), SPMV_ERROR_MEMORY.
 * Source: Saad 2003, section 7.1 (solves with A' in a Krylov method); W. Hackbusch, "Multi-grid methods and
 * applications", 1985 (the transposed cycle). */
SPMV_API spmv_status spmv_preconditioner_apply_transposed(const spmv_preconditioner *preconditioner, const void *r,
                                                          void *z);

/* The description of a preconditioner. Strings are valid until it is destroyed. */
typedef struct spmv_preconditioner_info {
    size_t size;            /* of this struct in bytes */
    const char *name;       /* one of the names above, or that of the application's own */
    const char *why;        /* one sentence: why it was chosen */
    const char *layout;     /* one sentence: what it stores, what was changed to make it; or "" */
    spmv_type type;         /* of r and z */
    int64_t rows;           /* length of r and z */
    int64_t bytes;          /* memory that it owns, without that of own functions */
    double seconds;         /* time of spmv_preconditioner_create */
    double lowest, highest; /* chebyshev: the interval of eigenvalues; else 0 */
    double shift;           /* ic0, isai: the diagonal shift, relative to the diagonal; else 0 */
    int64_t levels;         /* ic0, ilu0, ilut: rows on the longest chain of dependent rows;
                               amg: levels; schur: levels of the first field; else 0 */
    int64_t fallen;         /* block-jacobi: blocks replaced by their diagonal; ic0, isai: failed
                               factorisations; cholesky, ilu0, ilut, isai with general: replaced pivots; fsai: entries
                               left out because of their pivot;
                               amg: unknowns of the last level left out, because the matrix
                               is singular; else 0 */
} spmv_preconditioner_info;

/* Describes a preconditioner.
 *
 *   info  the result
 *   size  sizeof(spmv_preconditioner_info)
 *
 * Errors: SPMV_ERROR_ARGUMENT (NULL). */
SPMV_API spmv_status spmv_preconditioner_describe(const spmv_preconditioner *preconditioner,
                                                  spmv_preconditioner_info *info, size_t size);

/* The name of a built-in preconditioner. Static storage.
 *
 *   index  0 ("none"), 1, ...; NULL is returned after the last one. "auto" is not in the list. */
SPMV_API const char *spmv_preconditioner_name(int index);

SPMV_END_DECLS

#endif
