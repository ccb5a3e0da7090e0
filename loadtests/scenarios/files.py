"""Static files: 1 KB and 1 MB of a folder on open connections, against nginx with sendfile."""

import argparse
import random
import tempfile
import time
from pathlib import Path

from lib import peers, rounds, servers, wrk
from lib.process import LoadTestError
from lib.rounds import Case

DESCRIPTION = "CPU per static file of 1 KB and of 1 MB, against nginx"
PROGRAMS = ("static_files",)
OURS, REFERENCE = "static_files", "nginx"
CASES = (
    Case("1KB", wrk.Load(64), 1.00, 0.80),
    Case("64KB", wrk.Load(64), 1.25, 1.00),
    Case("1MB", wrk.Load(16), 1.00, 0.95),
)
SIZES = {"1KB": 1 << 10, "64KB": 64 << 10, "1MB": 1 << 20}
# What makes nginx fastest: descriptors stay open, and the head leaves together with the file.
NGINX = "root {folder}; sendfile on; tcp_nopush on;"
NGINX_CACHE = " open_file_cache max=1000; open_file_cache_valid 1s; open_file_cache_min_uses 1;"
# Files that have just changed are not cached: a further change might leave no trace.
SETTLED_S = 2.5
CHARTS = (("total_us", "Server CPU per file", "us"),)


def add_options(parser):
    names = [case.name for case in CASES]

    parser.add_argument("--files-cases", type=rounds.some_of(names), default=names, metavar="LIST",
                        help=f"files: of {','.join(names)} (default: all)")


def run(_specs, args, report):
    with tempfile.TemporaryDirectory(prefix="tuza-files-") as folder:
        contents = {name: random.Random(name).randbytes(size) for name, size in SIZES.items()}
        for name, content in contents.items():
            (Path(folder) / f"{name}.bin").write_bytes(content)
        Path(folder).chmod(0o755)  # nginx serves as another user
        time.sleep(SETTLED_S)
        specs = specs_of(folder, args, report)
        cases = [case for case in CASES if case.name in args.files_cases]

        def one(spec, case, given):
            return rounds.wrk_round(spec, case, argparse.Namespace(
                **{**vars(given), "path": f"/{case.name}.bin", "body": contents[case.name]}))

        results = rounds.measure_all("files", specs, cases, args, report, one)
        reference = REFERENCE if REFERENCE in (spec.name for spec in specs) else specs[0].name
        lines = rounds.result_table("files", specs, cases, results, reference, report, REFERENCE, barred=OURS)
        report.say("", f"files: medians of {args.rounds} rounds of {args.seconds} s; 64 connections (1MB: 16) that stay "
                   "open; one core for the server, one for wrk",
                   "nginx: sendfile, tcp_nopush, and open descriptors in a cache; nginx-open: without that cache;",
                   "static_files-direct: without our cache of small files", "", *lines)
        rounds.warn_of_others(results, report)


def specs_of(folder, args, report):
    program = args.build / "examples" / "static_files"
    if not program.exists():
        raise LoadTestError(f"{program} does not exist")
    words = (str(program), "--listen", "127.0.0.1:{port}", "--set", f"files.folder={folder}")
    specs = [servers.Spec(OURS, words),
             servers.Spec(OURS + "-direct", (*words, "--set", "files.cache=0B"))]
    settings = NGINX.replace("{folder}", folder)
    for name, more in ((REFERENCE, NGINX_CACHE), (REFERENCE + "-open", "")):
        if server := peers.nginx(locations=settings + more, name=name):
            specs.append(server)
    if len(specs) == 2:
        report.say("", "nginx: not installed, so there is no comparison with it")
    return specs
