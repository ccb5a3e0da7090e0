"""The TCP proxy: its CPU per GB of a long transfer, against HAProxy with splice.

A source sends to a sink by way of the proxy. The proxy has one core; source and sink share the other one, and spend little, since the bytes enter
neither of them.
"""

import contextlib
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from lib import process, servers
from lib.process import LoadTestError
from lib.report import table

DESCRIPTION = "CPU per GB of the TCP proxy, against HAProxy with splice"
PROGRAMS = ("tcp_proxy", "bulk")
OURS, REFERENCE = "tcp_proxy", "haproxy"
MUST, AIM = 1.00, 0.90
GB = 10**9
PIECE_BYTES = 1 << 20
CHECKED_BYTES = 8 * PIECE_BYTES + 4321  # compared byte by byte
LONGEST_S = 120
SETTLE_S = 0.1  # until the connection that found the proxy there has been passed on, and is over
HAPROXY = """global
  nbthread 1
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option splice-request
  option splice-response
listen proxy
  bind 127.0.0.1:{port}
  server behind 127.0.0.1:{upstream}
"""
CHARTS = (("s_per_gb", "CPU of the proxy per GB", "s"),)


def add_options(parser):
    parser.add_argument("--gigabytes", type=int, default=4, metavar="N", help="tcpproxy: of each transfer (default 4)")


def run(_specs, args, report):
    program = args.build / "examples" / OURS
    bulk = args.build / "loadtests" / "bulk"
    for needed in (program, bulk):
        if not needed.exists():
            raise LoadTestError(f"{needed} does not exist")
    if not haproxy_program():
        report.say("", "haproxy: not installed, so there is no comparison with it")
    with tempfile.TemporaryDirectory(prefix="tuza-tcpproxy-") as folder:
        piece = Path(folder) / "piece"
        piece.write_bytes(random.Random(1).randbytes(PIECE_BYTES))
        results = measure(bulk, piece, program, args, report)
    ours, theirs = results[OURS], results.get(REFERENCE, {})
    found = [ours[number] / theirs[number] for number in ours if number in theirs]
    ratio = statistics.median(found) if found else None
    rows = [[name, f"{statistics.median(values.values()):.3f}", f"{ratio:.2f}" if name == OURS and ratio else "-",
             f"{min(found):.2f}-{max(found):.2f}" if name == OURS and found else "-",
             report.bar("tcpproxy, ratio", ratio, MUST, AIM) if name == OURS and ratio else ""]
            for name, values in results.items() if values]
    report.say("", f"tcpproxy: medians of {args.rounds} transfers of {args.gigabytes} GB; one core for the proxy, one for source and sink",
               "", *table(["server", "s per GB", f"x {REFERENCE}", "range", "bar"], rows, left=1))


def specs_of(program, upstream):
    specs = [servers.Spec(OURS, (str(program), "--listen", "127.0.0.1:{port}", "--upstream", f"127.0.0.1:{upstream}"))]
    if haproxy := haproxy_program():
        specs.append(servers.Spec(REFERENCE, (haproxy, "-f", "{dir}/haproxy.cfg"), "http",
                                  (("haproxy.cfg", HAPROXY.replace("{upstream}", str(upstream))),)))
    return specs


def haproxy_program():
    return shutil.which("haproxy", path="/usr/sbin:/usr/bin")


def measure(bulk, piece, program, args, report):
    """{name: {round: CPU seconds per GB}}"""
    first, second, _ = process.allowed_cpus()
    with source(bulk, piece, CHECKED_BYTES, second) as short, source(bulk, piece, args.gigabytes * GB, second) as long:
        for spec in specs_of(program, short):
            with servers.serving(spec, first, None) as server:
                check(server, piece.read_bytes())
        specs = specs_of(program, long)
        results = {spec.name: {} for spec in specs}
        for number in range(args.rounds):
            for spec in specs if number % 2 == 0 else reversed(specs):
                with servers.serving(spec, first, None) as server:
                    time.sleep(SETTLE_S)
                    seconds = transfer(server, bulk, args.gigabytes * GB, second)
                results[spec.name][number] = seconds / args.gigabytes
                report.record("tcpproxy", f"{args.gigabytes} GB", spec.name, number + 1, {"s_per_gb": seconds / args.gigabytes})
                report.progress(f"round {number + 1}/{args.rounds}  {spec.name:10} {seconds / args.gigabytes:.3f} s per GB")
    return results


def transfer(server, bulk, size, cpus):
    """The CPU time that the proxy takes for it."""
    before = server.cpu_time().total_s
    got = int(process.run([str(bulk), "sink", str(server.port)], cpus, LONGEST_S))
    if got != size:
        raise server.error(f"{got} bytes instead of {size}")
    return server.cpu_time().total_s - before


def check(server, piece):
    wanted = (piece * (CHECKED_BYTES // len(piece) + 1))[:CHECKED_BYTES]
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        got = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    if got != wanted:
        raise server.error(f"{len(got)} bytes that are not those of the source")


@contextlib.contextmanager
def source(bulk, piece, size, cpus):
    """Its port."""
    port = servers.free_port()
    with process.running([str(bulk), "source", str(port), str(size), str(piece)], cpus, stdout=subprocess.PIPE, text=True) as child:
        if child.stdout.readline() != "ready\n":
            raise LoadTestError("bulk: the source does not listen")
        yield port
