"""Measured cases for the report: scored by `validate`, matched to the scenarios they belong to."""

import json
import os
import pathlib
from dataclasses import dataclass

from ..analyses import validate
from ..results import CaseScore


@dataclass(frozen=True)
class Case:
    """A scored case with what the page says about it."""
    score: CaseScore
    scenario: str  #: name, empty where the case brings its own scenario or changes one
    source: str


def _entries(path):
    """The cases of a file that `validate` has accepted, by id."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    try:
        document = json.loads(text)
        entries = document if isinstance(document, list) else [document]
    except json.JSONDecodeError:
        entries = [json.loads(line) for line in text.splitlines() if line.strip()]
    return {str(entry.get("id", "")): entry for entry in entries}


def read(paths):
    """Cases of all files and why others were left out: ([Case], ["id: why"], summary)."""
    if not paths:
        return [], [], {}
    scored = validate([os.fspath(path) for path in paths])
    entries = {}
    for path in paths:
        entries.update(_entries(path))
    cases = []
    for score in scored:
        entry = entries.get(score.id, {})
        named = isinstance(entry.get("scenario"), str) and not entry.get("overrides")
        cases.append(Case(score, entry["scenario"] if named else "", str(entry.get("source", ""))))
    return cases, [f"{one['id']}: {one['why']}" for one in scored.excluded], scored.summary
