#!/usr/bin/env python3
"""websocket_chat_test.py PROGRAM: all guests hear each other; who reads too slowly is removed, and stops nobody."""

import asyncio
import socket
import sys
import unittest

import websockets

from serving import PATIENCE_S, Server


class Chat(unittest.TestCase):
    def setUp(self):
        self.server = Server(sys.argv[1])
        self.addCleanup(self.server.kill)

    def enter(self, name: str, **options):
        return websockets.connect(f"ws://127.0.0.1:{self.server.port}/chat?name={name}", **options)

    def run_within(self, coroutine):
        asyncio.run(asyncio.wait_for(coroutine, PATIENCE_S))

    def test_all_guests_hear_each_other(self):
        async def talk():
            async with self.enter("ada") as ada:
                self.assertEqual(await ada.recv(), "* ada joins, 1 here")
                async with self.enter("bob", compression=None) as bob:
                    self.assertEqual(await bob.recv(), "* bob joins, 2 here")
                    self.assertEqual(await ada.recv(), "* bob joins, 2 here")
                    text = "<b>fr\u00fch</b> " * 100
                    await ada.send(text)
                    for guest in (ada, bob):
                        self.assertEqual(await guest.recv(), "ada: " + text)
                self.assertEqual(await ada.recv(), "* bob leaves")

        self.run_within(talk())

    def test_binary_and_long_messages_are_refused(self):
        async def refused(message, code):
            async with self.enter("ada") as ada:
                await ada.recv()
                await ada.send(message)
                with self.assertRaises(websockets.ConnectionClosed) as closed:
                    while True:
                        await ada.recv()
                self.assertEqual(closed.exception.rcvd.code, code)

        self.run_within(refused(b"binary", 1003))
        self.run_within(refused("x" * 4001, 1009))

    def test_who_has_no_name_or_comes_from_another_page_is_refused(self):
        async def refused(name, **options):
            with self.assertRaises(websockets.InvalidHandshake):
                await self.enter(name, **options)

        self.run_within(refused(""))
        self.run_within(refused("x" * 81))
        self.run_within(refused("%FF"))
        self.run_within(refused("ada:%20hello,%20bob"))
        self.run_within(refused("%0A*%20bob"))
        self.run_within(refused("ada", origin="http://evil.example"))

    def test_a_guest_that_does_not_read_stops_nobody(self):
        slow = socket.create_connection(("127.0.0.1", self.server.port), PATIENCE_S)
        self.addCleanup(slow.close)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(b"GET /chat?name=slow HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        self.assertIn(b" 101 ", slow.recv(20))

        async def talk():
            async with self.enter("ada") as ada:
                await ada.recv()
                said, left = 0, False
                while not left:
                    await ada.send("x" * 4000)
                    said += 1
                    while True:
                        line = await ada.recv()
                        left = left or line == "* slow leaves"
                        if line.startswith("ada: "):
                            break
                    # The kernel holds some megabytes for the guest, then its queue is full.
                    self.assertLess(said, 20_000)

        self.run_within(talk())

    def test_at_shutdown_guests_get_1001(self):
        async def stay():
            async with self.enter("ada") as ada:
                await ada.recv()
                stopped = asyncio.get_running_loop().run_in_executor(None, self.server.stop)
                with self.assertRaises(websockets.ConnectionClosed) as closed:
                    await ada.recv()
                self.assertEqual(closed.exception.rcvd.code, 1001)
                self.assertEqual(await stopped, 0)

        self.run_within(stay())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
