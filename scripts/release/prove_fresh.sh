#!/bin/bash
# Tests that the scripts work from scratch: creates a minimal Debian 12 (debootstrap, minbase) in a
# folder, copies the tracked files of this tree into it, and runs demo.sh and test.sh there, from
# another directory and without a terminal.
#
# usage: prove_fresh.sh [FOLDER]    as root; default: a new folder under TMPDIR
#
# The folder is removed unless KEEP=1. SCRIPTS="demo.sh test.sh" lists the scripts to run, in this
# order. WITH=FOLDER copies a folder to /home/files there. Packages come from the sources of
# this machine's apt.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
suite=bookworm

[ "$(id -u)" -eq 0 ] || { echo "prove_fresh.sh: chroot needs root" >&2 && exit 1; }
command -v debootstrap >/dev/null || { echo "prove_fresh.sh: install debootstrap" >&2 && exit 1; }

# The first mirror that apt has for the suite; "" if it has none, so that debootstrap uses its
# default.
configured_mirror() {
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(CREATED_BY) $(SITE) $(RELEASE) $(COMPONENT)' 2>/dev/null |
        awk -v suite="$suite" '$1 == "Packages" && $3 == suite && $4 == "main" { print $2; exit }'
}

release() {
    local mounted
    for mounted in dev/pts proc; do
        if mountpoint -q "$folder/$mounted"; then umount "$folder/$mounted"; fi
    done
    if [ "${KEEP-}" != 1 ]; then rm -rf --one-file-system "$folder"; fi
}

folder=${1:-$(mktemp -d)/fresh}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
[ -z "$(ls -A "$folder")" ] || { echo "prove_fresh.sh: $folder is not empty" >&2 && exit 1; }
trap release EXIT

mirror=$(configured_mirror)
# shellcheck disable=SC2086 # the mirror may be absent
debootstrap --variant=minbase "$suite" "$folder" $mirror >"$folder.log" 2>&1 || { tail -n 20 "$folder.log" >&2 && exit 1; }
# this machine's proxies and timeouts for apt, if any
cp -n /etc/apt/apt.conf.d/*proxy* "$folder/etc/apt/apt.conf.d/" 2>/dev/null || true
cp /etc/resolv.conf /etc/hosts "$folder/etc/" 2>/dev/null || true
# no package lists, as in a fresh image
rm -rf "$folder"/var/lib/apt/lists/*
mount -t proc proc "$folder/proc"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$folder/dev/pts"

mkdir -p "$folder/home/spmv"
git -C "$root" ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    [ ! -e "$root/$file" ] || printf '%s\0' "$file"
done | tar -C "$root" --null -cf - -T - | tar -C "$folder/home/spmv" --no-same-owner -xf -

if [ -n "${WITH-}" ]; then cp -r "$WITH" "$folder/home/files"; fi

for name in ${SCRIPTS:-demo.sh test.sh}; do
    echo "== $name in a fresh $suite ($(chroot "$folder" dpkg-query -f '.\n' -W | wc -l) packages)"
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 ${JOBS:+JOBS=$JOBS} \
        chroot "$folder" /bin/bash -c "cd / && exec bash /home/spmv/scripts/$name" </dev/null
done
echo "== all done in a fresh $suite"
