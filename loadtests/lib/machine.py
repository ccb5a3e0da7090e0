"""The head of every report: machine, compiler, commit and tools. A number without them means nothing."""

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path


def output_of(*command, default="unknown"):
    """The first line that a short command prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return default
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines and "not a git repository" not in lines[0] else default


def parse_cmake_cache(text):
    """{name: value} of a CMakeCache.txt."""
    entries = {}
    for line in text.splitlines():
        if line and not line.startswith(("#", "//")):
            name, _, value = line.partition("=")
            entries[name.split(":")[0]] = value
    return entries


def build_description(build):
    """Compiler and flags of the build directory, and any build option that would spoil a measurement."""
    try:
        cache = parse_cmake_cache((build / "CMakeCache.txt").read_text(encoding="utf-8"))
    except OSError:
        return f"unknown (no CMakeCache.txt in {build})"
    compiler = output_of(cache.get("CMAKE_CXX_COMPILER", "c++"), "--version")
    kind = cache.get("CMAKE_BUILD_TYPE", "")
    flags = f"{cache.get('CMAKE_CXX_FLAGS', '')} {cache.get(f'CMAKE_CXX_FLAGS_{kind.upper()}', '')}".strip()
    text = f"{compiler}; {kind}: {flags}"
    if cache.get("TUZA_SANITIZE"):
        text += f"; WITH SANITIZERS {cache['TUZA_SANITIZE']}"
    if cache.get("TUZA_CHAOS", "OFF") not in ("OFF", ""):
        text += "; CHAOS BUILD"
    return text


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def commit(repository):
    name = output_of("git", "-C", str(repository), "rev-parse", "--short", "HEAD")
    changed = output_of("git", "-C", str(repository), "status", "--porcelain", "-uno", default="")
    return f"{name}+changes" if changed else name


def rivals():
    """The servers that others are compared with, as installed: "nginx 1.22.1, Go 1.19.8, HAProxy 2.6.12"."""
    found = []
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    for name, word, pattern in (("nginx", "-v", r"nginx/(\S+)"), ("Go", "version", r"\bgo(\d\S*)"),
                                ("HAProxy", "-v", r"version (\d[\d.]*)")):
        program = shutil.which(name.lower(), path=path)
        if program and (version := re.search(pattern, output_of(program, word))):
            found.append(f"{name} {version[1]}")
    return ", ".join(found) or "none installed"


def describe(build, commit_name, date):
    """Lines for the head of a report."""
    allowed = len(os.sched_getaffinity(0))
    return [
        f"machine   {cpu_model()}, {allowed} of {os.cpu_count()} CPUs, Linux {platform.release()}",
        f"compiler  {build_description(build)}",
        f"commit    {commit_name}",
        f"date      {date}",
        f"tools     {output_of('wrk', '-v').split(' Copyright')[0]}; Python {platform.python_version()}",
        f"rivals    {rivals()}",
        f"load      {os.getloadavg()[0]:.2f} in the last minute",
    ]


def now():
    return time.strftime("%Y-%m-%d %H:%M:%S %z")


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[2]
    print(*describe(Path(sys.argv[1]), commit(here), now()), sep="\n")
