"""Faults: an instance killed behind HAProxy, drains with work in flight, and the time from start to first answer.

`kill`: one of three instances is killed with SIGKILL under load, with GET, which HAProxy may repeat, and with POST,
which HAProxy must not repeat. At most the requests in flight on that instance may fail, and none after that.
`drain`: at SIGTERM a request in progress is finished, and an idle connection is closed. A request that does not end is
cut off at the deadline. `start`: the time from the start of the process to the first complete answer.
"""

import contextlib
import signal
import socket
import statistics
import subprocess
import time

from lib import fleet, http, process, servers, wrk
from lib.process import LoadTestError
from scenarios import rolling

DESCRIPTION = "an instance killed behind HAProxy, drains and their deadline, start to first answer"
LOADS = {"GET": wrk.Load(48), "POST": wrk.Load(48, post="0123456789")}
PATHS = {"GET": "/plaintext", "POST": "/echo"}
BEFORE_S, SETTLED_S = 1.5, 3
DEADLINE_S, DEADLINE_ROOM_S = 2, 1.0
STARTS = 20
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
START_MUST_MS, START_AIM_MS = 50, 20


def add_options(_parser):
    pass


def run(_specs, args, report):
    for part in (kill, drain_finishes, drain_cuts_off, start):
        try:
            part(args, report)
        except LoadTestError as error:
            report.fail(f"faults: {part.__name__}: {error}")


def kill(args, report):
    with fleet.running(args) as running:
        for method, load in LOADS.items():
            victim = running.instances[0]
            clients = rolling.Clients(running.url(PATHS[method]), {method: load})
            time.sleep(BEFORE_S)
            victim.kill()
            result = clients.finish()[method]
            failed = sum(rolling.failures(text) for text in result.errors)
            after = rolling.Clients(running.url(PATHS[method]), {method: load})
            time.sleep(SETTLED_S)
            later = after.finish()[method]
            victim.start()
            running.await_up(victim.name)
            report.say("", f"faults: kill -9 under {method}: {result.requests:,} requests, {failed} failed, at most "
                       f"{load.connections} in flight; then {later.requests:,} with two instances")
            report.record("faults", f"kill {method}", "hello", 1, {"requests": result.requests, "failed": failed})
            if failed > load.connections:
                report.fail(f"faults: kill: {failed} {method} requests failed, of {load.connections} in flight")
            if later.errors:
                report.fail(f"faults: kill: with the instance gone for seconds: {'; '.join(later.errors)}")


@contextlib.contextmanager
def lone_server(args):
    """hello with a short deadline; the body of the `with` decides how it ends."""
    command = (*servers.parse_specs(servers.OURS, args.build)[0].command, "--set",
               f"shutdown.timeout={DEADLINE_S}s")
    port = servers.free_port()
    child = process.spawn([word.replace("{port}", str(port)) for word in command], process.allowed_cpus()[0],
                          **QUIET)
    try:
        await_answer(port, child, args.path)
        yield port, child
    finally:
        process.stop(child)


def await_answer(port, child, path):
    deadline = time.monotonic() + servers.START_TIMEOUT_S
    while True:
        try:
            return http.exchange(port, path, timeout_s=1)
        except LoadTestError:
            if child.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.0005)


def half_a_request(port):
    """A connection with a request whose body is still to come."""
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n01234")
    return connection


def drain_finishes(args, report):
    with lone_server(args) as (port, child):
        with half_a_request(port) as busy, socket.create_connection(("127.0.0.1", port), 10) as idle:
            idle.sendall(http.request_text(args.path))
            http.receive(idle, 1, 5)
            time.sleep(0.2)  # until the half request has reached its handler
            started = time.monotonic()
            child.send_signal(signal.SIGTERM)
            if idle.recv(1):
                raise LoadTestError("an idle connection was sent something instead of being closed")
            busy.sendall(b"56789")
            answer = http.receive(busy, 1, 5)[0]
            status = child.wait(DEADLINE_S + 10)
    took = time.monotonic() - started
    http.check_response(answer, b"0123456789")
    if answer.headers.get("connection", "").lower() != "close":
        raise LoadTestError(f"the last answer does not say that the connection ends: {answer.headers}")
    if status != 0:
        raise LoadTestError(f"everything was finished, yet it ended with status {status}")
    report.say(f"faults: drain: the request under way was answered, the idle connection closed; ended after {took:.2f} s")


def drain_cuts_off(args, report):
    with lone_server(args) as (port, child):
        with half_a_request(port):
            time.sleep(0.2)
            started = time.monotonic()
            child.send_signal(signal.SIGTERM)
            status = child.wait(DEADLINE_S + 30)
            took = time.monotonic() - started
    report.record("faults", "deadline", "hello", 1, {"drain_s": took})
    report.say(f"faults: drain: a request that never ends was cut off after {took:.2f} s, the deadline is {DEADLINE_S} s; "
               f"exit status {status}")
    if not DEADLINE_S - 0.1 <= took <= DEADLINE_S + DEADLINE_ROOM_S:
        report.fail(f"faults: drain: {took:.2f} s instead of {DEADLINE_S}")
    if status != 1:
        report.fail(f"faults: drain: exit status {status} after something was cut off, instead of 1")


def start(args, report):
    found = []
    command = servers.parse_specs(servers.OURS, args.build)[0].command
    for number in range(STARTS):
        port = servers.free_port()
        words = [word.replace("{port}", str(port)) for word in command]
        began = time.monotonic()
        with process.running(words, process.allowed_cpus()[0], **QUIET) as child:
            http.check_response(await_answer(port, child, args.path)[0], args.body)
            found.append((time.monotonic() - began) * 1e3)
        report.record("faults", "start", "hello", number + 1, {"first_answer_ms": found[-1]})
    middle = statistics.median(found)
    words = report.bar("faults, start to first answer in ms", middle, START_MUST_MS, START_AIM_MS)
    report.say(f"faults: start to first answer: {middle:.1f} ms ({min(found):.1f}-{max(found):.1f}), {STARTS} starts, "
               f"Python's start of the process included  {words}")
