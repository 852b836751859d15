/* Pictures drawn with cairo, as .png or .svg.
 *
 * Cairo is opened only when a picture is drawn, and not linked: its some twenty libraries would
 * nearly double the start-up time of every command, and the program also runs without it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRAWING_H
#define DRAWING_H

#include "app.h"

enum drawing_kind { DRAWING_NONE, DRAWING_PNG, DRAWING_SVG };

/* The kind by the ending of the name; DRAWING_NONE: neither. */
enum drawing_kind drawing_kind_of(const char *path);

/* Opens cairo. Complains if a picture cannot be drawn; otherwise: the remedy in the message, such
 * as "leave --plot out". */
spmv_status drawing_ready(const char *otherwise);

#ifdef SPMV_HAVE_CAIRO

#include <cairo-svg.h>
#include <cairo.h>

#define CAIRO_FUNCTIONS(X)                                                                                             \
    X(create)                                                                                                          \
    X(destroy)                                                                                                         \
    X(fill)                                                                                                            \
    X(image_surface_create)                                                                                            \
    X(image_surface_get_data)                                                                                          \
    X(image_surface_get_stride)                                                                                        \
    X(line_to)                                                                                                         \
    X(move_to)                                                                                                         \
    X(paint)                                                                                                           \
    X(rectangle)                                                                                                       \
    X(restore)                                                                                                         \
    X(rotate)                                                                                                          \
    X(save)                                                                                                            \
    X(select_font_face)                                                                                                \
    X(set_font_size)                                                                                                   \
    X(set_line_width)                                                                                                  \
    X(set_source_rgb)                                                                                                  \
    X(set_source_surface)                                                                                              \
    X(show_text)                                                                                                       \
    X(status)                                                                                                          \
    X(status_to_string)                                                                                                \
    X(stroke)                                                                                                          \
    X(surface_destroy)                                                                                                 \
    X(surface_finish)                                                                                                  \
    X(surface_flush)                                                                                                   \
    X(surface_mark_dirty)                                                                                              \
    X(surface_status)                                                                                                  \
    X(surface_write_to_png_stream)                                                                                     \
    X(svg_surface_create_for_stream)                                                                                   \
    X(svg_surface_set_document_unit)                                                                                   \
    X(text_extents)                                                                                                    \
    X(translate)

#define CAIRO_MEMBER(name) __typeof__(cairo_##name) *name;
extern struct cairo_functions {
    CAIRO_FUNCTIONS(CAIRO_MEMBER)
} cairo; /* set by drawing_ready */
#undef CAIRO_MEMBER

typedef void drawing_function(cairo_t *cr, const void *what);

/* Draws a page of this size in pixels and writes it. Complains. */
spmv_status drawing_write(const char *path, enum drawing_kind kind, int width, int height, drawing_function *draw,
                          const void *what);

#endif

#endif
