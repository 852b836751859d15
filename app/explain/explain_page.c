/* The page of spmv explain: collecting, columns, JSON. See explain.h.
 *
 * All columns have the width of the widest cell of the page, so that a cell stays in its column
 * from step to step. Cells that do not fit in a line continue in the next one, from the first
 * column.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/explain/explain.h"
#include "app/output.h"

/* ---------------------------------------------------------------- collecting */

static struct explain_line *add_line(struct explain_page *page)
{
    if (page->status != SPMV_OK)
        return NULL;
    if (page->count == page->room) {
        struct explain_line *lines = NULL;
        const int64_t room = 2 * page->room + 16;
        page->status = allocate("the page", room, sizeof *lines, (void **)&lines);
        if (page->status != SPMV_OK)
            return NULL;
        if (page->count > 0)
            memcpy(lines, page->lines, (size_t)page->count * sizeof *lines);
        free(page->lines);
        page->lines = lines;
        page->room = room;
    }
    struct explain_line *const line = &page->lines[page->count++];
    *line = (struct explain_line){.type = SPMV_F64};
    return line;
}

/* A copy of bytes; NULL stays NULL. */
static void *keep(struct explain_page *page, const void *from, size_t bytes)
{
    void *copy = NULL;
    if (from == NULL || page->status != SPMV_OK)
        return NULL;
    page->status = allocate("the page", (int64_t)bytes, 1, &copy);
    if (page->status == SPMV_OK)
        memcpy(copy, from, bytes);
    return copy;
}

static double value_of(spmv_type type, const void *values, int64_t i)
{
    switch (type) {
    case SPMV_I32:
        return ((const int32_t *)values)[i];
    case SPMV_I64:
        return (double)((const int64_t *)values)[i];
    case SPMV_F32:
        return (double)((const float *)values)[i];
    default:
        return ((const double *)values)[i];
    }
}

static void keep_cells(struct explain_page *page, struct explain_line *line, spmv_type type, const void *values,
                       int64_t n, const uint8_t *heads)
{
    line->type = type;
    line->heads = keep(page, n > 0 ? heads : NULL, (size_t)n);
    if (page->status == SPMV_OK)
        page->status = allocate("the page", n, sizeof *line->cells, (void **)&line->cells);
    if (page->status != SPMV_OK)
        return;
    line->n = n;
    for (int64_t i = 0; i < n; i++)
        line->cells[i] = value_of(type, values, i);
}

void explain_text(struct explain_page *page, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    struct explain_line *const line = add_line(page);
    if (line != NULL)
        line->label = keep(page, text, strlen(text) + 1);
}

void explain_array(struct explain_page *page, const char *key, const char *title, spmv_type type, const void *values,
                   int64_t n, const uint8_t *heads)
{
    struct explain_line *const line = add_line(page);
    if (line == NULL)
        return;
    line->key = key;
    line->label = keep(page, title, strlen(title) + 1);
    keep_cells(page, line, type, values, n, heads);
}

/* Marks the cells that differ from the step before in the same block. */
static void mark_changes(struct explain_page *page, struct explain_line *line, const struct explain_line *before)
{
    if (line->n == 0 || before->n != line->n)
        return;
    page->status = allocate("the page", line->n, 1, (void **)&line->changed);
    for (int64_t i = 0; page->status == SPMV_OK && i < line->n; i++)
        line->changed[i] = memcmp(&line->cells[i], &before->cells[i], sizeof line->cells[i]) != 0 ||
                           (line->heads != NULL && before->heads != NULL && line->heads[i] != before->heads[i]);
}

void explain_step(const spmv_trace *trace, void *user)
{
    struct explain_page *const page = user;
    struct explain_line *const line = add_line(page);
    if (line == NULL)
        return;
    line->launch = keep(page, trace->launch, strlen(trace->launch) + 1);
    line->label = keep(page, trace->label, strlen(trace->label) + 1);
    line->block = trace->block;
    line->step = trace->step;
    line->operations = page->base + trace->operations;
    line->idle = trace->idle != 0;
    keep_cells(page, line, trace->type, trace->host_cells, trace->n, trace->host_heads);
    page->steps++;
    page->widest = trace->n > page->widest ? trace->n : page->widest;
    page->launches += trace->step == 0 && trace->block == 0;
    page->operations = line->operations;
    page->idle += line->idle;
    if (page->status == SPMV_OK && trace->step > 0)
        mark_changes(page, line, line - 1);
}

void explain_next_trace(struct explain_page *page)
{
    page->base = page->operations;
}

void explain_free(struct explain_page *page)
{
    for (int64_t k = 0; k < page->count; k++) {
        free(page->lines[k].label);
        free(page->lines[k].launch);
        free(page->lines[k].cells);
        free(page->lines[k].heads);
        free(page->lines[k].changed);
        free(page->lines[k].sets);
    }
    free(page->lines);
    *page = (struct explain_page){.status = page->status};
}

/* ---------------------------------------------------------------- in columns */

int explain_cell_text(const struct explain_line *line, int64_t i, char *text)
{
    const double value = line->cells[i];
    if (line->type != SPMV_F32)
        return number_text(value, text);
    for (int digits = 6; digits < 9; digits++) {
        const int length = snprintf(text, NUMBER_TEXT, "%.*g", digits, value);
        if (strtof(text, NULL) == (float)value)
            return length;
    }
    return value == value ? snprintf(text, NUMBER_TEXT, "%.9g", value) : number_text(value, text);
}

enum { PAGE_WIDTH = 100 };

struct columns {
    int label, cell; /* characters */
    int64_t count;
    int64_t in_line; /* cells */
    bool bold;
};

static void measure(const struct explain_page *page, struct columns *c)
{
    const char *const term = getenv("TERM"), *const plain = getenv("NO_COLOR");
    *c = (struct columns){.bold = isatty(STDOUT_FILENO) && (plain == NULL || plain[0] == '\0') && term != NULL &&
                                  strcmp(term, "dumb") != 0};
    for (int64_t k = 0; k < page->count; k++) {
        const struct explain_line *const line = &page->lines[k];
        if (line->cells == NULL)
            continue;
        const int length = (int)strlen(line->label) + (line->launch != NULL ? 2 : 0);
        c->label = length > c->label ? length : c->label;
        c->count = line->n > c->count ? line->n : c->count;
        for (int64_t i = 0; i < line->n; i++) {
            char text[NUMBER_TEXT];
            const int width = explain_cell_text(line, i, text) + (line->heads != NULL);
            c->cell = width > c->cell ? width : c->cell;
        }
    }
    char text[NUMBER_TEXT];
    const int index = snprintf(text, sizeof text, "%lld", (long long)(c->count > 0 ? c->count - 1 : 0));
    c->cell = index > c->cell ? index : c->cell;
    c->label++;
    const int cells = (PAGE_WIDTH - c->label) / (c->cell + 2);
    c->in_line = cells > 8 ? cells / 8 * 8 : cells > 1 ? cells : 1;
}

static int64_t end_of_line(const struct columns *c, int64_t from, int64_t n)
{
    return n - from > c->in_line ? from + c->in_line : n;
}

/* Prints cells from one on. One blank before each cell, and one column after it for the mark. */
static void print_cells(const struct columns *c, const struct explain_line *line, int64_t from)
{
    const int64_t end = end_of_line(c, from, line->n);
    for (int64_t i = from; i < end; i++) {
        char number[NUMBER_TEXT], text[NUMBER_TEXT + 1];
        explain_cell_text(line, i, number);
        const bool head = line->heads != NULL && line->heads[i] != 0, mark = line->changed != NULL && line->changed[i];
        snprintf(text, sizeof text, "%s%s", head ? "|" : "", number);
        printf("%*s", 1 + c->cell - (int)strlen(text), "");
        printf(mark && c->bold ? "\033[1m%s*\033[0m" : mark ? "%s*" : i + 1 < end ? "%s " : "%s", text);
    }
    putchar('\n');
}

static void print_array(const struct columns *c, const struct explain_line *line)
{
    const bool step = line->launch != NULL;
    const int width = step ? c->label - 2 : c->label;
    printf("%s%-*s", step ? "  " : "", line->n > 0 ? width : 0, line->label);
    print_cells(c, line, 0);
    for (int64_t from = c->in_line; from < line->n; from += c->in_line) {
        char text[48];
        snprintf(text, sizeof text, "from %lld", (long long)from);
        printf("%*s", c->label, text);
        print_cells(c, line, from);
    }
}

/* Prints words in lines of the page's width; all lines except the first are indented. */
static void print_text(const char *text)
{
    int column = 0;
    while (*text != '\0') {
        const int length = (int)strcspn(text, " ");
        if (column > 2 && column + 1 + length > PAGE_WIDTH)
            column = printf("\n  ") - 1;
        else if (column > 0)
            column += printf(" ");
        column += printf("%.*s", length, text);
        text += length;
        text += *text == ' ';
    }
    putchar('\n');
}

/* Prints the name of a launch, and the block if the launch has several. */
static void print_launch(const struct explain_page *page, int64_t k)
{
    const struct explain_line *const line = &page->lines[k];
    bool several = line->block > 0;
    for (int64_t next = k + 1; next < page->count && !several; next++) {
        const struct explain_line *const other = &page->lines[next];
        if (other->launch == NULL)
            continue;
        if (other->step == 0 && other->block == 0)
            break;
        several = other->block > 0;
    }
    if (several)
        printf("%s, block %lld\n", line->launch, (long long)line->block);
    else
        printf("%s\n", line->launch);
}

static void print_index(const struct columns *c)
{
    const int64_t end = end_of_line(c, 0, c->count);
    printf("%*s", c->label, "");
    for (int64_t i = 0; i < end; i++)
        printf(i + 1 < end ? " %*lld " : " %*lld", c->cell, (long long)i);
    putchar('\n');
}

void explain_print(const struct explain_page *page)
{
    struct columns c;
    bool indexed = false;
    measure(page, &c);
    for (int64_t k = 0; k < page->count; k++) {
        const struct explain_line *const line = &page->lines[k];
        if (line->cells == NULL) {
            print_text(line->label);
            continue;
        }
        if (!indexed)
            print_index(&c);
        indexed = true;
        if (line->launch != NULL && line->step == 0)
            print_launch(page, k);
        if (!line->idle)
            print_array(&c, line);
    }
}

/* ---------------------------------------------------------------- JSON */

static json_t *json_cells(const struct explain_line *line)
{
    json_t *cells = json_array();
    for (int64_t i = 0; i < line->n; i++)
        json_array_append_new(cells, line->type == SPMV_I32 || line->type == SPMV_I64
                                         ? json_integer((json_int_t)line->cells[i])
                                         : json_number(line->cells[i]));
    return cells;
}

static json_t *json_places(const unsigned char *flags, int64_t n)
{
    json_t *places = json_array();
    for (int64_t i = 0; i < n; i++)
        if (flags[i] != 0)
            json_array_append_new(places, json_integer((json_int_t)i));
    return places;
}

static json_t *json_step(const struct explain_line *line)
{
    json_t *step = json_pack("{s:s, s:I, s:i, s:s, s:I}", "launch", line->launch, "block", (json_int_t)line->block,
                             "step", line->step, "did", line->label, "operations", (json_int_t)line->operations);
    json_put(step, "cells", json_cells(line));
    if (line->idle)
        json_put(step, "idle", json_true());
    if (line->heads != NULL)
        json_put(step, "heads", json_places(line->heads, line->n));
    if (line->changed != NULL)
        json_put(step, "changed", json_places(line->changed, line->n));
    return step;
}

json_t *explain_json(const struct explain_page *page)
{
    json_t *root = json_object(), *steps = json_array();
    for (int64_t k = 0; k < page->count; k++) {
        const struct explain_line *const line = &page->lines[k];
        if (line->launch != NULL)
            json_array_append_new(steps, json_step(line));
        else if (line->key != NULL)
            json_put(root, line->key, json_cells(line));
    }
    json_put(root, "steps", steps);
    json_put(root, "launches", json_integer(page->launches));
    json_put(root, "operations", json_integer((json_int_t)page->operations));
    return root;
}
