"""The reverse proxy: CPU per request of the proxy alone, with bodies of 1 KB and 64 KB, against nginx and HAProxy.

All proxies ask the same nginx, which sends files whose descriptors stay open, and keep their connections to it and to the client. They have one core;
the upstream and wrk share the other one, so that the requests per second are theirs.
"""

import argparse
import dataclasses
import random
import shutil
import tempfile
from pathlib import Path

from lib import http, peers, process, rounds, servers, wrk
from lib.process import LoadTestError
from lib.rounds import Case
from scenarios import files

DESCRIPTION = "CPU per request of a reverse proxy, bodies of 1 KB and 64 KB, against nginx and HAProxy"
PROGRAMS = ("reverse_proxy",)
OURS, REFERENCE = "reverse_proxy", "nginx"
CASES = (
    Case("1KB", wrk.Load(64), 1.00, 0.90),
    Case("64KB", wrk.Load(64), 1.00, 0.90),
)
SIZES = {"1KB": 1 << 10, "64KB": 64 << 10}
# As many kept connections as there are clients, and a buffer for a whole body, so that none goes to a file.
NGINX_UPSTREAM = "upstream behind { server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 1000000000; }"
NGINX_LOCATION = """location / {
      proxy_pass http://behind;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_buffers 4 32k;
      proxy_max_temp_file_size 0;
    }"""
HAPROXY = """global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option splice-auto
  option forwardfor
  http-reuse always
listen proxy
  bind 127.0.0.1:{port} backlog 4096
  server behind 127.0.0.1:{upstream} pool-max-conn 64
"""
CHARTS = (("total_us", "CPU of the proxy per request", "us"),)


def add_options(parser):
    names = [case.name for case in CASES]

    parser.add_argument("--proxy-cases", type=rounds.some_of(names), default=names, metavar="LIST",
                        help=f"proxy: of {','.join(names)} (default: all)")


def run(_specs, args, report):
    with tempfile.TemporaryDirectory(prefix="tuza-proxy-") as folder:
        bodies = {name: random.Random(name).randbytes(size) for name, size in SIZES.items()}
        for name, body in bodies.items():
            (Path(folder) / name).write_bytes(body)
        Path(folder).chmod(0o755)  # nginx serves as another user
        behind = peers.nginx(locations=(files.NGINX + files.NGINX_CACHE).replace("{folder}", folder), name="upstream")
        if behind is None:
            report.say("", "proxy: nginx is not installed, and there is nothing to ask")
            return
        cases = [case for case in CASES if case.name in args.proxy_cases]
        with servers.serving(behind, process.allowed_cpus()[1], path_of(cases[0])) as answering:
            for case in cases:
                http.verify(answering.port, path_of(case), bodies[case.name])
            measure(specs_of(answering.port, args, report), answering, cases, bodies, args, report)


def path_of(case):
    return f"/{case.name}"


def ours(args, ports):
    """The Spec of Tuza's reverse proxy in front of these ports."""
    program = args.build / "examples" / OURS
    if not program.exists():
        raise LoadTestError(f"{program} does not exist")
    upstreams = ", ".join(f'"http://127.0.0.1:{port}"' for port in ports)
    return servers.Spec(OURS, (str(program), "--listen", "127.0.0.1:{port}", "--set", f"proxy.upstreams=[{upstreams}]"))


def specs_of(port, args, report):
    specs = [ours(args, [port])]
    specs.append(peers.nginx(locations=NGINX_LOCATION, name=REFERENCE,
                             outside=NGINX_UPSTREAM.replace("{upstream}", str(port))))
    if program := shutil.which("haproxy", path="/usr/sbin:/usr/bin"):
        specs.append(servers.Spec("haproxy", (program, "-f", "{dir}/haproxy.cfg"), "http",
                                  (("haproxy.cfg", HAPROXY.replace("{upstream}", str(port))),)))
    else:
        report.say("", "haproxy: not installed, so there is no comparison with it")
    return specs


def measure(specs, answering, cases, bodies, args, report):
    def one(spec, case, given):
        before = answering.cpu_time()
        found = rounds.wrk_round(spec, case, argparse.Namespace(
            **{**vars(given), "path": path_of(case), "body": bodies[case.name]}))
        upstream = (answering.cpu_time() - before).total_s / (given.seconds + rounds.WARM_UP_S)
        return dataclasses.replace(found, others=max(0.0, found.others - upstream))

    results = rounds.measure_all("proxy", specs, cases, args, report, one)
    lines = rounds.result_table("proxy", specs, cases, results, REFERENCE, report, REFERENCE, barred=OURS)
    report.say("", f"proxy: medians of {args.rounds} rounds of {args.seconds} s; 64 connections that stay open; one core for "
               "the proxy, one for wrk and the upstream", "", *lines)
    rounds.warn_of_others(results, report)
