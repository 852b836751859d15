#!/usr/bin/env python3
"""Compares the registers, stack (spills), shared and local memory of every CUDA kernel between two
builds.

    registers.py [OLD [NEW]]      prints the kernels that differ, appear or vanish; exit status 1 if
                                  a kernel of NEW uses more registers, stack or local memory than in
                                  OLD
    registers.py --list STATE     prints one sorted line per kernel:
                                  ARCHITECTURE NAME REG STACK SHARED LOCAL
    registers.py --self-test      compares listings with planted changes

OLD, NEW and STATE are each one of
    a commit, or a folder with the project's source    built below build/gates for
                                                       GATE_ARCHITECTURES (default 90-real)
    a file that cuobjdump reads                        libspmv.so or an object
    a text file                                        a listing written by --list, or the output of
                                                       a build with CMAKE_CUDA_FLAGS=-Xptxas=-v
Default: OLD is the commit that gates.py chooses, NEW is this tree. All but text files need
cuobjdump of the CUDA Toolkit. c++filt of binutils makes the names readable.

SPDX-License-Identifier: BSD-3-Clause
"""
import os
import re
import shutil
import subprocess

import gates

USES = ("REG", "STACK", "SHARED", "LOCAL")
WATCHED = ("REG", "STACK", "LOCAL")


def tool(name):
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if found is None:
        raise gates.Trouble(f"{name} was not found: install {'the CUDA Toolkit' if name == 'cuobjdump' else 'binutils'}")
    return found


def parse_dump(text):
    """[(architecture, mangled name, {use: number})] from cuobjdump --dump-resource-usage."""
    kernels, architecture, name = [], "", None
    for line in text.splitlines():
        arch = re.search(r"arch\s*=\s*(sm_\w+)", line)
        function = re.search(r"^\s*Function\s+(.*?):\s*$", line)
        if arch:
            architecture = arch.group(1)
        elif function:
            name = function.group(1)
        elif name is not None and "REG:" in line:
            numbers = dict(re.findall(r"(\w+):(\d+)", line))
            kernels.append((architecture, name, {use: int(numbers.get(use, 0)) for use in USES}))
            name = None
    return kernels


def parse_ptxas(text):
    """The same from the output of ptxas -v; LOCAL is the bytes of spill stores plus spill loads."""
    kernels, architecture, name, spilled = [], "", None, (0, 0)
    for line in text.splitlines():
        entry = re.search(r"Compiling entry function '(\w+)' for '(sm_\w+)'", line)
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        used = re.search(r"Used (\d+) registers", line)
        if entry:
            name, architecture = entry.groups()
            spilled = (0, 0)
        elif frame:
            spilled = (int(frame.group(1)), int(frame.group(2)) + int(frame.group(3)))
        elif used and name is not None:
            shared = re.search(r"(\d+) bytes smem", line)
            kernels.append((architecture, name, {"REG": int(used.group(1)), "STACK": spilled[0],
                                                 "SHARED": int(shared.group(1)) if shared else 0, "LOCAL": spilled[1]}))
            name = None
    return kernels


def demangle(names):
    done = subprocess.run([tool("c++filt")], input="\n".join(names), stdout=subprocess.PIPE, universal_newlines=True, check=True)
    return done.stdout.splitlines()


def table(kernels, readable):
    """{"ARCHITECTURE NAME": {use: number}} sorted by architecture and name. Kernels of the same
    name (in unnamed namespaces of several files) get a number after the name."""
    rows = {}
    for (architecture, _, uses), name in sorted(zip(kernels, readable), key=lambda k: (k[0][0], k[1], tuple(k[0][2].values()))):
        # compiler-generated names local to a file depend on the file's path
        name = re.sub(r"_(?:GLOBAL__N_|INTERNAL)_[0-9a-f]+_\d+_(\w+?)_cu_[0-9a-f]+(_\d+)?", r"\1", name)
        key, number = f"{architecture} {name}", 2
        while key in rows:
            key, number = f"{architecture} {name} #{number}", number + 1
        rows[key] = uses
    return rows


def lines_of(rows):
    return ["\t".join([key, *(f"{use}:{uses[use]}" for use in USES)]) for key, uses in rows.items()]


def rows_of(lines):
    rows = {}
    for line in lines:
        key, *uses = line.rstrip("\n").split("\t")
        rows[key] = {use: int(number) for use, number in (text.split(":") for text in uses)}
    return rows


def compare(old, new):
    """(a message for each difference, how many kernels use more)."""
    found, worse = [], 0
    for key in dict.fromkeys([*old, *new]):
        if key not in new:
            found.append(f"vanished  {key}")
        elif key not in old:
            found.append(f"appeared  {key}  " + " ".join(f"{use}:{new[key][use]}" for use in USES))
        elif old[key] != new[key]:
            more = any(new[key][use] > old[key][use] for use in WATCHED)
            worse += more
            changes = " ".join(f"{use}:{old[key][use]}->{new[key][use]}" for use in USES if old[key][use] != new[key][use])
            found.append(f"{'more    ' if more else 'differs '}  {key}  {changes}")
    return found, worse


def listing(name):
    if os.path.isfile(name):
        with open(name, "rb") as file:
            head = file.read(4)
        if head != b"\x7fELF":
            with open(name, encoding="utf-8") as file:
                text = file.read()
            kernels = parse_ptxas(text)
            return table(kernels, demangle([name for _, name, _ in kernels])) if kernels else rows_of(text.splitlines())
        path = name
    else:
        architectures = os.environ.get("GATE_ARCHITECTURES", "90-real")
        folder = gates.State(name).build("registers", ["spmv_shared"], "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
                                         "-DSPMV_CUDA=ON", f"-DCMAKE_CUDA_ARCHITECTURES={architectures}")
        path = os.path.join(folder, "libspmv.so")
    done = subprocess.run([tool("cuobjdump"), "--dump-resource-usage", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True)
    kernels = parse_dump(done.stdout)
    if done.returncode != 0 or not kernels:
        raise gates.Trouble(f"cuobjdump finds no kernel in {path}: {done.stdout.strip()[:200]}")
    return table(kernels, demangle([name for _, name, _ in kernels]))


DUMP = """Fatbin elf code:
================
arch = sm_90

Resource usage:
 Common:
  GLOBAL:0
 Function _Z5applyIdEvPT_:
  REG:40 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:560 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _Z4scanIfEvPT_:
  REG:%d STACK:%d SHARED:0 LOCAL:0 CONSTANT[0]:560 TEXTURE:0 SURFACE:0 SAMPLER:0
"""


def self_test():
    def rows(registers, stack):
        kernels = parse_dump(DUMP % (registers, stack))
        return table(kernels, [name for _, name, _ in kernels])
    for what, planted, worse in (("the same", (32, 0), 0), ("fewer registers", (30, 0), 0), ("more registers", (33, 0), 1),
                                 ("a spill", (32, 16), 1)):
        found, count = compare(rows(32, 0), rows(*planted))
        if count != worse or (len(found) == 0) != (planted == (32, 0)):
            raise gates.Trouble(f"{what}: reported as {found}")
        print(f"{what}: {found or 'nothing'}")
    return 0


def work():
    parser = gates.parser(__doc__, lists=True)
    given = gates.arguments(parser, self_test)
    if given.list and len(given.states) > 1:
        parser.error("--list takes one state")
    if given.list:
        print("\n".join(lines_of(listing(given.states[0] if given.states else gates.ROOT))))
        return 0
    old, new = (listing(name) for name in gates.old_and_new(given.states))
    found, worse = compare(old, new)
    for sentence in found:
        print(sentence)
    print(f"registers: {len(old)} kernels before, {len(new)} after; {len(found)} differ, {worse} use more")
    return 1 if worse else 0


if __name__ == "__main__":
    gates.main(work)
