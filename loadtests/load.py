#!/usr/bin/env python3
"""Load tests: `load.py SCENARIO [options]`, or `./dev load SCENARIO [options]`.

docs/performance/method.md describes how they measure. Exit status: 0; 1 if a check failed (wrong answers, errors;
with --strict also a missed bar); 2 for a wrong command line; 130 after Ctrl-C. Servers never survive this program.
"""

import argparse
import contextlib
import csv
import importlib
import pkgutil
import signal
import sys
from pathlib import Path

import scenarios
from lib import html, machine, process, servers
from lib.report import Report

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "performance"
ALL = ("plaintext", "tls", "stall", "churn", "idle", "waiting", "files", "slowreaders", "client", "proxy", "tcpproxy", "database")


def find_scenarios():
    names = sorted(module.name for module in pkgutil.iter_modules(scenarios.__path__))
    return {name: importlib.import_module(f"scenarios.{name}") for name in names}


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def parse_arguments(arguments, modules):
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--servers", default="floor,hello", metavar="LIST",
                        help="names, or name=COMMAND with {port} in it (default floor,hello)")
    common.add_argument("--rounds", type=positive, default=5, help="interleaved rounds (default 5)")
    common.add_argument("--seconds", type=positive, default=4, help="per measurement (default 4)")
    common.add_argument("--path", default="/plaintext", help="what to ask for (default /plaintext)")
    common.add_argument("--body", default="Hello, World!", type=str.encode, help="what the answer must be")
    common.add_argument("--build", type=Path, default=ROOT / "build" / "release", metavar="DIR",
                        help="the build directory servers are taken from (default build/release)")
    common.add_argument("--csv", type=Path, metavar="FILE", help="write every single measurement there")
    common.add_argument("--html", type=Path, metavar="FILE", help="write a report with charts there")
    common.add_argument("--strict", action="store_true", help="a missed bar fails the run")
    parser = argparse.ArgumentParser(prog="load", description="Load tests; see loadtests/README.md.")
    kinds = parser.add_subparsers(dest="scenario", required=True, metavar="SCENARIO")
    for name, module in modules.items():
        module.add_options(kinds.add_parser(name, parents=[common], help=module.DESCRIPTION))
    everything = kinds.add_parser("all", parents=[common], help=f"{', '.join(ALL)}: one after another, one report")
    everything.add_argument("--no-record", action="store_true", help="write nothing into docs/performance")
    for name in ALL:
        modules[name].add_options(everything)
    args = parser.parse_args(arguments)
    try:
        return args, servers.parse_specs(args.servers, args.build)
    except ValueError as error:
        parser.error(str(error))


def run(args, specs, chosen):
    date, commit = machine.now(), machine.commit(ROOT)
    with contextlib.ExitStack() as stack:
        csv_file = stack.enter_context(args.csv.open("w", newline="")) if args.csv else None
        report = Report(csv_file, date, commit)
        head = machine.describe(args.build, commit, date)
        report.say(*head)
        for module in chosen:
            try:
                module.run(specs, args, report)
            except process.LoadTestError as error:
                report.fail(str(error))
        status = report.finish(args.strict)
        if args.scenario == "all" and not args.no_record:
            for path in record(report, date, commit):
                print(f"written: {path.relative_to(ROOT)}", file=sys.stderr)
        if args.html:
            charts = {name: module.CHARTS for name, module in find_scenarios().items() if hasattr(module, "CHARTS")}
            charts["tls-idle"] = charts["idle"]
            args.html.write_text(html.page(report, head, charts), encoding="utf-8")
        return status


def record(report, date, commit):
    """Writes the files of a complete run: its output and the medians. README.md's figures come from the newest ones."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    text, medians = (RESULTS / f"{date.split()[0]}-load.{kind}" for kind in ("txt", "csv"))
    text.write_text("\n".join([*report.lines, ""]), encoding="utf-8")
    with medians.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("date", "commit", "scenario", "case", "server", "metric", "median"))
        rows.writerows((date, commit, *row) for row in report.medians())
    return text, medians


def programs(modules, name):
    """The targets that a scenario needs beside the servers that are always built, for ./dev."""
    return sorted({program for module in ([modules[each] for each in ALL] if name == "all" else [modules[name]])
                   for program in getattr(module, "PROGRAMS", ())})


def interrupt(_number, _frame):
    raise KeyboardInterrupt


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)  # so that servers are stopped on the way out
    process.raise_descriptor_limit()  # 1,024 connections do not fit into the usual 1,024 descriptors
    modules = find_scenarios()
    if sys.argv[1:2] == ["--programs"]:
        print(*programs(modules, sys.argv[2]))
        return 0
    args, specs = parse_arguments(sys.argv[1:], modules)
    chosen = [modules[name] for name in (ALL if args.scenario == "all" else [args.scenario])]
    try:
        return run(args, specs, chosen)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"load: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
