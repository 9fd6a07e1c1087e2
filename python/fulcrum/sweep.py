"""Grids and lists of points into NumPy arrays, priced by one C++ loop without the GIL."""

import json
import os
from typing import NamedTuple

import numpy

from . import _fulcrum
from .scenario import load

_QUANTITIES = ("step_seconds", "tpot_seconds", "ttft_seconds", "output_tokens_per_second")


class ArrayInterval(NamedTuple):
    """5, 50 and 95 % quantiles of every point; NaN where the deployment does not fit."""
    p05: numpy.ndarray
    p50: numpy.ndarray
    p95: numpy.ndarray


class Sweep:
    """Points of a sweep as arrays of one length; `shape` is the grid's, to reshape them.

    `axes` maps the name of each axis to its values in the order of `shape`; concurrency varies
    fastest.
    """

    def __init__(self, columns, axes, settings, warnings):
        self.axes = axes
        self.shape = tuple(len(values) for values in axes.values())
        self.settings = settings  #: axis -> value of every point, for axes of the scenario
        self.warnings = warnings
        self.concurrency = columns["concurrency"]
        self.input_tokens = columns["input_tokens"]
        self.output_tokens = columns["output_tokens"]
        self.effective_batch = columns["effective_batch"]  #: 0 where it does not fit
        self.accept_length = columns["accept_length"]
        self._limiter = columns["batch_limiter"]
        for name in _QUANTITIES:
            setattr(self, name, ArrayInterval(*(columns[f"{name}_{q}"]
                                                for q in ("p05", "p50", "p95"))))

    @property
    def batch_limiter(self):
        """What limits the batch, as text."""
        return numpy.array(_fulcrum._batch_limiters)[self._limiter]

    def __len__(self):
        return len(self.concurrency)

    def __repr__(self):
        return f"Sweep({len(self)} points over {', '.join(self.axes)})"

    def to_pandas(self):
        """One row per point, with the columns of `fulcrum sweep`."""
        import pandas
        columns = dict(self.settings)
        for name in ("concurrency", "input_tokens", "output_tokens", "effective_batch",
                     "batch_limiter", "accept_length"):
            columns[name] = getattr(self, name)
        for name in _QUANTITIES:
            for quantile, values in getattr(self, name)._asdict().items():
                columns[f"{name}_{quantile}"] = values
        return pandas.DataFrame(columns)


def _threads(threads):
    return threads if threads else len(os.sched_getaffinity(0))


def sweep(scenario, *, concurrency=None, input_tokens=None, output_tokens=None, over=None,
          threads=0):
    """Every point of a grid. Axes left out keep the scenario's own values.

    `concurrency`, `input_tokens` and `output_tokens` cost about a microsecond a point; `over` maps
    any other path of the scenario ("engine.cuda_graph") to its values, each combination of which is
    resolved anew. `threads`: 0 for one per core.
    """
    axes = {path: list(values) for path, values in (over or {}).items()}
    fast = {"input_tokens": input_tokens, "output_tokens": output_tokens,
            "concurrency": concurrency}
    scenario = load(scenario)
    given = {**axes, **{k: v for k, v in fast.items() if v is not None}}
    texts = [(path, json.dumps(numpy.asarray(values).tolist() if path in fast else values))
             for path, values in given.items()]
    columns = _fulcrum._sweep_grid(scenario, texts, _threads(threads))
    num_input, num_output, num_concurrency = columns["lengths"]
    per_setting = columns["points_per_setting"]
    all_axes = dict(axes)
    all_axes["input_tokens"] = columns["input_tokens"][:per_setting:num_output * num_concurrency]
    all_axes["output_tokens"] = columns["output_tokens"][:num_output * num_concurrency:
                                                         num_concurrency]
    all_axes["concurrency"] = columns["concurrency"][:num_concurrency]
    settings = {}
    if axes:
        places = numpy.unravel_index(numpy.arange(len(columns["concurrency"])) // per_setting,
                                     [len(values) for values in axes.values()])
        for (path, values), place in zip(axes.items(), places):
            settings[path] = _array_of(values)[place]
    return Sweep(columns, all_axes, settings, columns["warnings"])


def sweep_points(scenario, *, concurrency, input_tokens=None, output_tokens=None, threads=0):
    """Points one by one: the arrays are broadcast against each other as NumPy does."""
    scenario = load(scenario)
    arrays = numpy.broadcast_arrays(
        concurrency, scenario.input_tokens if input_tokens is None else input_tokens,
        scenario.output_tokens if output_tokens is None else output_tokens)
    flat = [numpy.ascontiguousarray(a, dtype=float).ravel() for a in arrays]
    columns = _fulcrum._sweep_points(scenario, *flat, _threads(threads))
    columns.update(zip(("concurrency", "input_tokens", "output_tokens"), flat))
    return Sweep(columns, {"point": numpy.arange(flat[0].size)}, {}, scenario.warnings)


def _array_of(values):
    """Values of an axis as an array; lists and dicts stay objects."""
    if any(isinstance(value, (list, dict)) for value in values):
        array = numpy.empty(len(values), dtype=object)
        array[:] = values
        return array
    return numpy.array(values)
