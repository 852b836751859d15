/* The solvers of a batch: one text for a CPU and for kernels, executed by each lane of a system. Includers
 * (batch_host.c, batch_cuda.cu) define, for numbers of type T with parts of the real type PART:
 *
 *   FUNCTION          begins the definition of a function
 *   TYPED(name)       a name for this type. Of the includer: the struct group, and functions of numbers:
 *                     times, plus, minus, scaled (by a real one), quotient, conjugate, modulus, number (of a
 *                     PART), widened (a c128), rounded (from a c128 times a factor), real_dot (Re conj(a) b), is_finite
 *   VECTOR(v, which)  declares a vector of which a lane sees its own elements
 *   INPUT_VECTOR(v)   the same, and PUBLISH(v), within EACH_ROW, makes element i one of the input of products
 *   EACH_ROW(i) ...   the rows of the lane; within it AT(v): element i of a VECTOR
 *   SUMS(S, s, n)     declares n sums of the real type S, which are 0
 *   ADD(s, j, value)  adds to sum j, within EACH_ROW
 *   ADD_DOT(s, j, a, b)  adds conj(a) b to sum j (and j + 1, if complex)
 *   SUM_UP(S, s, n)   adds the sums of all lanes, and is a barrier
 *   TOTAL(s, j), TOTAL_DOT(s, j)  such a sum, of all lanes
 *   BARRIER           memory of the system written before is visible to all of its lanes
 *   FIRST_LANE        whether this is the first lane of the system
 *   MULTIPLY(q)       the VECTOR q = A input
 *   RESIDUAL(S, s, b, factor, r)  the VECTOR r = b factor - A input, computed in f64; adds its squares to sum 0 of s
 *   DIAGONAL(w)       the VECTOR w = the diagonal of A
 *
 * All lanes take the same branches, because sums are the same in all of them.
 *
 * Passes over vectors: with a small system they are in registers, so what counts is barriers. cg has 3 an
 * iteration, bicgstab 5, gmres with j vectors 4 + 2 ceil((j + 1) / 4).
 *
 * Sources: as in solvers.h; gmres orthogonalises in two passes of blocks of TOGETHER vectors (L. Giraud, J.
 * Langou, M. Rozloznik, J. van den Eshof, Numerische Mathematik 101, 2005).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* Notes the square of the residual of another iteration. Returns whether the run ends, with *stop. Squares are
 * compared, because a root in each iteration takes a GPU nearly as long as a sum. */
FUNCTION bool TYPED(iterated)(struct batch_run *run, double squares, enum batch_stop *stop)
{
    run->iterations++;
    run->squares = squares;
    *stop = squares - squares != 0                 ? BATCH_NOT_FINITE
            : squares <= run->enough * run->enough ? BATCH_CONVERGED
            : run->iterations >= run->limit        ? BATCH_LIMIT
                                                   : BATCH_CYCLE;
    return *stop != BATCH_CYCLE;
}

/* Whether the inner product of two vectors with these squares is roundoff. Roots are taken only if squares do not
 * tell, also because they underflow. */
FUNCTION bool TYPED(vanishes)(T product, double vanishing, double squares, double other_squares)
{
    const double size = TYPED(modulus)(product);
    return !(size * size > vanishing * vanishing * squares * other_squares) &&
           !(size > vanishing * sqrt(squares) * sqrt(other_squares));
}

/* Solves A d = r, with d from 0 and M^-1 = diag(w). r is overwritten. */
FUNCTION enum batch_stop TYPED(run_cg)(struct TYPED(group) * g, const struct batch_job *job, VECTOR_OF r, VECTOR_OF d,
                                       VECTOR_OF w, struct batch_run *run)
{
    const int n = job->rows;
    INPUT_VECTOR(p);
    VECTOR(q, BATCH_METHOD);
    PART rz;
    enum batch_stop stop;
    {
        SUMS(PART, s, 1);
        EACH_ROW(i)
        {
            const T z = TYPED(times)(AT(w), AT(r));
            AT(d) = TYPED(number)(0);
            AT(p) = z;
            PUBLISH(p);
            ADD(s, 0, TYPED(real_dot)(AT(r), z));
        }
        SUM_UP(PART, s, 1);
        rz = TOTAL(s, 0);
    }
    for (;;) {
        SUMS(PART, curvature, 1);
        SUMS(PART, s, 2);
        if (!(rz > 0))
            return rz - rz == 0 ? BATCH_NOT_POSITIVE : BATCH_NOT_FINITE;
        MULTIPLY(q);
        EACH_ROW(i)
        {
            ADD(curvature, 0, TYPED(real_dot)(AT(p), AT(q)));
        }
        SUM_UP(PART, curvature, 1);
        const PART pq = TOTAL(curvature, 0), alpha = rz / pq;
        if (!(pq > 0))
            return pq - pq == 0 ? BATCH_NOT_POSITIVE : BATCH_NOT_FINITE;
        EACH_ROW(i)
        {
            AT(d) = TYPED(plus)(AT(d), TYPED(scaled)(alpha, AT(p)));
            AT(r) = TYPED(minus)(AT(r), TYPED(scaled)(alpha, AT(q)));
            ADD(s, 0, TYPED(real_dot)(AT(r), AT(r)));
            ADD(s, 1, TYPED(real_dot)(AT(r), TYPED(times)(AT(w), AT(r))));
        }
        SUM_UP(PART, s, 2);
        if (TYPED(iterated)(run, (double)TOTAL(s, 0), &stop))
            return stop;
        const PART beta = TOTAL(s, 1) / rz;
        rz = TOTAL(s, 1);
        EACH_ROW(i)
        {
            AT(p) = TYPED(plus)(TYPED(times)(AT(w), AT(r)), TYPED(scaled)(beta, AT(p)));
            PUBLISH(p);
        }
        BARRIER;
    }
}

/* The same by bicgstab, preconditioned on the right. shadow: r at the start. */
FUNCTION enum batch_stop TYPED(run_bicgstab)(struct TYPED(group) * g, const struct batch_job *job, VECTOR_OF r,
                                             VECTOR_OF d, VECTOR_OF w, struct batch_run *run)
{
    const int n = job->rows;
    T *const input = g->input;
    VECTOR(p, BATCH_METHOD);
    VECTOR(shadow, BATCH_METHOD + 1);
    VECTOR(v, BATCH_METHOD + 2);
    VECTOR(t, BATCH_METHOD + 3);
    const double vanishing = job->roundoff * job->roundoff;
    double of_shadow;
    enum batch_stop stop;
    T rho;
    {
        SUMS(PART, s, 1);
        EACH_ROW(i)
        {
            AT(d) = TYPED(number)(0);
            AT(p) = AT(shadow) = AT(r);
            input[i] = TYPED(times)(AT(w), AT(r));
            ADD(s, 0, TYPED(real_dot)(AT(r), AT(r)));
        }
        SUM_UP(PART, s, 1);
        rho = TYPED(number)(TOTAL(s, 0));
        of_shadow = (double)TOTAL(s, 0);
    }
    for (;;) {
        SUMS(PART, first, 1 + DOT_SUMS);
        SUMS(PART, second, 2 + DOT_SUMS);
        SUMS(PART, third, 1 + DOT_SUMS);
        /* v = A M^-1 p, alpha = rho / (shadow, v) */
        MULTIPLY(v);
        EACH_ROW(i)
        {
            ADD(first, 0, TYPED(real_dot)(AT(v), AT(v)));
            ADD_DOT(first, 1, AT(shadow), AT(v));
        }
        SUM_UP(PART, first, 1 + DOT_SUMS);
        const T projected = TOTAL_DOT(first, 1);
        if (!TYPED(is_finite)(projected) || !(TOTAL(first, 0) < INFINITY))
            return BATCH_NOT_FINITE;
        if (TYPED(vanishes)(projected, vanishing, of_shadow, (double)TOTAL(first, 0)))
            return BATCH_BROKEN;
        const T alpha = TYPED(quotient)(rho, projected);
        /* s = r - alpha v, in r; t = A M^-1 s; omega = (t, s) / (t, t) */
        EACH_ROW(i)
        {
            AT(r) = TYPED(minus)(AT(r), TYPED(times)(alpha, AT(v)));
            AT(d) = TYPED(plus)(AT(d), TYPED(times)(alpha, TYPED(times)(AT(w), AT(p))));
            input[i] = TYPED(times)(AT(w), AT(r));
        }
        BARRIER;
        MULTIPLY(t);
        EACH_ROW(i)
        {
            ADD(second, 0, TYPED(real_dot)(AT(r), AT(r)));
            ADD(second, 1, TYPED(real_dot)(AT(t), AT(t)));
            ADD_DOT(second, 2, AT(t), AT(r));
        }
        SUM_UP(PART, second, 2 + DOT_SUMS);
        const double of_s = (double)TOTAL(second, 0);
        if (of_s <= run->enough * run->enough) {
            TYPED(iterated)(run, of_s, &stop);
            return stop;
        }
        const T stabilising = TOTAL_DOT(second, 2);
        if (!TYPED(is_finite)(stabilising) || !(TOTAL(second, 1) < INFINITY))
            return BATCH_NOT_FINITE;
        if (TYPED(vanishes)(stabilising, vanishing, of_s, (double)TOTAL(second, 1)))
            return BATCH_BROKEN;
        const T omega = TYPED(scaled)(1 / TOTAL(second, 1), stabilising);
        EACH_ROW(i)
        {
            AT(d) = TYPED(plus)(AT(d), TYPED(times)(omega, TYPED(times)(AT(w), AT(r))));
            AT(r) = TYPED(minus)(AT(r), TYPED(times)(omega, AT(t)));
            ADD(third, 0, TYPED(real_dot)(AT(r), AT(r)));
            ADD_DOT(third, 1, AT(shadow), AT(r));
        }
        SUM_UP(PART, third, 1 + DOT_SUMS);
        if (TYPED(iterated)(run, (double)TOTAL(third, 0), &stop))
            return stop;
        const T next = TOTAL_DOT(third, 1);
        if (TYPED(vanishes)(next, vanishing, of_shadow, (double)TOTAL(third, 0)))
            return BATCH_BROKEN;
        const T beta = TYPED(times)(TYPED(quotient)(next, rho), TYPED(quotient)(alpha, omega));
        rho = next;
        EACH_ROW(i)
        {
            AT(p) = TYPED(plus)(AT(r), TYPED(times)(beta, TYPED(minus)(AT(p), TYPED(times)(omega, AT(v)))));
            input[i] = TYPED(times)(AT(w), AT(p));
        }
        BARRIER;
    }
}

/* Column j of the triangle: h, rotated, and the rotation that makes `next` below it 0. Returns the norm of the
 * residual; NaN if A is singular on the space, infinity if numbers are not finite. */
FUNCTION double TYPED(rotate)(T *h, T *sine, T *cosine, T *rhs, T *triangle, int j, PART next, double roundoff)
{
    double squares = (double)next * (double)next;
    for (int i = 0; i <= j; i++) {
        const double size = TYPED(modulus)(h[i]);
        squares += size * size;
    }
    for (int i = 0; i < j; i++) {
        const T upper = h[i], lower = h[i + 1];
        h[i] = TYPED(plus)(TYPED(times)(cosine[i], upper), TYPED(times)(sine[i], lower));
        h[i + 1] = TYPED(minus)(TYPED(times)(cosine[i], lower), TYPED(times)(TYPED(conjugate)(sine[i]), upper));
    }
    const double size = TYPED(modulus)(h[j]), length = sqrt(size * size + (double)next * (double)next);
    if (!(squares < INFINITY))
        return INFINITY;
    if (!(length > roundoff * sqrt(squares)))
        return NAN;
    const T direction = size > 0 ? TYPED(scaled)((PART)(1 / size), h[j]) : TYPED(number)(1);
    cosine[j] = TYPED(number)((PART)(size / length));
    sine[j] = TYPED(scaled)((PART)((double)next / length), direction);
    h[j] = TYPED(scaled)((PART)length, direction);
    rhs[j + 1] = TYPED(scaled)(-1, TYPED(times)(TYPED(conjugate)(sine[j]), rhs[j]));
    rhs[j] = TYPED(times)(cosine[j], rhs[j]);
    for (int i = 0; i <= j; i++)
        triangle[(int64_t)j * (j + 1) / 2 + i] = h[i];
    return TYPED(modulus)(rhs[j + 1]);
}

/* The same by a cycle of gmres, preconditioned on the right. */
FUNCTION enum batch_stop TYPED(run_gmres)(struct TYPED(group) * g, const struct batch_job *job, VECTOR_OF r,
                                          VECTOR_OF d, VECTOR_OF w, struct batch_run *run)
{
    enum { TOGETHER = 4 };
    const int n = job->rows, most = job->restart;
    T *const basis = g->basis, *const h = g->scalars, *const sine = h + most + 1, *const cosine = sine + most;
    T *const rhs = cosine + most, *const triangle = rhs + most + 1;
    VECTOR(t, BATCH_METHOD);
    enum batch_stop stop = BATCH_CYCLE;
    PART length;
    int j = 0;
    {
        SUMS(PART, s, 1);
        EACH_ROW(i)
        {
            ADD(s, 0, TYPED(real_dot)(AT(r), AT(r)));
        }
        SUM_UP(PART, s, 1);
        length = (PART)sqrt((double)TOTAL(s, 0));
    }
    if (FIRST_LANE)
        rhs[0] = TYPED(number)(length);
    EACH_ROW(i)
    {
        AT(t) = AT(r);
    }
    while (j < most && stop == BATCH_CYCLE) {
        /* the next vector of the basis, t / its length; t = A M^-1 times that */
        EACH_ROW(i)
        {
            const T v = TYPED(scaled)(1 / length, AT(t));
            basis[(int64_t)j * n + i] = v;
            g->input[i] = TYPED(times)(AT(w), v);
        }
        BARRIER;
        MULTIPLY(t);
        for (int pass = 0; pass < 2; pass++)
            for (int first = 0; first <= j; first += TOGETHER) {
                const int count = j + 1 - first < TOGETHER ? j + 1 - first : TOGETHER;
                const T *const block = basis + (int64_t)first * n;
                SUMS(PART, s, TOGETHER * DOT_SUMS);
                EACH_ROW(i)
                {
                    for (int c = 0; c < TOGETHER; c++)
                        if (c < count)
                            ADD_DOT(s, c * DOT_SUMS, block[(int64_t)c * n + i], AT(t));
                }
                SUM_UP(PART, s, TOGETHER * DOT_SUMS);
                EACH_ROW(i)
                {
                    for (int c = 0; c < TOGETHER; c++)
                        if (c < count)
                            AT(t) = TYPED(minus)(AT(t),
                                                 TYPED(times)(TOTAL_DOT(s, c * DOT_SUMS), block[(int64_t)c * n + i]));
                }
                if (FIRST_LANE)
                    for (int c = 0; c < TOGETHER; c++)
                        if (c < count)
                            h[first + c] = pass == 0 ? TOTAL_DOT(s, c * DOT_SUMS)
                                                     : TYPED(plus)(h[first + c], TOTAL_DOT(s, c * DOT_SUMS));
            }
        SUMS(PART, s, 1);
        EACH_ROW(i)
        {
            ADD(s, 0, TYPED(real_dot)(AT(t), AT(t)));
        }
        SUM_UP(PART, s, 1);
        length = (PART)sqrt((double)TOTAL(s, 0));
        if (FIRST_LANE)
            *g->word = TYPED(rotate)(h, sine, cosine, rhs, triangle, j, length, job->roundoff);
        BARRIER;
        const double residual = *g->word;
        if (residual - residual != 0) {
            stop = residual != residual ? BATCH_BROKEN : BATCH_NOT_FINITE;
            break;
        }
        j++;
        if (!TYPED(iterated)(run, residual * residual, &stop) && !(1 / length < INFINITY))
            break; /* the space is complete: what rounding left needs another cycle */
    }
    /* d = M^-1 V y, y in rhs */
    if (FIRST_LANE)
        for (int i = j - 1; i >= 0; i--) {
            T sum = rhs[i];
            for (int k = i + 1; k < j; k++)
                sum = TYPED(minus)(sum, TYPED(times)(triangle[(int64_t)k * (k + 1) / 2 + i], rhs[k]));
            rhs[i] = TYPED(quotient)(sum, triangle[(int64_t)i * (i + 1) / 2 + i]);
        }
    BARRIER;
    EACH_ROW(i)
    {
        T sum = TYPED(number)(0);
        for (int k = 0; k < j; k++)
            sum = TYPED(plus)(sum, TYPED(times)(rhs[k], basis[(int64_t)k * n + i]));
        AT(d) = TYPED(times)(AT(w), sum);
    }
    BARRIER; /* rhs has been read */
    return stop;
}

/* ||b|| factor, with the factor, a power of two, that brings it to [1, 2), as far as the exponent of the type
 * permits; NaN if b is not finite. A trial with 1 tells whether squares of the elements can be summed. */
FUNCTION double TYPED(scale)(struct TYPED(group) * g, const struct batch_job *job, const T *b, double *factor)
{
    enum { TRIAL = 600 };
    const int n = job->rows;
    double trial = 1, norm = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        SUMS(double, s, 1);
        EACH_ROW(i)
        {
            const spmv_c128 value = TYPED(widened)(b[i]);
            const double re = value.re * trial, im = value.im * trial;
            ADD(s, 0, re * re + im * im);
        }
        SUM_UP(double, s, 1);
        norm = sqrt(TOTAL(s, 0));
        if (norm != norm || (norm > ldexp(1.0, -TRIAL / 2) && norm < ldexp(1.0, TRIAL / 2)))
            break;
        if (attempt == 0)
            trial = ldexp(1.0, norm < 1 ? TRIAL : -TRIAL);
    }
    if (!(norm - norm == 0))
        return NAN;
    *factor = 1;
    if (norm == 0)
        return 0;
    int exponent, of_trial;
    frexp(norm, &exponent);
    frexp(trial, &of_trial);
    const int wanted = of_trial - exponent; /* trial = 2^(of_trial - 1), norm < 2^exponent */
    const int taken = wanted > job->exponent ? job->exponent : wanted < -job->exponent ? -job->exponent : wanted;
    *factor = ldexp(1.0, taken);
    return ldexp(norm, taken - (of_trial - 1));
}

/* w = the inverse diagonal, or 1. Returns the status of the preconditioner. */
FUNCTION spmv_status TYPED(invert_diagonal)(struct TYPED(group) * g, const struct batch_job *job, VECTOR_OF w)
{
    const int n = job->rows;
    if (job->precond != BATCH_NONE) {
        SUMS(double, bad, 2);
        DIAGONAL(w);
        EACH_ROW(i)
        {
            const T inverse = TYPED(quotient)(TYPED(number)(1), AT(w));
            ADD(bad, 0, TYPED(modulus)(AT(w)) == 0 ? 1 : 0);
            ADD(bad, 1, TYPED(is_finite)(AT(w)) && TYPED(is_finite)(inverse) ? 0 : 1);
            AT(w) = inverse;
        }
        SUM_UP(double, bad, 2);
        if (TOTAL(bad, 1) == 0)
            return SPMV_OK;
        if (job->precond == BATCH_JACOBI)
            return TOTAL(bad, 0) > 0 ? SPMV_ERROR_SINGULAR : SPMV_ERROR_NOT_FINITE;
    }
    EACH_ROW(i)
    {
        AT(w) = TYPED(number)(1);
    }
    return SPMV_OK;
}

/* Runs of the recurrence, each from the true residual, until the verdict. rho: the norm of the residual of x,
 * in units of the scaled system. */
FUNCTION void TYPED(solve)(struct TYPED(group) * g, const struct batch_job *job, enum batch_method method,
                           int64_t system)
{
    const int n = job->rows;
    const T *const b = (const T *)job->b + system * n;
    T *const x = (T *)job->x + system * n;
    VECTOR(r, BATCH_R);
    VECTOR(d, BATCH_D);
    VECTOR(w, BATCH_W);
    struct batch_run run = {0, 0, 0, job->max_iterations};
    double factor = 1, rho = NAN, tolerance = NAN;
    int64_t runs = 0;
    const double norm = TYPED(scale)(g, job, b, &factor);
    const bool from_zero = job->zero_start || norm == 0;
    spmv_status status = norm - norm == 0 ? TYPED(invert_diagonal)(g, job, w) : SPMV_ERROR_NOT_FINITE;
    enum batch_stop stop = BATCH_CYCLE;
    EACH_ROW(i)
    {
        if (from_zero)
            x[i] = TYPED(number)(0);
        AT(d) = TYPED(number)(0);
    }
    if (norm - norm == 0)
        tolerance = job->rtol * norm > job->atol * factor ? job->rtol * norm : job->atol * factor;
    for (bool goes_on = norm - norm == 0; goes_on; runs++) {
        /* d = x + d, r = b - A d */
        SUMS(double, s, 1);
        EACH_ROW(i)
        {
            AT(d) = TYPED(plus)(x[i], TYPED(rounded)(TYPED(widened)(AT(d)), 1 / factor));
            g->input[i] = TYPED(rounded)(TYPED(widened)(AT(d)), factor);
        }
        BARRIER;
        RESIDUAL(double, s, b, factor, r);
        SUM_UP(double, s, 1);
        const double before = rho, after = sqrt(TOTAL(s, 0));
        if (runs == 0) {
            rho = after;
            run.squares = TOTAL(s, 0);
            if (status == SPMV_OK && after - after != 0)
                status = SPMV_ERROR_NOT_FINITE;
        } else if (after < rho) {
            rho = after;
            EACH_ROW(i)
            {
                x[i] = AT(d);
            }
        }
        goes_on = false;
        if (status != SPMV_OK || rho <= tolerance)
            continue;
        const bool first = runs == 0, halved = rho <= before / 2;
        if (stop == BATCH_NOT_POSITIVE)
            status = SPMV_ERROR_NOT_POSITIVE;
        else if (run.iterations >= run.limit)
            status = SPMV_ERROR_ITERATIONS;
        else if (stop == BATCH_NOT_FINITE && !halved)
            status = SPMV_ERROR_NOT_FINITE;
        else if (stop == BATCH_BROKEN && !halved)
            status = SPMV_ERROR_BREAKDOWN;
        else if (!first && (stop == BATCH_CYCLE ? !(rho < before) : !halved))
            status = SPMV_ERROR_STAGNATION;
        else
            goes_on = true;
        if (!goes_on)
            continue;
        run.enough = tolerance > job->roundoff * rho ? tolerance : job->roundoff * rho;
        stop = method == BATCH_CG         ? TYPED(run_cg)(g, job, r, d, w, &run)
               : method == BATCH_BICGSTAB ? TYPED(run_bicgstab)(g, job, r, d, w, &run)
                                          : TYPED(run_gmres)(g, job, r, d, w, &run);
    }
    if (FIRST_LANE) {
        struct batch_outcome *const o = &job->outcome[system];
        o->norm_b = norm / factor;
        o->tolerance = tolerance / factor;
        o->recurrence_residual = sqrt(run.squares) / factor;
        o->true_residual = rho / factor;
        o->iterations = run.iterations;
        o->restarts = runs > 1 ? runs - 2 : 0;
        o->status = status;
    }
}
