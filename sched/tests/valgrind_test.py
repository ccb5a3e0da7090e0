#!/usr/bin/env python3
"""valgrind_test.py VALGRIND_TARGET: Valgrind's Memcheck understands goroutines.

Needs valgrind in PATH, or named by $VALGRIND.
"""

import os
import pathlib
import subprocess
import sys
import unittest

TARGET = pathlib.Path(sys.argv[1]).resolve()
VALGRIND = os.environ.get("VALGRIND", "valgrind")
PATIENCE_S = 500
FOUND = 99
# Valgrind takes a change of the stack pointer by less than this for a frame, if it does not know both stacks.
LARGEST_FRAME = 1 << 40


def memcheck(*words):
    try:
        done = subprocess.run([VALGRIND, f"--error-exitcode={FOUND}", f"--max-stackframe={LARGEST_FRAME}", TARGET, *words],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False)
    except FileNotFoundError:
        sys.exit(f"{VALGRIND} is missing. Package: valgrind. `./dev test all` installs it.")
    return done.returncode, done.stdout


class Valgrind(unittest.TestCase):
    maxDiff = None

    def test_it_finds_nothing_in_a_correct_program(self):
        status, output = memcheck()
        self.assertEqual(status, 0, output)
        self.assertIn("ERROR SUMMARY: 0 errors from 0 contexts", output)
        self.assertNotIn("client switching stacks?", output)

    def test_it_finds_a_mistake_on_a_goroutine(self):
        status, output = memcheck("mistake")
        self.assertEqual(status, FOUND, output)
        self.assertRegex(output, r"Invalid read of size 4\n==\d+==    at .*make_a_mistake")
        self.assertIn("ERROR SUMMARY: 2 errors from 1 contexts", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
