/* The job of spmv solve: functions common to its steps.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

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

double job_modulus(const struct job *job, const void *vector, int64_t i)
{
    const double re = part_of(job, vector, i, 0);
    return type_is_complex(job->type) ? hypot(re, part_of(job, vector, i, 1)) : fabs(re);
}

bool job_on_gpu(const struct job *job)
{
    return spmv_context_backend(job->ctx) == SPMV_BACKEND_CUDA;
}

double job_difference(const struct job *job, const void *vector, const void *from, int64_t i)
{
    const double re = part_of(job, vector, i, 0) - part_of(job, from, i, 0);
    return type_is_complex(job->type) ? hypot(re, part_of(job, vector, i, 1) - part_of(job, from, i, 1)) : fabs(re);
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

spmv_status job_library_failed(const struct job *job, spmv_status st)
{
    return report(st, spmv_last_error(job->ctx));
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
    const struct advice advice = solve_advice(job->o, &job->in.view, a, stop);
    if (advice.text[0] != '\0')
        complain("%s", advice.text);
}

void job_release(struct job *job)
{
    for (int i = 0; i < job->attempts && job->attempt != NULL; i++) {
        struct attempt *a = &job->attempt[i];
        void *const owned[] = {a->watch.residuals, a->x, a->again, a->each, a->error, a->checked};
        for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++)
            free(owned[k]);
        spmv_solver_destroy(a->solver);
    }
    free(job->attempt);
    product_free(&job->p);
    if (job->ctx != NULL) {
        spmv_free(job->ctx, job->context_b);
        spmv_free(job->ctx, job->context_x);
        spmv_free(job->ctx, job->near_null);
    }
    spmv_host_free(job->b_read);
    spmv_host_free(job->x0);
    free(job->b_made);
    free(job->solution);
    input_free(&job->in);
    spmv_context_destroy(job->ctx);
}
