"""Soak: minutes of load with connections coming and going; memory must stay flat, and no request may fail.

Three kinds of clients run at once: 64 keep-alive connections, 32 that are closed after each response, and 4 that send
16 requests at a time. Memory is read every few seconds. It may grow in the first fifth of the time, while caches fill.
"""

import os
import tempfile
import threading
import time

from lib import certificate, http, peers, process, servers, wrk
from lib.process import LoadTestError
from lib.report import table

DESCRIPTION = "memory and errors over minutes of load with connections that come and go"
LOADS = {
    "keep-alive": wrk.Load(64),
    "close": wrk.Load(32, headers=("Connection: close",)),
    "pipelined": wrk.Load(4, pipeline=16),
}
SAMPLES = 60
WARM_UP = 0.2
GROWTH_MUST, SLACK_KB = 0.05, 1024  # allowance for a late burst


def add_options(parser):
    parser.add_argument("--minutes", type=float, default=10, help="soak: how long (default 10)")
    parser.add_argument("--tls", action="store_true", help="soak: hello over TLS, a handshake for each connection")


def run(specs, args, report):
    process.raise_descriptor_limit()
    if not args.tls:
        measure(specs, args, report)
        return
    with tempfile.TemporaryDirectory(prefix="tuza-soak-") as directory:
        made = certificate.make(directory, process.allowed_cpus()[2])
        measure([peers.hello(args, made)], args, report)


def measure(specs, args, report):
    seconds = max(10, round(args.minutes * 60))
    report.say("", f"soak: {seconds} s of {', '.join(LOADS)} at once{', over TLS' if args.tls else ''}")
    rows = []
    for spec in specs:
        if spec.name == servers.FLOOR:
            continue  # a soak of the floor shows nothing about Tuza
        try:
            rows.append(soak(spec, seconds, args, report))
        except LoadTestError as error:
            report.fail(f"soak: {error}")
    if rows:
        report.say("", *table(["server", "requests", "connections closed", "errors", "Rss warm", "Rss end",
                               "Rss max", "descriptors before", "after", "result"], rows, left=1))


def soak(spec, seconds, args, report):
    cpus = process.allowed_cpus()
    with servers.serving(spec, cpus[0], args.path) as server:
        http.verify(server.port, args.path, args.body, scheme=spec.scheme)
        before = descriptors(server)
        results, threads = {}, []
        for name, load in LOADS.items():
            def client(name=name, load=load):
                try:
                    results[name] = wrk.run(server.url(args.path), load, seconds, cpus[1])
                except LoadTestError as error:
                    results[name] = error
            threads.append(threading.Thread(target=client))
            threads[-1].start()
        memory = []
        began = time.monotonic()
        while any(thread.is_alive() for thread in threads):
            time.sleep(seconds / SAMPLES)
            memory.append((time.monotonic() - began, server.memory_kb()["Rss"]))
            report.progress(f"{spec.name}: {memory[-1][0]:.0f} s, {memory[-1][1]:,} KB")
        http.verify(server.port, args.path, args.body, scheme=spec.scheme)
        time.sleep(1)
        after = descriptors(server)
    return judge(spec, seconds, results, memory, (before, after), report)


def judge(spec, seconds, results, memory, fds, report):
    errors = []
    for name, result in results.items():
        errors += [f"{name}: {result}"] if isinstance(result, LoadTestError) else \
                  [f"{name}: {text}" for text in result.errors]
    finished = {name: r for name, r in results.items() if not isinstance(r, LoadTestError)}
    warm, highest, grown = growth(seconds, memory, fds)
    errors += grown
    for error in errors:
        report.fail(f"soak: {spec.name}: {error}")
    requests = sum(r.requests for r in finished.values())
    closed = finished["close"].requests if "close" in finished else 0
    report.record("soak", f"{seconds}s", spec.name, 1,
                  {"requests": requests, "rss_warm_kb": warm, "rss_end_kb": memory[-1][1], "rss_max_kb": highest})
    return [spec.name, f"{requests:,}", f"{closed:,}", len(errors), f"{warm:,}", f"{memory[-1][1]:,}",
            f"{highest:,}", *fds, "failed" if errors else "ok"]


def growth(seconds, memory, fds):
    """(KB after the warm-up, KB at most, what is wrong with memory and descriptors). `memory`: [(seconds, KB)]."""
    errors = []
    warm = max(kb for at, kb in memory if at <= max(seconds * WARM_UP, memory[0][0]))
    highest = max(kb for _, kb in memory)
    if highest > warm * (1 + GROWTH_MUST) + SLACK_KB:
        errors.append(f"memory grew from {warm:,} to {highest:,} KB after the warm-up")
    if fds[1] > fds[0]:
        errors.append(f"{fds[1] - fds[0]} descriptors were left open")
    return warm, highest, errors


def settled(server, before, patience_s):
    """The descriptors that are left when those of connections that end by themselves are closed."""
    deadline = time.monotonic() + patience_s
    while (after := descriptors(server)) > before and time.monotonic() < deadline:
        time.sleep(0.5)
    return after


def descriptors(server):
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in server.pids)
