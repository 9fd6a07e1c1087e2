#!/usr/bin/env python3
"""Stale blocks are found and rewritten; current ones and failures are told apart."""

import pathlib
import tempfile
import unittest

import generated_blocks

PAGE = "<!-- generated{kind}: fulcrum {arguments} -->\n{body}<!-- end generated -->\nafter\n"


class PlantedPage(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.page = self.root / "page.md"

    def write(self, arguments, body, kind=" by"):
        self.page.write_text(PAGE.format(arguments=arguments, body=body, kind=kind))

    def test_a_current_block_passes(self):
        self.write("one two", "```text\n$ ./fulcrum one two\none two\n```\n")
        self.assertEqual(generated_blocks.differing_blocks(self.root, "echo"), [])

    def test_a_stale_block_is_found_and_rewritten(self):
        self.write("one", "typed by hand\n")
        self.assertEqual(generated_blocks.differing_blocks(self.root, "echo", write=True),
                         ["page.md: fulcrum one"])
        self.assertEqual(generated_blocks.differing_blocks(self.root, "echo"), [])
        self.assertTrue(self.page.read_text().endswith("-->\nafter\n"))

    def test_markdown_output_is_not_fenced(self):
        self.write("x", "x\n", kind=" as markdown by")
        self.assertEqual(generated_blocks.differing_blocks(self.root, "echo"), [])

    def test_a_cut_says_so(self):
        self.write("3", "", kind=" by (first 1 lines)")
        generated_blocks.differing_blocks(self.root, "seq", write=True)
        self.assertIn("\n1\n... (2 more lines)\n", self.page.read_text())

    def test_a_failing_command_is_an_error(self):
        self.write("x", "")
        with self.assertRaises(RuntimeError):
            generated_blocks.differing_blocks(self.root, "false")


if __name__ == "__main__":
    unittest.main()
