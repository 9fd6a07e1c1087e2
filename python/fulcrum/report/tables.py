"""The report's tables."""

import html
import re

from . import style


def _table(columns, rows, numeric=()):
    """Cells are text; columns named in `numeric` align right."""
    def cells(tag, row):
        return "".join(
            f"<{tag}{' class=n' if name in numeric else ''}>{cell}</{tag}>"
            for name, cell in zip(columns, row))
    head = cells("th", [html.escape(name) for name in columns])
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _details(title, body):
    return f"<details><summary>{html.escape(title)}</summary>{body}</details>"


def _source(text):
    """Escaped, with web addresses as links and room to break long paths."""
    text = html.escape(text)
    text = re.sub(r"(https?://[^\s;,)]+)", r'<a href="\1" rel="noreferrer">\1</a>', text)
    return f"<span class='source'>{text}</span>"


def facts(scenario):
    """What is deployed."""
    spec = "none"
    if scenario.draft_tokens > 0:
        accepted = ", ".join(f"{a:.3f}" for a in scenario.acceptance)
        spec = f"{scenario.draft_tokens} drafted, accepted with {accepted}"
    rows = [("model", scenario.model),
            ("GPUs", f"{scenario.num_gpus}x {scenario.hardware_label}, TP{scenario.tensor_parallel}"),
            ("kernels", scenario.kernel_set),
            ("lengths", f"{scenario.input_tokens:g} in, {scenario.output_tokens:g} out"),
            ("speculation", spec)]
    return "<dl>" + "".join(f"<div><dt>{k}</dt><dd>{html.escape(v)}</dd></div>"
                            for k, v in rows) + "</dl>"


def _interval(value, scale=1.0):
    return (f"<b>{style.digits(value.p50 * scale)}</b> "
            f"<small>{style.digits(value.p05 * scale)} - {style.digits(value.p95 * scale)}</small>")


def summary(prediction):
    """One row per concurrency."""
    columns = ["C", "batch", "limited by", "tok/s", "TPOT, ms", "TTFT, s", "step, ms", "accepted"]
    rows = []
    for p in prediction.points:
        if p.step_seconds is None:
            rows.append([f"{p.concurrency:g}", "0", p.batch_limiter.replace("_", " "),
                         "does not fit", "", "", "", ""])
            continue
        tpot = _interval(p.tpot_seconds, 1e3) if p.tpot_seconds is not None else ""
        rows.append([f"{p.concurrency:g}", f"{p.effective_batch:g}",
                     p.batch_limiter.replace("_", " "), _interval(p.output_tokens_per_second), tpot,
                     style.digits(p.ttft_seconds.p50), style.digits(p.step_seconds.p50 * 1e3),
                     f"{p.accept_length:.2f}"])
    return _table(columns, rows, {"C", "batch", "tok/s", "TPOT, ms", "TTFT, s", "step, ms",
                                  "accepted"})


def levers(by_concurrency):
    """All levers as text, for those who do not hover."""
    columns = ["C", "lever", "gain", "ceiling", "effort", "verdict", "reason"]
    rows = []
    for at, group in by_concurrency.items():
        for lever in group:
            gain = _interval(lever.gain_ratio) if lever.gain_ratio is not None else "does not fit"
            ceiling = style.digits(lever.ceiling_ratio) if lever.ceiling_ratio else ""
            rows.append([at[2:], f"<span title=\"{html.escape(lever.title)}\">"
                         f"{html.escape(lever.name)}</span>", gain, ceiling,
                         style.effort(lever.effort_minutes), lever.verdict.replace("_", " "),
                         html.escape(lever.reason)])
    return _details("All levers as a table",
                    _table(columns, rows, {"C", "gain", "ceiling", "effort"}))


def memory(ledger):
    rows = [[html.escape(key.replace("_", " ")), style.size(value)]
            for key, value in ledger.items() if isinstance(value, (int, float)) and value > 0]
    return _details("Memory ledger of one GPU", _table(["entry", "bytes"], rows, {"bytes"}))


def provenance(scenario, prediction):
    """Where every number comes from."""
    said = scenario.provenance()
    share = {}
    for point in prediction.points[:1]:
        share = {line.op: line.share_fraction for line in point.breakdown}
    kernels = [[html.escape(row["op"]), html.escape(row["kernel"]), html.escape(row["law"]),
                f"<span class='basis {row['basis']}'>{row['basis']}</span>",
                style.percent(share.get(row["op"], 0.0)), style.percent(row["log_sigma"]),
                _source(row["source"])]
               for row in sorted(said["kernels"], key=lambda r: -share.get(r["op"], 0.0))]
    hardware = [[html.escape(row["what"]), f"{row['value']:g} {html.escape(row['unit'])}".replace(
        " 1", "") if row["unit"] == "1" else f"{row['value']:g} {html.escape(row['unit'])}",
                 f"<span class='basis {row['basis']}'>{row['basis']}</span>", _source(row["source"])]
                for row in said["hardware"]]
    first = f", share at C={prediction.points[0].concurrency:g}" if prediction.points else ""
    text = _details(
        "Kernels: what each cost rests on",
        _table(["op", "kernel", "law", "basis", "share", "spread", "source"], kernels,
               {"share", "spread"})
        + f"<p class='note'>Spread is the standard deviation of log(measured / law){first}.</p>")
    text += _details("Hardware: each figure with its source",
                     _table(["figure", "value", "basis", "source"], hardware, {"value"}))
    if scenario.acceptance_source:
        text += _details("Acceptance of drafts", f"<p>{_source(scenario.acceptance_source)}</p>")
    return text


def cases(shown, excluded, summary):
    """Predicted and measured, and what was left out and why."""
    rows = [[html.escape(c.score.id), c.score.quantity.replace("_", " "), f"{c.score.concurrency:g}",
             f"{c.score.measured:.4g}", f"<b>{c.score.predicted.p50:.4g}</b> <small>{c.score.predicted.p05:.4g} - "
             f"{c.score.predicted.p95:.4g}</small>",
             style.percent(c.score.ape), _source(c.source)]
            for c in shown]
    text = ""
    if summary.get("n"):
        shape = summary["shape_error"]
        text = (f"<p>{summary['n']} values: mean error {style.percent(summary['mape'])}, median "
                f"{style.percent(summary['median_ape'])}, {style.percent(summary['coverage'])} inside "
                "their 90 % interval" + (f", shape error {style.percent(shape)}" if shape is not None
                                         else "") + ".</p>")
    if rows:
        text += _details("Cases", _table(["case", "quantity", "C", "measured", "predicted", "error",
                                         "source"], rows, {"C", "measured", "predicted", "error"}))
    if excluded:
        text += _details(f"{len(excluded)} left out", "<ul>" + "".join(
            f"<li>{html.escape(why)}</li>" for why in excluded) + "</ul>")
    return text
