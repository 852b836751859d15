/* spmv doctor: features of this build and this machine, memory bandwidth, and a self-test of
 * products.
 *
 * The self-test multiplies a small matrix with every method of every usable backend, in both types,
 * and checks each result against another backend.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/solvers.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/commands.h"
#include "app/name_lists.h"
#include "app/options.h"
#include "app/output.h"
#include "app/product.h"
#include "bench/devices/bandwidth.h"
#include "bench/devices/device.h"
#include "bench/devices/machine.h"
#include "core/reals.h"

enum { REF, OMP, CUDA, BACKENDS };
static const spmv_backend backends[BACKENDS] = {
    [REF] = SPMV_BACKEND_REF, [OMP] = SPMV_BACKEND_OMP, [CUDA] = SPMV_BACKEND_CUDA};

static const char test_matrix[] = "poisson2d:64";
enum { BANDWIDTH_REPEATS = 7, LABEL = 12, WIDTH = 100 };

struct doctor {
    const struct options *o;
    bool text;                           /* the report goes to standard output */
    spmv_context *contexts[BACKENDS];    /* NULL: not usable */
    char reasons[BACKENDS][256];         /* why it is not usable */
    struct bandwidth memory, gpu_memory; /* gpu_memory: all zeros without a GPU */
    char gpu_name[128];
    int tests, failed;
    json_t *json_backends, *json_modules, *json_tests;
};

static void open_backends(struct doctor *d)
{
    for (int b = 0; b < BACKENDS; b++) {
        spmv_context_options options;
        spmv_context_options_init(&options, sizeof options);
        options.first_index = 1;
        options.backend = backends[b];
        options.threads = d->o->threads;
        options.device = d->o->device;
        if (!spmv_backend_built(backends[b]))
            snprintf(d->reasons[b], sizeof d->reasons[b], "not part of this build");
        else if (spmv_context_create(&options, &d->contexts[b]) != SPMV_OK)
            snprintf(d->reasons[b], sizeof d->reasons[b], "%s", spmv_last_error(NULL));
    }
}

static const char *describe(const struct doctor *d, int b)
{
    return d->contexts[b] != NULL ? spmv_context_describe(d->contexts[b]) : d->reasons[b];
}

static json_t *method_names(spmv_backend backend)
{
    json_t *names = json_array();
    for (int m = 0; spmv_method_name(backend, m) != NULL; m++)
        json_array_append_new(names, json_string(spmv_method_name(backend, m)));
    return names;
}

static json_t *solver_names(spmv_backend backend)
{
    json_t *names = json_array();
    for (int m = 0; spmv_cg_rung_name(backend, m) != NULL; m++)
        json_array_append_new(names, json_string(spmv_cg_rung_name(backend, m)));
    return names;
}

/* Prints "head   label: a, b, c", with the label at column indent. */
static void print_list(const char *head, int indent, const char *label, const struct names *names)
{
    char list[1024], text[1100];
    names_join(names, list, sizeof list);
    snprintf(text, sizeof text, "%s: %s", label, list);
    printf("%-*s", indent, head);
    print_wrapped(text, indent, WIDTH);
}

static void print_backend(const struct doctor *d, int b)
{
    struct names methods = {.count = 0}, rungs = {.count = 0};
    char text[1100];
    snprintf(text, sizeof text, "%s: %s", spmv_backend_name(backends[b]), describe(d, b));
    printf("%-*s", LABEL, b == 0 ? "backends" : "");
    print_wrapped(text, LABEL, WIDTH);
    if (d->contexts[b] == NULL)
        return;
    names_of_methods(&methods, backends[b]);
    print_list("", LABEL + 2, "methods", &methods);
    names_of_rungs(&rungs, backends[b]);
    print_list("", LABEL + 2, "rungs of the solver", &rungs);
}

static void tell_backends(struct doctor *d)
{
    for (int b = 0; b < BACKENDS; b++) {
        if (d->text)
            print_backend(d, b);
        json_array_append_new(d->json_backends,
                              json_pack("{s:s, s:b, s:b, s:s, s:o, s:o}", "name", spmv_backend_name(backends[b]),
                                        "built", spmv_backend_built(backends[b]), "usable", d->contexts[b] != NULL,
                                        "description", describe(d, b), "methods", method_names(backends[b]), "solvers",
                                        solver_names(backends[b])));
    }
    struct names names = {.count = 0};
    names_of_preconditioners(&names);
    if (d->text)
        print_list("solver", LABEL, "preconditioners", &names);
}

/* The modules: what needs each, and where it is or why it cannot be used. */
static void tell_modules(struct doctor *d)
{
    const char *file, *purpose;
    char where[1024], text[1200];
    int usable = 0;
    for (int i = 0; (file = spmv_module_file(i, &purpose, where, sizeof where, &usable)) != NULL; i++) {
        snprintf(text, sizeof text, "%s: %s%s%s%s", purpose, where, usable ? "" : " (", usable ? "" : file,
                 usable ? "" : ")");
        if (d->text) {
            printf("%-*s", LABEL, i == 0 ? "modules" : "");
            print_wrapped(text, LABEL, WIDTH);
        }
        json_array_append_new(d->json_modules, json_pack("{s:s, s:s, s:b, s:o}", "file", file, "purpose", purpose,
                                                         "usable", usable, "description", json_text(where)));
    }
}

static spmv_status measure_memory(struct doctor *d)
{
    const spmv_context *omp = d->contexts[OMP];
    const int failed = bandwidth_measure(omp != NULL ? spmv_context_threads(omp) : 1, bandwidth_array_bytes(),
                                         BANDWIDTH_REPEATS, &d->memory);
    if (failed == -1)
        return report(SPMV_ERROR_MEMORY, "no memory to measure the bandwidth");
    if (failed != 0)
        return report(SPMV_ERROR_CHECK, "the bandwidth measurement computed wrong sums");
    if (d->text)
        printf("%-*scopy %.3g GB/s, read %.3g GB/s, triad %.3g GB/s (%d thread%s, arrays of %s)\n", LABEL, "memory",
               d->memory.copy_gbs, d->memory.read_gbs, d->memory.triad_gbs, d->memory.threads,
               d->memory.threads == 1 ? "" : "s", bytes_text((double)d->memory.array_bytes));
    return SPMV_OK;
}

/* Measures the memory of the GPU, if there is one. */
static spmv_status measure_gpu_memory(struct doctor *d)
{
    struct device device;
    char why[WHY_SIZE] = "";
    if (d->contexts[CUDA] == NULL)
        return SPMV_OK;
    if (device_open_cuda(d->o->device, &device, why) != 0)
        return report(SPMV_ERROR_DEVICE, why);
    const int failed = device.functions->bandwidth(&device, &d->gpu_memory, why);
    snprintf(d->gpu_name, sizeof d->gpu_name, "%s", device.name);
    if (failed == 0 && d->text)
        printf("%-*scopy %.4g GB/s, read %.4g GB/s (%s, %s, arrays of %s)\n", LABEL, "gpu memory",
               d->gpu_memory.copy_gbs, d->gpu_memory.read_gbs, device.name, device.software,
               bytes_text((double)d->gpu_memory.array_bytes));
    device_close(&device);
    return failed == 0 ? SPMV_OK : report(SPMV_ERROR_DEVICE, why);
}

/* The operands of the self-test in one type. */
struct operands {
    spmv_type type;
    spmv_matrix *matrix;
    spmv_csr a;
    void *x, *y0;
};

/* The values differ, so that a wrong index is detected. */
static spmv_status make_operands(spmv_context *ctx, spmv_type type, struct operands *t)
{
    *t = (struct operands){.type = type};
    spmv_status st = spmv_matrix_generate(ctx, test_matrix, type, &t->matrix);
    if (st != SPMV_OK)
        return report(st, spmv_last_error(ctx));
    spmv_matrix_view(t->matrix, &t->a);
    st = allocate("the self-test's x", t->a.cols, spmv_type_size(type), &t->x);
    if (st == SPMV_OK)
        st = allocate("the self-test's y0", t->a.rows, spmv_type_size(type), &t->y0);
    for (int64_t i = 0; st == SPMV_OK && i < t->a.rows; i++) {
        real_set(type, t->x, i, 1 / (double)(i % 101 + 1));
        real_set(type, t->y0, i, (double)(i % 17) / 8);
    }
    return st;
}

static void free_operands(struct operands *t)
{
    spmv_matrix_destroy(t->matrix);
    free(t->x);
    free(t->y0);
}

static void tell_test(struct doctor *d, const struct product *p, const char *backend, spmv_status st)
{
    const bool multiplied = p->reference != NULL;
    d->tests++;
    d->failed += st != SPMV_OK;
    if (d->text) {
        printf("  %s  %-5s %-12s %s  ", st == SPMV_OK ? "PASS" : "FAIL", backend, p->method, spmv_type_name(p->type));
        if (multiplied)
            printf("worst error %.3g of the bound, against %s\n", p->check.worst_ratio, p->reference);
        else
            printf("%s\n", spmv_status_text(st));
    }
    json_t *test = json_pack("{s:s, s:s, s:s, s:b}", "backend", backend, "method", p->method, "type",
                             spmv_type_name(p->type), "passed", st == SPMV_OK);
    if (multiplied) {
        json_put(test, "reference", json_string(p->reference));
        json_put(test, "worst_error_over_bound", json_number(p->check.worst_ratio));
    }
    json_array_append_new(d->json_tests, test);
}

static void test_method(struct doctor *d, int b, const char *method, const struct operands *t)
{
    struct product p = {
        .a = &t->a, .method = method, .type = t->type, .alpha = 1.5, .beta = -0.5, .x = t->x, .y0 = t->y0};
    spmv_status st = product_plan(d->contexts[b], &p);
    if (st == SPMV_OK)
        st = product_run(&p);
    if (st == SPMV_OK)
        st = product_check(d->o, &p);
    tell_test(d, &p, spmv_backend_name(backends[b]), st);
    product_free(&p);
}

/* Tests every method of every usable backend in one type. */
static spmv_status test_type(struct doctor *d, spmv_type type)
{
    struct operands t;
    const spmv_status st = make_operands(d->contexts[REF], type, &t);
    for (int b = 0; st == SPMV_OK && b < BACKENDS; b++)
        for (int m = 0; d->contexts[b] != NULL && spmv_method_name(backends[b], m) != NULL; m++)
            test_method(d, b, spmv_method_name(backends[b], m), &t);
    free_operands(&t);
    return st;
}

static spmv_status test_products(struct doctor *d)
{
    if (d->text)
        printf("self-test: 1.5 A x - 0.5 y0 with A = %s\n", test_matrix);
    spmv_status st = test_type(d, SPMV_F64);
    if (st == SPMV_OK)
        st = test_type(d, SPMV_F32);
    if (st != SPMV_OK)
        return st;
    if (d->text && d->failed == 0)
        printf("all %d passed\n", d->tests);
    else if (d->text)
        printf("%d of %d FAILED\n", d->failed, d->tests);
    return SPMV_OK;
}

static spmv_status write_doctor_json(struct doctor *d)
{
    json_t *root = json_begin(d->o);
    json_t *machine = json_machine(d->memory.threads);
    json_t *cpu = json_object_get(machine, "cpu");
    json_put(cpu, "read_gbs", json_number(d->memory.read_gbs));
    json_put(cpu, "triad_gbs", json_number(d->memory.triad_gbs));
    if (d->gpu_name[0] != '\0')
        json_put(machine, "device",
                 json_pack("{s:s, s:f, s:f}", "name", d->gpu_name, "copy_gbs", d->gpu_memory.copy_gbs, "read_gbs",
                           d->gpu_memory.read_gbs));
    json_put(root, "machine", machine);
    json_put(root, "doctor",
             json_pack("{s:O, s:O, s:{s:I, s:f}, s:O, s:b}", "backends", d->json_backends, "modules", d->json_modules,
                       "memory", "array_bytes", (json_int_t)d->memory.array_bytes, "copy_gbs", d->memory.copy_gbs,
                       "self_test", d->json_tests, "passed", d->failed == 0));
    return json_finish(d->o, root);
}

static spmv_status examine(struct doctor *d)
{
    if (d->text) {
        printf("%-*s%s%s%s\n", LABEL, "spmv", spmv_version(), SPMV_COMMIT[0] != '\0' ? ", commit " : "", SPMV_COMMIT);
        printf("%-*s", LABEL, "compiled");
        print_wrapped(SPMV_FLAGS, LABEL, WIDTH);
        printf("%-*s%s\n", LABEL, "cpu", cpu_name());
    }
    open_backends(d);
    if (d->contexts[REF] == NULL)
        return report(SPMV_ERROR_NO_DEVICE, d->reasons[REF]);
    tell_backends(d);
    tell_modules(d);
    spmv_status st = measure_memory(d);
    if (st == SPMV_OK)
        st = measure_gpu_memory(d);
    if (st == SPMV_OK)
        st = test_products(d);
    return st;
}

spmv_status run_doctor(const struct options *o, const char *const *arguments, int count)
{
    struct doctor d = {.o = o, .text = !(o->json && o->json_path == NULL)};
    (void)arguments;
    (void)count;
    d.json_backends = json_array();
    d.json_modules = json_array();
    d.json_tests = json_array();
    spmv_status st = check_writable(o);
    if (st == SPMV_OK)
        st = examine(&d);
    if (st == SPMV_OK)
        st = finish_stdout();
    if (st == SPMV_OK && o->json)
        st = write_doctor_json(&d);
    if (st == SPMV_OK && d.failed > 0) {
        complain("the self-test FAILED: %d of %d products are wrong", d.failed, d.tests);
        st = SPMV_ERROR_CHECK;
    }
    json_decref(d.json_backends);
    json_decref(d.json_modules);
    json_decref(d.json_tests);
    for (int b = 0; b < BACKENDS; b++)
        spmv_context_destroy(d.contexts[b]);
    return st;
}
