#!/usr/bin/env python3
"""Checks the links of every Markdown file of the tree: `check_links.py ROOT`.

Relative links must name a file or folder that exists and, with a fragment, a heading of that file.
Web addresses are not fetched: the test needs no network. Paths in backquotes that look like files of
this repository (a known top-level folder, then a slash) must exist too.
"""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
QUOTED_PATH = re.compile(r"`([A-Za-z0-9_.-]+/[A-Za-z0-9_./-]*)`")
FENCE = re.compile(r"^\s*(```|~~~)")


def markdown_files(root):
    if (root / ".git").exists():
        listing = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached",
             "--others", "--exclude-standard", "--", "*.md"],
            check=True, capture_output=True, text=True).stdout
        return [root / p for p in listing.split("\0") if p and (root / p).is_file()]
    return sorted(root.rglob("*.md"))


def prose_lines(path):
    """(line number, text) outside fenced blocks."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(path):
    """The fragments GitHub gives to the headings of `path`."""
    found = set()
    for _, line in prose_lines(path):
        if line.startswith("#"):
            title = re.sub(r"[`*]", "", line.lstrip("#").strip()).lower()
            anchor = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
            suffix = 0
            while (anchor if suffix == 0 else f"{anchor}-{suffix}") in found:
                suffix += 1
            found.add(anchor if suffix == 0 else f"{anchor}-{suffix}")
    return found


def complaints(root):
    found = []
    for path in markdown_files(root):
        name = path.relative_to(root)
        for number, line in prose_lines(path):
            for target in LINK.findall(line):
                if re.match(r"[a-z][a-z0-9+.-]*:", target):
                    continue
                file, _, fragment = target.partition("#")
                destination = path.parent / file if file else path
                if not destination.exists():
                    found.append(f"{name}:{number}: {target} does not exist")
                elif fragment and fragment not in anchors(destination):
                    found.append(f"{name}:{number}: {target}: no such heading")
            for target in QUOTED_PATH.findall(line):
                if (root / target.split("/")[0]).is_dir() and not target.startswith(("build/", ".")):
                    if not (root / target).exists():
                        found.append(f"{name}:{number}: `{target}` does not exist")
    return found


if __name__ == "__main__":
    problems = complaints(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
