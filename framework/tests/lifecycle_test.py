#!/usr/bin/env python3
"""lifecycle_test.py APP_SERVER: the life of a service, from start to end, and each signal at each of its phases."""

import contextlib
import fcntl
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import unittest

from app_testing import APP_SERVER, PATIENCE_S, Service, Test, get_over, rest, until


def until_caught(service, number):
    """Waits until the process has a handler for the signal (/proc: SigCgt)."""
    def caught():
        status = pathlib.Path(f"/proc/{service.process.pid}/status").read_text()
        return int(re.search(r"SigCgt:\s*([0-9a-f]+)", status)[1], 16) >> (number - 1) & 1
    until(caught)


class Start(Test):
    def test_an_address_in_use_is_one_line_and_status_1(self):
        first = self.service()
        port = first.port()
        second = self.service(arguments=["--listen", f"127.0.0.1:{port}"])
        self.assertEqual(second.end(), 1)
        self.assertIn(f"--listen (http.listen): listen 127.0.0.1:{port}: Address already in use",
                      second.says("app_server"))
        self.assertEqual(len(second.lines), 2)

    def test_an_address_that_cannot_be_used_is_reported_with_its_setting(self):
        taken = f"127.0.0.1:{self.service().port()}"
        file = self.folder() / "a.toml"
        file.write_text(f'[http]\nlisten = "{taken}"\n')
        for options, place in [({"arguments": ["--config", str(file)]}, f"{file}:2:http.listen"),
                               ({"arguments": [], "environment": {"TUZA_HTTP_LISTEN": taken}}, "TUZA_HTTP_LISTEN"),
                               ({"arguments": ["--set", f"http.listen={taken}"]}, "--set http.listen"),
                               ({"arguments": ["--listen", "127.0.0.1:0", "--set", f"admin.listen={taken}"]},
                                "--set admin.listen")]:
            with self.subTest(place=place):
                service = self.service(**options)
                self.assertEqual(service.end(), 1)
                self.assertIn(f"app_server: {place}: listen {taken}: Address already in use", service.says("app_server"))

    def test_the_reason_is_said_on_standard_error_wherever_the_log_goes(self):
        log = self.folder() / "log"
        service = self.service("test.fail=true", f"log.file={log}")
        self.assertEqual(service.end(), 1)
        self.assertEqual(service.says("app_server"), "app_server: set-up: the database is not there\n")
        self.assertIn("the database is not there\n", log.read_text())

    def test_a_log_file_that_cannot_be_opened(self):
        service = self.service("log.file=/nowhere/log")
        self.assertEqual(service.end(), 1)
        self.assertEqual(service.lines[0], "app_server: --set log.file: log file /nowhere/log: No such file or directory\n")

    def test_settings_reach_the_program(self):
        service = self.service("test.count=7", "test.size=2KiB", "test.text=hello", "test.list=x,y")
        self.assertEqual(service.get("/settings"), (200, "7 2048 hello x y\n"))

    def test_several_addresses_and_a_unix_socket(self):
        path = self.folder() / "socket"
        service = self.service(arguments=["--listen", "127.0.0.1:0", "--listen", f"unix:{path}"])
        self.assertEqual(service.get(), (200, "here\n"))
        service.says(f"unix:{path}")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE_S)
            connection.connect(str(path))
            self.assertIn("here", service.ask("/", connection).recv(65536).decode())
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 0)
        self.assertFalse(path.exists())

    def inherits(self, listeners, names=""):
        """Starts a process with inherited sockets, as systemd does."""
        def give():
            for number, listener in enumerate(listeners):
                os.dup2(fcntl.fcntl(listener.fileno(), fcntl.F_DUPFD, 10), 3 + number)
        # LISTEN_PID must be the pid of the child, which a shell knows.
        words = f'export LISTEN_PID=$$; exec "{APP_SERVER}" --listen 127.0.0.1:1'
        return subprocess.Popen(["sh", "-c", words],
                                env=os.environ | {"LISTEN_FDS": str(len(listeners)), "LISTEN_FDNAMES": names},
                                stderr=subprocess.PIPE, text=True, pass_fds=range(3, 3 + len(listeners)),
                                preexec_fn=give)

    def test_a_second_socket_for_the_admin_listener_is_refused(self):
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            process = self.inherits([one, other], "admin:admin")
        _, said = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn("a second socket named admin", said)

    def test_standard_error_that_is_closed_does_not_become_the_log(self):
        log = self.folder() / "log"
        service = self.service(f"log.file={log}", arguments=["--listen", f"unix:{log}.socket"],
                               preexec_fn=lambda: os.close(2))
        self.assertIn("here", get_over(f"{log}.socket"))
        self.assertEqual(os.readlink(f"/proc/{service.process.pid}/fd/2"), "/dev/null")

    def test_several_listeners_share_what_the_descriptors_allow(self):
        folder = self.folder()
        service = self.service(f"admin.listen=unix:{folder}/admin", arguments=["--listen", "127.0.0.1:0", "--listen",
                               f"unix:{folder}/socket"],
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
        def open_files():
            return len(os.listdir(f"/proc/{service.process.pid}/fd"))
        service.says(f"unix:{folder}/socket")
        own = open_files()
        many = [service.connect() for _ in range(80)]
        for _ in range(80):
            many.append(socket.socket(socket.AF_UNIX))
            many[-1].connect(f"{folder}/socket")
        for one in many:
            self.addCleanup(one.close)
        until(lambda: open_files() >= own + 68)
        self.assertIn(" 200 ", get_over(f"{folder}/admin", "/healthz"))
        self.assertLess(open_files(), 96)  # 34 connections of each kind; the others wait

    def test_sockets_of_systemd_go_before_the_settings(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            process = self.inherits([listener])
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                self.assertIn("here", connection.recv(65536).decode())
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE_S), 0)
        finally:
            process.kill()
            process.communicate()

    def test_systemd_is_told(self):
        service, manager = self.managed()
        self.assertEqual(manager.recv(1000), b"READY=1")
        self.assertEqual(service.get()[0], 200)
        service.send(signal.SIGHUP)
        self.assertRegex(manager.recv(1000), rb"^RELOADING=1\nMONOTONIC_USEC=\d+$")
        self.assertEqual(manager.recv(1000), b"READY=1")
        service.send(signal.SIGTERM)
        self.assertEqual(manager.recv(1000), b"STOPPING=1")
        self.assertEqual(service.end(), 0)

    def test_systemd_hears_of_no_reload_before_it_is_ready_or_after_the_end_has_begun(self):
        service, manager = self.managed("test.start_delay=1s", "shutdown.delay=1h")
        until_caught(service, signal.SIGHUP)
        service.send(signal.SIGHUP)
        service.says("SIGHUP: log.level")
        self.assertFalse(service.logged("serving"))
        self.assertEqual(manager.recv(1000), b"READY=1")
        service.send(signal.SIGTERM)
        self.assertEqual(manager.recv(1000), b"STOPPING=1")
        service.send(signal.SIGHUP)
        service.says("SIGHUP: log.level", 2)
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 1)
        manager.setblocking(False)
        self.assertRaises(BlockingIOError, manager.recv, 1000)

    def managed(self, *settings):
        """(service, the manager's end of $NOTIFY_SOCKET)"""
        path = self.folder() / "notify"
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(str(path))
        manager.settimeout(PATIENCE_S)
        return self.service(*settings, environment={"NOTIFY_SOCKET": str(path)}), manager


class Starting(Test):
    """Signals before the service listens."""

    def starting(self, *settings) -> Service:
        service = self.service("test.start_delay=1s", *settings)
        until_caught(service, signal.SIGTERM)
        return service

    def test_sigterm_ends_it_before_it_listens(self):
        service = self.starting()
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 0)
        self.assertFalse([line for line in service.lines if line and "serving" in line])

    def test_a_second_sigterm_ends_it_at_once(self):
        service = self.starting("test.start_delay=1h")
        service.send(signal.SIGTERM)
        service.says("SIGTERM: ")
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 1)

    def test_a_start_that_does_not_finish_ends_after_the_timeout(self):
        service = self.starting("test.start_delay=1h", "shutdown.timeout=100ms")
        service.send(signal.SIGINT)
        self.assertEqual(service.end(), 1)
        service.says("start-up did not finish in time")

    def test_sighup_and_sigquit_do_not_disturb_it(self):
        service = self.starting()
        service.send(signal.SIGHUP, signal.SIGQUIT)
        service.says("SIGHUP: ")
        self.assertEqual(service.get()[0], 200)

    def test_sighup_and_sigquit_from_its_first_moment_on(self):
        for number in (signal.SIGHUP, signal.SIGQUIT):
            # The program inherits the signal as ignored, and must catch it nevertheless.
            service = self.service(preexec_fn=lambda number=number: signal.signal(number, signal.SIG_IGN))
            service.send(number)
            self.assertEqual(service.get()[0], 200)
            service.send(signal.SIGTERM)
            self.assertEqual(service.end(), 0)


class Serving(Test):
    def test_idle_connections_end_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            service = self.service()
            idle = [service.connect() for _ in range(5)]
            self.assertEqual(service.get()[0], 200)
            service.send(number)
            self.assertEqual(service.end(), 0)
            self.assertEqual([rest(connection) for connection in idle], [""] * 5)

    def test_requests_in_flight_finish_and_say_close(self):
        service = self.service()
        busy = [service.ask("/sleep?ms=2000") for _ in range(5)]
        service.says("sleeps", 5)
        service.send(signal.SIGTERM, signal.SIGTERM)  # one, as timeout(1) signals a process, and its group behind it
        for connection in busy:
            answer = rest(connection)
            self.assertIn("slept\n", answer)
            self.assertIn("Connection: close", answer)
        self.assertEqual(service.end(), 0)

    def test_a_request_that_is_on_its_way_is_answered(self):
        for _ in range(5):
            service = self.service()
            connections = [service.connect() for _ in range(20)]
            self.assertEqual(service.get()[0], 200)
            for connection in connections:
                service.ask("/", connection)
            service.send(signal.SIGTERM)
            for connection in connections:
                self.assertIn("here", rest(connection))
            self.assertEqual(service.end(), 0)

    def test_nothing_is_accepted_any_more(self):
        service = self.service()
        busy = service.ask("/sleep?ms=3000")
        port = service.port()
        service.says("sleeps")
        service.send(signal.SIGTERM)
        service.says("SIGTERM: ")
        with self.assertRaises(ConnectionRefusedError):
            until(lambda: socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close())
        self.assertIn("slept", rest(busy))
        self.assertEqual(service.end(), 0)

    def test_during_the_delay_everything_is_served(self):
        service = self.service("shutdown.delay=3s")
        self.assertEqual(service.get()[0], 200)
        service.send(signal.SIGTERM)
        service.says("SIGTERM: ")
        self.assertEqual(service.get()[0], 200)
        self.assertEqual(service.end(), 0)

    def test_the_log_does_not_say_that_nothing_is_accepted_during_the_delay(self):
        service = self.service("shutdown.delay=1h")
        self.assertEqual(service.get()[0], 200)
        service.send(signal.SIGTERM)
        service.says("SIGTERM: draining; connections are accepted for another 1h (shutdown.delay)")
        self.assertEqual(service.get()[0], 200)
        self.assertEqual((service.logged("no new"), service.logged("no more")), ([], []))

    def test_the_log_says_each_stage_of_the_drain_when_it_begins(self):
        service = self.service("shutdown.delay=1ms", "shutdown.timeout=1h", "admin.listen=127.0.0.1:0")
        busy = service.ask("/sleep?ms=300")
        service.says("sleeps")
        service.send(signal.SIGTERM)
        self.assertIn("slept", rest(busy))
        self.assertEqual(service.end(), 0)
        said = "".join(line for line in service.lines if line is not None)
        self.assertRegex(said, r"(?s)SIGTERM: draining, /readyz answers 503; connections are accepted for another 1ms "
                               r"\(shutdown.delay\).*: no more connections are accepted; \d open, requests have 1h to "
                               r"finish \(shutdown.timeout\).*app_server: ended\n")

    def test_what_does_not_finish_is_cut_off_and_the_status_is_1(self):
        service = self.service("shutdown.timeout=200ms")
        endless = service.ask("/endless")
        self.assertIn("200 OK", endless.recv(1000).decode())
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 1)
        service.says("cut off")
        self.assertNotIn("\r\n0\r\n", rest(endless))

    def test_a_handler_that_notices_nothing_does_not_keep_it(self):
        service = self.service("shutdown.timeout=100ms")
        self.addCleanup(service.ask("/sleep?ms=3600000").close)
        service.says("sleeps")
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 1)
        self.assertIn("; the goroutines are on standard error", service.says("did not end even after being cut off"))
        service.says("  serving GET /sleep?ms=3600000")


class Draining(Test):
    def draining(self, *settings) -> Service:
        service = self.service("shutdown.timeout=1h", *settings)
        self.busy = service.ask("/endless")
        self.addCleanup(self.busy.close)
        self.assertIn("200 OK", self.busy.recv(1000).decode())
        service.send(signal.SIGTERM)
        service.says("SIGTERM: ")
        return service

    def test_a_second_signal_ends_it_at_once(self):
        for second in (signal.SIGTERM, signal.SIGINT):
            service = self.draining()
            service.send(second)
            self.assertEqual(service.end(), 1)
            service.says("again")
            rest(self.busy)

    def test_a_second_signal_ends_the_delay_too(self):
        service = self.draining("shutdown.delay=1h")
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 1)

    def test_sighup_and_sigquit_do_not_disturb_it(self):
        service = self.draining()
        service.send(signal.SIGHUP, signal.SIGQUIT)
        service.says("SIGHUP: ")
        self.assertIsNone(service.process.poll())
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 1)

    def test_signals_while_it_cuts_off_and_ends(self):
        service = self.service("shutdown.timeout=100ms")
        self.addCleanup(service.ask("/sleep?ms=3600000").close)  # abandoned a second after it was cut off
        service.says("sleeps")
        service.send(signal.SIGTERM)
        service.says("SIGTERM: ")
        time.sleep(0.3)
        service.send(signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)
        self.assertEqual(service.end(), 1)


class Admin(Test):
    def administered(self, *settings):
        path = self.folder() / "admin"
        return self.service(f"admin.listen=unix:{path}", *settings), path

    def test_ready_until_the_end_begins_and_healthy_to_the_last(self):
        service, admin = self.administered("shutdown.delay=3s")
        self.assertIn(" 200 ", get_over(admin, "/readyz"))
        service.send(signal.SIGTERM)
        service.says("SIGTERM: ")
        self.assertIn(" 503 ", get_over(admin, "/readyz"))
        self.assertIn(" 200 ", get_over(admin, "/healthz"))
        self.assertEqual(service.get()[0], 200)
        self.assertEqual(service.end(), 0)
        self.assertFalse(admin.exists())

    def test_it_answers_while_requests_finish(self):
        service, admin = self.administered()
        busy = service.ask("/sleep?ms=3000")
        service.says("sleeps")
        service.send(signal.SIGTERM)
        service.says("SIGTERM: ")
        self.assertIn(" 503 ", get_over(admin, "/readyz"))
        self.assertIn("sleep", get_over(admin, "/debug/goroutines"))
        self.assertIn("slept", rest(busy))
        self.assertEqual(service.end(), 0)

    def test_requests_and_lost_lines_are_counted(self):
        service, admin = self.administered("log.queue_lines=16")
        for _ in range(3):
            self.assertEqual(service.get("/log?lines=5000&bytes=10")[0], 200)
        metrics = get_over(admin, "/metrics")
        self.assertRegex(metrics, r'(?m)^http_requests_total\{.*method="GET".*\} 3(\.0)?$')
        self.assertRegex(metrics, r"(?m)^log_lines_dropped_total [1-9]")

    def test_without_metrics_requests_are_not_counted(self):
        service, admin = self.administered("metrics.enabled=false")
        self.assertEqual(service.get()[0], 200)
        self.assertNotRegex(get_over(admin, "/metrics"), r'(?m)^http_requests_total\{.*method="GET".*\} [1-9]')


class Dump(Test):
    def test_sigquit_writes_all_goroutines_and_goes_on(self):
        service = self.service()
        self.addCleanup(service.ask("/sleep?ms=3600000").close)
        service.says("sleeps")
        for times in (1, 2):
            service.send(signal.SIGQUIT)
            service.says("signals", times)
            service.says("sleep", times + 1)
            self.assertEqual(service.get()[0], 200)


class Reload(Test):
    def test_the_level_of_the_log(self):
        file = self.folder() / "a.toml"
        file.write_text('[log]\nlevel = "info"\n')
        service = self.service(arguments=["--listen", "127.0.0.1:0", "--config", str(file)])
        service.get("/levels")
        file.write_text('[log]\nlevel = "debug"\n[http]\nserver_name = "other"\n')
        service.send(signal.SIGHUP)
        service.says("log.level is debug")
        self.assertIn("http.server_name", service.says("takes effect at the next start"))
        service.get("/levels")
        service.says("a debug line")
        self.assertEqual(len([line for line in service.lines if "a debug line" in line]), 1)

    def test_what_is_wrong_changes_nothing_and_is_one_line(self):
        file = self.folder() / "a.toml"
        file.write_text('[log]\nlevel = "info"\n')
        service = self.service(arguments=["--listen", "127.0.0.1:0", "--config", str(file)])
        service.port()
        file.write_text('[log]\nlevel = "debug"\n[http]\nbody_max = 1\nidle_timeout = 1\n')
        service.send(signal.SIGHUP)
        line = service.says("the settings stay as they were")
        self.assertIn(f"{file}:4:http.body_max: expected", line)
        self.assertIn("(and 1 more)", line)
        file.write_text('[log]\nlevel = "debug"\n')
        service.send(signal.SIGHUP)
        service.says("log.level is debug")
        self.assertEqual(len(service.lines), 3)

    def test_one_that_is_nested_deep_is_refused_as_well(self):
        file = self.folder() / "a.toml"
        file.touch()
        service = self.service(arguments=["--listen", "127.0.0.1:0", "--config", str(file)])
        service.port()
        key = ".".join(["a"] * 60)
        texts = ["a = " + "[" * 230 + "]" * 230, "a." * 5000 + "a = 1", '"!".' * 5000 + "a = 1",
                 f"{key} = " + f"{{ {key} = " * 25 + "1" + " }" * 25]
        for number, text in enumerate(texts):
            file.write_text(text)
            service.send(signal.SIGHUP)
            service.says("the settings stay as they were", number + 1)
        self.assertEqual(service.get()[0], 200)

    def test_one_that_hangs_keeps_nobody_from_ending_it(self):
        service, file = self.reads_a_fifo()
        writers = []
        def somebody_reads():
            with contextlib.suppress(OSError):  # ENXIO: no reader
                writers.append(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
            return writers
        until(somebody_reads)
        self.addCleanup(os.close, writers[0])
        self.assertEqual(service.get()[0], 200)
        service.send(signal.SIGHUP)
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 0, service.lines)
        self.assertFalse(service.logged("SIGHUP"))

    def test_a_signal_that_comes_meanwhile_is_once_more(self):
        service, file = self.reads_a_fifo()
        with open(file, "w", encoding="ascii") as first:  # open() returns when the service reads
            later = file.with_name("b.toml")
            later.write_text('[log]\nlevel = "debug"\n')
            later.rename(file)
            service.send(signal.SIGHUP)
            first.write('[log]\nlevel = "trace"\n')
        service.says("log.level is debug")

    def reads_a_fifo(self):
        """(a service that reloads from a file that does not answer, the FIFO): a FIFO acts like a dead NFS server."""
        file = self.folder() / "a.toml"
        file.touch()
        service = self.service(arguments=["--listen", "127.0.0.1:0", "--config", str(file)])
        service.port()
        file.unlink()
        os.mkfifo(file)
        service.send(signal.SIGHUP)
        return service, file

    def test_a_log_file_that_is_a_fifo_now(self):
        log = self.folder() / "log"
        service = self.service(f"log.file={log}", arguments=["--listen", f"unix:{log}.socket"])
        self.assertIn("here", get_over(f"{log}.socket"))
        moved = log.rename(log.with_name("log.1"))
        os.mkfifo(log)
        service.send(signal.SIGHUP)
        until(lambda: "a FIFO without a reader" in moved.read_text())
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 0)
        self.assertIn("ended", moved.read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
