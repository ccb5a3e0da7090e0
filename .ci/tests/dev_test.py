#!/usr/bin/env python3
"""dev_test.py: what ./dev says where it cannot install, and what it does not install.

./dev runs in a copy of the tree's first files, with a PATH that has only fakes of the package tools, so nothing is
installed and nothing is built.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = ["awk", "bash", "basename", "cat", "dirname", "echo", "env", "grep", "head", "mkdir", "nproc", "readlink", "sed", "sort", "tee", "tr",
            "xargs"]
# The lines are those of apt 2.6 without a network.
FETCH_FAILED = "E: Failed to fetch http://example/g++.deb  Temporary failure resolving 'example'"


class Dev(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        self.bin = pathlib.Path(folder.name) / "bin"
        self.calls = pathlib.Path(folder.name) / "calls"
        self.calls.touch()
        self.bin.mkdir()
        for part in "dev", ".ci", "loadtests", "examples":
            where = self.root / part
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, where)
            else:
                where.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / part, where)
        for command in COMMANDS:
            (self.bin / command).symlink_to(shutil.which(command))
        (self.bin / "python3").symlink_to(sys.executable)
        self.fake("dpkg-query", "exit 1")  # nothing is installed
        self.fake("apt-cache", "exit 100")  # apt's lists are empty
        self.fake("cmake", "exit 0")
        self.fake("id", "echo 1000")
        self.release = pathlib.Path(folder.name) / "os-release"

    def fake(self, name, script):
        file = self.bin / name
        file.write_text(f'#!/bin/bash\necho "{name} $*" >>"{self.calls}"\n{script}\n')
        file.chmod(0o755)

    def dev(self, *words, version="13"):
        self.release.write_text(f'ID=debian\nVERSION_ID="{version}"\n')
        done = subprocess.run([self.root / "dev", *words], capture_output=True, text=True,
                              env={"PATH": str(self.bin), "LC_ALL": "C", "OS_RELEASE": str(self.release)})
        return done.returncode, done.stdout + done.stderr

    def assert_untouched(self):
        self.assertNotRegex(self.calls.read_text(), "(?m)^(apt-get|sudo|cmake)")
        self.assertFalse((self.root / "build").exists())

    def test_a_word_too_many_is_refused_before_anything_begins(self):
        for words in (["check", "sched"], ["docs", "x"], ["fmt", "x"], ["setup", "x"], ["build", "release", "x"]):
            status, text = self.dev(*words)
            self.assertEqual(status, 2, text)
            self.assertRegex(text, rf"^dev: '{words[0]}' takes .* but got '{words[-1]}'")
        self.assert_untouched()

    def test_without_root_and_sudo_it_names_packages_that_exist(self):
        for version, llhttp in ("12", "node-llhttp"), ("13", "libllhttp-dev"):
            status, text = self.dev("run", version=version)
            self.assertEqual(status, 1)
            command = text.rstrip().split("\n")[-1]
            self.assertRegex(command, r"As root: apt-get install .*\bcmake\b")
            self.assertIn(f" {llhttp}", command)
            self.assertNotIn(" llhttp", command)
        self.assert_untouched()

    def test_the_lists_of_apt_decide_the_name_where_there_are_any(self):
        self.fake("apt-cache", '[[ "$2" == node-llhttp ]]')
        self.assertIn(" node-llhttp", self.dev("run", version="13")[1])

    def test_without_a_network_the_last_line_is_ours(self):
        self.fake("id", "echo 0")
        self.fake("apt-get", f'case "$*" in *install*) for i in {{1..100}}; do echo "{FETCH_FAILED}" >&2; done; exit 100;; esac')
        status, text = self.dev("run")
        self.assertEqual(status, 1)
        lines = text.rstrip().split("\n")
        self.assertRegex(lines[-1], "^dev: apt-get could not install the packages: is there a network?")
        self.assertIn("As root: apt-get install ", lines[-1])
        self.assertLess(len(lines), 10)
        self.assertIn(FETCH_FAILED, (self.root / "build/packages.log").read_text())

    def test_it_says_how_much_it_installs(self):
        self.fake("id", "echo 0")
        self.fake("apt-get", 'case "$*" in *assume-no*) echo "0 upgraded, 126 newly installed, 0 to remove."; '
                  'echo "Need to get 160 MB/170 MB of archives."; '
                  'echo "After this operation, 650 MB of additional disk space will be used."; exit 1;; esac')
        self.assertIn("dev: 126 packages, 160 MB to download, 650 MB on disk: about 2 minutes\n", self.dev("run", "hello")[1])

    def test_help_installs_and_builds_nothing(self):
        for words in ["load", "--help"], ["load", "stall", "--help"], ["docker", "--help"], ["fuzz", "--help"], ["mutate", "-h"], ["test", "--help"], \
                ["bench", "--help"], ["build", "-h"], ["run", "--help"], ["setup", "--help"], ["check", "-h"]:
            with self.subTest(words):
                status, text = self.dev(*words)
                self.assertEqual(status, 0, text)
                self.assertIn("usage: " if words[0] in ("load", "docker", "fuzz", "mutate") else "./dev run [example]", text)
                self.assert_untouched()

    def test_a_run_of_one_kind_installs_what_that_kind_needs(self):
        self.fake("id", "echo 0")
        self.fake("apt-get", "exit 100")
        for words, needed, not_needed in (
                (["test"], "ccache", "spin"), (["test", "quick", "http"], "ccache", "gdb"), (["test", "models"], "spin", "gdb"),
                (["test", "aarch64"], "qemu-user-static", "spin"), (["test", "clang", "sched"], "clang-19", "chromium"),
                (["test", "all"], "spin", "wrk"), (["test", "changed"], "ccache", "spin")):
            with self.subTest(words):
                text = self.dev(*words)[1]
                self.assertRegex(text, rf"(?m)^dev: installing .*(?<= ){needed}\b")
                self.assertNotRegex(text, rf"(?m)^dev: installing .* {not_needed}\b")

    def test_an_unknown_name_says_which_exist(self):
        for words, known in (["run", "nonsense"], "hello"), (["bench", "nonsense"], "sched, sync"), \
                (["build", "nonsense"], "release quick debug asan tsan chaos"), (["load", "nonsense"], "stall"), \
                (["test", "nonsense"], "release quick debug asan tsan chaos"), \
                (["test", "asan", "nonsense"], "sched sync time netpoll http"), (["test", "models", "nonsense"], "nothing more"), (["nonsense"], "./dev run [example]"):
            with self.subTest(words):
                status, text = self.dev(*words)
                self.assertEqual(status, 2, text)
                self.assertIn("nonsense", text)
                self.assertIn(known, text)
                self.assert_untouched()


if __name__ == "__main__":
    unittest.main()
