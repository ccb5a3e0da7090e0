#!/usr/bin/env python3
"""changes_test.py: what .ci/changes.py finds out about a work tree, in a repository of its own."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import changes  # noqa: E402
import steps  # noqa: E402

MODEL = """// Model of parking (sched/rt/idle/idle.cpp), and of locks
// (sched/sync/detail/wait.h).
//
// Left out: sched/rt/queue/timer_heap.h
"""
TESTS = """#include <gtest/gtest.h>

int helper() { return 1; }

TEST(First, Passes) {
  EXPECT_TRUE(true);
}

TEST_P(Second, Passes) {
  EXPECT_TRUE(true);
}
"""


class Changes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        root = unittest.mock.patch.object(steps, "ROOT", self.root)
        root.start()
        self.addCleanup(root.stop)

    def repository(self):
        self.git("init", "-q", "-b", "main")
        self.write("sched/model/parking.pml", MODEL)
        self.write("sched/tests/two_test.cpp", TESTS)
        self.commit()
        self.git("switch", "-q", "-c", "work")

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=self.root, check=True)

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "subject")

    def test_committed_edited_and_new_files_count(self):
        self.repository()
        self.write("one", "")
        self.commit()
        self.write("two", "")
        self.write("sched/model/parking.pml", "")
        self.assertEqual(changes.files(changes.base()), ["one", "sched/model/parking.pml", "two"])
        self.assertEqual(changes.files("HEAD"), ["sched/model/parking.pml", "two"])

    def test_what_main_has_got_meanwhile_does_not_count(self):
        self.repository()
        self.git("switch", "-q", "main")
        self.write("of main", "")
        self.commit()
        self.git("switch", "-q", "work")
        self.assertEqual(changes.files(changes.base()), [])

    def test_without_a_repository_or_such_a_commit_there_is_no_base(self):
        self.assertIsNone(changes.base())
        self.repository()
        self.assertIsNone(changes.base("nonsense"))
        self.git("branch", "-q", "-D", "main")
        self.assertIsNone(changes.base())

    def test_a_file_belongs_to_the_innermost_layer(self):
        for names, layers in ((["sched/sync/chan.h", "http/server.cpp"], ["sync", "http"]),
                              (["sched/time/timer.cpp", "sched/go.h"], ["sched"]),
                              (["netpoll/tls/a.cpp", "netpoll/conn.h", "http/README.md"], ["netpoll"]),
                              (["docs/a.md", "dev", ".ci/suite.py", "scheduler/x.h"], [])):
            self.assertEqual(changes.layers(names), layers)

    def test_the_suites_of_edited_lines(self):
        first, second, helper = ({6}, {"First"}), ({8, 10}, {"First", "Second"}), ({3}, {"First", "Second"})
        for lines, suites in first, second, helper, (None, {"First", "Second"}), ({3, 10}, {"Second"}), (set(), set()):
            self.assertEqual(changes.edited_suites(TESTS, lines), suites)

    def test_the_tests_of_a_tree_that_a_change_edits(self):
        self.repository()
        edited = TESTS.replace("TRUE(true);\n}\n\nTEST_P", "TRUE(1);\n}\n\nTEST_P")
        self.write("sched/tests/two_test.cpp", edited)
        self.write("examples/tests/new_test.py", "")
        self.write("build/CTestTestfile.cmake", f"""
add_test(First "program") \nadd_test([==[P/Second/0]==] "program")
add_test(example "python3" "{self.root}/examples/tests/new_test.py" "x")
add_test(large "python3" "{self.root}/examples/tests/new_test.py")
set_tests_properties(large PROPERTIES LABELS all)
""")
        self.assertEqual(changes.edited_tests(self.root / "build", changes.base()), ["First", "example"])
        self.commit()
        self.write("sched/tests/two_test.cpp", edited.replace("Second, Passes", "Second, Passed"))
        self.assertEqual(changes.edited_tests(self.root / "build", "HEAD"), ["P/Second/0"])

    def test_a_change_of_what_a_model_describes_is_a_reminder(self):
        self.repository()
        for name in "sched/rt/idle/idle.h", "sched/sync/detail/wait.cpp", "sched/model/parking.pml":
            self.assertEqual(list(changes.reminders([name])),
                             ["this change concerns the models parking: `./dev test models`"])
        self.write("netpoll/model/waiting.pml", "// Model of netpoll/poll/slot.cpp:\n//\n// sched/rt/not.h\n")
        self.assertEqual(list(changes.models(["netpoll/poll/slot.h", "sched/rt/not.h"])), ["waiting"])
        self.assertEqual(list(changes.reminders(["sched/rt/queue/timer_heap.h", "http/server.cpp"])), [])
        self.assertEqual(list(changes.reminders(["sched/arch/context.cpp"])), ["this change concerns sched/arch: `./dev test aarch64`"])


if __name__ == "__main__":
    unittest.main()
