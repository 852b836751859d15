#!/bin/bash
# Runs the tests of a bundle without CMake, wherever the bundle is. In the bundle this file is
# run_tests.sh.
#
# usage: run_tests.sh [LABEL] [-R NAME] [-j N] [-o FOLDER] [-l]
#
#   LABEL      an extended regular expression: only tests with a label that matches as a whole (gpu,
#              gpu-sanitize, 'gpu|gpu-repeat', 'gpu.*'); default: all tests
#   -R NAME    only tests whose name contains a match of this regular expression
#   -j N       number of parallel tests (default 1)
#   -o FOLDER  where to keep a log of each test (default: a new folder in TMPDIR or /tmp, printed at
#              the end)
#   -l         only lists the tests and their labels
#
# Prints one line per test, then the last lines of the logs of failed tests, then "N passed, N
# failed, N skipped". Exit status 1 if a test failed or none was found. Tests on many matrices read
# the folder SPMV_MATRICES, or matrices/ in the bundle.
#
# SPDX-License-Identifier: BSD-3-Clause
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # list.sh uses it
matrices=${SPMV_MATRICES:-$here/matrices}
export SPMV_SOURCE_DIR=$here/source

label="" name_wanted="" at_once=1 logs="" only_list=""
usage() {
    sed -n 's/^# \{0,1\}//; 3,/^One line/p' "${BASH_SOURCE[0]}" | sed '$d' >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    -R | -j | -o)
        [ $# -gt 1 ] || usage
        case $1 in
        -R) name_wanted=$2 ;;
        -j) at_once=$2 ;;
        -o) logs=$2 ;;
        esac
        shift
        ;;
    -l) only_list=yes ;;
    -*) usage ;;
    *)
        [ -z "$label" ] || usage
        label=$1
        ;;
    esac
    shift
done
[[ $at_once =~ ^[1-9][0-9]*$ ]] || usage
if [ -z "$only_list" ]; then
    if [ -n "$logs" ]; then mkdir -p "$logs"; else logs=$(mktemp -d "${TMPDIR:-/tmp}/spmv-tests.XXXXXX"); fi || exit 1
    logs=$(cd "$logs" && pwd)
    rm -f "$logs"/*.result
fi

labels_match() {
    [ -n "$label" ] || return 0
    local one
    for one in $1; do
        [[ ! $one =~ ^($label)$ ]] || return 0
    done
    return 1
}

# entry NAME LABELS TIMEOUT SKIP_CODE [VARIABLE=VALUE...] COMMAND...
found=0
entry() {
    labels_match "$2" && [[ $1 =~ $name_wanted ]] || return 0
    found=$((found + 1))
    if [ -n "$only_list" ]; then
        printf '%-36s %s\n' "$1" "$2"
        return
    fi
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n || true; done
    run_one "$1" "$3" "$4" "${@:5}" &
}

# alone entry ...: runs the test while no other one runs
alone() {
    [ -n "$only_list" ] || wait
    "$@"
    [ -n "$only_list" ] || wait
}

# Prints the program of a command, which follows its variables, if this system lacks it.
lacking() {
    local word
    for word in "$@"; do
        case $word in
        [A-Za-z_]*=*) ;;
        */*) return ;;
        *)
            command -v "$word" >/dev/null || echo "$word"
            return
            ;;
        esac
    done
}

# run_one NAME TIMEOUT SKIP_CODE COMMAND...: prints one line, and writes NAME.log and NAME.result in
# the folder of logs
run_one() {
    local name=$1 limit=$2 skip=$3 work start child lacking status=0 result=passed note=""
    shift 3
    lacking=$(lacking "$@")
    if [ -n "$lacking" ]; then
        skip=77
        set -- sh -c "echo 'skipped: no $lacking on this machine'; exit $skip"
    fi
    work=$(mktemp -d "$logs/$name.XXXXXX") || exit 1
    start=$(date +%s%N)
    (cd "$work" && exec timeout -k 10 "$limit" env "$@") >"$logs/$name.log" 2>&1 </dev/null &
    child=$!
    # timeout forwards the signal to the test
    trap 'kill "$child"; rm -rf "$work"; exit 1' TERM
    wait "$child" || status=$?
    local milliseconds=$((($(date +%s%N) - start) / 1000000))
    rm -rf "$work"
    if [ "$status" = "$skip" ]; then
        result=skipped
        note=$(grep -m1 '^skipped: ' "$logs/$name.log" | sed 's/^skipped: / - /')
    elif [ "$status" -ne 0 ]; then
        result=failed
        note=" - exit status $status"
        [ "$status" -ne 124 ] || note=" - longer than $limit s"
    fi
    printf '%-8s %6d.%02d s  %s%s\n' "$result" $((milliseconds / 1000)) $((milliseconds % 1000 / 10)) "$name" "$note" |
        tee "$logs/$name.result"
}

# Ends running tests.
# shellcheck disable=SC2317 # called by the trap
stop() {
    # shellcheck disable=SC2046 # a list of numbers
    kill $(jobs -pr) 2>/dev/null
    exit 130
}
trap stop INT TERM
# shellcheck source=/dev/null
. "$here/tests/list.sh"
wait
[ -z "$only_list" ] || exit 0
[ "$found" -gt 0 ] || { echo "run_tests.sh: no test with such a label or name; run_tests.sh -l lists all" >&2 && exit 1; }

count() {
    cat "$logs"/*.result | grep -c "^$1 " || true
}
passed=$(count passed) skipped=$(count skipped)
failed=$((found - passed - skipped))
if [ "$failed" -gt 0 ]; then
    for result in "$logs"/*.result; do
        grep -q '^failed ' "$result" || continue
        log=${result%.result}.log
        printf '\n== %s, the last lines of %s\n' "$(basename "${log%.log}")" "$log"
        tail -n 25 "$log"
    done
    echo
fi
echo "logs: $logs"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
