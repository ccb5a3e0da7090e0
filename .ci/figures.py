#!/usr/bin/env python3
"""Makes the table of figures in README.md from the newest docs/performance/*-load.csv: figures.py [--write]

Without --write it only checks: README.md contains that table, and the run can be trusted and repeated. It had no warnings
and no failed checks, says which versions it compares with, and measured a commit of this repository. Exit status 0 or 1.
"""

import csv
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"

# Per row: its label, (scenario, case, metric), the unit, the divisor of the values, and per column the server's name.
ROWS = (
    ("CPU per request, 256 connections", ("plaintext", "256", "total_us"), "us", 1, ("hello", "nginx", "go")),
    ("CPU per pipelined request", ("plaintext", "pipeline", "total_us"), "us", 1, ("hello", "nginx", "go")),
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


def rivals(report):
    """{"nginx": "1.22.1", ...} as the head of the report names them."""
    found = re.search(r"^rivals +(.*)$", report, re.MULTILINE)
    return dict(re.findall(r"(\w+) (\d[\w.]*)", found[1] if found else ""))


def misses(report):
    """The bars that the run has missed: "plaintext, 256: 1.29, must 1.18"."""
    lines = report.partition("\nbars missed: ")[2].partition("\nchecks failed: ")[0].splitlines()[1:]
    return [line.strip().removesuffix(" MISSED") for line in lines]


def table(path):
    """The text between the two marks in README.md."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    report = path.with_suffix(".txt").read_text(encoding="utf-8")

    def find(scenario, case, metric, server):
        return next((float(row["median"]) for row in rows
                     if (row["scenario"], row["metric"], row["server"]) == (scenario, metric, server)
                     and case in (None, row["case"])), None)

    versions = rivals(report)
    lines = [f"| | Tuza | nginx {versions.get('nginx', '?')} | Go {versions.get('Go', '?')} |", "| --- | --- | --- | --- |"]
    for what, (scenario, case, metric), unit, divisor, servers in ROWS:
        values = [find(scenario, case, metric, server) if server else None for server in servers]
        cells = ("-" if value is None else f"{shown(value / divisor)} {unit}" for value in values)
        lines.append(f"| {what} | {' | '.join(cells)} |")
    missed = misses(report)
    text = f"One run on two cores: [machine, compiler, commit](docs/performance/{path.stem}.txt). It missed " + (
        f"{len(missed)} of our own bars: {'; '.join(missed)}." if missed else "none of our own bars.")
    lines += ["", *textwrap.wrap(text, 118, break_on_hyphens=False)]
    return "\n".join(lines) + "\n"


def is_here(commit, root):
    """Whether the commit is one of HEAD's; True where nobody can tell: in an archive, and where there is no history."""
    def git(*words):
        return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)

    whole = git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"
    if not whole or git("rev-list", "--count", "HEAD").stdout.strip() == "1":
        return True
    return git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0


def doubts(path, root):
    """What makes a run worthless as a record."""
    report = path.with_suffix(".txt").read_text(encoding="utf-8")
    if re.search(r"^WARNING: ", report, re.MULTILINE):
        yield "it has warnings: repeat it on a quiet machine"
    if "\nchecks failed: 0\n" not in report:
        yield "its checks failed"
    if missing := {"nginx", "Go"} - rivals(report).keys():
        yield f"its head does not say which version it compares with: {', '.join(sorted(missing))}"
    commit = re.search(r"^commit +(\S+)$", report, re.MULTILINE)
    if not commit or not re.fullmatch(r"[0-9a-f]{7,40}", commit[1]) or not is_here(commit[1], root):
        yield f"its commit {commit[1] if commit else ''} is not in the history of this one"


def complaint(root=ROOT):
    """A message that says what is wrong with README.md's figures, or None."""
    path, readme = newest(root), (root / "README.md").read_text(encoding="utf-8")
    if path is None or BEGIN not in readme or END not in readme:
        return "README.md has no figures, or docs/performance no results"
    if found := list(doubts(path, root)):
        return f"{path.relative_to(root)}: " + "; ".join(found)
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
