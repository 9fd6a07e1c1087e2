#!/usr/bin/env python3
"""The link check finds planted faults and lets good links pass."""

import pathlib
import tempfile
import unittest

import check_links


class PlantedPage(unittest.TestCase):

    def complaints(self, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "model").mkdir()
            (root / "model/README.md").write_text("# The model\n\n## F1: bytes & flop\n")
            (root / "page.md").write_text(text)
            return check_links.complaints(root)

    def test_a_missing_file_is_found(self):
        self.assertEqual(self.complaints("[a](model/gone.md)\n"),
                         ["page.md:1: model/gone.md does not exist"])

    def test_a_missing_heading_is_found(self):
        self.assertEqual(self.complaints("[a](model/README.md#f2)\n"),
                         ["page.md:1: model/README.md#f2: no such heading"])

    def test_a_path_in_backquotes_must_exist(self):
        self.assertEqual(self.complaints("See `model/gone.h`.\n"),
                         ["page.md:1: `model/gone.h` does not exist"])

    def test_good_links_web_addresses_and_code_blocks_pass(self):
        self.assertEqual(self.complaints(
            "[a](model/README.md#f1-bytes--flop) [b](https://example.org/x) `model/README.md`\n"
            "```\n[c](model/gone.md)\n```\n"), [])


if __name__ == "__main__":
    unittest.main()
