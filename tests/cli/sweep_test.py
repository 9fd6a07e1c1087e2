#!/usr/bin/env python3
"""`fulcrum sweep`: shards and resumed runs give the file of one run; bad input writes nothing.

usage: sweep_test.py BINARY SOURCE_DIR
"""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
GRID = ["--over", "concurrency=1:40", "--over", "input_tokens=512,4096",
        "--over", "engine.cuda_graph=true,false"]


def run(*arguments):
    environment = dict(os.environ, FULCRUM_DATA_DIR=str(SOURCE / "data"), LC_ALL="C.UTF-8")
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True,
                          check=False, env=environment)


class Sweep(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "grid.csv"
        self.part = pathlib.Path(folder.name) / "grid.csv.part"
        self.whole = run("sweep", *GRID).stdout

    def test_a_row_is_what_predict_says(self):
        rows = list(csv.DictReader(self.whole.splitlines()))
        self.assertEqual(len(rows), 160)
        row = rows[3 + 40]
        point = json.loads(run("predict", "--json", "--concurrency", row["concurrency"], "--set",
                               "workload.input_tokens=" + row["input_tokens"]).stdout)["points"][0]
        for key in ("step_seconds", "tpot_seconds", "output_tokens_per_second"):
            for quantile in ("p05", "p50", "p95"):
                self.assertEqual(float(row[f"{key}_{quantile}"]), point[key][quantile])
        self.assertEqual(float(row["ttft_seconds_p50"]), point["ttft_seconds"]["p50"])

    def test_shards_join_to_the_whole(self):
        lines = self.whole.splitlines(keepends=True)[:1]
        for i in range(1, 4):
            lines += run("sweep", *GRID, "--shard", f"{i}/3").stdout.splitlines(keepends=True)[1:]
        self.assertEqual("".join(lines), self.whole)

    def test_an_interrupted_run_goes_on_where_it_stopped(self):
        for kept in (0, 400, len(self.whole) // 2, len(self.whole)):
            self.part.write_text(self.whole[:kept] if kept else "")
            if not kept:
                self.part.unlink()
            result = run("sweep", *GRID, "-o", self.out, "--resume")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.out.read_text(), self.whole)
            self.assertFalse(self.part.exists())

    def test_a_file_of_another_sweep_is_not_continued(self):
        self.part.write_text(self.whole[:len(self.whole) // 2])
        other = run("sweep", *GRID, "--set", "engine.memory_fraction=0.8", "--set",
                    "workload.output_tokens=99", "-o", self.out, "--resume")
        self.assertEqual(other.returncode, 2)
        self.assertIn("has another result for point", other.stderr)
        columns = run("sweep", "--over", "num_gpus=4,8", "-o", self.out, "--resume")
        self.assertIn("has other columns", columns.stderr)

    def test_json_has_the_same_values(self):
        table = json.loads(run("sweep", *GRID, "--json").stdout)
        self.assertEqual(table["schema"], "fulcrum/sweep/1")
        rows = list(csv.reader(self.whole.splitlines()))
        self.assertEqual(table["columns"], rows[0])
        column = rows[0].index("tpot_seconds_p50")
        self.assertEqual([row[column] for row in table["rows"]],
                         [float(row[column]) for row in rows[1:]])

    def test_bad_input_writes_nothing(self):
        for arguments in (["--over", "foo=1,2"], ["--over", "concurrency=0:3"],
                          ["--over", "input_tokens=1e9"], ["--shard", "0/3"], ["--shard", "x"],
                          ["--over", "concurrency=1", "--over", "concurrency=2"]):
            with self.subTest(arguments=arguments):
                result = run("sweep", *arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stdout, "")

    def test_what_does_not_fit_has_empty_fields(self):
        result = run("sweep", "--over", "engine.memory_fraction=0.2")
        row = next(csv.DictReader(result.stdout.splitlines()))
        self.assertEqual((row["effective_batch"], row["tpot_seconds_p50"]), ("0", ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
