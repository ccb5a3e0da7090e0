"""System calls of a running server, counted by strace.

strace slows a server down by an order of magnitude, so only the counts mean anything, never the times. The number of
connections that share one epoll_wait differs from that at full speed.
"""

import contextlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

from lib import process
from lib.process import LoadTestError

KINDS = {
    "read": ("read", "readv", "recvfrom", "recvmsg"),
    "write": ("write", "writev", "sendto", "sendmsg", "sendfile"),
    "epoll_wait": ("epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll"),
    "epoll_ctl": ("epoll_ctl",),
}
ATTACH_TIMEOUT_S = 10


@dataclass(frozen=True)
class Calls:
    count: int
    errors: int


def available():
    return shutil.which("strace") is not None


def parse_summary(text):
    """{name: Calls} from the output of `strace -c`: % time, seconds, usecs/call, calls, [errors], name."""
    calls = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) in (5, 6) and re.fullmatch(r"[\d.]+", fields[0]) and fields[-1] != "total":
            calls[fields[-1]] = Calls(int(fields[3]), int(fields[4]) if len(fields) == 6 else 0)
    return calls


def by_kind(calls):
    """{kind: Calls} for KINDS, and {name: Calls} for all other calls."""
    kinds = {kind: Calls(0, 0) for kind in KINDS}
    others = {}
    for name, found in calls.items():
        kind = next((kind for kind, names in KINDS.items() if name in names), None)
        if kind is None:
            others[name] = found
        else:
            kinds[kind] = Calls(kinds[kind].count + found.count, kinds[kind].errors + found.errors)
    return kinds, others


def wait_until_attached(tracer, messages, pids):
    deadline = time.monotonic() + ATTACH_TIMEOUT_S
    while True:
        messages.seek(0)
        text = messages.read().decode("utf-8", "replace")
        if all(f"Process {pid} attached" in text for pid in pids):
            return
        if tracer.poll() is not None or time.monotonic() > deadline:
            raise LoadTestError(f"strace could not attach: {text.strip()}")
        time.sleep(0.05)


@contextlib.contextmanager
def counting(pids, cpus):
    """Counts the calls of all threads of `pids` inside the `with`. Yields a dict, and fills it at the end."""
    calls = {}
    with tempfile.NamedTemporaryFile("r") as summary, tempfile.TemporaryFile() as messages:
        command = ["strace", "-c", "-f", "-o", summary.name]
        for pid in pids:
            command += ["-p", str(pid)]
        with process.running(command, cpus, stdout=subprocess.DEVNULL, stderr=messages) as tracer:
            wait_until_attached(tracer, messages, pids)
            yield calls
            process.stop(tracer, signal.SIGINT)  # detaches, then prints the summary
        calls.update(parse_summary(summary.read()))
        if not calls:
            raise LoadTestError("strace counted nothing")
