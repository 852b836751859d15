/* spmv exercise: the exercises of docs/lessons. Lists them, prints the form of one, or compiles a
 * student's file and tests it.
 *
 * The compiler is that of CC, else cc; of a .cu that of NVCC, else nvcc. The program starts it without
 * a shell. Its messages go to standard error as they are, so they name the student's file.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* mkdtemp */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/exercise/exercise.h"
#include "app/input.h"
#include "app/name_lists.h"
#include "app/output.h"
#include "app/stops.h"

static const struct exercise *const exercises[] = {&exercise_scan, &exercise_parallel_scan, &exercise_segmented_scan,
                                                   &exercise_spmv, &exercise_cg};
enum { EXERCISES = sizeof exercises / sizeof exercises[0] };

enum { USUAL_SECONDS = 10, WORDS_MOST = 32, PATH_MOST = 512 };

extern char **environ;

const char *exercise_name(int index)
{
    return index >= 0 && index < EXERCISES ? exercises[index]->name : NULL;
}

static spmv_status find_exercise(const char *name, const struct exercise **found)
{
    struct names names = {.count = 0};
    for (int i = 0; i < EXERCISES; i++) {
        if (strcmp(exercises[i]->name, name) == 0) {
            *found = exercises[i];
            return SPMV_OK;
        }
        names_add(&names, exercises[i]->name);
    }
    return names_refuse(&names, "exercise", name, strlen(name));
}

static spmv_status list_exercises(const struct options *o)
{
    json_t *root = json_begin(o), *list = json_array();
    const bool text = !o->json || o->json_path != NULL;
    for (int i = 0; i < EXERCISES; i++) {
        const struct exercise *const e = exercises[i];
        if (text)
            printf("%-16s%s (docs/lessons/%s)\n", e->name, e->about, e->lesson);
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s}", "name", e->name, "lesson", e->lesson, "about", e->about));
    }
    if (text)
        printf("\nThe lessons are in docs/lessons of the source, or below /usr/share/doc/spmv.\n"
               "Begin with:  spmv exercise %s > %s.c\nTest it:     spmv exercise %s %s.c\n",
               exercises[0]->name, exercises[0]->name, exercises[0]->name, exercises[0]->name);
    json_put(root, "exercises", list);
    const spmv_status st = text ? finish_stdout() : SPMV_OK;
    if (st == SPMV_OK && o->json)
        return json_finish(o, root);
    json_decref(root);
    return st;
}

/* ---------------------------------------------------------------- compiling */

static bool ends_in(const char *path, const char *ending)
{
    const size_t length = strlen(path), size = strlen(ending);
    return length > size && strcmp(path + length - size, ending) == 0;
}

static spmv_status check_file(const struct exercise *e, const char *path)
{
    if (!ends_in(path, ".c") && !ends_in(path, ".cu")) {
        complain("%s: the name must end in .c%s", path, e->on_device ? ", or in .cu for CUDA code" : "");
        return SPMV_ERROR_ARGUMENT;
    }
    if (ends_in(path, ".cu") && !e->on_device) {
        complain("%s: the exercise %s calls functions of the host, so it needs a .c file; CUDA code is for spmv", path,
                 e->name);
        return SPMV_ERROR_UNSUPPORTED;
    }
    if (access(path, R_OK) == 0)
        return SPMV_OK;
    complain("%s: %s; spmv exercise %s > %s prints the form to start from", path, strerror(errno), e->name, path);
    return SPMV_ERROR_OPEN;
}

/* Runs the compiler: the words of the variable or the usual name, then the options. Complains. */
static spmv_status compile(const char *path, const char *object)
{
    const bool device = ends_in(path, ".cu");
    const char *const variable = device ? "NVCC" : "CC", *const set = getenv(variable);
    const char *const usual = device ? "nvcc" : "cc";
    char compiler[PATH_MOST], safe[PATH_MOST + 2];
    char *words[WORDS_MOST], line[2 * PATH_MOST];
    int count = 0, how = 0;
    pid_t pid;
    snprintf(compiler, sizeof compiler, "%s", set != NULL && set[strspn(set, " ")] != '\0' ? set : usual);
    snprintf(safe, sizeof safe, "%s%s", path[0] == '-' ? "./" : "", path); /* it is no option */
    for (char *rest = compiler, *word; count < WORDS_MOST / 2 && (word = strtok_r(rest, " ", &rest)) != NULL;)
        words[count++] = word;
    /* -Bsymbolic: the student's functions are not replaced by those of the same name in libraries */
    const char *const of_c[] = {
        "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-fPIC", "-shared", "-Wl,-Bsymbolic", "-o",
        object,       safe,  "-lm",   NULL};
    const char *const of_cuda[] = {"-O1", "-Xcompiler", "-fPIC", "-shared", "-o", object, safe, NULL};
    const char *const *const more = device ? of_cuda : of_c;
    for (int i = 0; more[i] != NULL; i++)
        words[count++] = (char *)(uintptr_t)more[i];
    words[count] = NULL;
    for (int i = 0, n = 0; i < count && n < (int)sizeof line; i++)
        n += snprintf(line + n, sizeof line - (size_t)n, "%s%s", i > 0 ? " " : "", words[i]);
    remark(LEVEL_VERBOSE, "%s", line);
    const int failed = posix_spawnp(&pid, words[0], NULL, NULL, words, environ);
    if (failed != 0) {
        complain("%s cannot be started: %s; install a compiler (Debian, Ubuntu: %s), or name one in the variable %s",
                 words[0], strerror(failed), device ? "nvidia-cuda-toolkit" : "gcc", variable);
        return SPMV_ERROR_UNSUPPORTED;
    }
    while (waitpid(pid, &how, 0) == -1 && errno == EINTR)
        ;
    if (stops_asked())
        return SPMV_CANCELLED;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0 && access(object, R_OK) == 0)
        return SPMV_OK;
    complain("%s does not compile: see the messages of %s above", path, words[0]);
    return SPMV_ERROR_FORMAT;
}

/* Compiles the file into a folder of its own, tests it there, and removes the folder. */
static spmv_status compile_and_run(const struct options *o, const struct exercise *e, const char *path,
                                   struct verdict *verdict)
{
    const char *const temporary = getenv("TMPDIR");
    char folder[PATH_MOST], object[PATH_MOST + 16];
    snprintf(folder, sizeof folder, "%s/spmv-exercise-XXXXXX",
             temporary != NULL && temporary[0] != '\0' ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL) {
        complain("cannot create %s: %s", folder, strerror(errno));
        return SPMV_ERROR_WRITE;
    }
    snprintf(object, sizeof object, "%s/exercise.so", folder);
    stops_defer(); /* so that the folder is removed after a signal too */
    spmv_status st = compile(path, object);
    if (st == SPMV_OK)
        st =
            exercise_run(e, object, ends_in(path, ".cu"), o->max_seconds > 0 ? o->max_seconds : USUAL_SECONDS, verdict);
    unlink(object);
    rmdir(folder);
    if (st == SPMV_CANCELLED)
        complain("stopped by %s", stops_reason());
    return st;
}

/* ---------------------------------------------------------------- the verdict */

static void print_verdict(const struct exercise *e, const char *path, const struct verdict *v)
{
    if (v->outcome != OUTCOME_PASSED) {
        /* the table ends with a new line */
        complain("%s: %.*s", path, (int)(strlen(v->text) - (v->text[strlen(v->text) - 1] == '\n')), v->text);
        return;
    }
    printf("%s: passed, %lld cases\n%s\n", e->name, (long long)v->cases, v->text);
    if (v->values > 0)
        printf("%lld values: work %lld, depth %lld\n", (long long)v->values, (long long)v->work, (long long)v->depth);
}

static spmv_status write_json(const struct options *o, const struct exercise *e, const char *path,
                              const struct verdict *v)
{
    json_t *root = json_begin(o);
    const bool passed = v->outcome == OUTCOME_PASSED;
    json_t *exercise = json_pack("{s:s, s:o, s:b, s:I}", "name", e->name, "file", json_text(path), "passed", passed,
                                 "cases", (json_int_t)v->cases);
    if (passed && v->values > 0) {
        json_put(exercise, "n", json_integer((json_int_t)v->values));
        json_put(exercise, "work", json_integer((json_int_t)v->work));
        json_put(exercise, "depth", json_integer((json_int_t)v->depth));
    }
    if (!passed)
        json_put(exercise, "message", json_text(v->text));
    json_put(root, "exercise", exercise);
    return json_finish(o, root);
}

spmv_status run_exercise(const struct options *o, const char *const *arguments, int count)
{
    const struct exercise *e = NULL;
    struct verdict verdict = {.outcome = OUTCOME_NONE};
    if (count == 0)
        return list_exercises(o);
    spmv_status st = find_exercise(arguments[0], &e);
    if (st == SPMV_OK && count == 1) {
        if (o->json)
            return report(SPMV_ERROR_ARGUMENT, "--json has no effect without a file: the form is C code");
        fputs(e->template, stdout);
        return finish_stdout();
    }
    if (st == SPMV_OK)
        st = check_file(e, arguments[1]);
    if (st == SPMV_OK)
        st = compile_and_run(o, e, arguments[1], &verdict);
    if (st != SPMV_OK)
        return st;
    if (verdict.outcome != OUTCOME_PASSED || !o->json || o->json_path != NULL)
        print_verdict(e, arguments[1], &verdict);
    st = finish_stdout();
    if (st == SPMV_OK && o->json)
        st = write_json(o, e, arguments[1], &verdict);
    return st == SPMV_OK && verdict.outcome != OUTCOME_PASSED ? SPMV_ERROR_CHECK : st;
}
