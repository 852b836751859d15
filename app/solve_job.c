/* The job of spmv solve: functions common to its steps.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "solve_job.h"

int64_t job_vector_bytes(const struct job *job)
{
    return job->in.view.rows * job->columns * (int64_t)spmv_type_size(job->o->type);
}

double job_element(const struct job *job, const void *vector, int64_t i)
{
    return real_at(job->o->type, vector, i);
}

bool job_on_gpu(const struct job *job)
{
    return spmv_context_backend(job->ctx) == SPMV_BACKEND_CUDA;
}

double job_energy_norm(const struct job *job, const void *x, int v)
{
    long double sum = 0;
    for (int64_t i = v; i < job->in.view.rows * job->columns; i += job->columns)
        sum += (long double)job_element(job, x, i) * job_element(job, job->b, i);
    return sum > 0 ? (double)sqrtl(sum) : 0;
}

spmv_status job_library_failed(const struct job *job, spmv_status st)
{
    return report(st, spmv_last_error(job->ctx));
}

double job_norm(const struct job *job, const void *r, int v)
{
    long double sum = 0;
    for (int64_t i = v; i < job->in.view.rows * job->columns; i += job->columns)
        sum += (long double)job_element(job, r, i) * job_element(job, r, i);
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
        spmv_preconditioner_destroy(a->m);
        free(a->watch.residuals);
        free(a->x);
        free(a->again);
        free(a->each);
        free(a->error);
        free(a->checked);
    }
    free(job->attempt);
    spmv_plan_destroy(job->inner);
    free(job->narrow_values);
    product_free(&job->p);
    if (job->ctx != NULL) {
        spmv_free(job->ctx, job->context_b);
        spmv_free(job->ctx, job->context_x);
    }
    spmv_host_free(job->b_read);
    spmv_host_free(job->x0);
    free(job->b_made);
    free(job->solution);
    input_free(&job->in);
    spmv_context_destroy(job->ctx);
}
