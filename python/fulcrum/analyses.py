"""Levers, explanations and simulation."""

import json
import os

from . import _fulcrum
from .results import (CaseScore, CheckReport, Crossover, Finding, GainCause, Lever, LeverRanking, Quantiles, RooflineBound,
                      Simulation, Speculation, SpeculationPoint, Target, Validation, Waterfall, WaterfallBar,
                      from_json, interval)
from .scenario import load


def _numbers(values):
    if values is None:
        return []
    return [float(values)] if isinstance(values, (int, float)) else [float(v) for v in values]


def levers(scenario, names=(), *, concurrency=None, pairs=False, budget_hours=None):
    """Ranks what could be done: gain in output tokens/s, ceiling, effort, verdict.

    `names` are levers of data/levers or .json files; none: all shipped ones. `pairs` adds every
    pair, recomputed together. `budget_hours` adds the best set that this much work can pay for.
    """
    budget = None if budget_hours is None else 60.0 * budget_hours
    out = json.loads(_fulcrum._levers(load(scenario), [os.fspath(n) for n in names],
                                      _numbers(concurrency), pairs, budget))
    rows = [from_json(Lever, {**row, "gain_ratio": interval(row["gain_ratio"])})
            for row in out["levers"]]
    return LeverRanking(rows, out["warnings"], out.get("portfolios", []))


def explain_step(scenario, concurrency=None):
    """From the roofline to the predicted step, one Waterfall per concurrency."""
    return [Waterfall(c, [from_json(WaterfallBar, bar) for bar in json.loads(text)])
            for c, text in _fulcrum._explain_step(load(scenario), _numbers(concurrency))]


def explain_speculation(scenario, against=None, concurrency=None):
    """What drafts give over concurrency, split into causes whose factors multiply to the gain.

    `against` is the arm without drafts; by default the scenario itself with its drafts off.
    """
    other = None if against is None else load(against)
    texts, cross = _fulcrum._explain_speculation(load(scenario), other, _numbers(concurrency))
    points = []
    for text in texts:
        point = json.loads(text)
        point["gain_ratio"] = interval(point["gain_ratio"])
        point["causes"] = [from_json(GainCause, cause) for cause in point["causes"]]
        points.append(from_json(SpeculationPoint, point))
    crossing = json.loads(cross)
    at = Crossover(*(crossing.get(q) if isinstance(crossing.get(q), (int, float)) else None
                     for q in ("p05", "p50", "p95")))
    return Speculation(points, at, crossing)


def explain_target(scenario, tokens_per_second):
    """Whether the hardware allows this many output tokens/s, and whether these kernels reach it."""
    answer = json.loads(_fulcrum._explain_target(load(scenario), tokens_per_second))
    answer["bounds"] = [from_json(RooflineBound, bound) for bound in answer["bounds"]]
    return from_json(Target, answer)


def simulate(scenario, *, num_requests=1000, concurrency=None, requests_per_second=None, trace=None,
             length_ratio=None, policy="", seed=1):
    """Continuous batching request by request on one replica, with priced steps.

    Give one of `concurrency` (closed loop), `requests_per_second` (Poisson arrivals) or `trace`
    (JSONL of arrivals and lengths). With `length_ratio` lengths are uniform in [ratio, 2 - ratio]
    times the scenario's means; without, as the scenario says.
    """
    given = [x is not None for x in (concurrency, requests_per_second, trace)]
    if sum(given) != 1:
        raise _fulcrum.InputError("simulate: give one of concurrency, requests_per_second, trace")
    if requests_per_second is not None and not requests_per_second > 0:
        raise _fulcrum.InputError("simulate: requests_per_second must be above 0")
    run = json.loads(_fulcrum._simulate(load(scenario), concurrency or 0.0,
                                        requests_per_second or 0.0,
                                        os.fspath(trace) if trace is not None else "", num_requests,
                                        length_ratio, policy, seed))
    out = {**run, "details": run}
    for key in ("ttft_seconds", "tpot_seconds", "itl_seconds", "end_to_end_seconds"):
        out[key] = from_json(Quantiles, run[key])
    return from_json(Simulation, out)


def validate(files):
    """Predicted against measured for case files (JSONL): errors, coverage of intervals, shape."""
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    out = json.loads(_fulcrum._validate([os.fspath(path) for path in given]))
    scores = [CaseScore(**{name: score.get(name, "") for name in ("panel", "split")},
                        **{name: score[name] for name in (
                            "id", "quantity", "concurrency", "measured", "ape", "covered",
                            "kernel_set", "speculation", "hardware")},
                        predicted=interval(score["predicted"]))
              for score in out["cases"]]
    return Validation(scores, out["summary"], out["excluded"], out)


def read_results(path):
    """What a benchmark client measured (sglang, vLLM, genai-perf, AIPerf, InferenceX result files),
    as a list of dicts: schema fulcrum/serving-result/1."""
    return json.loads(_fulcrum._import(os.fspath(path)))["results"]


def _report(text):
    out = json.loads(text)
    return CheckReport(out["verdict"], [from_json(Finding, {"measured": None, "limit": None, **one})
                                        for one in out["findings"]])


def check(scenario, measured):
    """Is a measurement possible, plausible, comparable? One CheckReport per measurement.

    `measured` is a dict with the keys of a case's "measured" object and its `concurrency`, or a
    file: a case file, or the result of a benchmark client.
    """
    if isinstance(measured, dict):
        texts = _fulcrum._check(load(scenario), "", json.dumps(measured))
    else:
        texts = _fulcrum._check(load(scenario), os.fspath(measured), "")
    return [_report(text) for text in texts]


def check_pair(scenario_a, measured_a, scenario_b, measured_b):
    """Whether B against A says something about the lever between them; measurements as dicts."""
    return _report(_fulcrum._check_pair(load(scenario_a), json.dumps(measured_a), load(scenario_b),
                                        json.dumps(measured_b)))
