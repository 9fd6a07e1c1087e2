"""What a deployment does: step, TPOT, TTFT and tokens per second at each concurrency."""

import json

from . import _fulcrum
from ._fulcrum import Interval, Prediction
from .results import KernelRoofline, StepRoofline
from .scenario import load


def predict(scenario, concurrency=None):
    """Prices one decode step kernel by kernel and says what a client sees.

    `scenario` is a Scenario, a name, a path or a dict. `concurrency` (requests in flight, one or
    several) replaces the scenario's own. Where a deployment does not fit in memory the intervals
    are None.
    """
    if not isinstance(scenario, _fulcrum.Scenario):
        scenario = load(scenario)
    if concurrency is None:
        return _fulcrum._predict(scenario)
    values = [concurrency] if isinstance(concurrency, (int, float)) else list(concurrency)
    return _fulcrum._predict_at(scenario, values)


def step_roofline(scenario, concurrency):
    """Where each kernel of the decode step stands under the device's roofline."""
    bandwidth, kernels = _fulcrum._step_roofline(load(scenario), concurrency)
    return StepRoofline(bandwidth, [KernelRoofline(**kernel) for kernel in kernels])


def _to_dict(self):
    """The prediction as `fulcrum predict --json` prints it, schema fulcrum/prediction/1."""
    return json.loads(self._text())


def _to_pandas(self):
    """One row per concurrency; intervals as columns ending in _p05, _p50, _p95."""
    import pandas
    rows = []
    for point in self.to_dict()["points"]:
        row = {}
        for key, value in point.items():
            if isinstance(value, dict) and set(value) == {"p05", "p50", "p95"}:
                row.update({f"{key}_{name}": number for name, number in value.items()})
            elif not isinstance(value, (dict, list)) and value is not None:
                row[key] = value
        rows.append(row)
    return pandas.DataFrame(rows)


def _breakdown_to_pandas(self):
    """One row per concurrency and op: family, kernel, count, seconds, share, limiter, floor, basis."""
    import pandas
    return pandas.DataFrame([{"concurrency": point["concurrency"], **line}
                             for point in self.to_dict()["points"] for line in point["breakdown"]])


Prediction.to_dict = _to_dict
Prediction.to_pandas = _to_pandas
Prediction.breakdown_to_pandas = _breakdown_to_pandas
Interval._asdict = lambda self: {"p05": self.p05, "p50": self.p50, "p95": self.p95}
