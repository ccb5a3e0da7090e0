"""testssl: the findings of testssl.sh, which knows the weaknesses of TLS and of its implementations, for `hello`.

It takes some minutes. Every finding of LOW or worse fails the run, unless EXCUSED gives a reason for it.
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib import certificate, http, peers, process, servers
from lib.process import LoadTestError
from lib.report import table

DESCRIPTION = "testssl.sh against hello over TLS (minutes)"
CHECKS = ("--protocols", "--server-preference", "--server-defaults", "--fs", "--each-cipher", "--vulnerable")
TIMEOUT_S = 1200
GOOD = ("OK", "INFO", "DEBUG")
# Prefixes of finding ids.
EXCUSED = {
    "cert_chain_of_trust": "made for the run, self-signed",
    "cert_revocation": "made for the run, self-signed",
    "DNS_CAArecord": "localhost has none",
    "engine_problem": "testssl.sh's own",
    # Old releases rate it HIGH for any ciphers; newer releases examine the ciphers.
    "cipher_order": "Mozilla's policy: all ciphers are good, the client knows which is fast",
}


def add_options(_parser):
    pass


def run(_specs, args, report):
    program = shutil.which("testssl") or shutil.which("testssl.sh")
    if program is None:
        raise LoadTestError("testssl.sh is not installed")
    first, second, both = process.allowed_cpus()
    with tempfile.TemporaryDirectory(prefix="tuza-testssl-") as directory:
        made = certificate.make(directory, both)
        with servers.serving(peers.hello(args, made), first, args.path) as server:
            report.progress("testssl.sh takes some minutes")
            findings = examine(program, server.port, Path(directory), second)
            http.verify(server.port, args.path, args.body, scheme="https")
    judge(findings, report)


def examine(program, port, directory, cpus):
    """The findings, as objects with id, severity and finding."""
    output = directory / "findings.json"
    command = [program, "--quiet", "--color", "0", "--warnings", "batch", "--jsonfile", str(output), *CHECKS,
               f"127.0.0.1:{port}"]
    with process.running(command, cpus, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=directory) as child:
        try:
            child.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise LoadTestError(f"testssl.sh did not end within {TIMEOUT_S} s") from None
    try:
        return json.loads(output.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LoadTestError(f"testssl.sh left no findings: {error}") from error


def judge(findings, report):
    counts = {}
    for finding in findings:
        counts[finding["severity"]] = counts.get(finding["severity"], 0) + 1
    report.say("", "testssl: " + ", ".join(f"{number} {severity}" for severity, number in sorted(counts.items())))
    bad = [finding for finding in findings if finding["severity"] not in GOOD]
    offers = {finding["id"]: finding["finding"] for finding in findings}
    for name in ("TLS1_2", "TLS1_3"):
        if "offered" not in offers.get(name, "") or "not offered" in offers.get(name, ""):
            report.fail(f"testssl: {name}: {offers.get(name, 'no such finding')}")
    rows = []
    for finding in bad:
        excuse = next((why for name, why in EXCUSED.items() if finding["id"].startswith(name)), "")
        rows.append([finding["severity"], finding["id"], finding["finding"][:90], excuse])
        if not excuse:
            report.fail(f"testssl: {finding['severity']} {finding['id']}: {finding['finding'][:200]}")
    if rows:
        report.say("", *table(["severity", "what", "finding", "excused"], rows, left=4))
