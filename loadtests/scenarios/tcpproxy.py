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

from lib import process, procfs, servers
from lib.process import LoadTestError
from lib.report import table

DESCRIPTION = "CPU per GB of the TCP proxy, against HAProxy with splice"
OURS, REFERENCE = "tcp_proxy", "haproxy"
MUST, AIM = 1.00, 0.90
GB = 10**9
PIECE_BYTES = 1 << 20
CHECKED_BYTES = 8 * PIECE_BYTES + 4321  # compared byte by byte
LONGEST_S = 120
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


def specs_of(program, upstream, report):
    specs = [servers.Spec(OURS, (str(program), "--listen", "127.0.0.1:{port}", "--upstream", f"127.0.0.1:{upstream}"))]
    if haproxy := shutil.which("haproxy", path="/usr/sbin:/usr/bin"):
        specs.append(servers.Spec(REFERENCE, (haproxy, "-f", "{dir}/haproxy.cfg"), "http",
                                  (("haproxy.cfg", HAPROXY.replace("{upstream}", str(upstream))),)))
    else:
        report.say("", "haproxy: not installed, so there is no comparison with it")
    return specs


def measure(bulk, piece, program, args, report):
    """{name: {round: CPU seconds per GB}}"""
    first, second, _ = process.allowed_cpus()
    with source(bulk, piece, CHECKED_BYTES, second) as short, source(bulk, piece, args.gigabytes * GB, second) as long:
        for spec in specs_of(program, short, report):
            with proxy(spec, first) as (port, _pid):
                check(spec.name, port, piece.read_bytes())
        specs = specs_of(program, long, report)
        results = {spec.name: {} for spec in specs}
        for number in range(args.rounds):
            for spec in specs if number % 2 == 0 else reversed(specs):
                with proxy(spec, first) as (port, pid):
                    seconds = transfer(spec.name, bulk, port, pid, args.gigabytes * GB, second)
                results[spec.name][number] = seconds / args.gigabytes
                report.record("tcpproxy", f"{args.gigabytes} GB", spec.name, number + 1, {"s_per_gb": seconds / args.gigabytes})
                report.progress(f"round {number + 1}/{args.rounds}  {spec.name:10} {seconds / args.gigabytes:.3f} s per GB")
    return results


def transfer(name, bulk, port, pid, size, cpus):
    """The CPU time that the proxy takes for it."""
    before = procfs.cpu_time([pid]).total_s
    got = int(process.run([str(bulk), "sink", str(port)], cpus, LONGEST_S))
    if got != size:
        raise LoadTestError(f"{name}: {got} bytes instead of {size}")
    return procfs.cpu_time([pid]).total_s - before


def check(name, port, piece):
    wanted = (piece * (CHECKED_BYTES // len(piece) + 1))[:CHECKED_BYTES]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        got = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    if got != wanted:
        raise LoadTestError(f"{name}: {len(got)} bytes that are not those of the source")


@contextlib.contextmanager
def source(bulk, piece, size, cpus):
    """Its port."""
    port = servers.free_port()
    with process.running([str(bulk), "source", str(port), str(size), str(piece)], cpus, stdout=subprocess.PIPE, text=True) as child:
        if child.stdout.readline() != "ready\n":
            raise LoadTestError("bulk: the source does not listen")
        yield port


@contextlib.contextmanager
def proxy(spec, cpus):
    """Its port and its pid, when it takes connections."""
    port = servers.free_port()
    with tempfile.TemporaryDirectory(prefix="tuza-load-") as directory:
        command = servers.prepared(spec, port, directory)
        with process.running(command, cpus, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            deadline = time.monotonic() + servers.START_TIMEOUT_S
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError as error:
                    if child.poll() is not None or time.monotonic() > deadline:
                        raise LoadTestError(f"{spec.name}: takes no connections: {error}") from error
                    time.sleep(0.02)
            time.sleep(0.1)  # the connection that asked has been passed on, and is over
            yield port, child.pid
