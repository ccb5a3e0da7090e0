#!/usr/bin/env python3
"""build_types_test.py SOURCE CXX WORK: CMake's own build types compile without a warning, a configuration that names none is
RelWithDebInfo, and position-independent libraries, static and shared ones, work in a shared object that a program loads at
run time, as docs/guide/libraries.md says.

WORK is emptied first; it is the same each time, so that ccache knows the files.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE, CXX, WORK = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
PATIENCE_S = 1500
OPTIONS = ["-DTUZA_TESTS=OFF", "-DTUZA_BENCHMARKS=OFF", "-DTUZA_EXAMPLES=OFF", "-DCMAKE_UNITY_BUILD=ON",
           "-DCMAKE_UNITY_BUILD_BATCH_SIZE=12"]

# A plugin, and a host that knows nothing of Tuza.
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(plugin LANGUAGES CXX)
if(NOT BUILD_SHARED_LIBS)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
add_subdirectory({source} tuza)
add_library(plugin MODULE plugin.cpp)
target_link_libraries(plugin PRIVATE tuza::netpoll)
add_executable(host host.cpp)
target_link_libraries(host PRIVATE ${{CMAKE_DL_LIBS}})
add_dependencies(host plugin)
"""
PLUGIN = """
#include <tuza/net.h>
#include <tuza/tuza.h>
extern "C" int plugin_main() {
  return tuza::run([] {
    auto listener = tuza::net::listen("tcp", "127.0.0.1:0").value();
    tuza::Chan<int> answer;
    tuza::go([&] {
      auto conn = listener.accept().value();
      char byte = 0;
      (void)conn.read(std::span(&byte, 1));
      answer.send(byte);
    });
    auto conn = tuza::net::dial("tcp", listener.address()).value();
    (void)conn.write_all("*");
    return *answer.recv();
  });
}
"""
HOST = """
#include <dlfcn.h>
#include <cstdio>
int main(int, char** arguments) {
  void* plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return std::puts(dlerror()), 1;
  auto* entry = reinterpret_cast<int (*)()>(dlsym(plugin, "plugin_main"));
  return entry != nullptr && entry() == '*' ? 0 : 2;
}
"""


def run(*words):
    done = subprocess.run(list(map(str, words)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        sys.exit(f"{words}: {done.returncode}\n{done.stdout}")
    return done.stdout


def configure(source, folder, *options):
    run("cmake", "-G", "Ninja", "-S", source, "-B", folder, f"-DCMAKE_CXX_COMPILER={CXX}", *OPTIONS, *options)


def build(folder, target="all"):
    run("cmake", "--build", folder, "--parallel", "2", "--target", target)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    # With the examples and load test servers: -Os inlines less, and GCC warns of other things.
    configure(SOURCE, WORK / "MinSizeRel", "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DTUZA_WERROR=ON", "-DTUZA_EXAMPLES=ON")
    build(WORK / "MinSizeRel")
    os.environ.pop("CMAKE_BUILD_TYPE", None)  # of CMake, for a configuration that names none
    configure(SOURCE, WORK / "default")
    cache = (WORK / "default/CMakeCache.txt").read_text()
    assert "\nCMAKE_BUILD_TYPE:STRING=RelWithDebInfo\n" in cache, re.findall(r"CMAKE_BUILD_TYPE.*", cache)
    project = WORK / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(PROJECT.format(source=SOURCE))
    (project / "plugin.cpp").write_text(PLUGIN)
    (project / "host.cpp").write_text(HOST)
    # All layers as shared libraries; of the static ones, what the plugin needs.
    for shared, target in {"ON": "all", "OFF": "host"}.items():
        folder = WORK / f"plugin-shared-{shared}"
        configure(project, folder, "-DCMAKE_BUILD_TYPE=Release", "-DTUZA_WERROR=ON", f"-DBUILD_SHARED_LIBS={shared}")
        build(folder, target)
        run(folder / "host", folder / "libplugin.so")


if __name__ == "__main__":
    main()
