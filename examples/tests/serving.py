"""A server of examples/ that runs during a test."""

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import time

PATIENCE_S = 60


class Server:
    """`program` with `settings`, listening on a port of its own, started by the command `launcher`.

    `popen` is passed to subprocess.Popen.
    """

    def __init__(self, program: str, *settings: str, launcher=(), **popen):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        arguments = [*launcher, program, "--listen", f"127.0.0.1:{self.port}"]
        for setting in settings:
            arguments += ["--set", setting]
        self.process = subprocess.Popen(arguments, **popen)
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S).close()
                return
            except ConnectionRefusedError:
                assert self.process.poll() is None, f"{program} has ended by itself"
                assert time.monotonic() < end, f"{program} does not listen"
                time.sleep(0.02)

    def stop(self) -> int:
        """Ends the server gracefully, and returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def ask(self, method: str, path: str, body=None, **headers):
        """Returns (status, headers, body). A body that is not bytes is sent as JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content_Type", "application/json")
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as client:
            client.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read()
