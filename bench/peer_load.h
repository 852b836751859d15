/* Opens modules of peers (peer.h) by the names of peer_list.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PEER_LOAD_H
#define BENCH_PEER_LOAD_H

#include "device.h"
#include "peer.h"

/* Opens spmv_peer_NAME.so, and checks that it is for this interface and has the very peers of its row. It is looked for
 * in folder; when that is NULL, in the folders of the environment's SPMV_PEER_PATH (with : between them), then, from
 * the folder of the running program, in ../lib/spmv/peers, ../LIBDIR/spmv/peers, ../bench/peers and peers. The first
 * that is there counts. Modules stay loaded until the process ends: the runtimes that they bring (OpenMP's threads,
 * tables of a library) do not bear being unloaded.
 *
 * Returns 0; or -1 with *module NULL and a sentence in why (of WHY_SIZE characters): no such name, not there and what
 * would bring it, or why it does not open. */
int peer_load(const char *name, const char *folder, const struct peer_module **module, char *why);

#endif
