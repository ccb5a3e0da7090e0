"""Open problem: many connections at a fixed total rate, some of whose requests burn 1 ms of CPU.

1,024 connections send 10,000 requests per second, at fixed times, independently of the answers. The share of requests
that burn 1 ms is chosen so that they need 64 % of two CPUs, and then 160 %. In an event loop, all requests behind a
burning one wait. With a goroutine per connection none of them should wait, at no cost in throughput. Both are compared
with the floor, which burns in its event loops. Published measurements found that preemption as in Go and other
runtimes costs throughput here.
"""

import statistics
import time

from lib import process, procfs, servers, stall
from lib.process import LoadTestError
from lib.report import duration, table

DESCRIPTION = "1,024 connections, some requests burn 1 ms: throughput and tail against the floor"
PROGRAMS = ("hostile",)
CHARTS = (("rate", "Requests per second", "1/s"), ("p999_us", "Latency, p99.9", "us"))
LOADS = (64, 160)  # percent of the CPUs
BAR_LOAD = 64
THROUGHPUT_MUST = 1.00
TAIL_MUST, TAIL_AIM = 1.00, 0.50


def add_options(parser):
    parser.add_argument("--crowd", type=int, default=1024, metavar="N",
                        help="openproblem: connections (default 1024)")
    parser.add_argument("--rate", type=int, default=10_000, metavar="N",
                        help="openproblem: requests per second (default 10000)")


def permille_of(load, cpus, rate):
    """How many of 1,000 requests must burn 1 ms so that they use `load` percent of `cpus` CPUs."""
    found = round(load / 100 * cpus * 1000 / rate * 1000)
    if not 1 <= found <= 1000:
        raise LoadTestError(f"{rate} requests per second cannot make {load} % of {cpus} CPUs with 1 ms each")
    return found


def run(_specs, args, report):
    both = process.allowed_cpus()[2]
    rows = []
    for load in LOADS:
        permille = permille_of(load, len(both), args.rate)
        results = {"floor": {}, "hostile": {}}
        for number in range(args.rounds):
            for name in results if number % 2 == 0 else reversed(results):
                try:
                    results[name][number] = measure(name, permille, both, args)
                except LoadTestError as error:
                    report.fail(f"openproblem {load} %, round {number + 1}: {name}: {error}")
                    continue
                found = results[name][number]
                report.record("openproblem", f"{load}%", name, number + 1, found)
                report.progress(f"round {number + 1}/{args.rounds}  {load} %  {name:8} {found['rate']:,.0f}/s  "
                                f"p99.9 {duration(found['p999_us'])}")
        rows += [row_of(load, permille, name, results, report) for name in results]
    headers = ["load", "burning", "server", "req/s", "p50", "p99", "p99.9", "max", "unanswered", "server CPUs",
               "client CPUs", "others", "x floor req/s", "p99.9", "bars"]
    report.say("", f"openproblem: medians of {args.rounds} rounds of {args.seconds} s; {args.crowd:,} connections, "
               f"{args.rate:,} requests/s together, server and client on {len(both)} CPUs",
               f"bars at {BAR_LOAD} %: throughput at least {THROUGHPUT_MUST:.2f} of the floor's, p99.9 at most "
               f"{TAIL_MUST:.2f} (aim {TAIL_AIM:.2f}), in the same round", "", *table(headers, rows, left=3))


def measure(name, permille, cpus, args):
    """{metric: value}"""
    listen = ("--listen", "127.0.0.1:{port}")
    if name == "floor":
        command = (str(args.build / "loadtests" / "floor"), *listen, "--burn-permille", str(permille))
        path = "/"
    else:
        command = (str(args.build / "examples" / "hostile"), *listen, "--set", "hostile.ticker=false")
        path = f"/maybe?permille={permille}"
    ending = stall.Ending()
    with stall.serving(servers.Spec(name, command), cpus, ending) as server:
        with stall.client(args, cpus, server.port, args.crowd, args.rate, args.seconds, path) as crowd:
            start, busy, cpu = time.monotonic(), procfs.busy_s(), server.cpu_time()
            crowd.go()
            found = crowd.result(args.seconds + 10)
            used = (server.cpu_time() - cpu).total_s
            elapsed = time.monotonic() - start
            busy = procfs.busy_s() - busy
    if found["wrong"] or found["lost"]:
        raise LoadTestError(f"{found['wrong']} wrong answers, {found['lost']} connections lost")
    if ending.killed:
        raise LoadTestError(f"did not end within {stall.END_GRACE_S} s of SIGTERM")
    others = max(0.0, busy - used - found["cpu_s"])
    return found | {"cpus": used / elapsed, "client_cpus": found["cpu_s"] / elapsed, "others": others / elapsed}


def ratio(results, metric):
    """The median of the rounds' ratios of hostile to the floor; None if no round has both."""
    ours, floor = results["hostile"], results["floor"]
    found = [ours[n][metric] / floor[n][metric] for n in ours if n in floor and floor[n][metric]]
    return statistics.median(found) if found else None


def row_of(load, permille, name, results, report):
    found = list(results[name].values())
    head = [f"{load} %", f"{permille / 10:.1f} %", name]
    if not found:
        return head + ["-"] * 11 + ["not measured"]
    middle = {key: statistics.median(m[key] for m in found) for key in found[0]}
    throughput, tail, words = ratio(results, "rate"), ratio(results, "p999_us"), ""
    if name == "hostile" and load == BAR_LOAD and throughput is not None and tail is not None:
        words = (report.share(f"openproblem {load} %, throughput against the floor", throughput,
                              THROUGHPUT_MUST) + "; p99.9 " +
                 report.bar(f"openproblem {load} %, p99.9 against the floor", tail, TAIL_MUST, TAIL_AIM))
    ratios = ["", ""] if name == "floor" else ["-" if r is None else f"{r:.2f}" for r in (throughput, tail)]
    return [*head, f"{middle['rate']:,.0f}", *(duration(middle[key]) for key in
                                               ("p50_us", "p99_us", "p999_us", "max_us")),
            f"{middle['unanswered']:,.0f}", f"{middle['cpus']:.2f}", f"{middle['client_cpus']:.2f}", f"{middle['others']:.2f}", *ratios, words]
