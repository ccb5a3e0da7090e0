#!/usr/bin/env python3
"""pipeline_test.py PROGRAM: all answers arrive. If the pipeline ends early, exactly the wanted number arrives, and no
goroutine is left."""

import subprocess
import sys
import unittest


def pipeline(*args: str) -> list[str]:
    done = subprocess.run([sys.argv[1], *args], capture_output=True, text=True, timeout=100, check=True)
    return done.stdout.splitlines()


class Pipeline(unittest.TestCase):
    def test_all_answers_come(self):
        self.assertEqual(pipeline("10000"), ["10000 answers, 1229 primes", "1 goroutine left"])

    def test_no_numbers_at_all(self):
        self.assertEqual(pipeline("0"), ["0 answers, 0 primes", "1 goroutine left"])

    def test_a_context_ends_it_early(self):
        for enough in (1, 7, 100):
            answers, left = pipeline("1000000000", str(enough))
            self.assertRegex(answers, rf"^{enough} answers, \d+ primes$")
            self.assertEqual(left, "1 goroutine left")

    def test_wrong_arguments_are_named_and_nothing_runs(self):
        for arguments, said in [(["abc"], "LAST: expected a number from 0 to 9223372036854775807, not 'abc'"),
                                (["-1"], "LAST: expected a number from 0"), (["10x"], "LAST: "), ([""], "LAST: "),
                                (["99999999999999999999"], "LAST: "), (["10", "0"], "ENOUGH: expected a number from 1"),
                                (["10", "many"], "ENOUGH: "), (["1", "2", "3"], "unexpected argument 3"),
                                (["--hlep"], "LAST: ")]:
            with self.subTest(arguments=arguments):
                done = subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, timeout=100, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertTrue(done.stderr.startswith(f"pipeline: {said}"), done.stderr)
                self.assertTrue(done.stderr.endswith("Try 'pipeline --help'.\n"), done.stderr)

    def test_the_help_names_the_arguments(self):
        self.assertEqual(pipeline("--help")[0], "Usage: pipeline [LAST [ENOUGH]]")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
