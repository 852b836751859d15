/* Opens cairo and writes drawings to files. See drawing.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "drawing.h"

#include <string.h>
#include <strings.h>

static bool ends_in(const char *text, const char *ending)
{
    const size_t length = strlen(text), size = strlen(ending);
    return length > size && strcasecmp(text + length - size, ending) == 0;
}

enum drawing_kind drawing_kind_of(const char *path)
{
    return ends_in(path, ".png") ? DRAWING_PNG : ends_in(path, ".svg") ? DRAWING_SVG : DRAWING_NONE;
}

#ifndef SPMV_HAVE_CAIRO

spmv_status drawing_ready(const char *otherwise)
{
    complain(
        "this build has no cairo, which draws pictures: install it (Debian, Ubuntu: libcairo2-dev) and build again, "
        "or %s",
        otherwise);
    return SPMV_ERROR_UNSUPPORTED;
}

#else

#include <dlfcn.h>
#include <stdlib.h>

struct cairo_functions cairo;

spmv_status drawing_ready(const char *otherwise)
{
#define ENTRY(name) {"cairo_" #name, &cairo.name},
    static const struct {
        const char *name;
        void *pointer;
    } functions[] = {CAIRO_FUNCTIONS(ENTRY)};
#undef ENTRY
    void *library = dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library != NULL && i < sizeof functions / sizeof functions[0]; i++) {
        void *const symbol = dlsym(library, functions[i].name);
        if (symbol == NULL)
            library = NULL;
        /* C has no cast from an object pointer to a function pointer */
        memcpy(functions[i].pointer, &symbol, sizeof symbol);
    }
    if (library != NULL)
        return SPMV_OK; /* the library stays open until the program ends */
    complain("cairo, which draws pictures, cannot be opened: %s; install it (Debian, Ubuntu: libcairo2), or %s",
             dlerror(), otherwise);
    return SPMV_ERROR_UNSUPPORTED;
}

/* The bytes that cairo writes. The file is written afterwards, at once. */
struct text {
    char *data;
    size_t size, room;
};

static cairo_status_t collect(void *closure, const unsigned char *data, unsigned length)
{
    struct text *to = closure;
    if (to->size + length > to->room) {
        const size_t room = 2 * to->room + length;
        char *more = realloc(to->data, room);
        if (more == NULL)
            return CAIRO_STATUS_NO_MEMORY;
        to->data = more;
        to->room = room;
    }
    memcpy(to->data + to->size, data, length);
    to->size += length;
    return CAIRO_STATUS_SUCCESS;
}

static cairo_surface_t *open_surface(enum drawing_kind kind, int width, int height, struct text *to)
{
    if (kind == DRAWING_PNG)
        return cairo.image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    cairo_surface_t *surface = cairo.svg_surface_create_for_stream(collect, to, width, height);
    cairo.svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
    return surface;
}

/* Writes the surface into the text; returns the first error. */
static cairo_status_t finish_surface(enum drawing_kind kind, cairo_t *cr, cairo_surface_t *surface, struct text *to)
{
    cairo_status_t status = cairo.status(cr);
    if (status == CAIRO_STATUS_SUCCESS && kind == DRAWING_PNG)
        status = cairo.surface_write_to_png_stream(surface, collect, to);
    cairo.surface_finish(surface);
    return status != CAIRO_STATUS_SUCCESS ? status : cairo.surface_status(surface);
}

spmv_status drawing_write(const char *path, enum drawing_kind kind, int width, int height, drawing_function *draw,
                          const void *what)
{
    struct text text = {0};
    cairo_surface_t *surface = open_surface(kind, width, height, &text);
    cairo_t *cr = cairo.create(surface);
    draw(cr, what);
    const cairo_status_t status = finish_surface(kind, cr, surface, &text);
    cairo.destroy(cr);
    cairo.surface_destroy(surface);
    spmv_status st = SPMV_OK;
    if (status != CAIRO_STATUS_SUCCESS) {
        complain("cairo cannot draw %s: %s", path, cairo.status_to_string(status));
        st = status == CAIRO_STATUS_NO_MEMORY ? SPMV_ERROR_MEMORY : SPMV_ERROR_WRITE;
    } else {
        st = write_text(path, text.data, text.size);
    }
    free(text.data);
    return st;
}

#endif
