"""Runs tests with ctest for a step of suite.py: counts them, and runs those that fail once more."""

import re
import typing
import xml.etree.ElementTree

import steps

FAILURE_LINES_AT_ONCE = 40
OUTPUT_BYTES_MAX = 10_000_000  # of a test that has passed
AGAIN_MAX = 10  # if more fail, a second run does not tell anything new
START = re.compile(r" +Start +\d+: |\d+% tests passed")
SKIPPED_PART = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)$", re.MULTILINE)
# For example "Passed", "***Timeout", "***Exception: SegFault", "Subprocess aborted***Exception:". All but the last result of
# a test that is repeated come without a number.
RESULT = re.compile(r"\s*(?:\d+/(\d+) )?Test +#\d+: (.+?) \.+ *(Passed|[^.*]*\*\*\*.*?) +[\d.]+ sec")


class Run(typing.NamedTuple):
    status: int
    total: int
    outcomes: dict  # of each test: "Passed", "***Skipped", "***Failed", ...
    outputs: dict
    seconds: dict
    last: str  # line of ctest's output


def tests(suite, step, folder, *selection, env=None):
    """Runs the tests of a folder below build/. Those that fail run once more, alone, after the others: a test that
    passes then is unsteady and does not fail the step."""
    # One job more than there are cores, because many tests wait.
    run = call(suite, step, folder, ["--parallel", steps.JOBS + 1, *selection], env)
    step.seconds = run.seconds
    failed = {test: outcome for test, outcome in run.outcomes.items() if outcome not in ("Passed", "***Skipped")}
    if 0 < len(failed) <= AGAIN_MAX:
        suite.progress.say(f"{step.name}: what failed runs again, alone: {len(failed)} of {run.total}")
        again = call(suite, step, folder, ["--rerun-failed"], env)
        for test, outcome in list(failed.items()):
            if again.outcomes.get(test) == "Passed":
                step.unsteady.append(steps.Unsteady(step.name, test, plain(outcome), run.outputs.get(test, "")))
                del failed[test]
    for test, outcome in failed.items():
        step.fail(f"{test} ({plain(outcome)})", run.outputs.get(test, ""))
    count(step, run, failed)


def count(step, run, failed):
    skipped = sum(outcome == "***Skipped" for outcome in run.outcomes.values())
    step.passed += len(run.outcomes) - skipped - len(failed)
    if skipped:
        step.notes.append(f"{skipped} skipped")
    if step.unsteady:
        step.notes.append(f"{len(step.unsteady)} unsteady")
    # Of googletest, for which the suite has passed.
    if parts := sorted({name for text in run.outputs.values() for name in SKIPPED_PART.findall(text)}):
        step.notes.append(f"skipped in tests that passed: {' '.join(parts)}")
    if run.status != 0 and all(outcome in ("Passed", "***Skipped") for outcome in run.outcomes.values()):
        step.fail("ctest", run.last)
    if len(run.outcomes) != run.total:
        step.fail("ctest", f"{run.total} tests, but {len(run.outcomes)} results")


def call(suite, step, folder, options, env):
    results = steps.BUILD / f"{steps.log_name(step)}.results.xml"
    results.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", steps.BUILD / folder, "--no-tests=error", "--output-on-failure",
               "--test-output-size-passed", OUTPUT_BYTES_MAX, "--output-junit", results, *options]
    outcomes, last, total, at_once = {}, "", 0, 0
    for line in steps.lines_of(command, steps.BUILD / f"{steps.log_name(step)}.ctest.log", env):
        if isinstance(line, int):
            status = line
            break
        last = line
        if not (result := RESULT.match(line)):
            # A log shows why at once, too: the run may be ended before its summary.
            if START.match(line):
                at_once = 0
            if at_once > 0 and line.strip() and not suite.progress.on_terminal:
                print(f"    {line.rstrip()}", flush=True)
                at_once -= 1
            continue
        at_once = 0
        total, name = int(result[1] or total), result[2]
        outcomes[name] = result[3]
        failed = sum(outcome not in ("Passed", "***Skipped") for outcome in outcomes.values())
        if outcomes[name] not in ("Passed", "***Skipped"):
            suite.progress.say(f"{step.name}: FAILED {name} ({plain(outcomes[name])})")
            at_once = FAILURE_LINES_AT_ONCE
        suite.progress.show(f"{step.name}: {len(outcomes)} of {total} tests, {failed} failed")
    outputs, seconds = {}, {}
    if results.exists():
        for case in xml.etree.ElementTree.parse(results).iter("testcase"):
            outputs[case.get("name")] = case.findtext("system-out") or ""
            seconds[case.get("name")] = float(case.get("time") or 0)
    return Run(status, total, outcomes, outputs, seconds, last)


def repeat(suite, step, folder, times):
    """Runs tests, a dict of names and how often, again and again. What fails then has passed before: it is unsteady."""
    for count_of in sorted(set(times.values())):
        names = [re.escape(test) for test, often in times.items() if often == count_of]
        run = call(suite, step, folder, ["--parallel", steps.JOBS + 1, "--repeat", f"until-fail:{count_of}", "-R",
                                         f"^({'|'.join(names)})$"], None)
        failed = {test: outcome for test, outcome in run.outcomes.items() if outcome not in ("Passed", "***Skipped")}
        step.passed += len(run.outcomes) - len(failed)
        for test, outcome in failed.items():
            step.unsteady.append(steps.Unsteady(step.name, test, plain(outcome), run.outputs.get(test, "")))


def plain(outcome):
    return outcome.replace("***", " ").strip(" :")
