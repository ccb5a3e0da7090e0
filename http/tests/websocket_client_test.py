#!/usr/bin/env python3
"""websocket_client_test.py PROGRAM: the library `websockets`, a client that is not ours, talks to websocket_server."""

import asyncio
import random
import subprocess
import sys
import unittest

import websockets
from websockets.extensions import permessage_deflate

PATIENCE_S = 120


def messages(count: int):
    """Texts and bytes of all lengths at which frames change, some that compress, some that do not."""
    choose = random.Random(1)
    lengths = [0, 1, 125, 126, 127, 1023, 1025, 65535, 65536, 65537, 300_000]
    for i in range(count):
        length = lengths[i % len(lengths)]
        kind = i % 3
        if kind == 0:
            yield choose.randbytes(length)
        elif kind == 1:
            yield "".join(choose.choices("a \u00e4\u20ac\U0001f600", k=length))
        else:
            yield ("the same again, " * (length // 16 + 1))[:length]


MESSAGES = list(messages(33))


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.address = cls.server.stdout.readline().strip()

    @classmethod
    def tearDownClass(cls):
        cls.server.stdin.close()
        assert cls.server.wait(PATIENCE_S) == 0
        cls.server.stdout.close()

    def connect(self, path: str, **options):
        return websockets.connect(f"ws://{self.address}{path}", max_size=None, **options)

    def run_within(self, coroutine):
        asyncio.run(asyncio.wait_for(coroutine, PATIENCE_S))

    def offer(self, **parameters):
        return {"compression": None, "extensions": [permessage_deflate.ClientPerMessageDeflateFactory(**parameters)]}

    async def exchange(self, path: str, compressed: bool, **options):
        async with self.connect(path, **options) as socket:
            names = [extension.name for extension in getattr(socket, "protocol", socket).extensions]
            self.assertEqual(names, ["permessage-deflate"] if compressed else [])
            for message in MESSAGES:
                await socket.send(message)
                self.assertEqual(await socket.recv(), message)
        self.assertEqual(socket.close_code, 1000)

    def test_messages_come_back_without_compression(self):
        self.run_within(self.exchange("/plain", False))
        self.run_within(self.exchange("/deflate", False, compression=None))

    def test_messages_come_back_compressed(self):
        self.run_within(self.exchange("/deflate", True))
        self.run_within(self.exchange("/small", True))

    def test_each_parameter_of_compression(self):
        for path in ("/deflate", "/small"):
            for parameters in ({}, {"server_no_context_takeover": True}, {"client_no_context_takeover": True},
                               {"server_max_window_bits": 9}, {"client_max_window_bits": 9},
                               {"client_max_window_bits": True, "server_max_window_bits": 12,
                                "server_no_context_takeover": True, "client_no_context_takeover": True}):
                with self.subTest(path=path, **parameters):
                    self.run_within(self.exchange(path, True, **self.offer(**parameters)))

    def test_fragments_are_one_message(self):
        async def fragments():
            for path in ("/plain", "/deflate"):
                async with self.connect(path) as socket:
                    await socket.send(["fr\u00fc", "", "h ", "x" * 100_000])
                    self.assertEqual(await socket.recv(), "fr\u00fch " + "x" * 100_000)
                    await socket.send([b"\xff", b"\x00"])
                    self.assertEqual(await socket.recv(), b"\xff\x00")

        self.run_within(fragments())

    def test_pings_are_answered(self):
        async def ping():
            async with self.connect("/plain") as socket:
                for payload in (b"", b"x" * 125):
                    await (await socket.ping(payload))

        self.run_within(ping())

    def test_closing_with_a_code(self):
        async def close():
            socket = await self.connect("/plain")
            await socket.close(4001, "done")
            self.assertEqual(socket.close_code, 4001)
            # No `async with`, which closes again: asyncio of Python 3.13 fails in that if the server's close came while a
            # part of the message was still to be written.
            socket = await self.connect("/plain")
            await socket.send(b"x" * ((8 << 20) + 1))
            with self.assertRaises(websockets.ConnectionClosed) as closed:
                await socket.recv()
            self.assertEqual(closed.exception.rcvd.code, 1009)

        self.run_within(close())

    def test_the_subprotocol(self):
        async def agree():
            async with self.connect("/plain", subprotocols=["other", "echo"]) as socket:
                self.assertEqual(socket.subprotocol, "echo")
            async with self.connect("/plain", subprotocols=["other"]) as socket:
                self.assertIsNone(socket.subprotocol)

        self.run_within(agree())

    def test_many_at_once(self):
        async def all_of_them():
            await asyncio.gather(*(self.exchange(("/plain", "/deflate", "/small")[i % 3], i % 3 > 0) for i in range(12)))

        self.run_within(all_of_them())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
