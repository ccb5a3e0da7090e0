"""Interleaved rounds of wrk: the cost of a request on each of several servers, and ratios that survive drift.

The figure that counts is the server's CPU time per request: wrk, on one core, is slower than a fast server, so
requests per second would compare wrk with itself. Each server is started anew for every measurement. The ratio is
taken within a round, because absolute times drift by a third within minutes.
"""

import argparse
import statistics
import time
from dataclasses import asdict, dataclass, fields

from lib import http, process, procfs, servers, wrk
from lib.process import LoadTestError
from lib.report import duration, table

WARM_UP_S = 1
OTHERS_WARNING = 0.10  # CPUs that other programs may use before the reader is warned


def some_of(names):
    """For argparse: a comma-separated list of some of `names`."""
    def parse(text):
        if unknown := set(text.split(",")) - set(names):
            raise argparse.ArgumentTypeError(f"none of {','.join(names)}: {', '.join(sorted(unknown))}")
        return text.split(",")
    return parse


@dataclass(frozen=True)
class Case:
    name: str
    load: wrk.Load
    must: float  # the bar for the ratio to the reference
    aim: float
    shared: bool = False  # server and wrk both on both cores, instead of one core each


@dataclass(frozen=True)
class Measurement:
    rate: float
    p50_us: float
    p99_us: float
    user_us: float  # of the server's CPU, per request
    system_us: float
    total_us: float
    busy: float  # CPUs the server used
    client_busy: float  # CPUs the client used
    others: float  # CPUs that everything else on the machine used


def measure_all(scenario, specs, cases, args, report, measure=None):
    """{(case name, server name): {round: Measurement}}. A pair whose measurement fails once is not tried again.

    `measure(spec, case, args)` makes one Measurement; without it, wrk_round() does.
    """
    measure = measure or wrk_round
    results = {(case.name, spec.name): {} for case in cases for spec in specs}
    given_up = set()
    for number in range(args.rounds):
        for case in cases:
            # Every other round runs in reverse order, so that a steady drift favours no server.
            for spec in specs if number % 2 == 0 else reversed(specs):
                key = (case.name, spec.name)
                if key in given_up:
                    continue
                try:
                    found = measure(spec, case, args)
                except LoadTestError as error:
                    report.fail(f"{scenario} {case.name}, round {number + 1}: {error}")
                    given_up.add(key)
                    continue
                results[key][number] = found
                report.record(scenario, case.name, spec.name, number + 1, asdict(found))
                report.progress(f"round {number + 1}/{args.rounds}  {case.name:9} {spec.name:12} "
                                f"{found.total_us:.2f} us  {found.rate:,.0f}/s")
    return results


def wrk_round(spec, case, args):
    """One Measurement by wrk with a fresh server, after a check of its answers and a warm-up."""
    first, second, both = process.allowed_cpus()
    server_cpus, wrk_cpus = (both, both) if case.shared else (first, second)
    with servers.serving(spec, server_cpus, args.path) as server:
        http.verify(server.port, args.path, args.body, case.load.pipeline, spec.scheme)
        wrk.run(server.url(args.path), case.load, WARM_UP_S, wrk_cpus)
        with Watch(server) as watch:
            result = wrk.run(server.url(args.path), case.load, args.seconds, wrk_cpus)
    if result.errors:
        raise LoadTestError(f"{spec.name}: {'; '.join(result.errors)}")
    return watch.measurement(result)


class Watch:
    """The CPU time that a server and the machine used inside the `with`."""

    def __init__(self, server):
        self._server = server

    def __enter__(self):
        self._start, self._busy, self._cpu = time.monotonic(), procfs.busy_s(), self._server.cpu_time()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self._cpu = self._server.cpu_time() - self._cpu
            self._busy = procfs.busy_s() - self._busy
            self._elapsed = time.monotonic() - self._start

    def measurement(self, result):
        to_us = 1e6 / result.requests
        used, elapsed = self._cpu, self._elapsed
        return Measurement(
            rate=result.rate, p50_us=result.p50_us, p99_us=result.p99_us, user_us=used.user_s * to_us,
            system_us=used.system_s * to_us, total_us=used.total_s * to_us, busy=used.total_s / elapsed,
            client_busy=result.client_cpu_s / elapsed,
            others=max(0.0, self._busy - used.total_s - result.client_cpu_s) / elapsed)


def ratios(results, case, server, reference):
    """Total CPU per request relative to the reference, for each round that has both."""
    ours, theirs = results[case, server], results[case, reference]
    return [ours[number].total_us / theirs[number].total_us for number in ours if number in theirs]


def medians(measurements):
    """{field: median}"""
    names = [field.name for field in fields(Measurement)]
    return {name: statistics.median(getattr(m, name) for m in measurements) for name in names}


def result_table(scenario, specs, cases, results, reference, report, bar_against, barred=servers.OURS):
    """The lines of the table. Bars apply to the server `barred`, if the reference is `bar_against`."""
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
            if spec.name == barred and reference == bar_against and ratio:
                words = report.bar(f"{scenario} {case.name}, ratio", ratio, case.must, case.aim)
            rows.append([
                case.name, spec.name, f"{middle['rate']:,.0f}", percentile(middle["p50_us"]),
                percentile(middle["p99_us"]), f"{middle['user_us']:.2f}", f"{middle['system_us']:.2f}",
                f"{middle['total_us']:.2f}", f"{middle['busy']:.2f}", f"{middle['others']:.2f}",
                f"{ratio:.2f}" if ratio else "-",
                f"{min(against):.2f}-{max(against):.2f}" if against else "-", words])
    headers = ["case", "server", "req/s", "p50", "p99", "user us", "sys us", "total us", "CPUs", "others",
               f"x {reference}", "range", "bar"]
    return table(headers, rows)


def percentile(us):
    """The duration as text; 0 means that the client measures none."""
    return duration(us) if us else "-"


def warn_of_others(results, report):
    found = [m for of_pair in results.values() for m in of_pair.values()]
    disturbed = [m.others for m in found if m.others > OTHERS_WARNING]
    if disturbed:
        report.warn(f"in {len(disturbed)} of {len(found)} measurements other programs took more "
                    f"than {OTHERS_WARNING:.2f} CPUs (up to {max(disturbed):.2f}): repeat on a quiet machine")
