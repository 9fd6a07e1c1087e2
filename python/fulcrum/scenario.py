"""Loading and changing scenarios. A `Scenario` is immutable; `replace` makes a changed one."""

import json
import os
from collections.abc import Mapping

from . import _fulcrum
from ._fulcrum import Scenario


def load(scenario="campaign-a", *, concurrency=None, **changes):
    """The scenario of that name in data/scenarios, of a .json file, or of a dict in its schema.

    `concurrency` and `changes` are set before it is resolved. A change's key is a dotted path or a
    JSON pointer, as on the command line: `load("campaign-a", **{"engine.cuda_graph": False})`.
    Raises InputError naming every problem found.
    """
    if isinstance(scenario, Scenario):
        loaded = scenario
    elif isinstance(scenario, Mapping):
        loaded = Scenario._parse(json.dumps(scenario), "dict")
    else:
        loaded = Scenario._load(os.fspath(scenario))
    if concurrency is not None or changes:
        loaded = replace(loaded, concurrency=concurrency, **changes)
    return loaded


def replace(scenario, *, concurrency=None, **changes):
    """The same scenario with values changed; keys as in `load`."""
    changed = scenario
    if changes:
        changed = changed._with([(path, json.dumps(value)) for path, value in changes.items()])
    if concurrency is not None:
        values = [concurrency] if isinstance(concurrency, (int, float)) else list(concurrency)
        changed = changed._with_concurrency(values)
    return changed


def to_dict(scenario):
    """The scenario's document, schema fulcrum/scenario/1."""
    return json.loads(scenario._text())


def provenance(scenario):
    """What the prediction rests on: {"hardware": [...], "kernels": [...]}, each row with its
    value or law, basis (datasheet, measured, fitted, derived, assumed) and source."""
    return {"hardware": scenario._hardware_numbers(), "kernels": scenario._kernel_numbers()}


Scenario.replace = replace
Scenario.to_dict = to_dict
Scenario.provenance = provenance
Scenario.__repr__ = lambda self: (
    f"Scenario({self.name!r}: {self.model} on {self.num_gpus}x {self.hardware}, "
    f"TP{self.tensor_parallel}, kernels {self.kernel_set})")


def scenario_names():
    """Scenarios shipped with the package."""
    return _fulcrum._names_in("scenarios")


def hardware_names():
    """GPUs that a scenario may name."""
    return _fulcrum._names_in("hardware")


def kernel_set_names():
    """Kernel sets that a scenario may name."""
    return _fulcrum._names_in("kernels")


def lever_names():
    """Levers shipped with the package."""
    return _fulcrum._names_in("levers")


def acceptance_names():
    """Workloads whose speculative acceptance was measured."""
    return _fulcrum._names_in("acceptance")
