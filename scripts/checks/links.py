#!/usr/bin/env python3
"""Finds dead links in the tree: links in Markdown pages to a missing file or heading, and names of
missing pages (docs/...) in other files. Links to other sites are not followed.

usage: links.py [FOLDER]       checks a tree (default: this one)
       links.py --self-test    plants dead links in a scratch tree: each must be found

Anchors of headings follow GitHub's rules. Exit code: 0 no dead link; 1 dead links; 2 usage.

SPDX-License-Identifier: BSD-3-Clause
"""
import os
import re
import subprocess
import sys
import tempfile

LINK = re.compile(r"\[[^]\[]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
NAMED = re.compile(r"(?<![\w/.-])docs/[a-z0-9/-]+\.md\b")
OTHERS = (".c", ".h", ".cc", ".cu", ".cuh", ".py", ".sh", ".txt", ".cmake", ".1")


def files_of(root):
    """The files that git tracks or would add; without git, all files outside of build folders."""
    done = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=False)
    if done.returncode == 0 and done.stdout:
        names = done.stdout.splitlines()
    else:
        names = []
        for folder, folders, found in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith((".", "build"))]
            names += [os.path.relpath(os.path.join(folder, name), root) for name in found]
    return sorted(name for name in names if os.path.isfile(os.path.join(root, name)))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def without_code(text):
    """The text with code blanked out; line numbers stay the same."""
    lines, fenced = [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        lines.append("" if fenced or fence else line)
        fenced ^= fence
    return re.sub(r"`[^`]*`", lambda code: re.sub(r"[^\n]", "-", code.group()), "\n".join(lines))


def anchors(text):
    """The anchors of a page's headings."""
    found, lines, fenced = {}, [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and re.match(r"#{1,6} ", line):
            lines.append(line.lstrip("#").strip())
    for line in lines:
        name = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line).lower()
        name = re.sub(r"[^\w\- ]", "", name).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        if found[name] > 0:
            found[f"{name}-{found[name]}"] = 0
    return set(found)


def dead_links(root):
    """A message for each dead link, and the number of all links."""
    names, dead, count = files_of(root), [], 0
    for name in names:
        path = os.path.join(root, name)
        if name.endswith(".md"):
            text = read(path)
            plain = without_code(text)
            for link in LINK.finditer(plain):
                target = link.group(1)
                if re.match(r"[a-z][a-z0-9+.-]*:", target):
                    continue
                count += 1
                where = f"{name}:{plain.count(chr(10), 0, link.start()) + 1}"
                file, _, anchor = target.partition("#")
                to = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
                if not os.path.exists(to):
                    dead.append(f"{where}: there is no {file}")
                elif anchor and (not to.endswith(".md") or anchor not in anchors(read(to))):
                    dead.append(f"{where}: {file or 'this page'} has no heading #{anchor}")
        elif name.endswith(OTHERS):
            try:
                text = read(path)
            except UnicodeDecodeError:
                continue
            for page in NAMED.finditer(text):
                count += 1
                if not os.path.exists(os.path.join(root, page.group())):
                    dead.append(f"{name}:{text.count(chr(10), 0, page.start()) + 1}: there is no {page.group()}")
    return dead, count


def self_test():
    docs = "docs"  # split, so that this file names no page
    pages = {
        "README.md": f"# One two\n[a]({docs}/a.md), [b]({docs}/b.md#a-c), [c](#one-two), [d\ne]({docs}/a.md#twice-1)\n"
        "`[x](none.md)`, [site](https://a.b/c)\n```\n[y](none.md)\n# no heading\n```\n",
        f"{docs}/a.md": '# A: "c"!\n## Twice\n## Twice\n[up](../README.md#one-two)\n',
        f"{docs}/b.md": "# `A` [c](a.md)\n",
        "one.c": f"/* {docs}/a.md */\n",
    }
    planted = {
        f"README.md:9: there is no {docs}/none.md": ("README.md", f"[dead]({docs}/none.md)\n"),
        f"README.md:9: {docs}/a.md has no heading #twice-2": ("README.md", f"[dead]({docs}/a.md#twice-2)\n"),
        "README.md:9: this page has no heading #no-heading": ("README.md", "[dead](#no-heading)\n"),
        "README.md:9: one.c has no heading #x": ("README.md", "[dead](one.c#x)\n"),
        f"{docs}/a.md:5: there is no {docs}/b.md": (f"{docs}/a.md", f"![dead]({docs}/b.md)\n"),
        f"one.c:2: there is no {docs}/none.md": ("one.c", f"/* {docs}/none.md has it */\n"),
    }
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, docs))
        for plant in [None, *planted]:
            for name, text in pages.items():
                more = planted[plant][1] if plant and planted[plant][0] == name else ""
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text + more)
            found = dead_links(root)[0]
            if found != ([plant] if plant else []):
                sys.exit(f"links.py: expected {plant}, found {found}")
    print(f"{len(planted)} dead links were planted and found")


def main():
    if len(sys.argv) > 2:
        sys.stderr.write(__doc__.split("\n\n")[1] + "\n")
        return 2
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    dead, count = dead_links(sys.argv[1] if len(sys.argv) > 1 else here)
    for sentence in dead:
        print(sentence)
    print(f"{count} links, {len(dead)} of them dead")
    return 1 if dead or count < 1 else 0


if __name__ == "__main__":
    sys.exit(main())
