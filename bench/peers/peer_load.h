/* Opens modules of peers (peer.h) by the names of peer_list.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PEER_LOAD_H
#define BENCH_PEER_LOAD_H

#include "bench/devices/device.h"
#include "bench/peers/peer.h"

/* Opens spmv_peer_NAME.so, and checks that others cannot have written it (trust.h), the version of
 * the interface, and that its peers match its row. Searches folder; if that is NULL, the folders of the environment variable SPMV_PEER_PATH
 * (separated by :; ignored in a set-uid program), then, relative to the folder of the running program, ../lib/spmv/peers,
 * ../LIBDIR/spmv/peers, ../bench/peers and peers. The first match is used. Modules stay loaded
 * until the process ends, because their runtimes (OpenMP's threads, tables of a library) cannot be
 * unloaded safely.
 *
 * Returns 0; or -1 with *module NULL and a message in why (WHY_SIZE characters): unknown name,
 * missing file and what it needs, or why it does not open. */
int peer_load(const char *name, const char *folder, const struct peer_module **module, char *why);

#endif
