"""With few threads (`ulimit -u`), a server starts and answers, or ends with status 1 and says which limit is reached.

Arguments: the programs. Every limit from 1 to 20 threads is tried.

Root has no such limit, so the programs run as users that nobody else is; without root, each gets what the user's threads
leave, which other processes change, and only the outcomes are checked.
"""

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import serving

LIMITS = range(1, 21)
ENOUGH = 12
REASON = r"ulimit -u \(\d+ threads of this user\)"


def user_of_its_own(limit: int):
    """What a child does before it becomes the program: afterwards it may have `limit` threads."""
    def begin() -> None:
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
        if os.geteuid() == 0:
            user = 1_100_000_000 + os.getpid()
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
    return begin


def listening(port: int, process: subprocess.Popen) -> bool:
    """Waits until the server listens, or has ended."""
    end = time.monotonic() + serving.PATIENCE_S
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except (ConnectionRefusedError, TimeoutError):
            assert time.monotonic() < end, "the server neither listens nor ends"
            time.sleep(0.01)
    return False


def answers(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=serving.PATIENCE_S) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return client.recv(100).startswith(b"HTTP/1.1 200 ")


def try_with(program: str, limit: int) -> bool:
    """True: the server has run."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([program, "--listen", f"127.0.0.1:{port}"], preexec_fn=user_of_its_own(limit),
                               stderr=subprocess.PIPE, text=True)
    try:
        runs = listening(port, process)
        if runs:
            assert answers(port), f"{program} with {limit} threads: no answer"
            process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=serving.PATIENCE_S)[1]
    finally:
        process.kill()
    where = f"{os.path.basename(program)} with {limit} threads: status {process.returncode}\n{said}"
    assert process.returncode == (0 if runs else 1), where
    if not runs:
        assert re.search(REASON, said), where
    return runs


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # the build directory may be closed to other users
        for program in sys.argv[1:]:
            copy = shutil.copy(program, folder)
            os.chmod(copy, 0o755)
            ran = [try_with(copy, limit) for limit in LIMITS]
            # Spare threads do not take those that the set-up needs: five, the log's, up to two of the program's own, and
            # one each for the few goroutines that may run meanwhile.
            if os.geteuid() == 0:
                assert all(ran[ENOUGH - 1:]) and not ran[0], f"{program}: {ran}"


if __name__ == "__main__":
    main()
