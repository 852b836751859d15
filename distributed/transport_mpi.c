/* The transport "mpi": the module for the MPI whose launcher has started this process.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <spmv/group.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "distributed/transport.h"
#include "solvers/solver_module.h"

/* The MPI libraries with a module, and the variables that their launchers set. MPICH's are also
 * those of its derivatives (Intel MPI, MVAPICH) and of srun --mpi=pmi2. */
static const struct mpi {
    const char *name, *file, *package;
    const char *variable[2];
} mpis[] = {
    {"openmpi", "spmv_transport_openmpi.so", "libopenmpi-dev", {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"}},
    {"mpich", "spmv_transport_mpich.so", "libmpich-dev", {"PMI_SIZE", "PMI_RANK"}},
};
enum { MPIS = sizeof mpis / sizeof *mpis };

static const struct mpi *mpi_of_launcher(void)
{
    const char *wish = getenv("SPMV_MPI");
    for (int i = 0; i < MPIS && wish != NULL && *wish != '\0'; i++)
        if (strcmp(mpis[i].name, wish) == 0)
            return &mpis[i];
    for (int i = 0; i < MPIS; i++)
        for (int v = 0; v < 2; v++)
            if (getenv(mpis[i].variable[v]) != NULL)
                return &mpis[i];
    return NULL;
}

const char *spmv_group_launcher(void)
{
    const struct mpi *mpi = mpi_of_launcher();
    return mpi != NULL ? mpi->name : NULL;
}

int spmv_group_local_rank(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *text = getenv(variables[i]);
        char *end = NULL;
        const long number = text != NULL ? strtol(text, &end, 10) : -1;
        if (text != NULL && end != text && *end == '\0' && number >= 0 && number <= INT_MAX)
            return (int)number;
    }
    return -1;
}

/* The state of this process. */
struct process {
    const struct transport_module *module;
    struct transport_kept *kept; /* until all ranks have closed */
    int64_t *offset;             /* ranks + 1: of a meeting of all, then room for what it gathers */
};

static const struct transport_module *module_of(const struct transport *t)
{
    return ((const struct process *)t->self)->module;
}

/* The result of a function of the module. */
static spmv_status result(int failed)
{
    return failed ? SPMV_ERROR_DEVICE : SPMV_OK;
}

static spmv_status gather(struct transport *t, const void *own, void *all, const int64_t *offset)
{
    return result(module_of(t)->gather(own, all, offset, t->why));
}

static spmv_status start(struct transport *t, const struct transport_parcel *send, int sends,
                         const struct transport_parcel *receive, int receives)
{
    return result(module_of(t)->start(send, sends, receive, receives, t->why));
}

static spmv_status finish(struct transport *t)
{
    return result(module_of(t)->finish(t->why));
}

static void fail(struct transport *t, spmv_status status, const char *why)
{
    (void)why;
    module_of(t)->abort((int)status / 100);
}

static spmv_status failure(struct transport *t)
{
    module_of(t)->progress();
    return SPMV_OK;
}

static void retain(struct transport *t, void (*release)(void *memory), void *memory)
{
    transport_keep(&((struct process *)t->self)->kept, release, memory);
}

/* Together: returns after all ranks have called it, if none fails. */
static void meet(struct transport *t)
{
    const struct process *const own = t->self;
    const char here = 1;
    for (int r = 0; r <= t->ranks; r++)
        own->offset[r] = r;
    (void)gather(t, &here, own->offset + t->ranks + 1, own->offset);
}

static void close_mpi(struct transport *t)
{
    struct process *const own = t->self;
    if (own->offset != NULL && t->ranks > 1)
        meet(t);
    transport_release_kept(own->kept);
    own->module->close();
    host_free_all(own->offset, own);
    t->self = NULL;
}

spmv_status transport_mpi_open(spmv_context *ctx, struct transport *transport)
{
    const struct mpi *mpi = mpi_of_launcher();
    char what_to_do[256], why[TRANSPORT_MODULE_WHY] = "";
    if (mpi == NULL)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_group_create_mpi: no launcher of MPI has started this process: run it by mpirun -n "
                            "N, or set SPMV_MPI to openmpi or mpich");
    snprintf(what_to_do, sizeof what_to_do,
             "ranks under %s need the module %s: build spmv where the package %s is installed", mpi->name, mpi->file,
             mpi->package);
    const struct solver_module wanted = {.subject = "transport mpi",
                                         .file = mpi->file,
                                         .symbol = "spmv_transport_module",
                                         .what_to_do = what_to_do,
                                         .abi = TRANSPORT_MODULE_ABI};
    const struct transport_module *module = solver_module_open(ctx, &wanted);
    struct process *own = NULL;
    if (module == NULL)
        return SPMV_ERROR_UNSUPPORTED;
    spmv_status st = host_alloc(ctx, sizeof *own, "a group", (void **)&own);
    if (st != SPMV_OK)
        return st;
    *own = (struct process){.module = module};
    *transport = (struct transport){.name = "mpi",
                                    .self = own,
                                    .gather = gather,
                                    .start = start,
                                    .finish = finish,
                                    .fail = fail,
                                    .failure = failure,
                                    .retain = retain,
                                    .close = close_mpi};
    if (module->open(&transport->rank, &transport->ranks, why)) {
        host_free(own);
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "transport mpi (%s): %s", mpi->name, why);
    }
    st = host_alloc(ctx, (2 * transport->ranks + 1) * (int64_t)sizeof *own->offset, "a group", (void **)&own->offset);
    if (st != SPMV_OK)
        close_mpi(transport);
    return st;
}
