"""What tests that run for minutes do: ctest kills a test that hangs, and with it all that would explain the hang."""

import os
import pathlib
import shutil
import subprocess
import threading
import time

AFTER_S = 280  # nearly every test has a TIMEOUT of 300 s or more, and few take a minute
LOOK_EVERY_S = 5
DEBUGGER_S_MAX = 60


class Watch:
    """While it lasts, writes to a file what the threads do of each process that a child of this one has started, once it
    has run for AFTER_S."""

    def __init__(self, log):
        self.log = log
        self.described = set()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look_repeatedly, daemon=True)

    def __enter__(self):
        self.log.unlink(missing_ok=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def look_repeatedly(self):
        while not self.over.wait(min(LOOK_EVERY_S, AFTER_S)):
            tests = [test for child in children(os.getpid()) for test in children(child)]
            for process in [*tests, *(below for test in tests for below in descendants(test))]:
                if process not in self.described and age_s(process) >= AFTER_S:
                    self.described.add(process)
                    with open(self.log, "a") as file:
                        file.write(description(process))


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace").strip()
    except OSError:  # it has ended, or we may not
        return ""


def children(process):
    return [int(child) for task in tasks(process) for child in read(task / "children").split()]


def descendants(process):
    return [one for child in children(process) for one in [child, *descendants(child)]]


def tasks(process):
    try:
        return list(pathlib.Path(f"/proc/{process}/task").iterdir())
    except OSError:  # it has ended
        return []


def age_s(process):
    stat = read(f"/proc/{process}/stat").rpartition(")")[2].split()
    if not stat:
        return 0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(stat[19]) / os.sysconf("SC_CLK_TCK")


def description(process):
    command = read(f"/proc/{process}/cmdline").replace("\0", " ")
    lines = [f"== process {process}, after {age_s(process):.0f} s: {command}"]
    for task in tasks(process):
        stat = read(task / "stat").rpartition(")")[2].split() or ["gone"]
        lines.append(f"{task.name} {read(task / 'comm')}: state {stat[0]}, waits in {read(task / 'wchan') or '?'}, "
                     f"system call {read(task / 'syscall') or '?'}")
    return "\n".join([*lines, backtraces(process), ""])


def backtraces(process):
    if shutil.which("gdb") is None:
        return "no gdb, so no backtraces"
    command = ["gdb", "-nx", "-batch", "-p", str(process), "-ex", "thread apply all backtrace 40"]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=DEBUGGER_S_MAX).stdout
    except subprocess.TimeoutExpired:
        return f"gdb has not answered within {DEBUGGER_S_MAX} s"
