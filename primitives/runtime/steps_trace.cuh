/* The trace of steps (steps.cuh) that a caller's function is handed: for spmv_scan_trace and spmv_reduce_trace.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef STEPS_TRACE_CUH
#define STEPS_TRACE_CUH

#include <spmv/primitives.h>

#include "steps.cuh"

/* Hands each step to the caller's function. */
struct tell_caller {
    spmv_trace_fn tell;
    void *user;
    spmv_type type;

    template <typename Program>
    void operator()(const char *launch, const Program &program, int64_t block, int step,
                    const typename Program::shared &shared) const
    {
        char label[128];
        int count = 0;
        program.label(step, label, sizeof label);
        spmv_trace told = {};
        told.launch = launch;
        told.label = label;
        told.block = block;
        told.step = step;
        told.host_cells = program.cells(step, block, shared, &count);
        told.n = count;
        told.type = type;
        told.operations = steps_count::applied();
        tell(&told, user);
    }
};

#endif
