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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
