"""Cost: the CPU time per request that counting for /metrics and writing an access log add, and their cost while they
are off."""

from lib import rounds, servers, wrk
from lib.rounds import Case

DESCRIPTION = "CPU per request with metrics, with the access log, and with both"
OFF, BOTH = "off", "both"
MUST, AIM = 1.15, 1.08
CASES = (Case("64", wrk.Load(64), MUST, AIM), Case("256", wrk.Load(256), MUST, AIM))
CHARTS = (("total_us", "Server CPU per request", "us"),)
# No client asks the admin listener during the measurement: only the cost of counting is measured.
METRICS = ("--set", "admin.listen=127.0.0.1:0", "--set", "metrics.enabled=true")
LOG = ("--set", "http.access_log=true", "--set", "log.file={dir}/access.log", "--set", "log.format=json")


def add_options(_parser):
    pass


def run(_specs, args, report):
    hello = servers.parse_specs(servers.OURS, args.build)[0].command
    specs = [servers.Spec(name, (*hello, *options)) for name, options in
             ((OFF, ()), ("metrics", METRICS), ("log", LOG), (BOTH, (*METRICS, *LOG)))]
    results = rounds.measure_all("cost", specs, CASES, args, report)
    lines = rounds.result_table("cost", specs, CASES, results, OFF, report, OFF, barred=BOTH)
    report.say("", f"cost: medians of {args.rounds} rounds of {args.seconds} s; hello with what operators switch on",
               "log: a JSON line per request into a file; lines that the writer cannot keep up with are dropped", "",
               *lines)
    rounds.warn_of_others(results, report)
