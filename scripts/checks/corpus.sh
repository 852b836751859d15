#!/bin/bash
# Adds inputs found by fuzzing to the corpora of the fuzz targets, tests/fuzz/corpus_NAME.tar.xz.
#
# usage: corpus.sh [NAME...]    mtx, packed, exchange, binary, options, callbacks; default: all
#
# Run `check.sh fuzz` first: it builds the targets and collects new inputs in
# build/check-fuzz/found_NAME. libFuzzer's merge keeps those of the old and new inputs that add
# coverage, small ones first. An input with a descriptive name (libFuzzer's are 40 hexadecimal
# digits) is always kept: copy an input that failed into found_NAME under such a name.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || set -- mtx packed exchange binary options callbacks

cd "$root/build/check-fuzz" || { echo "corpus.sh: run check.sh fuzz first" >&2 && exit 1; }
for name in "$@"; do
    packed=$root/tests/fuzz/corpus_$name.tar.xz
    corpus=corpus_$name
    rm -rf old merged
    mkdir -p old "merged/$corpus" "found_$name"
    tar -C old -xf "$packed"
    find "old/$corpus" "found_$name" -type f -regextype egrep ! -regex '.*/[0-9a-f]{40}' -exec cp -t "merged/$corpus" {} +
    "tests/fuzz_$name" -merge=1 "merged/$corpus" "old/$corpus" "found_$name" </dev/null
    # The same inputs give the same file.
    tar -C merged --sort=name --format=ustar --mtime=@0 --mode=u=rwX,go=rX --owner=0 --group=0 --numeric-owner -cf - "$corpus" |
        xz -9e >"$packed"
done
