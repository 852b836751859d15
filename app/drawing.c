/* Draws pictures: .svg as text, .png with cairo. See drawing.h.
 *
 * An .svg holds a grid of cells as an image with one pixel for each cell: a PNG with a palette and
 * without compression (W3C, "Portable Network Graphics (PNG) Specification", 2003; blocks without
 * compression: P. Deutsch, RFC 1951, section 3.2.4), in base 64.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "app/drawing.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "app/output.h"

#ifdef SPMV_HAVE_CAIRO
#include <cairo.h>
#include <dlfcn.h>
#endif

static bool ends_in(const char *text, const char *ending)
{
    const size_t length = strlen(text), size = strlen(ending);
    return length > size && strcasecmp(text + length - size, ending) == 0;
}

enum drawing_kind drawing_kind_of(const char *path)
{
    return ends_in(path, ".png") ? DRAWING_PNG : ends_in(path, ".svg") ? DRAWING_SVG : DRAWING_NONE;
}

/* The bytes of a file, which is written at the end, at once. */
struct text {
    char *data;
    size_t size, room;
    bool failed; /* no memory */
};

struct drawing {
    enum drawing_kind kind;
    struct text text;
    char colour[32]; /* of an .svg: "rgb(1,2,3)" */
    double size;     /* of texts */
    bool bold;
    struct text path; /* of an .svg: the line before drawing_stroke */
#ifdef SPMV_HAVE_CAIRO
    cairo_t *cr;
#endif
};

static void add_bytes(struct text *to, const void *bytes, size_t size)
{
    if (to->size + size > to->room) {
        const size_t room = 2 * to->room + size;
        char *more = to->failed ? NULL : realloc(to->data, room);
        if (more == NULL) {
            to->failed = true;
            return;
        }
        to->data = more;
        to->room = room;
    }
    memcpy(to->data + to->size, bytes, size);
    to->size += size;
}

__attribute__((format(printf, 2, 3))) static void add(struct text *to, const char *format, ...)
{
    char line[512];
    va_list values;
    va_start(values, format);
    const int n = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    add_bytes(to, line, n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* ---------------------------------------------------------------- cairo */

#ifdef SPMV_HAVE_CAIRO

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
    X(text_extents)                                                                                                    \
    X(translate)

#define CAIRO_MEMBER(name) __typeof__(cairo_##name) *name;
static struct {
    CAIRO_FUNCTIONS(CAIRO_MEMBER)
} cairo; /* set by open_cairo */
#undef CAIRO_MEMBER

static spmv_status open_cairo(const char *otherwise)
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
    complain("cairo, which draws .png files, cannot be opened: %s; name an .svg, install it (Debian, Ubuntu: "
             "libcairo2), or %s",
             dlerror(), otherwise);
    return SPMV_ERROR_UNSUPPORTED;
}

static cairo_status_t collect(void *closure, const unsigned char *data, unsigned length)
{
    struct text *const to = closure;
    add_bytes(to, data, length);
    return to->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

/* Draws the page and collects its bytes. */
static spmv_status draw_png(struct drawing *d, const char *path, int width, int height, drawing_function *draw,
                            const void *what)
{
    cairo_surface_t *const surface = cairo.image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    d->cr = cairo.create(surface);
    cairo.set_source_rgb(d->cr, 1, 1, 1);
    cairo.paint(d->cr);
    draw(d, what);
    cairo_status_t status = cairo.status(d->cr);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo.surface_write_to_png_stream(surface, collect, &d->text);
    cairo.surface_finish(surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo.surface_status(surface);
    cairo.destroy(d->cr);
    cairo.surface_destroy(surface);
    if (status == CAIRO_STATUS_SUCCESS)
        return SPMV_OK;
    complain("cairo cannot draw %s: %s", path, cairo.status_to_string(status));
    return status == CAIRO_STATUS_NO_MEMORY ? SPMV_ERROR_MEMORY : SPMV_ERROR_WRITE;
}

static void fill_pixels(const struct drawing_cells *cells, cairo_surface_t *image)
{
    unsigned char *const data = cairo.image_surface_get_data(image);
    const int64_t stride = cairo.image_surface_get_stride(image);
    for (int row = 0; row < cells->rows; row++) {
        unsigned char *const first = data + stride * row * cells->cell_height;
        for (int col = 0; col < cells->columns; col++) {
            const uint32_t colour = cells->colours[cells->colour[(int64_t)row * cells->columns + col]];
            for (int x = 0; x < cells->cell_width; x++)
                memcpy(first + 4 * ((int64_t)col * cells->cell_width + x), &colour, sizeof colour);
        }
        for (int y = 1; y < cells->cell_height; y++)
            memcpy(first + stride * y, first, (size_t)cells->columns * (size_t)cells->cell_width * 4);
    }
}

static void draw_image(struct drawing *d, int x, int y, const struct drawing_cells *cells)
{
    const int width = cells->columns * cells->cell_width, height = cells->rows * cells->cell_height;
    cairo_surface_t *const image = cairo.image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    if (cairo.surface_status(image) == CAIRO_STATUS_SUCCESS) {
        cairo.surface_flush(image);
        fill_pixels(cells, image);
        cairo.surface_mark_dirty(image);
    }
    /* reports the error of an invalid image */
    cairo.set_source_surface(d->cr, image, x, y);
    cairo.rectangle(d->cr, x, y, width, height);
    cairo.fill(d->cr);
    cairo.surface_destroy(image);
}

#else

static spmv_status open_cairo(const char *otherwise)
{
    complain("this build has no cairo, which draws .png files: name an .svg, install cairo (Debian, Ubuntu: "
             "libcairo2-dev) and build again, or %s",
             otherwise);
    return SPMV_ERROR_UNSUPPORTED;
}

#endif

/* ---------------------------------------------------------------- an image in an .svg */

static void add_number(struct text *to, uint32_t value)
{
    const unsigned char bytes[4] = {(unsigned char)(value >> 24), (unsigned char)(value >> 16),
                                    (unsigned char)(value >> 8), (unsigned char)value};
    add_bytes(to, bytes, sizeof bytes);
}

/* The cyclic redundancy check of PNG. */
static uint32_t checksum(const char *bytes, size_t size)
{
    uint32_t crc = 0xffffffffU;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
    }
    return ~crc;
}

static void add_chunk(struct text *to, const char *name, const void *bytes, size_t size)
{
    add_number(to, (uint32_t)size);
    const size_t from = to->size;
    add_bytes(to, name, 4);
    add_bytes(to, bytes, size);
    if (!to->failed)
        add_number(to, checksum(to->data + from, to->size - from));
}

/* The rows of the image, each after a byte 0 (no filter), as a stream of zlib without compression. */
static void add_stream(struct text *to, const struct drawing_cells *cells)
{
    enum { MOST = 65535, BASE = 65521 }; /* bytes of a block; of Adler's checksum */
    struct text rows = {0};
    uint32_t a = 1, b = 0;
    for (int row = 0; row < cells->rows; row++) {
        add_bytes(&rows, "", 1);
        add_bytes(&rows, cells->colour + (int64_t)row * cells->columns, (size_t)cells->columns);
    }
    add_bytes(to, "\x78\x01", 2);
    for (size_t at = 0; at < rows.size || at == 0; at += MOST) {
        const size_t count = rows.size - at < MOST ? rows.size - at : MOST;
        const unsigned char head[5] = {at + count == rows.size, (unsigned char)count, (unsigned char)(count >> 8),
                                       (unsigned char)~count, (unsigned char)(~count >> 8)};
        add_bytes(to, head, sizeof head);
        add_bytes(to, rows.data + at, count);
    }
    for (size_t i = 0; i < rows.size; i++) {
        a = (a + (unsigned char)rows.data[i]) % BASE;
        b = (b + a) % BASE;
    }
    add_number(to, b << 16 | a);
    to->failed = to->failed || rows.failed;
    free(rows.data);
}

static void add_png(struct text *to, const struct drawing_cells *cells)
{
    struct text head = {0}, colours = {0}, stream = {0};
    add_number(&head, (uint32_t)cells->columns);
    add_number(&head, (uint32_t)cells->rows);
    add_bytes(&head, "\x08\x03\0\0\0", 5); /* 8 bits, a palette */
    for (int i = 0; i < cells->count; i++) {
        const unsigned char rgb[3] = {(unsigned char)(cells->colours[i] >> 16), (unsigned char)(cells->colours[i] >> 8),
                                      (unsigned char)cells->colours[i]};
        add_bytes(&colours, rgb, sizeof rgb);
    }
    add_stream(&stream, cells);
    add_bytes(to, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(to, "IHDR", head.data, head.size);
    add_chunk(to, "PLTE", colours.data, colours.size);
    add_chunk(to, "IDAT", stream.data, stream.size);
    add_chunk(to, "IEND", "", 0);
    to->failed = to->failed || head.failed || colours.failed || stream.failed;
    free(head.data);
    free(colours.data);
    free(stream.data);
}

static void add_base64(struct text *to, const char *bytes, size_t size)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = 0;
        char four[4];
        for (size_t k = 0; k < 3; k++)
            three = three << 8 | (i + k < size ? (unsigned char)bytes[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            four[k] = i + k > size ? '=' : letters[three >> 6 * (3 - k) & 63];
        add_bytes(to, four, sizeof four);
    }
}

/* ---------------------------------------------------------------- the page */

spmv_status drawing_ready(enum drawing_kind kind, const char *otherwise)
{
    return kind == DRAWING_PNG ? open_cairo(otherwise) : SPMV_OK;
}

void drawing_colour(struct drawing *d, double red, double green, double blue)
{
#ifdef SPMV_HAVE_CAIRO
    if (d->kind == DRAWING_PNG)
        cairo.set_source_rgb(d->cr, red, green, blue);
#endif
    snprintf(d->colour, sizeof d->colour, "rgb(%d,%d,%d)", (int)lround(255 * red), (int)lround(255 * green),
             (int)lround(255 * blue));
}

void drawing_font(struct drawing *d, double size, bool bold)
{
    d->size = size;
    d->bold = bold;
#ifdef SPMV_HAVE_CAIRO
    if (d->kind != DRAWING_PNG)
        return;
    cairo.select_font_face(d->cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo.set_font_size(d->cr, size);
#endif
}

double drawing_text_width(struct drawing *d, const char *text)
{
    /* wider than the mean character of common fonts, relative to their size */
    static const double plain = 0.58, bold = 0.64;
    int characters = 0;
#ifdef SPMV_HAVE_CAIRO
    if (d->kind == DRAWING_PNG) {
        cairo_text_extents_t extents;
        cairo.text_extents(d->cr, text, &extents);
        return extents.x_advance;
    }
#endif
    for (; *text != '\0'; text++)
        characters += ((unsigned char)*text & 0xc0) != 0x80;
    return characters * d->size * (d->bold ? bold : plain);
}

/* Adds the text, with markup escaped; characters that XML does not allow become '?'. */
static void add_escaped(struct text *to, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '&')
            add(to, "&amp;");
        else if (*text == '<')
            add(to, "&lt;");
        else
            add(to, "%c", (unsigned char)*text < ' ' ? '?' : *text);
}

static void add_text(struct drawing *d, double x, double y, double align, const char *turn, const char *text)
{
    add(&d->text, "<text x=\"%g\" y=\"%g\"%s font-family=\"sans-serif\" font-size=\"%g\"%s fill=\"%s\"%s>", x, y, turn,
        d->size, d->bold ? " font-weight=\"bold\"" : "", d->colour,
        align == 0   ? ""
        : align == 1 ? " text-anchor=\"end\""
                     : " text-anchor=\"middle\"");
    add_escaped(&d->text, text);
    add(&d->text, "</text>\n");
}

void drawing_text(struct drawing *d, double x, double y, double align, const char *text)
{
#ifdef SPMV_HAVE_CAIRO
    if (d->kind == DRAWING_PNG) {
        cairo.move_to(d->cr, floor(x - align * drawing_text_width(d, text)), floor(y));
        cairo.show_text(d->cr, text);
        return;
    }
#endif
    add_text(d, floor(x), floor(y), align, "", text);
}

void drawing_text_up(struct drawing *d, double x, double y, const char *text)
{
    char turn[64];
#ifdef SPMV_HAVE_CAIRO
    if (d->kind == DRAWING_PNG) {
        cairo.save(d->cr);
        cairo.translate(d->cr, x, y);
        cairo.rotate(d->cr, -acos(-1) / 2);
        drawing_text(d, 0, 0, 0.5, text);
        cairo.restore(d->cr);
        return;
    }
#endif
    snprintf(turn, sizeof turn, " transform=\"rotate(-90 %g %g)\"", x, y);
    add_text(d, x, y, 0.5, turn, text);
}

void drawing_box(struct drawing *d, double x, double y, double width, double height)
{
#ifdef SPMV_HAVE_CAIRO
    if (d->kind == DRAWING_PNG) {
        cairo.rectangle(d->cr, x, y, width, height);
        cairo.fill(d->cr);
        return;
    }
#endif
    add(&d->text, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"%s\"/>\n", x, y, width, height, d->colour);
}

void drawing_move(struct drawing *d, double x, double y)
{
#ifdef SPMV_HAVE_CAIRO
    if (d->kind == DRAWING_PNG) {
        cairo.move_to(d->cr, x, y);
        return;
    }
#endif
    add(&d->path, "M%.2f %.2f", x, y);
}

void drawing_line(struct drawing *d, double x, double y)
{
#ifdef SPMV_HAVE_CAIRO
    if (d->kind == DRAWING_PNG) {
        cairo.line_to(d->cr, x, y);
        return;
    }
#endif
    add(&d->path, "L%.2f %.2f", x, y);
}

void drawing_stroke(struct drawing *d, double width)
{
#ifdef SPMV_HAVE_CAIRO
    if (d->kind == DRAWING_PNG) {
        cairo.set_line_width(d->cr, width);
        cairo.stroke(d->cr);
        return;
    }
#endif
    add(&d->text, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%g\" d=\"", d->colour, width);
    add_bytes(&d->text, d->path.data, d->path.size);
    add(&d->text, "\"/>\n");
    d->path.size = 0;
}

void drawing_cells(struct drawing *d, int x, int y, const struct drawing_cells *cells)
{
    struct text png = {0};
#ifdef SPMV_HAVE_CAIRO
    if (d->kind == DRAWING_PNG) {
        draw_image(d, x, y, cells);
        return;
    }
#endif
    add_png(&png, cells);
    add(&d->text, "<image x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" preserveAspectRatio=\"none\" ", x, y,
        cells->columns * cells->cell_width, cells->rows * cells->cell_height);
    add(&d->text, "style=\"image-rendering:optimizeSpeed;image-rendering:pixelated\" "
                  "xlink:href=\"data:image/png;base64,");
    add_base64(&d->text, png.data, png.size);
    add(&d->text, "\"/>\n");
    d->text.failed = d->text.failed || png.failed;
    free(png.data);
}

static spmv_status draw_svg(struct drawing *d, const char *path, int width, int height, drawing_function *draw,
                            const void *what)
{
    add(&d->text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
                  "xmlns:xlink=\"http://www.w3.org/1999/xlink\" ");
    add(&d->text, "width=\"%dpx\" height=\"%dpx\" viewBox=\"0 0 %d %d\" version=\"1.1\">\n", width, height, width,
        height);
    drawing_colour(d, 1, 1, 1);
    drawing_box(d, 0, 0, width, height);
    draw(d, what);
    add(&d->text, "</svg>\n");
    if (!d->text.failed && !d->path.failed)
        return SPMV_OK;
    complain("no memory for the picture %s", path);
    return SPMV_ERROR_MEMORY;
}

spmv_status drawing_write(const char *path, enum drawing_kind kind, int width, int height, drawing_function *draw,
                          const void *what)
{
    struct drawing d = {.kind = kind};
#ifdef SPMV_HAVE_CAIRO
    spmv_status st = kind == DRAWING_PNG ? draw_png(&d, path, width, height, draw, what)
                                         : draw_svg(&d, path, width, height, draw, what);
#else
    spmv_status st = draw_svg(&d, path, width, height, draw, what); /* drawing_ready refuses the others */
#endif
    if (st == SPMV_OK)
        st = write_text(path, d.text.data, d.text.size);
    free(d.text.data);
    free(d.path.data);
    return st;
}
