#!/usr/bin/env python3
"""sse_clock_test.py PROGRAM: a tick each second, what was missed is counted, and the server says goodbye."""

import contextlib
import re
import socket
import sys
import time
import unittest

from serving import PATIENCE_S, Server


class Stream:
    """The events of a connection, in order."""

    def __init__(self, port: int, last: str = ""):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        fields = f"Last-Event-ID: {last}\r\n" if last else ""
        self.socket.sendall(f"GET /events HTTP/1.0\r\nHost: a\r\n{fields}\r\n".encode())  # 1.0: without chunks
        self.file = self.socket.makefile("r", newline="\n")
        self.head = ""
        while (line := self.file.readline()) not in ("\r\n", ""):
            self.head += line

    def next(self) -> dict:
        event = {}
        for line in self.file:
            line = line.rstrip("\n")
            if line == "" and event:
                return event
            name, _, value = line.partition(": ")
            if name not in ("", ":"):
                event[name] = value
        raise EOFError(event)

    def close(self):
        self.file.close()
        self.socket.close()


class Clock(unittest.TestCase):
    def setUp(self):
        self.server = Server(sys.argv[1])
        self.addCleanup(self.server.kill)

    def test_a_tick_each_second(self):
        with contextlib.closing(Stream(self.server.port)) as stream:
            self.assertIn("Content-Type: text/event-stream", stream.head)
            first, second = stream.next(), stream.next()
            self.assertEqual((first["event"], second["event"]), ("tick", "tick"))
            self.assertRegex(first["data"], r"^\d\d:\d\d:\d\d$")
            self.assertGreater(int(second["id"]), int(first["id"]))
            self.assertEqual(first["data"], time.strftime("%H:%M:%S", time.gmtime(int(first["id"]))))

    def test_who_comes_back_learns_what_it_has_missed(self):
        with contextlib.closing(Stream(self.server.port, last="5")) as stream:
            event, tick = stream.next(), stream.next()
            self.assertEqual(event["event"], "missed")
            self.assertAlmostEqual(int(event["data"]), int(tick["id"]) - 6, delta=2)
        for last in ("nonsense", "99999999999999999999", "-1", "9999999999"):
            with contextlib.closing(Stream(self.server.port, last)) as stream:
                self.assertEqual(stream.next()["event"], "tick")

    def test_at_shutdown_it_says_goodbye(self):
        with contextlib.closing(Stream(self.server.port)) as stream:
            stream.next()
            self.assertEqual(self.server.stop(), 0)
            while (event := stream.next())["event"] == "tick":
                pass
            self.assertEqual((event["event"], event["retry"]), ("bye", "5000"))
            with self.assertRaises(EOFError):
                stream.next()

    def test_the_page_asks_for_the_events(self):
        status, fields, page = self.server.ask("GET", "/")
        self.assertEqual(status, 200)
        self.assertIsNotNone(re.search(rb'EventSource\("/events"\)', page))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
