/* Where a command runs: opens the context, or starts the ranks, and runs the command there.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/output.h"
#include "app/place/place.h"
#include "bench/faults.h"
#include "core/plural.h"

bool place_has_ranks(const struct options *o)
{
    return o->ranks > 0 || o->gpus > 0 || spmv_group_launcher() != NULL;
}

bool place_on_ranks(const struct place *place)
{
    return place->group != NULL;
}

bool place_writes(const struct place *place)
{
    return place->group == NULL || spmv_group_rank(place->group) == 0;
}

spmv_status place_passed(struct place *place, spmv_status st)
{
    return st == SPMV_OK ? st : report(st, spmv_last_error(place->ctx));
}

spmv_status place_agree(struct place *place, spmv_status st)
{
    if (place->group == NULL)
        return st;
    const spmv_status all = spmv_group_agree(place->group, st);
    return st == SPMV_OK ? place_passed(place, all) : all;
}

static double exchanged(const struct place *place)
{
    spmv_group_matrix_info info = {0};
    spmv_group_matrix_describe(place->matrix, &info, sizeof info);
    return info.exchange_seconds;
}

void place_start(struct place *place)
{
    place->exchanged = exchanged(place);
    place->began = monotonic_seconds();
}

void place_stop(struct place *place)
{
    place->seconds = monotonic_seconds() - place->began;
    place->exchange_seconds = exchanged(place) - place->exchanged;
}

/* ---------------------------------------------------------------- reports */

/* The share of the time of rank 0 that it spends in exchanges and waits for other ranks. */
static double exchange_share(const struct place *place)
{
    return place->seconds > 0 ? place->exchange_seconds / place->seconds : 0;
}

void place_remark(const struct place *place)
{
    const spmv_group_matrix_info *const part = &place->part;
    const int ranks = spmv_group_ranks(place->group);
    /* ranks on GPUs have several ways to exchange data */
    const bool gpus = spmv_context_backend(place->ctx) == SPMV_BACKEND_CUDA;
    remark(LEVEL_NORMAL, "on %d rank%s (%s%s%s), each %s", ranks, plural(ranks), spmv_group_transport(place->group),
           gpus ? ", exchange " : "", gpus ? part->exchange : "", spmv_context_describe(place->ctx));
    remark(LEVEL_NORMAL, "method %s; %lld chunk%s of rows; the largest share of a rank is %.2f times the mean",
           part->method, (long long)part->chunks, plural(part->chunks), part->imbalance);
    remark(LEVEL_NORMAL,
           "halo: %lld element%s of x move%s for a product, at most %lld to a rank; %.0f %% of the time in "
           "exchange",
           (long long)part->all_ghosts, plural(part->all_ghosts), part->all_ghosts == 1 ? "s" : "",
           (long long)part->most_ghosts, 100 * exchange_share(place));
    if (part->note[0] != '\0')
        remark(LEVEL_NORMAL, "note: %s", part->note);
}

json_t *place_json(const struct place *place)
{
    const spmv_group_matrix_info *const part = &place->part;
    return json_pack("{s:i, s:s, s:s, s:I, s:f, s:I, s:I, s:f, s:s}", "count", spmv_group_ranks(place->group),
                     "transport", spmv_group_transport(place->group), "exchange", part->exchange, "chunks",
                     (json_int_t)part->chunks, "imbalance", part->imbalance, "halo", (json_int_t)part->all_ghosts,
                     "halo_largest", (json_int_t)part->most_ghosts, "exchange_share", exchange_share(place), "note",
                     part->note);
}

/* The reason as the context's description has it, "omp, 2 threads (auto: no usable CUDA device)",
 * or the option. */
static void note_reason(struct place *place)
{
    const char *const auto_reason = strstr(spmv_context_describe(place->ctx), "(auto: ");
    const char *const text = auto_reason != NULL ? auto_reason + strlen("(auto: ") : "a usable GPU";
    if (place->o->gpus > 0)
        snprintf(place->why, sizeof place->why, "the option --gpus");
    else if (place->o->backend != SPMV_BACKEND_AUTO)
        snprintf(place->why, sizeof place->why, "the option --backend %s", spmv_backend_name(place->o->backend));
    else
        snprintf(place->why, sizeof place->why, "%.*s", (int)strlen(text) - (auto_reason != NULL), text);
}

/* ---------------------------------------------------------------- one context */

bool place_is_open(const struct place *place)
{
    return place->open;
}

spmv_status place_settle(struct place *place, bool gpu, const char *why)
{
    const bool short_of_memory = place->found != NULL;
    if (!place->open)
        return SPMV_OK;
    place->open = false;
    spmv_status st = SPMV_OK;
    if (gpu && place->found == NULL)
        st = open_context(place->o, SPMV_BACKEND_AUTO, &place->found);
    if (place->found != NULL) {
        spmv_context_destroy(place->ctx);
        place->ctx = place->found;
        place->found = NULL;
    }
    place->estimated = !gpu || spmv_context_backend(place->ctx) == SPMV_BACKEND_CUDA;
    if (short_of_memory && spmv_context_backend(place->ctx) == SPMV_BACKEND_CUDA)
        why = "the job does not fit the memory of the host";
    if (place->estimated)
        snprintf(place->why, sizeof place->why, "%s", why);
    else
        note_reason(place);
    return st;
}

bool place_may_have_gpu(const struct options *o)
{
    return o->backend == SPMV_BACKEND_AUTO &&
           (spmv_backend_built(SPMV_BACKEND_CUDA) || fault_text(FAULT_CUDA_BUILT) != NULL);
}

static spmv_status run_here(const struct options *o, place_work *work, const struct wish *wish)
{
    struct place place = {.o = o};
    place.open = wish->settles && place_may_have_gpu(o);
    spmv_status st = open_context(o, place.open ? SPMV_BACKEND_OMP : o->backend, &place.ctx);
    if (st == SPMV_OK && !place.open)
        note_reason(&place);
    if (st == SPMV_OK)
        st = work(&place, wish);
    spmv_context_destroy(place.found);
    spmv_context_destroy(place.ctx);
    return st;
}

/* ---------------------------------------------------------------- ranks */

/* What the ranks of this process run. */
struct command_of_ranks {
    const struct options *o;
    place_work *work;
    const struct wish *wish;
    bool reports; /* rank 0 runs: it has said why it failed */
};

static spmv_status run_rank(spmv_group *group, void *user)
{
    struct command_of_ranks *const command = user;
    struct place place = {.o = command->o, .group = group, .ctx = spmv_group_context(group)};
    note_reason(&place);
    if (place_writes(&place))
        command->reports = true;
    else
        messages_drop();
    spmv_status st = place_passed(
        &place, spmv_group_agree_on(group, SPMV_OK, "another command or other options", command->o->job_line));
    if (st == SPMV_OK)
        st = command->work(&place, command->wish);
    free(place.collected);
    spmv_group_matrix_destroy(place.matrix);
    spmv_context_destroy(place.checker);
    return st;
}

/* Ranks as threads. */
static spmv_status run_threads(struct command_of_ranks *command)
{
    const struct options *const o = command->o;
    char message[1024];
    spmv_context_options context;
    spmv_group_run_options options;
    spmv_context_options_init(&context, sizeof context);
    spmv_group_run_options_init(&options, sizeof options);
    context.backend = o->gpus > 0 ? SPMV_BACKEND_CUDA : o->backend;
    context.device = o->device;
    context.threads = o->threads;
    context.on_event = tell_event;
    context.first_index = 1;
    options.context = &context;
    options.gpus = o->gpus;
    const spmv_status st =
        spmv_group_run_with(o->ranks > 0 ? o->ranks : o->gpus, &options, run_rank, command, message, sizeof message);
    return st == SPMV_OK || command->reports ? st : report(st, message);
}

int place_ranks_here(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};
    int ranks = 1;
    for (int i = 0; i < 2 && ranks <= 1; i++) {
        const char *text = getenv(variables[i]);
        ranks = text != NULL ? atoi(text) : 1;
    }
    return ranks > 1 ? ranks : 1;
}

/* Opens the context of this process. Launchers that bind a rank to its cores leave it only those;
 * with the others, the ranks of a host share its cores. */
static spmv_status open_rank_context(const struct options *given, spmv_context **ctx)
{
    struct options o = *given;
    const int number = spmv_group_local_rank();
    if (o.gpus > 0)
        o.backend = SPMV_BACKEND_CUDA;
    if (number >= 0 && spmv_backend_built(SPMV_BACKEND_CUDA) &&
        (o.backend == SPMV_BACKEND_CUDA || o.backend == SPMV_BACKEND_AUTO) && (o.gpus > 0 || o.device < 0))
        o.device = (o.device > 0 ? o.device : 0) + (o.gpus > 0 ? number % o.gpus : number);
    spmv_status st = open_context(&o, o.backend, ctx);
    if (st != SPMV_OK || o.threads > 0 || getenv("OMP_NUM_THREADS") != NULL)
        return st;
    const int threads = spmv_context_threads(*ctx), ranks = place_ranks_here();
    if (threads <= 1 || (long)threads * ranks <= sysconf(_SC_NPROCESSORS_ONLN))
        return st;
    o.threads = threads / ranks > 1 ? threads / ranks : 1;
    spmv_context_destroy(*ctx);
    *ctx = NULL;
    return open_context(&o, o.backend, ctx);
}

/* This process is a rank. */
static spmv_status run_process(struct command_of_ranks *command)
{
    spmv_context *ctx = NULL;
    spmv_group *group = NULL;
    spmv_status st = open_rank_context(command->o, &ctx);
    if (st == SPMV_OK) {
        st = spmv_group_create_mpi(ctx, &group);
        if (st != SPMV_OK)
            report(st, spmv_last_error(ctx));
    }
    if (st == SPMV_OK) {
        st = run_rank(group, command);
        spmv_group_destroy(group);
    }
    spmv_context_destroy(ctx);
    return st;
}

spmv_status place_run(const struct options *o, place_refuse *refuse, place_work *work, const struct wish *wish)
{
    if (!place_has_ranks(o))
        return run_here(o, work, wish);
    if (spmv_group_launcher() != NULL && o->ranks > 0)
        return report(SPMV_ERROR_ARGUMENT, "--ranks has no effect under mpirun, which says how many ranks there are");
    const char *refusal = refuse(o);
    if (refusal == NULL && o->verify == VERIFY_BITWISE)
        refusal = "--verify=bitwise is not supported on several ranks";
    if (refusal == NULL && o->max_seconds > 0)
        refusal = "--max-seconds is not supported on several ranks";
    if (refusal != NULL)
        return report(SPMV_ERROR_UNSUPPORTED, refusal);
    struct command_of_ranks command = {.o = o, .work = work, .wish = wish};
    return spmv_group_launcher() == NULL ? run_threads(&command) : run_process(&command);
}
