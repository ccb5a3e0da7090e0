#!/usr/bin/env python3
"""Builds and runs the fuzz targets: see docs/internals/fuzzing.md.

    fuzz.py NAME [SECONDS]       run one target (60 s)
    fuzz.py --all [--seconds N]  run each for N seconds (5), two at a time
    fuzz.py --list               name the targets
    fuzz.py --coverage           print the table of lines that the kept corpora reach, as Markdown

    --seed N       of libFuzzer's decisions, so that a failed run can be repeated; otherwise it changes from day to day

Each run begins with the kept corpus, LAYER/fuzz/corpus/NAME, and with what earlier runs found, build/fuzz/corpus/NAME.
An input that breaks a promise is stored in build/fuzz/failures. Exit status 1 if there is one.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import steps

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/fuzz"
COVERAGE = ROOT / "build/fuzz-coverage"
INPUT_BYTES_MAX = 1024
RSS_MB_MAX = 2048
INPUT_SECONDS_MAX = 10  # an input that takes longer is a failure: something spins or waits
OUTPUT_CHARS_MAX = 20_000
GRACE_SECONDS = 120  # for the kept corpus, and for machines that do other work
RUNTIME_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
if SYMBOLIZER := shutil.which("llvm-symbolizer-19"):
    RUNTIME_OPTIONS["ASAN_SYMBOLIZER_PATH"] = SYMBOLIZER


def targets():
    """Source files of the targets, by name."""
    found = sorted(ROOT.glob("*/fuzz/*_fuzz.cpp"))
    return {path.name.removesuffix("_fuzz.cpp"): path for path in found}


PROGRESS = steps.Progress()
say = PROGRESS.say


def build(names, tree=BUILD, options=()):
    say(f"fuzz: building {', '.join(names)} with Clang, into {tree.relative_to(ROOT)}")
    tree.mkdir(parents=True, exist_ok=True)
    log = tree / "build.log"
    for command in (["cmake", "--preset", "fuzz", "-B", tree, *options],
                    ["cmake", "--build", tree, "--target", *(f"fuzz_{name}" for name in names)]):
        output = []
        for line in steps.lines_of(command, log):
            if isinstance(line, int):
                if line != 0:
                    say("".join(output)[-OUTPUT_CHARS_MAX:])
                    sys.exit(f"fuzz: the build failed: {' '.join(map(str, command))}; log: {log}")
            elif steps.BUILD_STEP.match(line):
                PROGRESS.show(f"fuzz: {line.rstrip()}")
            else:
                output.append(line)


def program(name, tree=BUILD):
    return tree / targets()[name].relative_to(ROOT).parts[0] / f"fuzz_{name}"


def kept(name):
    return targets()[name].parent / "corpus" / name


def command_of(name, seconds, seed):
    found, failures = BUILD / "corpus" / name, BUILD / "failures"
    found.mkdir(parents=True, exist_ok=True)
    failures.mkdir(parents=True, exist_ok=True)
    command = [str(program(name)), f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={INPUT_BYTES_MAX}",
               f"-rss_limit_mb={RSS_MB_MAX}", f"-timeout={INPUT_SECONDS_MAX}", "-print_final_stats=1",
               f"-artifact_prefix={failures}/{name}-"]
    dictionary = targets()[name].with_name(f"{name}.dict")
    if dictionary.exists():
        command.append(f"-dict={dictionary}")
    return [*command, str(found), str(kept(name))]


def run(name, seconds, seed, show):
    """Runs a target; returns (whether all promises held, a line about it, its output)."""
    lines = []
    shown = re.compile(r"#\d+\s+(INITED|NEW|pulse|REDUCE|RELOAD|DONE)")
    with subprocess.Popen(command_of(name, seconds, seed), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env=os.environ | RUNTIME_OPTIONS) as process:
        with concurrent.futures.ThreadPoolExecutor(1) as watch:
            # libFuzzer ends by itself; this is for a target that hangs so that its alarm does not end it.
            ended = watch.submit(lambda: wait(process, seconds + GRACE_SECONDS))
            for line in process.stdout:
                lines.append(line)
                if show and shown.match(line):
                    PROGRESS.show(f"{name}: {line.rstrip()}")
            on_time = ended.result()
    text = "".join(lines)
    stat = {key: value for key, value in re.findall(r"stat::(\w+):\s+(\d+)", text)}
    coverage = re.findall(r"cov: (\d+)", text)
    good = process.returncode == 0 and on_time
    # On a slow machine the time may be over when the corpus has been read.
    tried = re.search(r"#(\d+)\s+DONE", text), re.search(r"#(\d+)\s+INITED", text)
    explored = all(tried) and int(tried[0][1]) > int(tried[1][1])
    line = (f"{name}: {stat.get('number_of_executed_units', '?')} inputs, {stat.get('average_exec_per_sec', '?')} "
            f"per second, coverage {coverage[-1] if coverage else '?'}, seed {seed}: {'good' if good else 'FAILED'}")
    if good and not explored:
        line += f"\nnote: {name} has tried nothing besides its corpus"
    return good, line, text


def wait(process, seconds):
    try:
        process.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        process.kill()
        return False


def report_failure(name, seed, seconds, text):
    say(text[-OUTPUT_CHARS_MAX:])
    artifact = re.findall(r"Test unit written to (\S+)", text)
    say(f"fuzz: {name} FAILED; seed {seed}")
    if artifact:
        say(f"fuzz: the input is stored in {artifact[-1]}")
        say(f"fuzz: to repeat it: {program(name).relative_to(ROOT)} {artifact[-1]}")
    else:
        say(f"fuzz: to repeat the run: .ci/fuzz.py {name} {seconds} --seed {seed}")
        say("fuzz: (what earlier runs found takes part: build/fuzz/corpus)")


def run_all(names, seconds, seed):
    build(names)
    failed = []
    say(f"fuzz: {seconds} s for each target, two at a time")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = {pool.submit(run, name, seconds, seed, len(names) == 1): name for name in names}
        for done in concurrent.futures.as_completed(runs):
            good, line, text = done.result()
            say(line)
            if not good:
                failed.append((runs[done], text))
    for name, text in failed:
        report_failure(name, seed, seconds, text)
    return 1 if failed else 0


def covered_files(name):
    """The sources that a target is about: a comment line "// Covers: FILE..." in the target names them."""
    text = targets()[name].read_text()
    return re.findall(r"[\w/.]+\.(?:cpp|h)", re.search(r"^// Covers: (.*(?:\n//   .*)*)", text, re.MULTILINE)[1])


def lines_of(name, folders):
    """(covered, all) lines and regions of the files that the target is about, after running the folders."""
    raw, data = COVERAGE / f"{name}.profraw", COVERAGE / f"{name}.profdata"
    inputs = [str(path) for folder in folders if folder.exists() for path in sorted(folder.iterdir())]
    subprocess.run([str(program(name, COVERAGE)), *inputs], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=os.environ | {"LLVM_PROFILE_FILE": str(raw)})
    subprocess.run(["llvm-profdata-19", "merge", "-sparse", str(raw), "-o", str(data)], check=True)
    files = [str(ROOT / file) for file in covered_files(name)]
    exported = subprocess.run(["llvm-cov-19", "export", "-summary-only", f"-instr-profile={data}",
                               str(program(name, COVERAGE)), *files], check=True, capture_output=True, text=True).stdout
    totals = json.loads(exported)["data"][0]["totals"]
    return [f"{totals[kind]['covered']} of {totals[kind]['count']}" for kind in ("lines", "regions")]


def coverage(names):
    options = ["-DTUZA_SANITIZE=", "-DCMAKE_CXX_FLAGS=-fprofile-instr-generate -fcoverage-mapping"]
    build(names, COVERAGE, options)
    say("| target | files | lines, kept corpus | regions, kept corpus | lines, after runs | regions, after runs |")
    say("| --- | --- | --- | --- | --- | --- |")
    for name in names:
        cells = lines_of(name, [kept(name)]) + lines_of(name, [kept(name), BUILD / "corpus" / name])
        files = ", ".join(f"`{file}`" for file in covered_files(name))
        say(f"| `{name}` | {files} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?")
    parser.add_argument("seconds_of_one", nargs="?", type=int, default=60, metavar="seconds")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=datetime.date.today().toordinal())
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--coverage", action="store_true")
    options = parser.parse_args()
    names = list(targets())
    if options.list:
        return say("\n".join(names))
    if options.coverage:
        return coverage(names)
    if options.all:
        return run_all(names, options.seconds, options.seed)
    if min(options.seconds, options.seconds_of_one) < 1:
        sys.exit("fuzz: expected at least one second")
    if options.name not in names:
        sys.exit(f"fuzz: no target '{options.name or ''}'; targets: {', '.join(names)}")
    return run_all([options.name], options.seconds_of_one, options.seed)


if __name__ == "__main__":
    sys.exit(main())
