"""Reads HTTP responses byte by byte, to check that a server sends exactly the right answer and nothing more.

http.client is unsuitable: it tolerates many errors, and cannot show what follows a response.
"""

import contextlib
import socket
import ssl
import time
from dataclasses import dataclass

from lib.process import LoadTestError


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict  # names in lower case
    body: bytes


def request_text(path, host="127.0.0.1", method="GET"):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def parse_response(data):
    """Returns (Response, its length in bytes), or None while it is incomplete. Requires Content-Length."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    status_line, *lines = data[:end].decode("latin-1").split("\r\n")
    version, _, rest = status_line.partition(" ")
    if version != "HTTP/1.1" or not rest[:3].isdigit():
        raise LoadTestError(f"not a status line: {status_line!r}")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise LoadTestError(f"not a header line: {line!r}")
        headers[name.lower()] = value.strip()
    if not headers.get("content-length", "").isdigit():
        raise LoadTestError(f"no Content-Length in the answer {status_line!r}")
    size = end + 4 + int(headers["content-length"])
    if len(data) < size:
        return None
    return Response(int(rest[:3]), headers, bytes(data[end + 4:size])), size


def check_response(response, body):
    """Raises LoadTestError if `response` is not a 200 with exactly `body`."""
    if response.status != 200:
        raise LoadTestError(f"status {response.status} instead of 200")
    if response.body != body:
        raise LoadTestError(f"body {response.body[:60]!r} instead of {body[:60]!r}")


def receive(connection, count, timeout_s):
    """Returns `count` responses. Raises LoadTestError if the connection ends early, or carries more bytes."""
    deadline = time.monotonic() + timeout_s
    data = bytearray()
    responses = []
    while True:
        while parsed := parse_response(data):
            responses.append(parsed[0])
            del data[:parsed[1]]
        if len(responses) >= count:
            break
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            received = connection.recv(65536)
        except TimeoutError:
            raise LoadTestError(f"{len(responses)} of {count} answers within {timeout_s} s") from None
        if not received:
            raise LoadTestError(f"connection closed after {len(responses)} of {count} answers")
        data += received
    if data or len(responses) > count:
        raise LoadTestError("more bytes than the answers asked for")
    return responses


def client_context():
    """For TLS to servers whose certificate was made for the run: their identity is not verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def exchange(port, path, pipeline=1, timeout_s=5, scheme="http"):
    """Sends `pipeline` requests in one write on a new connection and returns the responses."""
    try:
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout_s))
            if scheme == "https":
                connection = stack.enter_context(client_context().wrap_socket(connection))
            connection.sendall(request_text(path, f"127.0.0.1:{port}") * pipeline)
            return receive(connection, pipeline, timeout_s)
    except OSError as error:
        raise LoadTestError(f"request to port {port}: {error}") from error


def verify(port, path, body, pipeline=1, scheme="http"):
    """Raises LoadTestError unless the server answers each of `pipeline` requests with 200 and `body`."""
    for response in exchange(port, path, pipeline, scheme=scheme):
        check_response(response, body)
