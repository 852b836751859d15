#!/bin/bash
# A module of peers shows spmv_peer_module and nothing else. usage: peer_symbols.sh NM MODULE
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
shown=$("$1" -D --defined-only --format=posix "$2" | awk '{ print $1 }')
[ "$shown" = spmv_peer_module ] || { echo "$2 shows: $shown" >&2 && exit 1; }
