#!/usr/bin/env python3
"""Builds the Dockerfile without a container engine, and runs the image: docker.py [--no-test] [--keep]

Debian's buildah builds the image, as root. The base image that FROM names is not pulled: debootstrap makes it once,
from the mirror that this machine's apt uses. Base image and build are kept in the user's cache (XDG_CACHE_HOME, or
~/.cache) under tuza/docker. Then the image is checked: its size, its user, and its command. The command runs in the
image's own file system, as that user, under the default seccomp profile of containers, in a network of its own. It
must answer, be healthy by the image's own health check, and end cleanly at SIGTERM.

    --no-test   leaves out the stage `test`, which builds and runs the tests
    --keep      keeps the containers and layers of the build, for inspection
"""

import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tuza" / "docker"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
CODENAMES = {"12": "bookworm", "13": "trixie"}
IMAGE = "localhost/tuza-hello"
SIZE_MAX_MB = 60
# Chroot isolation needs no user namespaces and no cgroups; vfs needs no overlay.
ENVIRONMENT = os.environ | {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"}
BUILDAH = ["buildah", "--root", str(CACHE / "storage"), "--runroot", str(CACHE / "run")]
START_TIMEOUT_S, END_TIMEOUT_S = 30, 30


class Failure(Exception):
    pass


def buildah(*arguments, **options):
    """Runs buildah and returns what it printed."""
    done = subprocess.run([*BUILDAH, *arguments], env=ENVIRONMENT, check=False, text=True,
                          stdout=subprocess.PIPE, **options)
    if done.returncode != 0:
        raise Failure(f"buildah {arguments[0]} failed ({done.returncode}): {done.stdout.strip()[-2000:]}")
    return done.stdout.strip()


def apt_mirrors():
    """The (mirror, mirror of the security updates or None) of this machine, from either format of apt's lists."""
    found = []
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        if path.suffix == ".sources":
            found += re.findall(r"^URIs:\s*(\S+)", path.read_text(), re.M)
        elif path.suffix == ".list" and path.is_file():
            found += re.findall(r"^deb\s+(?:\[[^\]]*\]\s+)?(\S+)", path.read_text(), re.M)
    main = [uri.rstrip("/") for uri in found if re.search(r"/debian/?$", uri)]
    security = [uri.rstrip("/") for uri in found if re.search(r"debian-security/?$", uri)]
    if not main:
        raise Failure("apt's lists of this machine name no mirror of Debian")
    return main[0], security[0] if security else None


def make_base(name):
    """Makes the image `name` (debian:12-slim...) by debootstrap, unless the cache has it."""
    full = f"docker.io/library/{name}"
    if full in buildah("images", "--format", "{{.Name}}:{{.Tag}}").split("\n"):
        return
    release = CODENAMES[re.match(r"debian:(\d+)", name)[1]]
    mirror, security = apt_mirrors()
    tree = CACHE / release
    shutil.rmtree(tree, ignore_errors=True)
    print(f"docker: making {name} with debootstrap, once", flush=True)
    subprocess.run(["debootstrap", "--variant=minbase", f"--keyring={KEYRING}", release, str(tree), mirror],
                   check=True, stdout=subprocess.DEVNULL)
    lists = [f"deb {mirror} {release} main", f"deb {mirror} {release}-updates main"]
    if security:
        lists.append(f"deb {security} {release}-security main")
    (tree / "etc/apt/sources.list").write_text("".join(f"{line}\n" for line in lists))
    for package in (tree / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, str(tree), "/")
    buildah("config", "--cmd", "bash", container)
    buildah("commit", "--quiet", "--rm", container, full, stderr=subprocess.DEVNULL)
    shutil.rmtree(tree)


def build(stage=None):
    """Builds the image, or one stage of it. Returns the output of the steps, which is also kept in a file in build/."""
    name = stage or "image"
    log = ROOT / "build" / f"docker-{name}.log"
    log.parent.mkdir(exist_ok=True)
    print(f"docker: building {name}, output in {log.relative_to(ROOT)}", flush=True)
    target = ["--target", stage] if stage else []
    with log.open("w", encoding="utf-8") as output:
        # --format docker: OCI images have no HEALTHCHECK.
        done = subprocess.run([*BUILDAH, "build", "--format", "docker", "--pull-never", "--layers", *target, "--tag",
                               f"{IMAGE}:{stage or 'latest'}", str(ROOT)], env=ENVIRONMENT, check=False,
                              stdout=output, stderr=subprocess.STDOUT)
    text = log.read_text(encoding="utf-8", errors="replace")
    if done.returncode != 0:
        raise Failure(f"{name} does not build:\n{text[-8000:]}")
    return text


def tree_bytes(root):
    return sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir() or path.is_symlink())


def image_config():
    return json.loads(buildah("inspect", "--type", "image", f"{IMAGE}:latest"))["Docker"]["config"]


def leave_network():
    """Moves this process into a network of its own with nothing but loopback, so that any port is free."""
    clone_newnet, get_flags, set_flags, up = 0x40000000, 0x8913, 0x8914, 1
    if ctypes.CDLL(None).unshare(clone_newnet) != 0:
        raise Failure("cannot make a network namespace")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        name, flags = struct.unpack("16sH", fcntl.ioctl(control, get_flags, struct.pack("16sH14x", b"lo", 0))[:18])
        fcntl.ioctl(control, set_flags, struct.pack("16sH14x", name, flags | up))


def expect(condition, text):
    if not condition:
        raise Failure(text)


def status_fields(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


def get(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.status, answer.read()


def await_answer(url, runner):
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        expect(runner.poll() is None, f"the image's command ended by itself with status {runner.returncode}")
        try:
            return get(url)
        except OSError as error:
            expect(time.monotonic() < deadline, f"no answer from {url}: {error}")
            time.sleep(0.05)


def check_process(config):
    """Checks the privileges of the server, and returns its pid."""
    servers = [pid for pid in descendants(os.getpid()) if os.path.basename(exe_of(pid)) == "hello"]
    expect(len(servers) == 1, f"processes of the image: {servers}")
    status = status_fields(servers[0])
    uid = int(config["User"].partition(":")[0])
    expect(uid != 0 and {int(word) for word in status["Uid"]} == {uid}, f"runs as {status['Uid']}, not as {uid}")
    expect(int(status["CapEff"][0], 16) == 0, f"has capabilities: {status['CapEff'][0]}")
    expect(status["Seccomp"] == ["2"], "runs without a seccomp filter")
    return servers[0]


def exe_of(pid):
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe")
    return ""


def descendants(pid):
    found = []
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *descendants(child)]
    return found


def run_image(config, container):
    """Runs the image's command by `buildah run`: in the image's root, as its user, with a seccomp filter."""
    port = next(iter(config["ExposedPorts"])).partition("/")[0]
    command = config["Entrypoint"] + (config.get("Cmd") or []) + ["--set", "http.access_log=true"]
    runner = subprocess.Popen([*BUILDAH, "run", "--isolation", "chroot", container, "--", *command], env=ENVIRONMENT)
    try:
        status, body = await_answer(f"http://127.0.0.1:{port}/", runner)
        expect((status, body) == (200, b"Hello, World!"), f"GET /: {status} {body[:80]!r}")
        server = check_process(config)
        check = config["Healthcheck"]["Test"]
        expect(check[0] == "CMD", f"a health check without a shell in the image: {check}")
        buildah("run", "--isolation", "chroot", container, "--", *check[1:])
        os.kill(server, getattr(signal, config["StopSignal"]))
        expect(runner.wait(END_TIMEOUT_S) == 0, f"at {config['StopSignal']} it ended with {runner.returncode}")
        unhealthy = subprocess.run([*BUILDAH, "run", "--isolation", "chroot", container, "--", *check[1:]],
                                   env=ENVIRONMENT, check=False, capture_output=True)
        expect(unhealthy.returncode != 0, "the health check finds a server that has ended healthy")
    finally:
        for pid in descendants(runner.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        runner.kill()
        runner.wait()


def check_image():
    config = image_config()
    container = buildah("from", "--pull-never", f"{IMAGE}:latest")
    try:
        root = pathlib.Path(buildah("mount", container))
        megabytes = tree_bytes(root) / 1e6
        expect(megabytes <= SIZE_MAX_MB, f"{megabytes:.1f} MB, more than {SIZE_MAX_MB}")
        suid = [str(path) for path in root.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o6000]
        expect(not suid, f"programs that change their user: {suid}")
        run_image(config, container)
    finally:
        buildah("rm", container)
    print(f"docker: {IMAGE}:latest, {megabytes:.1f} MB, user {config['User']}, answers, is healthy, ends at "
          f"{config['StopSignal']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--no-test", action="store_true", help="without the stage `test`")
    parser.add_argument("--keep", action="store_true", help="keep the layers of the build")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("docker: needs root: debootstrap and chroot do")
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        for name in sorted(set(re.findall(r"^FROM (debian:\S+)", (ROOT / "Dockerfile").read_text(), re.M))):
            make_base(name)
        if not args.no_test:
            summary = re.findall(r"^\d+% tests passed.*$", build("test"), re.M)
            print(f"docker: {summary[-1] if summary else 'the tests had passed before: nothing has changed'}")
        build()
        leave_network()
        check_image()
    except Failure as error:
        sys.exit(f"docker: {error}")
    finally:
        if not args.keep:
            subprocess.run([*BUILDAH, "rm", "--all"], env=ENVIRONMENT, check=False, capture_output=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
