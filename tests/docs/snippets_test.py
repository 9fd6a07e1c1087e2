#!/usr/bin/env python3
"""Commands and Python in the Markdown files do what the text says: `snippets_test.py ROOT BINARY`.

Every line of a fenced `sh` block that starts with `./fulcrum` and one of the commands below runs, in an
empty folder, with BINARY in place of the launcher. A comment before a block changes that:
    <!-- fails -->                       the commands must end with exit status 2
    <!-- needs ... -->                   not run here
    <!-- file: NAME -->                  the block is written to that file first
`json` blocks must parse, and `python` blocks must compile; they run where the package is installed.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import check_links

ROOT, BINARY = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^>]*?) -->\n)?^```(?P<language>sh|json|python)\n"
                   r"(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
RUNS = {"predict", "levers", "explain", "simulate", "validate", "sweep"}
# Blocks of these pages are run by a test of their own.
ELSEWHERE = {"CONTRIBUTING.md"}


def blocks(language):
    for path in check_links.markdown_files(ROOT):
        if path.name in ELSEWHERE:
            continue
        for match in BLOCK.finditer(path.read_text(encoding="utf-8")):
            if match["language"] == language:
                yield str(path.relative_to(ROOT)), match["mark"] or "", match["body"]


def commands(body):
    for line in body.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["./fulcrum"] and len(words) > 1 and words[1] in RUNS:
            yield words[1:]


class Snippets(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = dict(os.environ, FULCRUM_DATA_DIR=str(ROOT / "data"), LC_ALL="C.UTF-8")

    def test_shown_commands_run(self):
        for language in ("json", "python"):
            for _, mark, body in blocks(language):
                if mark.startswith("file: ") and "/" not in mark:
                    (self.folder / mark[6:]).write_text(body, encoding="utf-8")
        ran = 0
        for page, mark, body in blocks("sh"):
            if mark.startswith("needs"):
                continue
            for command in commands(body):
                with self.subTest(page=page, command=" ".join(command)):
                    result = subprocess.run([BINARY, *command], cwd=self.folder, check=False,
                                            env=self.environment, capture_output=True, text=True)
                    expected = 2 if mark == "fails" else 0
                    self.assertEqual(result.returncode, expected, result.stderr)
                    ran += 1
        self.assertGreater(ran, 5)

    def test_shown_json_parses(self):
        for page, _, body in blocks("json"):
            for line in body.splitlines() if body.startswith("{\"") else [body]:
                with self.subTest(page=page):
                    json.loads(line)

    def test_shown_python_runs(self):
        try:
            import fulcrum  # noqa: F401
            package = True
        except ImportError:
            package = False
        for page, mark, body in blocks("python"):
            with self.subTest(page=page):
                code = compile(body, page, "exec")
                if package and not mark.startswith("needs"):
                    subprocess.run([sys.executable, "-c", body], cwd=self.folder, check=True,
                                   env=self.environment, capture_output=True)
                self.assertIsNotNone(code)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
