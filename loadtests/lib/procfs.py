"""Reads from /proc the CPU time, memory and context switches of processes, and how busy the whole machine is.

Functions named parse_* take the text of a file, so tests need no real /proc.
"""

import os
import time
from dataclasses import dataclass

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CpuTime:
    """CPU time up to a moment, or between two moments (a - b).

    The total is the processes' CPU clock, exact to the nanosecond. The kernel divides it into user and system time by
    sampling at its timer ticks, so the division is only a sample: of 4 s at 250 Hz, 1,000 ticks.
    """

    total_s: float
    user_ticks: int
    system_ticks: int

    def __sub__(self, other):
        return CpuTime(self.total_s - other.total_s, self.user_ticks - other.user_ticks,
                       self.system_ticks - other.system_ticks)

    @property
    def user_s(self):
        ticks = self.user_ticks + self.system_ticks
        return self.total_s * self.user_ticks / ticks if ticks else 0.0

    @property
    def system_s(self):
        return self.total_s - self.user_s


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def parse_stat(text):
    """(session id, user ticks, system ticks) from /proc/PID/stat, for all threads, including ended ones."""
    fields = text[text.rindex(")") + 2:].split()  # the name before it may contain spaces and parentheses
    return int(fields[3]), int(fields[11]), int(fields[12])


def parse_fields(text, names):
    """Returns {name: number} of lines such as `Rss:   123 kB`; a missing name has 0."""
    found = dict.fromkeys(names, 0)
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in found:
            found[name] = int(value.split()[0])
    return found


def parse_busy_ticks(text):
    """Returns the ticks, from /proc/stat, in which the CPUs were not idle: all CPUs together, with steal time."""
    fields = [int(field) for field in text.split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields[:8]
    return user + nice + system + irq + softirq + steal


def session_members(session):
    """The pids of a session: a server started by process.spawn, and the workers that it started."""
    members = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if parse_stat(read(f"/proc/{name}/stat"))[0] == session:
                members.append(int(name))
        except OSError:
            pass  # ended during the scan
    return sorted(members)


def cpu_time(pids):
    """CPU time of `pids` together, up to now."""
    total_ns = user_ticks = system_ticks = 0
    for pid in pids:
        # The clock id that clock_getcpuclockid(3) makes, which Python lacks: the pid's complement, and 2 for the
        # scheduler's count.
        total_ns += time.clock_gettime_ns((~pid << 3) | 2)
        _, user, system = parse_stat(read(f"/proc/{pid}/stat"))
        user_ticks += user
        system_ticks += system
    return CpuTime(total_ns / 1e9, user_ticks, system_ticks)


def memory_kb(pids):
    """Rss, Pss and page tables (VmPTE) of `pids` together, in KiB."""
    total = {"Rss": 0, "Pss": 0, "VmPTE": 0}
    for pid in pids:
        found = parse_fields(read(f"/proc/{pid}/smaps_rollup"), ("Rss", "Pss"))
        found |= parse_fields(read(f"/proc/{pid}/status"), ("VmPTE",))
        for name, value in found.items():
            total[name] += value
    return total


def voluntary_switches(pids):
    """How often the threads of `pids` went to sleep. Counts only threads that still exist."""
    name = "voluntary_ctxt_switches"
    count = 0
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            try:
                count += parse_fields(read(f"/proc/{pid}/task/{thread}/status"), (name,))[name]
            except OSError:
                pass  # the thread ended
    return count


def busy_s():
    """Seconds since boot in which the machine's CPUs were not idle, with the resolution of ticks."""
    return parse_busy_ticks(read("/proc/stat")) / TICKS_PER_S
