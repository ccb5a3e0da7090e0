"""Stall: how late well-behaved requests are while other requests do what frameworks forbid.

A given number of connections to the server examples/hostile is kept busy with requests of one kind: loops, blocking
calls, locks. Meanwhile a client that asks only for `/` sends 500 requests per second at fixed times, and a goroutine
inside the server ticks every millisecond. The scenario measures the lateness of both, with missed ticks and unanswered
requests included, and the work of the hostile requests relative to plain threads that do the same.
"""

import argparse
import dataclasses
import statistics
import time
from pathlib import Path

from lib import golang, process, procfs, servers, stall
from lib.process import LoadTestError
from lib.report import duration, table

DESCRIPTION = "lateness of small requests while others compute and block"
PROGRAMS = ("hostile", "stall_client", "stall_threads")
CHARTS = (("client_p99_us", "How late small requests are, p99", "us"),)
KINDS = ("burn", "mutex", "malloc", "memcpy", "throw", "printf", "sort", "regex", "sleep", "read", "file")
BURNERS = KINDS[:8]
GO_KINDS = ("burn", "malloc", "memcpy", "sort", "regex", "sleep", "file")
HOGS = (1, 8, 100, 1000)
PROCS = (1, 2)
# A run without options measures every kind with 8, and one kind of each sort of trouble with all numbers.
DEFAULT_HOGS = 8
DEFAULT_KINDS = ("burn", "malloc", "sleep")
GO_PROCS = 2
GO_SOURCE = Path(__file__).resolve().parents[1] / "stall_go"

HOG_MS = 500
FILE_BYTES = 64 << 20
CHECK_MS = 5
# Enough connections for 500 requests per second even if each request takes 100 ms.
STEADY_CONNECTIONS, STEADY_RATE = 64, 500
BEGIN_TIMEOUT_S = 3  # until all hostile requests are at work
THREADS_SECONDS = 2
OTHERS_WARNING = 0.15  # CPUs; includes the client of the hostile requests

# Bars in ms, for the p99 of the client and of the ticker, by the number of hostile requests.
BARS_MS = {0: (10, 1), 1: (10, 1), 8: (10, 1), 100: (20, 3), 1000: (100, 15)}
THROUGHPUT_MUST = 0.90


@dataclasses.dataclass(frozen=True)
class Case:
    kind: str  # "-": no hostile requests
    hogs: int
    procs: int

    def name(self):
        return f"{self.kind} x {self.hogs}, {self.procs} P"


@dataclasses.dataclass
class Found:
    client: dict
    server: dict | None  # ticker, running, eintr, rate (iterations per second); None if it did not answer
    cpus: float  # CPUs that the server used
    others: float  # CPUs that neither the server nor the client of `/` used
    hog_answers: int = 0
    threads: float = 0.0  # iterations per second of plain threads, right before and right after

    def worst_us(self):
        """The p99 of the client or of the ticker, whichever is larger."""
        return max(self.client["p99_us"], (self.server or {"ticker": {}})["ticker"].get("p99_us", 0))

    def work(self):
        """The work relative to plain threads; None if there is nothing to compare with."""
        return self.server["rate"] / self.threads if self.threads and self.server else None


def add_options(parser):
    def listed(names):
        def parse(text):
            if unknown := set(text.split(",")) - set(map(str, names)):
                raise argparse.ArgumentTypeError(f"none of {','.join(map(str, names))}: "
                                                 f"{', '.join(sorted(unknown))}")
            return tuple(name for name in names if str(name) in text.split(","))
        return parse

    def numbers(text):
        try:
            found = tuple(int(number) for number in text.split(","))
        except ValueError:
            found = (0,)
        if not all(1 <= number <= 5000 for number in found):
            raise argparse.ArgumentTypeError("must be numbers from 1 to 5000")
        return found

    parser.add_argument("--kinds", type=listed(KINDS), metavar="LIST", help=f"stall: of {','.join(KINDS)}")
    parser.add_argument("--hogs", type=numbers, metavar="LIST",
                        help=f"stall: how many hostile requests at once; of {','.join(map(str, HOGS))}")
    parser.add_argument("--procs", type=listed(PROCS), default=PROCS, metavar="LIST",
                        help="stall: numbers of Ps (default 1,2)")
    parser.add_argument("--full", action="store_true", help="stall: every kind with every number (an hour)")
    parser.add_argument("--repeat", type=int, choices=range(1, 100), default=1, metavar="N",
                        help="stall: measure each case so often; the median counts of the work done, the worst of "
                        "the lateness (default 1)")
    parser.add_argument("--no-go", action="store_true", help="stall: no comparison with Go")


def cases(args):
    """The cases to measure. For each number of Ps the first case has no hostile requests."""
    found = []
    for procs in args.procs:
        found.append(Case("-", 0, procs))
        for kind in args.kinds or KINDS:
            everything = args.full or args.kinds or kind in DEFAULT_KINDS
            hogs = args.hogs or (HOGS if everything else (DEFAULT_HOGS,))
            found += [Case(kind, number, procs) for number in hogs]
    return found


def run(_specs, args, report):
    hostile = servers.Spec("hostile", (str(args.build / "examples" / "hostile"), "--listen", "127.0.0.1:{port}"))
    compared = [hostile]
    if not args.no_go:
        both = process.allowed_cpus()[2]
        program, why = golang.build(args, GO_SOURCE, both)
        if program:
            compared.append(servers.Spec("go", (program, "-addr", "127.0.0.1:{port}")))
        else:
            report.say("", why)
    rows = [measured(spec, case, args, report) for case in cases(args) for spec in compared if fits(spec, case, args)]
    headers = ["kind", "server", "hogs", "Ps", "running", "/ p50", "p99", "p99.9", "max", "tick p50", "p99", "p99.9",
               "max", "own p99", "EINTR", "CPUs", "others", "work/s", "x threads", "end", "p99", "work"]
    if disturbed := sum(row[-6] != "" and float(row[-6]) > OTHERS_WARNING for row in rows):
        report.warn(f"in {disturbed} of {len(rows)} measurements other programs took more than "
                    f"{OTHERS_WARNING:.2f} CPUs: repeat on a quiet machine")
    often = f", {args.repeat} times: the median of the work, all else of the worst" if args.repeat > 1 else ""
    report.say("", f"stall: {args.seconds} s each{often}; lateness of `/` at {STEADY_RATE}/s, and of a tick each ms in the "
               "server; own: how late the client was to send; x threads: work against plain threads",
               f"end: how long after SIGTERM the server ended; bars: {bars_text()}", "", *table(headers, rows))


def bars_text():
    levels = ", ".join(f"{hogs}: {must}/{aim}" for hogs, (must, aim) in BARS_MS.items())
    return f"p99 in ms must/aim by hogs {levels}; x threads {THROUGHPUT_MUST:.2f}"


def fits(spec, case, args):
    if spec.name == "hostile":
        return True
    return case.hogs == 0 or (case.kind in GO_KINDS and (case.procs == GO_PROCS or args.full))


def measured(spec, case, args, report):
    """The row of the table for one case."""
    found, ending = [], stall.Ending()
    for number in range(args.repeat):
        ending = stall.Ending()
        try:
            found.append(measure_beside_threads(spec, case, args, ending))
            problems = wrong_answers(found[-1])
            record(spec, case, number + 1, found[-1], ending, report)
        except LoadTestError as error:
            problems = [str(error)]
        if ending.killed:
            problems.append(f"it did not end within {stall.END_GRACE_S} s of SIGTERM")
        for problem in problems:
            if spec.name == "hostile":
                report.fail(f"stall {case.name()}: {problem}")
            else:
                report.progress(f"{case.name()}: {spec.name}: {problem}")
        if problems:
            break
    if not found:
        return [case.kind, spec.name, case.hogs, case.procs, "not measured"] + [""] * 17
    return row_of(spec, case, found, ending, report)


def measure_beside_threads(spec, case, args, ending):
    before = threads_rate(spec, case, args)
    found = measure(spec, case, args, ending)
    found.threads = (before + threads_rate(spec, case, args)) / 2
    return found


def path_of(kind, amount=None):
    return f"/{kind}?bytes={amount or FILE_BYTES}&cold=1" if kind == "file" else f"/{kind}?ms={amount or HOG_MS}"


def measure(spec, case, args, ending):
    cpus = process.allowed_cpus()[2]
    environment = {"TUZA_MAXPROCS": str(case.procs), "GOMAXPROCS": str(case.procs)}
    with stall.serving(spec, cpus, ending, **environment) as server:
        if case.hogs:
            check_work(server, case.kind)
        with stall.client(args, cpus, server.port, STEADY_CONNECTIONS, STEADY_RATE, args.seconds) as steady:
            if not case.hogs:
                return window(server, case, args, steady)
            hog_seconds = 10 * (args.seconds + 60)  # ends earlier, when its input is closed
            with stall.client(args, cpus, server.port, case.hogs, 0, hog_seconds, path_of(case.kind),
                              f'"kind":"{case.kind}"') as hogs:
                hogs.go()
                wait_for_all(server, case)
                found = window(server, case, args, steady)
                result = hogs.result(0)
    found.hog_answers = result["answered"]
    if result["wrong"] or result["lost"]:
        raise LoadTestError(f"hostile requests: {result['wrong']} wrong answers, {result['lost']} connections lost")
    return found


def check_work(server, kind):
    """Checks with one short request that the kind does what it should."""
    answer = stall.get_json(server, path_of(kind, 1 << 20 if kind == "file" else CHECK_MS))
    if answer["kind"] != kind or answer["errors"] or not answer["iterations"]:
        raise server.error(f"{kind}: a wrong answer: {answer}")
    measured_ms = answer.get("cpu_ms", CHECK_MS) if kind in BURNERS else answer["wall_ms"]
    if kind != "file" and measured_ms < CHECK_MS:
        raise server.error(f"{kind}: {measured_ms} ms instead of {CHECK_MS}")


def running(stats, kind):
    return stats["kinds"][kind]["begun"] - stats["kinds"][kind]["ended"] if kind in stats["kinds"] else 0


def wait_for_all(server, case):
    """Waits until all hostile requests are at work, with a timeout: a server that stalls begins only some of them."""
    deadline = time.monotonic() + BEGIN_TIMEOUT_S
    while (left := deadline - time.monotonic()) > 0:
        stats = stats_in_time(server, "/stats", left)
        if stats is not None and running(stats, case.kind) >= case.hogs:
            break
        time.sleep(0.1)


def stats_in_time(server, path, timeout_s=stall.ANSWER_TIMEOUT_S):
    """The server's statistics; None if it does not answer in time."""
    try:
        return stall.get_json(server, path, timeout_s)
    except LoadTestError:
        server.check_alive()
        return None


def window(server, case, args, steady):
    before, cpu = stats_in_time(server, "/stats?reset=1"), server.cpu_time()
    start, busy = time.monotonic(), procfs.busy_s()
    steady.go()
    result = steady.result(args.seconds + 10)
    used, elapsed = (server.cpu_time() - cpu).total_s, time.monotonic() - start
    others = procfs.busy_s() - busy - used - result["cpu_s"]
    after = stats_in_time(server, "/stats")
    return Found(client=result, server=difference(before, after, case.kind) if before and after else None,
                 cpus=used / elapsed, others=max(0.0, others / elapsed))


def difference(before, after, kind):
    """The work of a server between two of its /stats; the first one began a new window."""
    def grown(name):
        return sum(after["kinds"][k][name] - before["kinds"][k][name] for k in after["kinds"])

    return {"ticker": after["ticker"], "running": running(after, kind), "eintr": grown("eintr"),
            "rate": grown("iterations") / (after["seconds"] - before["seconds"])}


def threads_rate(spec, case, args):
    """Iterations per second of plain threads on the server's CPUs; 0: nothing to compare."""
    if case.hogs == 0 or spec.name != "hostile":
        return 0.0
    if case.kind in ("sleep", "read"):
        return case.hogs * 1000 / HOG_MS  # the nominal rate
    amount = FILE_BYTES if case.kind == "file" else HOG_MS
    return stall.run_threads(args, process.allowed_cpus()[2], case.kind, case.hogs, THREADS_SECONDS, amount)


def wrong_answers(found):
    """Descriptions of everything that must not happen."""
    problems = [f"requests for `/`: {what}: {found.client[what]}" for what in ("wrong", "lost") if found.client[what]]
    if found.server is None:
        problems.append(f"/stats was not answered within {stall.ANSWER_TIMEOUT_S} s")
    return problems


LATENESS = ("p50_us", "p99_us", "p999_us", "max_us")


def record(spec, case, number, found, ending, report):
    server = found.server or {"ticker": {}, "running": None, "eintr": None, "rate": None}
    metrics = {f"client_{key}": found.client[key] for key in (*LATENESS, "unanswered", "own_p99_us")}
    metrics |= {f"tick_{key}": value for key, value in server["ticker"].items()}
    metrics |= {"running": server["running"], "eintr": server["eintr"], "iterations_per_s": server["rate"],
                "threads_per_s": found.threads, "hog_answers": found.hog_answers, "cpus": found.cpus,
                "others": found.others, "end_s": ending.seconds, "killed": ending.killed}
    report.record("stall", f"{case.kind} x {case.hogs} P{case.procs}", spec.name, number,
                  {key: value for key, value in metrics.items() if value is not None})


def row_of(spec, case, all_found, ending, report):
    """The row of several measurements: the work is the median, all other values are from the worst measurement."""
    found = max(all_found, key=Found.worst_us)
    server = found.server or {"ticker": {}, "running": None, "eintr": None, "rate": None}
    ratios = [one.work() for one in all_found if one.work() is not None]
    ratio = statistics.median(ratios) if ratios else None
    late, work = "", ""
    if spec.name == "hostile":
        late = short(report.bar(f"stall {case.name()}, p99 in ms", found.worst_us() / 1e3, *bars_of(case.hogs)))
        if ratio is not None and case.kind in BURNERS:
            work = report.share(f"stall {case.name()}, work against threads", ratio, THROUGHPUT_MUST)
    seen = f", work {ratio:.2f}" if ratio is not None else ""
    report.progress(f"{case.name():22} {spec.name:8} p99 {duration(found.client['p99_us'])}, tick "
                    f"{duration(server['ticker'].get('p99_us', 0))}{seen}, {server['running']} running")

    def shown(value, form):
        return "-" if value is None else format(value, form)

    return [case.kind, spec.name, case.hogs, case.procs, shown(server["running"], ""),
            *(duration(found.client[key]) for key in LATENESS),
            *(duration(server["ticker"][key]) if server["ticker"] else "-" for key in LATENESS),
            duration(found.client["own_p99_us"]), shown(server["eintr"], ""), f"{found.cpus:.2f}", f"{found.others:.2f}", shown(server["rate"], ",.0f"),
            shown(ratio, ".2f"), "KILLED" if ending.killed else f"{ending.seconds:.1f} s", late, work]


def bars_of(hogs):
    """The bars of the next larger number of hostile requests that has bars."""
    return BARS_MS[min((number for number in BARS_MS if number >= hogs), default=max(BARS_MS))]


def short(words):
    """The verdict in one word, because the bars are printed above the table."""
    if words.endswith("MISSED"):
        return "MISSED"
    return "must" if words.endswith("not yet") else "aim"
