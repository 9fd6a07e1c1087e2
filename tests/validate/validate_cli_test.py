#!/usr/bin/env python3
"""`validate` and `check` as a user meets them, and the accuracy on the shipped cases as bounds.

usage: validate_cli_test.py BINARY SOURCE_DIR
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*arguments):
    environment = dict(os.environ, FULCRUM_DATA_DIR=str(SOURCE / "data"), LC_ALL="C.UTF-8")
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=False,
                          env=environment)


def case_file(folder, *cases):
    path = pathlib.Path(folder) / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")
    return str(path)


CASE = {"id": "a", "scenario": "campaign-stock", "concurrency": 16,
        "measured": {"output_tokens_per_second": 23}, "source": "campaign"}


class Validate(unittest.TestCase):
    def test_a_bound_that_is_missed_exits_with_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = case_file(folder, CASE)
            self.assertEqual(run("validate", path, "--bound", "mape=0.9").returncode, 0)
            missed = run("validate", path, "--bound", "mape=0.01")
            self.assertEqual(missed.returncode, 1)
            self.assertIn("bound missed: mape", missed.stderr)

    def test_bad_input_exits_with_two_and_prints_nothing(self):
        for arguments in (["nosuch.jsonl"], [__file__], ["--bound", "nonsense"]):
            result = run("validate", *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stdout, "", arguments)
            self.assertIn("fulcrum: error", result.stderr)

    def test_json_has_the_contract_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            out = json.loads(run("validate", case_file(folder, CASE), "--json").stdout)
        self.assertEqual(out["schema"], "fulcrum/validation/1")
        self.assertLessEqual({"id", "quantity", "predicted", "measured", "ape", "covered"},
                             set(out["cases"][0]))
        self.assertLessEqual({"mape", "median_ape", "shape_error", "coverage", "n"},
                             set(out["summary"]))

    def test_a_published_record_is_read_as_it_stands(self):
        record = {"kind": "serving", "id": "r", "gpu": "RTX PRO 6000 Blackwell WS", "gpu_count": 2,
                  "engine": "vLLM", "date": "2026-05-20", "tp": 2, "ep": 2, "concurrency": 4,
                  "model": "DeepSeek-V4-Flash", "spec_method": "none", "input_len": 69,
                  "output_len": 190, "output_tok_s": 244, "source": "https://example.org"}
        with tempfile.TemporaryDirectory() as folder:
            out = json.loads(run("validate", case_file(folder, record), "--json").stdout)
        self.assertEqual(out["cases"][0]["kernel_set"], "vllm-2026-05-sm120")
        self.assertLess(out["cases"][0]["ape"], 0.15)

    def test_the_profiled_stack_keeps_its_accuracy(self):
        """Bounds at today's figures with a margin: 8 % of TPOT on short prompts, see README."""
        path = SOURCE / "data/field/jasl-vllm-ds4-sm120-harness.jsonl"
        result = run("validate", str(path), "--json")
        self.assertEqual(result.returncode, 0)
        out = json.loads(result.stdout)
        self.assertGreater(out["summary"]["n"], 150)
        self.assertLess(out["summary"]["median_ape"], 0.10)
        self.assertLess(out["summary"]["mape"], 0.16)
        self.assertGreater(out["summary"]["coverage"], 0.85)


class Check(unittest.TestCase):
    def verdict(self, *arguments):
        result = run("check", *arguments, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_the_campaigns_numbers(self):
        out = self.verdict("campaign-stock", "-m", "output_tokens_per_second=23", "-m",
                           "concurrency=16")
        self.assertIn(out["verdict"], ("plausible", "cannot_tell"))
        out = self.verdict("campaign-stock", "-m", "output_tokens_per_second=1000", "-m",
                           "concurrency=16")
        self.assertEqual(out["verdict"], "implausible")
        out = self.verdict("campaign-stock", "--lever", "fp8_configs", "--claim", "4.5",
                           "--concurrency", "1")
        self.assertEqual(out["verdict"], "impossible")

    def test_an_ab_pair_with_another_batch_is_not_comparable(self):
        with tempfile.TemporaryDirectory() as folder:
            a = pathlib.Path(folder) / "a.json"
            a.write_text('{"concurrency": 16, "output_tokens_per_second": 23}', encoding="utf-8")
            out = self.verdict("campaign-a", str(a), "--against", str(a), "--against-scenario",
                               "campaign-b")
        self.assertEqual(out["verdict"], "not_comparable")

    def test_no_published_serving_record_is_called_impossible(self):
        for path in sorted((SOURCE / "data/field").glob("*.jsonl")):
            out = self.verdict(str(path))
            wrong = [r["id"] for r in out["results"] if r["verdict"] == "impossible"]
            self.assertEqual(wrong, [], path.name)

    def test_bad_input_exits_with_two(self):
        for arguments in (["campaign-a"], ["campaign-a", "nosuch.json"], ["campaign-a", "-m", "x=1"],
                          ["campaign-a", "-m", "output_tokens_per_second=-1"],
                          ["campaign-a", "--claim", "2"]):
            result = run("check", *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stdout, "", arguments)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
