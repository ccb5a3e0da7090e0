"""The hostile server and its clients, shared by the scenarios `stall` and `openproblem`."""

import contextlib
import json
import os
import subprocess
import tempfile
import time

from lib import http, process, servers
from lib.process import LoadTestError

HELLO = b"Hello, World!"
ANSWER_TIMEOUT_S = 5  # for a server that is prevented from answering
END_GRACE_S = 8  # after SIGTERM; then the server is killed


class Client:
    """A running stall_client: connected, and waiting for go()."""

    def __init__(self, child):
        self._child = child

    def go(self):
        try:
            self._child.stdin.write("go\n")
            self._child.stdin.flush()
        except OSError as error:
            raise LoadTestError(f"stall_client ended: {error}") from error

    def result(self, timeout_s):
        """Waits for the client's end and returns its results. If `timeout_s` is 0, closes its input, which ends it."""
        try:
            if timeout_s > 0:
                self._child.wait(timeout_s)
            output, _ = self._child.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            raise LoadTestError("stall_client did not end") from None
        return parse_json_line(output, "stall_client")


def parse_json_line(text, program):
    """The object on the last line that `program` printed."""
    try:
        found = json.loads(text.strip().splitlines()[-1])
    except (IndexError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise LoadTestError(f"{program} printed no result: {text.strip()[-200:]!r}")
    return found


@contextlib.contextmanager
def client(args, cpus, port, connections, rate, seconds, path="/", contains=None):
    """A stall_client with its connections open. Leaving the context ends the client."""
    command = [str(args.build / "loadtests" / "stall_client"), "--port", str(port), "--connections",
               str(connections), "--rate", str(rate), "--seconds", str(seconds), "--path", path]
    if contains:
        command += ["--contains", contains]
    with process.running(command, cpus, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        if child.stdout.readline() != "ready\n":  # the client gives up by itself, because its sockets have timeouts
            raise LoadTestError(f"no {connections} connections to port {port}")
        try:
            yield Client(child)
        finally:
            with contextlib.suppress(OSError):
                child.stdin.close()


class Ending:
    """How a server ended: seconds since SIGTERM, and whether it had to be killed."""

    def __init__(self):
        self.seconds = 0.0
        self.status = None

    @property
    def killed(self):
        return self.status is not None and self.status == -9


@contextlib.contextmanager
def serving(spec, cpus, ending, **environment):
    """Starts the server and yields it when it answers `/`. Unlike in servers.serving(), the server may end in any way,
    because some of its requests do not end; `ending` records how."""
    port = servers.free_port()
    command = [word.replace("{port}", str(port)) for word in spec.command]
    with tempfile.TemporaryFile() as log:
        child = process.spawn(command, cpus, stdout=log, stderr=log, env=os.environ | environment)
        try:
            server = servers.Server(spec, port, child, log)
            server.wait_until_it_answers("/")
            yield server
            server.check_alive()
        finally:
            start = time.monotonic()
            ending.status = process.stop(child, grace_s=END_GRACE_S)
            ending.seconds = time.monotonic() - start


def get_json(server, path, timeout_s=ANSWER_TIMEOUT_S):
    """The server's JSON answer as an object. Raises LoadTestError unless a good answer arrives in time."""
    response = http.exchange(server.port, path, timeout_s=timeout_s)[0]
    if response.status != 200:
        raise server.error(f"{path}: status {response.status}: {response.body[:80]!r}")
    return parse_json_line(response.body.decode("latin-1"), f"{server.name}{path}")


def run_threads(args, cpus, kind, count, seconds, amount):
    """Iterations per second of `count` plain threads that do the work of `kind`."""
    command = [str(args.build / "loadtests" / "stall_threads"), kind, str(count), str(seconds), str(amount)]
    found = parse_json_line(process.run(command, cpus, timeout_s=seconds + 60), "stall_threads")
    if found["errors"]:
        raise LoadTestError(f"stall_threads {kind}: {found['errors']} errors")
    return found["iterations"] / found["seconds"]
