"""A service on PostgreSQL: how many rows it answers, against the same in Go with database/sql and Debian's driver.

Service, database and wrk share both cores, and each has enough to do; so requests per second are a measure of all that a request costs, in the
service and in the database. The database is started anew, in memory as far as possible.
"""

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from lib import golang, peers, process, rounds, servers, wrk
from lib.process import LoadTestError
from lib.rounds import Case

DESCRIPTION = "rows per second of a service on PostgreSQL, 64 connections, against Go's database/sql"
PROGRAMS = ("database_server",)
OURS, PREPARED, PLAIN = "database_server", "go-prepared", "go"
ROOT = Path(__file__).resolve().parents[2]
GO_SOURCE = peers.GO_SOURCE.with_name("database_go")
GO_LIBRARIES = "/usr/share/gocode"  # where Debian's packages of Go's libraries are
ROWS = 10_000
TABLE = f"""CREATE TABLE notes(id integer PRIMARY KEY, title text, body text);
INSERT INTO notes SELECT i, 'title ' || i, repeat('x', 200) FROM generate_series(1, {ROWS}) i;
ANALYZE notes;"""
# Says where the database is, and ends with its standard input.
WAIT = "import os, sys; print(os.environ['TUZA_POSTGRES'], flush=True); sys.stdin.read()"
LUA = f"""
local state, text = 1, string.rep("x", 200)
local threads = {{}}
wrong = 0
function setup(thread) table.insert(threads, thread) end
function request()
  state = (state * 16807) % 2147483647
  return wrk.format("GET", "/notes/" .. (state % {ROWS} + 1))
end
function response(status, _, body)
  local id = body:match("^%d+")
  if status ~= 200 or not id or body ~= id .. " title " .. id .. " " .. text then wrong = wrong + 1 end
end
function done()
  local all = 0
  for _, thread in ipairs(threads) do all = all + thread:get("wrong") end
  if all > 0 then print("Wrong answers: " .. all) end
end
"""
CASE = Case("64", wrk.Load(64, lua=LUA), 1.00, 0.90, shared=True)  # the bar: Go's requests per second, divided by ours
CHARTS = (("rate", "requests per second", "/s"), ("total_us", "CPU of the service per request", "us"))


def add_options(_parser):
    pass


def run(_specs, args, report):
    program = args.build / "loadtests" / OURS
    if not program.exists():
        raise LoadTestError(f"{program} does not exist: it is built where libpq-dev is installed")
    if not shutil.which("psql"):
        raise LoadTestError("PostgreSQL is not installed. Package: postgresql")
    specs = [servers.Spec(OURS, (str(program), "--listen", "127.0.0.1:{port}")), *go_specs(args, report)]
    given = argparse.Namespace(**{**vars(args), "path": "/notes/77", "body": b"77 title 77 " + b"x" * 200})
    with database():
        results = rounds.measure_all("database", specs, (CASE,), given, report)
    say(specs, results, args, report)


def go_specs(args, report):
    program, why = golang.build(args, GO_SOURCE, process.allowed_cpus()[2], GO_LIBRARIES)
    if not program:
        report.say("", why)
        return []
    words = (program, "-addr", "127.0.0.1:{port}")
    return [servers.Spec(PREPARED, (*words, "-prepared")), servers.Spec(PLAIN, words)]


@contextlib.contextmanager
def database():
    """While it exists, the environment names a database with the table."""
    command = [sys.executable, str(ROOT / "framework/tests/with_postgres.py"), sys.executable, "-c", WAIT]
    before = dict(os.environ)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            words = child.stdout.readline().split()
            if not words:
                raise LoadTestError("the database does not start")
            os.environ.update({f"PG{name.replace('dbname', 'database').upper()}": value
                               for name, value in (word.split("=", 1) for word in words)})
            subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", "-c", TABLE], check=True)
            yield
        finally:
            child.stdin.close()
            child.wait(60)
            os.environ.clear()
            os.environ.update(before)


def say(specs, results, args, report):
    lines = rounds.result_table("database", specs, (CASE,), results, PREPARED, report, None)
    report.say("", f"database: medians of {args.rounds} rounds of {args.seconds} s; 64 connections, 16 to the database; service, database and "
               "wrk share both cores; the database stands among the others", "", *lines)
    ours = results[CASE.name, OURS]
    for name in PREPARED, PLAIN:
        theirs = results.get((CASE.name, name), {})
        found = [theirs[number].rate / ours[number].rate for number in ours if number in theirs]
        if found:
            ratio = statistics.median(found)
            bar = report.bar("database, ratio of rates", ratio, CASE.must, CASE.aim) if name == PREPARED else ""
            report.say("", f"database: {name} answers {ratio:.2f} x as many ({min(found):.2f}-{max(found):.2f}) {bar}".rstrip())
