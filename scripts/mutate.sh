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
# TESTS is ctest's regular expression of tests, of which at least one must fail.
mutants() {
    :
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
        echo "caught: $name ($file): $(sed -n 's/^ *[0-9]* - \([^ ]*\) (.*/\1/p' "$scratch/log" | paste -sd' ')"
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
