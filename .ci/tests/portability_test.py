#!/usr/bin/env python3
"""portability_test.py: `check.py portable` finds what is Linux's, and nothing else."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

import portability  # noqa: E402

PAGE = """
| mechanism | Linux's form | portable form | what weakens |
| --- | --- | --- | --- |
| futexes | `sched/futex_linux.cpp`: of `sched/other.cpp` | none of `sched/third.cpp` | nothing |

| file | what it names |
| --- | --- |
| `netpoll/stray.cpp` | `netpoll/named.cpp` |

| part | Linux |
| --- | --- |
| `sched/elsewhere.cpp` | all |
"""


def found(text):
    return [word for _, word in portability.words(text)]


class Words(unittest.TestCase):
    def test_calls_by_number_and_their_arguments_are_linuxs(self):
        self.assertEqual(found("sys::invoke(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);"),
                         ["sys::invoke", "SYS_futex", "FUTEX_WAKE_PRIVATE"])
        for text in ("syscall(number)", "epoll_event either{.events = EPOLLIN};", "madvise(at, n, MADV_DONTNEED)",
                     "MAP_PRIVATE | MAP_NORESERVE", "send(fd, p, n, MSG_MORE)", "POLLRDHUP", "TCP_QUICKACK",
                     "SIOCOUTQ", "O_PATH", "cpu_set_t set;", "pthread_setname_np(thread, name)", "machine.gregs[3]"):
            self.assertEqual(len(found(text)), 1, text)

    def test_headers_are(self):
        for header in ("<linux/futex.h>", "<sys/epoll.h>", "<sys/syscall.h>", "<malloc.h>", "<elf.h>"):
            self.assertEqual(found(f"#include {header}\n"), [header])

    def test_paths_in_proc_and_sys_are(self):
        self.assertEqual(len(found('read("/proc/self/stat"); find(root + "/sys/fs/cgroup");')), 2)
        self.assertEqual(found('#include <tuza/sched/rt/idle/procs.h>\nread("a/proc/of/ours")'), [])

    def test_what_posix_has_is_not(self):
        self.assertEqual(found("""
            #include <sys/mman.h>
            sys::accept4(fd, SOCK_NONBLOCK | SOCK_CLOEXEC); sys::pipe2(ends, O_CLOEXEC); MAP_PRIVATE | MAP_ANONYMOUS;
            send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT); IPPROTO_TCP, TCP_NODELAY; TCP_KEEPIDLE; POLLIN; SO_REUSEADDR; list.splice(at, other);
            """), [])

    def test_comments_and_messages_may_name_it(self):
        self.assertEqual(found('// SYS_futex, <linux/futex.h>\n/* MADV_DONTNEED\n"/proc/" */ log("no MADV_GUARD_INSTALL");'), [])

    def test_the_line_is_that_of_the_word(self):
        self.assertEqual(list(portability.words("/* a\n*/\nx = SYS_read;")), [(3, "SYS_read")])


class Files(unittest.TestCase):
    def test_the_page_lists_the_files_of_two_columns(self):
        self.assertEqual(list(portability.listed(PAGE)), ["sched/futex_linux.cpp", "sched/other.cpp", "netpoll/stray.cpp"])

    def problems(self, **sources):
        names = {"futex": "sched/futex_linux.cpp", "other": "sched/other.cpp", "stray": "netpoll/stray.cpp",
                 "new": "netpoll/new.cpp"}
        given = dict.fromkeys(("futex", "other", "stray"), "SYS_x") | sources
        return list(portability.problems({names[key]: text for key, text in given.items()}, PAGE))

    def test_listed_files_are_in_order(self):
        self.assertEqual(self.problems(new="close(fd);"), [])

    def test_a_file_that_is_not_listed_is_reported_with_its_line(self):
        self.assertEqual(self.problems(new="\nSYS_close"),
                         ["netpoll/new.cpp:2: SYS_close is Linux's, and docs/internals/porting.md does not list the file"])

    def test_a_file_that_needs_no_row_any_more_is_reported(self):
        self.assertIn("netpoll/stray.cpp names nothing", self.problems(stray="close(fd);")[0])

    def test_a_file_with_two_mechanisms_is_reported(self):
        sources = {"sched/futex_linux.cpp": "SYS_x", "sched/other.cpp": "SYS_x", "netpoll/stray.cpp": "SYS_x"}
        twice = PAGE.replace("`netpoll/stray.cpp` |", "`netpoll/stray.cpp`, `sched/other.cpp` |")
        self.assertIn("sched/other.cpp is listed twice", list(portability.problems(sources, twice))[0])

    def test_sources_are_those_of_the_layers_without_their_tests(self):
        for name in ("sched/rt/m.h", "netpoll/poll/poller.cpp", "http/router.cpp", "framework/app.cpp"):
            self.assertTrue(portability.is_source(name), name)
        for name in ("sched/tests/run_test.cpp", "netpoll/bench/tcp_bench.cpp", "examples/hello.cpp", "sched/CMakeLists.txt"):
            self.assertFalse(portability.is_source(name), name)


if __name__ == "__main__":
    unittest.main()
