"""Fulcrum: predict what a lever moves before you pull it.

A performance model of LLM decode (DeepSeek-V4 and its relatives) on one's own GPUs. Everything is
computed by the C++ library that the `fulcrum` program uses, so both give the same numbers. Names carry
their unit (`tpot_seconds`, `dram_bytes`); an `Interval` holds the 5, 50 and 95 % quantiles.

    import fulcrum

    scenario = fulcrum.load("campaign-a", concurrency=[1, 8, 16])
    for point in fulcrum.predict(scenario).points:
        print(point.concurrency, point.output_tokens_per_second)
    for lever in fulcrum.levers(scenario):
        print(lever.name, lever.gain_ratio, lever.verdict)
"""

from . import calibrate
from ._fulcrum import (BreakdownLine, InputError, Interval, Prediction, PredictionPoint, Scenario,
                       __version__, data_dir)
from .analyses import (check, check_pair, explain_speculation, explain_step, explain_target, levers,
                       read_results, simulate, validate)
from .prediction import predict, step_roofline
from .results import (CaseScore, CheckReport, Crossover, Finding, GainCause, KernelRoofline, Lever, LeverRanking, Quantiles,
                      RooflineBound, Simulation, Speculation, SpeculationPoint, StepRoofline, Target,
                      Validation, Waterfall, WaterfallBar)
from .scenario import (acceptance_names, hardware_names, kernel_set_names, lever_names, load,
                       scenario_names)
from .sweep import ArrayInterval, Sweep, sweep, sweep_points

__all__ = [
    "ArrayInterval", "BreakdownLine", "CaseScore", "CheckReport", "Crossover", "Finding", "GainCause", "InputError", "Interval",
    "KernelRoofline", "Lever", "LeverRanking", "Prediction", "PredictionPoint", "Quantiles",
    "RooflineBound", "Scenario", "Simulation", "Speculation", "SpeculationPoint", "StepRoofline",
    "Sweep", "Target", "Validation", "Waterfall", "WaterfallBar", "__version__", "acceptance_names", "calibrate", "check",
    "check_pair",
    "data_dir", "explain_speculation", "explain_step", "explain_target", "hardware_names",
    "kernel_set_names", "lever_names", "levers", "load", "predict", "read_results", "scenario_names", "simulate",
    "step_roofline", "sweep", "sweep_points", "validate",
]
