"""Results as plain frozen values. Names carry their unit; ratios and fractions have none."""

from dataclasses import asdict, dataclass, fields

from ._fulcrum import Interval


def interval(value):
    """{"p05", "p50", "p95"} as an Interval; None stays None."""
    return None if value is None else Interval(value["p05"], value["p50"], value["p95"])


class _Pandas:
    """Adds to_pandas() to a list of dataclasses."""

    def to_pandas(self):
        """One row per element; intervals as columns ending in _p05, _p50, _p95."""
        import pandas
        rows = []
        for element in self:
            row = {}
            for field in fields(element):
                value = getattr(element, field.name)
                if isinstance(value, Interval):
                    row.update({f"{field.name}_{k}": v for k, v in value._asdict().items()})
                else:
                    row[field.name] = value
            rows.append(row)
        return pandas.DataFrame(rows)


@dataclass(frozen=True)
class Lever:
    """What a change gives at one concurrency."""
    name: str
    title: str
    concurrency: float
    gain_ratio: Interval | None  #: output tokens/s after over before; None: does not fit
    ceiling_ratio: float | None  #: the same if what it acts on took no time at all (Amdahl)
    effort_minutes: float
    gain_per_hour: float  #: (median gain - 1) per hour of effort
    verdict: str  #: "do", "skip" or "cannot_tell"
    repeats_to_see: float | None  #: A/B repeats per arm that show it
    reason: str


class LeverRanking(list, _Pandas):
    """Levers by concurrency and falling gain; `warnings` says which do not apply and why,
    `portfolios` holds the best sets within the budget, where one was given."""

    def __init__(self, levers, warnings, portfolios):
        super().__init__(levers)
        self.warnings = warnings
        self.portfolios = portfolios


@dataclass(frozen=True)
class WaterfallBar:
    """What a family takes above its roofline; the first bar is the roofline, the last the step."""
    name: str
    seconds: float
    until_seconds: float  #: running total, this bar included


@dataclass(frozen=True)
class Waterfall:
    concurrency: float
    bars: list


@dataclass(frozen=True)
class GainCause:
    """One cause's part of the gain of speculation; the factors of all causes multiply to it."""
    name: str
    factor: float
    gain_without_it: float


@dataclass(frozen=True)
class SpeculationPoint:
    concurrency: float
    gain_ratio: Interval  #: output tokens/s with drafts over without
    accept_length: float
    effective_batch_without: float
    effective_batch_with: float
    comparable: bool  #: both arms serve the same batch
    causes: list


@dataclass(frozen=True)
class Crossover:
    """Concurrency at which speculation stops paying; None where it does not cross."""
    p05: float | None
    p50: float | None
    p95: float | None


@dataclass(frozen=True)
class Speculation:
    points: list
    crossover_concurrency: Crossover
    crossover: dict  #: the same as the program's JSON, with all it says


@dataclass(frozen=True)
class RooflineBound:
    """The most that any kernels could give: DRAM bytes, FLOP and link bytes at datasheet peaks."""
    concurrency: float
    effective_batch: float
    roof_tokens_per_second: float
    predicted_tokens_per_second: float
    largest_family: str
    largest_share_fraction: float


@dataclass(frozen=True)
class Target:
    target_tokens_per_second: float
    physical_from_concurrency: float | None
    predicted_from_concurrency: float | None
    bounds: list


@dataclass(frozen=True)
class KernelRoofline:
    """One launch of an op; bytes are the least that must move."""
    op: str
    family: str
    kernel: str
    count: float  #: launches in the step
    seconds: float
    dram_bytes: float
    flop: float
    flop_per_second: float
    flop_per_byte: float
    peak_flop_per_second: float  #: dense, of the unit that does the work


@dataclass(frozen=True)
class StepRoofline:
    dram_bandwidth_bytes_per_second: float
    kernels: list


@dataclass(frozen=True)
class Quantiles:
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    count: float


@dataclass(frozen=True)
class Simulation:
    """A run of continuous batching on one replica."""
    completed: int
    rejected: int
    retractions: int
    makespan_seconds: float
    output_tokens_per_second: float  #: ramp and drain included
    steady_output_tokens_per_second: float
    requests_per_second: float
    mean_batch: float
    ttft_seconds: Quantiles
    tpot_seconds: Quantiles
    itl_seconds: Quantiles
    end_to_end_seconds: Quantiles
    details: dict  #: the same as the program's JSON, with all it says


@dataclass(frozen=True)
class Finding:
    """One rule that a measurement meets or breaks."""
    verdict: str  #: impossible, implausible, not_comparable, cannot_tell or plausible
    rule: str
    text: str
    measured: float | None
    limit: float | None  #: what the rule allows, in the unit of `measured`


@dataclass(frozen=True)
class CheckReport:
    """The worst verdict, and all findings, the worst first."""
    verdict: str
    findings: list


@dataclass(frozen=True)
class CaseScore:
    """One measured quantity against its prediction."""
    id: str
    quantity: str
    concurrency: float
    predicted: Interval
    measured: float
    ape: float  #: |predicted / measured - 1|
    covered: bool  #: measured within the 90 % interval
    kernel_set: str
    speculation: str
    hardware: str
    panel: str
    split: str


class Validation(list, _Pandas):
    """Scores of all cases; `summary` holds mape, median_ape, bias, coverage, shape_error and n,
    `excluded` what was left out and why."""

    def __init__(self, scores, summary, excluded, details):
        super().__init__(scores)
        self.summary = summary
        self.excluded = excluded
        self.details = details


def from_json(kind, value):
    """The fields of a dataclass out of a JSON object that may hold more."""
    return kind(**{field.name: value[field.name] for field in fields(kind)})


__all__ = ["Lever", "LeverRanking", "WaterfallBar", "Waterfall", "GainCause", "SpeculationPoint",
           "Crossover", "Speculation", "RooflineBound", "Target", "KernelRoofline", "StepRoofline",
           "Quantiles", "Simulation", "CaseScore", "CheckReport", "Finding", "Validation", "asdict", "from_json", "interval"]
