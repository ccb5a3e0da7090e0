"""The report as one HTML file: charts (inline SVG) of the recorded values, then the text. It loads nothing.

A bar is the median of a server's rounds, and the thin line over the bar is their range. A chart has one scale, unless
its cases differ so much that one scale would hide some of them: then each case has its own, and the chart says so.
Latencies have charts of their own kind (lib/latency.py).
"""

import html
import statistics

from lib import latency, printed

COLOURS = {"hello": "#2f6fb7", "hostile": "#2f6fb7", "floor": "#8a8f94", "nginx": "#3f8f4f", "go": "#d1742f"}
OTHER_COLOURS = ("#8a5fb0", "#b8484f", "#5f7f8a", "#a08a2a")
NAME_WIDTH, BAR_WIDTH, VALUE_WIDTH = 190, 500, 230
ROW, GAP = 18, 12
SPREAD = 8  # maximum ratio of the cases' longest bars; beyond it each case has its own scale

STYLE = """
:root { color-scheme: light dark; --line: #8888; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1400px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin-bottom: .3rem; }
table.machine td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
table.machine td:first-child { color: #888; }
svg { width: 100%; max-width: 1000px; height: auto; } svg .grid { stroke: var(--line); stroke-width: .6; }
svg text { fill: currentColor; font: 12px system-ui, sans-serif; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table.printed { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
table.printed th, table.printed td { padding: .15rem .7rem .15rem 0; text-align: left; vertical-align: top; white-space: nowrap; }
table.printed td:last-child { white-space: normal; min-width: 12rem; }
table.printed th { border-bottom: 1px solid var(--line); } table.printed .n { text-align: right; }
pre { white-space: pre-wrap; font: 12px/1.35 ui-monospace, monospace; border: 1px solid var(--line); padding: .8rem; }
li { white-space: pre-wrap; } .failed { color: #c33; font-weight: 600; }
.warning { border-left: 4px solid #c80; padding: .4rem .8rem; background: #c802; }
.note { color: #888; margin: 0; }
"""


def page(report, head, charts):
    """The document. `head`: lines "name   text"; `charts`: {scenario: ((metric, title, unit), ...)}."""
    pieces = [f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Tuza load tests</title><style>{STYLE}</style>",
              "<h1>Tuza: load tests</h1>", machine_table(head), verdicts(report)]
    for scenario in dict.fromkeys(found[0] for found in report.measurements):
        pieces.append(f"<h2>{html.escape(scenario)}</h2>")
        for metric, title, unit in charts.get(scenario, ()):
            cases = by_case(report.measurements, scenario, metric)
            if cases:
                pieces += [f"<h3>{html.escape(title)}, {html.escape(unit)}</h3>", chart(cases)]
        for prefix in latency.prefixes(report.measurements, scenario):
            title = latency.TITLES.get(prefix, f"Latency, {prefix.rstrip('_')}")
            pieces += [f"<h3>{html.escape(title)}, logarithmic</h3>",
                       latency.chart(latency.by_case(report.measurements, scenario, prefix), colour_of)]
    pieces += ["<h2>Everything that was printed</h2>", *printed.to_html(report.lines)]
    return "\n".join(pieces) + "\n"


def machine_table(head):
    rows = (line.partition(" ") for line in head)
    cells = (f"<tr><td>{html.escape(name)}<td>{html.escape(text.strip())}" for name, _, text in rows)
    return f"<table class=machine>{''.join(cells)}</table>"


def verdicts(report):
    """The warnings stand first: they say how much the verdicts are worth."""
    warnings = "".join(f"<p class=warning>Warning: {html.escape(text)}</p>" for text in report.warnings)
    lines = [f"<li class=failed>check failed: {html.escape(text)}" for text in report.failed]
    lines += [f"<li>bar missed: {html.escape(text)}" for text in report.missed]
    return warnings + (f"<ul>{''.join(lines)}</ul>" if lines else "<p>No check failed, no bar was missed.</p>")


def by_case(measurements, scenario, metric):
    """{case: {server: [value of each round]}}"""
    cases = {}
    for name, case, server, _, metrics in measurements:
        if name == scenario and metrics.get(metric) is not None:
            cases.setdefault(case, {}).setdefault(server, []).append(float(metrics[metric]))
    return cases


def longest(of_case):
    return max(max(max(values) for values in of_case.values()), 1e-9)


def scales(cases):
    """({case: the value at the right end}, whether the values differ)"""
    ends = {case: longest(of_case) for case, of_case in cases.items()}
    if max(ends.values()) > SPREAD * min(ends.values()):
        return ends, True
    return dict.fromkeys(ends, max(ends.values())), False


def colour_of(server):
    return COLOURS.get(server) or OTHER_COLOURS[sum(server.encode()) % len(OTHER_COLOURS)]


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def chart(cases):
    ends, differ = scales(cases)
    shapes, y = [], 0
    for case, of_case in cases.items():
        y += GAP
        shapes.append(f'<text x="0" y="{y + ROW - 5}" font-weight="600">{html.escape(case)}</text>')
        for server, values in of_case.items():
            shapes += bar(server, values, ends[case], y)
            y += ROW
    width = NAME_WIDTH + BAR_WIDTH + VALUE_WIDTH
    note = "<p class=note>Each case has a scale of its own.</p>" if differ else ""
    return f'{note}<svg viewBox="0 0 {width} {y + GAP}" role="img">{"".join(shapes)}</svg>'


def bar(server, values, end, y):
    def length(value):
        return max(value, 0) / end * BAR_WIDTH

    middle, low, high = statistics.median(values), min(values), max(values)
    base = y + ROW - 5
    shapes = [f'<text x="{NAME_WIDTH - 8}" y="{base}" text-anchor="end">{html.escape(server)}</text>',
              f'<rect x="{NAME_WIDTH}" y="{y + 2}" width="{length(middle):.1f}" height="{ROW - 4}" '
              f'fill="{colour_of(server)}"/>']
    words = number(middle)
    if len(values) > 1:
        words += f" ({number(low)}-{number(high)})"
        shapes.append(f'<path d="M{NAME_WIDTH + length(low):.1f} {y + ROW / 2}H{NAME_WIDTH + length(high):.1f}" '
                      'stroke="currentColor"/>')
    shapes.append(f'<text x="{NAME_WIDTH + length(high) + 6:.1f}" y="{base}">{words}</text>')
    return shapes
