#!/usr/bin/env python3
"""with_postgres.py PROGRAM...: runs the program beside a PostgreSQL server of its own, in a temporary folder.

The environment variable TUZA_POSTGRES tells the program how to connect. Exit status: the program's.
"""

import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60


def find(name):
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = str(found[-1]) if found else shutil.which(name)
    if path is None:
        sys.exit(f"with_postgres: {name} is missing. Package: postgresql. `./dev setup` installs it.")
    return path


def as_server():
    """The server refuses to be root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def main():
    with tempfile.TemporaryDirectory(prefix="tuza-postgres-") as folder:
        identity = as_server()
        if identity:
            os.chown(folder, identity["user"], identity["group"])
            os.chmod(folder, 0o711)
        data = f"{folder}/data"
        subprocess.run([find("initdb"), "-D", data, "-U", "tuza", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"],
                       check=True, stdout=subprocess.DEVNULL, cwd=folder, **identity)
        log = open(f"{folder}/log", "w+")
        server = subprocess.Popen([find("postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
                                  stdout=log, stderr=log, cwd=folder, **identity)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while "ready to accept connections" not in pathlib.Path(f"{folder}/log").read_text():
                if server.poll() is not None or time.monotonic() > deadline:
                    sys.exit("with_postgres: the server does not start:\n" + pathlib.Path(f"{folder}/log").read_text())
                time.sleep(0.05)
            environment = os.environ | {"TUZA_POSTGRES": f"host={folder} user=tuza dbname=postgres"}
            return subprocess.run(sys.argv[1:], env=environment).returncode
        finally:
            server.terminate()
            server.wait()
            log.close()


if __name__ == "__main__":
    sys.exit(main())
