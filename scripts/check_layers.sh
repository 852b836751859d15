#!/bin/bash
# Checks that includes point one way, that file names are unique, and that the rungs of each ladder
# are numbered without gaps and named in docs/ladder.md.
#
#   app -> bench -> distributed -> solvers -> spgemm -> spmv -> formats -> primitives/NAME
#       -> primitives/runtime -> include/spmv
#
# A file may include files of its own layer and of layers to the right. A public header belongs to
# the layer of its subject: matrix.h to formats, operator.h to spmv, group.h to distributed, io.h to
# formats/io, device.cuh to primitives. Only device.cuh includes <spmv/device/NAME>, the installed
# place of NAME in primitives. Further rules:
#
#   - Only app, bench, distributed, examples, python and tests include formats/io, spmv/io.h, and spmv/group.h
#     and spmv/spmv.h, which include io.h.
#   - A file of one backend (_ref, _omp, _cuda in its name) includes no file of another backend, and
#     a _ref or _omp file includes nothing of CUDA.
#   - app includes public headers, those of bench, its own, and plural.h, reals.h and splitmix.h, which need
#     public headers only; examples and python public headers and their own.
#   - The rungs of a ladder NAME in primitives/, spmv/, spgemm/ and solvers/ (NAME_NUMBER_WORDS) are
#     numbered without gaps from 0 or 1, with one stem per number (scan_6_pipeline; the names of further
#     files of a rung start with its stem: spmv_4_tiles_plan). None includes a higher rung of its
#     ladder. docs/ladder.md names each of them, and no other.
#   - No path contains "..", and file names are unique, so an include names one file.
#
# usage: check_layers.sh [FOLDER]       checks a tree (default: this one)
#        check_layers.sh --self-test    plants a violation of each rule in a scratch tree; each must
#                                       be found
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
export LC_ALL=C

# The files of a tree: those that git tracks or would add; without git all that are not built.
tree_files() {
    if git -C "$1" rev-parse --show-prefix >/dev/null 2>&1 && [ -z "$(git -C "$1" rev-parse --show-prefix)" ]; then
        git -C "$1" ls-files --cached --others --exclude-standard | while IFS= read -r file; do
            [ ! -e "$1/$file" ] || printf '%s\n' "$file"
        done
    else
        (cd "$1" && find . -type f -not -path './build/*' -not -path './build-*/*' -not -path './out/*' -not -path './bundle/*' -not -path './.git/*' | sed 's|^\./||')
    fi | sort
}

# All files, one per line (FILE), then all includes: FILE LINE KIND(quote or angle) NAME.
tree_includes() {
    local root=$1 files
    files=$(tree_files "$root")
    printf '%s\n' "$files"
    (cd "$root" && grep -E '\.(c|h|cc|hh|cpp|hpp|cu|cuh)$' <<<"$files" |
        xargs -r grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' /dev/null |
        sed -E 's/^([^:]*):([0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*(["<])([^">]*)[">].*/\1 \2 \3 \4/') || true
}

check() {
    tree_includes "$1" | awk -v page="$1/docs/ladder.md" '
    function fail(message) {
        print (NF == 4 ? $1 ":" $2 ": " : "") message
        failures++
    }
    function base(path) { sub(/.*\//, "", path); return path }
    # 0 include, 1 runtime, 2 primitives, 3 formats, 4 spmv, 5 spgemm, 6 solvers, 7 distributed,
    # 8 bench, 9 app; outside: 10
    function layer(path) {
        if (path ~ /^include\/spmv\/matrix\.h$/) return 3
        if (path ~ /^include\/spmv\/io\.h$/) return 3
        if (path ~ /^include\/spmv\/operator\.h$/) return 4
        if (path ~ /^include\/spmv\/multiply\.h$/) return 5
        if (path ~ /^include\/spmv\/solvers\.h$/) return 6
        if (path ~ /^include\/spmv\/preconditioner\.h$/) return 6
        if (path ~ /^include\/spmv\/group\.h$/) return 7
        if (path ~ /^include\/spmv\/device\.cuh$/) return 2
        if (path ~ /^include\/spmv\/spmv\.h$/) return 7
        if (path ~ /^include\//) return 0
        if (path ~ /^primitives\/runtime\//) return 1
        if (path ~ /^primitives\//) return 2
        if (path ~ /^formats\//) return 3
        if (path ~ /^spmv\//) return 4
        if (path ~ /^spgemm\//) return 5
        if (path ~ /^solvers\//) return 6
        if (path ~ /^distributed\//) return 7
        if (path ~ /^bench\//) return 8
        if (path ~ /^app\//) return 9
        return 10
    }
    function folder(path) { return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : "" }
    function is_io(path) { return path ~ /^formats\/io\// || path == "include/spmv/io.h" }
    function sees_io(path) { return path ~ /^(app|bench|distributed|examples|tests|python)\// || is_io(path) || path ~ /^include\/spmv\/(group|spmv)\.h$/ }
    function backend(path) { return match(path, /_(ref|omp|cuda)[._]/) ? substr(path, RSTART + 1, RLENGTH - 2) : "" }
    # The ladder of a rung (its folder and name), its number, its stem; "" if the file is no rung.
    function is_rung(path) { return path ~ /^(primitives|spmv|spgemm|solvers)\// && base(path) ~ /^[a-z]+_[0-9]+_[a-z0-9_]+\.(cuh|cu|h|c|cc)$/ }
    function ladder(path) { sub(/_[0-9]+_[^\/]*$/, "", path); return path }
    function number(path) { path = base(path); sub(/^[a-z]+_/, "", path); return path + 0 }
    function stem(path) { path = base(path); sub(/\..*/, "", path); return path }
    # The ladders page, if there is one: it names every rung, and only files that exist.
    function check_page(  line, name, rung, named, found) {
        while ((getline line < page) > 0) {
            found = 1
            while (match(line, /[a-z]+_[0-9]+_[a-z0-9_]+\.(cuh|cu|h|cc|c)/)) {
                name = substr(line, RSTART, RLENGTH)
                line = substr(line, RSTART + RLENGTH)
                if (!(name in where)) { print "docs/ladder.md: there is no file " name; failures++ }
                sub(/\..*/, "", name)
                named[name] = 1
            }
        }
        for (rung in stems)
            if (found && !(stems[rung] in named)) {
                print "docs/ladder.md does not name the rung " rungs[rung]
                failures++
            }
    }
    NF == 1 && is_rung($1) {
        rung = ladder($1) SUBSEP number($1)
        if (!(rung in stems) || index(stems[rung], stem($1) "_") == 1) {
            stems[rung] = stem($1)
            rungs[rung] = $1
        } else if (stem($1) != stems[rung] && index(stem($1), stems[rung] "_") != 1) {
            print $1 ": rung " number($1) " is already " rungs[rung]
            failures++
        }
        if (!(ladder($1) in highest) || number($1) > highest[ladder($1)]) highest[ladder($1)] = number($1)
    }
    NF == 1 {
        name = base($1)
        if (name ~ /^(CMakeLists\.txt|README\.md|\.gitignore|\.clang-format|__init__\.py)$/) next
        if (name in where) { print $1 ": there is already a " where[name]; failures++ }
        where[name] = $1
        next
    }
    NF == 4 {
        from = $1; name = $4; to = ""
        includes++
        if (name ~ /(^|\/)\.\.(\/|$)/) fail("\"" name "\" contains \"..\"; include by name")
        if ($3 == "<") {
            if (name !~ /^spmv\//) next # a system header
            to = "include/" name
            if (name ~ /^spmv\/device\/[^\/]*\.cuh$/ && from == "include/spmv/device.cuh" && where[base(name)] ~ /^primitives\//)
                to = where[base(name)] # installed under that name
            else if (!(base(name) in where) || where[base(name)] != to) fail("<" name "> is not a public header")
        } else {
            if (name ~ /^spmv\//) fail("\"" name "\": public headers are included as <" name ">")
            if (!(base(name) in where)) { fail("\"" name "\" is not a file of this tree"); next }
            to = where[base(name)]
        }
        if (folder(from) == "app" && folder(to) != "app" && folder(to) != "bench" && $3 != "<" && base(to) !~ /^(plural|reals|splitmix)\.h$/)
            fail("app includes public headers, bench, plural.h, reals.h, splitmix.h and its own files, not " to)
        if (folder(from) == "examples" && $3 != "<" && folder(to) != "examples")
            fail("examples include public headers and their own files, not " to)
        if (is_rung(from) && is_rung(to) && ladder(from) == ladder(to) && number(to) > number(from))
            fail("ladder: " from " must not include the higher rung " to)
        if (folder(from) == "python" && $3 != "<" && folder(to) != "python")
            fail("python includes public headers and its own files, not " to)
        if (folder(from) == "python" && folder(to) == "python") next
        if (layer(to) > layer(from)) fail("layers: " from " must not include " to)
        else if (folder(from) != "tests" && folder(from) != "examples" && layer(to) == 10) fail("layers: " from " must not include " to)
        if ((is_io(to) || to == "include/spmv/spmv.h") && !sees_io(from)) fail("files: " from " must not include formats/io, through " to)
        if (folder(from) != "tests") {
            if (backend(base(from)) != "" && backend(base(to)) != "" && backend(base(from)) != backend(base(to)))
                fail("backends: " from " must not include " to)
            if (base(from) ~ /_(ref|omp)[._]/ && to ~ /\.cuh?$/) fail("backends: " from " must not include CUDA, " to)
        }
    }
    END {
        check_page()
        for (name in highest)
            for (rung = 1; rung < highest[name]; rung++)
                if (!((name SUBSEP rung) in stems)) { print name "_" rung "_*: the ladder ends at " highest[name] " and has no rung " rung; failures++ }
        if (includes == 0) { print "no includes found: is this the tree?"; failures++ }
        exit failures > 0
    }'
}

# plant FILE LINE [NAMED]: the scratch tree with this line added must fail and name the file (NAMED)
plant() {
    local file=$1 line=$2 named=${3-$1} output
    rm -rf "$scratch/tree"
    cp -r "$scratch/clean" "$scratch/tree"
    mkdir -p "$(dirname "$scratch/tree/$file")"
    printf '%s\n' "$line" >>"$scratch/tree/$file"
    if output=$(check "$scratch/tree"); then
        echo "check_layers.sh: not found: $line in $file" >&2
        exit 1
    fi
    if ! grep -qF "$named" <<<"$output"; then
        echo "check_layers.sh: $line in $file: found something else: $output" >&2
        exit 1
    fi
    planted=$((planted + 1))
}

self_test() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    planted=0
    local file
    while read -r file line; do
        mkdir -p "$scratch/clean/$(dirname "$file")"
        printf '%b' "$line" >"$scratch/clean/$file"
    done <<'TREE'
include/spmv/types.h #include <stddef.h>\n
include/spmv/matrix.h #include <spmv/types.h>\n
include/spmv/operator.h #include <spmv/matrix.h>\n
include/spmv/io.h #include <spmv/matrix.h>\n
include/spmv/spmv.h #include <spmv/io.h>\n
primitives/runtime/run.h #include <spmv/types.h>\n
primitives/scan/scan_ref.c #include "run.h"\n
primitives/scan/scan_ref.h #include "run.h"\n
primitives/scan/scan_omp.c #include "run.h"\n
primitives/scan/scan_1_step.cuh #include "run.h"\n
primitives/scan/scan_2_tree.cuh #include "scan_1_step.cuh"\n
primitives/scan/scan_2_tree_plan.cuh #include "scan_2_tree.cuh"\n
primitives/scan/scan_cuda.cu #include "scan_1_step.cuh"\n
docs/ladder.md rungs: `scan_1_step.cuh`, `scan_2_tree.cuh`\n
formats/csr.h #include <spmv/matrix.h>\n
formats/io/read.c #include <spmv/io.h>\n
formats/io/text.h #include "csr.h"\n
spmv/plan.c #include "csr.h"\n
spmv/plan.h #include <spmv/operator.h>\n
solvers/cg.c #include <spmv/operator.h>\n
solvers/cg.h #include <spmv/operator.h>\n
distributed/group.c #include "cg.h"\n
distributed/ranks.h #include <spmv/operator.h>\n
bench/time.h #include <spmv/spmv.h>\n
app/main.c #include <spmv/spmv.h>\n
app/options.h #include <spmv/io.h>\n
examples/one.c #include <spmv/spmv.h>\n
include/spmv/device.cuh #include <spmv/device/scan_1_step.cuh>\n#include <spmv/types.h>\n
tests/test_one.c #include "run.h"\n#include "scan_ref.h"\n
tests/one.h #include <stddef.h>\n
TREE
    check "$scratch/clean" || { echo "check_layers.sh: a clean tree fails" >&2 && exit 1; }
    plant include/spmv/types.h '#include <spmv/matrix.h>'
    plant include/spmv/matrix.h '#include <spmv/operator.h>'
    plant include/spmv/types.h '#include "run.h"'
    plant primitives/runtime/run.h '#include "scan_ref.h"'
    plant primitives/scan/scan_ref.c '#include "csr.h"'
    plant primitives/scan/scan_ref.c '# include <spmv/matrix.h>'
    plant formats/csr.h '#include "plan.h"'
    plant formats/csr.h '#include "text.h"'
    plant formats/csr.h '#include <spmv/io.h>'
    plant spmv/plan.c '#include "text.h"'
    plant spmv/plan.c '#include <spmv/spmv.h>'
    plant spmv/plan.c '#include "cg.h"'
    plant spmv/plan.c '#include "multiply.h"'
    plant spgemm/multiply.c '#include "cg.h"'
    plant solvers/cg.c '#include "ranks.h"'
    plant distributed/group.c '#include "time.h"'
    plant solvers/cg.c '#include "time.h"'
    plant solvers/cg.c '#include "options.h"'
    plant bench/time.h '  #include "options.h"'
    plant spmv/plan.c '#include "one.h"'
    plant primitives/scan/scan_omp.c '#include "scan_ref.h"'
    plant primitives/scan/scan_omp.c '#include "scan_1_step.cuh"'
    plant primitives/scan/scan_cuda.cu '#include "scan_ref.h"'
    plant app/main.c '#include "run.h"'
    plant app/main.c '#include "../primitives/runtime/run.h"'
    plant examples/one.c '#include "run.h"'
    plant python/core/one.c '#include "run.h"'
    plant app/main.c '#include <spmv/none.h>'
    plant include/spmv/device.cuh '#include <spmv/device/none.cuh>'
    plant include/spmv/device.cuh '#include <spmv/matrix.h>'
    plant primitives/scan/scan_cuda.cu '#include <spmv/device/scan_1_step.cuh>'
    plant include/spmv/types.h '#include <spmv/device.cuh>'
    plant app/main.c '#include "none.h"'
    plant app/main.c '#include "spmv/types.h"'
    plant formats/plan.c '#include <stddef.h>'
    plant primitives/scan/scan_1_step.cuh '#include "scan_2_tree.cuh"'
    plant primitives/scan/scan_2_other.cuh '#include "run.h"'
    plant docs/ladder.md 'a rung: scan_3_none.cuh'
    plant primitives/scan/scan_3_new.cuh '#include "run.h"' 'does not name the rung primitives/scan/scan_3_new'
    plant primitives/scan/scan_4_far.cuh '#include "run.h"' primitives/scan/scan_3_
    echo "check_layers.sh: $planted planted violations, all found"
}

case ${1-} in
--self-test) self_test ;;
*) check "${1:-$(cd "$(dirname "$0")/.." && pwd)}" && echo "includes point one way, file names are unique, ladders have no gaps and are in docs/ladder.md" ;;
esac
