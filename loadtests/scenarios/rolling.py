"""Rolling restart: three instances behind HAProxy end and start again, one after another, and no request fails.

Two kinds of clients run all the time: keep-alive connections, and one connection per request. Restarts continue until
enough requests have been answered.
"""

import threading
import time

from lib import fleet, process, wrk
from lib.process import LoadTestError

DESCRIPTION = "rolling restart of three instances behind HAProxy: requests that fail"
REQUESTS = 100_000
LOADS = {"keep-alive": wrk.Load(32), "close": wrk.Load(8, headers=("Connection: close",))}
CYCLE_S = 60  # maximum, for all three restarts
WRK_S = 5


def add_options(parser):
    parser.add_argument("--requests", type=int, default=REQUESTS, metavar="N",
                        help=f"rolling: go on until so many were answered (default {REQUESTS})")


def run(_specs, args, report):
    report.say("", f"rolling: three instances restarted in turn until {args.requests:,} requests were answered")
    requests, errors, cycles, restart_s = 0, [], 0, []
    with fleet.running(args) as running:
        while requests < args.requests and not errors:
            found, times = cycle(running, args)
            cycles += 1
            restart_s += times
            for name, result in found.items():
                requests += result.requests
                errors += [f"{name}: {text}" for text in result.errors]
            report.record("rolling", "restart", "hello", cycles,
                          {"requests": sum(result.requests for result in found.values()), "restart_s": max(times),
                           "failed": sum(failures(text) for r in found.values() for text in r.errors)})
            report.progress(f"{cycles} times all three, {requests:,} requests, {len(errors)} kinds of errors")
    for error in errors:
        report.fail(f"rolling: {error}")
    report.say(f"{requests:,} requests, {3 * cycles} restarts of {min(restart_s):.1f}-{max(restart_s):.1f} s, "
               f"{'FAILED: ' + '; '.join(errors) if errors else '0 failed'}")


def failures(text):
    """The number of failed requests in one of wrk's error lines."""
    return sum(int(word.strip(",")) for word in text.split() if word.strip(",").isdigit())


def cycle(running, args):
    """Restarts all three instances under load. Returns ({kind of client: wrk.Result}, seconds of each restart)."""
    clients = Clients(running.url(args.path), LOADS)
    times = []
    try:
        for instance in running.instances:
            start = time.monotonic()
            instance.terminate()
            running.await_status("DOWN", [instance.name])
            instance.start()
            running.await_up(instance.name)
            times.append(time.monotonic() - start)
    finally:
        results = clients.finish()
    return results, times


class Clients:
    """Runs short wrk processes one after another until finish(): a wrk that is stopped early loses its count."""

    def __init__(self, url, loads):
        self._ending = threading.Event()
        self._found = {name: [] for name in loads}
        self._threads = [threading.Thread(target=self._run, args=(url, name, load)) for name, load in loads.items()]
        for thread in self._threads:
            thread.start()

    def _run(self, url, name, load):
        cpus = process.allowed_cpus()[2]
        end = time.monotonic() + CYCLE_S
        while not self._ending.is_set() and time.monotonic() < end:
            try:
                self._found[name].append(wrk.run(url, load, WRK_S, cpus))
            except LoadTestError as error:
                self._found[name].append(error)
                return

    def finish(self):
        """Ends the clients and returns {kind of client: one combined wrk.Result}."""
        self._ending.set()
        for thread in self._threads:
            thread.join()
        return {name: together(name, found) for name, found in self._found.items()}


def together(name, found):
    for result in found:
        if isinstance(result, LoadTestError):
            raise LoadTestError(f"{name}: {result}")
    return wrk.Result(sum(result.requests for result in found), sum(result.seconds for result in found), 0.0, 0.0,
                      tuple(text for result in found for text in result.errors))
