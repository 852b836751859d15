/* Conjugate gradients on CUDA: rung 3, "graph", and the host side that it shares with rung 2,
 * "fused", for one right-hand side. Several: cg_3_graph_columns.cu.
 *
 * Idea:       a launch costs the host about 3 us, as long as a step of a small system takes on the
 *             device. Rung 2 launches the kernels of cg_2_fused.cuh one by one. Rung 3 captures the
 *             kernels of 16 steps once and replays them as one CUDA graph, which is one launch. With
 *             a preconditioner that has kernels of its own it is one step.
 * Changed:    since rung 2, nothing on the device.
 * Wins when:  the system has more than about 245,000 rows (it does not fit the persistent rung) and
 *             fewer than some millions (launches then do not count).
 * Source:     CUDA C++ Programming Guide, "CUDA graphs", "Programmatic dependent launch".
 *
 * The loop: cg_blocks.cuh. With the preconditioner none or jacobi and a product that leaves sums of squares, a
 * step has the one vector kernel of cg_2_fused_predicted.cuh.
 *
 * Ranks (struct plan_ranks): each rank runs these kernels on its rows, with one part of a sum for each
 * chunk. The parts go to all ranks, which add them in the same order (queue_sum), so all ranks see the
 * same numbers and end with the same step. A step is then: fetch the elements of other ranks, product,
 * p'q, step_residual, the squares, step_direction. The host waits for other ranks in the first steps
 * only. If there is one rank, the next kernel adds the parts in that order, as without ranks. Where a rank's
 * kernels can write into the memory of other GPUs (plan_ranks, view), step_residual and step_direction
 * exchange the parts by themselves, and step_direction sends the elements that others need. With one vector
 * kernel, all four sums of a step are exchanged at once by a kernel behind the product (queue_step_sums). In small
 * systems of ranks, two vector kernels that exchange by themselves take less time.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/cg/cg_2_fused.cuh"
#include "solvers/cg/cg_2_fused_predicted.cuh"

extern "C" {
#include "product/plan_internal.h"
#include "solvers/precond/precond_internal.h"
}

namespace
{

/* The workspace. */
struct workspace {
    cg_blocks::queue queue;
    /* on the device: the state and parts of sums; M^-1 r, unless a kernel computes it itself */
    void *memory, *z;
    void *other;                           /* the second of two directions; NULL: one */
    bool odd;                              /* the next step to be queued is the second, fourth, ... of the run */
    bool sent;                             /* a kernel has sent elements of the direction to other ranks */
    int64_t left_at, rz_at, pq_at, dot_at; /* dot_at: p'q of a product that does not store parts */
    int64_t squares_at, rho_at;            /* with several ranks: the squares and r'z of all ranks */
    bool predicts;                         /* a step has one vector kernel (cg_2_fused_predicted.cuh) */
    /* then: two structs turn; the parts of the squares of odd steps; the squares of q, folded and as the
     * product leaves them */
    int64_t turns_at, left_odd_at, qq_folded_at, qq_at;
    int64_t sums_at; /* with ranks: those of the step, or with one rank of its chunks */
};

workspace *workspace_of(const struct cg *cg)
{
    return (workspace *)cg->state;
}

/* Whether a thread of a vector kernel has one element only. */
bool is_small(const struct cg *cg)
{
    return cg->s.n <= (int64_t)cg_fused::FEW_BLOCKS * cg_fused::BLOCK;
}

int64_t chunks_of(const struct plan_ranks *ranks)
{
    return max_i64(1, ranks->chunks);
}

/* Whether the kernels of a step exchange with those of other ranks: the same on all ranks. A preconditioner
 * with kernels of its own comes between. With many rows, kernels between the others pay: their few blocks
 * collect the parts once, and elements travel during the product. */
bool exchanges(const struct cg *cg)
{
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    return ranks != nullptr && ranks->view != nullptr && workspace_of(cg)->z == nullptr &&
           !workspace_of(cg)->predicts && ranks->rows < (int64_t)SPMV_CG_TWO_FROM * ranks->view->ranks;
}

/* With ranks, bits do not depend on the number of blocks. */
int64_t blocks_of(const struct cg *cg)
{
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    if (workspace_of(cg)->predicts && ranks == nullptr) {
        const int64_t tile = cg_fused::BLOCK * (cg_predicted::BYTES / (int64_t)spmv_type_size(cg->s.type));
        return min_i64((cg->s.n - 1) / tile + 1, cg_fused::FEW_BLOCKS);
    }
    const bool few = cg->s.n <= (int64_t)cg_fused::FEW_FOR;
    if (ranks != nullptr) {
        const int64_t resident = 2 * ((const cuda_state *)cg->s.ctx->device)->multiprocessors;
        return few || workspace_of(cg)->predicts ? min_i64(chunks_of(ranks), resident) : chunks_of(ranks);
    }
    return is_small(cg) ? (cg->s.n - 1) / cg_fused::BLOCK + 1
           : few        ? (int64_t)cg_fused::FEW_BLOCKS
                        : (int64_t)cg_fused::MANY_BLOCKS;
}

/* The number of parts of the squares. */
int64_t parts_count(const struct cg *cg)
{
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    return ranks != nullptr ? chunks_of(ranks) : blocks_of(cg);
}

/* The parts themselves, or, where there are more than TOP, the FOLDED parts made from them. */
template <typename T> cg_fused::parts_of<T> parts_of(const T *parts, int64_t count, const T *folded)
{
    return count <= cg_fused::TOP ? cg_fused::parts_of<T>{parts, (int)count}
                                  : cg_fused::parts_of<T>{folded, cg_fused::FOLDED};
}

/* Where p'q goes as one number. */
template <typename T> T *dot_of(const struct cg *cg)
{
    const workspace *const own = workspace_of(cg);
    return (T *)((char *)own->memory + own->dot_at);
}

/* The parts of p'q that a product stores. */
template <typename T> T *pq_parts(const struct cg *cg, int64_t *count)
{
    *count = 1;
    const spmv_plan *const plan = cg->s.plan;
    return plan_leaves_parts(plan) ? (T *)plan->method->dot_parts(plan, count) : dot_of<T>(cg);
}

/* The first direction, or the other one. */
void *direction_of(const struct cg *cg, bool other)
{
    return other && workspace_of(cg)->other != nullptr ? workspace_of(cg)->other : cg->p;
}

template <typename T> cg_fused::system<T> system_of(const struct cg *cg)
{
    const workspace *const own = workspace_of(cg);
    char *const memory = (char *)own->memory;
    const void *const scale = cg->s.precond != nullptr ? precond_inverse_diagonal(cg->s.precond) : nullptr;
    auto *const left = (cg_fused::two<T> *)(memory + own->left_at);
    int64_t count = 0;
    const T *const pq = pq_parts<T>(cg, &count);
    T *const rz = (T *)(memory + own->rz_at);
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    cg_fused::system<T> system = {(cg_fused::state<T> *)memory,
                                  (T *)cg->s.x,
                                  (T *)cg->s.r,
                                  (T *)direction_of(cg, own->odd),
                                  (T *)cg->s.q,
                                  (T *)direction_of(cg, !own->odd),
                                  (const T *)scale,
                                  (const T *)own->z,
                                  cg->s.n,
                                  parts_of(pq, count, (const T *)(memory + own->pq_at)),
                                  {rz, cg_fused::FOLDED},
                                  {left, (int)parts_count(cg)},
                                  left,
                                  rz,
                                  nullptr,
                                  0};
    if (ranks == nullptr)
        return system;
    system.chunk = ranks->context_chunk;
    system.chunks = (int)chunks_of(ranks);
    system.pq = {dot_of<T>(cg), 1};
    if (ranks->queue_parts == nullptr) { /* sums of several ranks are numbers, not parts */
        system.rz = {(const T *)(memory + own->rho_at), 1};
        system.squares = {(const cg_fused::two<T> *)(memory + own->squares_at), 1};
    } else {
        system.rz = {rz, system.chunks};
        if (plan_leaves_parts(cg->s.plan))
            system.pq = {(const T *)(memory + own->pq_at), system.chunks};
    }
    return system;
}

template <typename T> void set_system(const struct cg *cg, cg_fused::system<T> *system)
{
    *system = system_of<T>(cg);
}

template <typename T> void set_system(const struct cg *cg, cg_fused::system_of_ranks<T> *system)
{
    (cg_fused::system<T> &)*system = system_of<T>(cg);
    system->view = *cg->s.plan->ranks->view;
}

/* The parts of the squares of this step, or of the next one. */
template <typename T> cg_fused::two<T> *left_of(const struct cg *cg, bool next)
{
    const workspace *const own = workspace_of(cg);
    return (cg_fused::two<T> *)((char *)own->memory + (own->odd != next ? own->left_odd_at : own->left_at));
}

template <typename T> void set_system(const struct cg *cg, cg_predicted::system<T> *system)
{
    const workspace *const own = workspace_of(cg);
    char *const memory = (char *)own->memory;
    auto *const turns = (cg_predicted::turn<T> *)(memory + own->turns_at);
    int64_t count = 0;
    pq_parts<T>(cg, &count);
    (cg_fused::system<T> &)*system = system_of<T>(cg);
    system->qq = parts_of((const T *)(memory + own->qq_at), count, (const T *)(memory + own->qq_folded_at));
    system->next_left = left_of<T>(cg, true);
    system->squares.at = left_of<T>(cg, false);
    system->now = turns + own->odd;
    system->then = turns + !own->odd;
}

template <typename T> void set_system(const struct cg *cg, cg_predicted::system_of_chunks<T> *system)
{
    const workspace *const own = workspace_of(cg);
    set_system(cg, (cg_predicted::system<T> *)system);
    system->all = (const cg_predicted::sums<T> *)((char *)own->memory + own->sums_at);
    system->count = cg->s.plan->ranks->queue_parts != nullptr ? system->chunks : 1;
}

/* Launches the kernel on the system of this solve. */
template <typename T, typename System, typename... Parameters, typename... Arguments>
spmv_status queue_kernel(const struct cg *cg, const char *name, int64_t blocks, void (*kernel)(System, Parameters...),
                         Arguments... arguments)
{
    System system;
    set_system(cg, &system);
    return on_device(cg->s.ctx, [&] {
        return launch_early(cg->s.ctx, name, (int)blocks, cg_fused::BLOCK, kernel, system, arguments...);
    });
}

/* The kernel for one element a thread, or for several at a time. */
#define KERNEL_FOR(kernel, some) (is_small(cg) ? kernel<T, 1> : kernel<T, some>)

/* Folds the parts of p'q where there are more than TOP, and those of the squares of q. */
template <typename T> spmv_status queue_fold(const struct cg *cg)
{
    const workspace *const own = workspace_of(cg);
    char *const memory = (char *)own->memory;
    int64_t count = 0;
    const T *const parts = pq_parts<T>(cg, &count);
    if (count <= cg_fused::TOP)
        return SPMV_OK;
    return on_device(cg->s.ctx, [&] {
        return launch_early(cg->s.ctx, "cg fold", cg_fused::FOLDED, cg_fused::BLOCK, cg_fused::fold<T>, parts,
                            own->predicts ? (const T *)(memory + own->qq_at) : nullptr, count,
                            (T *)(memory + own->pq_at), (T *)(memory + own->qq_folded_at));
    });
}

/* Adds the parts of all ranks; parts: `count` numbers for each chunk. Without ranks, and with one, the
 * next kernel does it. */
template <typename T> spmv_status sum_ranks(const struct cg *cg, const void *parts, int count, int64_t to_at)
{
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    return ranks == nullptr || ranks->queue_parts != nullptr
               ? SPMV_OK
               : ranks->queue_sum(ranks->self, cg->s.type, parts, count, 0, (char *)workspace_of(cg)->memory + to_at);
}

/* The squares of all ranks. */
template <typename T> spmv_status sum_squares(const struct cg *cg)
{
    return sum_ranks<T>(cg, system_of<T>(cg).left, 2, workspace_of(cg)->squares_at);
}

/* p'q of the ranks: of one, the parts of its chunks. */
template <typename T> spmv_status queue_dot_of_ranks(const struct cg *cg)
{
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    T *const dot = dot_of<T>(cg);
    const void *const p = direction_of(cg, workspace_of(cg)->odd);
    const int64_t tile_rows = cg->s.plan->method->part_rows;
    int64_t count = 0;
    if (!plan_leaves_parts(cg->s.plan))
        return exchanges(cg) ? ranks->publish_dot(ranks->self, cg->s.type, p, cg->s.q)
                             : ranks->dot(ranks->self, cg->s.type, p, cg->s.q, dot);
    const T *const parts = pq_parts<T>(cg, &count);
    if (exchanges(cg))
        return ranks->publish(ranks->self, cg->s.type, parts, tile_rows);
    return ranks->queue_parts != nullptr
               ? ranks->queue_parts(ranks->self, cg->s.type, parts, tile_rows, (T *)system_of<T>(cg).pq.at)
               : ranks->queue_sum(ranks->self, cg->s.type, parts, 1, tile_rows, dot);
}

/* The product, whose elements of other ranks have been sent. */
spmv_status multiply_sent(const spmv_plan *plan, struct plan_product product)
{
    const spmv_status st = plan->ranks->take(plan->ranks->self, (void *)product.x);
    product.x = plan_x_of(plan, product.x);
    return st != SPMV_OK || plan->a.rows == 0 ? st : plan_multiply(plan, &product);
}

/* The sums of a step with one vector kernel. The products of a rank without nonzeros are 0. */
template <typename T> spmv_status queue_step_sums(const struct cg *cg)
{
    const workspace *const own = workspace_of(cg);
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    const bool has_parts = plan_leaves_parts(cg->s.plan);
    char *const memory = (char *)own->memory;
    int64_t count = 0;
    const struct plan_step_parts parts = {left_of<T>(cg, false), has_parts ? pq_parts<T>(cg, &count) : nullptr,
                                          has_parts ? memory + own->qq_at : nullptr, cg->s.plan->method->part_rows};
    return ranks->queue_step_sums(ranks->self, cg->s.type, &parts, memory + own->sums_at);
}

/* q = A p and p'q with ranks. */
template <typename T> spmv_status queue_product_of_ranks(const struct cg *cg, struct plan_product product)
{
    if (!plan_leaves_parts(cg->s.plan))
        product.epilogue = nullptr;
    const spmv_status st =
        workspace_of(cg)->sent ? multiply_sent(cg->s.plan, product) : plan_multiply_together(cg->s.plan, product);
    return st != SPMV_OK ? st : workspace_of(cg)->predicts ? queue_step_sums<T>(cg) : queue_dot_of_ranks<T>(cg);
}

/* The kernel for one element a thread, or for several at a time. */
template <typename T, typename System> spmv_status queue_residual(const struct cg *cg)
{
    return queue_kernel<T>(cg, "cg r - alpha q", blocks_of(cg),
                           is_small(cg) ? cg_fused::step_residual<T, 1, System>
                                        : cg_fused::step_residual<T, 8, System>);
}

/* The last kernel of a step. */
template <typename T, typename System> spmv_status queue_direction(const struct cg *cg)
{
    using cg_fused::parts_of_x;
    workspace *const own = workspace_of(cg);
    const auto queue = [&](auto kernel) { return queue_kernel<T>(cg, "cg p", blocks_of(cg), kernel); };
    if (own->other == nullptr)
        return is_small(cg) ? queue(cg_fused::step_direction<T, 1, parts_of_x::ONE, System>)
                            : queue(cg_fused::step_direction<T, 4, parts_of_x::ONE, System>);
    const spmv_status st = own->odd ? queue(cg_fused::step_direction<T, 4, parts_of_x::TWO, System>)
                                    : queue(cg_fused::step_direction<T, 4, parts_of_x::NONE, System>);
    own->odd = !own->odd;
    return st;
}

/* The vector kernels of a step that exchange with those of other ranks. */
template <typename T> spmv_status queue_vectors_of_ranks(const struct cg *cg)
{
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    spmv_status st = ranks->meet(ranks->self);
    if (st == SPMV_OK)
        st = queue_residual<T, cg_fused::system_of_ranks<T>>(cg);
    if (st == SPMV_OK)
        st = ranks->meet(ranks->self);
    if (st == SPMV_OK)
        st = queue_direction<T, cg_fused::system_of_ranks<T>>(cg);
    workspace_of(cg)->sent = true;
    return st;
}

/* The squares of q that a step with one vector kernel needs of its product. */
template <typename T> struct plan_squares squares_of_product(const struct cg *cg)
{
    cg_predicted::system<T> system;
    if (!workspace_of(cg)->predicts)
        return {};
    set_system(cg, &system);
    return {(char *)workspace_of(cg)->memory + workspace_of(cg)->qq_at, system.scale, &system.now->alpha};
}

/* The vector kernel of such a step. */
template <typename T, typename System> spmv_status queue_predicted_of(const struct cg *cg)
{
    using cg_fused::parts_of_x;
    workspace *const own = workspace_of(cg);
    const auto kernel = own->other == nullptr ? cg_predicted::step<T, parts_of_x::ONE, System>
                        : own->odd            ? cg_predicted::step<T, parts_of_x::TWO, System>
                                              : cg_predicted::step<T, parts_of_x::NONE, System>;
    const spmv_status st = queue_kernel<T>(cg, "cg step", blocks_of(cg), kernel);
    own->odd = !own->odd;
    return st;
}

template <typename T> spmv_status queue_predicted(const struct cg *cg)
{
    return cg->s.plan->ranks == nullptr ? queue_predicted_of<T, cg_predicted::system<T>>(cg)
                                        : queue_predicted_of<T, cg_predicted::system_of_chunks<T>>(cg);
}

/* One step. */
template <typename T> spmv_status queue_step(const struct cg *cg)
{
    const workspace *const own = workspace_of(cg);
    const void *const p = direction_of(cg, own->odd);
    spmv_epilogue dot;
    spmv_epilogue_init(&dot, sizeof dot);
    dot.w = p;
    dot.dot = dot_of<T>(cg);
    struct plan_product product = plan_product_of(cg->s.plan, nullptr, p, nullptr, cg->s.q);
    product.epilogue = &dot;
    product.stop = &system_of<T>(cg).s->ending;
    product.leaves_parts = true;
    product.squares = squares_of_product<T>(cg);
    const bool ranks = cg->s.plan->ranks != nullptr;
    spmv_status st = ranks ? queue_product_of_ranks<T>(cg, product) : plan_multiply(cg->s.plan, &product);
    if (st == SPMV_OK && !ranks)
        st = queue_fold<T>(cg);
    if (own->predicts)
        return st != SPMV_OK ? st : queue_predicted<T>(cg);
    if (exchanges(cg))
        return st != SPMV_OK ? st : queue_vectors_of_ranks<T>(cg);
    if (st == SPMV_OK)
        st = queue_residual<T, cg_fused::system<T>>(cg);
    if (st == SPMV_OK)
        st = sum_squares<T>(cg);
    if (st == SPMV_OK && own->z != nullptr) {
        st = cg_precondition(cg, cg->s.r, own->z);
        if (st == SPMV_OK)
            st =
                queue_kernel<T>(cg, "cg r'z", ranks ? blocks_of(cg) : (int64_t)cg_fused::FOLDED, cg_fused::step_rho<T>);
        if (st == SPMV_OK)
            st = sum_ranks<T>(cg, system_of<T>(cg).rz_parts, 1, own->rho_at);
    }
    return st != SPMV_OK ? st : queue_direction<T, cg_fused::system<T>>(cg);
}

template <typename T> spmv_status queue_begin(struct cg *cg)
{
    workspace *const own = workspace_of(cg);
    own->odd = false;
    own->sent = false;
    const double roundoff = sizeof(T) == sizeof(float) ? 0x1p-24 : 0x1p-53;
    int64_t count = 0;
    T *const product_parts = pq_parts<T>(cg, &count);
    cg_blocks::begin(cg, &own->queue);
    spmv_status st = own->z != nullptr ? cg_precondition(cg, cg->s.r, own->z) : SPMV_OK;
    if (st == SPMV_OK)
        st = queue_kernel<T>(cg, "cg begin", blocks_of(cg), KERNEL_FOR(cg_fused::begin, 4), cg->continues,
                             product_parts, count);
    if (st == SPMV_OK)
        st = sum_squares<T>(cg);
    if (st == SPMV_OK)
        st = queue_kernel<T>(cg, "cg begin", 1, cg_fused::begin_state<T>, cg->s.column->tolerance, roundoff,
                             (long long)cg->s.column->limit);
    return st != SPMV_OK || !own->predicts ? st : queue_kernel<T>(cg, "cg begin", 1, cg_predicted::begin_turn<T>);
}

/* The same for several ranks, and the first step, or two where some rank may have two directions, in which
 * the host waits: each kernel is then loaded, and no rank allocates any more. */
template <typename T> spmv_status queue_begin_of_ranks(struct cg *cg)
{
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    spmv_status st = queue_begin<T>(cg);
    for (int k = 0; k < (ranks->rows >= SPMV_CG_TWO_FROM ? 2 : 1) && st == SPMV_OK; k++)
        st = queue_step<T>(cg);
    if (st == SPMV_OK && !ranks->let_wait(ranks->self, true))
        workspace_of(cg)->queue.graphs = false;
    return st;
}

/* Adds to x the part of the last step if their number is odd. */
spmv_status catch_up(const struct cg *cg)
{
    workspace_of(cg)->odd = false;
    return with_zero(cg->s.ctx, "spmv_cg", cg->s.type, [&](auto zero) {
        using T = decltype(zero);
        return queue_kernel<T>(cg, "cg x", blocks_of(cg), cg_fused::catch_up<T>);
    });
}

spmv_status run(struct cg *cg)
{
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    spmv_status st = cg_blocks::run(
        cg, &workspace_of(cg)->queue,
        [=](auto type) {
            using T = decltype(type);
            return ranks != nullptr ? queue_begin_of_ranks<T>(cg) : queue_begin<T>(cg);
        },
        [=](auto type) { return queue_step<decltype(type)>(cg); });
    if (ranks != nullptr)
        ranks->let_wait(ranks->self, false);
    if (st == SPMV_OK && ranks != nullptr && exchanges(cg)) /* what comes next may reuse the number of the last sums */
        st = ranks->meet(ranks->self);
    return st != SPMV_OK || workspace_of(cg)->other == nullptr ? st : catch_up(cg);
}

spmv_status supports(const struct cg *cg)
{
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    return ranks == nullptr || ranks->queue_sum != nullptr
               ? SPMV_OK
               : context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                              "spmv_cg: rung %s of several ranks needs an exchange between GPUs: peer or nccl",
                              cg->s.rung != nullptr ? cg->s.rung : "graph");
}

/* Takes memory for a second direction if vectors are large and there is room. Preconditioners with
 * kernels of their own queue single steps: one direction. Ranks may differ here, since what they
 * exchange, and bits, are the same with one direction and with two. */
spmv_status lend_direction(const struct cg *cg, workspace *own)
{
    if (cg->s.n < (int64_t)SPMV_CG_TWO_FROM || own->z != nullptr)
        return SPMV_OK;
    const spmv_status st = krylov_lend(&cg->s, cg->s.part, cg->s.count, &own->other);
    if (st != SPMV_ERROR_MEMORY)
        return st;
    own->other = nullptr;
    cg->s.ctx->error[0] = '\0';
    return SPMV_OK;
}

/* Whether steps have one vector kernel: the same on all ranks. Inner iterations (keeps) continue with another
 * residual, which the prediction does not know. */
bool predicts(const struct cg *cg)
{
    const struct plan_ranks *const ranks = cg->s.plan->ranks;
    if (ranks != nullptr && ranks->rows < SPMV_CG_PREDICT_FROM)
        return false;
    return (ranks != nullptr ? ranks->leaves_parts : plan_leaves_parts(cg->s.plan)) && !cg->keeps &&
           (cg->s.precond == nullptr || precond_inverse_diagonal(cg->s.precond) != nullptr);
}

/* Places the members of the workspace's memory, each after the one before. Returns its bytes. */
int64_t lay_out(const struct cg *cg, workspace *own)
{
    const int64_t size = (int64_t)spmv_type_size(cg->s.type), parts = parts_count(cg);
    const int64_t folded = size * max_i64(cg_fused::FOLDED, parts);
    int64_t products = 0, end = 0;
    if (own->predicts && plan_leaves_parts(cg->s.plan))
        cg->s.plan->method->dot_parts(cg->s.plan, &products);
    const auto place = [&](int64_t bytes) {
        const int64_t at = end;
        end += (bytes + 255) / 256 * 256;
        return at;
    };
    place((int64_t)sizeof(cg_fused::state<double>));
    own->left_at = place(2 * size * parts);
    own->rz_at = place(folded);
    own->pq_at = place(folded);
    own->dot_at = place(size);
    own->squares_at = place(2 * size);
    own->rho_at = place(size);
    own->turns_at = place(2 * (int64_t)sizeof(cg_predicted::turn<double>));
    own->left_odd_at = place(own->predicts ? 2 * size * parts : 0);
    own->qq_folded_at = place(own->predicts ? size * cg_fused::FOLDED : 0);
    own->qq_at = place(size * products);
    own->sums_at = place(own->predicts ? 4 * size * parts : 0);
    return end;
}

spmv_status prepare(struct cg *cg)
{
    spmv_status st = host_alloc(cg->s.ctx, (int64_t)sizeof(workspace), "a solve", &cg->state);
    if (st != SPMV_OK)
        return st;
    workspace *const own = workspace_of(cg);
    *own = {};
    own->predicts = predicts(cg);
    st = context_lend(cg->s.ctx, lay_out(cg, own), &own->memory);
    if (st == SPMV_OK && cg->s.precond != nullptr && precond_inverse_diagonal(cg->s.precond) == nullptr)
        st = context_lend(cg->s.ctx, max_i64(1, cg->s.n) * (int64_t)spmv_type_size(cg->s.type),
                          &own->z); /* not NULL for a rank without rows */
    if (st == SPMV_OK)
        st = lend_direction(cg, own);
    if (st != SPMV_OK)
        return st;
    st = cg_blocks::open(&own->queue, cg, own->memory, cg->rung == &cg_graph);
    return st != SPMV_OK ? st : on_device(cg->s.ctx, [&] {
        /* the host copies all of it, also members that no kernel wrote */
        return cuda_check(
            cg->s.ctx,
            cudaMemsetAsync(own->memory, 0, sizeof(cg_fused::state<double>), (cudaStream_t)cg->s.ctx->stream),
            "the state");
    });
}

void release(struct cg *cg)
{
    workspace *const own = workspace_of(cg);
    cg_blocks::close(&own->queue);
    context_take_back(cg->s.ctx, own->memory);
    context_take_back(cg->s.ctx, own->z);
    krylov_take_back(&cg->s, cg->s.part, own->other);
}

constexpr cg_rung rung(const char *name, const char *why)
{
    return {name, why, 1u << SPMV_BACKEND_CUDA, 1, 1, false, supports, prepare, run, release, false, true};
}

} // namespace

extern "C" const struct cg_rung cg_fused_cuda = rung("fused", "few kernels per step, launched in advance");
extern "C" const struct cg_rung cg_graph = rung("graph", "few kernels per step, replayed in groups as one CUDA graph");
