#!/usr/bin/env python3
"""admin_test.py PROGRAM [--without TEST...]: /healthz, /readyz, /metrics and /debug are true of the service in the same process."""

import http.client
import json
import re
import socket
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from admin_client import PATIENCE_S, WithServer, fetch, parse_metrics, until


class Admin(WithServer):
    def get(self, path):
        return fetch(self.server.admin, path)

    def metrics(self):
        status, headers, text = self.get("/metrics")
        self.assertEqual((status, headers["content-type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        return parse_metrics(text)

    def test_health_and_readiness(self):
        self.assertEqual(self.get("/healthz")[::2], (200, "ok\n"))
        self.assertEqual(self.get("/readyz")[::2], (200, "ready\n"))
        self.server.say("drain")
        until(lambda: self.get("/readyz")[0] == 503, "not ready")
        self.assertEqual(self.get("/readyz")[2], "draining\n")
        self.assertEqual(self.get("/healthz")[0], 200)
        self.server.say("ready")
        until(lambda: self.get("/readyz")[0] == 200, "ready again")
        self.assertEqual(fetch(self.server.admin, "/healthz", "HEAD")[0], 200)
        self.assertEqual(fetch(self.server.admin, "/healthz", "POST")[0], 405)
        self.assertEqual(self.get("/nothing")[0], 404)

    def test_the_index_names_every_page_and_each_of_them_answers(self):
        for path in ("/", "/debug", "/debug/"):
            status, headers, text = self.get(path)
            self.assertEqual((status, headers["content-type"]), (200, "text/plain; charset=utf-8"), path)
        self.assertTrue(text.startswith('test "<b>: the admin address\n\n'), text)
        rows = dict(line.split(None, 1) for line in text.splitlines()[2:])
        self.assertLessEqual({"/healthz", "/readyz", "/metrics", "/debug/sched", "/debug/goroutines"}, rows.keys())
        for row, about in rows.items():
            self.assertEqual(self.get(row)[0], 200, row)
            self.assertGreater(len(about), 10)
        html = self.html("/")
        self.assertEqual(re.findall(r'href="([^"]*)"', html), list(rows))
        self.assertIn("test &quot;&lt;b&gt;", html)
        for path in ("/", "/debug"):
            status, _, body = fetch(self.server.admin, path, "HEAD")
            self.assertEqual((status, body), (200, ""))
            status, headers, _ = fetch(self.server.admin, path, "POST")
            self.assertEqual((status, headers["allow"]), (405, "GET, HEAD, OPTIONS"))
        self.assertEqual(self.get("/debug/nothing")[0], 404)

    def html(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.admin, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        response = connection.getresponse()
        self.assertEqual((response.status, response.getheader("Content-Type")), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", response.getheader("Content-Security-Policy"))
        return response.read().decode()

    def test_metrics_count_requests(self):
        service = self.server.service
        for _ in range(20):
            self.assertEqual(fetch(service, "/")[0], 200)
        self.assertEqual(fetch(service, "/nowhere")[0], 404)
        self.assertEqual(fetch(service, "/throw")[0], 500)
        self.assertEqual(fetch(service, "/echo", "POST", b"x" * 900)[0], 200)
        self.assertEqual(fetch(service, "/echo", "POST", b"x" * 1001)[0], 413)
        with socket.create_connection(("127.0.0.1", service), timeout=PATIENCE_S) as client:
            client.sendall(b"nonsense\r\n\r\n")
            self.assertIn(b" 400 ", client.recv(1000))
        client = self.start("/goexit")
        self.assertEqual(client.recv(1000), b"")
        requests = "http_requests_total"
        want = {("GET", "2xx"): 20, ("GET", "4xx"): 1, ("GET", "5xx"): 1, ("POST", "2xx"): 1, ("POST", "4xx"): 1,
                ("GET", "none"): 1}
        count = lambda m: {(dict(l)["method"], dict(l)["code"]): n for (name, l), n in m.items() if name == requests}
        # From the first request with a method on, all classes of this method are there.
        for method in ("GET", "POST"):
            for code in ("none", "2xx", "3xx", "4xx", "5xx"):
                want.setdefault((method, code), 0)
        until(lambda: count(self.metrics()) == want, f"{want}, not {count(self.metrics())}")
        metrics = self.metrics()
        value = lambda name, **labels: metrics[name, tuple(sorted(labels.items()))]
        self.assertEqual(value("http_request_duration_seconds_count"), 25)
        self.assertGreater(value("http_request_duration_seconds_sum"), 0)
        routes = {"GET /{$}": ("2xx", 20), "(none)": ("4xx", 1), "GET /throw": ("5xx", 1), "GET /goexit": ("none", 1)}
        for pattern, (code, count) in routes.items():
            self.assertEqual(value("http_route_requests_total", pattern=pattern, code=code), count)
            self.assertEqual(value("http_route_duration_seconds_count", pattern=pattern), count)
        self.assertEqual(value("http_route_requests_total", pattern="POST /echo", code="2xx"), 1)
        self.assertEqual(value("http_response_bytes_total"), 20 * 7 + 10 + 900)
        self.assertEqual(value("http_requests_in_flight"), 0)
        self.assertEqual(value("http_requests_refused_total", code="413"), 1)
        self.assertEqual(value("http_requests_refused_total", code="400"), 1)
        self.assertEqual(value("http_connections_accepted_total"), 26)
        self.assertEqual(value("http_handler_exceptions_total"), 1)
        self.assertEqual(value("log_lines_dropped_total"), 7)

    def test_requests_in_flight_and_connections(self):
        clients = [self.start("/nap") for _ in range(5)]
        def now(name):
            return self.metrics()[name, ()]
        until(lambda: now("http_requests_in_flight") == 5, "in flight")
        self.assertEqual(now("http_connections_open"), 5)
        self.assertGreaterEqual(self.metrics()["tuza_goroutines_waiting", (("reason", "sleep"),)], 5)
        for client in clients:
            client.close()

    def test_metrics_of_runtime_and_process(self):
        metrics = self.metrics()
        value = lambda name, **labels: metrics[name, tuple(sorted(labels.items()))]
        pid = self.server.process.pid
        self.assertGreaterEqual(value("tuza_procs"), 1)
        self.assertGreaterEqual(value("tuza_threads"), 1)
        waiting = "tuza_goroutines", (("state", "waiting"),)
        until(lambda: self.metrics()[waiting] >= 2, "those that accept connections wait")
        self.assertGreater(value("tuza_picks_total"), 0)
        self.assertGreater(value("process_cpu_seconds_total"), 0)
        with open(f"/proc/{pid}/statm") as statm:
            resident = int(statm.read().split()[1]) * 4096
        self.assertTrue(0.5 < value("process_resident_memory_bytes") / resident < 2)
        self.assertTrue(abs(value("process_start_time_seconds") - time.time()) < 3600)
        self.assertGreater(value("process_open_fds"), 4)
        self.assertGreaterEqual(value("process_max_fds"), value("process_open_fds"))

    def test_goroutines(self):
        for _ in range(3):
            self.start("/nap")
        until(lambda: "3 goroutines [sleep" in self.get("/debug/goroutines?group=1")[2], "three that nap")
        status, headers, text = self.get("/debug/goroutines")
        self.assertEqual((status, headers["content-type"]), (200, "text/plain; charset=utf-8"))
        self.assertRegex(text, r"\A\d+ goroutines: \d+ running, \d+ runnable, \d+ waiting\n")
        napping = [entry for entry in text.split("\n\n") if "] napping:" in entry]
        self.assertEqual(len(napping), 3)
        for entry in napping:
            self.assertRegex(entry, r"goroutine \d+ \[sleep, \d+ \w+\] napping:\n  serving GET /nap\n  #0  ")
            self.assertIn("nap_for_long", entry)
            self.assertIn("tuza::http::RequestLoop::serve()", entry)
            self.assertRegex(entry, r"created by goroutine \d+ in .*\n    at .*serve\.cpp:\d+")
        self.assertNotIn("  #0", self.get("/debug/goroutines?stacks=0")[2])
        grouped = self.get("/debug/goroutines?group=1")[2]
        self.assertEqual(grouped.count("nap_for_long"), 1, grouped)

    def dumped(self, path, *wanted):
        """The entry of the goroutine that serves this path, once it contains all that is wanted."""
        self.start(path)
        found = ""

        def complete():
            nonlocal found
            text = self.get("/debug/goroutines")[2]
            found = next((entry for entry in text.split("\n\n") if f"serving GET {path}\n" in entry), "")
            return all(text in found for text in wanted)

        until(complete, f"{wanted} in the entry of {path}")
        return found

    def test_goroutines_that_compute_are_named(self):
        """A handler that never returns to the scheduler: its request, how long it has run, and where it is."""
        found = self.dumped("/burn?ms=60000", "without a P", "burn_for_long")
        self.assertRegex(found, r"\Agoroutine \d+ \[running without a P, \d+ \w+(, \d+ \w+ of CPU)?, M\d+\].*:\n"
                                r"  serving GET /burn\?ms=60000\n  #0  ")
        self.assertIn("tuza::http::RequestLoop::serve()", found)
        self.assertRegex(found, r"created by goroutine \d+ in .*\n    at .*serve\.cpp:\d+")

    def test_goroutines_that_wait_in_the_kernel_are_named(self):
        found = self.dumped("/block?for=60s", "in the kernel")
        self.assertRegex(found, r"in the kernel: clock_nanosleep, .*:\n  serving GET /block\?for=60s\n  #0  ")

    def test_sched_json(self):
        self.start("/burn")
        self.start("/nap")
        # The condition is checked on the same state that is examined below: the goroutine that starts the service may
        # be in the lane too.
        states = []

        def burner_in_the_lane():
            states.append(self.json())
            # Counters and machines are read one after the other, and the burner may get a P between them.
            return states[-1]["http"]["in_flight"] == 2 and states[-1]["sched"]["lane"] > 0 and any(
                m["state"] in ("lane", "suspended") and m["proc"] == -1 for m in states[-1]["machines"])

        until(burner_in_the_lane, "somebody in the lane")
        state = states[-1]
        self.assertEqual(state["service"], 'test "<b>')
        sched = state["sched"]
        self.assertEqual(len(state["procs"]), sched["max_procs"])
        self.assertTrue(all(p["state"] in ("idle", "running", "retired") for p in state["procs"]))
        self.assertGreater(sched["lane"], 0)
        self.assertGreaterEqual(state["goroutines"]["running"], 1)
        self.assertEqual(sum(state["goroutines"]["waiting_for"].values()), state["goroutines"]["waiting"])
        self.assertEqual(state["http"]["in_flight"], 2)
        self.assertEqual(state["http"]["connections"], 2)
        self.assertEqual(state["pools"], [{"name": "db <i>", "busy": 1, "idle": 0, "waiting": 0, "opened": 1, "waits": 0,
                                           "wait_ns": 0}])
        self.assertEqual(state["clients"], [{"name": "weather", "busy": 0, "idle": 0, "waiting": 0, "opened": 0,
                                             "requests": 0}])
        self.assertEqual([(u["proxy"], u["up"], u["requests"]) for u in state["upstreams"]], [("api", True, 0)])
        later = self.json()
        for counter in ("picks", "started", "uptime_ms", "handoffs", "sysmon_ticks"):
            self.assertGreaterEqual(later["sched"][counter], sched[counter], counter)
        self.assertGreater(sched["handoffs"], 0)

    def json(self):
        status, headers, text = self.get("/debug/sched.json")
        self.assertEqual((status, headers["content-type"]), (200, "application/json"))
        return json.loads(text)

    def test_everything_at_once_under_load(self):
        paths = ["/metrics", "/debug/goroutines", "/debug/goroutines?group=1", "/debug/sched.json", "/healthz"]
        with ThreadPoolExecutor(10) as pool:
            load = [pool.submit(fetch, self.server.service, "/") for _ in range(300)]
            looks = [pool.submit(fetch, self.server.admin, path) for path in paths * 12]
            self.assertEqual({done.result()[0] for done in load + looks}, {200})
        requests = self.metrics()["http_requests_total", (("code", "2xx"), ("method", "GET"))]
        self.assertEqual(requests, 300)

    def test_probes_are_not_behind_readers_of_dumps(self):
        readers = []
        for _ in range(64):
            reader = socket.socket()
            self.addCleanup(reader.close)
            reader.settimeout(PATIENCE_S)
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", self.server.admin))
            reader.sendall(b"GET /debug/goroutines HTTP/1.1\r\nHost: a\r\n\r\n" * 200)
            readers.append(reader)
        for reader in readers:  # each of them is being served
            self.assertEqual(reader.recv(1), b"H")
        for path in ("/readyz", "/healthz", "/metrics"):
            self.assertEqual(self.get(path)[0], 200)

    def test_the_page_needs_nothing_from_elsewhere(self):
        status, headers, text = self.get("/debug/sched")
        self.assertEqual((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", headers["content-security-policy"])
        links = re.findall(r'(?:src|href)="([^"]*)"', text)
        self.assertEqual(set(links), {"data:,", "goroutines?group=1", "goroutines", "../metrics"})


if __name__ == "__main__":
    for left_out in sys.argv[3:]:
        delattr(Admin, left_out)
    unittest.main(argv=sys.argv[:1])
