"""Shared code of the tests of the admin address: the server, requests, the text format of Prometheus."""

import http.client
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PATIENCE_S = 60


class Server:
    def __init__(self, program: str):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=self.log)
        self.service, self.admin = (int(port) for port in self.process.stdout.readline().split())

    def say(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def stop(self) -> None:
        self.process.stdin.close()
        status = self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        self.log.seek(0)
        log = self.log.read()
        self.log.close()
        if status != 0 or "Sanitizer" in log:
            raise RuntimeError(f"the server ended with {status}:\n{log}")


class WithServer(unittest.TestCase):
    """Tests with a server each: the program that the command line names."""

    def setUp(self):
        self.server = Server(sys.argv[1])
        self.addCleanup(self.server.stop)

    def start(self, path: str) -> socket.socket:
        """Sends a request whose answer is not waited for."""
        client = socket.create_connection(("127.0.0.1", self.server.service), timeout=PATIENCE_S)
        self.addCleanup(client.close)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        return client


def fetch(port: int, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read().decode()
    finally:
        connection.close()


def until(condition, what: str = "") -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)


SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


def parse_metrics(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Checks each line against the text format 0.0.4. Returns {(name, labels): value} of the samples."""
    types: dict[str, str] = {}
    helped: set[str] = set()
    samples: dict = {}
    if not text.endswith("\n"):
        raise ValueError("the last line does not end")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            if name in helped or len(line.split(" ", 3)[3]) < 5:
                raise ValueError(f"help twice, or none: {line}")
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            if name in types or kind not in ("counter", "gauge", "histogram"):
                raise ValueError(line)
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            if match is None:
                raise ValueError(f"no sample: {line!r}")
            name, label_text, value = match.groups()
            labels = tuple(sorted(LABEL.findall(label_text or "")))
            if sum(len(k) + len(v) + 3 for k, v in labels) + max(len(labels) - 1, 0) != len((label_text or "").rstrip(",")):
                raise ValueError(f"labels: {line!r}")
            family = name if name in types else re.sub("_(bucket|sum|count)$", "", name)
            if family not in types or family not in helped:
                raise ValueError(f"without type or help: {line!r}")
            if types[family] == "counter" and not (name.endswith("_total") and float(value) >= 0):
                raise ValueError(f"no counter: {line!r}")
            if (name, labels) in samples:
                raise ValueError(f"twice: {line!r}")
            samples[name, labels] = float(value)
    for family, kind in types.items():
        if kind == "histogram":
            check_histogram(family, samples)
    return samples


def check_histogram(family: str, samples: dict) -> None:
    series = {}  # the buckets by the other labels
    for (name, labels), value in samples.items():
        if name == family + "_bucket":
            bound = float(dict(labels)["le"])
            series.setdefault(tuple(l for l in labels if l[0] != "le"), []).append((bound, value))
    if not series:
        raise ValueError(f"{family}: no buckets")
    for labels, buckets in series.items():
        if buckets != sorted(buckets) or [n for _, n in buckets] != sorted(n for _, n in buckets):
            raise ValueError(f"{family}: buckets are not cumulative: {buckets}")
        if (buckets[-1] != (float("inf"), samples[family + "_count", labels])
                or (family + "_sum", labels) not in samples):
            raise ValueError(f"{family}: count, sum and the last bucket do not fit")
