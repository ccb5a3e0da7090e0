"""`openssl s_time`: a new connection with a full handshake for each request. Unlike wrk it never resumes sessions."""

import re
import socket
import ssl
import time

from lib import http, process, wrk
from lib.process import LoadTestError

PARALLEL = 4  # processes with one connection each; together they keep the client's core busy


def parse(text):
    """(connections, bytes read) from the output of `openssl s_time`."""
    found = re.search(r"^(\d+) connections in [\d.]+s; .* bytes read (\d+)$", text, re.M)
    if not found:
        raise LoadTestError(f"openssl s_time printed no result: {text.strip()[-300:]}")
    return int(found[1]), int(found[2])


def answer_bytes(port, path, body):
    """The length of the answer to s_time's request. Raises LoadTestError if it is not a 200 with `body`."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as plain, \
                http.client_context().wrap_socket(plain) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            data = b""
            while received := connection.recv(65536):
                data += received
    except (OSError, ssl.SSLError) as error:
        raise LoadTestError(f"HTTP/1.0 request over TLS to port {port}: {error}") from error
    if not re.match(rb"HTTP/1\.[01] 200 ", data) or not data.endswith(b"\r\n\r\n" + body):
        raise LoadTestError(f"answer to HTTP/1.0: {data[:200]!r}")
    return len(data)


def run(server, path, body, certificate, seconds, cpus):
    """Runs PARALLEL processes for `seconds`. Returns a wrk.Result without percentiles."""
    expected = answer_bytes(server.port, path, body)
    command = ["openssl", "s_time", "-connect", f"127.0.0.1:{server.port}", "-new", "-www", path, "-time",
               str(seconds)]
    before, start = wrk.children_cpu_s(), time.monotonic()
    script = " & ".join(["\"$@\" 2>&1 | tail -n 3"] * PARALLEL) + " & wait"
    output = process.run(["sh", "-c", script, "sh", *command], cpus, seconds + 30,
                         {"OPENSSL_CONF": str(certificate.client_config)})
    elapsed = time.monotonic() - start
    parts = [parse(part) for part in re.findall(r"^\d+ connections in .*bytes read \d+$", output, re.M)]
    if len(parts) != PARALLEL:
        raise LoadTestError(f"openssl s_time failed: {output.strip()[-500:]}")
    connections, received = (sum(column) for column in zip(*parts))
    errors = () if received == connections * expected else (
        f"{connections} answers have {received} bytes instead of {expected} each",)
    if connections == 0:
        errors = ("no connection was made",)
    return wrk.Result(connections, elapsed, 0.0, 0.0, errors, wrk.children_cpu_s() - before)
