"""`explain` and `simulate` as a program: exit codes, JSON schemas, what they say of the campaign."""

import json
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


class Explain(unittest.TestCase):
    def test_speculation_names_arms_that_do_not_compare(self):
        result = run("explain", "campaign-b", "speculation", "--against", "campaign-a", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(answer["schema"], "fulcrum/explanation/1")
        at = {p["concurrency"]: p for p in answer["points"]}
        self.assertTrue(at[8]["comparable"])
        self.assertFalse(at[16]["comparable"])
        self.assertIsNotNone(answer["crossover_concurrency"]["p50"])
        text = run("explain", "speculation", "campaign-b", "--against", "campaign-a").stdout
        self.assertIn("not comparable: 16 requests decode together without drafts, 8 with", text)
        self.assertIn("HCA states", text)

    def test_compare_names_the_ledger_entry_that_halves_the_batch(self):
        arguments = ["explain", "campaign-b-memory", "compare", "--against", "campaign-a-memory"]
        answer = json.loads(run(*arguments, "--json").stdout)
        point = {p["concurrency"]: p for p in answer["points"]}[16]
        self.assertEqual((point["effective_batch_before"], point["effective_batch_after"]), (16, 8))
        self.assertFalse(point["comparable"])
        self.assertEqual(point["ledger_causes"][0]["entry"], "HCA states a token")
        self.assertIn("HCA states a token does most of it", run(*arguments).stdout)

    def test_best_number_of_drafts_and_status_of_the_crossover_are_said(self):
        result = run("explain", "maxq-dspark-tp2", "speculation", "--json")
        answer = json.loads(result.stdout)
        self.assertEqual(answer["crossover_concurrency"]["status"]["p50"], "never_stops")
        self.assertEqual([entry["best_draft_tokens"] for entry in answer["draft_ladder"]][0], 5)

    def test_step_ends_at_the_predicted_step(self):
        answer = json.loads(run("explain", "step", "b12x-tp4", "--json").stdout)
        for point in answer["points"]:
            bars = point["waterfall"]
            self.assertAlmostEqual(sum(b["seconds"] for b in bars[:-1]), bars[-1]["seconds"])

    def test_target_says_what_hardware_and_kernels_allow(self):
        answer = json.loads(run("explain", "campaign-a", "target", "--tok-s", "1000", "--json").stdout)
        self.assertIsNotNone(answer["physical_from_concurrency"])
        self.assertIsNone(answer["predicted_from_concurrency"])
        self.assertGreater(len(answer["levers"]), 2)

    def test_misuse_exits_with_2(self):
        for arguments in (["explain"], ["explain", "target"], ["explain", "campaign-a", "speculation"],
                          ["explain", "campaign-a", "compare"],
                          ["simulate", "--rate", "0"], ["simulate", "--trace", "none.jsonl"],
                          ["simulate", "--policy", "fifo"], ["simulate", "-n", "0"]):
            self.assertEqual(run(*arguments).returncode, 2, arguments)

    def test_what_does_not_fit_is_said(self):
        result = run("explain", "campaign-a", "step", "--set", "engine.memory_fraction=0.2")
        self.assertEqual(result.returncode, 0)
        self.assertIn("does not fit", result.stdout)


class Simulate(unittest.TestCase):
    def test_closed_loop_conserves_requests(self):
        answer = json.loads(run("simulate", "b12x-tp4", "-c", "8", "-n", "100", "--json").stdout)
        self.assertEqual(answer["schema"], "fulcrum/simulation/1")
        self.assertEqual(answer["runs"][0]["completed"], 100)

    def test_a_trace_is_replayed(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as trace:
            for i in range(50):
                trace.write(json.dumps({"timestamp": 200 * i, "input_length": 500,
                                        "output_length": 50}) + "\n")
            trace.flush()
            answer = json.loads(run("simulate", "b12x-tp4", "--trace", trace.name, "--json").stdout)
        self.assertEqual(answer["runs"][0]["completed"], 50)
        self.assertGreater(answer["runs"][0]["makespan_seconds"], 9.8)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
