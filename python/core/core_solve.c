/* Solvers and preconditioners, with callbacks into Python.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core.h"

/* Calls function and returns whether the solve must stop: an exception, or a true result. */
static int tell(PyObject *function, const char *format, long long iteration, double residual, const void *x)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *answer = NULL;
    if (PyErr_Occurred() == NULL)
        answer = PyObject_CallFunction(function, format, iteration, residual, (unsigned long long)(uintptr_t)x);
    const int stop = answer == NULL ? 1 : PyObject_IsTrue(answer) != 0;
    Py_XDECREF(answer);
    PyGILState_Release(gil);
    return stop;
}

int watch_iteration(int64_t iteration, double residual, void *user)
{
    const struct watch *w = user;
    if (w->on_residual != NULL && tell(w->on_residual, "Ld", iteration, residual, NULL))
        return 1;
    return context_interrupted(w->c);
}

static int on_iterate(int64_t iteration, double residual, const void *x, void *user)
{
    return tell(((const struct watch *)user)->on_iterate, "LdK", iteration, residual, x);
}

/* ------------------------------------------------------------------ preconditioners */

struct own_precond {
    PyObject *apply;
    context *c; /* outlives the preconditioner */
};

/* Calls apply(r, z, transposed), or of an operator apply(r, z). */
static spmv_status own_call(const struct own_precond *own, const void *r, void *z, PyObject *transposed)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *answer = NULL;
    if (PyErr_Occurred() == NULL)
        answer = PyObject_CallFunction(own->apply, transposed != NULL ? "KKO" : "KK", (unsigned long long)(uintptr_t)r,
                                       (unsigned long long)(uintptr_t)z, transposed);
    const bool failed = answer == NULL;
    Py_XDECREF(answer);
    PyGILState_Release(gil);
    return failed ? SPMV_CANCELLED : SPMV_OK;
}

static spmv_status own_apply(void *self, const void *r, void *z)
{
    return own_call(self, r, z, Py_False);
}

static spmv_status own_apply_transposed(void *self, const void *r, void *z)
{
    return own_call(self, r, z, Py_True);
}

/* The object of the preconditioner keeps the callable alive. */
static void own_destroy(void *self)
{
    free(self);
}

static PyObject *precond_wrap(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    int type;
    long long rows;
    const char *name = NULL;
    PyObject *function = NULL;
    call_state state;
    spmv_preconditioner *made = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&iLsO", to_context, &c, &type, &rows, &name, &function))
        return NULL;
    struct own_precond *own = malloc(sizeof *own);
    if (own == NULL)
        return PyErr_NoMemory();
    *own = (struct own_precond){function, c};
    const spmv_preconditioner_class functions = {.size = sizeof functions,
                                                 .name = name,
                                                 .apply = own_apply,
                                                 .destroy = own_destroy,
                                                 .apply_transposed = own_apply_transposed};
    if (!context_begin(c, false, &state)) {
        free(own);
        return NULL;
    }
    if (!context_end(c, state, spmv_preconditioner_wrap(c->ctx, (spmv_type)type, rows, &functions, own, &made))) {
        free(own);
        return NULL;
    }
    return object_new(c, KIND_PRECOND, made, function);
}

/* ------------------------------------------------------------------ operators */

/* The product of an operator. A failure is an exception, which the end of the call raises. */
static spmv_status operator_apply(void *self, spmv_operation operation, const void *x, void *y)
{
    (void)operation;
    return own_call(self, x, y, NULL);
}

/* operator_wrap(context, type, rows, cols, name, function): a plan whose product calls the function with the addresses of
 * x and y. */
static PyObject *operator_wrap(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    int type;
    long long rows, cols;
    const char *name = NULL;
    PyObject *function = NULL;
    call_state state;
    spmv_plan *made = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&iLLsO", to_context, &c, &type, &rows, &cols, &name, &function))
        return NULL;
    struct own_precond *own = malloc(sizeof *own);
    if (own == NULL)
        return PyErr_NoMemory();
    *own = (struct own_precond){function, c};
    const spmv_operator_class functions = {
        .size = sizeof functions, .name = name, .apply = operator_apply, .destroy = own_destroy};
    if (!context_begin(c, false, &state)) {
        free(own);
        return NULL;
    }
    if (!context_end(c, state,
                     spmv_plan_wrap(c->ctx, (spmv_type)type, rows, cols, SPMV_OPERATION_N, &functions, own, &made))) {
        free(own);
        return NULL;
    }
    object *const plan = (object *)object_new(c, KIND_PLAN, made, function);
    if (plan != NULL) /* always releases Python's lock */
        plan->plan =
            (struct plan_facts){.type = (spmv_type)type, .rows = rows, .cols = cols, .work = INT64_MAX, .vectors = 1};
    return (PyObject *)plan;
}

/* solver_for_plan(plan, settings, precond or None, keep) */
static PyObject *solver_for_plan(PyObject *module, PyObject *arguments)
{
    struct solver_settings s;
    object *p = NULL, *own = NULL;
    PyObject *keep = NULL;
    call_state state;
    spmv_solver *solver = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&O&O&O", to_plan, &p, to_settings, &s, to_precond_or_none, &own, &keep))
        return NULL;
    context *const c = p->context;
    s.solver.own_precond = own != NULL ? own->made : NULL;
    PyObject *made = NULL;
    if (context_begin(c, true, &state) &&
        context_end(c, state, spmv_solver_create_for_plan(p->made, &s.solver, &solver)))
        made = object_new(c, KIND_SOLVER, solver, keep);
    return made;
}

/* ------------------------------------------------------------------ results */

static PyObject *solver_row(const void *results, int v)
{
    const spmv_solver_result *r = (const spmv_solver_result *)results + v;
    return Py_BuildValue(
        "{s:s,s:L,s:L,s:d,s:d,s:d,s:d,s:s,s:s,s:s,s:s,s:s,s:d,s:d,s:d,s:L,s:L,s:d,s:L,s:d,s:d,s:d}", "status",
        spmv_status_name(r->status), "iterations", (long long)r->iterations, "restarts", (long long)r->restarts,
        "norm_b", r->norm_b, "tolerance", r->tolerance, "recurrence_residual", r->recurrence_residual, "true_residual",
        r->true_residual, "solver", r->solver, "rung", r->rung, "why_rung", r->why_rung, "preconditioner", r->precond,
        "why_preconditioner", r->why_precond, "setup_seconds", r->setup_seconds, "solve_seconds", r->solve_seconds,
        "backward_error", r->backward_error, "backward_row", (long long)r->backward_row, "null_vectors",
        (long long)r->null_vectors, "null_part", r->null_part, "recycled", (long long)r->recycled, "given_residual",
        r->given_residual, "start_residual", r->start_residual, "forward_error", r->forward_error);
}

/* Ends a solve. Returns (status, text, results), or NULL with an exception if nothing was solved. */
static PyObject *end_solve(context *c, call_state state, spmv_status st, int vectors,
                           PyObject *(*row)(const void *results, int v), const void *results)
{
    const bool solved =
        st == SPMV_OK || spmv_status_class(st) == 7 || st == SPMV_ERROR_NOT_POSITIVE || st == SPMV_CANCELLED;
    if (!solved) {
        context_end(c, state, st);
        return NULL;
    }
    if (state != NULL)
        PyEval_RestoreThread(state);
    const bool interrupted = PyErr_Occurred() != NULL;
    if (interrupted)
        mark_status(st);
    PyObject *list = !interrupted ? PyList_New(0) : NULL;
    for (int v = 0; v < vectors && list != NULL; v++) {
        PyObject *one = row(results, v);
        if (one == NULL || PyList_Append(list, one) != 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    PyObject *answer = NULL;
    if (list != NULL)
        answer = Py_BuildValue("ssN", spmv_status_name(st), st != SPMV_OK ? spmv_last_error(c->ctx) : "", list);
    context_end_quietly(c, NULL);
    return answer;
}

/* ------------------------------------------------------------------ the solver object */

int to_settings(PyObject *from, void *to)
{
    struct solver_settings *const s = to;
    spmv_solver_options *const o = &s->solver;
    spmv_preconditioner_options *const p = &s->precond;
    int type;
    long long max_iterations, nodes;
    unsigned long long near_null, coordinates, null_space, fields;
    PyObject *schur = NULL;
    spmv_solver_options_init(o, sizeof *o);
    spmv_preconditioner_options_init(p, sizeof *p);
    if (!PyArg_ParseTuple(from, "zzziiiddLiiiii(iiiddddddzi)KiKLiKiiKOz", &o->solver, &o->precond, &o->rung, &type,
                          &o->vectors, &o->inner, &o->rtol, &o->atol, &max_iterations, &o->restart, &o->symmetry_check,
                          &o->recycle, &o->estimate_error, &o->accuracy, &p->block, &p->degree, &p->steps, &p->shift,
                          &p->strength, &p->fill, &p->drop, &p->lowest, &p->highest, &p->smoother, &p->update_values,
                          &near_null, &p->near_nulls, &coordinates, &nodes, &p->dimensions, &null_space,
                          &o->null_vectors, &o->null_block, &fields, &schur, &p->schur_form) ||
        (schur != Py_None && !to_csr(schur, &s->schur)))
        return 0;
    p->near_null = address(near_null);
    p->coordinates = address(coordinates);
    p->nodes = nodes;
    p->fields = address(fields);
    p->schur = schur != Py_None ? &s->schur : NULL;
    o->null_space = address(null_space);
    o->type = (spmv_type)type;
    o->max_iterations = max_iterations;
    return 1;
}

static PyObject *solver_new(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_csr a;
    struct solver_settings s;
    PyObject *arrays = NULL;
    object *own = NULL;
    call_state state;
    spmv_solver *solver = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&O&O&O&O", to_context, &c, to_csr, &a, to_settings, &s, to_precond_or_none, &own,
                          &arrays))
        return NULL;
    s.solver.own_precond = own != NULL ? own->made : NULL;
    s.solver.precond_options = &s.precond;
    PyObject *made = NULL;
    if (context_begin(c, true, &state) && context_end(c, state, spmv_solver_create(c->ctx, &a, &s.solver, &solver)))
        made = object_new(c, KIND_SOLVER, solver, arrays);
    return made;
}

PyObject *solver_end(context *c, call_state state, spmv_status st, int vectors, const spmv_solver_result *results)
{
    return end_solve(c, state, st, vectors, solver_row, results);
}

static PyObject *or_null(PyObject *from)
{
    return from != Py_None ? from : NULL;
}

static PyObject *solver_solve(PyObject *module, PyObject *arguments)
{
    object *s = NULL;
    unsigned long long b, x;
    int vectors, operation;
    PyObject *iterate = NULL, *residual = NULL;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&iKKiOO", to_solver, &s, &operation, &b, &x, &vectors, &iterate, &residual))
        return NULL;
    context *c = s->context;
    spmv_solver_result *results = PyMem_Calloc((size_t)vectors, sizeof *results);
    if (results == NULL)
        return PyErr_NoMemory();
    PyObject *answer = NULL;
    if (context_begin(c, false, &state)) {
        struct watch watch = {c, or_null(iterate), or_null(residual)};
        state = PyEval_SaveThread();
        spmv_status st =
            spmv_solver_set_callbacks(s->made, watch_iteration, watch.on_iterate != NULL ? on_iterate : NULL, &watch);
        if (st == SPMV_OK) {
            st = spmv_solver_solve_many(s->made, (spmv_operation)operation, vectors, address(b), address(x), results,
                                        sizeof *results);
            spmv_solver_set_callbacks(s->made, NULL, NULL, NULL);
        }
        PyEval_RestoreThread(state);
        answer = end_solve(c, NULL, st, vectors, solver_row, results);
    }
    PyMem_Free(results);
    return answer;
}

/* solver_determinant(solver): (log |det A|, its phase, positive, negative, zero) */
static PyObject *solver_determinant(PyObject *module, PyObject *arguments)
{
    object *s = NULL;
    call_state state;
    spmv_determinant d;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&", to_solver, &s) || !context_begin(s->context, true, &state) ||
        !context_end(s->context, state, spmv_solver_determinant(s->made, &d, sizeof d)))
        return NULL;
    return Py_BuildValue("(d(dd)LLL)", d.log_abs, d.phase[0], d.phase[1], (long long)d.positive, (long long)d.negative,
                         (long long)d.zero);
}

static PyObject *solver_update(PyObject *module, PyObject *arguments)
{
    object *s = NULL;
    unsigned long long values;
    PyObject *arrays = NULL;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&KO", to_solver, &s, &values, &arrays))
        return NULL;
    PyObject *const both = PyTuple_Pack(2, s->keep, arrays); /* after a failure, parts may use either */
    if (both == NULL || !context_begin(s->context, true, &state)) {
        Py_XDECREF(both);
        return NULL;
    }
    const bool well = context_end(s->context, state, spmv_solver_update_values(s->made, address(values)));
    object_keep(s, well ? Py_NewRef(arrays) : Py_NewRef(both));
    Py_DECREF(both);
    return well ? Py_NewRef(Py_None) : NULL;
}

/* ------------------------------------------------------------------ least squares */

static int watch_fit(int64_t iteration, double residual, double gradient, void *user)
{
    const struct watch *w = user;
    if (w->on_residual != NULL) {
        const PyGILState_STATE gil = PyGILState_Ensure();
        PyObject *answer = NULL;
        if (PyErr_Occurred() == NULL)
            answer = PyObject_CallFunction(w->on_residual, "Ldd", (long long)iteration, residual, gradient);
        const int stop = answer == NULL ? 1 : PyObject_IsTrue(answer) != 0;
        Py_XDECREF(answer);
        PyGILState_Release(gil);
        if (stop)
            return 1;
    }
    return context_interrupted(w->c);
}

static PyObject *fit_row(const void *results, int v)
{
    const spmv_least_squares_result *r = (const spmv_least_squares_result *)results + v;
    return Py_BuildValue("{s:s,s:i,s:s,s:L,s:L,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:s,s:O,s:s,s:d,s:d}", "status",
                         spmv_status_name(r->status), "stop", r->stop, "why_stop", r->why_stop, "iterations",
                         (long long)r->iterations, "restarts", (long long)r->restarts, "norm_b", r->norm_b,
                         "true_residual", r->true_residual, "damped_residual", r->damped_residual, "true_gradient",
                         r->true_gradient, "norm_x", r->norm_x, "recurrence_residual", r->recurrence_residual,
                         "recurrence_gradient", r->recurrence_gradient, "norm_a", r->norm_a, "condition", r->condition,
                         "solver", r->solver, "scaled", r->scaled ? Py_True : Py_False, "why_scaling", r->why_scaling,
                         "setup_seconds", r->setup_seconds, "solve_seconds", r->solve_seconds);
}

/* Makes a solver, solves and destroys it. */
static PyObject *least_squares(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_csr a;
    spmv_least_squares_options o;
    spmv_least_squares *solver = NULL;
    int type;
    long long max_iterations;
    unsigned long long b, x;
    PyObject *residual = NULL;
    call_state state;
    (void)module;
    spmv_least_squares_options_init(&o, sizeof o);
    if (!PyArg_ParseTuple(arguments, "O&O&ziiddddLiiKKO", to_context, &c, to_csr, &a, &o.solver, &type, &o.vectors,
                          &o.damp, &o.atol, &o.btol, &o.conlim, &max_iterations, &o.scaling, &o.zero_start, &b, &x,
                          &residual))
        return NULL;
    struct watch watch = {c, NULL, or_null(residual)};
    o.type = (spmv_type)type;
    o.max_iterations = max_iterations;
    o.on_iteration = watch_fit;
    o.user = &watch;
    spmv_least_squares_result *results = PyMem_Calloc((size_t)o.vectors, sizeof *results);
    if (results == NULL)
        return PyErr_NoMemory();
    PyObject *answer = NULL;
    if (context_begin(c, true, &state)) {
        spmv_status st = spmv_least_squares_create(c->ctx, &a, &o, &solver);
        if (st == SPMV_OK)
            st = spmv_least_squares_solve(solver, address(b), address(x), results, sizeof *results);
        spmv_least_squares_destroy(solver); /* keeps the message */
        answer = end_solve(c, state, st, o.vectors, fit_row, results);
    }
    PyMem_Free(results);
    return answer;
}

/* ------------------------------------------------------------------ eigenvalues and singular values */

static int watch_pairs(int64_t iteration, int pairs, const double *values, const double *residuals, void *user)
{
    const struct watch *w = user;
    (void)values;
    if (w->on_residual != NULL) {
        double worst = 0;
        for (int j = 0; j < pairs; j++)
            worst = residuals[j] > worst ? residuals[j] : worst;
        if (tell(w->on_residual, "Ld", iteration, worst, NULL))
            return 1;
    }
    return context_interrupted(w->c);
}

static PyObject *pair_row(const void *results, int v)
{
    const spmv_eigen_result *r = (const spmv_eigen_result *)results + v;
    return Py_BuildValue("{s:s,s:d,s:d,s:d,s:d,s:d,s:L,s:L,s:i,s:s,s:s,s:s,s:s,s:s,s:d,s:d}", "status",
                         spmv_status_name(r->status), "value", r->value, "residual", r->residual, "tolerance",
                         r->tolerance, "error_bound", r->error_bound, "separated_bound", r->separated_bound,
                         "iterations", (long long)r->iterations, "products", (long long)r->products, "block", r->block,
                         "solver", r->solver, "precond", r->precond, "why_solver", r->why_solver, "why_precond",
                         r->why_precond, "why_stop", r->why_stop, "setup_seconds", r->setup_seconds, "solve_seconds",
                         r->solve_seconds);
}

/* singular: spmv_svds, with u and vectors; else spmv_eigs, with mass or None. */
static PyObject *eigs(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_csr a, mass;
    spmv_eigen_options o;
    int type, singular;
    long long max_iterations;
    unsigned long long start, u, vectors;
    PyObject *of_mass = NULL, *residual = NULL;
    call_state state;
    (void)module;
    spmv_eigen_options_init(&o, sizeof o);
    if (!PyArg_ParseTuple(arguments, "O&O&OzziiiddLiKKKiO", to_context, &c, to_csr, &a, &of_mass, &o.solver, &o.precond,
                          &type, &o.pairs, &o.which, &o.shift, &o.rtol, &max_iterations, &o.starts, &start, &vectors,
                          &u, &singular, &residual))
        return NULL;
    if (of_mass != Py_None && !to_csr(of_mass, &mass))
        return NULL;
    struct watch watch = {c, NULL, or_null(residual)};
    o.type = (spmv_type)type;
    o.mass = of_mass != Py_None ? &mass : NULL;
    o.max_iterations = max_iterations;
    o.start = address(start);
    o.on_iteration = watch_pairs;
    o.user = &watch;
    spmv_eigen_result *results = PyMem_Calloc((size_t)o.pairs, sizeof *results);
    if (results == NULL)
        return PyErr_NoMemory();
    PyObject *answer = NULL;
    if (context_begin(c, true, &state)) {
        const spmv_status st =
            singular ? spmv_svds(c->ctx, &a, &o, NULL, address(u), address(vectors), results, sizeof *results)
                     : spmv_eigs(c->ctx, &a, &o, NULL, address(vectors), results, sizeof *results);
        /* a matrix that is not positive definite is no result here */
        if (st == SPMV_ERROR_NOT_POSITIVE)
            context_end(c, state, st);
        else
            answer = end_solve(c, state, st, o.pairs, pair_row, results);
    }
    PyMem_Free(results);
    return answer;
}

PyMethodDef solve_methods[] = {{"precond_wrap", precond_wrap, METH_VARARGS, NULL},
                               {"operator_wrap", operator_wrap, METH_VARARGS, NULL},
                               {"solver", solver_new, METH_VARARGS, NULL},
                               {"solver_for_plan", solver_for_plan, METH_VARARGS, NULL},
                               {"solver_solve", solver_solve, METH_VARARGS, NULL},
                               {"solver_determinant", solver_determinant, METH_VARARGS, NULL},
                               {"solver_update", solver_update, METH_VARARGS, NULL},
                               {"least_squares", least_squares, METH_VARARGS, NULL},
                               {"eigs", eigs, METH_VARARGS, NULL},
                               {NULL, NULL, 0, NULL}};
