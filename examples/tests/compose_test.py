#!/usr/bin/env python3
"""compose_test.py HELLO PROBE: conf/compose.yaml fits the compose schema, and what it describes works.

There is no engine here, so the test starts the processes that the file describes: three instances with the environment
of the file and of the image, HAProxy and Prometheus with the files that are mounted. As an engine does it, names are
translated to addresses, and ports are mapped: here to free ones of the loopback interface.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import yaml

HELLO, PROBE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ROOT / "conf" / "compose.yaml"
INSTANCES = ["a", "b", "c"]
PATIENCE_S = 60


def run(*words, **options):
    return subprocess.run(list(map(str, words)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PATIENCE_S, check=False, **options)


def services():
    return yaml.safe_load(FILE.read_text())["services"]


def mounted(service):
    """The one file of the tree that the service has mounted."""
    [volume] = services()[service]["volumes"]
    return FILE.parent / volume.split(":")[0]


def of_image(pattern):
    """What an instruction of the Dockerfile's last stage says."""
    return re.search(pattern, (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2], re.M)[1]


def policy(path):
    """What HAProxy does, without where: the lines that conf/haproxy.cfg and that of compose share."""
    lines = (line.strip() for line in path.read_text().partition("\ndefaults\n")[2].splitlines())
    return [line for line in lines
            if line and not re.match(r"#|bind |server |default-server port ", line)]


class File(unittest.TestCase):
    def test_it_fits_the_schema(self):
        done = run("docker-compose", "-f", FILE, "config", "--quiet")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_check_of_the_schema_finds_a_misspelt_key(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as wrong:
            wrong.write(FILE.read_text().replace("cap_drop:", "cap_dorp:"))
            wrong.flush()
            done = run("docker-compose", "-f", wrong.name, "config", "--quiet")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("cap_dorp", done.stdout)

    def test_only_loopback_ports_are_published(self):
        for name, service in services().items():
            for port in service.get("ports", []):
                self.assertRegex(port, r"^127\.0\.0\.1:\d+:\d+$", name)

    def test_images_of_others_have_a_version(self):
        for name in set(services()) - set(INSTANCES):
            self.assertRegex(services()[name]["image"], r":v?\d+\.\d+\.\d+$")

    def test_haproxy_does_what_it_does_on_one_machine(self):
        self.assertGreater(len(policy(ROOT / "conf/haproxy.cfg")), 15)
        self.assertEqual(policy(mounted("haproxy")), policy(ROOT / "conf/haproxy.cfg"))


class Replay(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.ports = {}
        self.processes = {}

    def port(self, service, port):
        """The port of the loopback interface that stands for `port` of the service's container."""
        if (service, port) not in self.ports:
            with socket.create_server(("127.0.0.1", 0)) as probe:
                self.ports[service, port] = probe.getsockname()[1]
        return self.ports[service, port]

    def start(self, service, *words, environment=None):
        log = self.enterContext((self.directory / f"{service}.log").open("a"))
        process = subprocess.Popen(list(map(str, words)), env=os.environ | (environment or {}), cwd=self.directory,
                                   stdout=log, stderr=log)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        self.processes[service] = process

    def log(self, service):
        return (self.directory / f"{service}.log").read_text()

    def eventually(self, what, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            logs = "\n".join(f"{name}: {self.log(name)[-1500:]}" for name in self.processes)
            self.assertLess(time.monotonic(), deadline, f"{what}\n{logs}")
            time.sleep(0.05)

    def start_instance(self, name):
        environment = dict(word.split("=") for word in of_image(r"^ENV (.*)$").split())
        environment |= services()[name]["environment"]
        here = {key: re.sub(r"^0\.0\.0\.0:(\d+)$", lambda m: f"127.0.0.1:{self.port(name, int(m[1]))}", value)
                for key, value in environment.items()}
        self.start(name, HELLO, environment=here)
        self.eventually(f"{name} is healthy", lambda: self.healthy(name))

    def healthy(self, name):
        check = json.loads(of_image(r"^HEALTHCHECK .* CMD (\[.*\])$"))
        port = self.port(name, int(check[1].rpartition(":")[2]))
        return run(PROBE, f"127.0.0.1:{port}", check[2]).returncode == 0

    def start_haproxy(self):
        text = mounted("haproxy").read_text()
        check = int(re.search(r"default-server port (\d+)", text)[1])
        text, count = re.subn(r"^  server (\w+) \1:(\d+)$", lambda m: (
            f"  server {m[1]} 127.0.0.1:{self.port(m[1], int(m[2]))} port {self.port(m[1], check)}"), text, flags=re.M)
        self.assertEqual(count, len(INSTANCES))
        text = re.sub(r"bind :(\d+)", lambda m: f"bind 127.0.0.1:{self.port('haproxy', int(m[1]))}", text)
        (self.directory / "haproxy.cfg").write_text(text)
        program = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin")
        checked = run(program, "-c", "-f", self.directory / "haproxy.cfg")
        self.assertEqual((checked.returncode, re.findall("WARNING|ALERT", checked.stdout)), (0, []), checked.stdout)
        self.start("haproxy", program, "-db", "-f", self.directory / "haproxy.cfg")
        self.eventually("HAProxy answers", lambda: self.status() == 200)

    def start_prometheus(self):
        text = mounted("prometheus").read_text()
        text = re.sub(r'"(\w+):(\d+)"', lambda m: f'"127.0.0.1:{self.port(m[1], int(m[2]))}"', text)
        (self.directory / "prometheus.yml").write_text(text)
        self.start("prometheus", "prometheus", f"--config.file={self.directory}/prometheus.yml",
                   f"--storage.tsdb.path={self.directory}/data",
                   f"--web.listen-address=127.0.0.1:{self.port('prometheus', 9090)}")

    def get(self, service, port, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port(service, port), timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def status(self):
        try:
            status, body = self.get("haproxy", 8000, "/")
        except OSError as error:
            return error
        return status if status != 200 or body == b"Hello, World!" else body

    def watched(self):
        """The instances that Prometheus finds up."""
        with contextlib.suppress(OSError):
            status, body = self.get("prometheus", 9090, "/api/v1/query?query=up")
            if status == 200:
                up = {result["metric"]["instance"]: result["value"][1]
                      for result in json.loads(body)["data"]["result"]}
                return [name for name in INSTANCES if up.get(f"127.0.0.1:{self.port(name, 9090)}") == "1"]
        return []

    def answered(self, name):
        """The number of requests that the instance has answered."""
        text = self.get(name, 9090, "/metrics")[1].decode()
        return sum(float(value) for value in re.findall(r"^http_requests_total\{.*\} (\S+)$", text, re.M))

    @contextlib.contextmanager
    def under_load(self):
        """Requests through HAProxy while the body runs. None may fail."""
        done, answers = threading.Event(), []

        def ask():
            while not done.is_set():
                answers.append(self.status())

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        try:
            yield answers
        finally:
            done.set()
            for client in clients:
                client.join()
        self.assertEqual([answer for answer in answers if answer != 200], [])

    def more(self, answers, count=50):
        wanted = len(answers) + count
        self.eventually(f"{count} more requests are answered", lambda: len(answers) >= wanted)

    def test_requests_go_on_while_instances_die_end_and_come_back(self):
        for name in INSTANCES:
            self.start_instance(name)
        self.start_haproxy()
        self.start_prometheus()
        self.eventually("Prometheus watches all", lambda: self.watched() == INSTANCES)
        with self.under_load() as answers:
            self.eventually("every instance answers", lambda: all(self.answered(name) > 0 for name in INSTANCES))
            self.processes["a"].kill()  # docker compose kill a
            self.more(answers)
            self.eventually("Prometheus notices", lambda: self.watched() == ["b", "c"])
            self.start_instance("a")  # as `restart: unless-stopped` does
            self.eventually("it answers again", lambda: self.answered("a") > 0)
            stop = getattr(signal, re.search(r"^STOPSIGNAL (\w+)$", (ROOT / "Dockerfile").read_text(), re.M)[1])
            self.processes["b"].send_signal(stop)  # docker compose stop b
            grace = int(re.fullmatch(r"(\d+)s", services()["b"]["stop_grace_period"])[1])
            self.assertEqual(self.processes["b"].wait(grace + PATIENCE_S), 0)
            self.more(answers)
        self.eventually("Prometheus notices", lambda: self.watched() == ["a", "c"])

    def test_an_instance_has_time_to_end(self):
        environment = services()["a"]["environment"]
        times = [int(re.fullmatch(r"(\d+)s", environment[f"TUZA_SHUTDOWN_{name}"])[1]) for name in ("DELAY", "TIMEOUT")]
        self.assertLess(sum(times), int(services()["a"]["stop_grace_period"].rstrip("s")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
