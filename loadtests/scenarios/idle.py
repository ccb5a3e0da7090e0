"""Idle: the memory of an idle keep-alive connection, and the CPU time of a server while all connections are idle.

Memory is the server process's growth per connection, after each connection has had one request answered. The kernel's
socket memory is not included, and is the same for all servers. Memory is read twice, because a runtime may give memory
back only when a connection has been idle for some seconds. Afterwards every connection must still work.
"""

import time

from lib import http, process, servers
from lib.clients import Crowd
from lib.process import LoadTestError
from lib.report import table

DESCRIPTION = "memory per idle keep-alive connection, CPU of an idle server"
SPARE_DESCRIPTORS = 300
READ_AFTER_S = (1, 10)
CPU_WINDOW_S = 5
MEMORY_MUST_KB, MEMORY_AIM_KB = 6, 1
# "Uses no CPU", with allowance for reading the clock now and then: a thousandth of a core.
CPU_MUST_MS, CPU_AIM_MS = 5, 1
CHARTS = (("Rss_10s_bytes", "Memory per idle connection after 10 s", "bytes"),)


def add_options(parser):
    parser.add_argument("--idle", type=int, default=18000, metavar="N", help="connections (default 18000)")


def run(specs, args, report):
    measure_all("idle", specs, args.idle, args, report, (MEMORY_MUST_KB, MEMORY_AIM_KB))


def measure_all(scenario, specs, count, args, report, memory_bars_kb):
    """Measures `specs` with `count` connections each, over TLS too, under the name `scenario`, and shows the table."""
    limit = process.raise_descriptor_limit() - SPARE_DESCRIPTORS
    wanted, count = count, min(count, limit)
    report.say("", f"{scenario}: {count:,} connections" +
               (f" (the descriptor limit allows no more than {limit:,})" if count < wanted else ""))
    if count < 1:
        raise LoadTestError(f"{scenario} needs at least one connection")
    rows = []
    for spec in specs:
        try:
            rows.append(measure(scenario, spec, count, args, report, memory_bars_kb))
        except LoadTestError as error:
            report.fail(f"{scenario}: {error}")
    if rows:
        memory = [f"{name} {after} s" for after in READ_AFTER_S for name in ("Rss", "Pss", "VmPTE")]
        headers = ["server", *memory, "Rss closed", f"CPU ms/{CPU_WINDOW_S} s: none", "switches", "all idle",
                   "switches"]
        report.say("", "bytes of growth per connection; CPU and voluntary context switches of the server in "
                   f"{CPU_WINDOW_S} s", "without connections and with all of them idle", "",
                   *table(headers, [row for row, _ in rows], left=1),
                   *(line for _, lines in rows for line in lines))


def measure(scenario, spec, count, args, report, memory_bars_kb):
    """Returns (row of the table, lines about the bars)."""
    server_cpu = process.allowed_cpus()[0]
    with servers.serving(spec, server_cpu, args.path) as server:
        http.verify(server.port, args.path, args.body, scheme=spec.scheme)
        time.sleep(1)  # until work left over from the start is done
        before = server.memory_kb()
        quiet_ms, quiet_switches = idle_cpu(server)
        with Crowd(server.port, args.path, args.body, spec.scheme) as crowd:
            report.progress(f"{spec.name}: opening {count:,} connections")
            crowd.open(count)
            opened = time.monotonic()
            growth = []
            for after in READ_AFTER_S:
                time.sleep(max(0.0, opened + after - time.monotonic()))
                growth.append(per_connection(server.memory_kb(), before, count))
            held_ms, held_switches = idle_cpu(server)
            if disturbed := crowd.disturbed():
                raise server.error(f"{disturbed} of {count} idle connections were closed or written to")
            crowd.ask_all()
        time.sleep(1)
        closed = per_connection(server.memory_kb(), before, count)
        http.verify(server.port, args.path, args.body, scheme=spec.scheme)
    metrics = {f"{name}_{after}s_bytes": found[name]
               for after, found in zip(READ_AFTER_S, growth) for name in found}
    metrics |= {"rss_closed_bytes": closed["Rss"], "cpu_none_ms": quiet_ms, "switches_none": quiet_switches,
                "cpu_idle_ms": held_ms, "switches_idle": held_switches}
    report.record(scenario, str(count), spec.name, 1, metrics)
    row = [spec.name, *(f"{value:,.0f}" for found in growth for value in found.values()),
           f"{closed['Rss']:,.0f}", f"{quiet_ms:.2f}", quiet_switches, f"{held_ms:.2f}", held_switches]
    return row, bars(scenario, spec, growth[-1]["Rss"], memory_bars_kb, (quiet_ms, held_ms), report)


def per_connection(memory_kb, before_kb, count):
    """{name: bytes}"""
    return {name: (memory_kb[name] - before_kb[name]) * 1024 / count for name in memory_kb}


def idle_cpu(server):
    """Returns (CPU ms, voluntary context switches) of the next CPU_WINDOW_S seconds."""
    cpu, switches = server.cpu_time(), server.voluntary_switches()
    time.sleep(CPU_WINDOW_S)
    return (server.cpu_time() - cpu).total_s * 1e3, server.voluntary_switches() - switches


def bars(scenario, spec, rss_bytes, memory_bars_kb, cpu_ms, report):
    if spec.name != servers.OURS:
        return []
    lines = [("KB per idle connection", rss_bytes / 1024, *memory_bars_kb)]
    for when, value in zip(("without connections", "all connections idle"), cpu_ms):
        lines.append((f"CPU ms in {CPU_WINDOW_S} s, {when}", value, CPU_MUST_MS, CPU_AIM_MS))
    return [""] + [f"{spec.name}, {what}: {value:.2f}  {report.bar(f'{scenario}, {what}', value, must, aim)}"
                   for what, value, must, aim in lines]
