"""Plaintext: small keep-alive requests at full speed; what a request costs the server, against the floor.

The figure that counts is the server's CPU time per request: wrk, on one core, is slower than a fast server,
so requests per second would compare wrk with itself. Rounds are interleaved, each server is started anew for
every measurement, and the ratio is taken within a round, because absolute times drift by a third in minutes.
"""

import argparse
import statistics
import time
from dataclasses import asdict, dataclass, fields

from lib import http, process, procfs, servers, strace, wrk
from lib.process import LoadTestError
from lib.report import duration, table

DESCRIPTION = "CPU per request of small keep-alive requests"
WARM_UP_S = 1
SYSCALL_SECONDS = 2
OTHERS_WARNING = 0.10  # CPUs other programs may take before the reader is warned
USER_US_CASE, USER_US_MUST, USER_US_AIM = "256", 0.9, 0.6
# Two per request, and room for what the 64 connections need once.
IO_CALLS_MUST, IO_CALLS_AIM = 2.05, 2.02


@dataclass(frozen=True)
class Case:
    name: str
    load: wrk.Load
    must: float
    aim: float
    shared: bool = False  # server and wrk both on both cores, instead of one core each


# The bars: what this project wants to reach. 64 connections with 16 requests each keep as many requests
# under way (1,024) as the largest case without pipelining.
CASES = (
    Case("64", wrk.Load(64), 1.20, 1.08),
    Case("256", wrk.Load(256), 1.25, 1.10),
    Case("1024", wrk.Load(1024), 1.30, 1.15),
    Case("pipeline", wrk.Load(64, pipeline=16), 2.2, 1.5),
    Case("shared", wrk.Load(256, threads=2), 1.20, 1.05, shared=True),
)
SYSCALLS = "syscalls"


@dataclass(frozen=True)
class Measurement:
    rate: float
    p50_us: float
    p99_us: float
    user_us: float  # of the server's CPU, per request
    system_us: float
    total_us: float
    busy: float  # CPUs the server used
    client_busy: float  # CPUs wrk used
    others: float  # CPUs everything else on the machine used


def add_options(parser):
    names = [case.name for case in CASES] + [SYSCALLS]

    def parse_cases(text):
        if unknown := set(text.split(",")) - set(names):
            raise argparse.ArgumentTypeError(f"no case named {', '.join(sorted(unknown))}")
        return text.split(",")

    parser.add_argument("--cases", type=parse_cases, default=names, metavar="LIST",
                        help=f"of {','.join(names)} (default: all)")


def run(specs, args, report):
    cases = [case for case in CASES if case.name in args.cases]
    if cases:
        results = measure_all(specs, cases, args, report)
        show(specs, cases, results, args, report)
    if SYSCALLS in args.cases:
        count_syscalls(specs, args, report)


def measure_all(specs, cases, args, report):
    """{(case name, server name): {round: Measurement}}. A pair that cannot be measured once is given up."""
    results = {(case.name, spec.name): {} for case in cases for spec in specs}
    given_up = set()
    for number in range(args.rounds):
        for case in cases:
            # Every other round backwards: what drifts steadily then favours nobody.
            for spec in specs if number % 2 == 0 else reversed(specs):
                key = (case.name, spec.name)
                if key in given_up:
                    continue
                try:
                    found = measure(spec, case, args)
                except LoadTestError as error:
                    report.fail(f"plaintext {case.name}, round {number + 1}: {error}")
                    given_up.add(key)
                    continue
                results[key][number] = found
                report.record("plaintext", case.name, spec.name, number + 1, asdict(found))
                report.progress(f"round {number + 1}/{args.rounds}  {case.name:9} {spec.name:12} "
                                f"{found.total_us:.2f} us  {found.rate:,.0f}/s")
    return results


def measure(spec, case, args):
    first, second, both = process.allowed_cpus()
    server_cpus, wrk_cpus = (both, both) if case.shared else (first, second)
    with servers.serving(spec, server_cpus, args.path) as server:
        http.verify(server.port, args.path, args.body, case.load.pipeline)
        wrk.run(server.url(args.path), case.load, WARM_UP_S, wrk_cpus)
        start, busy, cpu = time.monotonic(), procfs.busy_s(), server.cpu_time()
        result = wrk.run(server.url(args.path), case.load, args.seconds, wrk_cpus)
        used = server.cpu_time() - cpu
        busy, elapsed = procfs.busy_s() - busy, time.monotonic() - start
    if result.errors:
        raise LoadTestError(f"{spec.name}: {'; '.join(result.errors)}")
    to_us = 1e6 / result.requests
    return Measurement(
        rate=result.rate, p50_us=result.p50_us, p99_us=result.p99_us, user_us=used.user_s * to_us,
        system_us=used.system_s * to_us, total_us=used.total_s * to_us, busy=used.total_s / elapsed,
        client_busy=result.client_cpu_s / elapsed,
        others=max(0.0, busy - used.total_s - result.client_cpu_s) / elapsed)


def ratios(results, case, server, reference):
    """Total CPU per request against the reference, of each round both have."""
    ours, theirs = results[case, server], results[case, reference]
    return [ours[number].total_us / theirs[number].total_us for number in ours if number in theirs]


def medians(measurements):
    """{field: median}"""
    names = [field.name for field in fields(Measurement)]
    return {name: statistics.median(getattr(m, name) for m in measurements) for name in names}


def show(specs, cases, results, args, report):
    reference = servers.reference(specs).name
    rows = []
    for case in cases:
        for spec in specs:
            found = list(results[case.name, spec.name].values())
            if not found:
                rows.append([case.name, spec.name] + ["-"] * 10 + ["not measured"])
                continue
            middle = medians(found)
            against = ratios(results, case.name, spec.name, reference)
            ratio = statistics.median(against) if against else None
            words = ""
            if spec.name == servers.OURS and reference == servers.FLOOR and ratio:
                words = report.bar(f"plaintext {case.name}, ratio", ratio, case.must, case.aim)
            rows.append([
                case.name, spec.name, f"{middle['rate']:,.0f}", duration(middle["p50_us"]),
                duration(middle["p99_us"]), f"{middle['user_us']:.2f}", f"{middle['system_us']:.2f}",
                f"{middle['total_us']:.2f}", f"{middle['busy']:.2f}", f"{middle['others']:.2f}",
                f"{ratio:.2f}" if ratio else "-",
                f"{min(against):.2f}-{max(against):.2f}" if against else "-", words])
    headers = ["case", "server", "req/s", "p50", "p99", "user us", "sys us", "total us", "CPUs", "others",
               f"x {reference}", "range", "bar"]
    report.say("", f"plaintext: medians of {args.rounds} rounds of {args.seconds} s; "
               "user, sys, total: server CPU per request; ratio of the totals within a round",
               "shared: server and wrk (2 threads) both on both cores; else one core each. pipeline: 64 x 16",
               "", *table(headers, rows))
    show_user_time(results, report)
    warn_of_others(results, report)


def show_user_time(results, report):
    found = results.get((USER_US_CASE, servers.OURS))
    if found:
        user_us = statistics.median(m.user_us for m in found.values())
        what = f"user us per request at {USER_US_CASE}"
        words = report.bar(f"plaintext, {what}", user_us, USER_US_MUST, USER_US_AIM)
        report.say("", f"{servers.OURS}, {what}: {user_us:.2f}  {words}")


def warn_of_others(results, report):
    found = [m for of_pair in results.values() for m in of_pair.values()]
    disturbed = [m.others for m in found if m.others > OTHERS_WARNING]
    if disturbed:
        report.say("", f"WARNING: in {len(disturbed)} of {len(found)} measurements other programs took more "
                   f"than {OTHERS_WARNING:.2f} CPUs (up to {max(disturbed):.2f}): repeat on a quiet machine")


def count_syscalls(specs, args, report):
    if not strace.available():
        report.say("", "system calls: strace is not installed")
        return
    rows = []
    for spec in specs:
        try:
            requests, calls = traced(spec, args)
        except LoadTestError as error:
            report.fail(f"plaintext {SYSCALLS}: {error}")
            continue
        kinds, others = strace.by_kind(calls)
        per_request = {kind: found.count / requests for kind, found in kinds.items()}
        per_request["failed reads"] = kinds["read"].errors / requests
        per_request["others"] = sum(found.count for found in others.values()) / requests
        report.record("plaintext", SYSCALLS, spec.name, 1, per_request)
        words = ""
        if spec.name == servers.OURS:
            io_calls = sum(per_request[kind] for kind in ("read", "write", "epoll_ctl"))
            words = report.bar("plaintext, read + write + epoll_ctl per request", io_calls, IO_CALLS_MUST,
                               IO_CALLS_AIM)
        common = sorted(others.items(), key=lambda item: -item[1].count)[:5]
        rows.append([spec.name, f"{requests:,}", *(f"{value:.3f}" for value in per_request.values()), words,
                     " ".join(f"{name}:{found.count}" for name, found in common)])
    if rows:
        headers = ["server", "requests", *strace.KINDS, "failed reads", "others", "bar", "others, calls"]
        report.say("", "system calls per request under strace: 64 connections, opening and closing included; "
                   "bar: read + write + epoll_ctl", "", *table(headers, rows, left=1))


def traced(spec, args):
    """Returns (requests, {name: Calls}) of one short run."""
    first, second, _ = process.allowed_cpus()
    with servers.serving(spec, first, args.path) as server:
        http.verify(server.port, args.path, args.body)
        with strace.counting(server.pids, second) as calls:
            result = wrk.run(server.url(args.path), wrk.Load(64), SYSCALL_SECONDS, second)
        if result.errors:
            raise LoadTestError(f"{spec.name}: {'; '.join(result.errors)}")
    return result.requests, calls
