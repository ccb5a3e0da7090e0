#!/usr/bin/env python3
"""repository_test.py: the files that hosting platforms and editors read are well-formed and fit the tree."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]


def git(*words, cwd=ROOT):
    return subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True, text=True).stdout


class Workflow(unittest.TestCase):
    def setUp(self):
        self.text = (ROOT / ".github/workflows/ci.yml").read_text()
        self.job = yaml.safe_load(self.text)["jobs"]["test"]

    def test_it_runs_on_both_processors(self):
        runners = self.job["strategy"]["matrix"]["runner"]
        self.assertEqual([runner.endswith("-arm") for runner in runners], [False, True])
        self.assertEqual(self.job["runs-on"], "${{ matrix.runner }}")

    def test_it_runs_what_contributors_run(self):
        commands = [step["run"] for step in self.job["steps"] if step.get("run", "").startswith("./dev")]
        self.assertEqual(commands, ["./dev test", "./dev test all"])

    def test_its_systems_are_those_of_the_readme(self):
        tested = re.search(r"Tested on Debian (\d+) and (\d+)", (ROOT / "README.md").read_text()).groups()
        self.assertEqual(self.job["strategy"]["matrix"]["image"], [f"debian:{release}" for release in tested])

    def test_actions_are_pinned_to_a_version(self):
        for action in [step["uses"] for step in self.job["steps"] if "uses" in step]:
            self.assertRegex(action, r"^[\w-]+/[\w-]+@v\d+$")


class IssueForms(unittest.TestCase):
    def test_every_field_is_one_that_the_platform_knows(self):
        forms = sorted(set((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")) - {ROOT / ".github/ISSUE_TEMPLATE/config.yml"})
        self.assertEqual([form.name for form in forms], ["bug.yml", "feature.yml"])
        for form in forms:
            found = yaml.safe_load(form.read_text())
            self.assertLessEqual({"name", "description", "body"}, set(found))
            for field in found["body"]:
                self.assertIn(field["type"], {"markdown", "textarea", "input", "dropdown", "checkboxes"})
                self.assertIn("value" if field["type"] == "markdown" else "label", field["attributes"])
            ids = [field["id"] for field in found["body"] if field["type"] != "markdown"]
            self.assertEqual(len(ids), len(set(ids)))


class Blame(unittest.TestCase):
    def test_the_commits_to_be_ignored_exist(self):
        lines = (ROOT / ".git-blame-ignore-revs").read_text().splitlines()
        commits = [line for line in lines if not line.startswith("#")]
        for commit in commits:
            self.assertRegex(commit, r"^[0-9a-f]{40}$")
        if git("rev-parse", "--is-shallow-repository").strip() == "false":
            for commit in commits:
                git("merge-base", "--is-ancestor", commit, "HEAD")


class Mutants(unittest.TestCase):
    def test_the_table_has_a_row_for_each_patch(self):
        rows = re.findall(r"^\| `([\w-]+)` \| ", (ROOT / "docs/internals/mutants.md").read_text(), re.M)
        self.assertEqual(sorted(rows), sorted(path.stem for path in (ROOT / ".ci/mutants").glob("*.patch")))
        self.assertGreaterEqual(len(rows), 60)


class LeftOut(unittest.TestCase):
    def test_what_the_emulator_leaves_out_is_still_called_so(self):
        text = (ROOT / "sched/arch/aarch64-tests.cmake").read_text()
        names = re.search(r"^set\(left_out ([^)]*)\)", text, re.M)[1].split()
        self.assertGreater(len(names), 1)
        tests = "".join(path.read_text() for path in (ROOT / "sched/tests").glob("*.cpp"))
        for name in names:
            self.assertRegex(tests, rf"TEST\w*\(\w+, \w*{name}")


class Changelog(unittest.TestCase):
    def test_it_names_the_version_that_is_built(self):
        text = (ROOT / "CHANGELOG.md").read_text()
        version = re.search(r"^project\(tuza VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
        self.assertIn(version, text)
        self.assertRegex(re.findall(r"^## (.*)$", text, re.M)[0], r"^(Unreleased|\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d)$")
        self.assertLessEqual(set(re.findall(r"^### (.*)$", text, re.M)),
                             {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"})


class Editors(unittest.TestCase):
    def test_clangd_reads_the_commands_of_a_preset(self):
        flags = yaml.safe_load((ROOT / ".clangd").read_text())["CompileFlags"]
        folder = pathlib.PurePath(flags["CompilationDatabase"])
        self.assertEqual(folder.parent, pathlib.PurePath("build"))
        self.assertIn(f'"name": "{folder.name}"', (ROOT / "CMakePresets.json").read_text())

    def test_the_tree_obeys_editorconfig(self):
        """Ends of lines and files, and indentation; a section later in the file overrides an earlier one."""
        sections = []
        for line in (ROOT / ".editorconfig").read_text().splitlines():
            if line.startswith("["):
                sections.append((line[1:-1], {}))
            elif sections and " = " in line:
                sections[-1][1].update([line.split(" = ")])
        for name in git("ls-files").splitlines():
            if "/fuzz/corpus/" in name:  # bytes as a target takes them, not text
                continue
            rules = {}
            for pattern, values in sections:
                if self.covers(pattern, name):
                    rules |= values
            content = (ROOT / name).read_bytes()
            self.assertTrue(content.endswith(b"\n") or not content, f"{name}: no newline at its end")
            self.assertNotIn(b"\r", content, name)
            if rules["trim_trailing_whitespace"] == "true":
                self.assertIsNone(re.search(rb"[ \t]$", content, re.M), f"{name}: space at the end of a line")
            if rules["indent_style"] == "space":
                self.assertIsNone(re.search(rb"^\t", content, re.M), f"{name}: a tab")

    def covers(self, pattern, name):
        if "/" in pattern:
            return pattern == name
        alternatives = re.sub(r"\\\{(.*)\\\}", lambda m: f"({m[1].replace(',', '|')})", re.escape(pattern))
        return re.fullmatch(alternatives.replace(r"\*", ".*"), pathlib.PurePath(name).name) is not None


class CommitRule(unittest.TestCase):
    """`check.py commits` in a small clone."""

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)
        for name in (".ci/check.py", ".ci/changes.py", ".ci/portability.py", ".ci/steps.py", "framework/cmake/public_folders.txt"):
            (self.scratch / "up" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.scratch / "up" / name)
        self.git("init", "-q", "-b", "main", at="up")
        self.git("add", ".", at="up")
        self.commit("An old commit, with a subject that is longer than the rule allows, and that has no body", at="up")
        git("clone", "-q", "up", "clone", cwd=self.scratch)

    def git(self, *words, at="clone"):
        who = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
        return git(*who, *words, cwd=self.scratch / at)

    def commit(self, message, at="clone"):
        self.git("commit", "-q", "--allow-empty", "-m", message, at=at)

    def check(self):
        return subprocess.run(["python3", ".ci/check.py", "commits"], cwd=self.scratch / "clone", check=False,
                              capture_output=True, text=True)

    def test_the_history_before_the_branch_is_left_alone(self):
        self.assertEqual(self.check().returncode, 0)

    def test_a_subject_of_72_characters_with_a_body_is_accepted(self):
        self.commit("s" * 72 + "\n\nWhy.")
        self.assertEqual((self.check().returncode, self.check().stderr), (0, ""))

    def test_a_longer_subject_is_refused(self):
        self.commit("s" * 73 + "\n\nWhy.")
        self.assertIn("73 characters", self.check().stdout)
        self.assertEqual(self.check().returncode, 1)

    def test_a_commit_without_a_body_is_refused(self):
        self.commit("What, but not why")
        self.assertIn("body that says why", self.check().stdout)
        self.assertEqual(self.check().returncode, 1)


if __name__ == "__main__":
    unittest.main()
