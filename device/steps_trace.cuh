/* Passes the trace of steps (steps.cuh) to a caller's function: for spmv_scan_trace,
 * spmv_segscan_trace and spmv_reduce_trace.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_STEPS_TRACE_CUH
#define SPMV_STEPS_TRACE_CUH

#include <spmv/primitives.h>

#include "device/ops.cuh"
#include "device/steps.cuh"

/* The most cells that a program shows after a step. */
enum { TRACE_CELLS = STEPS_THREADS };

/* The cells of a step in the form for the caller: unchanged, or (value, start) pairs as two
 * arrays. */
template <typename T> struct trace_cells {
    const T *cells;
    int count;

    void show(spmv_trace *told) const
    {
        told->host_cells = cells;
        told->n = count;
    }
};

template <typename T> struct trace_cells<segmented<T>> {
    const segmented<T> *cells;
    int count;
    T value[TRACE_CELLS];
    uint8_t start[TRACE_CELLS];

    void show(spmv_trace *told)
    {
        for (int i = 0; i < count; i++) {
            value[i] = cells[i].value;
            start[i] = cells[i].start != 0;
        }
        told->host_cells = count > 0 ? value : NULL;
        told->host_heads = count > 0 ? start : NULL;
        told->n = count;
    }
};

/* Whether a step processes no element (spmv_trace.idle): the result of the program's function idle,
 * if it has one. */
template <typename Program>
auto step_is_idle(const Program &program, int step, int64_t block, int) -> decltype(program.idle(step, block))
{
    return program.idle(step, block);
}

template <typename Program> bool step_is_idle(const Program &, int, int64_t, long)
{
    return false;
}

/* Calls the caller's function, if it is not NULL, for each step. */
struct tell_caller {
    spmv_trace_fn tell;
    void *user;
    spmv_type type;

    template <typename Program>
    void operator()(const char *launch, const Program &program, int64_t block, int step,
                    const typename Program::shared &shared) const
    {
        if (tell == NULL)
            return;
        char label[128];
        int count = 0;
        program.label(step, label, sizeof label);
        spmv_trace told = {};
        told.launch = launch;
        told.label = label;
        told.block = block;
        told.step = step;
        const auto *const cells = program.cells(step, block, shared, &count);
        trace_cells<typename std::remove_const<typename std::remove_pointer<decltype(cells)>::type>::type> shown;
        shown.cells = cells;
        shown.count = count;
        shown.show(&told);
        told.type = type;
        told.idle = step_is_idle(program, step, block, 0);
        told.operations = steps_count::applied();
        tell(&told, user);
    }
};

#endif
