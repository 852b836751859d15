/* Where spmv solve --backend auto computes (app/solve/solve_place.c): the choice is a function of the
 * facts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "app/solve/solve_place.h"
#include "tests/support/support.h"

/* A symmetric system in f64 about whose diagonal nothing is known. */
static struct solve_facts system_of(int64_t rows, int64_t entries, int threads)
{
    return (struct solve_facts){.rows = rows,
                                .entries = entries,
                                .matrix_bytes = 8,
                                .vector_bytes = 8,
                                .columns = 1,
                                .symmetric = true,
                                .heaviest = INFINITY,
                                .solver = "auto",
                                .precond = "auto",
                                .threads = threads};
}

/* The sentence names what the numbers say. */
static struct solve_place choose(const struct solve_facts *facts)
{
    const struct solve_place place = solve_place(facts), again = solve_place(facts);
    assert_string_equal(place.why, again.why);
    if (facts->cpu_only != NULL)
        return place;
    assert_true(place.gpu == (place.cpu_ms > place.gpu_ms));
    assert_non_null(strstr(place.why, place.gpu ? ", more than a GPU with its start: about "
                                                : ", less than a GPU with its start: about "));
    return place;
}

/* Systems whose solves were measured on an H200 and its 16 cores, 28 November 2026; milliseconds of
 * set-up and solve, on the GPU without the start of CUDA, which takes 200 to 300. */
static void measured_systems(void **state)
{
    enum { GENERAL = 1, INDEFINITE = 2 };
    static const struct {
        int64_t rows, entries;
        int kind;
        double cpu_ms, gpu_ms;
    } systems[] = {
        {487204, 3400000, 0, 224, 38},          /* Laplace, triangles */
        {356409, 4100000, 0, 227, 31},          /* quadratic triangles */
        {39232, 614000, 0, 26, 12},             /* Laplace, tetrahedra */
        {179400, 2500000, 0, 241, 35},          /* elasticity, triangles */
        {39744, 1800000, 0, 223, 22},           /* elasticity, tetrahedra */
        {160000, 1120000, 0, 109, 37},          /* Neumann */
        {88804, 620000, GENERAL, 900, 5997},    /* convection */
        {61504, 430000, INDEFINITE, 2286, 121}, /* Helmholtz */
    };
    for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++) {
        struct solve_facts facts = system_of(systems[i].rows, systems[i].entries, 16);
        facts.symmetric = systems[i].kind != GENERAL;
        facts.indefinite = systems[i].kind == INDEFINITE;
        const double cpu = systems[i].cpu_ms, gpu = 250 + systems[i].gpu_ms;
        const double taken = choose(&facts).gpu ? gpu : cpu;
        assert_true(taken <= 1.3 * fmin(cpu, gpu));
    }
    (void)state;
}

static void small_systems_stay(void **state)
{
    static const char *const preconds[] = {"auto", "none", "jacobi", "amg", "ilut"};
    for (int64_t rows = 0; rows <= 1000; rows += 250)
        for (int threads = 1; threads <= 64; threads *= 4)
            for (int kind = 0; kind < 4; kind++)
                for (size_t p = 0; p < sizeof preconds / sizeof preconds[0]; p++) {
                    struct solve_facts facts = system_of(rows, 10 * rows, threads);
                    facts.symmetric = kind % 2 == 0;
                    facts.indefinite = kind >= 2;
                    facts.precond = preconds[p];
                    assert_false(choose(&facts).gpu);
                }
    (void)state;
}

static void large_systems_leave(void **state)
{
    static const char *const preconds[] = {"auto", "none", "jacobi", "amg", "all"};
    for (int kind = 0; kind < 4; kind++)
        for (size_t p = 0; p < sizeof preconds / sizeof preconds[0]; p++) {
            struct solve_facts facts = system_of(10000000, 70000000, 64);
            facts.symmetric = kind % 2 == 0;
            facts.indefinite = kind >= 2;
            facts.precond = preconds[p];
            assert_true(choose(&facts).gpu);
        }
    (void)state;
}

/* From some size on, and below some number of threads, the GPU is taken. */
static void one_border(void **state)
{
    for (int threads = 1; threads <= 128; threads++) {
        int changes = 0;
        bool gpu = false;
        for (int64_t rows = 1000; rows < 100000000; rows += rows / 4) {
            const struct solve_facts facts = system_of(rows, 7 * rows, threads);
            const bool now = choose(&facts).gpu;
            changes += now != gpu;
            gpu = now;
        }
        assert_true(gpu);
        /* loops become parallel at a size, where a step gets cheaper */
        assert_true(changes == 1 || changes == 3);
    }
    double before = INFINITY;
    for (int threads = 1; threads <= 128; threads++) {
        const struct solve_facts facts = system_of(300000, 2100000, threads);
        const double now = choose(&facts).cpu_ms;
        assert_true(now <= before);
        before = now;
    }
    (void)state;
}

static void facts_count(void **state)
{
    const struct solve_facts plain = system_of(1000000, 7000000, 16);
    const struct solve_place base = choose(&plain);
    assert_true(base.gpu);

    struct solve_facts facts = plain;
    facts.heaviest = 0.5; /* 17.6 steps */
    assert_false(choose(&facts).gpu);
    assert_true(choose(&facts).steps < 20);

    facts = plain;
    facts.most_steps = 30;
    assert_false(choose(&facts).gpu);

    facts = plain;
    facts.matrix_bytes = facts.vector_bytes = 4;
    assert_true(choose(&facts).cpu_ms < base.cpu_ms);
    assert_true(choose(&facts).gpu_ms < base.gpu_ms);

    facts = plain;
    facts.columns = 8;
    assert_true(choose(&facts).cpu_ms > base.cpu_ms);

    facts = plain;
    facts.cpu_only = "--rung NAME";
    const struct solve_place named = choose(&facts);
    assert_false(named.gpu);
    assert_string_equal(named.why, "--rung NAME is for the CPU only");
    (void)state;
}

static void sentences(void **state)
{
    struct solve_facts facts = system_of(100, 500, 1);
    assert_string_equal(choose(&facts).why, "less than 1 ms of work, less than a GPU with its start: about 260 ms");
    facts = system_of(40000, 600000, 16);
    assert_string_equal(choose(&facts).why, "about 110 ms of work, less than a GPU with its start: about 270 ms");
    facts = system_of(4000000, 28000000, 16);
    assert_string_equal(choose(&facts).why, "about 2.4 s of work, more than a GPU with its start: about 400 ms");
    (void)state;
}

SUPPORT_MAIN(cmocka_unit_test(measured_systems), cmocka_unit_test(small_systems_stay),
             cmocka_unit_test(large_systems_leave), cmocka_unit_test(one_border), cmocka_unit_test(facts_count),
             cmocka_unit_test(sentences))
