"""Runs wrk on given CPUs, and parses its report."""

import contextlib
import re
import resource
import tempfile
from dataclasses import dataclass

from lib import process
from lib.process import LoadTestError

UNITS_US = {"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6}

# request() always returns the same text; wrk counts the requests in it once, at its start.
PIPELINE_LUA = """
init = function(args)
  local requests = {{}}
  for i = 1, {depth} do requests[i] = wrk.format() end
  batch = table.concat(requests)
end
request = function() return batch end
"""


POST_LUA = """
wrk.method = "POST"
wrk.body = "{body}"
"""


@dataclass(frozen=True)
class Load:
    connections: int
    threads: int = 1
    pipeline: int = 1
    post: str = ""  # if set, requests are POST with this body (letters and digits); not with `pipeline`
    headers: tuple = ()  # "Name: value"
    lua: str = ""  # a script of its own, which prints "Wrong answers: N" if there are any; with neither of these two
    openssl_conf: str = ""  # an OpenSSL configuration for the client, instead of the system's


@dataclass(frozen=True)
class Result:
    requests: int
    seconds: float
    p50_us: float
    p99_us: float
    errors: tuple  # texts; empty if all went well
    client_cpu_s: float = 0.0

    @property
    def rate(self):
        return self.requests / self.seconds


def parse(text):
    """A Result from the output of `wrk --latency`."""
    total = re.search(r"^\s*(\d+) requests in ([\d.]+)(us|ms|s|m|h),", text, re.M)
    if not total:
        raise LoadTestError(f"wrk printed no total: {text.strip()}")
    percentiles = {
        percent: float(value) * UNITS_US[unit]
        for percent, value, unit in re.findall(r"^\s+([\d.]+)%\s+([\d.]+)(us|ms|s|m|h)\s*$", text, re.M)
    }
    if "50" not in percentiles or "99" not in percentiles:
        raise LoadTestError("wrk printed no latency distribution")
    errors = re.findall(r"^\s*(Socket errors: .*|Non-2xx .*|Wrong answers: .*)$", text, re.M)
    requests = int(total[1])
    if requests == 0:
        errors.append("no request was answered")
    return Result(requests, float(total[2]) * UNITS_US[total[3]] / 1e6, percentiles["50"], percentiles["99"],
                  tuple(error.strip() for error in errors))


@contextlib.contextmanager
def script(load):
    """The wrk options for several requests in one write, for POST, or for a script: a temporary Lua file, or nothing."""
    if load.pipeline == 1 and not load.post and not load.lua:
        yield []
        return
    text = load.lua or (POST_LUA.format(body=load.post) if load.post else PIPELINE_LUA.format(depth=load.pipeline))
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(text)
        file.flush()
        yield ["-s", file.name]


def children_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(url, load, seconds, cpus):
    """Runs wrk for `seconds` (whole) on the CPU set `cpus`. Errors that wrk counted are in the Result."""
    before = children_cpu_s()
    with script(load) as options:
        command = ["wrk", "--latency", f"-t{load.threads}", f"-c{load.connections}", f"-d{seconds}s"]
        for header in load.headers:
            command += ["-H", header]
        environment = {"OPENSSL_CONF": load.openssl_conf} if load.openssl_conf else None
        output = process.run(command + options + [url], cpus, seconds + 15, environment)
    result = parse(output)
    # wrk is the only child that ended meanwhile; getrusage counts children that were waited for.
    return Result(**{**result.__dict__, "client_cpu_s": children_cpu_s() - before})
