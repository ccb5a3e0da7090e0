"""The output of a run: tables on stdout, progress on stderr, checks, bars, and every single measurement as CSV.

A check is a requirement on answers (right bodies, no errors): a failed check makes the exit status 1. A bar is a goal
with two numbers, `must` and `aim`. Lower is better, unless the bar is called a share. A missed `must` changes the exit
status under --strict.
"""

import csv
import statistics
import sys

CSV_HEADER = ("date", "commit", "scenario", "case", "server", "round", "metric", "value")


def table(headers, rows, left=2):
    """The lines of a table; the first `left` columns are aligned left."""
    cells = [[str(cell) for cell in row] for row in [headers, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    lines = []
    for row in cells:
        padded = [cell.ljust(width) if i < left else cell.rjust(width)
                  for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(padded).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def duration(us):
    """Microseconds for a reader: three digits and a unit."""
    if us >= 1e6:
        return f"{us / 1e6:.3g} s"
    return f"{us / 1e3:.3g} ms" if us >= 1e3 else f"{us:.0f} us"


def verdict(value, must, aim):
    """Compares `value`, rounded as it is shown, with its bars: a value shown as 1.20 has reached 1.20."""
    if round(value, 2) > must:
        return f"must {must:.2f} MISSED"
    return f"must {must:.2f} ok, aim {aim:.2f} {'ok' if round(value, 2) <= aim else 'not yet'}"


class Report:
    def __init__(self, csv_file=None, date="", commit=""):
        self._csv = csv.writer(csv_file) if csv_file else None
        self._csv_file = csv_file
        self._stamp = (date, commit)
        self.warnings = []  # what casts doubt on the numbers
        self.failed = []
        self.missed = []
        self.lines = []  # everything printed by say()
        self.measurements = []  # (scenario, case, server, round, {metric: value})
        if self._csv:
            self._csv.writerow(CSV_HEADER)

    def say(self, *lines):
        self.lines += lines
        print(*lines, sep="\n", flush=True)

    def progress(self, text):
        print(f"  .. {text}", file=sys.stderr, flush=True)

    def fail(self, text):
        self.failed.append(text)
        print(f"  CHECK FAILED: {text}", file=sys.stderr, flush=True)

    def warn(self, text):
        """Something other than the servers may have made the numbers: said before any verdict about them."""
        self.warnings.append(text)
        self.say("", f"WARNING: {text}")

    def bar(self, what, value, must, aim):
        """Compares, records a miss, and returns the words for the table."""
        words = verdict(value, must, aim)
        if words.endswith("MISSED"):
            self.missed.append(f"{what}: {value:.2f}, {words}")
        return words

    def share(self, what, value, must):
        """The same for a value that should be at least `must`."""
        if round(value, 2) >= must:
            return "ok"
        self.missed.append(f"{what}: {value:.2f}, must {must:.2f} MISSED")
        return "MISSED"

    def record(self, scenario, case, server, round_number, metrics):
        """Records one measurement, {metric: value}, and writes it at once, so that an interrupted run keeps it."""
        self.measurements.append((scenario, case, server, round_number, metrics))
        if self._csv:
            for metric, value in metrics.items():
                row = (*self._stamp, scenario, case, server, round_number, metric, f"{value:.6g}")
                self._csv.writerow(row)
            self._csv_file.flush()

    def medians(self):
        """(scenario, case, server, metric, median over the rounds) for everything that was recorded."""
        found = {}
        for scenario, case, server, _, metrics in self.measurements:
            for metric, value in metrics.items():
                found.setdefault((scenario, case, server, metric), []).append(value)
        return [(*key, f"{statistics.median(values):.4g}") for key, values in found.items()]

    def finish(self, strict):
        """Prints the summary and returns the exit status."""
        self.say("", *(f"WARNING: {text}" for text in self.warnings))
        for title, items in (("bars missed", self.missed), ("checks failed", self.failed)):
            self.say(f"{title}: {len(items)}", *(f"  {item}" for item in items))
        return 1 if self.failed or (strict and self.missed) else 0
