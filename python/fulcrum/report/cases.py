"""Measured cases (JSONL, one case a line) for the report: read, predicted at, matched to scenarios."""

import json
import pathlib
from dataclasses import dataclass

from .._fulcrum import InputError
from ..prediction import predict
from ..scenario import load


@dataclass(frozen=True)
class Case:
    """A measured value and what is predicted for it."""
    id: str
    scenario: str  #: name, empty where the case brings its own scenario or changes one
    quantity: str
    concurrency: float
    measured: float
    predicted: object  #: Interval
    source: str


QUANTITIES = ("output_tokens_per_second", "tpot_seconds", "step_seconds")


def _read_line(line, place):
    try:
        case = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{place}: is no JSON: {error}") from error
    for key in ("scenario", "concurrency", "measured"):
        if not isinstance(case, dict) or key not in case:
            raise InputError(f"{place}: \"{key}\" is missing")
    return case


def read(paths):
    """Cases of all files, and why others were left out: [Case], ["id: why"]."""
    cases, excluded = [], []
    for path in paths:
        try:
            text = pathlib.Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot be read: {error}") from error
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                place = f"{path}: line {number}"
                _predict_case(_read_line(line, place), place, cases, excluded)
    return cases, excluded


def _predict_case(case, place, cases, excluded):
    name = str(case.get("id", place))
    overrides = case.get("overrides") or {}
    try:
        scenario = load(case["scenario"], **overrides)
        point = predict(scenario, case["concurrency"]).points[0]
    except InputError as error:
        excluded.append(f"{name}: {error}")
        return
    own = "" if overrides or not isinstance(case["scenario"], str) else scenario.name
    for quantity in QUANTITIES:
        measured = case["measured"].get(quantity)
        predicted = getattr(point, quantity)
        if isinstance(measured, (int, float)) and measured > 0 and predicted is not None:
            cases.append(Case(name, own, quantity, float(case["concurrency"]), float(measured),
                              predicted, str(case.get("source", ""))))
