#!/usr/bin/env python3
"""Mutation testing: applies plausible slips to a copy of the sources, one at a time, and expects a test to fail.

    mutate.py                  all mutants of .ci/mutants
    mutate.py NAME...          the named ones; shell patterns are allowed: 'http-*'
    mutate.py --layer LAYER    those of one layer
    mutate.py --turn           a few, by turns, for about 90 seconds: what `./dev test all` runs
    mutate.py --list           prints names and promises, and checks that every patch applies
    mutate.py --times N ...    a mutant counts as killed only if the test that killed it fails N times of N
    mutate.py --table          brings the table of docs/internals/mutants.md up to date with the results of the last runs

A mutant is a patch with a head:

    # why: the promise that it breaks, in one sentence
    # layer: sched
    # target: sched_tests
    # tests: RulesTest.*             for a test program: a gtest filter; for other targets: a ctest regex
    # equivalent: the reason         only if no test can notice the change

The copy and its build tree are build/mutate; the user's tree is only read. The copy is brought up to date at each
start, which also reverts the mutant of an interrupted run. The tests first pass on the unmodified copy. A mutant is
killed if a test fails, or does not end in time. Exit status: 0 if every mutant is killed or explained, 1 if one
survived, does not compile, or is called equivalent and was killed, 2 for everything else: a stale patch, a failed
build, tests that fail without a mutant.
"""

import argparse
import collections
import dataclasses
import fcntl
import fnmatch
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import suite

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATCHES = ROOT / ".ci/mutants"
# The copy lies as deep above its build tree as the sources above build/apart, and is compiled with the same options: so
# ccache, which dev prepares, provides what that build has compiled. A mutant is one source, and no unity batch.
COPY = ROOT / "build/mutate"
WORK = COPY / "build"
TREE = WORK / "apart"
RESULTS = WORK / "results.json"
PAGE = ROOT / "docs/internals/mutants.md"

LAYERS = ["sched", "sync", "time", "netpoll", "http", "framework"]
TURN_SECONDS = 90
# A test has this long, whatever the machine does meanwhile; a mutant that hangs costs as much.
TEST_SECONDS_MIN = 30
BASELINE_SECONDS = 300
TIMES_BASELINE = 5


class Stop(Exception):
    """The run cannot go on; the text says why."""


class Broken(Exception):
    """This mutant is a defect, and the run goes on; the text says why."""


@dataclasses.dataclass
class Mutant:
    name: str
    why: str
    layer: str
    target: str
    tests: str
    equivalent: str
    hunks: list  # of (file, old text, new text)

    @property
    def key(self):
        return (self.target, self.tests)

    @property
    def parts(self):
        """The patterns of a gtest filter; one for a ctest regex."""
        return self.tests.split(":") if self.target.endswith("_tests") else [self.tests]


def read_mutant(path):
    head, hunks, file, old, new = {}, [], None, [], []
    for line in [*path.read_text().splitlines(), "@@ end"]:
        if match := re.match(r"# (why|layer|target|tests|equivalent): (.+)", line):
            head[match[1]] = match[2].strip()
        elif line.startswith("+++ "):
            file = line[4:].split("\t")[0].removeprefix("b/")
        elif line.startswith("@@"):
            if old or new:
                hunks.append((hunk_file, "\n".join(old) + "\n", "\n".join(new) + "\n"))
            hunk_file, old, new = file, [], []
        elif line.startswith("---") or file is None or line.startswith(("diff ", "index ", "\\")):
            continue
        else:
            if not line.startswith("+"):
                old.append(line[1:])
            if not line.startswith("-"):
                new.append(line[1:])
    if missing := [key for key in ("why", "layer", "target", "tests") if key not in head]:
        raise Stop(f"{path.name}: no `# {missing[0]}:`")
    if head["layer"] not in LAYERS:
        raise Stop(f"{path.name}: layer {head['layer']}; layers: {', '.join(LAYERS)}")
    if not hunks:
        raise Stop(f"{path.name}: no change")
    return Mutant(path.stem, head["why"], head["layer"], head["target"], head["tests"],
                  head.get("equivalent", ""), hunks)


def mutated(mutant, root):
    """The changed files as {file: new text}. The old lines must occur exactly once."""
    texts = {}
    for file, old, new in mutant.hunks:
        path = root / file
        if not path.is_file():
            raise Stop(f"{mutant.name}: stale: there is no file {file}")
        text = texts.get(file) or path.read_text()
        found = ("\n" + text).count("\n" + old)
        if found != 1:
            raise Stop(f"{mutant.name}: stale: its lines occur {found} times in {file}")
        texts[file] = ("\n" + text).replace("\n" + old, "\n" + new)[1:]
    return texts


def write_if_changed(path, content):
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def update_copy():
    """Makes the copy equal to the tree. Files with equal content keep their times, so that little is rebuilt."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\0")
    names = {name for name in listed if name and (ROOT / name).is_file()}
    for name in names:
        write_if_changed(COPY / name, (ROOT / name).read_bytes())
        os.chmod(COPY / name, (ROOT / name).stat().st_mode)
    for top, folders, files in os.walk(COPY):
        if pathlib.Path(top) == COPY:
            folders[:] = [folder for folder in folders if folder != "build"]
        for path in (pathlib.Path(top) / file for file in files):
            if path.relative_to(COPY).as_posix() not in names:
                path.unlink()


def configure():
    suite.use_ccache()
    options = ["-DTUZA_BENCHMARKS=OFF", "-DTUZA_EXAMPLES=OFF", "-DTUZA_INSTALL=OFF", "-DTUZA_TEST_AARCH64=OFF"]
    for linker in ("lld", "gold"):  # linking is a large part of a mutant's time
        if shutil.which(f"ld.{linker}"):
            options.append(f"-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld={linker}")
            break
    done = subprocess.run(["cmake", "--preset", "apart", *options], cwd=COPY, capture_output=True, text=True)
    if done.returncode != 0:
        raise Stop(f"cmake failed:\n{done.stdout}{done.stderr}")


def build(target, output):
    """Builds the CMake targets; returns whether that succeeded, and what was printed."""
    command = ["cmake", "--build", TREE, "--target", *target.split()]
    if output == "shown":
        return subprocess.run(command).returncode == 0, ""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode == 0, done.stdout


def program_of(target):
    """The test program, if the target is one: its tests are chosen by a gtest filter."""
    if not target.endswith(("_tests", "_bars")):
        return None
    found = [path for path in TREE.rglob(target) if path.is_file() and os.access(path, os.X_OK)]
    if len(found) != 1:
        raise Stop(f"target {target} made {len(found)} programs of that name")
    return found[0]


def check_pattern(target, pattern):
    """A pattern of a gtest filter selects a test; ctest itself refuses a regex that selects none."""
    if program := program_of(target):
        listed = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={pattern}"], capture_output=True)
        if not listed.stdout.strip():
            raise Stop(f"no test of {target} matches {pattern}")


@dataclasses.dataclass
class Outcome:
    passed: bool
    hung: bool
    seconds: float
    output: str


def no_core_files():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_tests(target, tests, limit):
    program = program_of(target)
    if program:
        command = [program, f"--gtest_filter={tests}", "--gtest_fail_fast", "--gtest_color=no"]
    else:
        command = ["ctest", "--test-dir", TREE, "-R", tests, "--no-tests=error", "--output-on-failure",
                   "--stop-on-failure"]
    began = time.monotonic()
    log = WORK / "tests.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                   start_new_session=True, preexec_fn=no_core_files, cwd=TREE)
        hung = False
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            hung, status = True, 1
        finally:
            end_session(process)
    return Outcome(status == 0, hung, time.monotonic() - began, log.read_text(errors="replace"))


def end_session(process):
    """Ends what the tests have left behind, too: it is all in their own session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def killer(output):
    """The test that failed, or the one that was running at the end."""
    for pattern in (r"^\[  FAILED  \] ([\w/.]+)", r"^(?:\d+: )?(?:FAIL|ERROR): (\w+)",
                    r"^\s*\d+/\d+ Test\s+#\d+: (\S+) \.*\s*\*\*\*"):
        if match := re.search(pattern, output, re.MULTILINE):
            return match[1]
    if running := re.findall(r"^\[ RUN      \] ([\w/.]+)", output, re.MULTILINE):
        return running[-1]
    if started := re.findall(r"^\s*Start\s+\d+: (\S+)", output, re.MULTILINE):
        return started[-1]
    return "the program's start"


def prove_unmodified(mutants):
    """The tests pass without a mutant. Returns how long each choice of tests takes."""
    targets = sorted({target for mutant in mutants for target in mutant.target.split()})
    print(f"building {', '.join(targets)} of the copy", flush=True)
    good, _ = build(" ".join(targets), "shown")
    if not good:
        raise Stop("the unmodified copy does not build")
    parts = {}  # a pattern of several filters runs once
    for target, tests in dict.fromkeys((mutant.target, part) for mutant in mutants for part in mutant.parts):
        check_pattern(target, tests)
        outcome = run_tests(target, tests, BASELINE_SECONDS)
        if not outcome.passed:
            name = killer(outcome.output)
            raise Stop(f"{target}: {name} fails without a mutant:\n{outcome.output[-3000:]}")
        parts[target, tests] = outcome.seconds
    print(f"the unmodified copy passes: {len(parts)} choices of tests, {sum(parts.values()):.0f} s", flush=True)
    return {mutant.key: sum(parts[mutant.target, part] for part in mutant.parts) for mutant in mutants}


def fails_again(mutant, killed_by, limit, times):
    tests = killed_by if program_of(mutant.target) and "." in killed_by else mutant.tests
    return all(not run_tests(mutant.target, tests, limit).passed for _ in range(times))


def prove_limit(mutant, limit):
    """Tests that did not end have killed a mutant only if they end without it, on a machine that is as busy."""
    good, _ = build(mutant.target, "kept")
    if not good or not run_tests(*mutant.key, limit).passed:
        raise Stop(f"{mutant.name}: its tests do not end within {limit:.0f} s without it either: the machine is too busy")


def try_mutant(mutant, baseline, times):
    """Returns (killed, text)."""
    texts = mutated(mutant, COPY)
    originals = {file: (COPY / file).read_bytes() for file in texts}
    try:
        for file, text in texts.items():
            (COPY / file).write_text(text)
        good, output = build(mutant.target, "kept")
        if not good:
            raise Broken(f"{mutant.name}: does not compile (warnings are errors):\n{output[-2000:]}")
        limit = max(TEST_SECONDS_MIN, TIMES_BASELINE * baseline)
        outcome = run_tests(*mutant.key, limit)
        killed_by = "" if outcome.passed else killer(outcome.output)
        survived = outcome.passed or not fails_again(mutant, killed_by, limit, times - 1)
    finally:
        for file, content in originals.items():
            (COPY / file).write_bytes(content)
    if outcome.hung and not survived:
        prove_limit(mutant, limit)
    if survived:
        return False, f"{killed_by} fails, but not each time" if killed_by else ""
    return True, killed_by + (f" (did not end within {limit:.0f} s)" if outcome.hung else "")


def keep_result(mutant, killed, text):
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    results[mutant.name] = text if killed else None
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True))


def lock_copy():
    """Two runs at once would change each other's copy. The lock lasts as long as the process."""
    WORK.mkdir(parents=True, exist_ok=True)
    lock = os.open(WORK / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Stop(f"another run uses {COPY.relative_to(ROOT)}") from None


def run_all(mutants, budget, times):
    """Returns what is wrong: survivors without an explanation, killed ones with one, mutants that do not compile."""
    lock_copy()
    update_copy()
    configure()
    seconds = prove_unmodified(mutants)
    began, bad, counts = time.monotonic(), [], collections.Counter()
    for number, mutant in enumerate(mutants, 1):
        if budget is not None and time.monotonic() - began > budget:
            print(f"time is up; the other {len(mutants) - number + 1} have their turn in a later run")
            break
        before = time.monotonic()
        try:
            killed, text = try_mutant(mutant, seconds[mutant.key], times)
        except Broken as broken:
            counts["broken"] += 1
            bad.append(str(broken))
            print(f"[{number}/{len(mutants)}] {mutant.name}: DOES NOT COMPILE", flush=True)
            continue
        keep_result(mutant, killed, text)
        if killed:
            verdict = f"killed by {text}"
            if mutant.equivalent:
                bad.append(f"{mutant.name}: called equivalent, but killed by {text}")
        elif mutant.equivalent:
            verdict = f"equivalent: {mutant.equivalent}"
        else:
            verdict = f"SURVIVED: {text}" if text else "SURVIVED"
            bad.append(f"{mutant.name}: survived {text or mutant.tests}. {mutant.why}")
        counts[verdict.split()[0].rstrip(":")] += 1
        print(f"[{number}/{len(mutants)}] {mutant.name}: {verdict}  ({time.monotonic() - before:.0f} s)", flush=True)
        if budget is not None:
            (WORK / "turn").write_text(mutant.name)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())) + f" of {len(mutants)}")
    return bad


def in_turn(mutants):
    """The layer whose turn it is, beginning behind the mutant of the last turn; in a fresh tree, by the day.

    One layer, because a fresh tree must build its tests."""
    last = WORK / "turn"
    names = [mutant.name for mutant in mutants]
    if last.is_file() and last.read_text() in names:
        at = (names.index(last.read_text()) + 1) % len(mutants)
    else:
        at = int(time.time() // 86400) * 7 % len(mutants)
    rotated = mutants[at:] + mutants[:at]
    return [mutant for mutant in rotated if mutant.target == rotated[0].target][:8]


def table_row(mutant, results, ends):
    """`ends`: the last cells of the rows that stand in the page; they count for mutants without a result here."""
    def cell(text):
        return text.replace("|", "\\|").replace("<", "&lt;")
    end = ends.get(mutant.name)
    if mutant.equivalent:
        end = cell(f"equivalent: {mutant.equivalent}")
    elif mutant.name in results:
        end = results[mutant.name] and cell(f"`{results[mutant.name]}`")
    if not end:
        raise Stop(f"{mutant.name}: no run has killed it, so the table cannot be written")
    return f"| `{mutant.name}` | {cell(mutant.why)} | {end} |"


def write_table(mutants):
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    text = PAGE.read_text()
    begin, end = "<!-- table -->\n", "<!-- end of table -->"
    head, rest = text.split(begin)
    table, rest = rest.split(end)
    ends = dict(re.findall(r"^\| `([^`]+)` \| .* \| ([^|]*(?:\\\|[^|]*)*) \|$", table, re.MULTILINE))
    rows = ["| mutant | promise that it breaks | killed by |", "| --- | --- | --- |",
            *(table_row(mutant, results, ends) for mutant in mutants)]
    PAGE.write_text(head + begin + "\n".join(rows) + "\n" + end + rest)


def select(mutants, args):
    chosen = [mutant for mutant in mutants if args.layer in (None, mutant.layer)]
    if args.names:
        for name in args.names:
            if not fnmatch.filter([mutant.name for mutant in mutants], name):
                raise Stop(f"no mutant {name}; --list prints them")
        chosen = [m for m in chosen if any(fnmatch.fnmatch(m.name, name) for name in args.names)]
    return in_turn(chosen) if args.turn else chosen


def main():
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants, or shell patterns of their names; all")
    parser.add_argument("--layer", choices=LAYERS, help="only the mutants of this layer")
    parser.add_argument("--times", type=int, default=1, metavar="N", help="the killing test must fail N times of N")
    parser.add_argument("--turn", action="store_true", help=f"a few by turns, for about {TURN_SECONDS} s")
    parser.add_argument("--list", action="store_true", help="print the mutants, and check that all patches apply")
    parser.add_argument("--table", action="store_true", help="write the table of docs/internals/mutants.md")
    args = parser.parse_args()
    mutants = sorted((read_mutant(path) for path in PATCHES.glob("*.patch")),
                     key=lambda mutant: (LAYERS.index(mutant.layer), mutant.target, mutant.name))
    for mutant in mutants:
        mutated(mutant, ROOT)
    if args.table:
        write_table(mutants)
        return 0
    chosen = select(mutants, args)
    if args.list:
        for mutant in chosen:
            print(f"{mutant.name:40} {'(equivalent) ' if mutant.equivalent else ''}{mutant.why}")
        print(f"{len(chosen)} mutants")
        return 0
    bad = run_all(chosen, TURN_SECONDS if args.turn else None, args.times)
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Stop as stop:
        print(f"mutate: {stop}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
