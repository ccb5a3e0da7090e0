"""Uploads, server-sent events, WebSockets and connections that come and go, all at once, over minutes, on one server.

Every answer is checked. Some clients leave in the middle: of an upload, of a stream, of a message. Memory must stay flat, and no
descriptor or file may be left.
"""

import collections
import multiprocessing
import os
import signal
import tempfile
import threading
import time

from lib import http, process, servers, web_clients, wrk
from lib.process import LoadTestError
from scenarios import soak

DESCRIPTION = "uploads, events, WebSockets and new connections at once: errors, memory, descriptors, files"
PROGRAMS = ("web_server",)
NAME = "web_server"
CHURN = wrk.Load(16, headers=("Connection: close",))
VISITS = {web_clients.upload: 2, web_clients.listen: 8, web_clients.talk: 4}  # clients of each kind
SETTLE_S = 10


def add_options(parser):
    parser.add_argument("--web-minutes", type=float, default=10, help="websoak: how long (default 10)")


def client(visit, port, seconds, seed, cpus, results):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    os.sched_setaffinity(0, cpus)
    results.put((visit.__name__, *web_clients.visit_until(visit, port, seconds, seed)))


def run(_specs, args, report):
    seconds = max(10, round(args.web_minutes * 60))
    report.say("", f"websoak: {seconds} s of " +
               ", ".join(f"{count} x {visit.__name__}" for visit, count in VISITS.items()) + ", and new connections")
    cpus = process.allowed_cpus()
    with tempfile.TemporaryDirectory(prefix="tuza-websoak-") as folder:
        program = str(args.build / "loadtests/web_server")
        spec = servers.Spec(NAME, (program, "--listen", "127.0.0.1:{port}", "--set", f"web.folder={folder}"))
        with servers.serving(spec, cpus[0], args.path) as server:
            http.verify(server.port, args.path, args.body)
            before = soak.descriptors(server)
            visits, errors, memory = load(server, seconds, args, report)
            http.verify(server.port, args.path, args.body)
            after = soak.settled(server, before, SETTLE_S)
        left = os.listdir(folder)
    judge(seconds, visits, errors, memory, (before, after), left, report)


def load(server, seconds, args, report):
    """({kind: visits}, {text: errors}, [(seconds, KB)])"""
    cpus = process.allowed_cpus()
    results = multiprocessing.Queue()
    kinds = [visit for visit, count in VISITS.items() for _ in range(count)]
    clients = [multiprocessing.Process(target=client, args=(visit, server.port, seconds, seed, cpus[1], results))
               for seed, visit in enumerate(kinds)]
    visits, errors = collections.Counter(), collections.Counter()

    def churn():
        try:
            result = wrk.run(server.url(args.path), CHURN, seconds, cpus[1])
            visits["churn"] = result.requests
            errors.update(f"churn: {text}" for text in result.errors)
        except LoadTestError as error:
            errors[f"churn: {error}"] += 1

    churning = threading.Thread(target=churn, daemon=True)
    memory, began = [], time.monotonic()
    try:
        for one in (*clients, churning):  # no fork beside a thread
            one.start()
        while time.monotonic() - began < seconds:
            time.sleep(seconds / soak.SAMPLES)
            memory.append((time.monotonic() - began, server.memory_kb()["Rss"]))
            report.progress(f"{memory[-1][0]:.0f} s, {memory[-1][1]:,} KB")
        for _ in clients:
            name, count, failed = results.get(timeout=2 * web_clients.TIMEOUT_S)
            visits[name] += count
            errors.update(failed)
        churning.join()
    finally:  # also after Ctrl-C, and if the server has ended
        for one in clients:
            one.kill()
            one.join()
    return visits, errors, memory


def judge(seconds, visits, errors, memory, fds, left, report):
    for text, count in errors.items():
        report.fail(f"websoak: {count} x {text}")
    for name in (*(visit.__name__ for visit in VISITS), "churn"):
        if not visits[name]:
            report.fail(f"websoak: no {name} was answered")
    warm, highest, grown = soak.growth(seconds, memory, fds)
    for error in grown:
        report.fail(f"websoak: {error}")
    if left:
        report.fail(f"websoak: {len(left)} files were left")
    report.record("websoak", f"{seconds}s", NAME, 1,
                  {**{name: count for name, count in sorted(visits.items())}, "rss_warm_kb": warm, "rss_max_kb": highest})
    words = ", ".join(f"{name} {count:,}" for name, count in sorted(visits.items()))
    report.say(f"{words}; errors {sum(errors.values())}; memory {warm:,} KB warm, {memory[-1][1]:,} KB at the end, {highest:,} KB at "
               f"most; descriptors {fds[0]} before, {fds[1]} after")
