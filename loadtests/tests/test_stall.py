"""The scenarios `stall` and `openproblem`: what they choose to measure, and what they make of answers.

Run from loadtests/: python3 -m unittest
"""

import argparse
import contextlib
import io
import unittest

from lib import report, stall
from lib.process import LoadTestError
from lib.servers import Spec
from scenarios import openproblem
from scenarios import stall as scenario


def options(*words):
    parser = argparse.ArgumentParser()
    scenario.add_options(parser)
    return parser.parse_args(words)


def stats(seconds, begun, ended, iterations):
    return {"seconds": seconds, "ticker": {"p50_us": 1.0},
            "kinds": {"burn": {"begun": begun, "ended": ended, "iterations": iterations, "eintr": begun},
                      "sleep": {"begun": 1, "ended": 0, "iterations": 7, "eintr": 0}}}


class Cases(unittest.TestCase):
    def test_default_has_every_kind_and_all_numbers_of_three(self):
        found = [case for case in scenario.cases(options()) if case.procs == 1]
        self.assertEqual(found[0], scenario.Case("-", 0, 1))
        self.assertEqual({case.kind for case in found[1:]}, set(scenario.KINDS))
        self.assertEqual([case.hogs for case in found if case.kind == "malloc"], [1, 8, 100, 1000])
        self.assertEqual([case.hogs for case in found if case.kind == "regex"], [8])

    def test_what_is_named_is_measured_in_full(self):
        found = scenario.cases(options("--kinds", "read", "--procs", "2"))
        self.assertEqual([case.hogs for case in found], [0, 1, 8, 100, 1000])
        found = scenario.cases(options("--hogs", "3", "--procs", "2"))
        self.assertEqual({case.hogs for case in found[1:]}, {3})
        self.assertEqual(len(scenario.cases(options("--full"))), 2 * (1 + 4 * len(scenario.KINDS)))

    def test_mistakes_end_the_program(self):
        for words in (("--kinds", "burn,dance"), ("--hogs", "0"), ("--hogs", "x"), ("--procs", "3")):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                options(*words)

    def test_go_only_where_it_compares(self):
        go = Spec("go", ())
        self.assertTrue(scenario.fits(go, scenario.Case("burn", 8, 2), options()))
        self.assertFalse(scenario.fits(go, scenario.Case("printf", 8, 2), options()))
        self.assertFalse(scenario.fits(go, scenario.Case("burn", 8, 1), options()))

    def test_bars_of_numbers_in_between(self):
        self.assertEqual([scenario.bars_of(n) for n in (8, 9, 1000, 5000)],
                         [(10, 1), (20, 3), (100, 15), (100, 15)])


class Answers(unittest.TestCase):
    def test_difference_of_two_windows(self):
        found = scenario.difference(stats(10.0, 4, 1, 100), stats(12.0, 9, 2, 500), "burn")
        self.assertEqual((found["running"], found["eintr"], found["rate"]), (7, 5, 200.0))

    def test_wrong_lost_and_silent_are_told(self):
        good = {"wrong": 0, "lost": 0}
        self.assertEqual(scenario.wrong_answers(scenario.Found(good, {"ticker": {}}, 0, 0)), [])
        self.assertEqual(len(scenario.wrong_answers(scenario.Found(good | {"wrong": 1, "lost": 2}, None, 0, 0))), 3)

    def test_of_several_the_work_is_the_median_and_the_lateness_the_worst(self):
        def found(p99_us, rate):
            client = dict.fromkeys((*scenario.LATENESS, "own_p99_us"), p99_us)
            server = {"ticker": dict.fromkeys(scenario.LATENESS, 1), "running": 8, "eintr": 0, "rate": rate}
            return scenario.Found(client, server, 0, 0, threads=100)

        quiet, case = report.Report(), scenario.Case("burn", 8, 2)
        three = [found(2000, 80), found(30_000, 95), found(1000, 99)]
        with contextlib.redirect_stderr(io.StringIO()):
            row = scenario.row_of(Spec("hostile", ()), case, three, stall.Ending(), quiet)
        self.assertIn("0.95", row)
        self.assertIn("30 ms", row)
        self.assertEqual([line.split(":")[0] for line in quiet.missed], ["stall burn x 8, 2 P, p99 in ms"])

    def test_json_is_the_last_line(self):
        self.assertEqual(stall.parse_json_line('ready\n{"a":1}\n', "x"), {"a": 1})
        for text in ("", "ready\n", "[1]"):
            with self.assertRaises(LoadTestError):
                stall.parse_json_line(text, "x")


class OpenProblem(unittest.TestCase):
    def test_permille_makes_the_load(self):
        self.assertEqual(openproblem.permille_of(64, 2, 20_000), 64)
        self.assertEqual(openproblem.permille_of(160, 2, 10_000), 320)
        with self.assertRaises(LoadTestError):
            openproblem.permille_of(160, 2, 1000)  # more than every request

    def test_ratio_within_rounds_that_have_both(self):
        results = {"hostile": {0: {"rate": 8}, 1: {"rate": 6}}, "floor": {0: {"rate": 4}, 2: {"rate": 1}}}
        self.assertEqual(openproblem.ratio(results, "rate"), 2)
        self.assertIsNone(openproblem.ratio({"hostile": {}, "floor": {}}, "rate"))


class Shares(unittest.TestCase):
    def test_at_the_bar_and_below(self):
        found = report.Report()
        self.assertEqual((found.share("x", 0.896, 0.90), found.share("x", 0.894, 0.90)), ("ok", "MISSED"))
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(found.finish(strict=True), 1)


if __name__ == "__main__":
    unittest.main()
