"""The reverse proxy over minutes in which its upstreams are killed and started again, one after another.

Three kinds of clients run all the time: keep-alive connections and one connection per request, with GET, which the proxy asks
another upstream for, and POST, which it must not repeat. No GET may fail, and of the POSTs at most those in flight at each kill.
Memory must stay flat, and no descriptor may be left.
"""

import contextlib
import itertools
import tempfile
import threading
import time

from lib import fleet, http, process, servers, wrk
from lib.process import LoadTestError
from scenarios import proxy, rolling, soak

DESCRIPTION = "the reverse proxy while its upstreams are killed and started again: errors, memory, descriptors"
PROGRAMS = ("reverse_proxy",)
LOADS = {"GET": wrk.Load(32), "GET, closed": wrk.Load(8, headers=("Connection: close",)),
         "POST": wrk.Load(8, post="0123456789")}
PATHS = {"POST": "/echo"}
UPSTREAMS = 3
UP_S, DOWN_S = 3, 1
IDLE_S = 75  # after that time the proxy has closed the connections that it keeps


def add_options(parser):
    parser.add_argument("--proxy-minutes", type=float, default=10, help="proxysoak: how long (default 10)")


def run(_specs, args, report):
    seconds = max(10, round(args.proxy_minutes * 60))
    report.say("", f"proxysoak: {seconds} s, {UPSTREAMS} upstreams, one of which is killed every {UP_S} s, and is gone for {DOWN_S} s")
    cpus = process.allowed_cpus()
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        upstreams = [fleet.Instance(args, name, cpus[1], log) for name in fleet.NAMES[:UPSTREAMS]]
        for one in upstreams:
            stack.callback(lambda one=one: one.child and process.stop(one.child))
            one.start()
        server = stack.enter_context(servers.serving(proxy.ours(args, [one.port for one in upstreams]), cpus[0], args.path))
        http.verify(server.port, args.path, args.body)
        before = soak.descriptors(server)
        results, memory, kills = load(server, upstreams, seconds, args, report)
        http.verify(server.port, args.path, args.body)
        after = soak.settled(server, before, IDLE_S)
    judge(seconds, results, memory, kills, (before, after), report)


def load(server, upstreams, seconds, args, report):
    """({kind of client: wrk.Result or LoadTestError}, [(seconds, KB)], kills)"""
    cpus = process.allowed_cpus()
    results = {}

    def client(name, kind):
        try:
            results[name] = wrk.run(server.url(PATHS.get(name, args.path)), kind, seconds, cpus[1])
        except LoadTestError as error:
            results[name] = error

    threads = [threading.Thread(target=client, args=item) for item in LOADS.items()]
    for thread in threads:
        thread.start()
    memory, kills, began = [], 0, time.monotonic()
    for victim in itertools.cycle(upstreams):
        time.sleep(UP_S)
        if not all(thread.is_alive() for thread in threads):
            break
        victim.kill()
        time.sleep(DOWN_S)
        victim.start()
        kills += 1
        memory.append((time.monotonic() - began, server.memory_kb()["Rss"]))
        report.progress(f"{memory[-1][0]:.0f} s, {kills} kills, {memory[-1][1]:,} KB")
    for thread in threads:
        thread.join()
    return results, memory, kills


def judge(seconds, results, memory, kills, fds, report):
    failed = {}
    for name, result in results.items():
        if isinstance(result, LoadTestError):
            report.fail(f"proxysoak: {name}: {result}")
            continue
        failed[name] = sum(rolling.failures(text) for text in result.errors)
        allowed = kills * LOADS[name].connections if name in PATHS else 0
        if failed[name] > allowed:
            report.fail(f"proxysoak: {name}: {'; '.join(result.errors)} ({allowed} may fail)")
    warm, highest, errors = soak.growth(seconds, memory, fds)
    for error in errors:
        report.fail(f"proxysoak: {error}")
    requests = sum(result.requests for result in results.values() if not isinstance(result, LoadTestError))
    report.record("proxysoak", f"{seconds}s", proxy.OURS, 1,
                  {"requests": requests, "kills": kills, "failed": sum(failed.values()), "rss_warm_kb": warm, "rss_max_kb": highest})
    words = ", ".join(f"{name} {number}" for name, number in failed.items())
    report.say(f"{requests:,} requests, {kills} kills; failed: {words}; memory {warm:,} KB warm, {highest:,} KB at most; "
               f"descriptors {fds[0]} before, {fds[1]} after")
