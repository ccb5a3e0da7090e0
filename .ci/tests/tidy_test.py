#!/usr/bin/env python3
"""tidy_test.py: .ci/tidy.py fails for a finding, in a source and in a header, and for what does not compile."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TIDY = pathlib.Path(__file__).resolve().parent.parent / "tidy.py"
GOOD = "#include <string>\nint length(const std::string& s) { return static_cast<int>(s.size()); }\n"
MOVED = """#include <string>
#include <utility>
std::size_t twice(std::string s) {
  const std::string taken = std::move(s);
  return taken.size() + s.size();
}
"""
NULL = "#pragma once\nint f(int n) {\n  int* p = nullptr;\n  if (n > 2) p = &n;\n  return n < 2 ? *p : n;\n}\n"


class Tidy(unittest.TestCase):
    def run_on(self, *options, **files):
        """Exit status and output for a project of these files; the .cpp files are compiled."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder, "sched")  # HeaderFilterRegex has the names of our folders
            root.mkdir()
            for name, text in files.items():
                (root / name.replace("_", ".")).write_text(text)
            units = [{"directory": str(root), "file": str(path), "command": f"clang++-19 -std=c++23 -c {path}"}
                     for path in root.glob("*.cpp")]
            (root / "compile_commands.json").write_text(json.dumps(units))
            done = subprocess.run([sys.executable, TIDY, *options, "--build", root], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def test_good_code_passes(self):
        status, text = self.run_on(good_cpp=GOOD)
        self.assertEqual(status, 0, text)
        self.assertIn("tidy: 1 units, 0 findings", text)

    def test_a_finding_fails(self):
        status, text = self.run_on(good_cpp=GOOD, moved_cpp=MOVED)
        self.assertEqual(status, 1, text)
        self.assertIn("moved.cpp:5:25: error: 's' used after it was moved [bugprone-use-after-move", text)
        self.assertIn("tidy: 2 units, 2 findings", text)  # the analyzer finds it, too

    def test_a_finding_in_a_header_fails_once(self):
        status, text = self.run_on(moved_h="#pragma once\n" + MOVED, one_cpp='#include "moved.h"\n', two_cpp='#include "moved.h"\n')
        self.assertEqual(status, 1, text)
        self.assertIn("moved.h:6:25", text)
        self.assertIn("tidy: 2 units, 1 findings", text)

    def test_a_deep_run_follows_the_paths_of_headers(self):
        status, text = self.run_on("--deep", null_h=NULL, one_cpp='#include "null.h"\n')
        self.assertEqual(status, 1, text)
        self.assertIn("Dereference of null pointer", text)

    def test_what_does_not_compile_fails(self):
        status, text = self.run_on(broken_cpp="int f( {\n")
        self.assertEqual(status, 1, text)

    def test_a_source_that_a_test_compiles_once_more_is_checked_as_the_librarys(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder, "sched")
            root.mkdir()
            source = root / "one.cpp"
            source.write_text(GOOD)
            command = f"clang++-19 -std=c++23 -c {source}"
            headers = f"-include {root}/tuza_test_headers.dir/not_built.h"
            (root / "compile_commands.json").write_text(json.dumps(
                [{"directory": str(root), "file": str(source), "command": line} for line in (command, f"{command} {headers}")]))
            done = subprocess.run([sys.executable, TIDY, "--build", root], capture_output=True, text=True)
            self.assertEqual(done.stdout.strip(), "tidy: 1 units, 0 findings", done.stderr)

    def test_what_has_passed_is_checked_again_when_it_has_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder, "sched")
            root.mkdir()
            source, header = root / "one.cpp", root / "one.h"
            source.write_text('#include "one.h"\n')
            header.write_text("#pragma once\n")
            command = f"clang++-19 -std=c++23 -c {source}"
            (root / "compile_commands.json").write_text(
                json.dumps([{"directory": str(root), "file": str(source), "command": command}]))
            (root / "build.ninja").write_text(
                f"rule cc\n command = {command} -MD -MF one.d -o one.o\n deps = gcc\n depfile = one.d\nbuild one.o: cc one.cpp\n")

            def tidy(*options):
                done = subprocess.run([sys.executable, TIDY, *options, "--build", root], capture_output=True, text=True)
                return done.stdout.strip()

            self.assertEqual(tidy(), "tidy: 1 units, 0 findings")
            self.assertEqual(tidy(), "tidy: 1 units, 0 findings", "before it is built, its headers are not known")
            subprocess.run(["ninja", "-C", root], check=True, capture_output=True)
            self.assertEqual(tidy(), "tidy: 1 units, 0 findings")
            self.assertEqual(tidy(), "tidy: 0 units, 0 findings, 1 unchanged")
            self.assertEqual(tidy("--deep"), "tidy: 1 units, 0 findings")
            header.write_text("#pragma once\n" + MOVED)
            self.assertIn("one.h:6:25", tidy())
            self.assertIn("one.h:6:25", tidy(), "a finding stays one")

    def test_no_unit_is_no_success(self):
        status, text = self.run_on(moved_h=MOVED)
        self.assertEqual(status, 1, text)


if __name__ == "__main__":
    unittest.main()
