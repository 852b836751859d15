#!/bin/bash
# Checks the spelling of code, comments and pages with codespell. words.txt lists words that are
# right here although codespell reports them. Then checks that words with one sense each stay where
# they have it: terms.txt.
#
# usage: words.sh                checks this tree; exit code 77: codespell is not installed
#        words.sh --self-test    plants a misspelling in each kind of file: each must be found, and
#                                no accepted word; and a word outside its files
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
rooms=(app bench core device distributed examples formats include primitives product python solvers spgemm tests)
# terms FOLDER: prints the files of code below it that have a word of terms.txt outside its files
terms() {
    local word allowed pattern file path here status=0
    while read -r word allowed; do
        case $word in
        '' | '#'*) continue ;;
        _*) pattern="[a-z0-9]${word}s?([^a-z]|\$)|(^|[^a-z])${word#_}s?_[a-z0-9]" ;;
        *) pattern="(^|[^a-z])$word" ;;
        esac
        while read -r file; do
            here=0
            for path in $allowed; do
                case $file in "$path" | "${path%/}"/*) here=1 ;; esac
            done
            [ $here -eq 1 ] || { echo "$file: \"${word#_}\" has one sense, and terms.txt does not have it here" && status=1; }
        done < <(
            cd "$1" || exit
            find "${rooms[@]}" -regex '.*\.\(c\|h\|cc\|cu\|cuh\)' -exec env LC_ALL=C grep -liE "$pattern" {} + 2>/dev/null
        )
    done <"$root/scripts/checks/terms.txt"
    return $status
}

need_codespell() {
    command -v codespell >/dev/null || { echo "skipped: codespell is not installed (Debian, Ubuntu: codespell)" && exit 77; }
}

# check PATH...: skips data and packed files
check() {
    codespell --ignore-words "$root/scripts/checks/words.txt" --skip '*.csv,*.json,*.svg,*.xz,*.pyc,tests/data' "$@"
}

self_test() {
    local folder name found
    folder=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$folder'" EXIT
    mkdir -p "$folder/spgemm" "$folder/core"
    echo '/* a piece of an array */' >"$folder/core/a.c"
    terms "$folder" || { echo "words.sh: a word in its file is reported" >&2 && exit 1; }
    echo 'static int free_pieces;' >"$folder/spgemm/b.cuh"
    found=$(terms "$folder" || true)
    [[ $found == 'spgemm/b.cuh: "piece"'* ]] || { echo "words.sh: a word outside its files was not found: $found" >&2 && exit 1; }
    echo '/* a group of lanes; regroup_x */' >"$folder/spgemm/b.cuh"
    terms "$folder" || { echo "words.sh: ordinary words are reported" >&2 && exit 1; }
    echo 'int first_group;' >"$folder/spgemm/b.cuh"
    found=$(terms "$folder" || true)
    [[ $found == 'spgemm/b.cuh: "group"'* ]] || { echo "words.sh: a part of a name was not found: $found" >&2 && exit 1; }
    rm -r "$folder/core" "$folder/spgemm"
    need_codespell
    grep -v '^#' "$root/scripts/checks/words.txt" >"$folder/accepted.md"
    check "$folder" || { echo "words.sh: an accepted word is reported" >&2 && exit 1; }
    for name in page.md code.c kernel.cuh script.py man.1; do
        # split, so that this file contains no misspelling
        printf '/* %s%s matrix */\n' "recie" "ve the" >"$folder/$name"
    done
    found=$(check "$folder" || true)
    for name in page.md code.c kernel.cuh script.py man.1; do
        [[ $found == *"$name:1:"* ]] || { echo "words.sh: the misspelling in $name was not found: $found" >&2 && exit 1; }
    done
    echo "5 misspellings and a word outside its files were planted and found"
}

case ${1-} in
"")
    cd "$root"
    terms . || exit 1
    echo "no word outside its files"
    need_codespell
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
