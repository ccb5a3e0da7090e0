"""The HTTP client: its CPU per request on kept connections, against our own server for the same request, and Go's client.

Each client has one core and 256 goroutines, and asks a server of ours on the other core; the server is measured by wrk. All check their answers.
"""

import dataclasses
import json
import statistics

from lib import golang, http, peers, process, rounds, servers, wrk
from lib.process import LoadTestError
from lib.rounds import Case

DESCRIPTION = "CPU per request of the HTTP client, against our server for the same request, and Go's client"
PROGRAMS = ("client_load",)
OURS, GO = "client", "go"
CASE = Case("256", wrk.Load(256), 1.30, 1.00)
# Of Go's: what a client may cost at most, and should.
GO_MUST, GO_AIM = 0.50, 0.30
GO_SOURCE = peers.GO_SOURCE.with_name("client_go")
CHARTS = (("total_us", "CPU per request", "us"),)


def add_options(_parser):
    pass


def run(specs, args, report):
    server = next((spec for spec in specs if spec.name == servers.OURS), None)
    if server is None:
        raise LoadTestError(f"client: needs the server {servers.OURS}, whose CPU time it is compared with")
    specs = [server, servers.Spec(OURS, (str(args.build / "loadtests" / "client_load"),))]
    program, why = golang.build(args, GO_SOURCE, process.allowed_cpus()[2])
    if program:
        specs.append(servers.Spec(GO, (program,)))
    else:
        report.say("", why)

    def one(spec, case, given):
        return rounds.wrk_round(spec, case, given) if spec is server else client_round(server, spec, case, given)

    results = rounds.measure_all("client", specs, (CASE,), args, report, one)
    lines = rounds.result_table("client", specs, (CASE,), results, server.name, report, server.name, barred=OURS)
    report.say("", f"client: medians of {args.rounds} rounds of {args.seconds} s; 256 connections that stay open; one core for "
               f"what is measured ({server.name} by wrk, the clients with {server.name}), one for the other side", "", *lines)
    against_go(results, report)
    rounds.warn_of_others(results, report)


def client_round(server, spec, case, args):
    """One Measurement of a client, which warms up by itself, and checks each answer."""
    first, second, _ = process.allowed_cpus()
    before = wrk.children_cpu_s()
    with servers.serving(server, second, args.path) as answering:
        http.verify(answering.port, args.path, args.body)
        with rounds.Watch(answering) as watch:
            found = json.loads(process.run([*spec.command, answering.url(args.path), args.body.decode(),
                                            str(case.load.connections), str(args.seconds)], first, args.seconds + 15))
            client_cpu_s = wrk.children_cpu_s() - before
    if found["requests"] == 0:
        raise LoadTestError(f"{spec.name}: no request was answered")
    beside = watch.measurement(wrk.Result(found["requests"], found["seconds"], 0, 0, (), client_cpu_s))
    user_us, system_us = (found[name] * 1e6 / found["requests"] for name in ("user_s", "system_s"))
    return dataclasses.replace(beside, user_us=user_us, system_us=system_us, total_us=user_us + system_us,
                               busy=(found["user_s"] + found["system_s"]) / found["seconds"], client_busy=beside.busy)


def against_go(results, report):
    found = rounds.ratios(results, CASE.name, OURS, GO) if (CASE.name, GO) in results else []
    if found:
        ratio = statistics.median(found)
        report.say("", f"client: {ratio:.2f} x Go's ({min(found):.2f}-{max(found):.2f}): "
                   f"{report.bar('client 256, ratio to Go', ratio, GO_MUST, GO_AIM)}")
