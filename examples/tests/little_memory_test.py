"""A server whose address space is limited (`ulimit -v`) survives more clients than it has room for.

Argument: build/.../examples/hello. Each client gets an answer or is turned away, signals take effect while the
room is full, and the server ends with status 0.
"""

import contextlib
import resource
import signal
import socket
import sys
import tempfile
import time

import serving

MIB = 1 << 20
CLIENTS = 500
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def address_space(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def limited_to(limit: int):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def needed_by(program: str) -> int:
    """The address space of an idle server under a limit, so that it reserves no more than it does below."""
    server = serving.Server(program, preexec_fn=limited_to(256 * MIB))
    try:
        return address_space(server.process.pid)
    finally:
        server.kill()


def fill(port: int, clients: contextlib.ExitStack) -> list[socket.socket]:
    """Connects all clients, which ask, and leaves them connected."""
    connected = []
    for _ in range(CLIENTS):
        client = clients.enter_context(socket.create_connection(("127.0.0.1", port), timeout=serving.PATIENCE_S))
        with contextlib.suppress(ConnectionError):  # turned away already
            client.sendall(REQUEST)
            connected.append(client)
    return connected


def answered(clients: list[socket.socket]) -> int:
    count = 0
    for client in clients:
        with contextlib.suppress(ConnectionError):
            count += client.recv(100).startswith(b"HTTP/1.1 200 ")
    return count


def says(file, text: str) -> None:
    end = time.monotonic() + serving.PATIENCE_S
    while True:
        file.seek(0)
        said = file.read()
        if text in said:
            return
        assert time.monotonic() < end, f"no {text!r} in:\n{said}"
        time.sleep(0.02)


def try_with(program: str, more: int) -> None:
    limit = needed_by(program) + more
    with tempfile.TemporaryFile("w+") as log, contextlib.ExitStack() as clients:
        server = serving.Server(program, stderr=log, preexec_fn=limited_to(limit))
        clients.callback(server.kill)
        served = answered(fill(server.port, clients))
        assert 0 < served < CLIENTS, f"{served} with {more // MIB} MiB"
        says(log, "no memory for another connection's goroutine; it is closed")
        for number, answer in ((signal.SIGHUP, "SIGHUP: log.level is"), (signal.SIGQUIT, "] conn"),
                               (signal.SIGTERM, "SIGTERM: draining")):
            server.process.send_signal(number)
            says(log, answer)
        assert server.process.wait(serving.PATIENCE_S) == 0


def main() -> None:
    for more in (30 * MIB, 60 * MIB):
        try_with(sys.argv[1], more)


if __name__ == "__main__":
    main()
