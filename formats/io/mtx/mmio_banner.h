/* Banners of Matrix Market files, read and written by NIST's mmio.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MMIO_BANNER_H
#define MMIO_BANNER_H

#include <stdio.h> /* mmio.h uses FILE and does not include this */

#include <mmio.h>

#include "formats/io/text/text_source.h"

/* "%%MatrixMarket matrix coordinate real general" and a zero byte: tag and four words of less than
 * 64 bytes each. */
enum { BANNER_TEXT = 5 * MM_MAX_TOKEN_LENGTH + 8 };

/* Whether the line begins with the tag of a Matrix Market file, in upper or lower case. Also true
 * with one percent sign, or after a byte order mark and blanks; banner_read warns of these. */
bool banner_tag(const char *line, const char *line_end);

/* Reads line 1, [line, line_end), into mmio's type code. Accepts only what the standard defines:
 * object matrix, and a valid combination of format, field and symmetry. Errors: SPMV_ERROR_FORMAT,
 * SPMV_ERROR_UNSUPPORTED (object vector). *field_column: column of the word for the field. */
spmv_status banner_read(struct text_source *source, const char *line, const char *line_end, MM_typecode *code,
                        int64_t *field_column);

/* The banner of that type code as mmio writes it, without its line end. */
spmv_status banner_write(spmv_context *ctx, MM_typecode code, char text[BANNER_TEXT]);

#endif
