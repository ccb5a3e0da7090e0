#!/usr/bin/env python3
"""Makes the table of figures in README.md from the newest docs/performance/*-load.csv: figures.py [--write]

Without --write it only checks that README.md contains that table. Exit status 0 or 1.
"""

import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"

# Per row: its label, (scenario, case, metric), the unit, the divisor of the values, and per column the server's name.
ROWS = (
    ("CPU per request over TLS, 256 connections", ("tls", "256", "total_us"), "us", 1, ("hello", "nginx", "go")),
    ("CPU per TLS handshake and request", ("tls", "handshake", "total_us"), "us", 1, ("hello", "nginx", "go")),
    ("CPU per connection with one request, no TLS", ("churn", "churn-256", "total_us"), "us", 1, ("hello", "nginx", "go")),
    ("memory of an idle TLS connection", ("tls-idle", None, "Rss_10s_bytes"), "KB", 1024, ("hello", "nginx", "go")),
    ("p99 of `GET /` beside 8 handlers that compute", ("stall", "burn x 8 P2", "client_p99_us"), "ms", 1000,
     ("hostile", None, "go")),
    ("p99 of `GET /` beside 100 handlers that call `malloc`", ("stall", "malloc x 100 P2", "client_p99_us"), "ms", 1000,
     ("hostile", None, "go")),
)


def newest(root):
    results = sorted((root / "docs/performance").glob("*-load.csv"))
    return results[-1] if results else None


def shown(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def table(path):
    """The text between the two marks in README.md."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    def find(scenario, case, metric, server):
        return next((float(row["median"]) for row in rows
                     if (row["scenario"], row["metric"], row["server"]) == (scenario, metric, server)
                     and case in (None, row["case"])), None)

    lines = ["| | Tuza | nginx | Go |", "| --- | --- | --- | --- |"]
    for what, (scenario, case, metric), unit, divisor, servers in ROWS:
        values = [find(scenario, case, metric, server) if server else None for server in servers]
        cells = ("-" if value is None else f"{shown(value / divisor)} {unit}" for value in values)
        lines.append(f"| {what} | {' | '.join(cells)} |")
    report = path.with_suffix(".txt")
    lines += ["", f"One run on two cores: [machine, compiler, commit](docs/performance/{report.name})."]
    return "\n".join(lines) + "\n"


def complaint(root=ROOT):
    """A message that says what is wrong with README.md's figures, or None."""
    path, readme = newest(root), (root / "README.md").read_text(encoding="utf-8")
    if path is None or BEGIN not in readme or END not in readme:
        return "README.md has no figures, or docs/performance no results"
    if readme.split(BEGIN)[1].split(END)[0] != table(path):
        return f"README.md: its figures are not those of {path.relative_to(root)}: .ci/figures.py --write"
    return None


def main():
    if sys.argv[1:] == ["--write"]:
        readme = ROOT / "README.md"
        text = readme.read_text(encoding="utf-8")
        begin, rest = text.split(BEGIN)
        readme.write_text(begin + BEGIN + table(newest(ROOT)) + END + rest.split(END)[1], encoding="utf-8")
        return 0
    if sys.argv[1:]:
        sys.exit(__doc__)
    if said := complaint():
        print(said)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
