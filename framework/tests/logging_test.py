#!/usr/bin/env python3
"""logging_test.py APP_SERVER: the format of log lines; no problem with the log disturbs the service."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import unittest

from app_testing import APP_SERVER, PATIENCE_S, Test, exchange, get_over, until

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class Lines(Test):
    def test_console(self):
        service = self.service("log.level=debug")
        service.get("/levels")
        self.assertRegex(service.says("a debug line"), rf"^{TIME} debug   a debug line\n$")
        self.assertRegex(service.says("two"), rf'^{TIME} warning a line\\x0ain "two" with \\x1b\[31m\n$')

    def test_json(self):
        service = self.service("log.level=debug", "log.format=json", "http.access_log=true")
        service.get("/levels")
        service.says('"/levels"')
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 0)
        objects = [json.loads(line) for line in filter(None, service.lines)]
        for o in objects:
            self.assertRegex(o["time"], f"^{TIME}$")
        self.assertIn(("warning", 'a line\nin "two" with \x1b[31m'), [(o["level"], o.get("message")) for o in objects])
        request = next(o for o in objects if o.get("event") == "request")
        self.assertEqual((request["method"], request["target"], request["status"], request["bytes"]),
                         ("GET", "/levels", 200, 7))
        self.assertRegex(request["remote"], r"^127\.0\.0\.1:\d+$")
        self.assertGreaterEqual(request["duration_us"], 0)

    def test_what_clients_send_stays_within_its_line(self):
        # The parser rejects quotation marks in targets, and control characters of one byte: 400. It lets backslashes pass in
        # a query, behind which the quotation mark after the target would be one of the text.
        agent = b'"evil\\ \xff \xc3\xa9 \xc2\x9b2J'
        logged = {"console": rb'"GET /\?%22\\\\" 200 5B \d+us "\\"evil\\\\ \\xff ' + b"\xc3\xa9" + rb' \\x9b2J"$',
                  "json": rb'"target":"/\?%22\\\\",.*"user_agent":"\\"evil\\\\ \\ufffd ' + b"\xc3\xa9" +
                          rb' \\u009b2J"}$'}
        for form, expected in logged.items():
            folder = self.folder()
            service = self.service("http.access_log=true", f"log.format={form}", f"log.file={folder}/log",
                                   arguments=["--listen", f"unix:{folder}/socket"])
            answer = exchange(folder / "socket", b"GET /?%22\\ HTTP/1.1\r\nHost: a\r\nUser-Agent: " + agent +
                              b"\r\nConnection: close\r\n\r\n")
            self.assertIn("200 OK", answer)
            for bad in (b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: evil \x1b[2J\r\n\r\n",
                        b'GET /"evil HTTP/1.1\r\nHost: a\r\n\r\n'):
                self.assertIn("400 Bad Request", exchange(folder / "socket", bad))
            service.send(signal.SIGTERM)
            self.assertEqual(service.end(), 0)
            lines = (folder / "log").read_bytes().splitlines()
            requests = [line for line in lines if b" 200 " in line or b'"status":200' in line]
            self.assertEqual(len(requests), 1, lines)
            self.assertRegex(requests[0], expected)
            refused = [line for line in lines if b"malformed" in line]
            self.assertEqual(len(refused), 2, lines)
            for line, request in zip(refused, (rb"GET / HTTP/1.1", rb'GET /\"evil HTTP/1.1')):
                self.assertIn(b'"' + request + b'" 400 refused: ' if form == "console" else
                              b'"event":"refused","remote":"', line)
                self.assertIn(b'"' + request + b'"', line)
            for line in lines:
                self.assertNotRegex(line, rb"[\x00-\x1f\x7f\xff]|\xc2[\x80-\x9f]")
                if form == "json":
                    json.loads(line)

    def test_an_object_without_a_user_agent(self):
        folder = self.folder()
        service = self.service("http.access_log=true", "log.format=json", arguments=["--listen", f"unix:{folder}/socket"])
        get_over(folder / "socket")
        request = json.loads(service.says('"event"'))
        self.assertEqual((request["method"], request["status"]), ("GET", 200))
        self.assertNotIn("user_agent", request)

    def test_the_access_log_sees_every_end_of_a_request(self):
        service = self.service("http.access_log=true")
        service.get("/throw")
        self.assertRegex(service.says("GET /throw"), r'127\.0\.0\.1:\d+ "GET /throw" 500 \d+B \d+us ""')
        service.get("/nowhere")
        self.assertIn(" 404 ", service.says('"GET /nowhere"'))
        service.get("/sleep?ms=30")
        took = re.search(r'" 200 6B (\d+)us', service.says('"GET /sleep?ms=30"'))
        self.assertGreaterEqual(int(took[1]), 25_000)

    def test_it_is_off_unless_asked_for_and_below_its_level(self):
        for settings in ([], ["http.access_log=true", "log.level=warning"]):
            path = self.folder() / "socket"
            service = self.service(*settings, arguments=["--listen", f"unix:{path}"])
            self.assertIn("here", get_over(path))
            service.send(signal.SIGTERM)
            self.assertEqual(service.end(), 0)
            self.assertFalse(service.logged('"GET'))


class File(Test):
    def start(self, *settings, **options):
        """(log file, Unix socket, service)"""
        folder = self.folder()
        service = self.service(f"log.file={folder}/log", *settings, arguments=["--listen", f"unix:{folder}/socket"],
                               **options)
        return folder / "log", folder / "socket", service

    def stop(self, service):
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 0)

    def test_sighup_opens_it_again(self):
        file, path, service = self.start()
        get_over(path)
        until(lambda: "serving" in file.read_text())
        moved = file.with_name("log.1")
        file.rename(moved)
        service.send(signal.SIGHUP)
        until(lambda: file.exists() and "SIGHUP" in file.read_text())
        self.assertNotIn("SIGHUP", moved.read_text())
        self.stop(service)
        self.assertIn("ended", file.read_text())

    def test_nothing_is_lost_in_a_storm_that_the_queue_has_room_for(self):
        file, path, service = self.start("log.queue_lines=100000")
        for _ in range(5):
            get_over(path, "/log?lines=10000&bytes=40")
        self.stop(service)
        self.assertEqual(len([line for line in file.read_text().splitlines() if " line " in line]), 50_000)

    def test_a_queue_that_is_too_small_drops_and_counts(self):
        file, path, service = self.start("log.queue_lines=16")
        get_over(path, "/log?lines=10000&bytes=40")
        self.stop(service)
        text = file.read_text()
        dropped = sum(int(n) for n in re.findall(r"log: (\d+) lines? dropped here", text))
        self.assertGreater(dropped, 0)
        others = 4  # serving, SIGTERM, no more connections, ended
        self.assertEqual(len(text.splitlines()) - text.count("dropped here") + dropped, 10_000 + others)

    def test_a_file_that_may_not_grow(self):
        file, path, service = self.start(
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)))
        for _ in range(3):
            self.assertIn("logged", get_over(path, "/log?lines=1000&bytes=40"))
        until(lambda: file.stat().st_size > 19_000)
        os.truncate(file, 0)  # the file can grow again
        until(lambda: get_over(path, "/log?lines=1&bytes=0") and "dropped here" in file.read_text())
        self.stop(service)

    def test_a_full_disk(self):
        path = self.folder() / "socket"
        service = self.service("log.file=/dev/full", arguments=["--listen", f"unix:{path}"])
        for _ in range(5):
            self.assertIn("logged", get_over(path, "/log?lines=1000&bytes=40"))
        self.stop(service)


class Pipe(Test):
    """Standard error is a pipe whose reader has stopped reading."""

    def start(self, *settings):
        """(process, Unix socket, the pipe's reading end)"""
        read, write = os.pipe()
        path = self.folder() / "socket"
        words = [word for setting in settings for word in ("--set", setting)]
        process = subprocess.Popen([APP_SERVER, "--listen", f"unix:{path}", *words], stderr=write)
        os.close(write)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, path, open(read, "rb", buffering=0)

    def test_a_stalled_one_costs_lines_but_neither_requests_nor_the_end(self):
        process, path, pipe = self.start()
        with pipe:
            for _ in range(5):
                self.assertIn("logged", get_over(path, "/log?lines=20000&bytes=100"))
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_when_it_is_read_again_it_says_what_was_dropped(self):
        process, path, pipe = self.start("log.queue_lines=100")
        with pipe:
            for _ in range(3):
                self.assertIn("logged", get_over(path, "/log?lines=20000&bytes=100"))
            text, counted = "", 0
            while counted < 60_000:
                text += pipe.read(65536).decode()
                dropped = sum(int(n) for n in re.findall(r"log: (\d+) lines? dropped here\n", text))
                counted = len(re.findall(r" line \d+ x+\n", text)) + dropped
            self.assertEqual(counted, 60_000)
            self.assertGreater(dropped, 0)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_a_closed_one_is_no_end(self):
        process, path, pipe = self.start()
        pipe.close()
        self.assertIn("logged", get_over(path, "/log?lines=1000&bytes=100"))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE_S), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
