#!/bin/bash
# Planted bugs: each mutant is one changed line (or two) in a scratch copy of the tree, and a named test must fail because
# of it. A mutant that survives, does not compile, or whose text is no longer found exactly once fails this script.
# R. A. DeMillo, R. J. Lipton, F. G. Sayward, "Hints on test data selection", Computer 11(4), 1978.
#
# usage: mutate.sh [WORD]     only mutants whose name contains WORD
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/build.sh"

# mutants FUNCTION: calls FUNCTION once a mutant: NAME FILE TEXT REPLACEMENT TESTS. TEXT stands once in FILE, as it is;
# TESTS is ctest's regular expression of the tests of which at least one must fail.
mutants() {
    # Tiles.
    "$1" "tiles: the last one is dropped" primitives/runtime/host_tiles.h \
        'return ceil_divide(n, HOST_TILE);' \
        'return max_i64(1, n / HOST_TILE);' '^test_map\.omp$'
    "$1" "reduce: the last tile is dropped" primitives/reduce/reduce_omp.c \
        'tiles_each(ctx, tiles_of(n), fold_tile, &job);
    job.loops->fold(scratch, 0, tiles_of(n), out);' \
        'tiles_each(ctx, tiles_of(n), fold_tile, &job);
    job.loops->fold(scratch, 0, max_i64(1, tiles_of(n) - 1), out);' '^test_reduce\.omp$'
    "$1" "product: the last tile is dropped" spmv/spmv_omp.c \
        'const int64_t count = tiles->count;' \
        'const int64_t count = max_i64(1, tiles->count - 1);' '^test_spmv\.omp$'

    # The order of operands.
    "$1" "combine: operands swapped between tiles" primitives/runtime/loops.c \
        'loops->combine(&carry->value, part, &carry->value);' \
        'loops->combine(part, &carry->value, &carry->value);' '^test_scan\.omp$'
    "$1" "fold: operands swapped inside a tile" primitives/runtime/loops_typed.h \
        'TYPED(op)(TYPED(four)(x), TYPED(four)(x + 4))' \
        'TYPED(op)(TYPED(four)(x + 4), TYPED(four)(x))' '^test_reduce\.omp$'
    "$1" "scan: operands swapped in the definition" primitives/scan/scan_ref_typed.h \
        'out[i] = all = TYPED(op)(all, in[i]);' \
        'out[i] = all = TYPED(op)(in[i], all);' '^test_scan\.ref$'

    # Carries.
    "$1" "scan: the carry of all tiles but the last is skipped" primitives/scan/scan_omp.c \
        'carry_join(job->loops, &job->carry, part);' \
        'memcpy(&job->carry.value, part, job->loops->size), job->carry.some = true;' '^test_scan\.omp$'
    "$1" "segscan: a head does not end the carry" primitives/segscan/segscan_omp.c \
        'if (job->part[t].head)
        carry_restart' \
        'if (t < 0)
        carry_restart' '^test_segscan\.omp$'
    "$1" "segreduce: the carry into a tile is skipped" primitives/segscan/segreduce_omp.c \
        'carry_join(job->loops, &open, &part->lead.value);' \
        'open = part->lead;' '^test_segreduce\.omp$'
    "$1" "product: the carry through a whole tile is skipped" spmv/spmv_omp_typed.h \
        'open = continues ? open + tail[t] : tail[t];' \
        'open = tail[t];' '^test_spmv\.omp$'

    # Rows in a few forms, and parts of the threads.
    "$1" "forms: a form is thought to begin with its stretch" spmv/spmv_omp_forms.c \
        'moves ? (int32_t)(form->row - begin) : 0' \
        'moves ? (int32_t)(begin - begin) : 0' '^test_spmv_omp$'
    "$1" "forms: columns that stay move" spmv/spmv_omp_typed.h \
        'column += by & moves;' \
        'column += by;' '^test_spmv_(omp|types\.omp)$'
    "$1" "forms: columns of 16 bits behind them" spmv/spmv_omp_typed.h \
        's->left_out += (next - begin) * stretch.n;' \
        's->left_out += 0;' '^test_spmv_omp$'
    "$1" "forms: a third row need not agree with the second" spmv/spmv_omp_forms.c \
        'if (form->settled_k < 0) {' \
        'if (form->settled_k < k) {' '^test_spmv_omp$'
    "$1" "by length: values of 4 bytes as seldom as those of 8" spmv/spmv_omp_look.c \
        'spmv_type_size(a->type) == 8 ?' \
        'spmv_type_size(a->type) >= 4 ?' '^test_spmv_omp$'
    "$1" "parts: of as many tiles, not bytes" spmv/spmv_omp.c \
        'tiles->tile[t].bytes < total / threads * p + total % threads * p / threads' \
        'tiles->tile[t].bytes < total && t < tiles->count / threads * p' '^test_spmv_omp$'

    # Ends.
    "$1" "segscan: a head on the last element of a tile is lost" primitives/segscan/segscan_omp.c \
        'if (head < tile->end)' \
        'if (head + 1 < tile->end)' '^test_segscan\.omp$'
    "$1" "product: a row ends one entry early" spmv/spmv_omp_typed.h \
        'TYPED(dot)(e, how, end - begin)' \
        'TYPED(dot)(e, how, end - begin - 1)' '^test_spmv\.omp$'
    "$1" "staged: the last element of the row before is taken" spmv/spmv_staged.c \
        'const void *end = (const char *)a->row_ptr + a->row_ptr_bits / 8;' \
        'const void *end = a->row_ptr;' '^test_spmv\.(ref|omp)$'

    "$1" "fused: what is open before a thread is skipped" spmv/spmv_3_fused.cuh \
        'before.value + lead' \
        'lead' '^test_fused\.host_cuda$'
    "$1" "fused: a row that begins with a tile waits for a carry" spmv/spmv_3_fused.cuh \
        'c.rows.begin(first) < begin;' \
        'c.rows.begin(first) <= begin;' '^test_fused\.host_cuda$'
    "$1" "fused: a warp adds the end of another row" spmv/spmv_3_fused.cuh \
        'store(of + n, sum);' \
        'store(of + n - 1, sum);' '^test_fused\.host_cuda$'
    "$1" "fused: empty rows are not scaled" spmv/spmv_3_fused.cuh \
        's.store(T(), &y[row]);' \
        'y[row] = T();' '^test_fused\.host_cuda$'

    # Identities and operators.
    "$1" "segreduce: an empty segment gives 0, whatever the operator" primitives/segscan/segreduce_omp.c \
        'job->loops->identity(out);' \
        'memset(out, 0, job->loops->size);' '^test_segreduce\.omp$'
    "$1" "identity: min of nothing is 0" include/spmv/operators.h \
        '#define SPMV_ID_MIN_REAL(T) ((T)INFINITY)' \
        '#define SPMV_ID_MIN_REAL(T) ((T)0)' '^test_(lists|reduce\.(ref|omp))$'
    "$1" "min: a NaN is lost" include/spmv/operators.h \
        '((a) < (b) || (a) != (a) ? (a) : (b))' \
        '((a) < (b) ? (a) : (b))' '^test_(lists|reduce\.(ref|omp))$'

    # Matrices.
    "$1" "duplicates: the first of them is lost" formats/rows_typed.h \
        'TYPED(sum)(val[kept], val[k])' \
        'val[k]' '^test_matrix\.(ref|omp)$'
    "$1" "skew-symmetric: the mirrored entry keeps its sign" formats/coo.c \
        'if (coo->mirror == COO_MIRROR_NEGATED && size > 0)' \
        'if (coo->mirror > COO_MIRROR_NEGATED && size > 0)' '^test_matrix\.(ref|omp)$'

    # The check of a result.
    "$1" "verify: infinite against finite passes" spmv/verify.c \
        'return is_finite(y) == is_finite(r) ? 0 : (double)INFINITY;' \
        'return 0;' '^test_verify\.(ref|omp)$'
    "$1" "verify: underflow before alpha" spmv/verify.c \
        'terms * fmaxl(1, q->alpha) + 2' \
        'terms + 2' '^test_verify\.(ref|omp)$'
    "$1" "verify: the bound is four times too wide" spmv/verify.c \
        '2 * (terms + (complex ? 6 : 3)) * q->roundoff * magnitude' \
        '8 * (terms + (complex ? 6 : 3)) * q->roundoff * magnitude' '^test_verify\.(ref|omp)$'

    # Plans.
    "$1" "update: new values are not conjugated" spmv/plan_matrix.c \
        'csr_conjugate(plan->ctx, plan->transposed);' \
        '(void)to;' '^test_update_values\.(ref|omp)$'
    "$1" "update: numbers of the transpose instead of A" formats/transpose.c \
        '((int32_t *)from.number)[at] = (int32_t)k;' \
        '((int32_t *)from.number)[at] = (int32_t)at;' '^test_update_values\.(ref|omp)$'
    "$1" "vectors: the begin of a row in the tile before is lost" spmv/spmv_omp_columns.h \
        'PLUS(open, head)' \
        'head' '^test_spmv_types\.omp$'
    "$1" "array: the upper half of a skew one keeps its sign" formats/io/arrays.c \
        'value->f64[0] = turn_first ? -value->f64[0] : value->f64[0];' \
        'value->f64[0] = value->f64[0];' '^test_mtx_read$'
    "$1" "array: a bad number behind the last is none too many" formats/io/entries.c \
        'const bool excess = found->entries + found->entry_is_bad > left;' \
        'const bool excess = found->entries > left;' '^test_mtx_read$'
    "$1" "archive: the checksum behind the member is not met" formats/io/packed.c \
        'while (n > 0 && st == SPMV_OK)' \
        'while (n > 1 && st == SPMV_OK)' '^test_packed$'
    "$1" "buckets: blocks before the last are forgotten" formats/coo_buckets.c \
        'chain->closed += chain->last->bytes;' \
        'chain->closed = chain->last->bytes;' '^test_buckets$'
    "$1" "buckets: large pages stay until the matrix is there" formats/coo_buckets.c \
        'madvise(chunk->memory, LARGE_PAGE, MADV_DONTNEED);' \
        'continue;' '^test_mtx_read$'
    "$1" "reader: the sign is lost by AVX2" formats/io/decimal_avx2.h \
        'bits |= negative << 63;' \
        'bits |= 0;' '^test_tile_entries$'
    "$1" "reader: what lies near half a unit is rounded at once" formats/io/decimal.h \
        'if (rest - (half - 5) <= 5 ||' \
        'if (rest == half ||' '^test_tile_entries$'
    "$1" "reader: the plain way takes any row" formats/io/tile_entries_parse.h \
        'if (rest == NULL || *index < 1 || *index > limit)' \
        'if (rest == NULL || *index < 1)' '^test_mangled\.plain$'
    "$1" "rows: entries of one column fall on each other" formats/rows.c \
        'place[i] = smaller[i] + same[smaller[i]]++;' \
        'place[i] = smaller[i] + same[smaller[i]];' '^test_buckets$'
    "$1" "output: the set-id bits are taken over" formats/io/output_file.c \
        'old->st_mode & 0777' \
        'old->st_mode & 07777' '^test_outputs$'
    "$1" "output: the group keeps what it had" formats/io/output_file.c \
        'mode &= 0707 | (mode & 07) << 3;' \
        'mode &= 0777;' '^test_outputs$'
    "$1" "output: a skew-symmetric mirror keeps its sign" formats/io/mtx_write.c \
        'symmetry == SPMV_SYMMETRY_SKEW || (symmetry == SPMV_SYMMETRY_HERMITIAN && i == 1' \
        '(symmetry == SPMV_SYMMETRY_HERMITIAN && i == 1' '^test_outputs$'
    "$1" "output: gzip holds the time" formats/io/packed.c \
        'lib->archive_write_set_filter_option(a, "gzip", "timestamp", NULL) == ARCHIVE_OK' \
        'a != NULL' '^test_outputs$'
    "$1" "unfinished: the file in use is taken for a left-over one" formats/io/unfinished.c \
        's.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0' \
        's.st_uid == geteuid()' '^test_outputs$'
    "$1" "vectors: the sum of the binary form is not compared" formats/io/binary_vector.c \
        'if (sum != head.values_sum) {' \
        'if (false) {' '^test_vector$'
    "$1" "vectors: the first alone is checked" app/product.c \
        'for (int v = 0; v < p->vectors && st == SPMV_OK; v++) {' \
        'for (int v = 0; v < 1 && st == SPMV_OK; v++) {' '^test_program$'
    "$1" "vectors: y is packed whatever its stride" spmv/spmv_omp_columns.h \
        'copy.y + row * copy.y_stride + first' \
        'copy.y + row * copy.vectors + first' '^test_spmv_types\.omp$'
    "$1" "epilogue: rows that cross tiles are left out" spmv/spmv_omp_typed.h \
        'dot += TYPED(epilogue)(e, s->y, &s->y[from.row], from.row, from.row + 1);' \
        'continue;' '^test_epilogue\.omp$'
    "$1" "epilogue: the first of the last rows is lost" spmv/spmv_omp_epilogue.h \
        'for (int j = 0; i + j < n; j++)' \
        'for (int j = 1; i + j < n; j++)' '^test_epilogue\.omp$'
    "$1" "epilogue: each piece of a long row adds 0 for the first" spmv/spmv_4_tiles_epilogue.cuh \
        'if (t != first_tile)' \
        'if (t != first_tile || !stored)' '^test_epilogue\.host_cuda$'
    "$1" "epilogue: the tree ends at its first node" spmv/spmv_4_tiles_epilogue.cuh \
        'n > 1; n = nodes) {' \
        'n > 1; n = 1) {' '^test_epilogue\.host_cuda$'
    "$1" "tiles: a share is retained as if there were no vectors" spmv/spmv_4_tiles.cu \
        'RETAINED_PERCENT / 100 - vectors;' \
        'RETAINED_PERCENT / 100 - 0 * vectors;' '^test_tiles\.host_cuda$'
    "$1" "auto: another than jacobi on a GPU" solvers/precond_choose.c \
        'if (ctx->backend->id == SPMV_BACKEND_CUDA) {
        *name = "jacobi";' \
        'if (ctx->backend->id == SPMV_BACKEND_CUDA) {
        *name = "chebyshev";' '^test_precond\.host_cuda$'
    "$1" "stretches: one is a column too long" spmv/spmv_4_tiles_plan.cuh \
        'bin += STRETCH >> shift;' \
        'bin += (STRETCH >> shift) + 1;' '^test_tiles\.host_cuda$'
    "$1" "stretches: the bins of a wide tile are too narrow" spmv/spmv_4_tiles_plan.cuh \
        'while (span >> shift >= WORDS * WARP)' \
        'while (span >> shift >= 2 * WORDS * WARP)' '^test_tiles\.host_cuda$'
    "$1" "plan: a segment's tiles begin where the first one's do" spmv/spmv_4_tiles_plan.cuh \
        'add_packed()(before, t.before);' \
        'add_packed()(before, before);' '^test_tiles\.host_cuda$'
    "$1" "launch: nothing keeps blocks from an SM" primitives/runtime/launch.cuh \
        'return more > 0 ? more : 0;' \
        'return more > 0 ? 0 : 0;' '^test_cuda_host_parts$'
    "$1" "stretches: a column is looked for in the one before" spmv/spmv_4_tiles_plan.cuh \
        'begins[k + step] <= column ? step : 0;' \
        'begins[k + step] < column ? step : 0;' '^test_tiles\.host_cuda$'
    "$1" "plan: no room for the pieces of long rows" spmv/spmv_4_tiles_plan.cuh \
        'segments + 1) + most_long_rows();' \
        'segments + 1);' '^test_tiles\.host_cuda$'
    "$1" "plan: 16-bit columns stay for a few tiles" spmv/spmv_4_tiles.cu \
        '2 * s->about.narrow < s->about.filled)' \
        's->about.narrow > s->about.filled)' '^test_tiles\.host_cuda$'
    "$1" "plan: 16-bit columns must have memory" spmv/spmv_4_tiles.cu \
        'plan_alloc_if_room(plan, plan->a.nnz * 2, &s->narrow);' \
        'plan_alloc(plan, plan->a.nnz * 2, &s->narrow);' '^test_value_table\.host_cuda$'
    "$1" "plan: the pool does not look at what it keeps" spmv/plan.c \
        'context_freed(ctx);' \
        '(void)ctx;' '^test_value_table\.host_cuda$'
    "$1" "context: a pool without its threshold is lost" primitives/runtime/backend_cuda.c \
        'if (s->pool != NULL && cudaMemPoolDestroy(s->pool) != cudaSuccess)' \
        'if (s->dead && cudaMemPoolDestroy(s->pool) != cudaSuccess)' '^test_cuda_context\.host_cuda$'
    "$1" "context: kept blocks do not give way to scratch" primitives/runtime/context.c \
        'alloc_by(ctx, ctx->backend->alloc, bytes, &larger);' \
        'ctx->backend->alloc(ctx, bytes, &larger);' '^test_cuda_context\.host_cuda$'
    "$1" "plan: no memory comes from the pool" primitives/runtime/backend_cuda.c \
        'return alloc_from(ctx, state_of(ctx)->pool, bytes, memory);' \
        'return alloc_from(ctx, NULL, bytes, memory);' '^test_cuda_context\.host_cuda$'
    "$1" "persistent: the sum ahead lacks a term" solvers/cg_4_persistent.cuh \
        'alpha * (alpha * gamma - (delta + delta))' \
        'alpha * (alpha * gamma - delta)' '^test_cg_rungs\.host_cuda$'
    "$1" "persistent: the true residual is of no x" solvers/cg_4_persistent.cuh \
        'pair<T> its = {rows.x[k], T()};' \
        'pair<T> its = {T(), T()};' '^test_cg_rungs\.host_cuda$'

    # Preconditioners.
    "$1" "ic0: the shift makes pivots smaller" solvers/precond_ic0_factor.c \
        'a->val[last] + shift * a->val[last];' \
        'a->val[last] - shift * a->val[last];' '^test_precond\.ref$'
    "$1" "ic0: tiles do not wait for those they need" solvers/precond_ic0.c \
        'memory_order_acquire) < tile.after) {' \
        'memory_order_acquire) < 0) {' '^test_precond\.omp$'
    "$1" "ic0: no barrier between levels on a GPU" solvers/precond_cuda.cu \
        '__syncthreads();' \
        '' '^test_precond\.host_cuda$'
    "$1" "chebyshev: a sign in the recurrence" solvers/precond_chebyshev.c \
        '1 / (2 * sigma - rho)' \
        '1 / (2 * sigma + rho)' '^test_precond\.ref$'
    "$1" "block-jacobi: a block that falls leaves 1 instead of its diagonal" solvers/precond_block_jacobi.c \
        '1 / inversion->source->diagonal[first + i]' \
        '1' '^test_precond\.ref$'

    # Conjugate gradients.
    "$1" "cg: a step that made the residual larger is kept" solvers/krylov.c \
        'stop == SPMV_ERROR_NOT_FINITE) && start < residual)' \
        'stop == SPMV_ERROR_NOT_FINITE) && false)' '^test_cg(_rungs)?\.ref$'
    "$1" "cg: restarts are not counted" solvers/krylov.c \
        '            result->restarts++;
' \
        '' '^test_cg(_rungs)?\.ref$'
    "$1" "cg: squares that vanish fit" solvers/krylov_scale.c \
        'least < (narrow ? 0x1p-56 : 0x1p-500)' \
        'least < 0' '^test_cg_scale\.ref$'
    "$1" "cg: atol is not scaled" solvers/krylov_scale.c \
        's->atol = atol * scale;' \
        's->atol = atol;' '^test_cg_scale\.ref$'
    "$1" "cg: a direction moves as r does, not as M^-1 r" solvers/cg.c \
        '        z = s->q;
' \
        '' '^test_cg_scale\.ref$'
    "$1" "cg: the limit is a failure where x is good enough" solvers/krylov.c \
        '} else if (arrived &&' \
        '} else if (false &&' '^test_cg_scale\.ref$'
    "$1" "cg: the recurrence runs below the roundoff" solvers/krylov.h \
        'return c->tolerance > last ? c->tolerance : last;' \
        'return c->tolerance;' '^test_cg(_rungs)?\.ref$'
    "$1" "cg: r'z <= 0 is not looked at" solvers/cg_internal.h \
        ' || c->rz <= 0' \
        '' '^test_cg_(rungs|several)\.ref$'
    "$1" "cg: the limit is reached one step late, textbook" solvers/cg_1_textbook.c \
        'else if (c->iterations >= c->limit)' \
        'else if (c->iterations > c->limit)' '^test_cg(_rungs)?\.ref$'
    "$1" "cg: the limit is reached one step late, fused" solvers/cg_2_fused_omp_typed.h \
        'job->state[v].iterations >= job->state[v].limit' \
        'job->state[v].iterations > job->state[v].limit' '^test_cg_rungs\.omp$'
    "$1" "cg: p'q of the begin of a row in the tile before is lost" solvers/cg_2_fused_omp_typed.h \
        'pq[v] += job->p[tile[1].begin.row * k + v] * tail[t * k + v];' \
        'continue;' '^test_cg_rungs\.omp$'
    "$1" "cg: q of a row through whole tiles" solvers/cg_2_fused_omp_typed.h \
        'sum += tail[u * k + v];' \
        'sum += 0;' '^test_cg_rungs\.omp$'
    "$1" "cg: the last rows of a tile are not scaled" solvers/cg_2_fused_omp_typed.h \
        '        if (jacobi)
            sz[j] += value * (d[i + j] * value);
    }
    job->rr[0]' \
        '    }
    job->rr[0]' '^test_cg_rungs\.omp$'
    "$1" "cg: threads that sleep are not woken" solvers/cg_2_fused_omp.c \
        '        pthread_cond_broadcast(&w->opened);
' \
        '' '^test_cg_rungs\.omp$'
    "$1" "cg: an inner breakdown is believed" solvers/cg_inner.c \
        '    if (pq <= 0)
' \
        '    if (true)
' '^test_cg_rungs\.ref$'
    "$1" "cg: inner corrections in units of b" solvers/cg_inner.c \
        'widen(cg, in->x, 1 / in->scale, cg->s.q)' \
        'widen(cg, in->x, 1, cg->s.q)' '^test_cg_rungs\.ref$'
    "$1" "cg: signs tell symmetry" solvers/cg_symmetry.c \
        'const double modulus = 1 + (double)(int)(own >> 1 & 1023) / 1024;' \
        'const double modulus = 1;' '^test_cg\.ref$'

    # Several right-hand sides.
    "$1" "cg several: the first column's r for all" solvers/cg_1_textbook.c \
        'cg_precondition(cg, r, column_of(cg, own->z, v))' \
        'cg_precondition(cg, own->r, column_of(cg, own->z, v))' '^test_cg_several\.ref$'
    "$1" "cg several: r'r instead of r'z" solvers/cg_1_textbook.c \
        'own->z != NULL ? values[RZ * k + v] : c->rr' \
        'c->rr' '^test_cg_(several|rungs)\.ref$'
    "$1" "cg several: a column that broke takes a step more" solvers/cg_1_textbook.c \
        '    return cg->s.column[v].stop == COLUMN_RUNS;' \
        '    return cg->s.column[v].stop == COLUMN_RUNS || cg->s.column[v].stop == COLUMN_BROKEN;' '^test_cg_several\.ref$'
    "$1" "cg several: columns lie side by side, not apart" solvers/cg_1_textbook.c \
        '(size_t)(v * own->stride) * spmv' \
        '(size_t)(v * (own->stride - 32)) * spmv' '^test_cg_several\.ref$'
    "$1" "cg several: the first failure in time is told" solvers/krylov.c \
        '(s->first < 0 || v < s->first)' \
        's->first < 0' '^test_cg_several\.ref$'
    "$1" "cg several: a column that is settled runs again" solvers/krylov.c \
        '.stop = runs ? COLUMN_RUNS : COLUMN_DONE}' \
        '.stop = COLUMN_RUNS}' '^test_cg_several\.omp$'
    "$1" "cg several: the columns' x is not taken back" solvers/krylov.c \
        '    TRY(replace_columns(s, s->flags, s->start_x));
' \
        '' '^test_cg_(several|rungs)\.ref$'
    "$1" "cg several on a GPU: a column that is done takes the steps of the others" solvers/cg_2_fused_columns.cuh \
        'const bool steps = c->stop == COLUMN_RUNS;' \
        'const bool steps = c->stop != COLUMN_BROKEN;' '^test_cg_several\.host_cuda$'
    "$1" "cg several on a GPU: the parts of the first blocks alone" solvers/cg_2_fused_columns.cuh \
        'block < count; block += at.slots' \
        'block < count; block += count' '^test_cg_several\.host_cuda$'
    "$1" "cg several on a GPU: what the last threads of a column add up is lost" solvers/cg_2_fused_columns.cuh \
        'slot < at.slots; slot += KEPT' \
        'slot + KEPT < at.slots; slot += KEPT' '^test_cg_several\.host_cuda$'
    "$1" "cg several on a GPU: the first column's history for all" solvers/cg_blocks.cuh \
        'sqrt((double)columns[v].history' \
        'sqrt((double)columns[0].history' '^test_cg_several\.host_cuda$'
    "$1" "cg several on a GPU: a warp's part of p'q is lost" spmv/spmv_5_columns.cuh \
        'for (int warp = 1; warp < BLOCK_WARPS; warp++)
            all' \
        'for (int warp = 2; warp < BLOCK_WARPS; warp++)
            all' '^test_cg_several\.host_cuda$'
    "$1" "solve: a time left far ahead" app/solve_pace.c \
        'if (!(left <= far_ahead * last))' \
        'if (!(left <= 1e9))' '^test_pace$'
    "$1" "solve: what was used is recommended" app/solve_advice.c \
        'if (strcmp(o->precond, "none") == 0)' \
        'if (strcmp(o->precond, "all") != 0)' '^test_solve$'
    "$1" "explain: a step that works on elements counts as idle" primitives/reduce/reduce_levels.cuh \
        'apart >= reduce_room(left)' \
        '2 * apart >= reduce_room(left)' '^test_explain$'
    "$1" "packages: padding belongs to the name of a group" scripts/packages.sh \
        "packages_table | sed 's/ *|.*//' | sort -u" \
        "packages_table | sed 's/ |.*//' | sort -u" '^scripts\.groups$'
    "$1" "solve several: the first residual alone is compared" app/solve_check.c \
        'while (v < job->columns && norms_agree(' \
        'while (v < 1 && norms_agree(' '^test_program$'
    "$1" "solve several: x of an indefinite matrix is written" app/solve_attempt.c \
        'any = a->each[v].status != SPMV_ERROR_NOT_POSITIVE;' \
        'any = true;' '^test_program$'
    "$1" "solve several: errors of all columns in each" app/solve_attempt.c \
        '        a->error[v] = 0;
        for (int64_t i = v;' \
        '        a->error[v] = 0;
        for (int64_t i = 0;' '^test_program$'
    "$1" "solve several: the summary's order" app/solve_columns.c \
        'return distance(r) > distance(than);' \
        'return distance(r) < distance(than);' '^test_program$'
}

only=${1-}
scratch=$root/build/mutate
tree=$scratch/tree
build=$scratch/build
survivors=0
caught=0

quiet() {
    "$@" >"$scratch/log" 2>&1 </dev/null
}

build_scratch() {
    quiet cmake --build "$build" -j "$jobs"
}

tests_pass() {
    quiet ctest --test-dir "$build" --no-tests=error --timeout 60 -j "$jobs" -R "$1"
}

# Replaces the one place where the text stands; 1 when there is not exactly one. The file's time moves with it.
replace_once() {
    TEXT=$2 REPLACEMENT=$3 perl -0777 -pi -e '
        my $n = () = /\Q$ENV{TEXT}\E/g;
        $n == 1 or die "found $n times\n";
        s/\Q$ENV{TEXT}\E/$ENV{REPLACEMENT}/;' "$1"
}

survived() {
    echo "SURVIVED: $1: $2"
    survivors=$((survivors + 1))
}

# Before any mutant: the named test passes on the tree as it is, or its failing would say nothing.
baseline() {
    local name=$1 tests=$5
    [[ $name == *"$only"* ]] || return 0
    tests_pass "$tests" || { cat "$scratch/log" && echo "mutate.sh: $tests does not pass on the tree as it is" >&2 && exit 1; }
}

run_mutant() {
    local name=$1 file=$2 text=$3 replacement=$4 tests=$5
    [[ $name == *"$only"* ]] || return 0
    cp -p "$tree/$file" "$scratch/original"
    if ! replace_once "$tree/$file" "$text" "$replacement"; then
        survived "$name" "its text no longer stands exactly once in $file"
    elif ! build_scratch; then
        survived "$name" "does not compile: $(grep -m1 -E 'error' "$scratch/log" || true)"
    elif tests_pass "$tests"; then
        survived "$name" "$tests passes"
    else
        echo "caught: $name ($file): $(sed -n 's/^[[:space:]]*[0-9]* - \([^ ]*\) (.*/\1/p' "$scratch/log" | paste -sd' ')"
        caught=$((caught + 1))
    fi
    cp "$scratch/original" "$tree/$file" # with a new time, so that it is built again
}

# The scratch copy: only what changed is copied, so that its build stays incremental from run to run.
mkdir -p "$tree"
git -C "$root" ls-files --cached --others --exclude-standard | sort >"$scratch/files"
while IFS= read -r file; do
    [ -e "$root/$file" ] || continue
    if ! cmp -s "$root/$file" "$tree/$file"; then
        mkdir -p "$(dirname "$tree/$file")"
        cp "$root/$file" "$tree/$file"
    fi
done <"$scratch/files"
(cd "$tree" && find . -type f | sed 's|^\./||' | sort | comm -23 - "$scratch/files" | xargs -r -d '\n' rm --)

quiet cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSPMV_CUDA=OFF -DBUILD_TESTING=ON ||
    { cat "$scratch/log" && exit 1; }
build_scratch || { tail -n 40 "$scratch/log" && exit 1; }
mutants baseline
mutants run_mutant
echo "$caught mutants caught, $survivors not"
[ "$caught" -gt 0 ] && [ "$survivors" -eq 0 ]
