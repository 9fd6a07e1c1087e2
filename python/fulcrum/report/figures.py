"""The report's plots as plotly figures. They take the page's colours when they are drawn, so none is
set here but those that carry meaning."""

import math

import plotly.graph_objects as go

from . import style


def _figure(height, **layout):
    figure = go.Figure()
    figure.update_layout(template="none", height=height, margin=dict(l=56, r=16, t=12, b=48),
                         paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
                         hoverlabel=dict(align="left"), **layout)
    figure.update_xaxes(automargin=True, zeroline=False)
    figure.update_yaxes(automargin=True, zeroline=False)
    return figure


def _legend_above():
    return dict(orientation="h", yanchor="bottom", y=1.0, x=0, xanchor="left", traceorder="normal")


def curves(sweeps, quantity, title, cases, scale=1.0):
    """A predicted quantity over concurrency with its 90 % band, one line per scenario."""
    figure = _figure(380, legend=_legend_above(), hovermode="x unified")
    for i, (name, swept) in enumerate(sweeps.items()):
        color = style.SERIES[i % len(style.SERIES)]
        values = getattr(swept, quantity)
        x = list(swept.concurrency)
        low, mid, high = ([v * scale for v in q] for q in (values.p05, values.p50, values.p95))
        figure.add_scatter(x=x + x[::-1], y=high + low[::-1], fill="toself", hoverinfo="skip",
                           fillcolor=style.faded(color, 0.18), line=dict(width=0),
                           legendgroup=name, showlegend=False)
        text = [f"{style.digits(m)} ({style.digits(a)} - {style.digits(b)})"
                for a, m, b in zip(low, mid, high)]
        figure.add_scatter(x=x, y=mid, name=name, mode="lines", text=text,
                           line=dict(color=color, width=2),
                           hovertemplate="%{text}", legendgroup=name)
        points = [c.score for c in cases if c.scenario == name and c.score.quantity == quantity]
        if points:
            figure.add_scatter(x=[c.concurrency for c in points],
                               y=[c.measured * scale for c in points], mode="markers",
                               name=f"{name}, measured", text=[c.id for c in points],
                               marker=dict(color=color, size=10, symbol="diamond",
                                           line=dict(width=1.5)),
                               hovertemplate="measured %{y:.3g}<br>%{text}")
    figure.update_xaxes(title="concurrency (requests in flight)", type="log", dtick=math.log10(2),
                        tickformat="d")
    figure.update_yaxes(title=title, rangemode="tozero")
    return figure


def breakdown(point, lines=14):
    """Ops by time: what the roofline asks for, and what the kernel takes above it."""
    ops = sorted(point.breakdown, key=lambda line: line.seconds, reverse=True)[:lines][::-1]
    figure = _figure(90 + 26 * len(ops), barmode="stack", legend=_legend_above())
    hover = [f"<b>{line.op}</b><br>{line.kernel}<br>{line.count:g} launches, "
             f"{style.seconds(line.seconds)}, {style.percent(line.share_fraction)} of the step"
             f"<br>roofline {style.seconds(line.floor_seconds)}, limited by {line.limiter}"
             f"<br>cost is {line.basis}" for line in ops]
    floors = [min(line.floor_seconds, line.seconds) * 1e3 for line in ops]
    colors = [style.family_color(line.family) for line in ops]
    names = [line.op for line in ops]
    figure.add_bar(y=names, x=floors, orientation="h", name="roofline", marker=dict(color=colors),
                   hovertext=hover, hoverinfo="text", showlegend=False)
    figure.add_bar(y=names, x=[line.seconds * 1e3 - f for line, f in zip(ops, floors)],
                   orientation="h", name="above it", hovertext=hover, hoverinfo="text",
                   marker=dict(color=[style.faded(c, 0.55) for c in colors]), showlegend=False,
                   text=[style.percent(line.share_fraction) for line in ops],
                   textposition="outside", cliponaxis=False)
    for family in dict.fromkeys(line.family for line in ops[::-1]):
        figure.add_bar(y=[None], x=[None], name=style.family_label(family),
                       marker=dict(color=style.family_color(family)))
    figure.update_xaxes(title="ms a step (dark part: roofline)",
                        range=[0, 1.15e3 * max(line.seconds for line in ops)])
    figure.update_layout(margin=dict(l=8, r=16, t=12, b=48))
    return figure


def waterfall(steps):
    """From the roofline of all ops to the predicted step."""
    bars = steps.bars
    labels = ["roofline" if b.name == "floor" else b.name if b.name == "step"
              else style.family_label(b.name) for b in bars]
    measure = ["absolute"] + ["relative"] * (len(bars) - 2) + ["total"]
    figure = _figure(360, showlegend=False)
    figure.add_waterfall(
        x=labels, y=[b.seconds * 1e3 for b in bars], measure=measure,
        text=[style.seconds(b.seconds) for b in bars], textposition="outside", cliponaxis=False,
        connector=dict(line=dict(width=1, dash="dot")),
        increasing=dict(marker=dict(color="#4c8dd6")), totals=dict(marker=dict(color="#8a919b")),
        hovertemplate="%{x}: %{text}<extra></extra>")
    figure.update_xaxes(tickangle=-35)
    figure.update_yaxes(title="ms", range=[0, 1.12e3 * bars[-1].until_seconds])
    return figure


def roofline(step):
    """Every kernel under the device's roofs; the area of a mark is its share of the step."""
    figure = _figure(430, legend=_legend_above())
    total = sum(k.count * k.seconds for k in step.kernels)
    left = min(k.flop_per_byte for k in step.kernels) / 2
    right = max(max(k.flop_per_byte for k in step.kernels) * 2,
                2 * max(k.peak_flop_per_second for k in step.kernels)
                / step.dram_bandwidth_bytes_per_second)
    top = max(k.peak_flop_per_second for k in step.kernels)
    for peak in sorted({k.peak_flop_per_second for k in step.kernels}):
        ridge = peak / step.dram_bandwidth_bytes_per_second
        figure.add_scatter(x=[ridge, right], y=[peak * 1e-12] * 2, mode="lines+text",
                           line=dict(color="#8a919b", width=1.5), showlegend=False,
                           text=["", f"{style.digits(peak * 1e-12)} TFLOP/s"],
                           textposition="top left", hoverinfo="skip")
    figure.add_scatter(x=[left, top / step.dram_bandwidth_bytes_per_second],
                       y=[left * step.dram_bandwidth_bytes_per_second * 1e-12, top * 1e-12],
                       mode="lines", line=dict(color="#8a919b", width=1.5), hoverinfo="skip",
                       name=f"DRAM, {style.digits(step.dram_bandwidth_bytes_per_second * 1e-9)} GB/s")
    for family in dict.fromkeys(k.family for k in step.kernels):
        kernels = [k for k in step.kernels if k.family == family]
        shares = [k.count * k.seconds / total for k in kernels]
        figure.add_scatter(
            x=[k.flop_per_byte for k in kernels], y=[k.flop_per_second * 1e-12 for k in kernels],
            mode="markers", name=style.family_label(family),
            marker=dict(color=style.family_color(family), opacity=0.85,
                        size=[6 + 44 * math.sqrt(s) for s in shares], line=dict(width=1)),
            hoverinfo="text",
            hovertext=[f"<b>{k.op}</b><br>{k.kernel}<br>{k.count:g} launches of "
                       f"{style.seconds(k.seconds)}, {style.percent(s)} of kernel time<br>"
                       f"{style.size(k.dram_bytes)}, {style.digits(k.flop * 1e-9)} GFLOP a launch"
                       for k, s in zip(kernels, shares)])
    figure.update_xaxes(title="FLOP per DRAM byte (least traffic)", type="log", dtick=1,
                        exponentformat="power")
    figure.update_yaxes(title="TFLOP/s reached", type="log", dtick=1, exponentformat="power")
    return figure


def speculation_gain(said):
    """Gain of drafts over concurrency, with no gain and the crossover marked."""
    figure = _figure(340, legend=_legend_above())
    x = [p.concurrency for p in said.points]
    low, mid, high = ([getattr(p.gain_ratio, q) for p in said.points] for q in ("p05", "p50", "p95"))
    color = style.SERIES[0]
    figure.add_scatter(x=x + x[::-1], y=high + low[::-1], fill="toself", hoverinfo="skip",
                       fillcolor=style.faded(color, 0.18), line=dict(width=0), name="5 - 95 %")
    figure.add_scatter(x=x, y=mid, name="gain", mode="lines", line=dict(color=color, width=2),
                       hovertemplate="C=%{x}: %{y:.3f}x<extra></extra>")
    differ = [p for p in said.points if not p.comparable]
    if differ:
        figure.add_scatter(x=[p.concurrency for p in differ], y=[p.gain_ratio.p50 for p in differ],
                           mode="markers", name="the two arms serve other batches",
                           marker=dict(color=style.SERIES[3], size=9, symbol="x"),
                           hoverinfo="skip")
    figure.add_hline(y=1.0, line=dict(color="#8a919b", dash="dash", width=1))
    figure.update_xaxes(title="concurrency", type="log", dtick=math.log10(2), tickformat="d")
    figure.update_yaxes(title="tok/s with over without drafts")
    return figure


def speculation_causes(said, most=8):
    """What multiplies to the gain, per concurrency: factors above 1 help, below 1 cost."""
    weight = {}
    for point in said.points:
        for cause in point.causes:
            weight[cause.name] = max(weight.get(cause.name, 0), abs(math.log(cause.factor)))
    names = sorted(weight, key=weight.get, reverse=True)[:most]
    figure = _figure(400, barmode="relative", legend=_legend_above())
    x = [f"{p.concurrency:g}" for p in said.points]
    for i, name in enumerate(names):
        factors = [next(c.factor for c in p.causes if c.name == name) for p in said.points]
        figure.add_bar(x=x, y=[100 * math.log(f) for f in factors], name=name.replace("_", " "),
                       marker=dict(color=style.SERIES[i % len(style.SERIES)]),
                       customdata=factors,
                       hovertemplate="C=%{x}: %{customdata:.3f}x<extra>" + name + "</extra>")
    figure.add_scatter(x=x, y=[100 * math.log(p.gain_ratio.p50) for p in said.points],
                       mode="markers", name="gain", marker=dict(size=9, symbol="diamond"),
                       customdata=[p.gain_ratio.p50 for p in said.points],
                       hovertemplate="C=%{x}: %{customdata:.3f}x<extra>gain</extra>")
    figure.update_xaxes(title="concurrency", type="category")
    figure.update_yaxes(title="100 ln(factor)")
    return figure


def levers(ranking, most=14):
    """Gain with interval and ceiling of each lever that does something."""
    shown = [lever for lever in ranking if lever.gain_ratio is not None
             and (lever.gain_ratio.p95 != 1.0 or lever.gain_ratio.p05 != 1.0)][:most][::-1]
    figure = _figure(110 + 26 * len(shown), legend=_legend_above())
    figure.update_layout(margin=dict(l=8, r=16, t=12, b=48))
    names = [lever.name for lever in shown]
    figure.add_scatter(y=names, x=[lever.ceiling_ratio for lever in shown], mode="markers",
                       name="ceiling (Amdahl)", marker=dict(symbol="line-ns", size=16,
                                                            line=dict(width=2, color="#8a919b")),
                       hovertemplate="%{y}: at most %{x:.3f}x<extra></extra>")
    for verdict, color in style.VERDICTS.items():
        group = [lever for lever in shown if lever.verdict == verdict]
        if not group:
            continue
        gains = [lever.gain_ratio for lever in group]
        figure.add_scatter(
            y=[lever.name for lever in group], x=[g.p50 for g in gains], mode="markers",
            name=verdict.replace("_", " "), marker=dict(color=color, size=10),
            error_x=dict(type="data", symmetric=False, array=[g.p95 - g.p50 for g in gains],
                         arrayminus=[g.p50 - g.p05 for g in gains], color=color, thickness=2),
            hoverinfo="text",
            hovertext=[f"<b>{lever.title}</b><br>{g.p50:.3f}x ({g.p05:.3f} - {g.p95:.3f}), ceiling "
                       f"{lever.ceiling_ratio:.3f}x<br>{style.effort(lever.effort_minutes)}: "
                       f"{lever.reason}" for lever, g in zip(group, gains)])
    figure.add_vline(x=1.0, line=dict(color="#8a919b", dash="dash", width=1))
    figure.update_xaxes(title="tok/s after over before (log)", type="log", tickformat=".3~g")
    figure.update_yaxes(categoryorder="array", categoryarray=names)
    return figure


MEMORY = (("weights", "weights", "#4c8dd6"), ("draft_weights", "draft weights", "#a8a63c"),
          ("request_state", "state of request slots", "#e08a3c"), ("kv_pool", "KV pool", "#2fa39a"),
          ("reserve_total", "activations, graphs, workspaces", "#9a7bd0"))


def memory(ledger):
    """One GPU's memory: what the ledger assigns, to the device's capacity."""
    figure = _figure(170, barmode="stack", legend=_legend_above())
    used = 0.0
    for key, label, color in MEMORY:
        value = min(ledger[key], max(0.0, ledger["capacity"] - used))
        used += value
        if value > 0:
            figure.add_bar(y=["GPU"], x=[value / 1e9], orientation="h", name=label,
                           marker=dict(color=color),
                           hovertemplate=f"{label}: {style.size(ledger[key])}<extra></extra>")
    if ledger["capacity"] > used:
        figure.add_bar(y=["GPU"], x=[(ledger["capacity"] - used) / 1e9], orientation="h",
                       name="unused", marker=dict(color=style.faded("#8a919b", 0.3)),
                       hovertemplate="unused: %{x:.1f} GB<extra></extra>")
    figure.add_vline(x=ledger["budget"] / 1e9, line=dict(color="#d9605a", dash="dash", width=2))
    figure.update_xaxes(title="GB (dashed: the engine's budget)")
    figure.update_yaxes(visible=False)
    return figure


def validation(cases):
    """Predicted against measured, with the interval; on the line is right."""
    figure = _figure(440, legend=_legend_above())
    for i, quantity in enumerate(dict.fromkeys(c.score.quantity for c in cases)):
        group = [c for c in cases if c.score.quantity == quantity]
        color = style.SERIES[i]
        figure.add_scatter(
            x=[c.score.measured for c in group], y=[c.score.predicted.p50 for c in group], mode="markers",
            name=quantity.replace("_", " "), marker=dict(color=color, size=8),
            error_y=dict(type="data", symmetric=False, color=style.faded(color, 0.5), thickness=1,
                         array=[c.score.predicted.p95 - c.score.predicted.p50 for c in group],
                         arrayminus=[c.score.predicted.p50 - c.score.predicted.p05 for c in group]),
            hoverinfo="text",
            hovertext=[f"{c.score.id}<br>C={c.score.concurrency:g}: measured {c.score.measured:.4g}, predicted "
                       f"{c.score.predicted.p50:.4g}<br>{c.source}" for c in group])
    both = [v for c in cases for v in (c.score.measured, c.score.predicted.p50)]
    ends = [min(both) / 1.3, max(both) * 1.3]
    figure.add_scatter(x=ends, y=ends, mode="lines", name="right", hoverinfo="skip",
                       line=dict(color="#8a919b", dash="dash", width=1))
    figure.update_xaxes(title="measured", type="log", exponentformat="power")
    figure.update_yaxes(title="predicted", type="log", exponentformat="power")
    return figure
