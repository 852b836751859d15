#!/bin/bash
# Checks the spelling of code, comments and pages with codespell. words.txt lists words that are
# right here although codespell reports them.
#
# usage: words.sh                checks this tree; exit code 77: codespell is not installed
#        words.sh --self-test    plants a misspelling in each kind of file: each must be found, and
#                                no accepted word
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
command -v codespell >/dev/null || { echo "skipped: codespell is not installed (Debian, Ubuntu: codespell)" && exit 77; }

# check PATH...: skips data and packed files
check() {
    codespell --ignore-words "$root/scripts/checks/words.txt" --skip '*.csv,*.json,*.svg,*.xz,*.pyc,tests/data' "$@"
}

self_test() {
    local folder name found
    folder=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$folder'" EXIT
    grep -v '^#' "$root/scripts/checks/words.txt" >"$folder/accepted.md"
    check "$folder" || { echo "words.sh: an accepted word is reported" >&2 && exit 1; }
    for name in page.md code.c kernel.cuh script.py man.1; do
        # split, so that this file contains no misspelling
        printf '/* %s%s matrix */\n' "recie" "ve the" >"$folder/$name"
        found=$(check "$folder" || true)
        [[ $found == *"$name:1:"* ]] || { echo "words.sh: the misspelling in $name was not found: $found" >&2 && exit 1; }
        rm "$folder/$name"
    done
    echo "5 misspellings were planted and found"
}

case ${1-} in
"")
    cd "$root"
    # the files of the tree, without build outputs
    check ./*.md NOTICE CMakeLists.txt app bench cmake core data device distributed docs examples formats include \
        packaging primitives product scripts solvers spgemm tests
    echo "no misspelling"
    ;;
--self-test) self_test ;;
*)
    sed -n 's/^# \(usage\)/\1/p' "$0" >&2
    exit 2
    ;;
esac
