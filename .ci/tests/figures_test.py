#!/usr/bin/env python3
"""figures_test.py: README's figures come from a run that can be trusted, and README says what it missed."""

import importlib.util
import pathlib
import subprocess
import tempfile
import unittest

spec = importlib.util.spec_from_file_location("figures", pathlib.Path(__file__).resolve().parents[1] / "figures.py")
figures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(figures)

REPORT = """machine   a machine
commit    {commit}
rivals    nginx 1.22.1, Go 1.19.8

plaintext: ...

bars missed: 1
  plaintext, 256: 1.29, must 1.18 MISSED
checks failed: 0
"""
CSV = """date,commit,scenario,case,server,metric,median
d,c,plaintext,256,hello,total_us,8.5
d,c,plaintext,256,nginx,total_us,9
"""


class Figures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs/performance").mkdir(parents=True)
        self.report = self.root / "docs/performance/2026-01-02-load.txt"
        self.csv = self.report.with_suffix(".csv")
        self.csv.write_text(CSV)
        self.git("init", "-q")
        for subject in "one", "two":
            self.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", subject)
        self.write(REPORT.format(commit=self.git("rev-parse", "--short", "HEAD")))

    def git(self, *words):
        return subprocess.run(["git", "-C", self.root, *words], check=True, capture_output=True, text=True).stdout.strip()

    def write(self, report):
        self.report.write_text(report)
        (self.root / "README.md").write_text(f"a\n{figures.BEGIN}{figures.table(self.csv)}{figures.END}b\n")

    def complaint(self, old, new):
        text = self.report.read_text()
        self.assertIn(old, text)
        self.report.write_text(text.replace(old, new))
        return figures.complaint(self.root)

    def test_a_good_run(self):
        self.assertIsNone(figures.complaint(self.root))
        table = figures.table(self.csv)
        self.assertIn("| | Tuza | nginx 1.22.1 | Go 1.19.8 |\n", table)
        self.assertIn("| CPU per request, 256 connections | 8.5 us | 9 us | - |\n", table)
        self.assertIn("It missed 1 of our own bars: plaintext, 256: 1.29, must 1.18. ", table.replace("\n", " "))

    def test_a_run_with_warnings(self):
        self.assertIn("it has warnings", self.complaint("plaintext: ...", "WARNING: other programs"))

    def test_a_run_whose_checks_failed(self):
        self.assertIn("its checks failed", self.complaint("checks failed: 0", "checks failed: 1"))

    def test_a_run_of_an_unknown_commit(self):
        for commit in ("unknown", "0123456", self.git("rev-parse", "--short", "HEAD") + "+changes"):
            self.write(REPORT.format(commit=commit))
            self.assertIn(f"its commit {commit} is not", figures.complaint(self.root))

    def test_a_run_without_the_versions_of_others(self):
        self.assertIn("compares with: Go", self.complaint(", Go 1.19.8", ""))

    def test_another_table(self):
        self.csv.write_text(CSV.replace("8.5", "8.4"))
        self.assertIn(".ci/figures.py --write", figures.complaint(self.root))


if __name__ == "__main__":
    unittest.main()
