/* The job of spmv solve: functions common to its steps.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/output.h"
#include "app/solve/solve_job.h"
#include "core/reals.h"

int64_t job_vector_bytes(const struct job *job)
{
    return job->in.view.rows * job->columns * (int64_t)spmv_type_size(job->type);
}

/* Part p of element i. */
static double part_of(const struct job *job, const void *vector, int64_t i, int p)
{
    return real_at(type_part(job->type), vector, i * type_parts(job->type) + p);
}

bool job_on_gpu(const struct job *job)
{
    return spmv_context_backend(job->place->ctx) == SPMV_BACKEND_CUDA;
}

double job_difference(const struct job *job, const void *vector, int64_t i, const void *number)
{
    const double re = part_of(job, vector, i, 0) - part_of(job, number, 0, 0);
    return type_is_complex(job->type) ? hypot(re, part_of(job, vector, i, 1) - part_of(job, number, 0, 1)) : fabs(re);
}

bool job_is_random(const struct job *job)
{
    return strcmp(job->o->solution, "random") == 0;
}

/* A NaN differs from itself; a matrix with one counts as symmetric if its pattern is, and the
 * solver reports the NaN. */
bool job_is_symmetric(const struct job *job)
{
    const spmv_statistics *const s = &job->statistics;
    return s->hermitian || (s->pattern_symmetric && s->not_finite > 0);
}

double job_energy_norm(const struct job *job, const void *x, int v)
{
    long double sum = 0;
    for (int64_t i = v; i < job->in.view.rows * job->columns; i += job->columns)
        for (int p = 0; p < type_parts(job->type); p++)
            sum += (long double)part_of(job, x, i, p) * part_of(job, job->b, i, p);
    return (double)sqrtl(fabsl(sum)); /* of -A if that is positive definite */
}

double job_norm(const struct job *job, const void *r, int v)
{
    long double sum = 0;
    for (int64_t i = v; i < job->in.view.rows * job->columns; i += job->columns)
        for (int p = 0; p < type_parts(job->type); p++)
            sum += (long double)part_of(job, r, i, p) * part_of(job, r, i, p);
    return (double)sqrtl(sum);
}

void job_tell_next(const struct job *job, const struct attempt *a, spmv_status stop)
{
    const struct advice advice = place_on_ranks(job->place) ? solve_advice_on_ranks(job->o, a, stop)
                                                            : solve_advice(job->o, &job->in.view, a, stop);
    if (advice.text[0] != '\0')
        complain("%s", advice.text);
}

void job_release(struct job *job)
{
    struct place *const place = job->place;
    for (int i = 0; i < job->attempts && job->attempt != NULL; i++) {
        struct attempt *a = &job->attempt[i];
        void *const owned[] = {a->watch.residuals, a->each, a->error, a->checked};
        for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++)
            free(owned[k]);
        place_free(place, a->x);
        place_free(place, a->again);
        spmv_solver_destroy(a->solver);
        spmv_group_solver_destroy(a->together);
    }
    free(job->attempt);
    product_free(&job->p);
    spmv_free(place->ctx, job->context_b);
    spmv_free(place->ctx, job->context_x);
    spmv_free(place->ctx, job->near_null);
    spmv_free(place->ctx, job->null_space);
    spmv_host_free(job->coordinates);
    free(job->fields);
    input_free(&job->schur);
    place_free_loaded(place, job->b_read);
    place_free_loaded(place, job->x0);
    place_free(place, job->b_made);
    input_free(&job->in);
}
