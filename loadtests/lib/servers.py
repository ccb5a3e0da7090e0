"""The servers under test: how they are found, started, observed and stopped."""

import contextlib
import random
import re
import shlex
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from lib import http, process, procfs
from lib.process import LoadTestError

FLOOR = "floor"
OURS = "hello"  # the bars apply to this server
BUILT = {
    FLOOR: "loadtests/floor --listen 127.0.0.1:{port}",
    OURS: "examples/hello --listen 127.0.0.1:{port}",
}
START_TIMEOUT_S = 10


@dataclass(frozen=True)
class Spec:
    name: str
    command: tuple  # words; {port} stands for the port, {dir} for a folder that contains `files`
    scheme: str = "http"
    files: tuple = ()  # (name, text with {port} and {dir}): configuration files of the server


def parse_specs(text, build):
    """Parses `floor,hello,other=COMMAND {port}` into Specs. A comma not followed by a name belongs to the command."""
    specs = []
    for item in re.split(r",(?=[\w.-]+(?:=|,|$))", text):
        name, given, command = item.partition("=")
        if given:
            words = shlex.split(command)
        elif name in BUILT:
            words = shlex.split(BUILT[name])
            words[0] = str(build / words[0])
        else:
            raise ValueError(f"no server named {name!r}: give {name}=COMMAND with {{port}} in it")
        if not any("{port}" in word for word in words):
            raise ValueError(f"the command of {name} must have {{port}} in it")
        if name in (spec.name for spec in specs):
            raise ValueError(f"server {name} is named twice")
        specs.append(Spec(name, tuple(words)))
    return specs


def free_port():
    """A port below the range that the kernel gives to clients, so that no client connection occupies it."""
    for _ in range(100):
        port = random.randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise LoadTestError("no free port")


class Server:
    """A running server. Its readings cover every process of its session."""

    def __init__(self, spec, port, child, log):
        self.name = spec.name
        self.scheme = spec.scheme
        self.port = port
        self._child = child
        self._log = log
        self.pids = [child.pid]

    def url(self, path):
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    def cpu_time(self):
        return self._reading(procfs.cpu_time)

    def memory_kb(self):
        return self._reading(procfs.memory_kb)

    def voluntary_switches(self):
        return self._reading(procfs.voluntary_switches)

    def _reading(self, function):
        self.check_alive()
        try:
            return function(self.pids)
        except OSError as error:
            raise self.error(f"a process of it ended: {error}") from error

    def check_alive(self):
        if self._child.poll() is not None:
            raise self.error(f"ended by itself with status {self._child.returncode}")

    def error(self, text):
        """A LoadTestError whose text ends with the last lines that the server printed."""
        self._log.seek(0)
        last = self._log.read().decode("utf-8", "replace").strip().splitlines()[-10:]
        return LoadTestError("\n    ".join([f"{self.name}: {text}", *last]))

    def wait_until_it_answers(self, path):
        """`path`: of a page; None: it takes connections, and speaks no HTTP."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            self.check_alive()
            try:
                if path is None:
                    socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                else:
                    http.exchange(self.port, path, timeout_s=1, scheme=self.scheme)
                break
            except (LoadTestError, OSError) as error:
                if time.monotonic() > deadline:
                    raise self.error(f"no answer {START_TIMEOUT_S} s after the start: {error}") from error
                time.sleep(0.02)
        self.pids = procfs.session_members(self._child.pid)


def prepared(spec, port, directory):
    """Writes the server's files into `directory`, and returns the command to run."""
    def filled(text):
        return text.replace("{port}", str(port)).replace("{dir}", directory)

    for name, text in spec.files:
        (Path(directory) / name).write_text(filled(text), encoding="utf-8")
    return [filled(word) for word in spec.command]


@contextlib.contextmanager
def serving(spec, cpus, path):
    """Starts the server on the CPU set `cpus`, yields it when it answers `path`, and stops it.

    Any end other than exit status 0 or death by the SIGTERM sent to it is an error of the server.
    """
    port = free_port()
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory(prefix="tuza-load-") as directory:
        command = prepared(spec, port, directory)
        with process.running(command, cpus, stdout=log, stderr=log) as child:
            server = Server(spec, port, child, log)
            server.wait_until_it_answers(path)
            yield server
            server.check_alive()
        if child.returncode not in (0, -15):
            raise server.error(f"asked to stop, it ended with status {child.returncode}")


def reference(specs):
    """The server that ratios refer to: the floor, or the first server named."""
    return next((spec for spec in specs if spec.name == FLOOR), specs[0])
