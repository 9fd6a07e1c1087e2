"""Fitting the cost laws to measured kernel times, and scoring a calibration on rows it has not seen."""

import datetime
import json
import os
import pathlib
from dataclasses import dataclass

from . import _fulcrum
from .results import _Pandas, from_json


@dataclass(frozen=True)
class Errors:
    """Errors of predictions over rows; APE is |predicted - measured| / measured."""
    num_rows: int
    median_ape: float
    p90_ape: float
    bias_log: float
    coverage_fraction: float  #: rows inside their 90 % interval


@dataclass(frozen=True)
class Series:
    """One kernel's law fitted to its rows."""
    id: str
    num_rows: int
    parameters: list  #: dicts with name, value, standard_error, unit
    inside: Errors | None  #: on shapes held out
    outside: Errors | None  #: beyond the fitted range


@dataclass(frozen=True)
class Score:
    """Errors of an existing calibration on a table's rows."""
    series: str
    num_rows: int
    median_ape: float
    p90_ape: float
    bias_log: float
    coverage_fraction: float


class Scores(list, _Pandas):
    """Scores by series; `not_scored` names what the calibration does not hold."""

    def __init__(self, scores, not_scored):
        super().__init__(scores)
        self.not_scored = not_scored


class Calibration:
    """Fitted parameters of one device, schema fulcrum/calibration/1."""

    def __init__(self, text, unexplained=(), tables=()):
        self._text = text
        self._document = json.loads(text)
        self.hardware = self._document["hardware"]
        self.unexplained = list(unexplained)  #: series that no law explains
        self.tables = list(tables)  #: rows read and rows set aside, with the reasons

    @property
    def series(self):
        """The fits, one per kernel series."""
        return [_series(entry) for entry in self._document["series"]]

    def save(self, path):
        """Writes the file that a scenario's hardware or `score` takes."""
        pathlib.Path(path).write_text(self._text, encoding="utf-8")

    def to_dict(self):
        return self._document

    def __repr__(self):
        return f"Calibration({self.hardware!r}, {len(self._document['series'])} series)"


def _errors(entry):
    if not entry:
        return None
    return Errors(entry["num_rows"], entry["median_ape"], entry["p90_ape"], entry["bias_log"],
                  entry["coverage_fraction_of_90"])


def _series(entry):
    errors = entry["errors"]
    return Series(entry["id"], entry["num_rows"], entry["parameters"],
                  _errors(errors.get("held_out_shapes")), _errors(errors.get("frontier")))


def _paths(tables):
    given = [tables] if isinstance(tables, (str, os.PathLike)) else list(tables)
    return [os.fspath(path) for path in given]


def fit(tables, *, device="", data_source="user measurements", seed=1):
    """Fits every series of the tables (CSV, one device). Rows that cannot be right are set aside.

    `device` names the GPU where the table does not. Takes seconds to minutes; the GIL is free.
    """
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return Calibration(*_fulcrum._fit(_paths(tables), device, data_source, day, seed))


def score(tables, calibration=None, *, device=""):
    """Predicts each row with a calibration (a file or a Calibration; default: the shipped one)."""
    if isinstance(calibration, Calibration):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "calibration.json"
            calibration.save(path)
            return score(tables, path, device=device)
    path = "" if calibration is None else os.fspath(calibration)
    rows, missing = _fulcrum._score(_paths(tables), device, path)
    return Scores([from_json(Score, row) for row in rows], missing)
