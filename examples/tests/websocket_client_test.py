#!/usr/bin/env python3
"""websocket_client_test.py CLIENT CHAT_SERVER: lines go both ways, also over a restart of the server, and it ends as it says."""

import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from serving import PATIENCE_S, Server

CLIENT, CHAT = sys.argv[1:]


class Guest:
    """A client whose lines of output are collected."""

    def __init__(self, url: str, stdin=subprocess.PIPE):
        self.process = subprocess.Popen([CLIENT, url], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, bufsize=1)
        self.lines = []
        self.reader = threading.Thread(target=self.collect)
        self.reader.start()

    def collect(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line)

    def type(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def sees(self, beginning: str, times: int = 1) -> None:
        end = time.monotonic() + PATIENCE_S
        while sum(line.startswith(beginning) for line in list(self.lines)) < times:
            assert time.monotonic() < end, f"{beginning} not in {self.lines}"
            time.sleep(0.01)

    def kill(self) -> None:
        self.process.kill()
        self.ends()

    def ends(self) -> int:
        status = self.process.wait(PATIENCE_S)
        self.reader.join()
        self.process.stdout.close()
        if self.process.stdin:
            self.process.stdin.close()
        return status


class Client(unittest.TestCase):
    def setUp(self):
        self.server = Server(CHAT)
        self.addCleanup(lambda: self.server.kill())
        self.url = f"ws://127.0.0.1:{self.server.port}/chat?name="

    def enter(self, name: str, **popen) -> Guest:
        guest = Guest(self.url + name, **popen)
        self.addCleanup(guest.kill)
        return guest

    def test_lines_go_both_ways_and_the_end_of_the_input_is_that_of_the_program(self):
        ada, bob = self.enter("ada"), self.enter("bob")
        for guest in (ada, bob):
            guest.sees("* connected")
        ada.type("fr\u00fch")
        for guest in (ada, bob):
            guest.sees("ada: fr\u00fch")
        ada.type("\x1b[2J\u009b2J\u00e9\x7f\x07\t.")
        bob.sees("ada: ?[2J?2J\u00e9??\t.")
        ada.process.stdin.close()
        bob.sees("* ada leaves")
        self.assertEqual(ada.ends(), 0)
        bob.process.send_signal(signal.SIGTERM)
        self.assertEqual(bob.ends(), 0)

    def test_it_comes_back_with_what_it_has_not_sent(self):
        ada = self.enter("ada")
        ada.sees("* connected")
        port = self.server.port
        self.server.kill()
        ada.sees("* websocket dial: ")  # what is written before that may be lost with the connection
        ada.type("while nobody listened")
        self.server.process = subprocess.Popen([CHAT, "--listen", f"127.0.0.1:{port}"])
        ada.sees("* connected", 2)
        ada.sees("ada: while nobody listened")
        ada.process.send_signal(signal.SIGINT)
        self.assertEqual(ada.ends(), 0)

    def test_a_file_is_sent_to_its_end(self):
        bob = self.enter("bob")
        bob.sees("* connected")
        with tempfile.TemporaryFile("w+") as text:
            text.write("one\ntwo")
            text.seek(0)
            ada = self.enter("ada", stdin=text)
            self.assertEqual(ada.ends(), 0)
        for line in "ada: one", "ada: two", "* ada leaves":
            bob.sees(line)

    def test_a_refusal_is_said_and_not_tried_again(self):
        nobody = self.enter("")
        self.assertEqual(nobody.ends(), 1)
        self.assertIn("400 Bad Request", nobody.lines[-1])

    def test_wrong_arguments(self):
        for arguments, status in ([], 2), (["--bogus"], 2), (["ftp://a/"], 1), (["--help"], 0):
            with self.subTest(arguments=arguments):
                done = subprocess.run([CLIENT, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                      timeout=PATIENCE_S)
                self.assertEqual(done.returncode, status, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
