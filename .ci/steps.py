"""The steps of a run of suite.py: what each counts, the line that shows progress, and the summary at the end."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
JOBS = len(os.sched_getaffinity(0))
LINE_EVERY_S = 60  # where the output is no terminal
FAILURE_LINES_MAX = 200
SLOWEST = 10
UNSTEADY_MAX = 3
BUILD_STEP = re.compile(r"\[\d+/\d+\] ")
# What says in one line why a test failed: googletest (the place, and below it what differs), Python, a sanitizer.
MESSAGES = [re.compile(r"^(\S+:\d+: Failure\n.+)", re.MULTILINE), re.compile(r"^(\w*(?:Error|Exception)\b.*)", re.MULTILINE),
            re.compile(r"((?:ERROR|WARNING): \w+Sanitizer.*)")]


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


class Unsteady(typing.NamedTuple):
    """A test that failed, and passed when it ran again."""
    step: str
    test: str
    outcome: str
    output: str


class Step:
    """One line of the summary: what passed and failed, and the output of what failed."""

    def __init__(self, name):
        self.name = name
        self.passed = 0
        self.notes = []
        self.failed = []  # names
        self.failures = []  # their output
        self.unsteady = []
        self.seconds = {}  # of each test
        self.start = time.monotonic()

    def fail(self, what, output):
        self.failed.append(what)
        lines = output.rstrip().split("\n")
        cut = len(lines) - FAILURE_LINES_MAX
        if cut > 0:
            lines = [f"... {cut} lines more, see the log in build/", *lines[cut:]]
        self.failures.append("\n".join([f"== {self.name}: {what} failed", *lines]))

    def end(self):
        seconds = time.monotonic() - self.start
        notes = "".join(f", {note}" for note in self.notes)
        self.line = f"{self.name}: {self.passed} passed, {len(self.failed)} failed in {seconds:.0f} s{notes}"
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


def message_of(output):
    """The line of a failed test's output that says most; its last one if none is known to say why."""
    for pattern in MESSAGES:
        if found := pattern.search(output):
            return " ".join(found[1].split())
    return output.rstrip().rpartition("\n")[2].strip() or "no output"


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
        for line in lines_of(command, BUILD / f"{log_name(step)}.log", env):
            if isinstance(line, int):
                if line != 0:
                    step.fail(what, "".join(output) + f"exit status {line}")
                    return False
                return True
            output.append(line)
            self.progress.show(f"{step.name}: {line.rstrip()}")

    def tool(self, step, *command):
        """A line of its output that begins with "note: " stands in the summary, too."""
        if self.command(step, command[0], [sys.executable, *command]):
            step.passed += 1
        log = (BUILD / f"{log_name(step)}.log").read_text(errors="replace")
        step.notes += re.findall(r"^note: (.*)$", log, re.MULTILINE)

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

    def end(self):
        """Prints the slowest tests, what is unsteady, what failed, and the summary; returns the exit status."""
        self.print_slowest()
        unsteady = self.print_unsteady()
        for step in self.steps:
            for failure in step.failures:
                print(failure)
        print("== summary")
        for step in self.steps:
            print(step.line)
        for step in self.steps:
            for test in step.failed:
                print(f"failed: {step.name}: {test}")
        passed = sum(step.passed for step in self.steps)
        failed = sum(len(step.failed) for step in self.steps)
        if unsteady > UNSTEADY_MAX:
            print(f"too many tests are unsteady: {unsteady}, and {UNSTEADY_MAX} are tolerated")
        print(f"{passed} passed, {failed} failed" + (f", {unsteady} unsteady" if unsteady else ""), flush=True)
        return 1 if failed or unsteady > UNSTEADY_MAX else 0

    def print_slowest(self):
        times = [(seconds, step.name, test) for step in self.steps for test, seconds in step.seconds.items()]
        if len(times) > SLOWEST:
            print(f"== the {SLOWEST} slowest tests")
            for seconds, step, test in sorted(times, reverse=True)[:SLOWEST]:
                print(f"{seconds:6.1f} s  {step}: {test}")

    def print_unsteady(self):
        """Returns how many tests are unsteady, and writes what they printed when they failed."""
        log = BUILD / "unsteady.log"
        unsteady = sorted(test for step in self.steps for test in step.unsteady)
        if not unsteady:
            log.unlink(missing_ok=True)
            return 0
        print("== unsteady: failed, and passed when run again")
        with open(log, "w") as file:
            for test in unsteady:
                line = f"{test.step}: {test.test} ({test.outcome}): {message_of(test.output)}"
                print(line)
                file.write(f"{line}\n{test.output.rstrip()}\n\n")
        print(f"what they printed: {log.relative_to(BUILD.parent)}")
        return len({(test.step, test.test) for test in unsteady})


def log_name(step):
    return re.sub(r"\W+", "-", step.name)
