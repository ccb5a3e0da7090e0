#!/usr/bin/env python3
"""suite_test.py: what .ci/suite.py counts and prints, with tests that pass, fail, are skipped, and are unsteady."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import ctest  # noqa: E402
import hung  # noqa: E402
import steps  # noqa: E402
import suite as suite_module  # noqa: E402

TESTS = """
add_test(good "true")
add_test(bad "sh" "-c" "echo the reason; exit 1")
add_test(skipped "sh" "-c" "exit 77")
set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)
add_test(large "true")
set_tests_properties(large PROPERTIES LABELS all)
"""


def unsteady(name, passes_from=2):
    """A test that fails until its run of this number, and prints which run it is."""
    return f'''add_test({name} "sh" "-c" "echo x >>{name}.runs; n=$(wc -l <{name}.runs)
echo {name}_test.cpp:7: Failure; echo \\"  run $n\\"; test $n -ge {passes_from}")\n'''


class SuiteTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        build = pathlib.Path(folder.name)
        (build / "tree").mkdir()
        (build / "tree/CTestTestfile.cmake").write_text(TESTS)
        before = steps.BUILD
        steps.BUILD = build
        self.addCleanup(setattr, steps, "BUILD", before)

    def tree(self, tests):
        (steps.BUILD / "tree/CTestTestfile.cmake").write_text(tests)

    def run_steps(self, *runs):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            suite = steps.Suite()
            for name, run in runs:
                suite.step(name, lambda step, run=run: run(suite, step))
            status = suite.end()
        return status, output.getvalue()

    def test_failures_come_after_all_steps_and_the_total_last(self):
        status, text = self.run_steps(
            ("first", lambda suite, step: ctest.tests(suite, step, "tree")),
            ("second", lambda suite, step: ctest.tests(suite, step, "tree", "-R", "good")))
        self.assertEqual(status, 1)
        self.assertIn("first: FAILED bad (Failed)\n    the reason\n", text, "at once, too")
        self.assertIn("first: what failed runs again, alone: 1 of 4\n", text)
        self.assertLess(text.index("== second"), text.index("== first: bad (Failed) failed\nthe reason"))
        self.assertRegex(text, r"== summary\nfirst: 2 passed, 1 failed in \d+ s, 1 skipped\n"
                               r"second: 1 passed, 0 failed in \d+ s\nfailed: first: bad \(Failed\)\n3 passed, 1 failed\n$")

    def test_a_log_says_what_the_threads_of_a_test_that_hangs_do(self):
        self.tree("""
add_test(good "true")
add_test(hangs "sh" "-c" "sleep 61; true")
set_tests_properties(hangs PROPERTIES TIMEOUT 4)
""")
        with unittest.mock.patch.object(hung, "AFTER_S", 1):
            status, text = self.run_steps(("tests", lambda suite, step: ctest.tests(suite, step, "tree")))
        self.assertEqual(status, 1)
        self.assertRegex(text, r"the threads of what hung: \S+/tests\.hung\.log\n")
        log = (steps.BUILD / "tests.hung.log").read_text()
        self.assertRegex(log, r"== process \d+, after \d+ s: \S*sh -c sleep 61; true\s*\n\d+ sh: state S, waits in \S+, system call ")
        self.assertRegex(log, r"== process \d+, after \d+ s: sleep 61\s*\n\d+ sleep: state S, waits in ")
        self.assertNotIn("ctest", log)

    def test_each_way_to_fail_has_its_name_and_output(self):
        self.tree("""
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
        status, text = self.run_steps(("step", lambda suite, step: ctest.tests(suite, step, "tree")))
        self.assertEqual(status, 1)
        for name in "aborts", "killed", "crashes", "traps", "hangs", "missing":
            self.assertRegex(text, rf"== step: {name} \([A-Z].*\) failed\n")
        self.assertIn("before the abort", text)
        self.assertIn("a name with (spaces (Failed) failed\nspaces\n", text)
        self.assertTrue(text.endswith("\n2 passed, 7 failed\n"), text)

    def test_it_counts_what_it_leaves_to_all(self):
        status, text = self.run_steps(
            ("quick", lambda suite, step: ctest.tests(suite, step, "tree", "-LE", suite_module.LEFT, "-E", "bad")))
        self.assertEqual((status, text.endswith("\n1 passed, 0 failed\n")), (0, True), text)
        self.assertEqual(suite_module.left_to_all("tree"), 1)

    def test_what_has_passed_is_not_repeated_until_the_sources_change(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(steps, "ROOT", pathlib.Path(folder)):
            root = pathlib.Path(folder)
            subprocess.run(["git", "init", "-q", folder], check=True)
            (root / "one").write_text("1")
            (steps.BUILD / "quick").mkdir()
            self.assertFalse(suite_module.quick_has_passed())

            def run(passes):
                suite = unittest.mock.Mock(steps=[unittest.mock.Mock(failed=[] if passes else ["test"], seconds={})])
                with unittest.mock.patch.object(suite_module, "repeat_edited") as repeat:
                    suite_module.quick(suite)
                self.assertEqual(repeat.called, passes)
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
        self.tree(
            'add_test(Suite "sh" "-c" "seq 2000; echo \'[  SKIPPED ] Suite.Part (0 ms)\'; seq 2000")\n')
        status, text = self.run_steps(("step", lambda suite, step: ctest.tests(suite, step, "tree")))
        self.assertEqual(status, 0)
        self.assertIn("skipped in tests that passed: Suite.Part\n", text)

    def test_a_log_shows_of_googletest_what_has_failed_and_what_had_begun(self):
        self.tree("""add_test(Suite "sh" "-c" "for i in $(seq 100); do echo \'[ RUN      ] Suite.A\'$i
[ $i != 70 ] || echo wrong
[ $i = 70 ] || echo \'[       OK ] Suite.A\'$i; done; echo \'[ RUN      ] Suite.Hangs\'; exit 1")\n""")
        _, text = self.run_steps(("step", lambda suite, step: ctest.tests(suite, step, "tree")))
        self.assertIn("FAILED Suite (Failed)\n    [ RUN      ] Suite.A70\n    wrong\n    [ RUN      ] Suite.Hangs\n", text)

    def test_what_passes_when_run_again_is_named_and_does_not_fail(self):
        self.tree('add_test(good "true")\n' + "".join(unsteady(f"flips{i}") for i in range(3)))
        status, text = self.run_steps(("step", lambda suite, step: ctest.tests(suite, step, "tree")))
        self.assertEqual(status, 0, text)
        named = r"== unsteady: failed, and passed when run again\n"
        named += "".join(rf"step: flips{i} \(Failed\): flips{i}_test\.cpp:7: Failure run 1\n" for i in range(3))
        self.assertRegex(text, named)
        self.assertRegex(text, r"== summary\nstep: 4 passed, 0 failed in \d+ s, 3 unsteady\n4 passed, 0 failed, 3 unsteady\n$")
        log = (steps.BUILD / "unsteady.log").read_text()
        self.assertIn("flips2_test.cpp:7: Failure\n  run 1\n", log)
        status, text = self.run_steps(("step", lambda suite, step: ctest.tests(suite, step, "tree")))
        self.assertEqual((status, (steps.BUILD / "unsteady.log").exists(), "unsteady" in text), (0, False, False), text)

    def test_two_tests_of_one_name_are_two_tests(self):
        (steps.BUILD / "tree/below").mkdir()
        (steps.BUILD / "tree/below/CTestTestfile.cmake").write_text('add_test(same "sh" "-c" "echo of below; exit 1")\n')
        self.tree('add_test(same "true")\nsubdirs(below)\n')
        status, text = self.run_steps(("step", lambda suite, step: ctest.tests(suite, step, "tree")))
        self.assertEqual(status, 1)
        self.assertIn("== step: same (Failed) failed\nof below\n", text)
        self.assertTrue(text.endswith("\n1 passed, 1 failed\n"), text)

    def test_a_fourth_unsteady_test_fails(self):
        self.tree("".join(unsteady(f"flips{i}") for i in range(4)))
        status, text = self.run_steps(("step", lambda suite, step: ctest.tests(suite, step, "tree")))
        self.assertEqual(status, 1)
        self.assertIn("too many tests are unsteady: 4, and 3 are tolerated\n4 passed, 0 failed, 4 unsteady\n", text)

    def test_a_second_failure_fails(self):
        self.tree(unsteady("flips") + unsteady("fails", passes_from=3))
        status, text = self.run_steps(("step", lambda suite, step: ctest.tests(suite, step, "tree")))
        self.assertEqual(status, 1)
        self.assertIn("failed: step: fails (Failed)\n1 passed, 1 failed, 1 unsteady\n", text)
        self.assertIn("== step: fails (Failed) failed\nfails_test.cpp:7: Failure\n  run 1\n", text)

    def test_where_many_fail_none_runs_again(self):
        self.tree("".join(unsteady(f"flips{i}") for i in range(ctest.AGAIN_MAX + 1)))
        status, text = self.run_steps(("step", lambda suite, step: ctest.tests(suite, step, "tree")))
        self.assertEqual((status, text.endswith(f"\n0 passed, {ctest.AGAIN_MAX + 1} failed\n")), (1, True), text)

    def test_a_repeated_test_that_fails_once_is_unsteady(self):
        self.tree('add_test(good "true")\nadd_test([==[P/a<b> (c)/0]==] "sh" "-c" "echo x >>runs; test $(wc -l <runs) -ne 3")\n')
        times = {"good": 5, "P/a<b> (c)/0": 20}
        status, text = self.run_steps(("again", lambda suite, step: ctest.repeat(suite, step, "tree", times)))
        self.assertEqual(status, 0, text)
        self.assertIn("again: P/a<b> (c)/0 (Failed): no output\n", text)
        self.assertTrue(text.endswith("\n1 passed, 0 failed, 1 unsteady\n"), text)
        self.assertEqual((steps.BUILD / "tree/runs").read_text(), "x\n" * 3)

    def test_edited_tests_run_twenty_times_and_long_ones_five(self):
        for seconds, expected in (({"short": 1, "long": 6, "other": 0}, {"short": 20, "long": 5}),
                                  ({"short": 4, "long": 600}, {"short": 2, "long": 2})):
            suite = unittest.mock.Mock()
            suite.step = lambda name, run: run(None)
            with unittest.mock.patch.multiple(suite_module.changes, base=lambda: "main",
                                              edited_tests=lambda *_: ["short", "long", "of a layer that did not run"]), \
                    unittest.mock.patch.object(ctest, "repeat") as repeat:
                suite_module.repeat_edited(suite, seconds)
            self.assertEqual(repeat.call_args[0][3], expected)

    def test_the_ten_slowest_are_named(self):
        self.tree("".join(f'add_test(t{i} "true")\n' for i in range(11)) + 'add_test(slow "sleep" "0.5")\n')
        status, text = self.run_steps(("step", lambda suite, step: ctest.tests(suite, step, "tree")))
        self.assertEqual(status, 0)
        self.assertRegex(text, r"== the 10 slowest tests\n +0\.\d s  step: slow\n(?: .*\n){9}== summary\n")

    def test_the_message_is_the_line_that_says_why(self):
        for output, message in (
                ("[ RUN ]\na_test.cpp:3: Failure\nExpected: x\n  Actual: y\nmore", "a_test.cpp:3: Failure Expected: x"),
                ("Traceback\n  File x\nAssertionError: 0 not greater than 0\nRan 3 tests", "AssertionError: 0 not greater than 0"),
                ("x\n==5==ERROR: AddressSanitizer: heap-use-after-free on 0x1\ny", "ERROR: AddressSanitizer: heap-use-after-free on 0x1"),
                ("one\nthe last line\n\n", "the last line"), ("", "no output")):
            self.assertEqual(steps.message_of(output), message)

    def test_off_a_terminal_there_is_a_line_each_minute(self):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), unittest.mock.patch.object(steps.time, "monotonic", side_effect=range(0, 1000, 25)):
            progress = steps.Progress()
            for i in range(7):
                progress.show(f"{i}")
        self.assertEqual(output.getvalue(), "2\n5\n", "every third, because a clock that is read moves by 25 s")

    def test_a_tree_that_was_not_configured_leaves_nothing_to_all(self):
        self.assertIsNone(suite_module.left_to_all("nowhere"))

    def test_a_note_of_a_tool_stands_in_the_summary(self):
        status, text = self.run_steps(("tool", lambda suite, step: suite.tool(step, "-c", "print('note: a remark')")))
        self.assertEqual(status, 0)
        self.assertRegex(text, r"== summary\ntool: 1 passed, 0 failed in \d+ s, a remark\n")

    def test_a_run_without_tests_is_a_failure(self):
        status, text = self.run_steps(("none", lambda suite, step: ctest.tests(suite, step, "tree", "-R", "nothing")))
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
