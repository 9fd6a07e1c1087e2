"""Joins predictions and measurements of the same entries into CSV on standard output.

Usage: python3 compare.py MEASURED.jsonl PREDICTED.jsonl [PREDICTED.jsonl ...]
Only entries with status ok are compared. Times in microseconds; the last line gives counts and medians.
"""
import json
import statistics
import sys


def records(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def key(record):
    return (record["kernel"], json.dumps(record["shape"]), record["cache"], record["launch"])


measured_path, *predicted_paths = sys.argv[1:]
predicted = {}
for path in predicted_paths:
    predicted.update((key(r), r["predicted_seconds"]) for r in records(path))
measured = [r for r in records(measured_path)
            if r["record"] == "entry" and r["status"] == "ok" and "cache" in r]
print("kernel,shape,predicted_us,measured_us,measured_over_predicted,achieved_gb_per_s")
ratios = []
for r in measured:
    if key(r) not in predicted:
        continue
    expected = predicted[key(r)]
    ratio = r["median_seconds"] / expected
    ratios.append(ratio)
    shape = " ".join(f"{k}={v}" for k, v in r["shape"].items())
    print(f"{r['kernel']},{shape},{1e6 * expected:.3f},{1e6 * r['median_seconds']:.3f},{ratio:.3f},"
          f"{1e-9 * r['achieved_bytes_per_second']:.1f}")
print(f"# {len(ratios)} entries compared, measured over predicted: median {statistics.median(ratios):.2f}, "
      f"min {min(ratios):.2f}, max {max(ratios):.2f}")
