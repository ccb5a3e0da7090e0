#!/usr/bin/env python3
"""clang-tidy over what users compile: the libraries, the examples, the load tests' programs. Every finding is an error.

    tidy.py [WORD...]    only units with one of the words in their path
    --deep               follow the paths through every function (clang-analyzer-*): ten times as long
    --build DIR          the build tree whose compile commands are used (build/clang; configured if it does not exist)

.clang-tidy has the list of checks, with the reason for each that is switched off. The unity batches of the preset
`clang` are the units, so that a header is parsed once for twelve sources. Clang's analyzer leaves out the functions of
included files, and so of a batch: `./dev test all` does without it, `./dev test long` has --deep. A unit that was without
findings is not checked again before it, a header of it, its flags, .clang-tidy or clang-tidy itself changes; ninja knows the
headers once the tree is built. Exit status 1 if there are findings.
"""

import argparse
import concurrent.futures
import functools
import hashlib
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
# A source of a library that is compiled into a test program once more, with the precompiled header of those.
TEST_HEADERS = "tuza_test_headers.dir"
FINDING = re.compile(r"^(\S+?:\d+:\d+): (?:error|warning): (.*)$")


def configured(tree):
    if not (tree / "compile_commands.json").exists():
        command = ["cmake", "--preset", "clang", "-B", str(tree)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"tidy: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return tree / "compile_commands.json"


def libraries_only(tree, database):
    """A folder with the compile commands but those of test programs: clang-tidy runs all that a file has."""
    folder = tree / "tidy"
    folder.mkdir(exist_ok=True)
    kept = [entry for entry in json.loads(database.read_text()) if TEST_HEADERS not in entry["command"]]
    (folder / "compile_commands.json").write_text(json.dumps(kept))
    return folder


def units(folder, words):
    """The sources to check, the largest first, with the commands that compile them."""
    found = {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"])
        names = [str(path), *sources(path)]
        if (path.suffix in (".cpp", ".cxx") and not any(map(NOT_CHECKED.search, names))
                and (not words or any(word in name for word in words for name in names))):
            found[path] = entry["command"]
    order = sorted(found, key=lambda path: (-sum(map(os.path.getsize, [path, *sources(path)])), path))
    return {path: found[path] for path in order}


def sources(path):
    """The sources of a unity batch."""
    return re.findall(r'^#include "(.*)"', path.read_text(), re.MULTILINE) if path.name.startswith("unity_") else []


def dependencies(tree):
    """The files that each unit consists of, itself the first; of units that have been built."""
    if not (tree / ".ninja_deps").exists():
        return {}
    listed = subprocess.run(["ninja", "-C", tree, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found = {}
    for block in listed.split("\n\n"):
        files = [tree / line.strip() for line in block.split("\n")[1:]]
        if files:
            found[files[0].resolve()] = files
    return found


@functools.cache
def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


@functools.cache
def version():
    return subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout


def state(command, files, deep):
    """What the findings of a unit depend on; None if that is not known."""
    if files is None:
        return None
    return hashlib.sha256(repr([command, deep, version(), digest(CHECKS), *map(digest, files)]).encode()).hexdigest()


def findings(folder, unit, deep):
    """Findings of one unit, by place, and clang-tidy's output if it failed without any."""
    command = [TIDY, f"--config-file={CHECKS}", "-p", folder, "--quiet", unit]
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
    folder = libraries_only(options.build, configured(options.build))
    chosen = units(folder, options.words)
    if not chosen:
        sys.exit("tidy: nothing to check: no unit has one of the words in its path")
    known, files = options.build / "tidy.json", dependencies(options.build)
    good = json.loads(known.read_text()) if known.exists() else {}
    states = {unit: state(command, files.get(unit.resolve()), options.deep) for unit, command in chosen.items()}
    unchanged = [unit for unit in chosen if states[unit] is not None and good.get(str(unit)) == states[unit]]
    chosen = [unit for unit in chosen if unit not in unchanged]
    progress, found = steps.Progress(), {}
    with concurrent.futures.ThreadPoolExecutor(steps.JOBS) as pool:
        checked = pool.map(lambda unit: findings(folder, unit, options.deep), chosen)
        for count, (unit, result) in enumerate(zip(chosen, checked), 1):
            for place in result.keys() - found.keys():  # at once: a whole run takes minutes
                progress.say("\n".join(result[place]).rstrip())
            found |= result
            good[str(unit)] = states[unit] if not result else None
            progress.show(f"[{count}/{len(chosen)}] units, {len(found)} findings")
    known.write_text(json.dumps(good))
    left_out = f", {len(unchanged)} unchanged" if unchanged else ""
    progress.say(f"tidy: {len(chosen)} units, {len(found)} findings{left_out}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
