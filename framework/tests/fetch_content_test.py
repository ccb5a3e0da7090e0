#!/usr/bin/env python3
"""fetch_content_test.py SOURCE CXX WORK: a program fetches Tuza as docs/guide/libraries.md says, is built, and runs.

The repository is a local one, made of the files in SOURCE. WORK is emptied first; it is the same each time, so that ccache
knows the files.
"""

import pathlib
import re
import shutil
import subprocess
import sys

SOURCE, CXX, WORK = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
PROGRAM = pathlib.Path(__file__).resolve().parent / "consumer/main.cpp"
BLOCK = re.compile(r"```cmake\n(include\(FetchContent\)\n.*?)```", re.DOTALL)
PATIENCE_S = 800


def run(*words, cwd=None):
    done = subprocess.run(list(map(str, words)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PATIENCE_S, cwd=cwd, check=False)
    if done.returncode != 0:
        sys.exit(f"{words}: {done.returncode}\n{done.stdout}")
    return done.stdout


def make_repository(folder):
    for name in run("git", "ls-files", "-co", "--exclude-standard", cwd=SOURCE).splitlines():
        if (SOURCE / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(SOURCE / name, folder / name, follow_symlinks=False)
    run("git", "init", "--quiet", "--initial-branch=main", cwd=folder)
    run("git", "add", "--all", "--force", cwd=folder)
    run("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "all", cwd=folder)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    repository, program, build = WORK / "repository", WORK / "program", WORK / "build"
    repository.mkdir(parents=True)
    make_repository(repository)
    program.mkdir()
    shutil.copy2(PROGRAM, program / "server.cpp")
    [block] = BLOCK.findall((SOURCE / "docs/guide/libraries.md").read_text())
    block, places = re.subn(r"GIT_REPOSITORY \S+", f"GIT_REPOSITORY file://{repository}", block)
    assert places == 1, block
    (program / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(server LANGUAGES CXX)\n" + block)
    run("cmake", "-G", "Ninja", "-S", program, "-B", build, f"-DCMAKE_CXX_COMPILER={CXX}", "-DCMAKE_CXX_FLAGS=-O0",
        "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=12")
    targets = run("cmake", "--build", build, "--target", "help")
    for unwanted in "sched_tests", "hello", "bench_sched":
        assert f"{unwanted}:" not in targets, unwanted
    run("cmake", "--build", build, "--parallel", "2", "--target", "server")
    assert "logged by the program" in run(build / "server")


if __name__ == "__main__":
    main()
