"""Runs tests with ctest for a step of suite.py: counts them, and runs those that fail once more."""

import re
import typing
import xml.etree.ElementTree

import hung
import steps

FAILURE_LINES_AT_ONCE = 40
OUTPUT_BYTES_MAX = 10_000_000  # of a test that has passed
AGAIN_MAX = 10  # if more fail, a second run does not tell anything new
START = re.compile(r" +Start +\d+: |\d+% tests passed")
# Of googletest.
BEGUN = re.compile(r"\[ RUN      \] ")
PASSED = re.compile(r"\[       OK \] ")
SKIPPED_PART = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)$", re.MULTILINE)
# For example "Passed", "***Timeout", "***Exception: SegFault", "Subprocess aborted***Exception:". All but the last result of
# a test that is repeated come without a number.
RESULT = re.compile(r"\s*(?:\d+/(\d+) )?Test +#(\d+): (.+?) \.+ *(Passed|[^.*]*\*\*\*.*?) +[\d.]+ sec")


class Test(typing.NamedTuple):
    name: str
    outcome: str  # "Passed", "***Skipped", "***Failed", ...

    @property
    def failed(self):
        return self.outcome not in ("Passed", "***Skipped")

    @property
    def plain(self):
        return self.outcome.replace("***", " ").strip(" :")


class Run(typing.NamedTuple):
    status: int
    total: int
    tests: dict  # what became of each test, by its number: names of tests in two folders may be the same
    outputs: dict  # by name
    seconds: dict
    last: str  # line of ctest's output


class FailureAtOnce:
    """A log shows why a test has failed at once, too: the run may be ended before its summary. Of googletest's output, it leaves
    out what has passed."""

    def __init__(self, progress):
        self.left, self.begun, self.shown = 0, None, not progress.on_terminal

    def begin(self):
        self.left = FAILURE_LINES_AT_ONCE if self.shown else 0

    def line(self, line):
        if BEGUN.match(line) or PASSED.match(line):
            self.begun = line if BEGUN.match(line) else None
            return
        self.show_begun()
        self.show(line)

    def end(self):
        self.show_begun()
        self.left = 0

    def show_begun(self):
        if self.begun:
            self.show(self.begun)
        self.begun = None

    def show(self, line):
        if self.left > 0:
            print(f"    {line.rstrip()}", flush=True)
            self.left -= 1


def tests(suite, step, folder, *selection, env=None):
    """Runs the tests of a folder below build/. Those that fail run once more, alone, after the others: a test that
    passes then is unsteady and does not fail the step."""
    # Two jobs more than there are cores: of their time, tests wait more than a third.
    with hung.Watch(hung_log(step)):
        run = call(suite, step, folder, ["--parallel", steps.JOBS + 2, *selection], env)
    note_hung(step, [run])
    step.seconds.update(run.seconds)
    failed = failures(run)
    if 0 < len(failed) <= AGAIN_MAX:
        suite.progress.say(f"{step.name}: what failed runs again, alone: {len(failed)} of {run.total}")
        again = call(suite, step, folder, ["--rerun-failed"], env)
        for number, test in list(failed.items()):
            if number in again.tests and again.tests[number].outcome == "Passed":
                step.unsteady.append(unsteady(step, test, run))
                del failed[number]
    for test in failed.values():
        step.fail(f"{test.name} ({test.plain})", run.outputs.get(test.name, ""))
    count(step, run, failed)


def note_hung(step, runs):
    log = hung_log(step)
    if log.exists() and any("Timeout" in test.outcome for run in runs for test in run.tests.values()):
        step.notes.append(f"the threads of what hung: {log.relative_to(steps.BUILD.parent)}")


def hung_log(step):
    return steps.BUILD / f"{steps.log_name(step)}.hung.log"


def failures(run):
    return {number: test for number, test in run.tests.items() if test.failed}


def unsteady(step, test, run):
    return steps.Unsteady(step.name, test.name, test.plain, run.outputs.get(test.name, ""))


def count(step, run, failed):
    skipped = sum(test.outcome == "***Skipped" for test in run.tests.values())
    step.passed += len(run.tests) - skipped - len(failed)
    if skipped:
        step.notes.append(f"{skipped} skipped")
    if step.unsteady:
        step.notes.append(f"{len(step.unsteady)} unsteady")
    # Of googletest, for which the suite has passed.
    if parts := sorted({name for text in run.outputs.values() for name in SKIPPED_PART.findall(text)}):
        step.notes.append(f"skipped in tests that passed: {' '.join(parts)}")
    if run.status != 0 and not failures(run):
        step.fail("ctest", run.last)
    if len(run.tests) != run.total:
        step.fail("ctest", f"{run.total} tests, but {len(run.tests)} results")


def call(suite, step, folder, options, env):
    results = steps.BUILD / f"{steps.log_name(step)}.results.xml"
    results.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", steps.BUILD / folder, "--no-tests=error", "--output-on-failure",
               "--test-output-size-passed", OUTPUT_BYTES_MAX, "--output-junit", results, *options]
    tests, last, total, failure = {}, "", 0, FailureAtOnce(suite.progress)
    for line in steps.lines_of(command, steps.BUILD / f"{steps.log_name(step)}.ctest.log", env):
        if isinstance(line, int):
            status = line
            break
        last = line
        if not (result := RESULT.match(line)):
            if START.match(line):
                failure.end()
            elif line.strip():
                failure.line(line)
            continue
        failure.end()
        total = int(result[1] or total)
        test = tests[int(result[2])] = Test(result[3], result[4])
        if test.failed:
            suite.progress.say(f"{step.name}: FAILED {test.name} ({test.plain})")
            failure.begin()
        failed = sum(one.failed for one in tests.values())
        of = f" of {total}" if total else ""  # not known until the first one has its last result
        suite.progress.show(f"{step.name}: {len(tests)}{of} tests, {failed} failed")
    failure.end()
    outputs, seconds = {}, {}
    if results.exists():
        for case in xml.etree.ElementTree.parse(results).iter("testcase"):
            name = case.get("name")
            outputs[name] = outputs.get(name, "") + (case.findtext("system-out") or "")
            seconds[name] = max(seconds.get(name, 0), float(case.get("time") or 0))
    return Run(status, total, tests, outputs, seconds, last)


def repeat(suite, step, folder, times):
    """Runs tests, a dict of names and how often, again and again. What fails then has passed before: it is unsteady."""
    runs = []
    with hung.Watch(hung_log(step)):
        for count_of in sorted(set(times.values())):
            names = [re.escape(test) for test, often in times.items() if often == count_of]
            runs.append(call(suite, step, folder, ["--parallel", steps.JOBS + 1, "--repeat", f"until-fail:{count_of}", "-R",
                                                   f"^({'|'.join(names)})$"], None))
    note_hung(step, runs)
    for run in runs:
        failed = failures(run)
        step.passed += len(run.tests) - len(failed)
        step.unsteady += [unsteady(step, test, run) for test in failed.values()]
