#!/usr/bin/env python3
"""Writes the code blocks that a Markdown page marks as files: `extract_example.py PAGE OUT`.

A marked block is `<!-- file: PATH -->` on one line and a fenced block right after it.
"""

import pathlib
import re
import sys

MARKED = re.compile(r"^<!-- file: (?P<path>\S+) -->\n```\w*\n(?P<text>.*?)^```$",
                    re.DOTALL | re.MULTILINE)

if __name__ == "__main__":
    page, out = (pathlib.Path(argument) for argument in sys.argv[1:3])
    blocks = list(MARKED.finditer(page.read_text(encoding="utf-8")))
    for block in blocks:
        path = out / block["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block["text"], encoding="utf-8")
    sys.exit(0 if blocks else f"{page}: no marked block")
