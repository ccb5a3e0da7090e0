#!/usr/bin/env python3
"""deployment_test.py HELLO PROBE: the files in conf/ for service managers, proxies and orchestrators fit the programs.

HAProxy and systemd accept the files, the options in them exist, ports and times agree, and an inherited socket is
served.
"""

import contextlib
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

HELLO, PROBE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
CONF = pathlib.Path(__file__).resolve().parents[2] / "conf"
PATIENCE_S = 60
# Settings of Linux (Documentation/networking/ip-sysctl.rst, admin-guide/sysctl/net.rst) that a container may not see.
OF_NETWORKS = {"net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_tw_reuse"}


def run(*words, **options):
    return subprocess.run(list(map(str, words)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PATIENCE_S, check=False, **options)


def seconds(text):
    return {"ms": 0.001, "s": 1, "m": 60}[re.sub(r"[\d.]", "", text)] * float(re.match(r"[\d.]+", text)[0])


def setting(name, *options):
    """The value with which `hello` would run, given these options."""
    section, key = name.split(".")
    text = run(HELLO, *options, "--print-config").stdout
    return re.search(rf"^\[{section}\]$.*?^{key} = (.*?)$", text, re.M | re.S)[1].strip('"')


def get(port, path="/"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def listening():
    """A socket as systemd opens it, and its port."""
    opened = socket.create_server(("127.0.0.1", 0))
    return opened, opened.getsockname()[1]


class Haproxy(unittest.TestCase):
    def test_configuration_is_valid_without_a_warning(self):
        program = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin")
        done = run(program, "-c", "-f", CONF / "haproxy.cfg")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotRegex(done.stdout, "WARNING|ALERT")

    def test_its_instances_can_be_started_as_it_says(self):
        text = (CONF / "haproxy.cfg").read_text()
        options = re.search(r"^#     hello (.*)$", text, re.M)[1].split()
        done = run(HELLO, *options, "--check-config")
        self.assertEqual(done.returncode, 0, done.stdout)
        servers = re.findall(r"^  server \w+ 127.0.0.1:(\d+) port (\d+)$", text, re.M)
        self.assertEqual(len(servers), 3)
        self.assertIn(f"127.0.0.1:{servers[0][0]}", options)
        self.assertIn(f"admin.listen=127.0.0.1:{servers[0][1]}", options)
        # HAProxy notices the drain before the listener closes, after two bad answers, the second after fastinter.
        check = {name: seconds(value) for name, value in re.findall(r"\b(inter|fastinter) (\S+)", text)}
        self.assertLess(check["inter"] + check["fastinter"], seconds(setting("shutdown.delay", *options)))


class Systemd(unittest.TestCase):
    def test_units_are_valid(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ("tuza-hello.service", "tuza-hello.socket"):
                text = (CONF / name).read_text().replace("/usr/local/bin/hello", str(HELLO))
                (pathlib.Path(directory) / name).write_text(text)
            units = [f"{directory}/tuza-hello.{kind}" for kind in ("service", "socket")]
            done = run("systemd-analyze", "verify", "--recursive-errors=no", "--man=no", *units)
        self.assertEqual((done.returncode, re.findall(r"^.*tuza-hello.*$", done.stdout, re.M)), (0, []), done.stdout)

    def test_service_waits_for_the_end_longer_than_the_server_takes(self):
        text = (CONF / "tuza-hello.service").read_text()
        options = ("--config", CONF / "production.toml")
        longest = sum(seconds(setting(f"shutdown.{name}", *options)) for name in ("delay", "timeout"))
        self.assertLess(longest, int(re.search(r"^TimeoutStopSec=(\d+)$", text, re.M)[1]))
        self.assertLess(int(setting("runtime.max_threads", *options)),
                        int(re.search(r"^TasksMax=(\d+)$", text, re.M)[1]))

    def test_socket_activation_by_systemd_itself(self):
        probe, port = listening()
        probe.close()
        server = subprocess.Popen(["systemd-socket-activate", "-l", f"127.0.0.1:{port}", str(HELLO)])
        try:
            deadline = time.monotonic() + PATIENCE_S
            while run(PROBE, f"127.0.0.1:{port}", "/").returncode != 0:  # the first probe starts the server
                self.assertIsNone(server.poll())
                self.assertLess(time.monotonic(), deadline)
            self.assertEqual(get(port), (200, b"Hello, World!"))
        finally:
            server.terminate()
        self.assertEqual(server.wait(PATIENCE_S), 0)

    def test_restarts_behind_an_inherited_socket_refuse_nobody(self):
        opened, port = listening()
        with opened:
            for _ in range(3):
                # A connection made while no server runs waits.
                with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as waiting:
                    waiting.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    server = self.serve(opened)
                    answer = b"".join(iter(lambda: waiting.recv(65536), b""))
                server.terminate()
                self.assertEqual(server.wait(PATIENCE_S), 0)
                self.assertRegex(answer, rb"(?s)^HTTP/1.1 200 .*Hello, World!$")

    def test_it_says_when_it_is_ready_and_when_it_ends(self):
        with tempfile.TemporaryDirectory() as directory, listening()[0] as opened, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(f"{directory}/notify")
            manager.settimeout(PATIENCE_S)
            server = self.serve(opened, NOTIFY_SOCKET=f"{directory}/notify")
            self.assertIn(b"READY=1", manager.recv(4096).split(b"\n"))
            server.send_signal(signal.SIGTERM)
            self.assertIn(b"STOPPING=1", manager.recv(4096).split(b"\n"))
            self.assertEqual(server.wait(PATIENCE_S), 0)

    def serve(self, opened, **environment):
        """Starts hello with `opened` as its descriptor 3, as systemd starts services."""
        # LISTEN_PID is known only in the new process, so a shell sets it.
        script = 'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" 3<&"$1"'
        server = subprocess.Popen(["sh", "-c", script, str(HELLO), str(opened.fileno())], pass_fds=[opened.fileno()],
                                  env=os.environ | environment)
        self.addCleanup(lambda: (server.kill(), server.wait()))
        return server


class Kubernetes(unittest.TestCase):
    def setUp(self):
        documents = list(yaml.safe_load_all((CONF / "kubernetes" / "hello.yaml").read_text()))
        self.of = {document["kind"]: document for document in documents}
        self.assertEqual(set(self.of), {"Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget",
                                        "NetworkPolicy"})
        self.pod = self.of["Deployment"]["spec"]["template"]
        self.container = self.pod["spec"]["containers"][0]
        self.ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}

    def test_the_server_accepts_its_arguments_and_listens_where_it_is_looked_for(self):
        done = run(HELLO, *self.container["args"], "--check-config")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f":{self.ports['http']}", setting("http.listen", *self.container["args"]))
        self.assertIn(f":{self.ports['admin']}", setting("admin.listen", *self.container["args"]))

    def test_probes_and_service_name_ports_that_are_there(self):
        for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
            get_action = self.container[probe]["httpGet"]
            self.assertEqual((get_action["path"], get_action["port"]), (path, "admin"))
        self.assertEqual([port["targetPort"] for port in self.of["Service"]["spec"]["ports"]], ["http"])

    def test_selectors_match_the_pods(self):
        labels = self.pod["metadata"]["labels"]
        for selector in (self.of["Deployment"]["spec"]["selector"]["matchLabels"],
                         self.of["Service"]["spec"]["selector"],
                         self.of["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
                         self.of["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]):
            self.assertEqual(selector, labels)
        target = self.of["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
        self.assertEqual((target["kind"], target["name"]), ("Deployment", self.of["Deployment"]["metadata"]["name"]))
        self.assertLess(self.of["PodDisruptionBudget"]["spec"]["minAvailable"],
                        self.of["HorizontalPodAutoscaler"]["spec"]["minReplicas"])

    def test_a_pod_has_time_to_end(self):
        pause = self.container["lifecycle"]["preStop"]["sleep"]["seconds"]
        args = self.container["args"]
        longest = pause + sum(seconds(setting(f"shutdown.{name}", *args)) for name in ("delay", "timeout"))
        self.assertLess(longest, self.pod["spec"]["terminationGracePeriodSeconds"])

    def test_image_is_that_of_this_version_and_is_pulled_as_its_tag_needs(self):
        version = re.search(r"^project\(tuza VERSION (\S+)", (CONF.parent / "CMakeLists.txt").read_text(), re.M)[1]
        self.assertEqual(self.container["image"], f"tuza-hello:{version}")
        self.assertEqual(self.container["imagePullPolicy"], "IfNotPresent")

    def test_everybody_may_connect_to_the_service_and_only_prometheus_to_the_admin_port(self):
        policy = self.of["NetworkPolicy"]["spec"]
        self.assertEqual((policy["policyTypes"], policy["egress"]), (["Ingress", "Egress"], []))
        allowed = {port["port"]: rule.get("from") for rule in policy["ingress"] for port in rule["ports"]}
        self.assertEqual(set(allowed), set(self.ports))
        self.assertIsNone(allowed["http"])
        self.assertEqual([list(peer) for peer in allowed["admin"]], [["namespaceSelector"]])

    def test_it_runs_as_the_user_of_the_image(self):
        dockerfile = (CONF.parent / "Dockerfile").read_text()
        user = re.search(r"^USER (\d+):(\d+)$", dockerfile, re.M)
        context = self.pod["spec"]["securityContext"]
        self.assertEqual((context["runAsUser"], context["runAsGroup"]), (int(user[1]), int(user[2])))


class Others(unittest.TestCase):
    def test_prometheus_accepts_its_files(self):
        done = run("promtool", "check", "config", CONF / "prometheus.yml")
        self.assertEqual(done.returncode, 0, done.stdout)
        # Debian's is built without Kubernetes: the rest of that file is judged.
        found = yaml.safe_load((CONF / "kubernetes/prometheus.yml").read_text())
        [job] = found["scrape_configs"]
        self.assertEqual(job.pop("kubernetes_sd_configs"), [{"role": "pod"}])
        ports = {rule.get("regex") for rule in job["relabel_configs"]}
        self.assertLessEqual({"tuza-hello", "admin"}, ports)
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as rest:
            yaml.safe_dump(found, rest)
            rest.flush()
            done = run("promtool", "check", "config", rest.name)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_prometheus_scrapes_the_admin_ports_of_haproxy_instances(self):
        found = yaml.safe_load((CONF / "prometheus.yml").read_text())
        targets = found["scrape_configs"][0]["static_configs"][0]["targets"]
        ports = re.findall(r"^  server \w+ \S+ port (\d+)$", (CONF / "haproxy.cfg").read_text(), re.M)
        self.assertEqual(targets, [f"127.0.0.1:{port}" for port in ports])

    def test_every_kernel_setting_exists_and_has_a_reason(self):
        lines = (CONF / "90-tuza.conf").read_text().splitlines()
        for number, line in enumerate(lines):
            if line and not line.startswith("#"):
                name, _, value = line.partition(" = ")
                self.assertRegex(value, r"^\d+( \d+)?$")
                self.assertTrue(lines[number - 1].startswith("#"), line)
                path = pathlib.Path("/proc/sys") / name.replace(".", "/")
                self.assertTrue(path.exists() or name in OF_NETWORKS, line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
