#!/bin/bash
# A module shows one symbol and nothing else. usage: peer_symbols.sh NM MODULE [SYMBOL], spmv_peer_module when absent
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
shown=$("$1" -D --defined-only --format=posix "$2" | awk '{ print $1 }')
[ "$shown" = "${3-spmv_peer_module}" ] || { echo "$2 shows: $shown" >&2 && exit 1; }
