#!/usr/bin/env python3
"""chat_test.py PROGRAM: every guest hears every line; a guest that does not read stops no other guest; a guest that
leaves leaves nothing behind."""

import os
import socket
import struct
import subprocess
import sys
import time
import unittest

PATIENCE_S = 60


class Guest:
    """One connection; it has joined the chat when the constructor returns."""

    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.lines = self.socket.makefile("r", newline="\n")
        self.name = self.lines.readline().removesuffix(" joins\n")

    def say(self, text: str) -> None:
        self.socket.sendall(f"{text}\n".encode())

    def hears(self, text: str) -> str:
        """The next line that contains `text`."""
        for line in self.lines:
            if text in line:
                return line
        raise EOFError(text)

    def close(self) -> None:
        self.lines.close()
        self.socket.close()

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()


class Chat(unittest.TestCase):
    def setUp(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.server = subprocess.Popen([sys.argv[1], "--listen", f"127.0.0.1:{self.port}"])
        self.addCleanup(self.stop)
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.guest().close()
                return
            except ConnectionRefusedError:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)

    def stop(self):
        self.assertIsNone(self.server.poll(), "the server has ended by itself")
        self.server.kill()
        self.server.wait()

    def guest(self) -> Guest:
        return Guest(self.port)

    def state(self, guest: Guest) -> tuple[str, int]:
        guest.say("/who")
        return guest.hears(" here, ").strip(), len(os.listdir(f"/proc/{self.server.pid}/fd"))

    def until(self, guest: Guest, state: tuple[str, int]):
        end = time.monotonic() + PATIENCE_S
        while (now := self.state(guest)) != state:
            self.assertLess(time.monotonic(), end, f"{now}, not {state}")
            time.sleep(0.02)

    def test_everybody_hears_every_line(self):
        guests = [self.guest() for _ in range(5)]
        for i, speaker in enumerate(guests):
            speaker.say(f"hello {i}")
            for guest in guests:
                self.assertEqual(guest.hears("hello"), f"{speaker.name}: hello {i}\n")
        for guest in guests:
            guest.close()

    def test_no_line_controls_the_terminals_of_others(self):
        speaker, listener = self.guest(), self.guest()
        for said, heard in ((b"a\x1b]0;owned\x07b\x1b[2Jc", "a?]0;owned?b?[2Jc"),
                            (b"one\rguest 1: forged\x08\x7f", "one?guest 1: forged??"),
                            ("caf\u00e9\u009b2Jx".encode(), "caf\u00e9??2Jx"), (b"tab\tx\x00", "tab\tx?"),
                            (b"\x9b2Jx", "?2Jx"), ("\u202ex\u2066 \U0001f600".encode(), "???x??? \U0001f600"),
                            ("\u2028x".encode(), "???x"), (b"windows\r", "windows")):
            speaker.socket.sendall(said + b"\n")
            self.assertEqual(listener.hears(f"{speaker.name}: "), f"{speaker.name}: {heard}\n")
        speaker.close()
        listener.close()

    def test_who_does_not_read_stops_nobody(self):
        slow, speaker, listener = self.guest(), self.guest(), self.guest()
        sent = 0
        end = time.monotonic() + PATIENCE_S
        # Until the buffers of the slow guest are full and it is removed; the others hear everything, in order.
        while "2 here" not in self.state(speaker)[0]:
            self.assertLess(time.monotonic(), end)
            for _ in range(100):
                speaker.say(f"line {sent} " + "x" * 900)
                sent += 1
            for i in range(sent - 100, sent):
                for guest in (speaker, listener):
                    self.assertIn(f": line {i} ", guest.hears(": line "))
        for guest in (slow, speaker, listener):
            guest.close()

    def test_who_goes_leaves_nothing(self):
        first = self.guest()
        self.until(first, (f"1 here, {self.alone(first)} goroutines", self.state(first)[1]))
        before = self.state(first)
        for _ in range(5):
            crowd = [self.guest() for _ in range(40)]
            for i, guest in enumerate(crowd):
                guest.say("half a line" if i % 3 == 0 else "x" * 1500)
                guest.reset() if i % 2 == 0 else guest.close()
            self.until(first, before)
        first.close()

    def alone(self, guest: Guest) -> int:
        """The number of goroutines when only `guest` is there."""
        end = time.monotonic() + PATIENCE_S
        lowest = None
        while time.monotonic() < end:
            who, _ = self.state(guest)
            here, goroutines = who.split(" here, ")
            number = int(goroutines.split()[0])
            if here == "1" and number == lowest:
                return number
            lowest = number
            time.sleep(0.1)
        raise TimeoutError


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
