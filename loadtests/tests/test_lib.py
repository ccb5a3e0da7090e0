"""The parsers, against text as the programs print it, and what the report makes of numbers.

Run from loadtests/: python3 -m unittest
"""

import contextlib
import io
import os
import re
import socket
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace

import load
from lib import fleet, html, http, machine, peers, procfs, report, s_time, servers, strace, wrk
from lib.process import LoadTestError
from scenarios import rolling

WRK_GOOD = """Running 4s test @ http://127.0.0.1:8080/plaintext
  1 threads and 256 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.66ms  582.09us   7.56ms   77.55%
    Req/Sec   162.36k   157.90   170.51k    90.00%
  Latency Distribution
     50%    1.59ms
     75%    1.93ms
     90%    2.30ms
     99%    3.48ms
  649350 requests in 4.10s, 78.75MB read
Requests/sec: 158378.05
Transfer/sec:     19.21MB
"""
WRK_ERRORS = """Running 1s test @ http://127.0.0.1:8080/
  1 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     0.00us    0.00us   0.00us    -nan%
    Req/Sec     0.00      0.00     0.00      -nan%
  Latency Distribution
     50%    0.00us
     75%    0.00us
     90%    0.00us
     99%    1.10s
  25 requests in 1.00m, 1.32MB read
  Socket errors: connect 0, read 4, write 4107, timeout 0
  Non-2xx or 3xx responses: 25
Requests/sec:      0.00
Transfer/sec:       0.00B
"""
STRACE = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ------------------
 34.85    0.003800          15      9240         1 sendto
 31.54    0.003439          11      9293         7 recvfrom
 29.98    0.003269          11       297           epoll_wait
  1.16    0.000126          15         8         4 accept4
------ ----------- ----------- --------- --------- ------------------
100.00    0.010896          12     18838        12 total
"""
S_TIME = """..........

714 connections in 0.68s; 1050.00 connections/user sec, bytes read 111384
714 connections in 3 real seconds, 156 bytes read per connection
"""
ANSWER = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length:  5\r\n\r\nhello"


class Medians(unittest.TestCase):
    def test_one_row_per_metric_over_the_rounds(self):
        said = report.Report()
        for number, value in enumerate((3.0, 1.0, 2.0)):
            said.record("churn", "64", "hello", number + 1, {"total_us": value})
        said.record("churn", "64", "nginx", 1, {"total_us": 7.0})
        self.assertEqual(said.medians(), [("churn", "64", "hello", "total_us", "2"),
                                          ("churn", "64", "nginx", "total_us", "7")])


class HtmlReport(unittest.TestCase):
    def setUp(self):
        self.report = report.Report()
        for number, value in enumerate((1, 3, 2)):
            self.report.record("x", "small", "a<b", number, {"us": value})
        self.charts = {"x": (("us", "Time", "us"), ("absent", "Nothing", "s"))}

    def page(self):
        return html.page(self.report, ["machine   two & a half"], self.charts)

    def test_medians_and_ranges_of_what_was_recorded_and_all_is_escaped(self):
        page = self.page()
        self.assertIn("2 (1-3)", page)
        self.assertIn("two &amp; a half", page)
        self.assertIn("a&lt;b", page)
        self.assertNotIn("a<b", page)
        self.assertNotIn("Nothing", page)
        self.assertEqual(re.findall(r'(?:src|href|@import)', page), [])

    def test_one_scale_unless_it_would_hide_a_case(self):
        self.report.record("x", "larger", "a", 1, {"us": 20})
        self.assertNotIn("scale of its own", self.page())
        self.report.record("x", "huge", "a", 1, {"us": 2000})
        self.assertIn("scale of its own", self.page())


    def test_latencies_have_a_logarithmic_chart(self):
        self.assertNotIn("logarithmic", self.page())
        self.report.record("x", "small", "a", 1, {"p50_us": 10, "p99_us": 1000, "max_us": 0})
        self.report.record("x", "small", "b", 1, {"p50_us": 100, "p99_us": 10000, "max_us": 0})
        page = self.page()
        self.assertIn("Latency, logarithmic", page)
        centres = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', page)]
        self.assertEqual(len(centres), 4)  # the maximum was not measured
        # Equal ratios are equal distances.
        self.assertAlmostEqual(centres[1] - centres[0], centres[3] - centres[2], places=1)
        self.assertAlmostEqual(centres[1] - centres[0], 2 * (centres[2] - centres[0]), delta=0.2)
        for label in ("p50 10 µs", "p99 10 ms", ">1 ms<"):
            self.assertIn(label, page)

    def test_tables_are_tables_with_every_cell(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.report.say("before", *report.table(["case", "us", "bar"], [["a b", "1,000", "must <1"], ["c", "-", ""]]), "",
                            "after")
        page = self.page()
        self.assertIn("<tr><th>case<th class=n>us<th>bar<tr><td>a b<td class=n>1,000<td>must &lt;1<tr><td>c<td class=n>-<td>",
                      page)
        for text in ("<pre>before</pre>", "<pre>after</pre>"):
            self.assertIn(text, page)

    def test_what_casts_doubt_stands_before_the_verdicts(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.report.bar("ratio", 2.0, 1.2, 1.0)
            self.report.warn("others were busy")
            self.report.finish(False)
        page = self.page()
        self.assertLess(page.index("others were busy"), page.index("bar missed"))
        lines = self.report.lines
        self.assertLess(max(i for i, line in enumerate(lines) if "others were busy" in line), lines.index("bars missed: 1"))


class HandshakeReport(unittest.TestCase):
    def test_connections_and_bytes(self):
        self.assertEqual(s_time.parse(S_TIME), (714, 111384))

    def test_anything_else_is_refused(self):
        for text in ("", "ERROR\n40:error:0A000086\n", S_TIME.replace("714 connections in 0", "x")):
            with self.assertRaises(LoadTestError):
                s_time.parse(text)


class Prepared(unittest.TestCase):
    def test_port_and_folder_reach_command_and_files(self):
        spec = servers.Spec("x", ("server", "{dir}/x.conf", "{port}"), files=(("x.conf", "listen {port}; {dir};"),))
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(servers.prepared(spec, 81, directory), ["server", f"{directory}/x.conf", "81"])
            self.assertEqual((Path(directory) / "x.conf").read_text(), f"listen 81; {directory};")

    def test_nothing_of_the_template_is_left_in_nginx_configuration(self):
        spec = peers.nginx()
        if spec is not None:  # not installed: the scenarios say so
            self.assertNotIn("@", spec.files[0][1])


class WrkReport(unittest.TestCase):
    def test_totals_and_percentiles(self):
        result = wrk.parse(WRK_GOOD)
        self.assertEqual((result.requests, result.seconds), (649350, 4.1))
        self.assertAlmostEqual(result.p50_us, 1590)
        self.assertAlmostEqual(result.p99_us, 3480)
        self.assertAlmostEqual(result.rate, 649350 / 4.1)
        self.assertEqual(result.errors, ())

    def test_errors_are_kept_and_other_units_understood(self):
        result = wrk.parse(WRK_ERRORS)
        self.assertEqual(result.errors, ("Socket errors: connect 0, read 4, write 4107, timeout 0",
                                         "Non-2xx or 3xx responses: 25"))
        self.assertEqual((result.seconds, result.p50_us, result.p99_us), (60, 0, 1.1e6))

    def test_what_a_script_finds_wrong_is_an_error(self):
        self.assertEqual(wrk.parse(WRK_GOOD + "Wrong answers: 3\n").errors, ("Wrong answers: 3",))

    def test_no_answer_at_all_is_an_error(self):
        result = wrk.parse(WRK_ERRORS.replace("25 requests", "0 requests"))
        self.assertIn("no request was answered", result.errors)

    def test_anything_else_is_refused(self):
        for text in ("unable to connect to 127.0.0.1:1 Connection refused\n",
                     "\n".join(line for line in WRK_GOOD.splitlines() if "%" not in line)):
            with self.assertRaises(LoadTestError):
                wrk.parse(text)

    def test_pipelining_writes_a_script_and_removes_it(self):
        with wrk.script(wrk.Load(1)) as options:
            self.assertEqual(options, [])
        with wrk.script(wrk.Load(1, post="abc")) as (_, name):
            self.assertIn('wrk.method = "POST"\nwrk.body = "abc"', Path(name).read_text())
        with wrk.script(wrk.Load(1, lua="function done() end")) as (_, name):
            self.assertEqual(Path(name).read_text(), "function done() end")
        with wrk.script(wrk.Load(1, pipeline=16)) as (option, name):
            self.assertEqual(option, "-s")
            self.assertIn("for i = 1, 16 do requests[i] = wrk.format() end", Path(name).read_text())
        self.assertFalse(Path(name).exists())


class Programs(unittest.TestCase):
    def test_what_dev_builds_for_a_scenario_is_there(self):
        modules = load.find_scenarios()
        for name in [*modules, "all"]:
            for program in load.programs(modules, name):
                self.assertTrue(any((load.ROOT / folder / f"{program}.cpp").exists() for folder in ("examples", "loadtests")), program)
        self.assertEqual(load.programs(modules, "tcpproxy"), ["bulk", "tcp_proxy"])
        self.assertIn("stall_client", load.programs(modules, "all"))


class Fleet(unittest.TestCase):
    def test_failed_requests_are_counted_from_wrk_s_lines(self):
        self.assertEqual([rolling.failures(text) for text in wrk.parse(WRK_ERRORS).errors], [4111, 25])

    def test_errors_of_one_wrk_are_errors_of_all(self):
        good, bad = wrk.parse(WRK_GOOD), wrk.parse(WRK_ERRORS)
        together = rolling.together("x", [good, bad])
        self.assertEqual((together.requests, together.errors), (649375, bad.errors))
        with self.assertRaises(LoadTestError):
            rolling.together("x", [good, LoadTestError("wrk failed")])

    def test_configuration_differs_from_conf_in_ports_only(self):
        instances = [SimpleNamespace(port=21000 + i, admin=22000 + i) for i in range(3)]
        text = fleet.configuration(instances, 23000, "/x/control")
        self.assertIn("bind 127.0.0.1:23000\n", text)
        for i in range(3):
            self.assertRegex(text, rf"server \w+ 127.0.0.1:{21000 + i} port {22000 + i}\n")
        self.assertNotRegex(text, r"\b(808\d|908\d|8000)\b")
        self.assertIn("maxconn 4000\n", text)


class ProcFiles(unittest.TestCase):
    def test_stat_of_a_name_with_spaces_and_parentheses(self):
        text = "4711 (a) (b c) S 1 4700 4699 0 -1 4194304 95 0 0 0 123 456 7 8 20 0 3 0 70938 2"
        self.assertEqual(procfs.parse_stat(text), (4699, 123, 456))

    def test_fields_of_smaps_rollup_and_status(self):
        text = "00400000-7ffd ---p 00000000 00:00 0  [rollup]\nRss:  1234 kB\nPss:\t 567 kB\nPss_Anon: 1 kB\n"
        self.assertEqual(procfs.parse_fields(text, ("Rss", "Pss", "VmPTE")),
                         {"Rss": 1234, "Pss": 567, "VmPTE": 0})

    def test_busy_ticks_leave_out_idle_and_iowait(self):
        text = "cpu  1 2 4 800 1600 8 16 32 1 0\ncpu0 9 9\n"
        self.assertEqual(procfs.parse_busy_ticks(text), 1 + 2 + 4 + 8 + 16 + 32)

    def test_own_cpu_time_grows_with_work_and_is_divided_without_loss(self):
        pids = [os.getpid()]
        start = procfs.cpu_time(pids)
        while (used := procfs.cpu_time(pids) - start).total_s < 0.05:
            pass
        self.assertAlmostEqual(used.user_s + used.system_s, used.total_s)
        self.assertGreaterEqual(used.user_s, 0)

    def test_division_scales_ticks_to_the_exact_total(self):
        used = procfs.CpuTime(5.0, 110, 390) - procfs.CpuTime(1.0, 10, 90)
        self.assertEqual((used.total_s, used.user_s, used.system_s), (4.0, 1.0, 3.0))

    def test_own_memory_and_switches_can_be_read(self):
        pids = [os.getpid()]
        memory = procfs.memory_kb(pids)
        self.assertGreater(min(memory["Rss"], memory["Pss"], memory["VmPTE"]), 0)
        before = procfs.voluntary_switches(pids)
        time.sleep(0.001)
        self.assertGreater(procfs.voluntary_switches(pids), before)


class StraceSummary(unittest.TestCase):
    def test_counts_and_errors_with_and_without_the_errors_column(self):
        calls = strace.parse_summary(STRACE)
        self.assertEqual(calls["recvfrom"], strace.Calls(9293, 7))
        self.assertEqual(calls["epoll_wait"], strace.Calls(297, 0))
        self.assertNotIn("total", calls)

    def test_kinds(self):
        kinds, others = strace.by_kind(strace.parse_summary(STRACE) | {"readv": strace.Calls(7, 1)})
        self.assertEqual(kinds["read"], strace.Calls(9300, 8))
        self.assertEqual(kinds["write"].count, 9240)
        self.assertEqual(kinds["epoll_ctl"].count, 0)
        self.assertEqual(list(others), ["accept4"])


class HttpAnswers(unittest.TestCase):
    def test_incomplete_until_the_last_byte(self):
        for size in range(len(ANSWER)):
            self.assertIsNone(http.parse_response(ANSWER[:size]))
        response, size = http.parse_response(ANSWER + b"HTTP")
        self.assertEqual((response.status, response.body, size), (200, b"hello", len(ANSWER)))

    def test_what_cannot_be_checked_is_refused(self):
        for data in (b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", b"hello\r\n\r\n"):
            with self.assertRaises(LoadTestError):
                http.parse_response(data)

    def test_exactly_the_answers_asked_for(self):
        self.assertEqual(len(self.received(ANSWER * 3, 3)), 3)
        for data, count in ((ANSWER * 2, 3), (ANSWER * 3, 2), (ANSWER + b"x", 1)):
            with self.assertRaises(LoadTestError):
                self.received(data, count)

    def test_status_and_body_must_match(self):
        http.check_response(http.Response(200, {}, b"a"), b"a")
        for response in (http.Response(404, {}, b"a"), http.Response(200, {}, b"ab")):
            with self.assertRaises(LoadTestError):
                http.check_response(response, b"a")

    def received(self, data, count):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            return http.receive(ours, count, timeout_s=5)


class ServerNames(unittest.TestCase):
    def test_built_ones_come_from_the_build_directory(self):
        floor, hello = servers.parse_specs("floor,hello", Path("/b"))
        self.assertEqual(floor.command, ("/b/loadtests/floor", "--listen", "127.0.0.1:{port}"))
        self.assertEqual((hello.name, hello.command[0]), ("hello", "/b/examples/hello"))

    def test_others_bring_their_command(self):
        one, two, floor = servers.parse_specs("a=x -p{port} 'y z',b=w 1,2 {port},floor", Path("/b"))
        self.assertEqual(one.command, ("x", "-p{port}", "y z"))
        self.assertEqual(two.command, ("w", "1,2", "{port}"))
        self.assertEqual(servers.reference([one, two, floor]), floor)
        self.assertEqual(servers.reference([one, two]), one)

    def test_mistakes_are_named(self):
        for text in ("unknown", "a=command", "floor,floor", ""):
            with self.assertRaises(ValueError):
                servers.parse_specs(text, Path("/b"))


class Reports(unittest.TestCase):
    def test_verdicts_at_the_bar_and_just_above(self):
        self.assertEqual(report.verdict(1.204, 1.20, 1.08), "must 1.20 ok, aim 1.08 not yet")
        self.assertEqual(report.verdict(1.206, 1.20, 1.08), "must 1.20 MISSED")
        self.assertEqual(report.verdict(1.08, 1.20, 1.08), "must 1.20 ok, aim 1.08 ok")

    def test_exit_status(self):
        def status(strict, missed=False, failed=False):
            found = report.Report()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                if missed:
                    found.bar("x", 2, 1, 1)
                if failed:
                    found.fail("x")
                return found.finish(strict)

        self.assertEqual([status(True), status(False, missed=True)], [0, 0])
        self.assertEqual([status(True, missed=True), status(False, failed=True)], [1, 1])

    def test_table_aligns(self):
        self.assertEqual(report.table(["a", "bb"], [["xyz", 1]], left=1), ["a    bb", "---  --", "xyz   1"])

    def test_csv_has_a_line_for_each_number(self):
        file = io.StringIO()
        report.Report(file, "d", "c").record("s", "64", "floor", 1, {"rate": 123456.7, "p50_us": 2})
        self.assertEqual(file.getvalue().splitlines()[1:],
                         ["d,c,s,64,floor,1,rate,123457", "d,c,s,64,floor,1,p50_us,2"])

    def test_cmake_cache(self):
        text = "# c\n//doc=1\nCMAKE_CXX_FLAGS:STRING=-O2 -DX=1\n\nA-ADVANCED:INTERNAL=1\n"
        cache = machine.parse_cmake_cache(text)
        self.assertEqual(cache["CMAKE_CXX_FLAGS"], "-O2 -DX=1")


if __name__ == "__main__":
    unittest.main()
