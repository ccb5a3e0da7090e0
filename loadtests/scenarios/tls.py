"""TLS: the cost of a request on an open connection, of a handshake, and of an idle connection, against other servers.

All servers use the same certificate (P-256), version (1.3), cipher and key exchange. The client leaves no choice
(lib/certificate.py), and s_client verifies this before the measurement.
"""

import dataclasses
import tempfile

from lib import certificate, http, peers, process, rounds, s_time, servers, wrk
from lib.process import LoadTestError
from lib.rounds import Case
from scenarios import idle

DESCRIPTION = "CPU per request, per handshake, and memory per idle connection over TLS, against nginx and Go"
REFERENCE = "nginx"
HANDSHAKE, IDLE = "handshake", "idle"
CASES = (
    Case("64", wrk.Load(64), 1.00, 0.90),
    Case("256", wrk.Load(256), 1.00, 0.90),
    Case(HANDSHAKE, wrk.Load(s_time.PARALLEL), 1.00, 0.95),
)
IDLE_MUST_KB, IDLE_AIM_KB = 30, 20
CHARTS = (("total_us", "Server CPU per request (handshake: per connection)", "us"),)


def add_options(parser):
    names = [case.name for case in CASES] + [IDLE]

    parser.add_argument("--tls-cases", type=rounds.some_of(names), default=names, metavar="LIST",
                        help=f"tls: of {','.join(names)} (default: all)")
    parser.add_argument("--tls-idle", type=int, default=5000, metavar="N", help="tls: idle connections (default 5000)")


def run(_specs, args, report):
    with tempfile.TemporaryDirectory(prefix="tuza-tls-") as directory:
        made = certificate.make(directory, process.allowed_cpus()[2])
        specs = [peers.hello(args, made), *peers.installed(args, report, made)]
        specs = [spec for spec in specs if agrees(spec, made, args, report)]
        cases = [with_client(case, made) for case in CASES if case.name in args.tls_cases]
        if cases and specs:
            measure(specs, cases, made, args, report)
        if IDLE in args.tls_cases and specs:
            idle.measure_all("tls-idle", specs, args.tls_idle, args, report, (IDLE_MUST_KB, IDLE_AIM_KB))


def agrees(spec, made, args, report):
    """Whether the server answers, with the version, cipher and key that all servers must use."""
    try:
        first, second, _ = process.allowed_cpus()
        with servers.serving(spec, first, args.path) as server:
            http.verify(server.port, args.path, args.body, scheme=spec.scheme)
            certificate.check_agreement(made, server.port, second)
    except LoadTestError as error:
        report.fail(f"tls: {spec.name}: {error}")
        return False
    return True


def with_client(case, made):
    return dataclasses.replace(case, load=dataclasses.replace(case.load, openssl_conf=str(made.client_config)))


def measure(specs, cases, made, args, report):
    def one(spec, case, args):
        return handshakes(spec, made, args) if case.name == HANDSHAKE else rounds.wrk_round(spec, case, args)

    results = rounds.measure_all("tls", specs, cases, args, report, one)
    reference = REFERENCE if REFERENCE in (spec.name for spec in specs) else specs[0].name
    lines = rounds.result_table("tls", specs, cases, results, reference, report, REFERENCE)
    report.say("", f"tls: medians of {args.rounds} rounds of {args.seconds} s; one core for the server, one for the "
               f"client; P-256, TLS 1.3, {certificate.CIPHER}, X25519",
               "handshake: a connection with a full handshake and one request; the others: keep-alive", "", *lines)
    show_handshakes(results, report)
    rounds.warn_of_others(results, report)


def handshakes(spec, made, args):
    first, second, _ = process.allowed_cpus()
    with servers.serving(spec, first, args.path) as server:
        s_time.run(server, args.path, args.body, made, rounds.WARM_UP_S, second)
        with rounds.Watch(server) as watch:
            result = s_time.run(server, args.path, args.body, made, args.seconds, second)
    if result.errors:
        raise LoadTestError(f"{spec.name}: {'; '.join(result.errors)}")
    return watch.measurement(result)


def show_handshakes(results, report):
    found = [(server, rounds.medians(of_pair.values())["total_us"])
             for (case, server), of_pair in results.items() if case == HANDSHAKE and of_pair]
    if found:
        words = ", ".join(f"{server} {1e6 / cpu_us:,.0f}" for server, cpu_us in found)
        report.say("", f"handshakes per second that one core has CPU time for (the client manages fewer): {words}")
