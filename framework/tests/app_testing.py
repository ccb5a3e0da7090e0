"""Shared code of the tests of tuza::App: a serving program and its clients. The first argument names the program."""

import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

APP_SERVER = sys.argv[1]
PATIENCE_S = 60
SERVING = re.compile(r"serving HTTPS? on (?:\S*:(\d+)|(unix:\S+))")


class Service:
    """A running program; its standard error is read continuously."""

    def __init__(self, *settings, arguments=("--listen", "127.0.0.1:0"), environment=None, **popen):
        words = [APP_SERVER, *arguments]
        for setting in settings:
            words += ["--set", setting]
        self.lines, self.changed = [], threading.Condition()
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, errors="replace",
                                        env=os.environ | (environment or {}), **popen)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.lines.append(None)
            self.changed.notify_all()

    def says(self, text, times=1):
        """Waits for a line that contains `text`, and returns it."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.logged(text)) >= times or None in self.lines, PATIENCE_S)
            if len(self.logged(text)) < times:
                raise AssertionError(f"never said: {text}; but:\n" + "".join(filter(None, self.lines)))
            return self.logged(text)[times - 1]

    def port(self):
        return int(SERVING.search(self.says("serving HTTP"))[1])

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port()), timeout=PATIENCE_S)

    def ask(self, path, connection=None):
        """Sends a request; rest() returns its answer."""
        connection = connection or self.connect()
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        return connection

    def get(self, path="/"):
        client = http.client.HTTPConnection("127.0.0.1", self.port(), timeout=PATIENCE_S)
        with contextlib.closing(client):
            client.request("GET", path)
            answer = client.getresponse()
            return answer.status, answer.read().decode()

    def send(self, *signals):
        for number in signals:
            self.process.send_signal(number)

    def end(self):
        status = self.process.wait(PATIENCE_S)
        self.reader.join()
        return status

    def logged(self, text):
        """The lines so far that contain `text`."""
        return [line for line in self.lines if line is not None and text in line]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()



def get_over(path, target="/"):
    """Sends GET through a Unix socket, and returns the whole answer."""
    return exchange(path, f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())


def exchange(path, request):
    """Sends these bytes through a Unix socket, and returns the answer until the server closes the connection."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        until(lambda: connection.connect_ex(str(path)) == 0)
        connection.sendall(request)
        return rest(connection)


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("never came true")
        time.sleep(0.01)


def rest(connection):
    """The remaining bytes until the connection ends."""
    everything = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            everything += chunk
    connection.close()
    return everything.decode()


class Test(unittest.TestCase):
    def service(self, *settings, **options) -> Service:
        service = Service(*settings, **options)
        self.addCleanup(service.kill)
        return service

    def folder(self) -> pathlib.Path:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)
