"""Many keep-alive connections at once, held by this process, because wrk cannot leave connections idle."""

import select
import socket

from lib import http
from lib.process import LoadTestError

# Each source address has its own ports, about 28,000.
SOURCES = tuple(f"127.0.0.{i}" for i in range(2, 10))
IP_BIND_ADDRESS_NO_PORT = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24)  # not in Python 3.11
# Maximum number of connects, then of requests, in progress at once: below the listen backlog of any server.
BATCH = 128
TIMEOUT_S = 10


class Crowd:
    """Connections to a server on this machine. A context manager: leaving it closes them."""

    def __init__(self, port, path, body, scheme="http"):
        self._port = port
        self._request = http.request_text(path, f"127.0.0.1:{port}")
        self._body = body
        self._context = http.client_context() if scheme == "https" else None
        self._connections = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def open(self, count):
        """Opens `count` more connections, and has one request answered on each."""
        for start in range(0, count, BATCH):
            batch = [self._connect() for _ in range(min(BATCH, count - start))]
            self._ask(batch)

    def ask_all(self):
        """Sends one more request on each connection, and checks the answers."""
        for start in range(0, len(self._connections), BATCH):
            self._ask(self._connections[start:start + BATCH])

    def disturbed(self):
        """The number of connections that the server closed, or sent something on, without a request."""
        poller = select.epoll()
        for connection in self._connections:
            poller.register(connection.fileno(), select.EPOLLIN | select.EPOLLRDHUP)
        with poller:
            return len(poller.poll(0, max(1, len(self._connections))))

    def close(self):
        for connection in self._connections:
            connection.close()
        self._connections.clear()

    def _connect(self):
        connection = socket.socket()
        self._connections.append(connection)
        connection.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        connection.settimeout(TIMEOUT_S)
        try:
            connection.bind((SOURCES[len(self._connections) % len(SOURCES)], 0))
            connection.connect(("127.0.0.1", self._port))
            if self._context:
                connection = self._connections[-1] = self._context.wrap_socket(connection)
        except OSError as error:
            raise LoadTestError(f"connection {len(self._connections)}: {error}") from error
        return connection

    def _ask(self, batch):
        try:
            for connection in batch:
                connection.sendall(self._request)
            for connection in batch:
                http.check_response(http.receive(connection, 1, TIMEOUT_S)[0], self._body)
        except OSError as error:
            raise LoadTestError(f"with {len(self._connections)} connections open: {error}") from error
