/* Groups of ranks: one object for each rank. Functions that ranks call together are called by a thread for
 * each rank of this process (_group.py), or by each process of MPI.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core.h"

/* ------------------------------------------------------------------ groups */

/* group_threads(contexts): the handles of ranks, one for each context. */
static PyObject *group_threads(PyObject *module, PyObject *contexts)
{
    spmv_context *ctx[SPMV_GROUP_MAX_THREADS];
    spmv_group *group[SPMV_GROUP_MAX_THREADS];
    context *first = NULL;
    call_state state;
    (void)module;
    const Py_ssize_t ranks = PyTuple_Size(contexts);
    if (ranks < 1 || ranks > SPMV_GROUP_MAX_THREADS)
        return ranks < 0 ? NULL
                         : PyErr_Format(PyExc_ValueError, "%zd ranks: from 1 to %d are possible", ranks,
                                        SPMV_GROUP_MAX_THREADS);
    for (Py_ssize_t r = ranks - 1; r >= 0; r--) {
        if (!to_context(PyTuple_GetItem(contexts, r), &first))
            return NULL;
        ctx[r] = first->ctx;
    }
    if (!context_begin(first, true, &state) ||
        !context_end(first, state, spmv_group_create_threads(ctx, (int)ranks, group)))
        return NULL;
    PyObject *handles = PyTuple_New(ranks);
    for (Py_ssize_t r = 0; r < ranks; r++) {
        PyObject *one = NULL;
        if (handles != NULL)
            one = object_new((context *)PyTuple_GetItem(contexts, r), KIND_GROUP, group[r], NULL);
        else
            spmv_group_destroy(group[r]);
        if (one == NULL || PyTuple_SetItem(handles, r, one) != 0)
            Py_CLEAR(handles);
    }
    return handles;
}

/* group_lead(contexts): from now on a signal that ends a call of the first one ends those of the others. Called
 * before all ranks begin. */
static PyObject *group_lead(PyObject *module, PyObject *contexts)
{
    context *first = NULL, *c = NULL;
    (void)module;
    for (Py_ssize_t r = 0; r < PyTuple_Size(contexts); r++) {
        if (!to_context(PyTuple_GetItem(contexts, r), &c))
            return NULL;
        if (r == 0)
            first = c;
        else if (c->leader == NULL)
            c->leader = (context *)Py_NewRef((PyObject *)first);
    }
    if (first != NULL)
        atomic_store(&first->stops, false);
    return PyErr_Occurred() == NULL ? Py_NewRef(Py_None) : NULL;
}

static PyObject *group_mpi(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_group *group = NULL;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&", to_context, &c) || !context_begin(c, true, &state) ||
        !context_end(c, state, spmv_group_create_mpi(c->ctx, &group)))
        return NULL;
    return object_new(c, KIND_GROUP, group, NULL);
}

static PyObject *group_launcher(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return Py_BuildValue("z", spmv_group_launcher());
}

/* Ends the waits of the other ranks: this one cannot take part. */
static PyObject *group_break(PyObject *module, PyObject *arguments)
{
    object *g = NULL;
    const char *message = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&s", to_group, &g, &message))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    spmv_group_break(g->made, SPMV_ERROR_DEVICE, message);
    Py_END_ALLOW_THREADS;
    return Py_NewRef(Py_None);
}

/* ------------------------------------------------------------------ matrices */

static PyObject *new_matrix(object *group, call_state state, spmv_status st, spmv_group_matrix *made)
{
    return context_end(group->context, state, st)
               ? object_new(group->context, KIND_GROUP_MATRIX, made, (PyObject *)group)
               : NULL;
}

static spmv_group_matrix_options matrix_options(int type, int block, const char *exchange)
{
    spmv_group_matrix_options o;
    spmv_group_matrix_options_init(&o, sizeof o);
    o.type = (spmv_type)type;
    o.block = block;
    o.exchange = exchange;
    return o;
}

/* group_matrix(group, rows, type of vectors, rows of a node, exchange, whether columns have 64 bits). The library
 * copies the rows. */
static PyObject *group_matrix(PyObject *module, PyObject *arguments)
{
    object *g = NULL;
    spmv_csr own;
    int type, block, wide;
    const char *exchange = NULL;
    spmv_group_matrix *made = NULL;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&O&iizp", to_group, &g, to_csr, &own, &type, &block, &exchange, &wide))
        return NULL;
    const int64_t *const col = (const int64_t *)(const void *)own.col;
    const spmv_group_matrix_options o = matrix_options(type, block, exchange);
    if (!context_begin(g->context, true, &state))
        return NULL;
    const spmv_status st = wide ? spmv_group_matrix_create_wide(g->made, &own, col, &o, &made)
                                : spmv_group_matrix_create(g->made, &own, &o, &made);
    return new_matrix(g, state, st, made);
}

/* group_read(group, path, type of values, type of vectors, rows of a node, exchange) */
static PyObject *group_read(PyObject *module, PyObject *arguments)
{
    object *g = NULL;
    const char *path = NULL, *exchange = NULL;
    int values, type, block;
    spmv_read_options reading;
    spmv_group_matrix *made = NULL;
    call_state state;
    (void)module;
    spmv_read_options_init(&reading, sizeof reading);
    if (!PyArg_ParseTuple(arguments, "O&yiiiz", to_group, &g, &path, &values, &type, &block, &exchange))
        return NULL;
    const spmv_group_matrix_options o = matrix_options(type, block, exchange);
    reading.type = (spmv_type)values;
    if (!context_begin(g->context, true, &state))
        return NULL;
    const spmv_status st = spmv_group_matrix_read(g->made, path, &reading, &o, &made, NULL, 0);
    return new_matrix(g, state, st, made);
}

/* group_generate(context, text, type, part, parts): the rows of one of the parts, a matrix. */
static PyObject *group_generate(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    const char *spec = NULL;
    int type;
    spmv_generate_options o;
    spmv_matrix *matrix = NULL;
    call_state state;
    (void)module;
    spmv_generate_options_init(&o, sizeof o);
    if (!PyArg_ParseTuple(arguments, "O&siii", to_context, &c, &spec, &type, &o.part, &o.parts) ||
        !context_begin(c, true, &state))
        return NULL;
    o.type = (spmv_type)type;
    if (!context_end(c, state, spmv_matrix_generate_within(c->ctx, spec, &o, &matrix)))
        return NULL;
    return object_new(c, KIND_MATRIX, matrix, NULL);
}

static PyObject *group_matrix_info(PyObject *module, PyObject *arguments)
{
    object *m = NULL;
    spmv_group_matrix_info i;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&", to_group_matrix, &m))
        return NULL;
    spmv_group_matrix_describe(m->made, &i, sizeof i);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:d,s:s,s:s,s:s,s:L,s:d,s:s}", "rows",
                         (long long)i.rows, "cols", (long long)i.cols, "nnz", (long long)i.nnz, "chunks",
                         (long long)i.chunks, "first_row", (long long)i.first_row, "own_rows", (long long)i.own_rows,
                         "first_col", (long long)i.first_col, "own_cols", (long long)i.own_cols, "own_nnz",
                         (long long)i.own_nnz, "ghosts", (long long)i.ghosts, "most_ghosts", (long long)i.most_ghosts,
                         "all_ghosts", (long long)i.all_ghosts, "imbalance", i.imbalance, "note", i.note, "method",
                         i.method, "type", spmv_type_name(i.type), "bytes", (long long)i.bytes, "exchange_seconds",
                         i.exchange_seconds, "exchange", i.exchange);
}

/* group_apply(matrix, x, y): y = A x, this rank's parts at these addresses. */
static PyObject *group_apply(PyObject *module, PyObject *arguments)
{
    object *m = NULL;
    unsigned long long x, y;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&KK", to_group_matrix, &m, &x, &y) || !context_begin(m->context, true, &state))
        return NULL;
    spmv_status st = spmv_group_apply(m->made, NULL, address(x), NULL, address(y));
    if (st == SPMV_OK)
        st = spmv_synchronize(m->context->ctx);
    return context_end(m->context, state, st) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *group_transpose(PyObject *module, PyObject *arguments)
{
    object *m = NULL;
    spmv_group_matrix *made = NULL;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&", to_group_matrix, &m) || !context_begin(m->context, true, &state))
        return NULL;
    const spmv_status st = spmv_group_matrix_transpose(m->made, &made);
    return new_matrix((object *)m->keep, state, st, made);
}

/* group_update(matrix, address of the values of the rows that this rank gave) */
static PyObject *group_update(PyObject *module, PyObject *arguments)
{
    object *m = NULL;
    unsigned long long values;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&K", to_group_matrix, &m, &values) || !context_begin(m->context, true, &state))
        return NULL;
    return context_end(m->context, state, spmv_group_matrix_update_values(m->made, address(values)))
               ? Py_NewRef(Py_None)
               : NULL;
}

/* ------------------------------------------------------------------ solvers */

/* group_solver(matrix, settings, arrays that it uses) */
static PyObject *group_solver(PyObject *module, PyObject *arguments)
{
    object *m = NULL;
    struct solver_settings s;
    PyObject *arrays = NULL;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&O&O", to_group_matrix, &m, to_settings, &s, &arrays))
        return NULL;
    struct group_solver *made = calloc(1, sizeof *made);
    PyObject *const keep = PyTuple_Pack(2, m, arrays);
    if (made == NULL || keep == NULL || !context_begin(m->context, true, &state)) {
        Py_XDECREF(keep);
        free(made);
        return PyErr_Occurred() != NULL ? NULL : PyErr_NoMemory();
    }
    made->watch.c = m->context;
    s.solver.precond_options = &s.precond;
    s.solver.on_iteration = watch_iteration;
    s.solver.user = &made->watch;
    PyObject *solver = NULL;
    if (context_end(m->context, state, spmv_group_solver_create(m->made, &s.solver, &made->solver)))
        solver = object_new(m->context, KIND_GROUP_SOLVER, made, keep);
    else
        free(made);
    Py_DECREF(keep);
    return solver;
}

/* group_solve(solver, b, x, callback with the residual or None): as solver_solve, for one right-hand side. */
static PyObject *group_solve(PyObject *module, PyObject *arguments)
{
    object *s = NULL;
    unsigned long long b, x;
    PyObject *residual = NULL;
    spmv_solver_result result;
    call_state state;
    (void)module;
    memset(&result, 0, sizeof result);
    if (!PyArg_ParseTuple(arguments, "O&KKO", to_group_solver, &s, &b, &x, &residual) ||
        !context_begin(s->context, false, &state))
        return NULL;
    struct group_solver *const its = s->made;
    its->watch.on_residual = residual != Py_None ? residual : NULL;
    state = PyEval_SaveThread();
    const spmv_status st = spmv_group_solver_solve(its->solver, address(b), address(x), &result, sizeof result);
    PyEval_RestoreThread(state);
    its->watch.on_residual = NULL;
    return solver_end(s->context, NULL, st, 1, &result);
}

/* group_solver_update(solver, address of values as for group_update) */
static PyObject *group_solver_update(PyObject *module, PyObject *arguments)
{
    object *s = NULL;
    unsigned long long values;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&K", to_group_solver, &s, &values) || !context_begin(s->context, true, &state))
        return NULL;
    spmv_group_solver *const solver = ((struct group_solver *)s->made)->solver;
    return context_end(s->context, state, spmv_group_solver_update_values(solver, address(values))) ? Py_NewRef(Py_None)
                                                                                                    : NULL;
}

PyMethodDef group_methods[] = {{"group_threads", group_threads, METH_O, NULL},
                               {"group_lead", group_lead, METH_O, NULL},
                               {"group_mpi", group_mpi, METH_VARARGS, NULL},
                               {"group_launcher", group_launcher, METH_NOARGS, NULL},
                               {"group_break", group_break, METH_VARARGS, NULL},
                               {"group_matrix", group_matrix, METH_VARARGS, NULL},
                               {"group_read", group_read, METH_VARARGS, NULL},
                               {"group_generate", group_generate, METH_VARARGS, NULL},
                               {"group_matrix_info", group_matrix_info, METH_VARARGS, NULL},
                               {"group_apply", group_apply, METH_VARARGS, NULL},
                               {"group_transpose", group_transpose, METH_VARARGS, NULL},
                               {"group_update", group_update, METH_VARARGS, NULL},
                               {"group_solver_update", group_solver_update, METH_VARARGS, NULL},
                               {"group_solver", group_solver, METH_VARARGS, NULL},
                               {"group_solve", group_solve, METH_VARARGS, NULL},
                               {NULL, NULL, 0, NULL}};
