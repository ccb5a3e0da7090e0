#!/usr/bin/env python3
"""with_redis.py PROGRAM...: runs the program beside a Redis server of its own, in a temporary folder.

The environment variable TUZA_REDIS_PORT tells the program where it listens. Exit status: the program's.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60
ATTEMPTS = 5  # another program may take the port first


def start(server, folder):
    for _ in range(ATTEMPTS):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process = subprocess.Popen([server, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no",
                                    "--dir", folder], stdout=open(f"{folder}/log", "w"), stderr=subprocess.STDOUT)
        end = time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
                return process, port
            except ConnectionRefusedError:
                time.sleep(0.05)
        process.kill()
        process.wait()
    sys.exit("with_redis: the server does not start:\n" + open(f"{folder}/log").read())


def main():
    server = shutil.which("redis-server")
    if server is None:
        sys.exit("with_redis: redis-server is missing. `./dev setup` installs it.")
    with tempfile.TemporaryDirectory(prefix="tuza-redis-") as folder:
        process, port = start(server, folder)
        try:
            return subprocess.run(sys.argv[1:], env=os.environ | {"TUZA_REDIS_PORT": str(port)}).returncode
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
