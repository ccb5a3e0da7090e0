#!/usr/bin/env python3
"""What `./dev test` runs: suite.py [quick | all | long | PRESET]

    quick   check, and the tests of the release suite that need no large packages, built in unity batches (preset `quick`)
    all     everything: what `quick` runs and leaves out, and a step for each preset and for each tool
    long    the hog matrix, a minute for each kind of hog, natively and under the sanitizers; Clang's analyzer
    PRESET  builds one preset and runs its tests

On a terminal one line shows the progress, elsewhere a line every 10 seconds. The output of what failed comes at the
end, before a line for each step and the total. Logs are in build/. Exit status 0 if nothing failed, otherwise 1.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
JOBS = len(os.sched_getaffinity(0))
LINE_EVERY_S = 10
FAILURE_LINES_MAX = 200
FAILURE_LINES_AT_ONCE = 40
OUTPUT_BYTES_MAX = 10_000_000  # of a test that has passed
LEFT = "^all$"  # the label of tests that `quick` leaves to `all`
BUILD_STEP = re.compile(r"\[\d+/\d+\] ")
CTEST_START = re.compile(r" +Start +\d+: ")
SKIPPED_PART = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)$", re.MULTILINE)
# For example "Passed", "***Timeout", "***Exception: SegFault", "Subprocess aborted***Exception:".
TEST_RESULT = re.compile(r"\s*\d+/(\d+) Test +#\d+: (.+?) \.+ *(Passed|[^.*]*\*\*\*.*?) +[\d.]+ sec")


class Progress:
    """The line that changes while something runs."""

    def __init__(self):
        self.on_terminal = sys.stdout.isatty()
        self.printed = time.monotonic()

    def show(self, text):
        if self.on_terminal:
            width = shutil.get_terminal_size().columns
            print(f"\r\x1b[K{text[:width - 1]}", end="", flush=True)
        elif time.monotonic() - self.printed >= LINE_EVERY_S:
            self.say(text)

    def say(self, text):
        print(("\r\x1b[K" if self.on_terminal else "") + text, flush=True)
        self.printed = time.monotonic()


class Step:
    """One line of the summary: what passed and failed, and the output of what failed."""

    def __init__(self, name):
        self.name = name
        self.passed = self.failed = 0
        self.notes = []
        self.failures = []
        self.start = time.monotonic()

    def fail(self, what, output):
        self.failed += 1
        lines = output.rstrip().split("\n")
        cut = len(lines) - FAILURE_LINES_MAX
        if cut > 0:
            lines = [f"... {cut} lines more, see the log in build/", *lines[cut:]]
        self.failures.append("\n".join([f"== {self.name}: {what} failed", *lines]))

    def end(self):
        seconds = time.monotonic() - self.start
        notes = "".join(f", {note}" for note in self.notes)
        self.line = f"{self.name}: {self.passed} passed, {self.failed} failed in {seconds:.0f} s{notes}"
        return self.line


def lines_of(command, log, env=None):
    """Yields the lines of a command's output, which goes to the file `log`, too; then its exit status."""
    with open(log, "w") as file, subprocess.Popen(
            [str(word) for word in command], cwd=ROOT, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        for line in process.stdout:
            file.write(line)
            yield line
        yield process.wait()


class Suite:
    def __init__(self):
        self.progress = Progress()
        self.steps = []

    def step(self, name, run):
        step = Step(name)
        self.steps.append(step)
        self.progress.say(f"== {name}")
        run(step)
        self.progress.say(step.end())

    def command(self, step, what, command, env=None):
        """A command that is one test. True if it passed."""
        output = []
        for line in lines_of(command, BUILD / f"{step.name}.log", env):
            if isinstance(line, int):
                if line != 0:
                    step.fail(what, "".join(output) + f"exit status {line}")
                    return False
                return True
            output.append(line)
            self.progress.show(f"{step.name}: {line.rstrip()}")

    def configure(self, step, preset, *options):
        return self.command(step, "configuration", ["cmake", "--preset", preset, *options])

    def build(self, step, preset, *targets):
        command = ["cmake", "--build", BUILD / preset, "--parallel", JOBS]
        if targets:
            command += ["--target", *targets]
        errors = []
        for line in lines_of(command, BUILD / f"{preset}.build.log"):
            if isinstance(line, int):
                if line != 0:
                    step.fail("build", "".join(errors))
                return line == 0
            if BUILD_STEP.match(line):
                self.progress.show(f"{step.name}: {line.rstrip()}")
            else:
                errors.append(line)

    def tests(self, step, preset, *selection, env=None):
        results = BUILD / f"{preset}.results.xml"
        results.unlink(missing_ok=True)
        # One job more than there are cores, because many tests wait.
        command = ["ctest", "--test-dir", BUILD / preset, "--no-tests=error", "--parallel", JOBS + 1,
                   "--output-on-failure", "--test-output-size-passed", OUTPUT_BYTES_MAX, "--output-junit", results,
                   *selection]
        failed, skipped, last, done, total, at_once = [], 0, "", 0, 0, 0
        log = re.sub(r"\W+", "-", step.name)
        for line in lines_of(command, BUILD / f"{log}.ctest.log", env):
            if isinstance(line, int):
                status = line
                break
            last = line
            if not (result := TEST_RESULT.match(line)):
                # A log shows why at once, too: the run may be ended before its summary.
                if CTEST_START.match(line):
                    at_once = 0
                if at_once > 0 and line.strip() and not self.progress.on_terminal:
                    print(f"    {line.rstrip()}", flush=True)
                    at_once -= 1
                continue
            at_once = 0
            total, name, outcome = result.groups()
            if outcome == "Passed":
                step.passed += 1
            elif outcome == "***Skipped":
                skipped += 1
            else:
                failed.append(f"{name} ({outcome.replace('***', ' ').strip(' :')})")
                self.progress.say(f"{step.name}: FAILED {failed[-1]}")
                at_once = FAILURE_LINES_AT_ONCE
            done = step.passed + skipped + len(failed)
            self.progress.show(f"{step.name}: {done} of {total} tests, {len(failed)} failed")
        if skipped:
            step.notes.append(f"{skipped} skipped")
        outputs = {}
        if results.exists():
            for case in xml.etree.ElementTree.parse(results).iter("testcase"):
                outputs[case.get("name")] = case.findtext("system-out") or ""
            # Of googletest, for which the suite has passed.
            if parts := sorted({name for text in outputs.values() for name in SKIPPED_PART.findall(text)}):
                step.notes.append(f"skipped in tests that passed: {' '.join(parts)}")
        for test in failed:
            step.fail(test, outputs.get(test.rpartition(" (")[0], ""))
        if status != 0 and not failed:
            step.fail("ctest", last)
        if done != int(total):
            step.fail("ctest", f"{total} tests, but {done} results")

    def preset(self, step, preset, *selection, env=None):
        benchmarks = "ON" if preset == "release" else "OFF"
        if (self.configure(step, preset, "-DTUZA_TESTS=ON", f"-DTUZA_BENCHMARKS={benchmarks}")
                and self.build(step, preset)):
            self.tests(step, preset, *selection, env=env)

    def check(self, step, preset):
        benchmarks = "ON" if preset == "release" else "OFF"
        if (self.configure(step, preset, "-DTUZA_TESTS=ON", f"-DTUZA_BENCHMARKS={benchmarks}")
                and self.build(step, preset, "header_checks")
                and self.command(step, "check.py", [sys.executable, ".ci/check.py"])):
            step.passed += 1

    def tool(self, step, *command):
        """A line of its output that begins with "note: " stands in the summary, too."""
        if self.command(step, command[0], [sys.executable, *command]):
            step.passed += 1
        log = (BUILD / f"{step.name}.log").read_text(errors="replace")
        step.notes += re.findall(r"^note: (.*)$", log, re.MULTILINE)

    def hogs(self, step, preset):
        if not (self.configure(step, preset, "-DTUZA_TESTS=ON") and self.build(step, preset, "sched_tests")):
            return
        command = [BUILD / preset / "sched/sched_tests", "--gtest_filter=*HogMatrix*"]
        if preset == "tsan":  # ThreadSanitizer needs a fixed address layout
            command = ["setarch", "-R", *command]
        env = {"TUZA_HOG_SECONDS": os.environ.get("TUZA_HOG_SECONDS", "60")}
        if self.command(step, "the hog matrix", command, env):
            step.passed += 1

    def end(self):
        """Prints what failed and the summary; returns the exit status."""
        for step in self.steps:
            for failure in step.failures:
                print(failure)
        print("== summary")
        for step in self.steps:
            print(step.line)
        passed = sum(step.passed for step in self.steps)
        failed = sum(step.failed for step in self.steps)
        print(f"{passed} passed, {failed} failed", flush=True)
        return 1 if failed else 0


def left_to_all(preset):
    listed = subprocess.run(["ctest", "--test-dir", BUILD / preset, "-N", "-L", LEFT], capture_output=True, text=True)
    count = re.search(r"Total Tests: (\d+)", listed.stdout)
    return count and count[1]


def use_ccache():
    if shutil.which("ccache") is None:
        return
    for language in "C", "CXX":
        os.environ.setdefault(f"CMAKE_{language}_COMPILER_LAUNCHER", "ccache")
    # Without these two, neither the mutants' copy nor another clone finds what was compiled here.
    os.environ.setdefault("CCACHE_BASEDIR", str(ROOT))
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")
    # Without this, ccache does not cache sources with a precompiled header.
    os.environ.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros,include_file_mtime,include_file_ctime")


def sources():
    """A digest of everything that Git would commit; None if this is not a repository."""
    listed = subprocess.run(["git", "ls-files", "-cozs", "--exclude-standard"], cwd=ROOT, capture_output=True)
    if listed.returncode != 0:
        return None
    digest = hashlib.sha256()
    for entry in sorted(set(listed.stdout.split(b"\0"))):
        name = entry.partition(b"\t")[2] or entry
        path = ROOT / os.fsdecode(name)
        digest.update(entry + (path.read_bytes() if path.is_file() else b"") + b"\0")
    return digest.hexdigest()


def quick(suite):
    """check, and the release suite. Leaves a note of the sources that have passed."""
    before = sources()
    passed_file().unlink(missing_ok=True)
    suite.step("check", lambda step: suite.check(step, "quick"))

    def tests(step):
        suite.preset(step, "quick", "-LE", LEFT)
        if (left := left_to_all("quick")) is not None:
            step.notes.append(f"{left} left to `./dev test all`")
    suite.step("release suite", tests)
    if before is not None and not any(step.failed for step in suite.steps):
        passed_file().write_text(before)


def passed_file():
    return BUILD / "quick/passed"


def quick_has_passed():
    return passed_file().exists() and passed_file().read_text() == sources()


def everything(suite):
    env = {"TUZA_HOG_SECONDS": os.environ.get("TUZA_HOG_SECONDS", "2")}
    if quick_has_passed():
        suite.progress.say("== check and the release suite have passed with these sources, and are not repeated")
    else:
        quick(suite)

    def release(step):
        """What `quick` does not build: the layers without unity batches, which hide a missing include, the benchmarks
        and their headers, and the tests of templates at -O2."""
        if (suite.configure(step, "release", "-DTUZA_TESTS=ON", "-DTUZA_BENCHMARKS=ON")
                and suite.build(step, "release", "tuza_framework", "bench_sched", "bench_sync",
                                "bench_header_checks", "sync_tests", "time_tests")):
            suite.tests(step, "release", "-L", "^(sync|time)_tests$")
    suite.step("release", release)
    suite.step("release, the large tests", lambda step: suite.preset(step, "quick", "-L", LEFT))
    suite.step("release, longer hogs", lambda step: suite.preset(step, "quick", "-R", "HogMatrix", env=env))

    def clang(step):
        """What the chaos build, which is Clang's too, leaves out: the layers above http."""
        if (suite.configure(step, "clang", "-DTUZA_TESTS=ON")
                and suite.build(step, "clang", "framework/all", "examples/all", "loadtests/all")):
            suite.tests(step, "clang", "-L", "^(app|examples|framework_tests)$", "-LE", LEFT)
    suite.step("clang", clang)
    suite.step("clang-tidy", lambda step: suite.tool(step, ".ci/tidy.py"))
    for preset in "asan", "tsan", "chaos":
        suite.step(preset, lambda step, preset=preset: suite.preset(step, preset))
    suite.step("fuzz", lambda step: suite.tool(step, ".ci/fuzz.py", "--all", "--seconds", "5"))
    suite.step("mutants", lambda step: suite.tool(step, ".ci/mutate.py", "--turn"))


def main(words):
    what = words[0] if words else "quick"
    use_ccache()
    suite = Suite()
    BUILD.mkdir(exist_ok=True)
    if what == "quick":
        quick(suite)
    elif what == "all":
        everything(suite)
    elif what == "long":
        for preset in "release", "asan", "tsan":
            suite.step(f"hogs, {preset}", lambda step, preset=preset: suite.hogs(step, preset))
        suite.step("clang-tidy, deep", lambda step: suite.tool(step, ".ci/tidy.py", "--deep"))
    else:
        suite.step(what, lambda step: suite.preset(step, what))
    return suite.end()


def run(words):
    try:
        sys.exit(main(words))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run(sys.argv[1:])
