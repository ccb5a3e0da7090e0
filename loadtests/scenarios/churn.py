"""Churn: a new connection for every request, without TLS: the cost of accepting and closing, against nginx and Go."""

from lib import peers, rounds, servers, wrk
from lib.rounds import Case

DESCRIPTION = "CPU per request when each has a new connection, against nginx and Go"
REFERENCE = "nginx"
CLOSE = ("Connection: close",)
CASES = (
    Case("churn-64", wrk.Load(64, headers=CLOSE), 1.20, 1.00),
    Case("churn-256", wrk.Load(256, headers=CLOSE), 1.20, 1.00),
)
CHARTS = (("total_us", "Server CPU per connection with one request", "us"),)


def add_options(_parser):
    pass


def run(specs, args, report):
    # The floor does not close connections, so it is not measured.
    specs = [spec for spec in specs if spec.name != servers.FLOOR] + peers.installed(args, report)
    results = rounds.measure_all("churn", specs, CASES, args, report)
    reference = REFERENCE if REFERENCE in (spec.name for spec in specs) else specs[0].name
    lines = rounds.result_table("churn", specs, CASES, results, reference, report, REFERENCE)
    report.say("", f"churn: medians of {args.rounds} rounds of {args.seconds} s; each request on a new connection, 64 or "
               "256 at once; one core for the server, one for wrk", "", *lines)
    rounds.warn_of_others(results, report)
