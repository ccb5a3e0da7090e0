#!/usr/bin/env python3
"""The table on docs/guide/mistakes.md is true: mistakes_test.py TOP COMPILER INCLUDE_FOLDER...

Each mistake of the first column is compiled: the first line with "error:" must have the words of the second column, in
which a cell with several in backquotes means any of them. The corrections of the third column compile.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROW = re.compile(r"^\| (`.*`.*) \| (`.*`.*) \| (`.*`) \|$", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")
ROWS_MIN = 25


def rows_of(page):
    return [(QUOTED.findall(mistake)[0], QUOTED.findall(words), QUOTED.findall(instead)[0])
            for mistake, words, instead in ROW.findall(page)]


def compiled(code, header):
    """What the compiler prints of a function with this body, or of a whole program."""
    done = subprocess.run([*COMMAND, "-include", header, "-fsyntax-only", "-x", "c++", "-"],
                          input=code, capture_output=True, text=True)
    return done.stderr


def body(name, code):
    return f"namespace mistakes_page {{ void {name}() {{ {code} }} }}\n"


class Mistakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = rows_of((TOP / "docs/guide/mistakes.md").read_text())
        cls.folder = tempfile.TemporaryDirectory()
        cls.header = pathlib.Path(cls.folder.name) / "declarations.h"
        cls.header.write_text((TOP / "examples/docs/mistakes.cpp").read_text())
        # Precompiled, because each mistake needs a compilation of its own.
        subprocess.run([*COMMAND, "-x", "c++-header", cls.header, "-o", f"{cls.header}.gch"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_table_was_found(self):
        self.assertGreaterEqual(len(self.rows), ROWS_MIN)

    def test_the_first_line_names_the_mistake(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            printed = pool.map(lambda row: compiled(body("mistake", row[0]), self.header), self.rows)
            for (mistake, words, _), text in zip(self.rows, printed):
                with self.subTest(mistake=mistake):
                    first = next((line for line in text.splitlines() if "error:" in line), "no error")
                    self.assertTrue(any(word in first for word in words), f"{first}\nnot: {words}")

    def test_the_corrections_compile(self):
        code = "".join(body(f"corrected_{i}", instead) for i, (_, _, instead) in enumerate(self.rows))
        self.assertEqual(compiled(code, self.header), "")


if __name__ == "__main__":
    TOP = pathlib.Path(sys.argv[1])
    COMMAND = [sys.argv[2], "-std=c++23", "-Werror", *(f"-I{folder}" for folder in sys.argv[3:])]
    unittest.main(argv=sys.argv[:1])
