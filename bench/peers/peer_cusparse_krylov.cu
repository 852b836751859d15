/* cuSPARSE and cuBLAS: restarted GMRES and BiCGStab from their functions, without a preconditioner,
 * as users without their own vector kernels write them. Scalars stay on the device; kernels of one
 * block compute with them, in f64.
 *
 * Products: cusparseSpMV on CSR, preprocessed, with the algorithm that is fastest in a trial.
 *
 *   gmres     w = A v_j; h = V'w, w -= V h, twice (gemv); w'w (dot); one block adds the column to the
 *             triangle by Givens rotations; v_j+1 = w / |w| (scal). After a cycle: y from the
 *             triangle, x += V y (gemv), r = b - A x.
 *   bicgstab  two products, four dots, six axpys and a scal.
 *
 * Iterations are queued as graphs, GROUP at a time, and a copy of the progress after each. The host
 * waits for a copy only while the next group is queued, so the device does not wait for the host.
 * The device itself notices the end: later iterations change neither x nor the progress.
 *
 * Source: Y. Saad, M. H. Schultz, SIAM J. Sci. Stat. Comput. 7(3), 1986; H. A. van der Vorst, SIAM J.
 * Sci. Stat. Comput. 13(2), 1992; the cuSPARSE documentation, "Generic APIs".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cmath>
#include <cstdlib>
#include <new>

#include "bench/peers/cublas_calls.h"
#include "bench/peers/cusparse_product.h"

namespace
{

enum { GROUP = 4, WORKSPACE = 32 << 20, THREADS = 256, ALIGNED = 32 /* elements */ };
static_assert(PEER_MOST_RESTART < int{THREADS}, "one thread for each row of the triangle");

cublasStatus_t gemv(cublasHandle_t h, cublasOperation_t op, int rows, int columns, const double *alpha, const double *a,
                    int lda, const double *x, const double *beta, double *y)
{
    return cublasDgemv(h, op, rows, columns, alpha, a, lda, x, 1, beta, y, 1);
}

cublasStatus_t gemv(cublasHandle_t h, cublasOperation_t op, int rows, int columns, const float *alpha, const float *a,
                    int lda, const float *x, const float *beta, float *y)
{
    return cublasSgemv(h, op, rows, columns, alpha, a, lda, x, 1, beta, y, 1);
}

/* ---------------------------------------------------------------- progress, on the device */

/* Norms are those of residuals. */
struct progress {
    int64_t iterations, limit;
    double residual, enough, norm_b;
    int done;
};

/* NaN ends a solve too. */
__device__ void begin_progress(progress *p, double norm_b, double rtol, int64_t limit)
{
    p->iterations = 0;
    p->limit = limit;
    p->residual = p->norm_b = norm_b;
    p->enough = rtol * norm_b;
    p->done = !(norm_b > p->enough) || limit == 0;
}

__device__ void count_iteration(progress *p, double residual)
{
    p->iterations++;
    p->residual = residual;
    p->done = !(residual > p->enough) || p->iterations >= p->limit;
}

/* ---------------------------------------------------------------- what both solvers have */

class solver
{
  public:
    virtual ~solver() = default;
    virtual bool open(refusal r) = 0;
    virtual bool run(refusal r) = 0;
};

template <typename T> class calls : public solver
{
  protected:
    peer_problem problem = {};
    cudaStream_t stream = nullptr;
    product a = {};
    cublasHandle_t blas = nullptr;
    T *constants = nullptr; /* on the device: -1, 0, 1 */
    progress *on_device = nullptr;
    progress *on_host = nullptr; /* pinned, two copies */
    cudaEvent_t copied[2] = {};
    void *workspace = nullptr;

    explicit calls(const peer_problem *q) : problem(*q), stream(static_cast<cudaStream_t>(q->stream))
    {
    }

    ~calls() override
    {
        product_end(&a);
        drop(blas, cublasDestroy);
        for (cudaEvent_t event : copied)
            if (event != nullptr)
                cudaEventDestroy(event);
        cudaFree(constants);
        cudaFree(on_device);
        cudaFree(workspace);
        cudaFreeHost(on_host);
    }

    int rows() const
    {
        return static_cast<int>(problem.rows);
    }
    size_t bytes() const
    {
        return static_cast<size_t>(problem.rows) * sizeof(T);
    }
    T *x() const
    {
        return static_cast<T *>(problem.y);
    }
    const T *constant(int value) const
    {
        return constants + value + 1;
    }

    /* Memory for count elements, filled with 0. */
    template <typename P> bool get_clear(P **memory, size_t count, refusal r) const
    {
        return get(memory, count, r) &&
               !bad(cudaMemsetAsync(*memory, 0, count * sizeof(P), stream), "cudaMemsetAsync", r);
    }

    /* Two vectors of the solver are for the trial of products. */
    bool open_calls(const T *from, T *to, refusal r)
    {
        static const T values[] = {T(-1), T(0), T(1)};
        peer_problem trial = problem;
        trial.x = from;
        trial.y = to;
        return get(&constants, 3, r) &&
               !bad(cudaMemcpyAsync(constants, values, sizeof values, cudaMemcpyHostToDevice, stream),
                    "cudaMemcpyAsync", r) &&
               get_clear(&on_device, 1, r) &&
               !bad(cudaMallocHost(reinterpret_cast<void **>(&on_host), 2 * sizeof *on_host), "cudaMallocHost", r) &&
               !bad(cudaEventCreateWithFlags(&copied[0], cudaEventDisableTiming), "cudaEventCreateWithFlags", r) &&
               !bad(cudaEventCreateWithFlags(&copied[1], cudaEventDisableTiming), "cudaEventCreateWithFlags", r) &&
               !bad(device_alloc(WORKSPACE, &workspace), "cudaMalloc", r) &&
               blas_handle(stream, workspace, WORKSPACE, &blas, r) &&
               product_begin(&a, &trial, CUSPARSE_SPMV_ALG_DEFAULT, r.why, r.size) &&
               product_make_fastest(&a, r.why, r.size);
    }

    bool describe(T *vector, cusparseDnVecDescr_t *descriptor, refusal r) const
    {
        return !bad(cusparseCreateDnVec(descriptor, problem.rows, vector, a.type), "cusparseCreateDnVec", r);
    }

    /* to = alpha A from + beta to */
    bool multiply(int alpha, cusparseDnVecDescr_t from, int beta, cusparseDnVecDescr_t to, refusal r) const
    {
        return !bad(product_between(&a, alpha, from, beta, to), "cusparseSpMV", r);
    }

    bool dots(const T *u, const T *v, T *result, refusal r) const
    {
        return !bad(dot(blas, rows(), u, v, result), "cublas dot", r);
    }

    bool add(const T *factor, const T *from, T *to, refusal r) const
    {
        return !bad(axpy(blas, rows(), factor, from, to), "cublas axpy", r);
    }

    bool scale(const T *factor, T *v, refusal r) const
    {
        return !bad(scal(blas, rows(), factor, v), "cublas scal", r);
    }

    bool copy(const void *from, T *to, refusal r) const
    {
        return !bad(cudaMemcpyAsync(to, from, bytes(), cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync", r);
    }

    bool launched(refusal r) const
    {
        return !bad(cudaGetLastError(), "the kernel of the scalars", r);
    }

    bool wait(refusal r) const
    {
        return !bad(cudaStreamSynchronize(stream), "cudaStreamSynchronize", r);
    }

    bool launch(cudaGraphExec_t graph, refusal r) const
    {
        return !bad(cudaGraphLaunch(graph, stream), "cudaGraphLaunch", r);
    }

    /* Queues group 0, 1, ... by queue(number) until the device is done, and tells the result. Waits
     * for the progress after a group once the next one is queued. */
    template <typename F> bool until_done(F queue, refusal r) const
    {
        for (int64_t group = 0;; group++) {
            const int slot = static_cast<int>(group % 2);
            if (!queue(group) ||
                bad(cudaMemcpyAsync(&on_host[slot], on_device, sizeof *on_host, cudaMemcpyDeviceToHost, stream),
                    "cudaMemcpyAsync", r) ||
                bad(cudaEventRecord(copied[slot], stream), "cudaEventRecord", r))
                return false;
            if (group == 0)
                continue;
            if (bad(cudaEventSynchronize(copied[1 - slot]), "cudaEventSynchronize", r))
                return false;
            const progress &p = on_host[1 - slot];
            if (!p.done)
                continue;
            problem.solved->iterations = p.iterations;
            problem.solved->residual = p.norm_b > 0 ? p.residual / p.norm_b : p.residual;
            return true;
        }
    }
};

/* ---------------------------------------------------------------- gmres */

/* On the device. m: steps of a cycle; steps: those of this cycle that count. */
template <typename T> struct triangle {
    double r[PEER_MOST_RESTART * PEER_MOST_RESTART]; /* columns, m apart */
    double g[PEER_MOST_RESTART + 1], cosines[PEER_MOST_RESTART], sines[PEER_MOST_RESTART];
    int steps;
    T first[PEER_MOST_RESTART], second[PEER_MOST_RESTART]; /* coefficients of the two passes */
    T y[PEER_MOST_RESTART];
    T square;  /* r'r or w'w */
    T inverse; /* of the norm; 0 after the end */
};

/* square is r'r. */
template <typename T> __global__ void begin_cycle(triangle<T> *t, progress *p, bool first, double rtol, long long limit)
{
    const double norm = sqrt(static_cast<double>(t->square));
    if (first)
        begin_progress(p, norm, rtol, limit);
    t->steps = 0;
    t->g[0] = norm;
    if (!p->done && !(norm > p->enough)) {
        p->residual = norm;
        p->done = 1;
    }
    t->inverse = p->done ? T(0) : static_cast<T>(1 / norm);
}

/* Column j of the Hessenberg matrix is first + second and the norm of w: rotates it. */
template <typename T> __global__ void rotate(triangle<T> *t, progress *p, int j, int m)
{
    __shared__ double h[THREADS], cosines[THREADS], sines[THREADS];
    const int i = static_cast<int>(threadIdx.x);
    const int done = p->done;
    if (i <= j)
        h[i] = static_cast<double>(t->first[i]) + static_cast<double>(t->second[i]);
    if (i < j) {
        cosines[i] = t->cosines[i];
        sines[i] = t->sines[i];
    }
    __syncthreads();
    if (done) {
        if (i == 0)
            t->inverse = T(0);
        return;
    }
    if (i == 0) {
        const double norm = sqrt(static_cast<double>(t->square));
        double carried = h[0];
        for (int k = 0; k < j; k++) {
            const double next = h[k + 1];
            h[k] = cosines[k] * carried + sines[k] * next;
            carried = cosines[k] * next - sines[k] * carried;
        }
        const double rho = hypot(carried, norm);
        h[j] = rho;
        if (rho > 0) {
            t->cosines[j] = carried / rho;
            t->sines[j] = norm / rho;
            t->g[j + 1] = -(norm / rho) * t->g[j];
            t->g[j] *= carried / rho;
            t->steps = j + 1;
            count_iteration(p, fabs(t->g[j + 1]));
        } else { /* the column depends on the others, or is not finite */
            p->done = 1;
        }
        t->inverse = norm > 0 && !p->done ? static_cast<T>(1 / norm) : T(0);
    }
    __syncthreads();
    if (i <= j)
        t->r[static_cast<size_t>(j) * static_cast<size_t>(m) + static_cast<size_t>(i)] = h[i];
}

/* y = R^-1 g for the steps that count, 0 for the others. */
template <typename T> __global__ void solve_triangle(triangle<T> *t, int m)
{
    __shared__ double g[THREADS];
    const int i = static_cast<int>(threadIdx.x), steps = t->steps;
    if (i < steps)
        g[i] = t->g[i];
    for (int k = steps - 1; k >= 0; k--) {
        const double *const column = t->r + static_cast<size_t>(k) * static_cast<size_t>(m);
        __syncthreads();
        if (i == 0)
            g[k] /= column[k];
        __syncthreads();
        if (i < k)
            g[i] -= column[i] * g[k];
    }
    __syncthreads();
    if (i < m)
        t->y[i] = i < steps ? static_cast<T>(g[i]) : T(0);
}

template <typename T> class gmres final : public calls<T>
{
    using calls<T>::problem;
    using calls<T>::stream;
    using calls<T>::on_device;
    using calls<T>::blas;

    int m;              /* steps of a cycle */
    int64_t stride = 0; /* elements from one vector of the basis to the next */
    T *basis = nullptr; /* m + 1 vectors */
    triangle<T> *t = nullptr;
    cusparseDnVecDescr_t vectors[PEER_MOST_RESTART + 1] = {}, x_vector = nullptr;
    cudaGraphExec_t groups[PEER_MOST_RESTART] = {}, turn_graph = nullptr;
    int group_count = 0;

    T *vector(int j) const
    {
        return basis + j * stride;
    }

    bool begin(bool first, refusal r) const
    {
        if (!this->dots(vector(0), vector(0), &t->square, r))
            return false;
        begin_cycle<<<1, 1, 0, stream>>>(t, on_device, first, problem.rtol,
                                         static_cast<long long>(problem.max_iterations));
        return this->launched(r) && this->scale(&t->inverse, vector(0), r);
    }

    /* x = 0, the first residual is b */
    bool start(refusal r) const
    {
        return !bad(cudaMemsetAsync(problem.y, 0, this->bytes(), stream), "cudaMemsetAsync", r) &&
               this->copy(problem.b, vector(0), r) && begin(true, r);
    }

    /* w -= V V'w over the vectors 0 to j */
    bool orthogonalise(int j, T *w, T *coefficients, refusal r) const
    {
        const int n = this->rows(), columns = j + 1, lda = static_cast<int>(stride);
        return !bad(gemv(blas, CUBLAS_OP_T, n, columns, this->constant(1), basis, lda, w, this->constant(0),
                         coefficients),
                    "cublas gemv", r) &&
               !bad(gemv(blas, CUBLAS_OP_N, n, columns, this->constant(-1), basis, lda, coefficients, this->constant(1),
                         w),
                    "cublas gemv", r);
    }

    bool step(int j, refusal r) const
    {
        T *const w = vector(j + 1);
        if (!this->multiply(1, vectors[j], 0, vectors[j + 1], r) || !orthogonalise(j, w, t->first, r) ||
            !orthogonalise(j, w, t->second, r) || !this->dots(w, w, &t->square, r))
            return false;
        rotate<<<1, THREADS, 0, stream>>>(t, on_device, j, m);
        return this->launched(r) && this->scale(&t->inverse, w, r);
    }

    /* x += V y, and the first vector of the next cycle */
    bool turn(refusal r) const
    {
        solve_triangle<<<1, THREADS, 0, stream>>>(t, m);
        return this->launched(r) &&
               !bad(gemv(blas, CUBLAS_OP_N, this->rows(), m, this->constant(1), basis, static_cast<int>(stride), t->y,
                         this->constant(1), this->x()),
                    "cublas gemv", r) &&
               this->copy(problem.b, vector(0), r) && this->multiply(-1, x_vector, 1, vectors[0], r) && begin(false, r);
    }

    bool steps(int from, int to, refusal r) const
    {
        bool fine = true;
        for (int j = from; j < to && fine; j++)
            fine = step(j, r);
        return fine;
    }

    bool describe_all(refusal r)
    {
        bool fine = this->describe(this->x(), &x_vector, r);
        for (int j = 0; j <= m && fine; j++)
            fine = this->describe(vector(j), &vectors[j], r);
        return fine;
    }

    bool capture(refusal r)
    {
        bool fine = capture_graph(
            stream, [&] { return turn(r); }, &turn_graph, r);
        for (int from = 0; from < m && fine; from += GROUP) {
            const int to = from + GROUP < m ? from + GROUP : m;
            fine = capture_graph(
                stream, [&] { return steps(from, to, r); }, &groups[group_count++], r);
        }
        return fine;
    }

  public:
    explicit gmres(const peer_problem *q) : calls<T>(q), m(q->restart)
    {
    }

    ~gmres() override
    {
        drop(turn_graph, cudaGraphExecDestroy);
        for (cudaGraphExec_t graph : groups)
            drop(graph, cudaGraphExecDestroy);
        drop(x_vector, cusparseDestroyDnVec);
        for (cusparseDnVecDescr_t vector : vectors)
            drop(vector, cusparseDestroyDnVec);
        cudaFree(basis);
        cudaFree(t);
    }

    /* A whole cycle loads the kernels, which is not allowed during a capture. Vectors that a short
     * cycle does not reach must be finite, because y is 0 there. */
    bool open(refusal r) override
    {
        stride = (problem.rows + ALIGNED - 1) / ALIGNED * ALIGNED;
        if (m < 1 || m > PEER_MOST_RESTART || stride > INT32_MAX) {
            snprintf(r.why, r.size, "a restart of %d, or too many rows", m);
            return false;
        }
        return !bad(use_device_of(stream), "cudaSetDevice", r) &&
               this->get_clear(&basis, static_cast<size_t>(stride) * static_cast<size_t>(m + 1), r) &&
               this->get_clear(&t, 1, r) && this->open_calls(vector(0), vector(1), r) && describe_all(r) && start(r) &&
               steps(0, m, r) && turn(r) && this->wait(r) && capture(r) && this->wait(r);
    }

    /* The last turn adds what the last cycle found. If that is done already, it adds 0. */
    bool run(refusal r) override
    {
        const auto queue = [&](int64_t group) {
            const int number = static_cast<int>(group % group_count);
            return (number > 0 || group == 0 || this->launch(turn_graph, r)) && this->launch(groups[number], r);
        };
        return start(r) && this->until_done(queue, r) && this->launch(turn_graph, r) && this->wait(r);
    }
};

/* ---------------------------------------------------------------- bicgstab */

/* On the device. */
template <typename T> struct scalars {
    double rho, alpha, omega;
    T r0v, ts, tt, r0r, rr; /* dot products */
    T plus_alpha, minus_alpha, plus_omega, minus_omega, beta;
};

template <typename T> __global__ void begin_scalars(scalars<T> *s, progress *p, double rtol, long long limit)
{
    s->rho = static_cast<double>(s->rr);
    begin_progress(p, sqrt(s->rho), rtol, limit);
}

/* alpha and omega are 0 after the end, so that x and r stay. */
template <typename T> __global__ void divide_alpha(scalars<T> *s, const progress *p)
{
    s->alpha = p->done || s->r0v == T(0) ? 0 : s->rho / static_cast<double>(s->r0v);
    s->plus_alpha = static_cast<T>(s->alpha);
    s->minus_alpha = -s->plus_alpha;
}

template <typename T> __global__ void divide_omega(scalars<T> *s, const progress *p)
{
    s->omega = p->done || s->tt == T(0) ? 0 : static_cast<double>(s->ts) / static_cast<double>(s->tt);
    s->plus_omega = static_cast<T>(s->omega);
    s->minus_omega = -s->plus_omega;
}

template <typename T> __global__ void divide_beta(scalars<T> *s, progress *p)
{
    const double rho = static_cast<double>(s->r0r);
    if (!p->done)
        count_iteration(p, sqrt(static_cast<double>(s->rr)));
    s->beta = p->done ? T(0) : static_cast<T>(rho / s->rho * (s->alpha / s->omega));
    s->rho = rho;
}

template <typename T> class bicgstab final : public calls<T>
{
    using calls<T>::problem;
    using calls<T>::stream;
    using calls<T>::on_device;

    T *r0 = nullptr, *res = nullptr, *p = nullptr, *v = nullptr, *t = nullptr; /* res: r, then s */
    scalars<T> *s = nullptr;
    cusparseDnVecDescr_t p_vector = nullptr, v_vector = nullptr, res_vector = nullptr, t_vector = nullptr;
    cudaGraphExec_t group_graph = nullptr;

    bool start(refusal r) const
    {
        if (bad(cudaMemsetAsync(problem.y, 0, this->bytes(), stream), "cudaMemsetAsync", r) ||
            !this->copy(problem.b, r0, r) || !this->copy(problem.b, res, r) || !this->copy(problem.b, p, r) ||
            !this->dots(res, res, &s->rr, r))
            return false;
        begin_scalars<<<1, 1, 0, stream>>>(s, on_device, problem.rtol, static_cast<long long>(problem.max_iterations));
        return this->launched(r);
    }

    /* v = A p, alpha, s = r - alpha v */
    bool first_half(refusal r) const
    {
        if (!this->multiply(1, p_vector, 0, v_vector, r) || !this->dots(r0, v, &s->r0v, r))
            return false;
        divide_alpha<<<1, 1, 0, stream>>>(s, on_device);
        return this->launched(r) && this->add(&s->minus_alpha, v, res, r);
    }

    /* t = A s, omega, x += alpha p + omega s, r = s - omega t */
    bool second_half(refusal r) const
    {
        if (!this->multiply(1, res_vector, 0, t_vector, r) || !this->dots(t, res, &s->ts, r) ||
            !this->dots(t, t, &s->tt, r))
            return false;
        divide_omega<<<1, 1, 0, stream>>>(s, on_device);
        return this->launched(r) && this->add(&s->plus_alpha, p, this->x(), r) &&
               this->add(&s->plus_omega, res, this->x(), r) && this->add(&s->minus_omega, t, res, r);
    }

    /* beta, p = r + beta (p - omega v) */
    bool direction(refusal r) const
    {
        if (!this->dots(r0, res, &s->r0r, r) || !this->dots(res, res, &s->rr, r))
            return false;
        divide_beta<<<1, 1, 0, stream>>>(s, on_device);
        return this->launched(r) && this->add(&s->minus_omega, v, p, r) && this->scale(&s->beta, p, r) &&
               this->add(this->constant(1), res, p, r);
    }

    bool steps(int count, refusal r) const
    {
        bool fine = true;
        for (int k = 0; k < count && fine; k++)
            fine = first_half(r) && second_half(r) && direction(r);
        return fine;
    }

  public:
    explicit bicgstab(const peer_problem *q) : calls<T>(q)
    {
    }

    ~bicgstab() override
    {
        drop(group_graph, cudaGraphExecDestroy);
        for (cusparseDnVecDescr_t vector : {p_vector, v_vector, res_vector, t_vector})
            drop(vector, cusparseDestroyDnVec);
        void *const memory[] = {r0, res, p, v, t, s};
        for (void *one : memory)
            cudaFree(one);
    }

    /* The first iteration loads the kernels, which is not allowed during a capture. */
    bool open(refusal r) override
    {
        const auto n = static_cast<size_t>(problem.rows);
        return !bad(use_device_of(stream), "cudaSetDevice", r) && this->get_clear(&r0, n, r) &&
               this->get_clear(&res, n, r) && this->get_clear(&p, n, r) && this->get_clear(&v, n, r) &&
               this->get_clear(&t, n, r) && this->get_clear(&s, 1, r) && this->open_calls(p, v, r) &&
               this->describe(p, &p_vector, r) && this->describe(v, &v_vector, r) &&
               this->describe(res, &res_vector, r) && this->describe(t, &t_vector, r) && start(r) && steps(1, r) &&
               this->wait(r) &&
               capture_graph(
                   stream, [&] { return steps(GROUP, r); }, &group_graph, r) &&
               this->wait(r);
    }

    bool run(refusal r) override
    {
        return start(r) && this->until_done([&](int64_t) { return this->launch(group_graph, r); }, r) && this->wait(r);
    }
};

/* ---------------------------------------------------------------- the interface */

template <template <typename> class METHOD>
int open_peer(const peer_problem *problem, void **state, char *why, size_t why_size)
{
    solver *const s = problem->type == SPMV_F32 ? static_cast<solver *>(new (std::nothrow) METHOD<float>(problem))
                                                : new (std::nothrow) METHOD<double>(problem);
    if (s == nullptr) {
        snprintf(why, why_size, "no memory");
        return -1;
    }
    if (s->open({why, why_size})) {
        *state = s;
        return 0;
    }
    delete s;
    return -1;
}

int run_peer(void *state)
{
    char why[256];
    return static_cast<solver *>(state)->run({why, sizeof why}) ? 0 : -1;
}

void close_peer(void *state)
{
    delete static_cast<solver *>(state);
}

const peer peers[] = {
    {"cusparse-krylov-gmres", PEER_GMRES,
     "cusparseSpMV on CSR, preprocessed, the fastest of ALG_DEFAULT, CSR_ALG1 and CSR_ALG2; classical Gram-Schmidt "
     "twice by cuBLAS gemv, dot, scal; rotations in a kernel of one block; graphs of 4 iterations, the next one "
     "queued before the progress is read",
     0, open_peer<gmres>, run_peer, nullptr, nullptr, close_peer},
    {"cusparse-krylov-bicgstab", PEER_BICGSTAB,
     "cusparseSpMV on CSR, preprocessed, the fastest of ALG_DEFAULT, CSR_ALG1 and CSR_ALG2; cuBLAS dot, axpy, scal, "
     "scalars on the device; graphs of 4 iterations, the next one queued before the progress is read",
     0, open_peer<bicgstab>, run_peer, nullptr, nullptr, close_peer},
};

} // namespace

const struct peer_module *spmv_peer_module(void)
{
    return module_of(peers);
}
