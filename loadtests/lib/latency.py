"""Charts of latencies (inline SVG): for each server the percentiles on one logarithmic axis, from the fastest to the
slowest of a scenario. A mark is the median over the rounds."""

import html
import math
import statistics

PERCENTILES = (("p50_us", "p50"), ("p90_us", "p90"), ("p99_us", "p99"), ("p999_us", "p99.9"), ("max_us", "max"))
TITLES = {"": "Latency", "client_": "Latency of small requests", "tick_": "Lateness of a goroutine that ticks"}
NAME_WIDTH, AXIS_WIDTH, VALUE_WIDTH = 190, 460, 350
ROW, HEAD = 20, 22
RADII = {"p50": 5, "p90": 4.5, "p99": 4, "p99.9": 3.5, "max": 3}


def duration(us):
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= size:
            return f"{us / size:.3g} {unit}"
    return f"{us:.3g} µs"


def prefixes(measurements, scenario):
    """The kinds of latency that a scenario has recorded: prefixes of its metrics, each with two percentiles or more."""
    names = {name for found, *_, metrics in measurements if found == scenario
             for name, value in metrics.items() if value}
    found = {name.removesuffix(end): 0 for end, _ in PERCENTILES for name in sorted(names) if name.endswith(end)}
    return [prefix for prefix in found if sum(prefix + end in names for end, _ in PERCENTILES) >= 2
            and (prefix == "" or prefix.endswith("_"))]


def by_case(measurements, scenario, prefix):
    """{case: {server: [(percentile, median in us), ...]}}; a client that measures none has recorded 0."""
    rounds = {}
    for found, case, server, _, metrics in measurements:
        if found != scenario:
            continue
        for end, label in PERCENTILES:
            if metrics.get(prefix + end):
                of_server = rounds.setdefault(case, {}).setdefault(server, {})
                of_server.setdefault(label, []).append(float(metrics[prefix + end]))
    return {case: {server: [(label, statistics.median(values)) for label, values in of_server.items()]
                   for server, of_server in servers.items()} for case, servers in rounds.items()}


def decades(cases):
    """The powers of ten, in us, that enclose all values: at least one decade."""
    values = [us for servers in cases.values() for marks in servers.values() for _, us in marks]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def chart(cases, colour_of):
    low, high = decades(cases)

    def x(us):
        return NAME_WIDTH + (math.log10(us) - low) / (high - low) * AXIS_WIDTH

    shapes, y = [], HEAD
    for case, servers in cases.items():
        shapes.append(f'<text x="0" y="{y + ROW - 6}" font-weight="600">{html.escape(case)}</text>')
        y += ROW
        for server, marks in servers.items():
            shapes += row(server, marks, colour_of(server), x, y)
            y += ROW
    axis = []
    for power in range(low, high + 1):
        at = f"{x(10 ** power):.1f}"
        axis += [f'<path class="grid" d="M{at} {HEAD - 4}V{y}"/>',
                 f'<text x="{at}" y="{HEAD - 8}" text-anchor="middle">{duration(10 ** power)}</text>']
    width = NAME_WIDTH + AXIS_WIDTH + VALUE_WIDTH
    return f'<svg viewBox="0 0 {width} {y + 4}" role="img">{"".join(axis + shapes)}</svg>'


def row(server, marks, colour, x, y):
    middle, base = y + ROW / 2, y + ROW - 6
    shapes = [f'<text x="{NAME_WIDTH - 12}" y="{base}" text-anchor="end">{html.escape(server)}</text>',
              f'<path d="M{x(marks[0][1]):.1f} {middle}H{x(marks[-1][1]):.1f}" stroke="{colour}" stroke-width="2"/>']
    for label, us in marks:
        shapes.append(f'<circle cx="{x(us):.1f}" cy="{middle}" r="{RADII[label]}" fill="{colour}">'
                      f'<title>{label} {duration(us)}</title></circle>')
    words = " · ".join(f"{label} {duration(us)}" for label, us in marks)
    shapes.append(f'<text x="{NAME_WIDTH + AXIS_WIDTH + 14}" y="{base}">{words}</text>')
    return shapes
