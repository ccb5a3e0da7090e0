"""Waiting: the memory of a WebSocket, and of a stream of events, on which nothing happens.

It is the growth of the server process for each, when each has had one message or event. The kernel's socket memory is not
included. Afterwards every WebSocket must still answer, and no stream may have ended or said anything.
"""

import contextlib
import random
import time

from lib import http, process, servers, web_clients
from lib.process import LoadTestError
from lib.report import table
from scenarios import idle

DESCRIPTION = "memory per WebSocket and per stream of events on which nothing happens"
SCENARIO = "waiting"
PROGRAMS = ("web_server",)
NAME = "web_server"
MUST_KB, AIM_KB = 6, 4
WARM_UP = 50
HELD_S = 10
CHARTS = (("rss_bytes", "Memory for each that waits", "bytes"),)


def add_options(parser):
    parser.add_argument("--waiting", type=int, default=10000, metavar="N", help="waiting: of each kind (default 10000)")


def open_websocket(port):
    stream = web_clients.Stream(port)
    web_clients.upgrade(stream)
    echo(stream)
    return stream


def echo(stream):
    stream.socket.sendall(web_clients.masked(0x81, b"hello", random))
    if web_clients.message(stream) != (0x81, b"hello"):
        raise LoadTestError("another message came back")


def open_events(port):
    stream = web_clients.Stream(port)
    stream.socket.sendall(b"GET /quiet HTTP/1.1\r\nHost: h\r\n\r\n")
    stream.until(b"data: quiet\n\n")
    stream.until(b"\r\n")  # the end of its chunk
    return stream


def still_quiet(stream):
    stream.socket.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        stream.socket.recv(1)
        raise LoadTestError("a stream has ended, or says something")


KINDS = {"websocket": (open_websocket, echo), "events": (open_events, still_quiet)}


def run(_specs, args, report):
    count = min(args.waiting, process.raise_descriptor_limit() - idle.SPARE_DESCRIPTORS)
    program = str(args.build / "loadtests" / NAME)
    spec = servers.Spec(NAME, (program, "--listen", "127.0.0.1:{port}"))
    rows = []
    for kind, (make, check) in KINDS.items():
        try:
            found = measure(spec, count, make, check, args)
        except (LoadTestError, OSError) as error:
            report.fail(f"{SCENARIO}, {kind}: {error}")
            continue
        report.record(SCENARIO, kind, NAME, 1, {"rss_bytes": found})
        rows.append([kind, f"{found:,.0f}", report.bar(f"{SCENARIO}, KB for each {kind}", found / 1024, MUST_KB, AIM_KB)])
    report.say("", f"{SCENARIO}: bytes of growth for each of {count:,} after {HELD_S} s", "",
               *table(["kind", "bytes", "bar, KB"], rows, left=1))


def measure(spec, count, make, check, args):
    """Bytes for each."""
    with servers.serving(spec, process.allowed_cpus()[0], args.path) as server:
        http.verify(server.port, args.path, args.body)
        with contextlib.ExitStack() as first:
            for _ in range(WARM_UP):
                first.enter_context(make(server.port))
        time.sleep(1)  # until these have gone
        before = server.memory_kb()["Rss"]
        with contextlib.ExitStack() as crowd:
            streams = [crowd.enter_context(make(server.port)) for _ in range(count)]
            time.sleep(HELD_S)
            grown = server.memory_kb()["Rss"] - before
            for stream in streams:
                check(stream)
        return grown * 1024 / count
