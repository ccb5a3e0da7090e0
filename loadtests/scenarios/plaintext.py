"""Plaintext: small keep-alive requests at full speed: the server's cost per request, against the floor."""

import statistics

from lib import http, peers, process, rounds, servers, strace, wrk
from lib.process import LoadTestError
from lib.report import table
from lib.rounds import Case

DESCRIPTION = "CPU per request of small keep-alive requests"
SYSCALL_SECONDS = 2
CHARTS = (("total_us", "Server CPU per request", "us"), ("rate", "Requests per second", "1/s"))
USER_US_CASE, USER_US_MUST, USER_US_AIM = "256", 0.85, 0.6
# Two calls per request, with allowance for the calls that each of the 64 connections needs once.
IO_CALLS_MUST, IO_CALLS_AIM = 2.05, 2.02


# The bars are the goals of this project. 64 connections with 16 requests each keep as many requests in flight (1,024)
# as the largest case without pipelining.
CASES = (
    Case("64", wrk.Load(64), 1.15, 1.08),
    Case("256", wrk.Load(256), 1.18, 1.10),
    Case("1024", wrk.Load(1024), 1.25, 1.15),
    Case("pipeline", wrk.Load(64, pipeline=16), 1.65, 1.45),
    Case("shared", wrk.Load(256, threads=2), 1.15, 1.05, shared=True),
)
SYSCALLS = "syscalls"


def add_options(parser):
    names = [case.name for case in CASES] + [SYSCALLS]

    parser.add_argument("--cases", type=rounds.some_of(names), default=names, metavar="LIST",
                        help=f"of {','.join(names)} (default: all)")


def run(specs, args, report):
    cases = [case for case in CASES if case.name in args.cases]
    if args.scenario == "all":  # the record has the others' figures, too
        specs = [*specs, *peers.installed(args, report)]
    if cases:
        results = rounds.measure_all("plaintext", specs, cases, args, report)
        show(specs, cases, results, args, report)
    if SYSCALLS in args.cases:
        count_syscalls(specs, args, report)


def show(specs, cases, results, args, report):
    lines = rounds.result_table("plaintext", specs, cases, results, servers.reference(specs).name, report,
                                servers.FLOOR)
    report.say("", f"plaintext: medians of {args.rounds} rounds of {args.seconds} s; "
               "user, sys, total: server CPU per request; ratio of the totals within a round",
               "shared: server and wrk (2 threads) both on both cores; else one core each. pipeline: 64 x 16",
               "", *lines)
    show_user_time(results, report)
    rounds.warn_of_others(results, report)


def show_user_time(results, report):
    found = results.get((USER_US_CASE, servers.OURS))
    if found:
        user_us = statistics.median(m.user_us for m in found.values())
        what = f"user us per request at {USER_US_CASE}"
        words = report.bar(f"plaintext, {what}", user_us, USER_US_MUST, USER_US_AIM)
        report.say("", f"{servers.OURS}, {what}: {user_us:.2f}  {words}")


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
