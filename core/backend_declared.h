/* Declares the primitives of a backend. Included once per backend with BACKEND(name) defined as
 * name_ref and the like, so that the compiler checks the functions against their table.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
spmv_status BACKEND(map)(spmv_context *, spmv_function, spmv_type, const void *, void *, int64_t);
spmv_status BACKEND(map_binary)(spmv_context *, spmv_op, spmv_type, const void *, const void *, void *, int64_t);
spmv_status BACKEND(map_scalar)(spmv_context *, spmv_op, spmv_type, const void *, const void *, void *, int64_t);
spmv_status BACKEND(map_index)(spmv_context *, spmv_type, const void *, const void *, void *, int64_t);
spmv_status BACKEND(map_divide)(spmv_context *, spmv_type, const void *, const void *, void *, int64_t);
spmv_status BACKEND(map_axpby)(spmv_context *, spmv_type, const void *, const void *, const void *, void *, int64_t);
int64_t BACKEND(dot_scratch)(const spmv_context *, spmv_type, int64_t);
spmv_status BACKEND(dot)(spmv_context *, spmv_type, const void *, const void *, void *, int64_t, void *);
spmv_status BACKEND(gather)(spmv_context *, const struct move *);
spmv_status BACKEND(scatter)(spmv_context *, const struct move *);
int64_t BACKEND(index_check_scratch)(const spmv_context *, int64_t);
spmv_status BACKEND(index_check)(spmv_context *, const void *, int, int64_t, int64_t, int64_t, int64_t *, int64_t *,
                                 void *);
spmv_status BACKEND(filter_map)(spmv_context *, const struct filter *, spmv_type, const void *, int64_t *, int64_t);
int64_t BACKEND(compact_scratch)(const spmv_context *, spmv_type, int64_t);
spmv_status BACKEND(compact)(spmv_context *, const struct filter *, spmv_type, const void *, void *, int64_t *, int64_t,
                             void *);
int64_t BACKEND(expand_scratch)(const spmv_context *, int64_t);
spmv_status BACKEND(expand_offsets)(spmv_context *, const void *, int, int64_t *, int64_t, void *);
spmv_status BACKEND(expand)(spmv_context *, spmv_expand_form, const struct expansion *);
int64_t BACKEND(reduce_scratch)(const spmv_context *, spmv_type, int64_t);
spmv_status BACKEND(reduce)(spmv_context *, spmv_op, spmv_type, const void *, void *, int64_t, void *);
spmv_status BACKEND(map_reduce)(spmv_context *, spmv_function, spmv_op, spmv_type, const void *, void *, int64_t,
                                void *);
const struct reduce_rung *BACKEND(reduce_rungs)(void);
int64_t BACKEND(scan_scratch)(const spmv_context *, spmv_type, int64_t);
spmv_status BACKEND(scan)(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const void *, void *, int64_t, void *);
spmv_status BACKEND(map_scan)(spmv_context *, spmv_function, spmv_scan_kind, spmv_op, spmv_type, const void *, void *,
                              int64_t, void *);
const struct scan_rung *BACKEND(scan_rungs)(void);
spmv_status BACKEND(flags_pack)(spmv_context *, const uint8_t *, uint32_t *, int64_t);
spmv_status BACKEND(flags_unpack)(spmv_context *, const uint32_t *, uint8_t *, int64_t);
int64_t BACKEND(segscan_scratch)(const spmv_context *, spmv_type, const spmv_segments *, int64_t);
spmv_status BACKEND(segscan)(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const spmv_segments *, const void *,
                             void *, int64_t, void *);
const struct scan_rung *BACKEND(segscan_rungs)(void);
extern const struct sort_rung BACKEND(sort_rungs)[];
extern const struct histogram_rung BACKEND(histogram_rungs)[];
int64_t BACKEND(segreduce_scratch)(const spmv_context *, spmv_type, const spmv_segments *, int64_t);
spmv_status BACKEND(segreduce)(spmv_context *, spmv_op, spmv_type, const spmv_segments *, const void *, void *, int64_t,
                               void *);
