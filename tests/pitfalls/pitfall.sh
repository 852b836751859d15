#!/bin/sh
# A demonstration of a mistake must be caught, and its corrected twin must not.
#
# usage: pitfall.sh TOOL PROGRAM      TOOL: racecheck or synccheck of compute-sanitizer (found as in sanitize.sh); or "host": the
# program was built for the host that plays a GPU, which catches the mistake by its shuffled order, or by its count at barriers
#
# What the tool says about the mistake is printed between two lines of dashes. Exit status 77 (skipped): no tool, or no GPU.
#
# SPDX-License-Identifier: BSD-3-Clause
tool=$1 program=$2
"$program" none || exit
if [ "$tool" = host ]; then
    if "$program" wrong; then
        echo "the mistake of $program was not caught"
        exit 1
    fi
    "$program" right
    exit
fi
for checker in "${COMPUTE_SANITIZER:-compute-sanitizer}" /usr/local/cuda/bin/compute-sanitizer ""; do
    command -v "$checker" >/dev/null && break
done
if [ -z "$checker" ]; then
    echo "skipped: no compute-sanitizer on this machine"
    exit 77
fi
case $tool in
racecheck) found='[1-9][0-9]* hazards* displayed' clean='RACECHECK SUMMARY: 0 hazards displayed' ;;
synccheck) found='Barrier error detected' clean='ERROR SUMMARY: 0 errors' ;;
*)
    echo "pitfall.sh: no tool $tool"
    exit 1
    ;;
esac
# the program's own status does not matter here: a device may well stop at the mistake
said=$("$checker" --tool "$tool" "$program" wrong 2>&1)
echo "---- $tool, wrong"
echo "$said"
echo "----"
if ! echo "$said" | grep -q "$found"; then
    echo "$tool did not report the mistake of $program"
    exit 1
fi
said=$("$checker" --tool "$tool" "$program" right 2>&1)
status=$?
echo "$said"
if [ $status -ne 0 ] || ! echo "$said" | grep -q "$clean"; then
    echo "$tool is not clean on the corrected twin of $program"
    exit 1
fi
