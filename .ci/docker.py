#!/usr/bin/env python3
"""Builds the Dockerfile without a container engine, and runs the images: docker.py [--no-test] [--keep] [EXAMPLE...]

Debian's buildah builds the image, as root. The base image that FROM names is not pulled: debootstrap makes it once,
from the mirror that this machine's apt uses. Base image and build are kept in the user's cache (XDG_CACHE_HOME, or
~/.cache) under tuza/docker. Then each image is checked: its size, its labels, its user, and its command. The command
runs in the image's own file system, as that user, under the default seccomp profile of containers, in a network of its
own. It must answer, be healthy by the image's own health check, and end cleanly at SIGTERM.

    EXAMPLE     hello (default), hostile, static_files, sqlite_notes, echo_tcp, chat_tcp; or all
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
import resource
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
# The stage of the Dockerfile for each example that is a server.
STAGES = {"hello": "app", "hostile": "app", "static_files": "app", "sqlite_notes": "app", "echo_tcp": "tcp",
          "crud": "app", "upload": "app", "sse_clock": "app",
          "websocket_chat": "app", "reverse_proxy": "app", "aggregator": "app",
          "chat_tcp": "tcp", "tcp_proxy": "tcp"}
SIZE_MAX_MB = 60
# Chroot isolation needs no user namespaces and no cgroups; vfs needs no overlay.
ENVIRONMENT = os.environ | {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"}
BUILDAH = ["buildah", "--root", str(CACHE / "storage"), "--runroot", str(CACHE / "run")]
# New releases of buildah raise these limits to 1,048,576, and old ones set 32,768 before they apply others: each fails
# where more than that is not permitted.
LIMITS = [f"--ulimit={name}={value}:{value}" for name in ("nofile", "nproc")
          if (value := min(resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1] % 2**64, 32768))]
START_TIMEOUT_S, END_TIMEOUT_S = 30, 30


class Failure(Exception):
    pass


def buildah(*arguments):
    """Runs buildah and returns what it printed. A failure shows its messages too."""
    done = subprocess.run([*BUILDAH, *arguments], env=ENVIRONMENT, check=False, text=True, capture_output=True)
    if done.returncode != 0:
        said = f"{done.stdout.strip()}\n{done.stderr.strip()}".strip()
        raise Failure(f"buildah {arguments[0]} failed ({done.returncode}):\n{said[-4000:]}")
    return done.stdout.strip()


def mounts_beneath(tree, mountinfo):
    """The mount points at `tree` and beneath it, in the order in which they can be unmounted. See proc(5)."""
    points = [re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), line.split()[4])
              for line in mountinfo.splitlines()]
    return [point for point in reversed(points) if pathlib.PurePath(point).is_relative_to(tree)]


def remove_tree(tree):
    """Deletes a tree of debootstrap's. One that was interrupted has the machine's own /proc mounted in it."""
    tree = tree.resolve()
    table = pathlib.Path("/proc/self/mountinfo")
    for point in mounts_beneath(tree, table.read_text()):
        subprocess.run(["umount", point], check=False)
    if left := mounts_beneath(tree, table.read_text()):
        raise Failure(f"{tree} is not deleted, because something is mounted in it: {', '.join(left)}")
    if tree.exists():
        shutil.rmtree(tree)


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


def base_name():
    return re.search(r"^ARG BASE=(debian:\S+)$", (ROOT / "Dockerfile").read_text(), re.M)[1]


def debootstrap(release, tree, mirror):
    """Makes the tree of a minimal Debian. Its output goes to a file; of a failure, the end of it is shown."""
    log = ROOT / "build" / "docker-base.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(["debootstrap", "--variant=minbase", f"--keyring={KEYRING}", release, str(tree), mirror],
                              check=False, stdout=output, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        said = log.read_text(encoding="utf-8", errors="replace")
        own = tree / "debootstrap" / "debootstrap.log"
        if own.is_file():  # what its steps printed
            said += own.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise Failure(f"debootstrap {release} failed ({done.returncode}):\n{said.strip()[-4000:]}")


def make_base(name):
    """Makes the image `name` (debian:bookworm-...) by debootstrap, unless the cache has it."""
    full = f"docker.io/library/{name}"
    if full in buildah("images", "--format", "{{.Name}}:{{.Tag}}").split("\n"):
        return
    release = re.match(r"debian:([a-z]+)-", name)[1]
    mirror, security = apt_mirrors()
    tree = CACHE / release
    remove_tree(tree)
    print(f"docker: making {name} with debootstrap, once", flush=True)
    debootstrap(release, tree, mirror)
    lists = [f"deb {mirror} {release} main", f"deb {mirror} {release}-updates main"]
    if security:
        lists.append(f"deb {security} {release}-security main")
    (tree / "etc/apt/sources.list").write_text("".join(f"{line}\n" for line in lists))
    for package in (tree / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, str(tree), "/")
    buildah("config", "--cmd", "bash", container)
    buildah("commit", "--quiet", "--rm", container, full)
    remove_tree(tree)


def revision():
    """The commit of the sources, with a mark if they differ from it."""
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"], cwd=ROOT,
                          check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def build(stage, example="hello", tag="localhost/tuza-test"):
    """Builds a stage of the Dockerfile. Returns the output of the steps, which is also kept in a file in build/."""
    log = ROOT / "build" / f"docker-{stage if stage == 'test' else example}.log"
    log.parent.mkdir(exist_ok=True)
    print(f"docker: building {tag}, output in {log.relative_to(ROOT)}", flush=True)
    with log.open("w", encoding="utf-8") as output:
        # --format docker: OCI images have no HEALTHCHECK.
        done = subprocess.run([*BUILDAH, "build", "--format", "docker", "--pull-never", "--layers", *LIMITS,
                               "--target", stage, "--build-arg", f"EXAMPLE={example}",
                               "--build-arg", f"REVISION={revision()}",
                               "--tag", tag, str(ROOT)], env=ENVIRONMENT, check=False,
                              stdout=output, stderr=subprocess.STDOUT)
    text = log.read_text(encoding="utf-8", errors="replace")
    if done.returncode != 0:
        raise Failure(f"{tag} does not build:\n{text[-8000:]}")
    return text


def tree_bytes(root):
    return sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir() or path.is_symlink())


def image_config(image):
    return json.loads(buildah("inspect", "--type", "image", image))["Docker"]["config"]


def check_labels(config, example):
    labels = {name.rpartition(".")[2]: value for name, value in config["Labels"].items()
              if name.startswith("org.opencontainers.image.")}
    version = re.search(r"^project\(tuza VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    wanted = {"title": f"tuza-{example}", "version": version, "revision": revision(), "licenses": "MIT"}
    expect(wanted.items() <= labels.items() and labels.get("description"), f"labels {labels}, not {wanted}")


def unshare(flag, what):
    if ctypes.CDLL(None).unshare(flag) != 0:
        raise Failure(f"cannot make a {what} namespace")


def root_is_mounted(mountinfo):
    """Whether / is a mount point, as it is everywhere but in a plain chroot."""
    return any(line.split()[4] == "/" for line in mountinfo.splitlines())


def make_root_a_mount():
    """Unpacking a layer remounts /, which has to be a mount point. Where it is none, this process goes on in a mount namespace
    in which it is. What is mounted beneath /proc stays there: of that mount, unlike of the one that / belongs to, the
    propagation to the machine can be ended from inside a chroot."""
    if root_is_mounted(pathlib.Path("/proc/self/mountinfo").read_text()):
        return
    clone_newns, place = 0x20000, "/proc/fs"
    unshare(clone_newns, "mount")
    for words in ["--make-private", "/proc"], ["--rbind", "/", place]:
        expect(subprocess.run(["mount", *words], check=False).returncode == 0, "cannot mount in a namespace of its own")
    here = os.getcwd()
    os.chroot(place)
    os.chdir(here)


def leave_network():
    """Moves this process into a network of its own with nothing but loopback, so that any port is free."""
    clone_newnet, get_flags, set_flags, up = 0x40000000, 0x8913, 0x8914, 1
    unshare(clone_newnet, "network")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        name, flags = struct.unpack("16sH", fcntl.ioctl(control, get_flags, struct.pack("16sH14x", b"lo", 0))[:18])
        fcntl.ioctl(control, set_flags, struct.pack("16sH14x", name, flags | up))


def expect(condition, text):
    if not condition:
        raise Failure(text)


def status_fields(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


def connects(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


def await_listener(port, runner):
    deadline = time.monotonic() + START_TIMEOUT_S
    while not connects(port):
        expect(runner.poll() is None, f"the image's command ended by itself with status {runner.returncode}")
        expect(time.monotonic() < deadline, f"nothing listens on port {port}")
        time.sleep(0.05)


def get(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.status, answer.read()


def health(config, container):
    """The exit status of the image's own health check, which runs in the image."""
    check = config["Healthcheck"]["Test"]
    expect(check[0] == "CMD", f"a health check without a shell in the image: {check}")
    return subprocess.run([*BUILDAH, "run", "--isolation", "chroot", container, "--", *check[1:]], env=ENVIRONMENT,
                          check=False, capture_output=True).returncode


def check_process(config, example):
    """Checks the privileges of the server, and returns its pid."""
    servers = [pid for pid in descendants(os.getpid()) if os.path.basename(exe_of(pid)) == example]
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


def run_image(config, container, example):
    """Runs the image's command by `buildah run`: in the image's root, as its user, with a seccomp filter."""
    port = int(next(iter(config["ExposedPorts"])).partition("/")[0])
    app = STAGES[example] == "app"
    command = config["Entrypoint"] + (config.get("Cmd") or []) + (["--set", "http.access_log=true"] if app else [])
    runner = subprocess.Popen([*BUILDAH, "run", "--isolation", "chroot", container, "--", *command], env=ENVIRONMENT)
    try:
        await_listener(port, runner)
        if example == "hello":
            status, body = get(f"http://127.0.0.1:{port}/")
            expect((status, body) == (200, b"Hello, World!"), f"GET /: {status} {body[:80]!r}")
        server = check_process(config, example)
        expect(not app or health(config, container) == 0, "the health check finds a server that runs unhealthy")
        os.kill(server, getattr(signal, config["StopSignal"]))
        expect(runner.wait(END_TIMEOUT_S) == 0, f"at {config['StopSignal']} it ended with {runner.returncode}")
        expect(not app or health(config, container) != 0, "the health check finds a server that has ended healthy")
    finally:
        for pid in descendants(runner.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        runner.kill()
        runner.wait()


def check_image(image, example):
    config = image_config(image)
    check_labels(config, example)
    container = buildah("from", "--pull-never", *LIMITS, image)
    try:
        root = pathlib.Path(buildah("mount", container))
        megabytes = tree_bytes(root) / 1e6
        expect(megabytes <= SIZE_MAX_MB, f"{megabytes:.1f} MB, more than {SIZE_MAX_MB}")
        suid = [str(path) for path in root.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o6000]
        expect(not suid, f"programs that change their user: {suid}")
        run_image(config, container, example)
    finally:
        buildah("rm", container)
    print(f"docker: {image}, {megabytes:.1f} MB, user {config['User']}, answers, "
          f"{'is healthy, ' if STAGES[example] == 'app' else ''}ends at {config['StopSignal']}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="./dev docker", description=__doc__.split("\n", 1)[0])
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE",
                        help=f"{', '.join(STAGES)} or all; default: hello")
    parser.add_argument("--no-test", action="store_true", help="without the stage `test`")
    parser.add_argument("--parse", action="store_true", help=argparse.SUPPRESS)  # ./dev, before it installs packages
    parser.add_argument("--keep", action="store_true", help="keep the layers of the build")
    args = parser.parse_args()
    if "all" in args.examples:
        args.examples = list(STAGES)
    for unknown in sorted(set(args.examples) - set(STAGES)):
        parser.error(f"'{unknown}' is no example that is a server")
    return args


def main():
    args = arguments()
    if args.parse:
        return 0
    if os.geteuid() != 0:
        sys.exit("docker: needs root: debootstrap and chroot do")
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        make_root_a_mount()
        make_base(base_name())
        if not args.no_test:
            summary = re.findall(r"^\d+% tests passed.*$", build("test"), re.M)
            print(f"docker: {summary[-1] if summary else 'the tests had passed before: nothing has changed'}")
        images = {example: f"localhost/tuza-{example}:latest" for example in args.examples or ["hello"]}
        for example, image in images.items():
            build(STAGES[example], example, image)
        leave_network()
        for example, image in images.items():
            check_image(image, example)
    except Failure as error:
        sys.exit(f"docker: {error}")
    finally:
        if not args.keep:
            subprocess.run([*BUILDAH, "rm", "--all"], env=ENVIRONMENT, check=False, capture_output=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
