"""Go servers for comparison, built from loadtests/*_go if a toolchain is installed."""

import os
import shutil
import subprocess

from lib import process


def build(args, source, cpus, libraries=""):
    """Builds the program in the folder `source` if necessary, with those in the folder `libraries`. Returns (path, ""), or ("", a line that says why not)."""
    if shutil.which("go") is None:
        return "", "Go: not installed, so there is no comparison with it"
    program = args.build / "loadtests" / source.name
    environment = os.environ | {"GOCACHE": str(args.build / "go-cache"), "GOPROXY": "off", "GOFLAGS": ""}
    if libraries:
        environment |= {"GO111MODULE": "off", "GOPATH": libraries}
    done = process.spawn(["go", "build", "-o", str(program), "main.go"], cpus, cwd=source, env=environment,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, errors = done.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        return "", "Go: the compiler did not end"
    finally:
        process.stop(done)
    if done.returncode != 0:
        return "", f"Go: it does not compile: {errors.strip()[-300:]}"
    return str(program), ""
