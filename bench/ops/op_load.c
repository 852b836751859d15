/* Reading a matrix from a file as an operation: the time until it is CSR in memory, and the memory
 * needed.
 *
 * The first reading is measured separately, because it includes fresh pages from the system, as in
 * a command. The others follow in the same process, with the file in the page cache. The time to
 * read only the bytes is the lower bound. Each reading is a sample: there are no batches, and no
 * result to check.
 *
 * The counted bytes are those of the text.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/ops/op_load.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/process_memory.h"

enum { REPEATS_MOST = 25, REPEATS_LEAST = 5, READ_BYTES = 256 << 10 };

/* No repeat begins after this many seconds. */
static const double SECONDS_ENOUGH = 3;

static spmv_status read_bytes(struct work *work, struct load_figures *f)
{
    const char *const path = work->operand->path;
    struct stat s;
    spmv_status st = SPMV_OK;
    char *const buffer = malloc(READ_BYTES);
    if (buffer == NULL)
        return work_out_of_memory(work, "reading a file", READ_BYTES);
    const bool standard_input = strcmp(path, "-") == 0;
    const int fd = !standard_input ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (!standard_input && (fd < 0 || fstat(fd, &s) != 0)) {
        snprintf(work->error, sizeof work->error, "%s: cannot open: %s", path, strerror(errno));
        st = SPMV_ERROR_OPEN;
    } else if (standard_input || !S_ISREG(s.st_mode)) {
        snprintf(work->error, sizeof work->error, "%s: cannot measure: the file must be readable repeatedly", path);
        st = SPMV_ERROR_OPEN;
    }
    /* the first pass fills the page cache */
    for (int pass = 0; st == SPMV_OK && pass < 2; pass++) {
        const double began = monotonic_seconds();
        f->file_bytes = 0;
        for (ssize_t n = 1; n > 0; f->file_bytes += n)
            n = pread(fd, buffer, READ_BYTES, (off_t)f->file_bytes);
        f->bytes_seconds = monotonic_seconds() - began;
    }
    if (fd >= 0)
        close(fd);
    free(buffer);
    return st;
}

static spmv_status read_once(struct work *work)
{
    struct load_figures *const f = work->state;
    spmv_matrix *matrix = NULL;
    spmv_read_options options;
    spmv_csr a;
    spmv_read_options_init(&options, sizeof options);
    options.type = work->operand->read_type;
    f->status = spmv_matrix_read(work->ctx, work->operand->path, &options, &matrix, &f->info, sizeof f->info);
    if (f->status != SPMV_OK)
        return work_fail(work, work->ctx, f->status);
    spmv_matrix_view(matrix, &a);
    f->rows = a.rows;
    f->cols = a.cols;
    f->nnz = a.nnz;
    f->type = a.type;
    f->matrix_bytes =
        8 * (a.rows + 1) + a.nnz * (int64_t)(sizeof *a.col + (a.val != NULL ? spmv_type_size(a.type) : 0));
    spmv_matrix_destroy(matrix);
    return SPMV_OK;
}

static spmv_status setup_load(struct work *work)
{
    struct load_figures *const f = work_state(work, sizeof *f);
    spmv_status st = f != NULL ? read_bytes(work, f) : SPMV_ERROR_MEMORY;
    if (st != SPMV_OK)
        return st;
    const bool known = process_memory_reset_peak();
    const int64_t before = process_memory("VmRSS");
    const double began = monotonic_seconds();
    st = read_once(work);
    f->first_seconds = monotonic_seconds() - began;
    if (known && before > 0)
        f->peak_bytes = process_memory("VmHWM") - before;
    work->model_bytes = (double)f->info.bytes;
    return st;
}

static int run_load(void *state)
{
    return read_once(((const struct method *)state)->work) == SPMV_OK ? 0 : -1;
}

static void adapt(struct measure_options *options)
{
    *options = (struct measure_options){.most_runs = 1,
                                        .least_rounds = REPEATS_LEAST,
                                        .most_rounds = REPEATS_MOST,
                                        .spread = -1, /* as many as the time allows */
                                        .budget_seconds = SECONDS_ENOUGH,
                                        .long_seconds = DBL_MIN};
}

const struct load_figures *load_figures(const struct work *work)
{
    return work->state;
}

const struct operation operation_load = {.name = "load",
                                         .formula = "a matrix from a file",
                                         .on_file = true,
                                         .peer_op = -1,
                                         .methods = {work_no_names, work_open_only, run_load, NULL, NULL},
                                         .setup = setup_load,
                                         .adapt = adapt};
