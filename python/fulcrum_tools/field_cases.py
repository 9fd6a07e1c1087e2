"""Turns published records into the case files of data/field.

usage: python3 -m fulcrum_tools.field_cases FULCRUM RECORDS.jsonl OUT_DIR

FULCRUM is the program; what a record becomes is decided there (model/io/field_record.cpp and
data/field/rules.json). This script sorts records by their source, keeps figures and drops
sentences, and writes one file of cases a source. A record that cannot be priced stays, with its
reason.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile


def file_name(source):
    """"https://github.com/a/b-c/pull/7" -> "a-b-c-pull-7"."""
    path = re.sub(r"^https?://(www\.)?github\.com/", "", source)
    return re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")[:80] or "unknown"


def short_panel(case, panels):
    """Panels are long keys of stated settings; a number in order of appearance says the same."""
    key = case.get("panel")
    if key:
        case["panel"] = f"p{panels.setdefault(key, len(panels) + 1)}"
    return case


def main(program, records_path, out_dir):
    by_source = {}
    for line in pathlib.Path(records_path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        record = json.loads(line)
        if record.get("kind") == "serving":
            by_source.setdefault(record.get("source", "unknown"), []).append(record)
    out = pathlib.Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    total = 0
    for source, records in sorted(by_source.items()):
        with tempfile.TemporaryDirectory() as folder:
            part = pathlib.Path(folder) / "records.jsonl"
            part.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
            printed = subprocess.run([program, "validate", str(part), "--print-cases"],
                                     check=True, capture_output=True, text=True).stdout
        panels = {}
        cases = [short_panel(json.loads(line), panels) for line in printed.splitlines()]
        lines = [json.dumps(case, sort_keys=True) for case in cases]
        (out / f"{file_name(source)}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        total += len(cases)
    print(f"{total} cases of {len(by_source)} sources in {out}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
