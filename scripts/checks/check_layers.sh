#!/bin/bash
# Checks that includes point one way and name the whole path, that the rungs of each ladder are named
# in docs/ladder.md, and that the page explains each gap in their numbers.
#
#   app -> bench -> distributed -> solvers -> spgemm -> product -> formats -> primitives -> device
#       -> core -> include/spmv
#
# The layer of a file is its first folder. A file may include files of its own layer and of layers
# to the right. A public header belongs to the layer of its subject: matrix.h to formats, plan.h
# to product, group.h to distributed, io.h to formats/io, device.cuh to primitives. Only device.cuh
# includes <spmv/device/NAME>, the installed place of NAME in primitives and device. Further rules:
#
#   - An include names the path from the root of the tree: "solvers/amg/amg_rows.h". Only examples
#     and python include their own files by name. No path contains "..".
#
#   - Only app, bench, distributed, examples, python and tests include formats/io, spmv/io.h, and spmv/group.h
#     and spmv/spmv.h, which include io.h.
#   - A file of one backend (_ref, _omp, _cuda in its name) includes no file of another backend, and
#     a _ref or _omp file includes nothing of CUDA.
#   - app includes public headers, those of bench, its own, and core/choice.h, name_list.h, plural.h,
#     reals.h and splitmix.h, which need public headers only; examples and python public headers and
#     their own.
#   - The rungs of a ladder NAME in a primitive, product/, spgemm/ and solvers/ (NAME_NUMBER_WORDS,
#     in any folder there) are numbered from 0 or 1, with one stem per number (scan_6_pipeline; the
#     names of further files of a rung start with its stem: spmv_4_tiles_plan). None includes a
#     higher rung of its ladder. docs/ladder.md names each of them, and no other. A number without a
#     file is named there as `segscan_4`, with the reason beside it.
#   - Code outside of tests does not ask whether the build has CUDA: no #if with SPMV_HAVE_CUDA. The
#     build system chooses between the sources of CUDA and distributed/no_cuda.c (docs/design).
#   - The library compares no backend with SPMV_BACKEND_CUDA: context_on_device.
#   - A struct of zeros is {0}. clang accepts it, but takes {NULL} for one member and warns that the
#     others are missing; gcc accepts both. An array of pointers may be {NULL}.
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
        (cd "$1" && find . -type f -not -path './build/*' -not -path './build-*/*' -not -path './out/*' -not -path './bundle/*' -not -path './.git/*' -printf '%P\n')
    fi | sort
}

# All files, one per line, then the lines of sources that a rule is about: FILE:LINE:TEXT.
tree_lines() {
    local root=$1 files
    files=$(tree_files "$root")
    printf '%s\n' "$files"
    (cd "$root" && grep -E '\.(c|h|cc|hh|cpp|hpp|cu|cuh)$' <<<"$files" |
        xargs -r grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]|SPMV_HAVE_CUDA|SPMV_BACKEND_CUDA|\{[[:space:]]*NULL[[:space:]]*\}' /dev/null) || true
}

check() {
    tree_lines "$1" | awk -v page="$1/docs/ladder.md" '
    function fail(message) {
        print from ":" line ": " message
        failures++
    }
    function base(path) { sub(/.*\//, "", path); return path }
    function beside(path) { sub(/[^\/]*$/, "", path); return path }
    # 0 include, 1 core, 2 device, 3 primitives, 4 formats, 5 product, 6 spgemm, 7 solvers,
    # 8 distributed, 9 bench, 10 app; outside: 11
    function layer(path) {
        if (path ~ /^include\/spmv\/device\.cuh$/) return 3
        if (path ~ /^include\/spmv\/(matrix|io)\.h$/) return 4
        if (path ~ /^include\/spmv\/(plan|operator|sddmm)\.h$/) return 5
        if (path ~ /^include\/spmv\/(spgemm|multiply)\.h$/) return 6
        if (path ~ /^include\/spmv\/(solvers|batch|eigen|least_squares|preconditioner)\.h$/) return 7
        if (path ~ /^include\/spmv\/(group|spmv)\.h$/) return 8
        if (path ~ /^include\//) return 0
        if (path ~ /^core\//) return 1
        if (path ~ /^device\//) return 2
        if (path ~ /^primitives\//) return 3
        if (path ~ /^formats\//) return 4
        if (path ~ /^product\//) return 5
        if (path ~ /^spgemm\//) return 6
        if (path ~ /^solvers\//) return 7
        if (path ~ /^distributed\//) return 8
        if (path ~ /^bench\//) return 9
        if (path ~ /^app\//) return 10
        return 11
    }
    function folder(path) { return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : "" }
    function is_io(path) { return path ~ /^formats\/io\// || path == "include/spmv/io.h" }
    function sees_io(path) { return path ~ /^(app|bench|distributed|examples|tests|python)\// || is_io(path) || path ~ /^include\/spmv\/(group|spmv)\.h$/ }
    function backend(path) { return match(path, /_(ref|omp|cuda)[._]/) ? substr(path, RSTART + 1, RLENGTH - 2) : "" }
    # The ladder of a rung (its layer or primitive, and name), its number, its stem; "" if the file
    # is no rung.
    function is_rung(path) { return path ~ /^(primitives|product|spgemm|solvers)\// && base(path) ~ /^[a-z]+_[0-9]+_[a-z0-9_]+\.(cuh|cu|h|c|cc)$/ }
    function ladder(path,  room) {
        match(path, path ~ /^primitives\// ? "^primitives/[^/]*/" : "^[^/]*/")
        room = substr(path, 1, RLENGTH)
        path = base(path)
        sub(/_[0-9]+_.*/, "", path)
        return room path
    }
    function number(path) { path = base(path); sub(/^[a-z]+_/, "", path); return path + 0 }
    function stem(path) { path = base(path); sub(/\..*/, "", path); return path }
    # The ladders page, if there is one: it names every rung, and only files that exist.
    function check_page(  line, rest, name, rung, named, found, explained, gaps) {
        for (name in highest)
            for (rung = 1; rung < highest[name]; rung++)
                if (!((name SUBSEP rung) in stems)) gaps[base(name) "_" rung] = name "_" rung "_*: the ladder ends at " highest[name] " and has no rung " rung
        while ((getline line < page) > 0) {
            found = 1
            for (rest = line; match(rest, /`[a-z]+_[0-9]+`/); rest = substr(rest, RSTART + RLENGTH))
                explained[substr(rest, RSTART + 1, RLENGTH - 2)] = 1
            while (match(line, /[a-z]+_[0-9]+_[a-z0-9_]+\.(cuh|cu|h|cc|c)/)) {
                name = substr(line, RSTART, RLENGTH)
                line = substr(line, RSTART + RLENGTH)
                if (!(name in names)) { print "docs/ladder.md: there is no file " name; failures++ }
                sub(/\..*/, "", name)
                named[name] = 1
            }
        }
        for (name in gaps)
            if (!(name in explained)) { print gaps[name]; failures++ }
        for (name in explained)
            if (!(name in gaps)) { print "docs/ladder.md: " name " is no gap in a ladder"; failures++ }
        for (rung in stems)
            if (found && !(stems[rung] in named)) {
                print "docs/ladder.md does not name the rung " rungs[rung]
                failures++
            }
    }
    !/:/ && is_rung($1) {
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
    !/:/ {
        exists[$1] = 1
        names[base($1)] = $1
        next
    }
    {
        from = $0; sub(/:.*/, "", from)
        text = substr($0, length(from) + 2)
        line = text + 0
        sub(/^[0-9]*:/, "", text)
    }
    # CUDA or not: lines that decide it in another way than by the build system and context_on_device
    from !~ /^(tests|examples|python)\// && text ~ /^[ \t]*#.*SPMV_HAVE_CUDA/ {
        fail("the build system chooses the sources of CUDA or no_cuda.c")
    }
    from ~ /^(core|device|primitives|formats|product|spgemm|solvers|distributed)\// &&
        text ~ /[=!<>]=[ \t]*SPMV_BACKEND_CUDA|SPMV_BACKEND_CUDA[ \t]*[=!<>]=/ {
        fail("use context_on_device")
    }
    # structs that start from {NULL}
    text ~ /[A-Za-z0-9_][ \t]*=[ \t]*[{][ \t]*NULL[ \t]*[}]|[)][ \t]*[{][ \t]*NULL[ \t]*[}]/ {
        fail("{0}, of which clang does not warn")
    }
    text ~ /^[ \t]*#[ \t]*include[ \t]*["<]/ {
        name = text
        sub(/^[ \t]*#[ \t]*include[ \t]*/, "", name)
        kind = substr(name, 1, 1)
        name = substr(name, 2)
        sub(/[">].*/, "", name)
        to = ""
        includes++
        if (name ~ /(^|\/)\.\.(\/|$)/) { fail("\"" name "\" contains \"..\"; include by the path from the root"); next }
        if (kind == "<") {
            if (name !~ /^spmv\//) next # a system header
            to = "include/" name
            if (name ~ /^spmv\/device\/[^\/]*\.cuh$/ && from == "include/spmv/device.cuh" && names[base(name)] ~ /^(primitives|device)\//)
                to = names[base(name)] # installed under that name
            else if (!(to in exists)) fail("<" name "> is not a public header")
        } else {
            if (name ~ /^spmv\//) fail("\"" name "\": public headers are included as <" name ">")
            to = name
            if (folder(from) ~ /^(examples|python)$/ && name !~ /\//) to = beside(from) name
            else if (beside(from) name in exists && beside(from) != "") fail("\"" name "\" is also a path from " beside(from))
            if (!(to in exists)) { fail("\"" name "\" is not the path of a file of this tree"); next }
        }
        if (folder(from) == "app" && folder(to) != "app" && folder(to) != "bench" && kind != "<" && to !~ /^core\/(choice|name_list|plural|reals|splitmix)\.h$/)
            fail("app includes public headers, bench, five headers of core and its own files, not " to)
        if (folder(from) == "examples" && kind != "<" && folder(to) != "examples")
            fail("examples include public headers and their own files, not " to)
        if (is_rung(from) && is_rung(to) && ladder(from) == ladder(to) && number(to) > number(from))
            fail("ladder: " from " must not include the higher rung " to)
        if (folder(from) == "python" && kind != "<" && folder(to) != "python")
            fail("python includes public headers and its own files, not " to)
        if (folder(from) == "python" && folder(to) == "python") next
        if (layer(to) > layer(from)) fail("layers: " from " must not include " to)
        else if (folder(from) != "tests" && folder(from) != "examples" && layer(to) == 11) fail("layers: " from " must not include " to)
        if ((is_io(to) || to == "include/spmv/spmv.h") && !sees_io(from)) fail("files: " from " must not include formats/io, through " to)
        if (folder(from) != "tests") {
            if (backend(base(from)) != "" && backend(base(to)) != "" && backend(base(from)) != backend(base(to)))
                fail("backends: " from " must not include " to)
            if (base(from) ~ /_(ref|omp)[._]/ && to ~ /\.cuh?$/) fail("backends: " from " must not include CUDA, " to)
        }
    }
    END {
        check_page()
        if (includes == 0) { print "no includes found: is this the tree?"; failures++ }
        exit failures > 0
    }'
}

# add FILE LINE: to the scratch tree
add() {
    mkdir -p "$scratch/tree/${1%/*}"
    printf '%s\n' "$2" >>"$scratch/tree/$1"
}

# restore FILE...: as in the clean tree
restore() {
    local file
    for file in "$@"; do
        if [ -e "$scratch/clean/$file" ]; then cp "$scratch/clean/$file" "$scratch/tree/$file"; else rm -f "$scratch/tree/$file"; fi
    done
}

# allow FILE LINE FILE LINE: the scratch tree with these lines added must pass
allow() {
    add "$1" "$2"
    add "$3" "$4"
    check "$scratch/tree" || { echo "check_layers.sh: $2 in $1 fails" >&2 && exit 1; }
    restore "$1" "$3"
}

# plant FILE LINE [NAMED [FILE LINE]]: the scratch tree with this line (these lines) added must fail
# and name the file (NAMED)
plant() {
    local file=$1 line=$2 named=${3-$1} output
    add "$file" "$line"
    [ $# -lt 5 ] || add "$4" "$5"
    if output=$(check "$scratch/tree"); then
        echo "check_layers.sh: not found: $line in $file" >&2
        exit 1
    fi
    if [[ $output != *"$named"* ]]; then
        echo "check_layers.sh: $line in $file: found something else: $output" >&2
        exit 1
    fi
    restore "$file" "${4-$file}"
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
include/spmv/plan.h #include <spmv/matrix.h>\n
include/spmv/io.h #include <spmv/matrix.h>\n
include/spmv/spmv.h #include <spmv/io.h>\n
core/run.h #include <spmv/types.h>\n
device/launch.cuh #include "core/run.h"\n
primitives/scan/scan_ref.c #include "core/run.h"\n
primitives/scan/scan_ref.h #include "core/run.h"\n
primitives/scan/scan_omp.c #include "core/run.h"\n
primitives/scan/scan_1_step.cuh #include "device/launch.cuh"\n
primitives/scan/scan_2_tree.cuh #include "primitives/scan/scan_1_step.cuh"\n
primitives/scan/scan_2_tree_plan.cuh #include "primitives/scan/scan_2_tree.cuh"\n
primitives/scan/scan_cuda.cu #include "primitives/scan/scan_1_step.cuh"\n
docs/ladder.md rungs: `scan_1_step.cuh`, `scan_2_tree.cuh`, `spmv_1_row.cuh`, `spmv_2_tile.cuh`\n
formats/csr.h #include <spmv/matrix.h>\n
formats/io/read.c #include <spmv/io.h>\n
formats/io/text/text.h #include "formats/csr.h"\n
product/plan.c #include "formats/csr.h"\n
product/plan.h #include <spmv/plan.h>\n
product/cuda/spmv_1_row.cuh #include "product/plan.h"\n
product/cuda/tile/spmv_2_tile.cuh #include "product/cuda/spmv_1_row.cuh"\n
solvers/cg.c #include <spmv/plan.h>\n
solvers/cg.h #include <spmv/plan.h>\n
distributed/group.c #include "solvers/cg.h"\n
distributed/ranks.h #include <spmv/plan.h>\n
bench/time.h #include <spmv/spmv.h>\n
app/main.c #include <spmv/spmv.h>\n
app/options.h #include <spmv/io.h>\n
app/bench/rows.h #include "app/options.h"\n
examples/one.c #include <spmv/spmv.h>\n#include "check.h"\n
examples/check.h #include <stddef.h>\n
include/spmv/device.cuh #include <spmv/device/scan_1_step.cuh>\n#include <spmv/types.h>\n
tests/scan/test_one.c #include "core/run.h"\n#include "primitives/scan/scan_ref.h"\n
tests/support/one.h #include <stddef.h>\n
TREE
    cp -r "$scratch/clean" "$scratch/tree"
    check "$scratch/tree" || { echo "check_layers.sh: a clean tree fails" >&2 && exit 1; }
    plant include/spmv/types.h '#include <spmv/matrix.h>'
    plant include/spmv/matrix.h '#include <spmv/plan.h>'
    plant include/spmv/types.h '#include "core/run.h"'
    plant core/run.h '#include "device/launch.cuh"'
    plant core/run.h '#include "primitives/scan/scan_ref.h"'
    plant device/launch.cuh '#include "primitives/scan/scan_1_step.cuh"'
    plant primitives/scan/scan_ref.c '#include "formats/csr.h"'
    plant primitives/scan/scan_ref.c '# include <spmv/matrix.h>'
    plant formats/csr.h '#include "product/plan.h"'
    plant formats/csr.h '#include "formats/io/text/text.h"'
    plant formats/csr.h '#include <spmv/io.h>'
    plant product/plan.c '#include "formats/io/text/text.h"'
    plant product/plan.c '#include <spmv/spmv.h>'
    plant product/plan.c '#include "solvers/cg.h"'
    plant product/plan.c '#include <spmv/spgemm.h>'
    plant spgemm/spgemm.c '#include "solvers/cg.h"'
    plant solvers/cg.c '#include "distributed/ranks.h"'
    plant distributed/group.c '#include "bench/time.h"'
    plant solvers/cg.c '#include "bench/time.h"'
    plant solvers/cg.c '#include "app/options.h"'
    plant bench/time.h '  #include "app/options.h"'
    plant product/plan.c '#include "tests/support/one.h"'
    plant primitives/scan/scan_omp.c '#include "primitives/scan/scan_ref.h"'
    plant primitives/scan/scan_omp.c '#include "primitives/scan/scan_1_step.cuh"'
    plant primitives/scan/scan_cuda.cu '#include "primitives/scan/scan_ref.h"'
    plant app/main.c '#include "core/run.h"'
    plant app/main.c '#include "../core/run.h"'
    plant examples/one.c '#include "core/run.h"'
    plant python/core/one.c '#include "core/run.h"'
    plant app/main.c '#include <spmv/none.h>'
    plant include/spmv/device.cuh '#include <spmv/device/none.cuh>'
    plant include/spmv/device.cuh '#include <spmv/matrix.h>'
    plant primitives/scan/scan_cuda.cu '#include <spmv/device/scan_1_step.cuh>'
    plant include/spmv/types.h '#include <spmv/device.cuh>'
    plant app/main.c '#include "app/none.h"'
    plant app/main.c '#include "spmv/types.h"'
    plant product/plan.c '#include "plan.h"'
    plant formats/io/read.c '#include "text/text.h"'
    plant app/bench/time.h '#include <stddef.h>' 'is also a path from app/' app/main.c '#include "bench/time.h"'
    plant primitives/scan/scan_1_step.cuh '#include "primitives/scan/scan_2_tree.cuh"'
    plant product/cuda/spmv_1_row.cuh '#include "product/cuda/tile/spmv_2_tile.cuh"'
    plant primitives/scan/scan_2_other.cuh '#include "core/run.h"'
    plant product/cuda/spmv_2_other.cuh '#include "core/run.h"'
    plant docs/ladder.md 'a rung: scan_3_none.cuh'
    plant primitives/scan/scan_3_new.cuh '#include "core/run.h"' 'does not name the rung primitives/scan/scan_3_new'
    plant primitives/scan/scan_4_far.cuh '#include "core/run.h"' primitives/scan/scan_3_
    plant docs/ladder.md "the rung \`scan_2\` has no file" 'scan_2 is no gap'
    plant solvers/cg.c '#ifdef SPMV_HAVE_CUDA'
    plant bench/time.h '#if !defined(SPMV_HAVE_CUDA)'
    plant product/plan.c '    if (ctx->backend->id == SPMV_BACKEND_CUDA)'
    plant formats/csr.h 'bool b = SPMV_BACKEND_CUDA != spmv_context_backend(ctx);'
    plant formats/csr.h '    struct csr_copies copies = {NULL};' 'of which clang does not warn'
    plant tests/scan/test_one.c '    *copies = (struct csr_copies){ NULL };' 'of which clang does not warn'
    allow core/run.h 'void *copy[3] = {NULL};' tests/scan/test_one.c 'struct csr_copies copies = {0};'
    allow tests/scan/test_one.c '#ifdef SPMV_HAVE_CUDA' app/main.c 'if (backend == SPMV_BACKEND_CUDA)'
    allow primitives/scan/scan_4_far.cuh '#include "core/run.h"' docs/ladder.md "there is no \`scan_3\`, see scan_4_far.cuh"
    echo "check_layers.sh: $planted planted violations, all found"
}

case ${1-} in
--self-test) self_test ;;
*) check "${1:-$(cd "$(dirname "$0")/../.." && pwd)}" && echo "includes point one way and name whole paths, docs/ladder.md names the rungs and explains gaps, one way for CUDA or not" ;;
esac
