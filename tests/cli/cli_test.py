#!/usr/bin/env python3
"""The program as a user meets it: exit codes, one clear error, nothing on stdout when it fails.

usage: cli_test.py BINARY SOURCE_DIR
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*arguments, data=None):
    environment = dict(os.environ, FULCRUM_DATA_DIR=str(data or SOURCE / "data"), LC_ALL="C.UTF-8")
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=False,
                          env=environment)


class Doctor(unittest.TestCase):
    def test_it_answers_with_exit_0_whatever_the_machine(self):
        result = run("doctor")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("driver", result.stdout)

    def test_json_names_machine_and_findings(self):
        report = json.loads(run("doctor", "--json").stdout)
        self.assertEqual(report["schema"], "fulcrum/doctor/1")
        self.assertEqual(len(report["known"]), len(report["machine"]["gpus"]))
        for finding in report["findings"]:
            self.assertIn(finding["severity"], ("blocks", "distorts", "note"))
            self.assertTrue(finding["code"] and finding["what"] and finding["why"])
        if not report["machine"]["gpus"]:
            self.assertEqual(report["findings"][0]["severity"], "blocks")

    def test_arguments_are_refused(self):
        self.assertEqual(run("doctor", "now").returncode, 2)


class BadInput(unittest.TestCase):
    """arguments, part of the message"""

    CASES = [
        (["predict", "nosuch"], '"nosuch" is not in data/scenarios'),
        (["predict", "no/such/file.json"], "cannot be read"),
        (["predict", "--set", "tensor_parallel=3"], "o_groups = 8 is not divisible by 3"),
        (["predict", "--concurrency", "0"], '--concurrency: is "0"'),
        (["predict", "--concurrency", "1,x"], '--concurrency: is "1,x"'),
        (["predict", "--concurrency", "1.5"], "whole numbers"),
        (["predict", "--set", "kernel_set=sglang-2026-07-sm120"], "did you mean"),
        (["predict", "--set", "engine.cuda_grap=true"], 'did you mean "cuda_graph"'),
        (["predict", "--set", "engine.memory_fraction=-1"], "/engine/memory_fraction: is -1"),
        (["predict", "--set", "hardware=gb10"], "gb10"),
        (["predict", "--set", "nonsense"], "PATH=VALUE"),
        (["predict", "--bogus"], "--bogus"),
        (["levers", "--lever", "nosuch"], '"nosuch" is not in data/levers'),
        (["import"], "no file given"),
        (["import", "no/such/file"], "No such file"),
        (["import", str(SOURCE / "tests")], "is a folder"),
        (["import", "a", "b", "--steps", "0"], "--steps: is out of range"),
        (["nosuch"], '"nosuch" is not a command'),
    ]

    def test_each_mistake_exits_with_2_and_says_where(self):
        for arguments, expected in self.CASES:
            with self.subTest(arguments=arguments):
                result = run(*arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(expected, result.stderr)
                self.assertTrue(result.stderr.startswith("fulcrum: error: "))
                self.assertEqual(result.stdout, "")

    def test_damaged_files_exit_with_2(self):
        shipped = (SOURCE / "data/scenarios/campaign-a.json").read_text()
        wrong_unit = json.loads(shipped)
        wrong_unit["engine"]["memory_fraction_percent"] = 85
        damaged = {"truncated": shipped[: len(shipped) // 2], "empty": "", "array": "[]",
                   "binary": "\0\1\2", "unit": json.dumps(wrong_unit),
                   "twice": '{"schema": 1, "schema": 2}', "huge": '{"schema": 1e999}'}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in damaged.items():
                path = pathlib.Path(folder) / f"{name}.json"
                path.write_text(text)
                with self.subTest(name=name):
                    result = run("predict", str(path))
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertIn(str(path), result.stderr)

    def test_no_arguments_is_bad_usage(self):
        self.assertEqual(run().returncode, 2)


class Output(unittest.TestCase):

    def test_predict_json_keeps_its_contract(self):
        result = run("predict", "campaign-b", "--concurrency", "1,16", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["schema"], "fulcrum/prediction/1")
        for point in document["points"]:
            for key in ("step_seconds", "tpot_seconds", "ttft_seconds", "output_tokens_per_second"):
                self.assertLessEqual(point[key]["p05"], point[key]["p50"])
                self.assertLessEqual(point[key]["p50"], point[key]["p95"])
            self.assertAlmostEqual(sum(line["seconds"] for line in point["breakdown"]),
                                   point["step_seconds"]["p50"], places=9)
            for line in point["breakdown"]:
                for key in ("op", "family", "kernel", "count", "share_fraction", "limiter",
                            "floor_seconds"):
                    self.assertIn(key, line)
        self.assertEqual(document["points"][1]["effective_batch"], 8)
        self.assertEqual(document["points"][1]["batch_limiter"], "max_running_requests")

    def test_levers_json_keeps_its_contract(self):
        result = run("levers", "campaign-stock", "--concurrency", "1", "--lever", "fp8_configs",
                     "--lever", "mtp1", "--pairs", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["schema"], "fulcrum/levers/1")
        self.assertEqual({lever["name"] for lever in document["levers"]},
                         {"fp8_configs", "mtp1", "fp8_configs + mtp1"})
        for lever in document["levers"]:
            self.assertIn(lever["verdict"], ("do", "skip", "cannot_tell"))
            self.assertGreater(lever["ceiling_ratio"], 1.0)

    def test_json_goes_alone_to_stdout(self):
        json.loads(run("predict", "--json").stdout)

    def test_every_command_has_help_with_an_example(self):
        listed = [line.split()[0] for line in run("--help").stdout.splitlines()
                  if line.startswith("  ") and not line.startswith("   ")]
        self.assertIn("predict", listed)
        for command in listed:
            with self.subTest(command=command):
                result = run(command, "--help")
                self.assertEqual(result.returncode, 0)
                self.assertIn("example", result.stdout.lower())

    def test_two_runs_print_the_same(self):
        self.assertEqual(run("levers", "--concurrency", "1").stdout,
                         run("levers", "--concurrency", "1").stdout)

    def test_a_full_disk_is_a_failure(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            result = subprocess.run([BINARY, "predict"], stdout=full, stderr=subprocess.PIPE,
                                    check=False,
                                    env=dict(os.environ, FULCRUM_DATA_DIR=str(SOURCE / "data")))
        self.assertEqual(result.returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
