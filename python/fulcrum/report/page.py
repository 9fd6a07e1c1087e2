"""Puts scenarios' plots and tables into one HTML file."""

import datetime
import html
import json
import os
import pathlib

import plotly.offline

from .. import __version__
from .._fulcrum import InputError
from ..analyses import explain_speculation, explain_step, levers
from ..prediction import predict, step_roofline
from ..scenario import load
from ..sweep import sweep
from . import cases as measured_cases
from . import figures, style, tables

_HERE = pathlib.Path(__file__).parent
#: Concurrencies of the curves; the scenario's own are added.
_GRID = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128]


class _Page:
    """Collects HTML and the plots it holds."""

    def __init__(self):
        self.parts = []
        self.plots = {}

    def add(self, text):
        self.parts.append(text)

    def plot(self, name, title, variants, note=""):
        """A plot with one figure, or one per choice of a list: {label: figure}."""
        self.plots[name] = [{"label": label, "figure": json.loads(figure.to_json())}
                            for label, figure in variants.items()]
        choice = ""
        if len(variants) > 1:
            options = "".join(f"<option>{html.escape(label)}</option>" for label in variants)
            choice = f'<select data-plot="{name}" aria-label="choice for {html.escape(title)}">' \
                     f"{options}</select>"
        height = max(figure.layout.height for figure in variants.values())
        self.add(f'<figure><figcaption><span>{html.escape(title)}</span>{choice}</figcaption>'
                 f'<div class="plot" id="{name}" style="min-height:{height}px"></div>'
                 + (f"<p class='note'>{html.escape(note)}</p>" if note else "") + "</figure>")


def _at(point):
    return f"C={point.concurrency:g}"


def _scenario_section(page, number, scenario):
    prediction = predict(scenario)
    shown = [point for point in prediction.points if point.step_seconds is not None]
    key = f"s{number}"
    page.add(f'<section id="{key}"><h2>{html.escape(scenario.name)}</h2>'
             f"<p>{html.escape(scenario.description)}</p>" + tables.facts(scenario)
             + tables.summary(prediction))
    notes = list(dict.fromkeys(list(prediction.warnings)))
    if notes:
        page.add("<ul class='notes'>" + "".join(f"<li>{html.escape(n)}</li>" for n in notes) + "</ul>")
    ledger = prediction.to_dict()["points"][-1]["memory_bytes"]
    if shown:
        page.plot(f"{key}-step", "One decode step, kernel by kernel",
                  {_at(p): figures.breakdown(p) for p in shown})
        page.plot(f"{key}-waterfall", "From the roofline to the step",
                  {f"C={w.concurrency:g}": figures.waterfall(w)
                   for w in explain_step(scenario, [p.concurrency for p in shown])},
                  "What each family takes above the time its bytes and FLOP need at datasheet peaks.")
        page.plot(f"{key}-roofline", "Every kernel under the roofline",
                  {_at(p): figures.roofline(step_roofline(scenario, p.concurrency)) for p in shown},
                  "The area of a mark is its share of the kernels' time. Far below the roofs means "
                  "latency: launches, serial loops, idle SMs.")
        if scenario.draft_tokens > 0:
            said = explain_speculation(
                scenario, None, sorted({*_GRID[:16:2], 64, *scenario.concurrency}))
            page.plot(f"{key}-gain", "What speculation gives", {"": figures.speculation_gain(said)})
            page.plot(f"{key}-causes", "Its gain split by cause",
                      {"": figures.speculation_causes(said)},
                      "Up helps, down costs. The factors of all causes multiply to the gain (order-independent "
                      "shares).")
        ranking = levers(scenario)
        by_concurrency = {}
        for point in shown:
            group = [lever for lever in ranking if lever.concurrency == point.concurrency]
            if group:
                by_concurrency[_at(point)] = group
        if by_concurrency:
            page.plot(f"{key}-levers", "What could be done about it",
                      {at: figures.levers(group) for at, group in by_concurrency.items()},
                      "Median and 90 % interval of the gain in tok/s; the bar is what it would give "
                      "if the part it acts on took no time at all.")
            page.add(tables.levers(by_concurrency))
        page.plot(f"{key}-memory", "Memory of one GPU", {"": figures.memory(ledger)})
    page.add(tables.memory(ledger) + tables.provenance(scenario, prediction) + "</section>")


def _overview(page, scenarios, cases):
    sweeps = {}
    for scenario in scenarios:
        grid = sorted({*_GRID, *(int(c) for c in scenario.concurrency)})
        swept = sweep(scenario, concurrency=grid)
        if (swept.effective_batch > 0).all():
            sweeps[scenario.name] = swept
    if not sweeps:
        return
    page.add('<section id="curves"><h2>Over concurrency</h2>')
    page.plot("throughput", "Output tokens per second, all requests",
              {"": figures.curves(sweeps, "output_tokens_per_second", "tok/s", cases)},
              "Median and 90 % interval. Diamonds are measured.")
    page.plot("tpot", "Time per output token (TPOT)",
              {"": figures.curves(sweeps, "tpot_seconds", "ms", cases, 1e3)})
    page.add("</section>")


def _validation(page, cases, excluded, summary):
    if not cases and not excluded:
        return
    page.add('<section id="validation"><h2>Predicted and measured</h2>')
    if cases:
        page.plot("scatter", f"{len(cases)} measured values", {"": figures.validation(cases)},
                  "No prediction was fitted to these.")
    page.add(tables.cases(cases, excluded, summary) + "</section>")


def write(scenarios, output="report.html", *, concurrency=None, cases=()):
    """Writes the page; returns {"file", "bytes", "scenarios", "plots"}.

    `scenarios` are names, paths, dicts or Scenarios; `cases` JSONL files of measured cases. Raises
    InputError before anything is written.
    """
    loaded = [load(scenario, concurrency=concurrency) for scenario in scenarios]
    names = [scenario.name for scenario in loaded]
    if len(set(names)) != len(names):
        raise InputError("report: two scenarios have the same name (allowed: each once)")
    known, excluded, totals = measured_cases.read(cases)
    page = _Page()
    _overview(page, loaded, known)
    for number, scenario in enumerate(loaded):
        _scenario_section(page, number, scenario)
    _validation(page, known, excluded, totals)
    text = _document(page, loaded)
    temporary = pathlib.Path(f"{os.fspath(output)}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(output)
    return {"file": os.fspath(output), "bytes": len(text.encode()), "scenarios": names,
            "plots": list(page.plots)}


def _document(page, scenarios):
    links = "".join(f'<a href="#s{i}">{html.escape(s.name)}</a>' for i, s in enumerate(scenarios))
    if any("curves" in part[:40] for part in page.parts):
        links = '<a href="#curves">over concurrency</a>' + links
    if "scatter" in page.plots:
        links += '<a href="#validation">validation</a>'
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    # A "</script>" inside a string would end the element; JSON may write the slash escaped.
    plots = json.dumps(page.plots).replace("</", "<\\/")
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'>"
        "<link rel='icon' href='data:,'>"
        f"<title>Fulcrum: {html.escape(', '.join(s.name for s in scenarios))}</title>"
        f"<style>{(_HERE / 'page.css').read_text(encoding='utf-8')}</style>"
        f"<script>{plotly.offline.get_plotlyjs()}</script></head><body>"
        f"<header><h1>What this deployment does, and what would move it</h1>"
        f"<p>Fulcrum {__version__}, {day}. Every number is predicted from kernel costs and given "
        "with its 90&nbsp;% interval; nothing was fitted to end-to-end measurements.</p>"
        f"<nav>{links}</nav></header><main>{''.join(page.parts)}</main>"
        f"<script>const PLOTS={plots};</script>"
        f"<script>{(_HERE / 'page.js').read_text(encoding='utf-8')}</script></body></html>\n")
