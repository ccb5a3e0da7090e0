"""Clients that upload, listen to events, and talk over WebSockets, and check every answer. Each function is one visit."""

import base64
import os
import random
import socket
import struct
import time
import zlib

from lib import http
from lib.process import LoadTestError

TIMEOUT_S = 30
KB = 1024
ERRORS_MAX = 20  # of different texts
PAUSE_S = 0.05  # after an error


class Stream:
    """A connection whose bytes are read up to a mark or a length."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._data = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def leave(self):
        """Resets the connection, as a client that has crashed."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def until(self, mark):
        while (end := self._data.find(mark)) < 0:
            self._receive()
        return self.take(end + len(mark))

    def take(self, count):
        while len(self._data) < count:
            self._receive()
        taken = bytes(self._data[:count])
        del self._data[:count]
        return taken

    def _receive(self):
        received = self.socket.recv(256 * KB)
        if not received:
            raise LoadTestError(f"the connection ended after {bytes(self._data[-100:])!r}")
        self._data += received


def upload(port, dice):
    """Two files; now and then the client leaves in the middle."""
    files = [dice.randbytes(dice.choice((0, 1, 100, 10 * KB, 100 * KB, 1024 * KB))) for _ in range(2)]
    mark = b"----" + base64.b16encode(dice.randbytes(8))
    body = b"".join(b"--%s\r\nContent-Disposition: form-data; name=\"f\"; filename=\"%d\"\r\n\r\n%s\r\n" % (mark, i, text)
                    for i, text in enumerate(files)) + b"--%s--\r\n" % mark
    head = (b"POST /files HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/form-data; boundary=%s\r\nContent-Length: %d\r\n\r\n"
            % (mark, len(body)))
    with Stream(port) as stream:
        if dice.random() < 0.1:
            stream.socket.sendall(head + body[:len(body) // 2])
            stream.leave()
            return
        for _ in range(2):  # on one connection
            stream.socket.sendall(head + body)
            answer = http.receive(stream.socket, 1, TIMEOUT_S)[0]
            http.check_response(answer, b"".join(b"%d %d\n" % (len(text), sum(text)) for text in files))


def listen(port, dice):
    """Reads events, to the last one or not."""
    count = dice.randrange(1, 50)
    with Stream(port) as stream:
        stream.socket.sendall(b"GET /ticks?count=%d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" % count)
        if b" 200 " not in stream.until(b"\r\n\r\n"):
            raise LoadTestError("no stream of events")
        stream.until(b"\n\n")  # a comment, with which every stream begins
        heard = dice.choice((count, count // 2))
        for number in range(1, heard + 1):
            if b"id: %d\n" % number not in stream.until(b"\n\n"):
                raise LoadTestError(f"event {number} is missing")
        if heard < count and dice.random() < 0.5:
            stream.leave()


def masked(first, payload, dice):
    mask = dice.randbytes(4)
    size = len(payload)
    length = struct.pack("!B", 0x80 | size) if size < 126 else \
        struct.pack("!BH", 0x80 | 126, size) if size < 65536 else struct.pack("!BQ", 0x80 | 127, size)
    key = int.from_bytes(mask * (size // 4 + 1), "little") & ((1 << 8 * size) - 1)
    return bytes([first]) + length + mask + (int.from_bytes(payload, "little") ^ key).to_bytes(size, "little")


def frame(stream):
    first, size = stream.take(2)
    if size == 126:
        size, = struct.unpack("!H", stream.take(2))
    elif size == 127:
        size, = struct.unpack("!Q", stream.take(8))
    return first, stream.take(size)


def message(stream):
    """(the first byte of its first frame, all that is in its frames)"""
    opening, payload = frame(stream)
    last = opening
    while not last & 0x80:
        last, more = frame(stream)
        payload += more
    return opening, payload


def deflated(payload):
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    return (packer.compress(payload) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]


def inflated(payload):
    return zlib.decompressobj(-15).decompress(payload + b"\0\0\xff\xff")


def upgrade(stream, fields=b""):
    """Asks for the echo, and returns the head of the answer."""
    stream.socket.sendall(b"GET /echo HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + base64.b64encode(os.urandom(16)) +
                          b"\r\n" + fields + b"\r\n")
    head = stream.until(b"\r\n\r\n")
    if b" 101 " not in head:
        raise LoadTestError(f"no WebSocket: {head!r}")
    return head


def talk(port, dice):
    """Messages that come back, plain or compressed; then a close handshake, a vanished client, or an end in the middle."""
    pack = dice.random() < 0.5
    offer = b"Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover; server_no_context_takeover\r\n"
    with Stream(port) as stream:
        head = upgrade(stream, offer if pack else b"")
        if (b"permessage-deflate" in head) != pack:
            raise LoadTestError(f"another WebSocket: {head!r}")
        for _ in range(dice.randrange(1, 30)):
            text = dice.choice((b"", b"short", b"words and words " * dice.randrange(4000), dice.randbytes(200 * KB)))
            stream.socket.sendall(masked(0xc2, deflated(text), dice) if pack else masked(0x82, text, dice))
            first, payload = message(stream)
            if (inflated(payload) if first & 0x40 else payload) != text:
                raise LoadTestError("another message came back")
        end = dice.random()
        if end < 0.2:
            stream.leave()
        elif end < 0.3:
            stream.socket.sendall(masked(0x02, b"half a message", dice))
        else:
            stream.socket.sendall(masked(0x88, struct.pack("!H", 1000), dice))
            if frame(stream) != (0x88, struct.pack("!H", 1000)):
                raise LoadTestError("the close frame was not answered")


def visit_until(visit, port, seconds, seed):
    """(visits, the errors by their text) of one client that comes again and again."""
    dice = random.Random(seed)
    visits, errors, end = 0, {}, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            visit(port, dice)
            visits += 1
        except (LoadTestError, OSError, zlib.error, struct.error) as error:
            text = f"{visit.__name__}: {error}"
            errors[text] = errors.get(text, 0) + 1
            if len(errors) > ERRORS_MAX:
                break
            time.sleep(PAUSE_S)
    return visits, errors
