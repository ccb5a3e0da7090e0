#!/usr/bin/env bash
# port_here.sh PREFIX: on macOS or a BSD, after CMake has configured sched into build/: the sentences about kqueue that the
# poller relies on, against the kernel; sched, and a program on it. PREFIX has GoogleTest.
set -euo pipefail

flags=(-std=c++2b -DTUZA_PORTABLE -Ibuild/include -Wall -Wextra)
c++ "${flags[@]}" "-I$1/include" netpoll/tests/kqueue_test.cpp "-L$1/lib" -lgtest -lgtest_main -pthread -o build/kqueue_test
build/kqueue_test
cmake --build build --target tuza_sched
c++ "${flags[@]}" examples/pipeline.cpp build/sched/libtuza_sched.a -pthread -o build/pipeline
build/pipeline 100000
