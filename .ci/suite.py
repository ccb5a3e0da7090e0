#!/usr/bin/env python3
"""What `./dev test` runs: suite.py [quick | all | long | models | aarch64 | port | changed [COMMIT] | PRESET [LAYER]]

    quick   check, and the tests of the release suite that need no large packages, built in unity batches (preset `quick`);
            then, if nothing has failed, many times the tests that the work tree adds or edits
    all     everything: what `quick` runs and leaves out, and a step for each preset and for each tool
    long    the hog matrix, a minute for each kind of hog, natively and under the sanitizers; Clang's analyzer
    models  the Spin models of sched and netpoll
    aarch64 sched, compiled for aarch64 and run under an emulator
    port    what is portable, compiled for macOS and FreeBSD (.ci/port.py)
    changed ASan and TSan for the layers that differ from main, or from COMMIT
    PRESET  builds one preset and runs its tests; with a LAYER, only what that layer's tests need

On a terminal one line shows the progress, elsewhere a line each minute. A test that fails runs once more, alone, after
the others: if it passes then, the summary names it as unsteady; four such tests are a failure. The output of what failed
comes at the end, before a line for each step and the total. Logs are in build/, what unsteady tests printed is in
build/unsteady.log. Exit status 0 if nothing failed, otherwise 1.
"""

import os
import re
import shutil
import subprocess
import sys

import changes
import ctest
import steps

LEFT = "^all$"  # the label of tests that `quick` leaves to `all`
REPEATS, REPEATS_IF_LONG, LONG_S = 20, 5, 5
REPEATED_S_MAX = 120  # in all, of one core; more edited tests are repeated less often


def preset(suite, step, name, *selection, env=None):
    if configure(suite, step, name) and suite.build(step, name):
        ctest.tests(suite, step, name, *selection, env=env)


def configure(suite, step, name):
    benchmarks = "ON" if name == "release" else "OFF"
    return suite.configure(step, name, "-DTUZA_TESTS=ON", f"-DTUZA_BENCHMARKS={benchmarks}")


def one_layer(suite, step, name, layer):
    folder = changes.LAYERS[layer]
    if configure(suite, step, name) and suite.build(step, name, f"{folder}/all"):
        ctest.tests(suite, step, f"{name}/{folder}", "-LE", LEFT)
        note_what_is_left(step, f"{name}/{folder}")


def note_what_is_left(step, folder):
    if left := left_to_all(folder):
        step.notes.append(f"{left} left to `./dev test all`")


def left_to_all(folder):
    """How many tests of a build tree wait for `all`; None if it has not been configured."""
    listed = subprocess.run(["ctest", "--test-dir", steps.BUILD / folder, "-N", "-L", LEFT], capture_output=True, text=True)
    count = re.search(r"Total Tests: (\d+)", listed.stdout)
    return int(count[1]) if count else None


def check(suite, step, name):
    if configure(suite, step, name) and suite.build(step, name, "header_checks"):
        suite.tool(step, ".ci/check.py")


def hogs(suite, step, name):
    if not (suite.configure(step, name, "-DTUZA_TESTS=ON") and suite.build(step, name, "sched_tests")):
        return
    command = [steps.BUILD / name / "sched/sched_tests", "--gtest_filter=*HogMatrix*"]
    if name == "tsan":  # ThreadSanitizer needs a fixed address layout
        command = ["setarch", "-R", *command]
    env = {"TUZA_HOG_SECONDS": os.environ.get("TUZA_HOG_SECONDS", "60")}
    if suite.command(step, "the hog matrix", command, env):
        step.passed += 1


def use_ccache():
    if shutil.which("ccache") is None:
        return
    for language in "C", "CXX":
        os.environ.setdefault(f"CMAKE_{language}_COMPILER_LAUNCHER", "ccache")
    # Without these two, neither the mutants' copy nor another clone finds what was compiled here; -ffile-prefix-map (in
    # CMakeLists.txt) removes the path from the objects.
    os.environ.setdefault("CCACHE_BASEDIR", str(steps.ROOT))
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")
    # Without this, ccache does not cache sources with a precompiled header.
    os.environ.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros,include_file_mtime,include_file_ctime")


def quick(suite):
    """check, and the release suite. Leaves a note of the sources that have passed."""
    before = changes.digest()
    passed_file().unlink(missing_ok=True)
    suite.step("check", lambda step: check(suite, step, "quick"))

    def release(step):
        preset(suite, step, "quick", "-LE", LEFT)
        note_what_is_left(step, "quick")
    suite.step("release suite", release)
    if any(step.failed for step in suite.steps):
        return  # whatever the repetitions show, the change is not good
    repeat_edited(suite, suite.steps[-1].seconds)
    if before is not None and not any(step.failed for step in suite.steps):
        passed_file().write_text(before)


def repeat_edited(suite, seconds):
    """Runs the tests that the work tree adds or edits many times. `seconds` has those that have run, with their times."""
    since = changes.base()
    edited = [test for test in changes.edited_tests(steps.BUILD / "quick", since) if test in seconds] if since else []
    if not edited:
        return
    times = {test: REPEATS if seconds[test] <= LONG_S else REPEATS_IF_LONG for test in edited}
    less = REPEATED_S_MAX / max(REPEATED_S_MAX, sum(seconds[test] * often for test, often in times.items()))
    times = {test: max(2, int(often * less)) for test, often in times.items()}
    suite.step("edited tests, repeated", lambda step: ctest.repeat(suite, step, "quick", times))


def passed_file():
    return steps.BUILD / "quick/passed"


def quick_has_passed():
    return passed_file().exists() and passed_file().read_text() == changes.digest()


def everything(suite):
    env = {"TUZA_HOG_SECONDS": os.environ.get("TUZA_HOG_SECONDS", "2")}
    if quick_has_passed():
        suite.progress.say("== check and the release suite have passed with these sources, and are not repeated")
    else:
        quick(suite)

    def apart(step):
        """What `quick` does not build: the layers and internal headers without unity batches, which hide a missing
        include, the benchmarks and their headers, and the tests of templates at -O2."""
        if (suite.configure(step, "apart", "-DTUZA_TESTS=ON", "-DTUZA_BENCHMARKS=ON")
                and suite.build(step, "apart", "tuza_framework", "bench_sched", "bench_sync",
                                "header_checks", "bench_header_checks", "sync_tests", "time_tests")):
            ctest.tests(suite, step, "apart", "-L", "^(sync|time)_tests$")
    suite.step("apart", apart)
    suite.step("release, the large tests", lambda step: preset(suite, step, "quick", "-L", LEFT))
    suite.step("release, longer hogs", lambda step: preset(suite, step, "quick", "-R", "HogMatrix|P/LaneTest", env=env))

    def clang(step):
        """What the chaos build, which is Clang's too, leaves out: the layers above http."""
        if (suite.configure(step, "clang", "-DTUZA_TESTS=ON")
                and suite.build(step, "clang", "framework/all", "examples/all", "loadtests/all")):
            ctest.tests(suite, step, "clang", "-L", "^(app|examples|framework_tests)$", "-LE", LEFT)
            ctest.tests(suite, step, "clang", "-R", "^mistakes$")  # in words of its own
    suite.step("clang", clang)

    def portable(step):
        """What has a form for Linux alone, on its other form, the poller's other back end too, and all that stands on it."""
        if configure(suite, step, "portable") and suite.build(
                step, "portable", "sched/all", "netpoll/all", "http/all", "framework/all", "examples/all"):
            ctest.tests(suite, step, "portable", "-L",
                        "^((sched|checkpoints|sync|time|netpoll|kqueue|tls|http|framework)_tests|app|examples)$", "-LE", LEFT)
    suite.step("portable", portable)
    suite.step("port", lambda step: suite.tool(step, ".ci/port.py"))
    suite.step("clang-tidy", lambda step: suite.tool(step, ".ci/tidy.py"))
    for name in "asan", "tsan", "chaos":
        suite.step(name, lambda step, name=name: preset(suite, step, name))
    suite.step("fuzz", lambda step: suite.tool(step, ".ci/fuzz.py", "--all", "--seconds", "5"))
    suite.step("mutants", lambda step: suite.tool(step, ".ci/mutate.py", "--turn"))


def changed(suite, commit):
    since = changes.base(commit)
    if since is None:
        print(f"suite.py: no commit {commit or 'main'} to compare with", file=sys.stderr)
        return 2
    layers = [layer for layer in changes.layers(changes.files(since)) if layer not in ("examples", "loadtests")]
    if not layers:
        print(f"no layer that the sanitizers test differs from {commit or 'main'} ({since[:9]})")
        return 0
    for name in "asan", "tsan":
        for layer in layers:
            suite.step(f"{name}, {layer}", lambda step, name=name, layer=layer: one_layer(suite, step, name, layer))
    return suite.end()


def without_a_build(suite, name, *selection):
    """Tests that build what they need by themselves."""
    def run(step):
        if configure(suite, step, "quick"):
            ctest.tests(suite, step, "quick", *selection)
    suite.step(name, run)


def main(words):
    what, *rest = words or ["quick"]
    use_ccache()
    suite = steps.Suite()
    steps.BUILD.mkdir(exist_ok=True)
    if what == "changed":
        return changed(suite, *rest[:1] or [None])
    if rest:
        suite.step(f"{what}, {rest[0]}", lambda step: one_layer(suite, step, what, rest[0]))
    elif what == "quick":
        quick(suite)
    elif what == "all":
        everything(suite)
    elif what == "long":
        for name in "release", "asan", "tsan":
            suite.step(f"hogs, {name}", lambda step, name=name: hogs(suite, step, name))
        suite.step("clang-tidy, deep", lambda step: suite.tool(step, ".ci/tidy.py", "--deep"))
    elif what == "models":
        without_a_build(suite, what, "-L", "^models$")
    elif what == "aarch64":
        without_a_build(suite, what, "-R", r"^aarch64\.")
    elif what == "port":
        suite.step(what, lambda step: suite.tool(step, ".ci/port.py"))
    else:
        suite.step(what, lambda step: preset(suite, step, what))
    return suite.end()


def run(words):
    try:
        sys.exit(main(words))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run(sys.argv[1:])
