#!/usr/bin/env python3
"""clang-tidy over what users compile: the libraries, the examples, the load tests' programs. Every finding is an error.

    tidy.py [WORD...]    only units with one of the words in their path
    --deep               follow the paths through every function (clang-analyzer-*): ten times as long
    --build DIR          the build tree whose compile commands are used (build/clang; configured if it does not exist)

.clang-tidy has the list of checks, with the reason for each that is switched off. The unity batches of the preset
`clang` are the units, so that a header is parsed once for twelve sources. Clang's analyzer leaves out the functions of
included files, and so of a batch: `./dev test all` does without it, `./dev test long` has --deep. Exit status 1 if
there are findings.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

import steps

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "build/clang"
TIDY = "clang-tidy-19"
CHECKS = ROOT / ".clang-tidy"
# Tests misuse things on purpose, a header's check has no code of its own, and code on pages is as short as can be.
NOT_CHECKED = re.compile(r"/(tests|bench|fuzz|docs)/|header_checks|test_headers|_tested\.dir/")
FINDING = re.compile(r"^(\S+?:\d+:\d+): (?:error|warning): (.*)$")


def configured(tree):
    if not (tree / "compile_commands.json").exists():
        command = ["cmake", "--preset", "clang", "-B", str(tree)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"tidy: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return tree / "compile_commands.json"


def units(database, words):
    """The sources to check, the largest first."""
    found = set()
    for entry in json.loads(database.read_text()):
        path = pathlib.Path(entry["directory"], entry["file"])
        names = [str(path), *sources(path)]
        if (path.suffix in (".cpp", ".cxx") and not any(map(NOT_CHECKED.search, names))
                and (not words or any(word in name for word in words for name in names))):
            found.add(path)
    return sorted(found, key=lambda path: (-sum(map(os.path.getsize, [path, *sources(path)])), path))


def sources(path):
    """The sources of a unity batch."""
    return re.findall(r'^#include "(.*)"', path.read_text(), re.MULTILINE) if path.name.startswith("unity_") else []


def findings(tree, unit, deep):
    """Findings of one unit, by place, and clang-tidy's output if it failed without any."""
    command = [TIDY, f"--config-file={CHECKS}", "-p", tree, "--quiet", unit]
    if deep:
        command += ["--extra-arg=-Xclang", "--extra-arg=-analyzer-opt-analyze-headers"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found, place = {}, None
    for line in done.stdout.split("\n"):
        if match := FINDING.match(line):
            place = tuple(match.groups())
            found[place] = []
        if place:
            found[place].append(line)
    if done.returncode != 0 and not found:
        found[(str(unit), "")] = [f"{TIDY} failed for {unit}", done.stdout, done.stderr]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=TREE, metavar="DIR")
    options = parser.parse_args()
    chosen = units(configured(options.build), options.words)
    if not chosen:
        sys.exit("tidy: nothing to check: no unit has one of the words in its path")
    progress, found = steps.Progress(), {}
    with concurrent.futures.ThreadPoolExecutor(steps.JOBS) as pool:
        for count, result in enumerate(pool.map(lambda unit: findings(options.build, unit, options.deep), chosen), 1):
            for place in result.keys() - found.keys():  # at once: a whole run takes minutes
                progress.say("\n".join(result[place]).rstrip())
            found |= result
            progress.show(f"[{count}/{len(chosen)}] units, {len(found)} findings")
    progress.say(f"tidy: {len(chosen)} units, {len(found)} findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
