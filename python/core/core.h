/* Shared by the files of the extension module spmv._core: contexts with a lock, objects of the
 * library, calls without Python's global lock.
 *
 * The module passes addresses and sizes as numbers and checks neither. The Python files around it
 * check arrays, shapes, types and devices. It uses the stable ABI of Python 3.11.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_H
#define CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <spmv/spmv.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A spmv_context and its lock. One thread at a time is between context_begin and context_end;
 * callbacks of that thread may begin again. */
typedef struct context {
    PyObject ob_base;
    spmv_context *ctx;
    PyThread_type_lock lock;
    unsigned long owner; /* the thread that has the lock; 0: none. Read and written with the GIL */
    int depth;
    unsigned forks;          /* as the process counted when the context was made */
    struct released *unused; /* objects that another thread dropped during a call */
    long long next_look;     /* the next time to look for signals, in ns */
    struct context *leader;  /* of ranks: the context of rank 0, which sees signals; NULL: none */
    atomic_bool stops;       /* a signal has ended the call of this context, and so those of the other ranks */
} context;

/* An object of the library that belongs to a context. */
enum object_kind {
    KIND_PLAN,
    KIND_SOLVER,
    KIND_PRECOND,
    KIND_MATRIX,
    KIND_SPGEMM,
    KIND_SDDMM,
    KIND_BATCH,
    KIND_BLOCK,
    KIND_DLPACK,
    KIND_GROUP, /* of one rank, as the next two */
    KIND_GROUP_MATRIX,
    KIND_GROUP_SOLVER
};

typedef struct object {
    PyObject ob_base;
    enum object_kind kind;
    void *made;       /* spmv_plan, spmv_solver, ... */
    context *context; /* NULL: none (KIND_DLPACK) */
    PyObject *keep;   /* what the object borrows: arrays, callables; may be NULL */
    struct plan_facts {
        spmv_type type;
        int64_t rows, cols, work;
        int vectors;
        struct span {
            const char *begin, *end;
        } borrowed[3]; /* row offsets, columns, values: the caller's arrays; empty if copied */
    } plan;            /* KIND_PLAN */
} object;

/* What is kept of a call while Python's global lock is released; NULL: it was not released. */
typedef PyThreadState *call_state;

extern PyTypeObject *context_type, *object_type;

bool core_types_make(PyObject *module);

/* Begins calls of the library: takes the context's lock and, if release is set, releases Python's
 * global lock. Returns false with a Python exception. context_end raises the exception of a failed
 * status, if none is set, and returns whether the status was SPMV_OK. */
bool context_begin(context *c, bool release, call_state *state);
bool context_end(context *c, call_state state, spmv_status status);

/* Whether a call fails with this status although the library has done its work (solvers). */
bool context_end_quietly(context *c, call_state state);

/* Raises the exception of a failed call. */
void raise_status(spmv_status status, const char *text);

/* Gives the pending exception, of a callback or a signal, the attribute of those that raise_status makes. */
void mark_status(spmv_status status);

/* For callbacks of the library, without Python's global lock: true if the running call must be
 * cancelled, because a callback has raised an exception or a signal has arrived (Ctrl-C). Looks a
 * few times a second. */
bool context_interrupted(context *c);

/* A new object that owns made; takes a reference to c and keep. On failure made is destroyed. */
PyObject *object_new(context *c, enum object_kind kind, void *made, PyObject *keep);

/* Replaces what the object keeps alive. Takes over the reference. */
void object_keep(object *o, PyObject *keep);

/* Converters for PyArg_ParseTuple ("O&"). A matrix is a tuple (rows, cols, nnz, row_ptr,
 * row_ptr_bits, col, val, type, memory). */
int to_context(PyObject *from, void *to);
int to_plan(PyObject *from, void *to);
int to_solver(PyObject *from, void *to);
int to_matrix_object(PyObject *from, void *to);
int to_spgemm_plan(PyObject *from, void *to);
int to_sddmm(PyObject *from, void *to);
int to_batch(PyObject *from, void *to);
int to_precond_or_none(PyObject *from, void *to);
int to_group(PyObject *from, void *to);
int to_group_matrix(PyObject *from, void *to);
int to_group_solver(PyObject *from, void *to);
int to_csr(PyObject *from, void *to);

/* The options of a solver without operators: (solver, precond, rung, type, vectors, inner, rtol, atol,
 * iterations, restart, symmetry_check, options of the preconditioner by name, near_null, near_nulls,
 * coordinates, nodes, dimensions). The texts are those of the tuple. */
struct solver_settings {
    spmv_solver_options solver; /* its precond_options are NULL */
    spmv_preconditioner_options precond;
    spmv_csr schur; /* of precond, if that is given */
};
int to_settings(PyObject *from, void *to);

/* What a solver calls of Python, as the user pointer of its callbacks. */
struct watch {
    context *c;
    PyObject *on_iterate;  /* called with (iteration, residual, address of x); NULL: none */
    PyObject *on_residual; /* called with (iteration, residual); NULL: none */
};
int watch_iteration(int64_t iteration, double residual, void *user);

/* Ends a solve: (status, text, results), or NULL with an exception if nothing was solved. */
PyObject *solver_end(context *c, call_state state, spmv_status st, int vectors, const spmv_solver_result *results);

/* The solver of a rank, with what its callback needs. */
struct group_solver {
    spmv_group_solver *solver;
    struct watch watch;
};

/* Writes a number in the type. None: *scalar is NULL, else it points to space. */
bool to_scalar(PyObject *from, spmv_type type, spmv_c128 *space, const void **scalar);

static inline void *address(unsigned long long number)
{
    return (void *)(uintptr_t)number;
}

/* The functions of the module, by file. */
extern PyMethodDef context_methods[], product_methods[], matrix_methods[], solve_methods[], primitive_methods[],
    exchange_methods[], group_methods[], jax_methods[], batch_methods[];

#endif
