"""slow_readers.py PORT PATH COUNT: clients that ask for PATH and read next to nothing, until standard input ends.

Each has a receive buffer of the smallest size, so that the server sends small segments, and reads 32 bytes every five
seconds. Prints "open" when all have asked.
"""

import os
import select
import socket
import sys
import time

PER_SECOND = 1000
EVERY_S = 5
READ_BYTES = 32


def reader(port, path):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)  # before connect(): it limits the window
    client.connect(("127.0.0.1", port))
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    client.setblocking(False)
    return client


def main(port, path, count):
    began, clients = time.monotonic(), []
    for i in range(count):
        time.sleep(max(0.0, began + i / PER_SECOND - time.monotonic()))
        clients.append(reader(port, path))
    print("open", flush=True)
    while not select.select([sys.stdin], [], [], EVERY_S)[0]:
        for client in clients:
            try:
                client.recv(READ_BYTES)
            except OSError:  # nothing has come, or the server has cut it off
                pass
    os._exit(0)  # the kernel closes them faster than the interpreter


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
