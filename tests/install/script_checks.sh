#!/bin/bash
# Checks of the scripts that install packages and build the program, without a network.
# usage: script_checks.sh CHECK, with the variables SOURCE, BUILD, WORK
#
#   groups    packages.sh accepts every group of its table and runs apt-get for the missing packages
#   rows      if all packages of a row are installed, its test passes
#   demo      demo.sh ends with the path of the program that it built and the command to install it
#   target    the target that demo.sh builds makes every built file that cmake --install installs
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail

fail() {
    echo "scripts: $*" >&2
    exit 1
}

# stub NAME TEXT: puts a command with this name first in PATH
stub() {
    mkdir -p "$WORK/bin"
    printf '#!/bin/bash\n%s\n' "$2" >"$WORK/bin/$1"
    chmod +x "$WORK/bin/$1"
    PATH=$WORK/bin:$PATH
}

rm -rf "$WORK"
mkdir -p "$WORK"
# shellcheck source=/dev/null
. "$SOURCE/scripts/packages.sh"

check_groups() {
    command -v apt-get >/dev/null || exit 77
    stub apt-get 'echo "$*" >>"'"$WORK"'/asked"'
    # shellcheck disable=SC2016 # for the stub
    stub sudo 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"'
    local group count=0
    for group in $(packages_groups); do
        bash "$SOURCE/scripts/packages.sh" "$group" >"$WORK/said" 2>&1 || true
        ! grep -q "unknown group" "$WORK/said" || fail "packages.sh $group: $(cat "$WORK/said")"
        if [ -n "$(packages_missing "$group")" ]; then
            grep -q "Installing with apt-get: " "$WORK/said" || fail "packages.sh $group installs nothing: $(cat "$WORK/said")"
        else
            [ ! -s "$WORK/said" ] || fail "packages.sh $group: nothing is missing, but it prints: $(cat "$WORK/said")"
        fi
        count=$((count + 1))
    done
    [ "$count" -ge 6 ] || fail "only $count groups"
    if bash "$SOURCE/scripts/packages.sh" dir >"$WORK/said" 2>&1; then fail "packages.sh accepts the unknown group dir"; fi
    grep -q "unknown group dir; groups: build check" "$WORK/said" || fail "packages.sh dir: $(cat "$WORK/said")"
    # padding in the table is not part of a name; missing packages are requested
    # shellcheck disable=SC2317 # packages_groups and packages_install call it
    packages_table() { echo 'odd     | nothing | no-such-one | no-such-one | false'; }
    [ "$(packages_groups)" = odd ] || fail "the groups are: $(packages_groups)"
    : >"$WORK/asked"
    if packages_install odd >"$WORK/said" 2>&1; then fail "packages_install succeeds although the test of the package still fails"; fi
    grep -q 'install .*no-such-one' "$WORK/asked" || fail "arguments of apt-get: $(cat "$WORK/asked")"
    grep -q 'Installed, but still not usable: nothing' "$WORK/said" || fail "packages_install: $(cat "$WORK/said")"
    echo "$count groups"
}

check_rows() {
    local column group what debian ubuntu check names name there count=0
    column=$(packages_column)
    [ "$column" -ne 0 ] && command -v dpkg-query >/dev/null || exit 77
    while IFS='|' read -r group what debian ubuntu check; do
        names=$debian
        [ "$column" -eq 3 ] || names=$ubuntu
        there=yes
        for name in $names; do
            [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || there=no
        done
        # a python3 that precedes that of the system does not find the system's packages
        case $check in *python3\ -c*) [ "$(command -v python3)" = /usr/bin/python3 ] || there=no ;; esac
        [ "$there" = yes ] || continue
        count=$((count + 1))
        (eval "$check") >/dev/null 2>&1 </dev/null || fail "installed:$names, but the test of '${what## }' fails: $check"
    done < <(packages_table)
    [ "$count" -ge 5 ] || fail "only $count rows have their packages here"
    echo "$count rows with all their packages"
}

check_demo() {
    local tree=$WORK/tree program
    mkdir -p "$tree"
    cp -r "$SOURCE/scripts" "$tree/scripts"
    cp -r "$SOURCE/data" "$tree/data"
    # the stub creates the folder and the cache when it configures, and the program when it builds
    stub cmake "if [ \"\$1\" = --version ]; then echo 'cmake version 3.25.1'; fi
case \$1 in --build) mkdir -p \"\$2/app\"; cp '$BUILD/app/spmv' \"\$2/app/spmv\"; echo \"\$*\" >'$WORK/built' ;; -S) mkdir -p \"\$4\"; echo 'SPMV_CUDA_LACKS:INTERNAL=a planted GPU' >\"\$4/CMakeCache.txt\" ;; esac"
    bash "$tree/scripts/demo.sh" >"$WORK/said" 2>"$WORK/errors" || fail "demo.sh: $(cat "$WORK/said" "$WORK/errors")"
    program=$(sed -n 's/^The program is //p' "$WORK/said")
    if [ ! -x "$program" ] || [ "$program" != "$tree/build/demo/app/spmv" ]; then fail "demo.sh says that the program is '$program'"; fi
    tail -n 3 "$WORK/said" | grep -qF "cmake --install $tree/build/demo --prefix" || fail "demo.sh ends: $(tail -n 3 "$WORK/said")"
    grep -qF "It is for the CPU, because a planted GPU was not found." "$WORK/said" || fail "demo.sh does not say why it is for the CPU: $(cat "$WORK/said")"
    grep -q -e "--target spmv_installed" "$WORK/built" || fail "demo.sh builds: $(cat "$WORK/built")"
}

check_target() {
    command -v ninja >/dev/null && [ -e "$BUILD/build.ninja" ] || exit 77
    local file missing="" count=0
    ninja -C "$BUILD" -t query spmv_installed | tr -d ' ' >"$WORK/made"
    # files made by a compiler or linker that the install scripts take from the build
    for file in $(find "$BUILD" -name cmake_install.cmake -exec grep -ohE "\"$BUILD/[^\"*]*\"" {} + | tr -d '"' |
        grep -E '(/app/spmv|\.a|\.so(\.[0-9]+)*)$' | sort -u); do
        [ ! -L "$file" ] || continue
        count=$((count + 1))
        # ninja names a library by its link without a version
        # shellcheck disable=SC2001 # a regular expression
        grep -qxF -e "$(sed 's/\.so\.[0-9.]*$/.so/' <<<"${file#"$BUILD/"}")" "$WORK/made" || missing="$missing $file"
    done
    [ "$count" -ge 3 ] || fail "only $count files of the build are installed"
    [ -z "$missing" ] || fail "spmv_installed does not build$missing"
    echo "$count files"
}

case ${1-} in
groups | rows | demo | target) "check_$1" ;;
*) fail "no such check: ${1-}" ;;
esac
