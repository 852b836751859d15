/* A pattern in the terminal.
 *
 * A small matrix has a character for each entry. A larger one is drawn in braille, 2 x 4 dots per
 * character (U+2800 and on; Unicode's chart "Braille Patterns"), coloured by density on a terminal.
 * Without a UTF-8 locale it is drawn in ASCII, where the darkness of a character shows the density.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "app/input.h"
#include "app/output.h"
#include "app/spy/spy.h"

struct screen {
    bool utf8, colours;
    int width, lines; /* characters available for the drawing and its frame */
};

enum { LEAST_WIDTH = 16, LEAST_LINES = 10, USUAL_WIDTH = 80, LEGEND_LINES = 4 };

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Checks the name: if a UTF-8 locale is set but not installed, as in small containers, the terminal
 * still displays UTF-8. */
static bool locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = NULL;
    for (int i = 0; i < 3 && locale == NULL; i++)
        locale = variable(names[i]);
    for (const char *c = locale; c != NULL && *c != '\0'; c++)
        if (strncasecmp(c, "utf-8", 5) == 0 || strncasecmp(c, "utf8", 4) == 0)
            return true;
    return false;
}

static struct screen look_at_screen(void)
{
    const char *columns = variable("COLUMNS"), *term = variable("TERM");
    const bool terminal = isatty(STDOUT_FILENO);
    struct winsize size = {0};
    struct screen s = {.utf8 = locale_is_utf8(), .width = columns != NULL ? atoi(columns) : 0};
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        s.width = size.ws_col;
    if (s.width <= 0)
        s.width = USUAL_WIDTH;
    s.width = s.width < LEAST_WIDTH ? LEAST_WIDTH : s.width > 2000 ? 2000 : s.width;
    /* a character is about twice as tall as wide, so the frame is about square */
    s.lines = (s.width - 1) / 2 + 2;
    if (terminal && size.ws_row > 0 && s.lines > size.ws_row - LEGEND_LINES)
        s.lines = size.ws_row - LEGEND_LINES;
    s.lines = s.lines < LEAST_LINES ? LEAST_LINES : s.lines;
    s.colours = terminal && s.utf8 && variable("NO_COLOR") == NULL && term != NULL && strcmp(term, "dumb") != 0;
    return s;
}

/* From low to high density, in xterm's 256 colours of medium brightness, visible on black and on
 * white. */
static const int colours[] = {73, 68, 98, 133, 161};
enum { COLOURS = sizeof colours / sizeof colours[0] };

static const char shades[] = " .:-=+*#%@";
enum { SHADES = sizeof shades - 2 };

static void print_edge(bool utf8, bool top, int width)
{
    fputs(utf8 ? (top ? "┌" : "└") : "+", stdout);
    for (int i = 0; i < width; i++)
        fputs(utf8 ? "─" : "-", stdout);
    puts(utf8 ? (top ? "┐" : "┘") : "+");
}

/* Prints a character for each entry, with blanks between, so that the drawing is about square. */
static void print_entries(const struct spy_bins *bins, bool utf8)
{
    for (int row = 0; row < bins->rows.cells; row++) {
        fputs(utf8 ? "│" : "|", stdout);
        for (int col = 0; col < bins->cols.cells; col++) {
            const bool entry = spy_level(bins, row, col, 1) > 0;
            fputs(utf8 ? (entry ? " ■" : " ·") : (entry ? " #" : " ."), stdout);
        }
        puts(utf8 ? " │" : " |");
    }
}

static void print_shades(const struct spy_bins *bins)
{
    for (int row = 0; row < bins->rows.cells; row++) {
        putchar('|');
        for (int col = 0; col < bins->cols.cells; col++)
            putchar(shades[spy_level(bins, row, col, SHADES)]);
        puts("|");
    }
}

/* The braille character of 4 rows and 2 columns of cells from (row, col); returns the level of the
 * densest. */
static int braille(const struct spy_bins *bins, int row, int col, int *dots)
{
    static const int dot[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int densest = 0;
    *dots = 0;
    for (int r = 0; r < 4 && row + r < bins->rows.cells; r++) {
        for (int c = 0; c < 2 && col + c < bins->cols.cells; c++) {
            const int level = spy_level(bins, row + r, col + c, COLOURS);
            *dots |= level > 0 ? dot[r][c] : 0;
            densest = level > densest ? level : densest;
        }
    }
    return densest;
}

static void print_colour(int *now, int level)
{
    if (level != *now && level > 0)
        printf("\033[38;5;%dm", colours[level - 1]);
    if (level != *now && level == 0)
        fputs("\033[0m", stdout);
    *now = level;
}

static void print_braille(const struct spy_bins *bins, bool coloured)
{
    for (int row = 0; row < bins->rows.cells; row += 4) {
        int now = 0;
        fputs("│", stdout);
        for (int col = 0; col < bins->cols.cells; col += 2) {
            int dots = 0;
            const int level = braille(bins, row, col, &dots);
            if (coloured && dots != 0)
                print_colour(&now, level);
            printf("\xe2%c%c", 0xa0 | dots >> 6, 0x80 | (dots & 0x3f)); /* U+2800 + dots */
        }
        print_colour(&now, 0);
        puts("│");
    }
}

static void print_range(const struct spy_bins *bins, const char *what)
{
    if (bins->least < bins->most)
        printf("; %s: densities from %s to %s, log scale", what, spy_density_text(bins->least),
               spy_density_text(bins->most));
    else
        printf("; all have density %s", spy_density_text(bins->most));
}

enum style { ENTRIES, BRAILLE, ASCII };

static void print_legend(const struct input *in, const struct spy_bins *bins, enum style style, const struct screen *s)
{
    printf("%s: %lld x %lld, %lld nonzero%s\n", in->name, (long long)in->view.rows, (long long)in->view.cols,
           (long long)in->view.nnz, in->view.nnz == 1 ? "" : "s");
    if (bins->filled == 0)
        return;
    if (style == ENTRIES) {
        puts(s->utf8 ? "■ a nonzero, · none" : "# a nonzero, . none");
        return;
    }
    if (style == ASCII) {
        fputs(spy_cell_text("a character", bins), stdout);
        print_range(bins, shades + 1);
    } else {
        fputs(spy_cell_text("a dot", bins), stdout);
        if (bins->rows.block > 1 || bins->cols.block > 1)
            fputs(", at least one of them nonzero", stdout);
        if (s->colours && bins->least < bins->most) {
            char sample[COLOURS * 32];
            int used = 0;
            for (int i = 0; i < COLOURS; i++)
                used += snprintf(sample + used, sizeof sample - (size_t)used, "\033[38;5;%dm⣿", colours[i]);
            snprintf(sample + used, sizeof sample - (size_t)used, "\033[0m");
            print_range(bins, sample);
        }
    }
    putchar('\n');
}

spmv_status spy_print(const struct input *in, int threads, struct spy_bins *bins)
{
    const struct screen s = look_at_screen();
    const int inner = s.width - 2, lines = s.lines - 2;
    const bool small = 2 * in->view.cols + 1 <= inner && in->view.rows <= lines;
    const enum style style = small ? ENTRIES : s.utf8 ? BRAILLE : ASCII;
    const struct spy_room room = style == ENTRIES   ? (struct spy_room){lines, inner, 1}
                                 : style == BRAILLE ? (struct spy_room){4 * lines, 2 * inner, 1}
                                                    : (struct spy_room){lines, inner, 2};
    const spmv_status st = spy_bins_make(&in->view, room, threads, bins);
    if (st != SPMV_OK)
        return st;
    const int cols = bins->cols.cells;
    const int width = style == ENTRIES ? 2 * cols + 1 : style == BRAILLE ? (cols + 1) / 2 : cols;
    print_edge(s.utf8, true, width);
    if (style == ENTRIES)
        print_entries(bins, s.utf8);
    else if (style == BRAILLE)
        print_braille(bins, s.colours && bins->least < bins->most);
    else
        print_shades(bins);
    print_edge(s.utf8, false, width);
    print_legend(in, bins, style, &s);
    return finish_stdout();
}
