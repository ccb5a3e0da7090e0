#!/usr/bin/env python3
"""suite_test.py: what .ci/suite.py counts and prints, with tests that pass, fail and are skipped."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import suite as suite_module  # noqa: E402

TESTS = """
add_test(good "true")
add_test(bad "sh" "-c" "echo the reason; exit 1")
add_test(skipped "sh" "-c" "exit 77")
set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)
add_test(large "true")
set_tests_properties(large PROPERTIES LABELS all)
"""


class SuiteTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        build = pathlib.Path(folder.name)
        (build / "tree").mkdir()
        (build / "tree/CTestTestfile.cmake").write_text(TESTS)
        before = suite_module.BUILD
        suite_module.BUILD = build
        self.addCleanup(setattr, suite_module, "BUILD", before)

    def run_steps(self, *steps):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            suite = suite_module.Suite()
            for name, run in steps:
                suite.step(name, lambda step, run=run: run(suite, step))
            status = suite.end()
        return status, output.getvalue()

    def test_failures_come_after_all_steps_and_the_total_last(self):
        status, text = self.run_steps(
            ("first", lambda suite, step: suite.tests(step, "tree")),
            ("second", lambda suite, step: suite.tests(step, "tree", "-R", "good")))
        self.assertEqual(status, 1)
        self.assertIn("first: FAILED bad (Failed)\n    the reason\n", text, "at once, too")
        self.assertLess(text.index("== second"), text.index("== first: bad (Failed) failed\nthe reason"))
        self.assertRegex(text, r"== summary\nfirst: 2 passed, 1 failed in \d+ s, 1 skipped\n"
                               r"second: 1 passed, 0 failed in \d+ s\n3 passed, 1 failed\n$")

    def test_each_way_to_fail_has_its_name_and_output(self):
        (suite_module.BUILD / "tree/CTestTestfile.cmake").write_text("""
add_test(good "true")
add_test([==[typed<std::integral_constant<unsigned (int,4u>>]==] "true")
add_test([==[a name with (spaces]==] "sh" "-c" "echo spaces; exit 1")
add_test(aborts "sh" "-c" "echo before the abort; kill -ABRT $$")
add_test(killed "sh" "-c" "kill -KILL $$")
add_test(crashes "sh" "-c" "kill -SEGV $$")
add_test(traps "sh" "-c" "kill -TRAP $$")
add_test(hangs "sleep" "60")
set_tests_properties(hangs PROPERTIES TIMEOUT 1)
add_test(missing "/nowhere/program")
""")
        status, text = self.run_steps(("step", lambda suite, step: suite.tests(step, "tree")))
        self.assertEqual(status, 1)
        for name in "aborts", "killed", "crashes", "traps", "hangs", "missing":
            self.assertRegex(text, rf"== step: {name} \([A-Z].*\) failed\n")
        self.assertIn("before the abort", text)
        self.assertIn("a name with (spaces (Failed) failed\nspaces\n", text)
        self.assertTrue(text.endswith("\n2 passed, 7 failed\n"), text)

    def test_it_counts_what_it_leaves_to_all(self):
        status, text = self.run_steps(
            ("quick", lambda suite, step: suite.tests(step, "tree", "-LE", suite_module.LEFT, "-E", "bad")))
        self.assertEqual((status, text.endswith("\n1 passed, 0 failed\n")), (0, True), text)
        self.assertEqual(suite_module.left_to_all("tree"), "1")

    def test_what_has_passed_is_not_repeated_until_the_sources_change(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(suite_module, "ROOT", pathlib.Path(folder)):
            root = pathlib.Path(folder)
            subprocess.run(["git", "init", "-q", folder], check=True)
            (root / "one").write_text("1")
            (suite_module.BUILD / "quick").mkdir()
            self.assertFalse(suite_module.quick_has_passed())

            def run(passes):
                suite = unittest.mock.Mock(steps=[unittest.mock.Mock(failed=0 if passes else 1)])
                suite_module.quick(suite)
            run(passes=False)
            self.assertFalse(suite_module.quick_has_passed())
            run(passes=True)
            self.assertTrue(suite_module.quick_has_passed())
            run(passes=False)
            self.assertFalse(suite_module.quick_has_passed(), "what has passed once may fail the next time")
            for change in (lambda: (root / "one").write_text("2"), lambda: (root / "two").write_text(""),
                           lambda: (root / "one").unlink()):
                run(passes=True)
                change()
                self.assertFalse(suite_module.quick_has_passed())

    def test_what_googletest_skips_is_named(self):
        (suite_module.BUILD / "tree/CTestTestfile.cmake").write_text(
            'add_test(Suite "sh" "-c" "seq 2000; echo \'[  SKIPPED ] Suite.Part (0 ms)\'; seq 2000")\n')
        status, text = self.run_steps(("step", lambda suite, step: suite.tests(step, "tree")))
        self.assertEqual(status, 0)
        self.assertIn("skipped in tests that passed: Suite.Part\n", text)

    def test_a_tree_that_was_not_configured_leaves_nothing_to_all(self):
        self.assertIsNone(suite_module.left_to_all("nowhere"))

    def test_a_note_of_a_tool_stands_in_the_summary(self):
        status, text = self.run_steps(("tool", lambda suite, step: suite.tool(step, "-c", "print('note: a remark')")))
        self.assertEqual(status, 0)
        self.assertRegex(text, r"== summary\ntool: 1 passed, 0 failed in \d+ s, a remark\n")

    def test_a_run_without_tests_is_a_failure(self):
        status, text = self.run_steps(("none", lambda suite, step: suite.tests(step, "tree", "-R", "nothing")))
        self.assertEqual(status, 1)
        self.assertIn("0 passed, 1 failed", text)

    def test_a_tool_that_fails_shows_its_output(self):
        code = "print('a finding'); raise SystemExit(3)"
        status, text = self.run_steps(("tool", lambda suite, step: suite.tool(step, "-c", code)))
        self.assertEqual(status, 1)
        self.assertIn("a finding\nexit status 3\n== summary\ntool: 0 passed, 1 failed", text)

    def test_a_tool_that_does_not_exist_is_a_failure(self):
        status, _ = self.run_steps(("tool", lambda suite, step: suite.tool(step, "/nowhere/tool.py")))
        self.assertEqual(status, 1)


class CommandLine(unittest.TestCase):
    def test_an_interrupted_run_does_not_pass(self):
        script = "import suite; suite.everything = lambda _: (_ for _ in ()).throw(KeyboardInterrupt); suite.run(['all'])"
        done = subprocess.run([sys.executable, "-c", script], cwd=pathlib.Path(__file__).resolve().parents[1])
        self.assertEqual(done.returncode, 130)


if __name__ == "__main__":
    unittest.main()
