#!/usr/bin/env python3
"""Checks the Spin models of all layers (LAYER/model): models.py [directory for what Spin and gcc write [model]]

Each model is verified at each of its sizes, and each of its broken variants must fail at one of them: a model
that nothing can break shows nothing. A model declares both in comments, with the macros they define:

    // size PS=2 MS=3: what this size covers
    // variant NO_RECHECK: why this breaks it
    // variant NO_LOOK at 3: why, and the first size that is large enough to show it

Without a size line there is one size, without macros. Prints a line per run. Exit status: 0 if all is as it
should be, 1 if not.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import time

MEMORY_MIB_MAX = 1900
DEPTH_MAX = 1_000_000
SECONDS_MAX = 600  # per run, on a slow machine

SIZE = re.compile(r"^// size ((?:\w+=\d+ ?)+):", re.MULTILINE)
VARIANT = re.compile(r"^// variant (\w+)(?: at (\d+))?:", re.MULTILINE)


class Broken(Exception):
    """The run says nothing about the model: it does not compile, or the search is not complete."""


class Run:
    """One search through the states of a model, with some macros defined."""

    def __init__(self, model: pathlib.Path, macros: list[str], directory: pathlib.Path, optimise: str = "-O1"):
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.model = [*(f"-D{m}" for m in macros), str(model)]
        self.trail = f"{model.name}.trail"
        for stale in ("pan.c", "pan", self.trail):
            (directory / stale).unlink(missing_ok=True)
        self.call(["spin", "-a", *self.model], "pan.c")
        self.call(["gcc", optimise, "-w", "-DSAFETY", f"-DMEMLIM={MEMORY_MIB_MAX}", "-o", "pan", "pan.c"], "pan")
        began = time.monotonic()
        self.output = self.call(["./pan", "-n", f"-m{DEPTH_MAX}"])
        self.seconds = time.monotonic() - began
        self.states = self.number(r"(\S+) states, stored")
        errors = self.number(r"errors: (\d+)")
        complete = not re.search(r"not completed|depth too small|out of memory|MEMLIM bound", self.output)
        violation = re.search(r"^pan:\d+: (.*?) *\(at depth \d+\)", self.output, re.MULTILINE)
        self.violation = " ".join(violation[1].split()) if violation else None
        if self.violation is None and not (complete and errors == 0):
            raise Broken(f"the search is not complete:\n{self.output}")

    def call(self, command: list[str], makes: str | None = None) -> str:
        try:
            done = subprocess.run(command, cwd=self.directory, timeout=SECONDS_MAX, text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Broken(str(error)) from error
        # Spin reports some errors with status 0.
        if makes is not None and (done.returncode != 0 or not (self.directory / makes).exists()):
            raise Broken(f"{' '.join(command)}:\n{done.stdout}")
        return done.stdout

    def number(self, pattern: str) -> int:
        found = re.search(pattern, self.output)
        if found is None:
            raise Broken(f"pan ended without a result:\n{self.output}")
        return int(float(found[1]))  # large ones are printed as 1.2e+08

    def replay(self) -> str:
        """The steps that lead to the violation."""
        return self.call(["spin", "-t", "-p", "-k", self.trail, *self.model])


def report(name: str, size: str, run: Run, verdict: str) -> None:
    print(f"{name:<29} {size:<55} {run.states:>9,} states {run.seconds:6.2f} s  {verdict}", flush=True)


def check(model: pathlib.Path, directory: pathlib.Path) -> bool:
    text = model.read_text(encoding="utf-8")
    sizes = SIZE.findall(text) or [""]
    good = True
    for number, size in enumerate(sizes):
        run = Run(model, size.split(), directory / model.stem / f"size{number}")
        if run.violation is None:
            report(model.stem, size, run, "ok: verified")
        else:
            report(model.stem, size, run, f"WRONG: {run.violation}")
            print(run.replay())
            good = False
    for variant, first in VARIANT.findall(text):
        for number, size in list(enumerate(sizes))[int(first or 1) - 1:]:
            last = number + 1 == len(sizes)
            # It ends at the first error, before an optimiser has paid.
            run = Run(model, [variant, *size.split()], directory / model.stem / f"{variant}{number}", "-O0")
            name = f"{model.stem} {variant}"
            if run.violation is not None:
                report(name, size, run, f"ok: fails, {run.violation}")
                break
            report(name, size, run, "WRONG: fails at no size" if last else "does not fail at this size")
            good = good and not last
    return good


def check_all(directory: pathlib.Path, name: str = "*") -> bool:
    good = True
    models = sorted(pathlib.Path(__file__).resolve().parents[1].glob(f"*/model/{name}.pml"))
    for model in models:
        try:
            good = check(model, directory) and good
        except Broken as reason:
            print(f"{model.stem}: WRONG: {reason}")
            good = False
    if not models:
        print("no models")
    return good and bool(models)


def main() -> int:
    if len(sys.argv) > 3 or sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if len(sys.argv) == 2 else 1
    if len(sys.argv) > 1:
        return 0 if check_all(pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:]) else 1
    with tempfile.TemporaryDirectory(prefix="tuza-models-") as directory:
        return 0 if check_all(pathlib.Path(directory)) else 1


if __name__ == "__main__":
    sys.exit(main())
