#!/usr/bin/env python3
"""sanitizers_test.py SOURCE CXX: programs get Tuza with the sanitizer that they ask for, and mixtures are refused.

Builds the program in consumer/sanitized/ with Tuza's lowest layer as a part of it, without a sanitizer, with
AddressSanitizer and with ThreadSanitizer, and installs the three libraries into one prefix.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, CXX = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
PROGRAM = pathlib.Path(__file__).resolve().parent / "consumer/sanitized"
PATIENCE_S = 500
SET_THREAD = "tuza_error_set_TUZA_SANITIZE_to_thread_as_in_the_program"
SET_ADDRESS = "tuza_error_set_TUZA_SANITIZE_to_address_as_in_the_program"
HAS_ONE = "tuza_error_Tuza_has_a_sanitizer_and_the_program_has_none"


def run(*words):
    done = subprocess.run(list(map(str, words)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout


def must(*words):
    status, output = run(*words)
    assert status == 0, output
    return output


class Sanitizers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.prefix = cls.scratch / "prefix"
        for name, sanitizer in ("plain", ""), ("address", "address"), ("thread", "thread"):
            build = cls.scratch / name
            must("cmake", "-G", "Ninja", "-S", PROGRAM, "-B", build, f"-DCMAKE_CXX_COMPILER={CXX}",
                 f"-DTUZA_SOURCE={SOURCE}", f"-DTUZA_SANITIZE={sanitizer}", "-DCMAKE_CXX_FLAGS=-O0 -g1",
                 "-DCMAKE_INSTALL_LIBDIR=lib")
            must("cmake", "--build", build, "--parallel", "2", "--target", "all", "sanitized")
            must("cmake", "--install", build, "--prefix", cls.prefix)

    def configure(self, name, *options):
        build = self.scratch / name
        status, output = run("cmake", "-G", "Ninja", "-S", PROGRAM, "-B", build, f"-DCMAKE_CXX_COMPILER={CXX}",
                             f"-DCMAKE_PREFIX_PATH={self.prefix}", *options)
        return build, status, output

    def build(self, name, *options):
        build, status, output = self.configure(name, *options)
        self.assertEqual(status, 0, output)
        return build / "sanitized", *run("cmake", "--build", build, "--target", "sanitized")

    def finds_mistakes(self, program):
        self.assertEqual(run(program), (0, ""))
        status, output = run(program, "mistake")
        self.assertNotEqual(status, 0)
        self.assertIn("ERROR: AddressSanitizer: heap-use-after-free", output)
        self.assertIn("make_a_mistake", output)

    def test_a_part_of_the_program_needs_only_the_variable(self):
        self.assertEqual(run(self.scratch / "plain/sanitized"), (0, ""))
        self.finds_mistakes(self.scratch / "address/sanitized")

    def test_an_installed_package_needs_only_the_variable(self):
        program, status, output = self.build("plain-installed")
        self.assertEqual(status, 0, output)
        self.assertEqual(run(program), (0, ""))
        program, status, output = self.build("address-installed", "-DTUZA_SANITIZE=address,undefined")
        self.assertEqual(status, 0, output)
        self.finds_mistakes(program)

    def test_a_package_that_is_not_installed_is_named(self):
        _, status, output = self.configure("undefined-installed", "-DTUZA_SANITIZE=undefined")
        self.assertNotEqual(status, 0)
        self.assertIn("Tuza is not installed here for TUZA_SANITIZE='undefined'", output)

    def test_mixtures_do_not_link(self):
        for program, folder, says in (("thread", "lib", SET_THREAD), ("address", "lib", SET_ADDRESS),
                                      ("", "lib/tuza-address", HAS_ONE), ("", "lib/tuza-thread", HAS_ONE),
                                      ("thread", "lib/tuza-address", SET_THREAD),
                                      ("address", "lib/tuza-thread", SET_ADDRESS)):
            with self.subTest(program=program, folder=folder):
                flags = [f"-fsanitize={program}"] if program else []
                status, output = run(CXX, "-std=c++23", "-pthread", *flags, f"-I{self.prefix}/include",
                                     PROGRAM / "main.cpp", self.prefix / folder / "libtuza_sched.a", "-ldl",
                                     "-o", self.scratch / "mixed")
                self.assertNotEqual(status, 0)
                self.assertIn(says, output)

    def test_undefined_behaviour_may_be_mixed(self):
        program, status, output = self.build("undefined", "-DCMAKE_CXX_FLAGS=-fsanitize=undefined")
        self.assertEqual(status, 0, output)
        self.assertEqual(run(program), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
