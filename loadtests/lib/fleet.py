"""Three instances of `hello` behind HAProxy, with the configuration that conf/ recommends, on other ports."""

import contextlib
import csv
import io
import re
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path

from lib import http, process, servers
from lib.process import LoadTestError

CONFIGURATION = Path(__file__).resolve().parents[2] / "conf" / "haproxy.cfg"
NAMES = ("a", "b", "c")
# The values in haproxy.cfg: its own port, the ports of its instances, and the instances' delay.
FRONTEND, FIRST, FIRST_ADMIN = 8000, 8081, 9081
DELAY_S = 2
UP_TIMEOUT_S = 20
END_TIMEOUT_S = 20


class Instance:
    def __init__(self, args, name, cpus, log):
        self.name = name
        self.port, self.admin = servers.free_port(), servers.free_port()
        self._words = [str(args.build / "examples" / "hello"), "--listen", f"127.0.0.1:{self.port}",
                       "--set", f"admin.listen=127.0.0.1:{self.admin}", "--set", f"shutdown.delay={DELAY_S}s"]
        self._cpus = cpus
        self._log = log
        self.child = None

    def start(self):
        self.child = process.spawn(self._words, self._cpus, stdout=self._log, stderr=self._log)

    def terminate(self):
        """Asks the instance to end, and waits until it has ended with status 0."""
        self.child.send_signal(signal.SIGTERM)
        try:
            status = self.child.wait(END_TIMEOUT_S)
        except Exception as error:
            raise LoadTestError(f"instance {self.name} did not end within {END_TIMEOUT_S} s of SIGTERM") from error
        if status != 0:
            raise LoadTestError(f"instance {self.name}: asked to end, it ended with status {status}")

    def kill(self):
        self.child.kill()
        self.child.wait()


class Fleet:
    """The instances and the proxy, all up. Made by running()."""

    def __init__(self, instances, port, control):
        self.instances = instances
        self.port = port
        self._control = control

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def statistics(self):
        """{instance's name: {column of HAProxy's `show stat`: text}}"""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(self._control)
            connection.sendall(b"show stat\n")
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        rows = csv.DictReader(io.StringIO(text.removeprefix("# ")))
        return {row["svname"]: row for row in rows if row["pxname"] == "instances" and row["svname"] in NAMES}

    def await_up(self, *names):
        """Waits until HAProxy sends requests to these instances."""
        self.await_status("UP", names)

    def await_status(self, status, names):
        deadline = time.monotonic() + UP_TIMEOUT_S
        while True:
            found = self.statistics()
            if all(found[name]["status"].startswith(status) for name in names):
                return
            if time.monotonic() > deadline:
                words = {name: row["status"] for name, row in found.items()}
                raise LoadTestError(f"instances not {status} within {UP_TIMEOUT_S} s: {words}")
            time.sleep(0.05)


def configuration(instances, port, control):
    """The text of haproxy.cfg with other ports, and with a socket that serves its statistics."""
    ports = {FRONTEND: port}
    for number, instance in enumerate(instances):
        ports |= {FIRST + number: instance.port, FIRST_ADMIN + number: instance.admin}
    lines = [line for line in CONFIGURATION.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    text = "\n".join(lines)
    for number in ports:
        if not re.search(rf"\b{number}\b", text):
            raise LoadTestError(f"{CONFIGURATION}: no port {number}")
    text = re.sub(r"\b\d{4}\b", lambda found: str(ports.get(int(found[0]), found[0])), text)
    return text.replace("global\n", f"global\n  stats socket {control} mode 600 level admin\n", 1) + "\n"


@contextlib.contextmanager
def running(args):
    """Starts the instances and HAProxy on both CPUs, yields the Fleet when all are up, and ends them."""
    proxy = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if proxy is None:
        raise LoadTestError("haproxy is not installed")
    cpus = process.allowed_cpus()[2]
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tuza-fleet-")))
        log = stack.enter_context((directory / "instances.log").open("w+b"))
        instances = []
        for name in NAMES:
            instances.append(Instance(args, name, cpus, log))
            stack.callback(lambda instance=instances[-1]: instance.child and process.stop(instance.child))
            instances[-1].start()
        port, control = servers.free_port(), str(directory / "control")
        (directory / "haproxy.cfg").write_text(configuration(instances, port, control), encoding="utf-8")
        proxy_log = stack.enter_context((directory / "haproxy.log").open("w+b"))
        child = stack.enter_context(process.running([proxy, "-db", "-f", str(directory / "haproxy.cfg")], cpus,
                                                    stdout=proxy_log, stderr=proxy_log))
        await_socket(control, child, directory / "haproxy.log")
        fleet = Fleet(instances, port, control)
        fleet.await_up(*NAMES)
        http.verify(port, args.path, args.body)
        yield fleet
        if child.poll() is not None:
            raise LoadTestError(f"haproxy ended by itself: {(directory / 'haproxy.log').read_text()[-500:]}")


def await_socket(path, child, log):
    deadline = time.monotonic() + UP_TIMEOUT_S
    while not Path(path).exists():
        if child.poll() is not None or time.monotonic() > deadline:
            raise LoadTestError(f"haproxy does not start: {log.read_text()[-500:]}")
        time.sleep(0.02)
