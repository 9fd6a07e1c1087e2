import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas

from . import calibrate as calibrate
from .results import (CaseScore as CaseScore, CheckReport as CheckReport,
                      Finding as Finding, Crossover as Crossover, GainCause as GainCause,
                      KernelRoofline as KernelRoofline, Lever as Lever,
                      LeverRanking as LeverRanking, Quantiles as Quantiles,
                      RooflineBound as RooflineBound, Simulation as Simulation,
                      Speculation as Speculation, SpeculationPoint as SpeculationPoint,
                      StepRoofline as StepRoofline, Target as Target,
                      Validation as Validation, Waterfall as Waterfall,
                      WaterfallBar as WaterfallBar)
from .sweep import (ArrayInterval as ArrayInterval, Sweep as Sweep, sweep as sweep,
                    sweep_points as sweep_points)

__all__: list[str]
__version__: str

_Named = str | os.PathLike[str] | Mapping[str, Any] | Scenario
_Numbers = float | Sequence[float] | None

class InputError(ValueError):
    problems: list[dict[str, str]]

class Interval:
    def __init__(self, p05: float, p50: float, p95: float) -> None: ...
    @property
    def p05(self) -> float: ...
    @property
    def p50(self) -> float: ...
    @property
    def p95(self) -> float: ...
    def __iter__(self) -> Iterator[float]: ...
    def _asdict(self) -> dict[str, float]: ...

class Scenario:
    file: str
    name: str
    description: str
    model: str
    hardware: str
    hardware_label: str
    num_gpus: int
    tensor_parallel: int
    kernel_set: str
    concurrency: list[float]
    input_tokens: float
    output_tokens: float
    draft_tokens: int
    acceptance: list[float]
    acceptance_source: str
    warnings: list[str]
    def replace(self, *, concurrency: _Numbers = None, **changes: Any) -> Scenario: ...
    def to_dict(self) -> dict[str, Any]: ...
    def provenance(self) -> dict[str, list[dict[str, Any]]]: ...

class BreakdownLine:
    op: str
    family: str
    kernel: str
    count: float
    seconds: float
    share_fraction: float
    limiter: str
    floor_seconds: float
    basis: str

class PredictionPoint:
    concurrency: float
    effective_batch: float
    batch_limiter: str
    accept_length: float
    step_seconds: Interval | None
    tpot_seconds: Interval | None
    ttft_seconds: Interval | None
    output_tokens_per_second: Interval | None
    output_tokens_per_second_per_user: Interval | None
    prefill_seconds: float
    eager: bool
    fits: bool
    breakdown: list[BreakdownLine]

class Prediction:
    scenario: str
    points: list[PredictionPoint]
    warnings: list[str]
    def __len__(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_pandas(self) -> pandas.DataFrame: ...
    def breakdown_to_pandas(self) -> pandas.DataFrame: ...

def load(scenario: _Named = ..., *, concurrency: _Numbers = None, **changes: Any) -> Scenario: ...
def predict(scenario: _Named, concurrency: _Numbers = None) -> Prediction: ...
def step_roofline(scenario: _Named, concurrency: float) -> StepRoofline: ...
def levers(scenario: _Named, names: Sequence[str | os.PathLike[str]] = (), *,
           concurrency: _Numbers = None, pairs: bool = False,
           budget_hours: float | None = None) -> LeverRanking: ...
def explain_step(scenario: _Named, concurrency: _Numbers = None) -> list[Waterfall]: ...
def explain_speculation(scenario: _Named, against: _Named | None = None,
                        concurrency: _Numbers = None) -> Speculation: ...
def explain_target(scenario: _Named, tokens_per_second: float) -> Target: ...
def simulate(scenario: _Named, *, num_requests: int = 1000, concurrency: float | None = None,
             requests_per_second: float | None = None,
             trace: str | os.PathLike[str] | None = None, length_ratio: float | None = None,
             policy: str = "", seed: int = 1) -> Simulation: ...
def validate(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Validation: ...
def check(scenario: _Named,
          measured: dict[str, Any] | str | os.PathLike[str]) -> list[CheckReport]: ...
def check_pair(scenario_a: _Named, measured_a: dict[str, Any], scenario_b: _Named,
               measured_b: dict[str, Any]) -> CheckReport: ...
def read_results(path: str | os.PathLike[str]) -> list[dict[str, Any]]: ...
def scenario_names() -> list[str]: ...
def hardware_names() -> list[str]: ...
def kernel_set_names() -> list[str]: ...
def lever_names() -> list[str]: ...
def acceptance_names() -> list[str]: ...
def data_dir() -> str: ...
