#!/usr/bin/env python3
"""The tree checks find planted faults and let a clean tree pass."""

import pathlib
import tempfile
import unittest

import check_tree


class PlantedTree(unittest.TestCase):

    def complaints(self, rule, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_tree.RULES[rule](root)

    def test_a_law_that_includes_io_is_found(self):
        found = self.complaints("includes", {"model/laws/a.h": '#include "model/io/reader.h"\n'})
        self.assertEqual(found,
                         ["model/laws/a.h:1: model/laws may not include model/io (model/io/reader.h)"])

    def test_kernels_know_nothing_of_model(self):
        found = self.complaints("includes", {"kernels/gemm/a.cu": '#include "model/units.h"\n'})
        self.assertEqual(len(found), 1)

    def test_model_may_not_include_eigen_or_json_or_cuda(self):
        text = "#include <Eigen/Core>\n#include <nlohmann/json.hpp>\n#include <cuda_runtime.h>\n"
        self.assertEqual(len(self.complaints("includes", {"model/a.cpp": text})), 3)

    def test_a_host_reference_may_not_include_cuda(self):
        files = {"kernels/gemm/a_reference.cpp": "#include <cuda_fp8.h>\n",
                 "kernels/gemm/a.cu": "#include <cuda_fp8.h>\n"}
        self.assertEqual(self.complaints("includes", files), [
            "kernels/gemm/a_reference.cpp:1: host references include nothing of CUDA"])

    def test_an_include_beside_the_file_is_found(self):
        found = self.complaints("includes", {"model/a.cpp": '#include "a.h"\n', "model/a.h": "\n"})
        self.assertEqual(found, ['model/a.cpp:1: "a.h" is not rooted at the repository'])

    def test_an_unknown_folder_is_found(self):
        self.assertEqual(len(self.complaints("includes", {"misc/a.cpp": "\n"})), 1)

    def test_allowed_includes_pass(self):
        files = {"model/io/a.cpp": '#include "model/units.h"\n#include <nlohmann/json.hpp>\n',
                 "replay/b.cu": '#include "kernels/common/check.h"\n#include "model/units.h"\n',
                 "calibrate/c.cpp": "#include <Eigen/Dense>\n#include <vector>\n"}
        self.assertEqual(self.complaints("includes", files), [])

    def test_json_in_a_law_is_found_even_without_an_include(self):
        files = {"model/laws/a.h": "nlohmann::json parameters;\n",
                 "model/io/b.cpp": "nlohmann::json parameters;\n"}
        self.assertEqual(self.complaints("json", files), [
            "model/laws/a.h:1: JSON outside an io folder"])

    def test_the_length_bound_is_tight(self):
        limit = check_tree.MAX_LINES
        files = {"model/at.cpp": "\n" * limit, "model/past.cpp": "\n" * (limit + 1)}
        self.assertEqual(len(self.complaints("length", files)), 1)

    def test_a_folder_without_readme_is_found(self):
        files = {"model/a.h": "", "cli/README.md": "", "cli/main.cpp": ""}
        self.assertEqual(self.complaints("readmes", files), ["model/README.md is missing"])

    def test_a_header_without_guard_is_found(self):
        files = {"model/a.h": "int a();\n", "model/b.h": "#pragma once\n"}
        self.assertEqual(self.complaints("headers", files), ["model/a.h: no #pragma once"])


if __name__ == "__main__":
    unittest.main()
