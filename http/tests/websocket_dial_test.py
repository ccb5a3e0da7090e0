#!/usr/bin/env python3
"""websocket_dial_test.py PROGRAM: websocket_dialler talks to the library `websockets`, a server that is not ours."""

import asyncio
import subprocess
import sys
import unittest

import websockets
from websockets.extensions import permessage_deflate

PATIENCE_S = 120
MESSAGES = 22


class Server(unittest.TestCase):
    def talk(self, *way, **options):
        """What the client prints, and the code that it closes with."""

        async def both():
            codes = []

            async def echo(socket, *_):
                try:
                    async for message in socket:
                        await socket.send(message)
                except websockets.ConnectionClosedError as closed:  # each code but 1000 and 1001
                    codes.append(closed.rcvd.code)

            async with websockets.serve(echo, "127.0.0.1", 0, max_size=None, subprotocols=["echo"],
                                        **options) as server:
                port = server.sockets[0].getsockname()[1]
                client = await asyncio.create_subprocess_exec(sys.argv[1], f"ws://127.0.0.1:{port}/", *way,
                                                              stdout=subprocess.PIPE)
                printed, _ = await client.communicate()
            return printed.decode().strip(), codes

        return asyncio.run(asyncio.wait_for(both(), PATIENCE_S))

    def expect(self, compressed, *way, **options):
        agreed = "compressed" if compressed else "plain"
        self.assertEqual(self.talk(*way, **options), (f"{MESSAGES} echo {agreed} 4001", [4001]))

    def test_messages_come_back_without_compression(self):
        self.expect(False, compression=None)
        self.expect(False)
        self.expect(False, "deflate", compression=None)

    def test_each_parameter_of_compression(self):
        for parameters in ({}, {"server_no_context_takeover": True}, {"client_no_context_takeover": True},
                           {"server_max_window_bits": 9}, {"client_max_window_bits": 9},
                           {"client_max_window_bits": 12, "server_max_window_bits": 12,
                            "server_no_context_takeover": True, "client_no_context_takeover": True}):
            for way in ("deflate", "small"):
                with self.subTest(way=way, **parameters):
                    factory = permessage_deflate.ServerPerMessageDeflateFactory(**parameters)
                    self.expect(True, way, compression=None, extensions=[factory])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
