"""Slow readers: thousands of clients ask for a file and read next to nothing, while others fetch a small one.

The latency is that of a small file on a new connection each time, 60 a second, before the slow readers and while they
arrive and stay. CPU time and memory are the server's growth for each slow reader. The kernel's socket memory is not
included, and is the same for all servers.
"""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lib import http, process, servers
from lib.process import LoadTestError
from lib.report import duration, table
from scenarios import files

DESCRIPTION = "4,000 clients that do not read a file: latency for others, CPU and memory, against nginx"
SCENARIO = "slowreaders"
SMALL, LARGE = "/small.txt", "/large.bin"
LARGE_BYTES = 589_000
PROBES_PER_SECOND = 60
QUIET_S, HELD_S, GONE_S = 20, 20, 5
P99_MUST, P99_AIM = 2.0, 1.5  # times the one without slow readers
KB_MUST, KB_AIM = 10.0, 8.0
OPEN_TIMEOUT_S = 60
READERS = Path(__file__).parent.parent / "lib" / "slow_readers.py"


def add_options(parser):
    parser.add_argument("--slow-readers", type=int, default=4000, metavar="N", help="slowreaders: how many (default 4000)")


def run(_specs, args, report):
    process.raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="tuza-files-") as folder:
        Path(folder).chmod(0o755)  # nginx serves as another user
        (Path(folder) / SMALL[1:]).write_text("0123456789\n", encoding="ascii")
        (Path(folder) / LARGE[1:]).write_bytes(random.Random(LARGE).randbytes(LARGE_BYTES))
        time.sleep(files.SETTLED_S)
        rows = []
        for spec in files.specs_of(folder, args, report):
            if spec.name in (files.OURS, files.REFERENCE):
                try:
                    rows.append(measure(spec, args, report))
                except LoadTestError as error:
                    report.fail(f"{SCENARIO}: {error}")
    headers = ["server", "p50", "p99", "p99 with", "CPU us", "bytes", "bytes kept"]
    report.say("", f"slowreaders: {args.slow_readers:,} clients ask for {LARGE_BYTES:,} bytes and read 32 bytes every 5 s;",
               f"small files beside them; growth for each of them after {HELD_S} s, and when they have gone", "",
               *table(headers, rows, left=1), "", *bars(report))


def bars(report):
    """One line for each."""
    of_ours = {metric: float(value) for scenario, _, server, metric, value in report.medians()
               if (scenario, server) == (SCENARIO, files.OURS)}
    if not of_ours:
        return []
    growth = of_ours["loaded_p99_us"] / of_ours["quiet_p99_us"]
    kilobytes = of_ours["held_bytes"] / 1024
    return [f"{what}: {value:.2f}  {report.bar(f'{SCENARIO}, {what}', value, must, aim)}"
            for what, value, must, aim in (("p99 with them, times the one without", growth, P99_MUST, P99_AIM),
                                           ("KB for each", kilobytes, KB_MUST, KB_AIM))]


def measure(spec, args, report):
    """Returns a row of the table."""
    server_cpu, client_cpu, _ = process.allowed_cpus()
    count = args.slow_readers
    with servers.serving(spec, server_cpu, SMALL) as server:
        quiet = probe(server.port, QUIET_S)
        memory, cpu = server.memory_kb()["Rss"], server.cpu_time()
        command = [sys.executable, str(READERS), str(server.port), LARGE, str(count)]
        report.progress(f"{spec.name}: {count:,} slow readers")
        with process.running(command, client_cpu, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as readers:
            loaded = probe(server.port, HELD_S)
            if readers.poll() is not None or readers.stdout.readline() != "open\n":
                raise LoadTestError(f"{spec.name}: the slow readers have ended")
            held, used = server.memory_kb()["Rss"], server.cpu_time() - cpu
        time.sleep(GONE_S)
        kept = server.memory_kb()["Rss"]
    metrics = {"quiet_p50_us": percentile(quiet, 0.5), "quiet_p99_us": percentile(quiet, 0.99),
               "loaded_p99_us": percentile(loaded, 0.99), "cpu_us": used.total_s * 1e6 / count,
               "held_bytes": (held - memory) * 1024 / count, "kept_bytes": (kept - memory) * 1024 / count}
    report.record(SCENARIO, str(count), spec.name, 1, metrics)
    return [spec.name, *(duration(metrics[name]) for name in ("quiet_p50_us", "quiet_p99_us", "loaded_p99_us")),
            *(f"{metrics[name]:,.0f}" for name in ("cpu_us", "held_bytes", "kept_bytes"))]


def probe(port, seconds):
    """The sorted latencies, in microseconds, of a small file on a new connection each time."""
    latencies, began = [], time.monotonic()
    for i in range(int(seconds * PROBES_PER_SECOND)):
        time.sleep(max(0.0, began + i / PROBES_PER_SECOND - time.monotonic()))
        asked = time.perf_counter()
        http.exchange(port, SMALL, timeout_s=30)
        latencies.append((time.perf_counter() - asked) * 1e6)
    return sorted(latencies)


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
