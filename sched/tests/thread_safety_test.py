"""Clang's thread-safety analysis refuses what the annotations forbid: thread_safety_test.py COMPILER INCLUDE_FOLDER...

For each lock a file with correct functions and with functions of one mistake each is compiled with -Wthread-safety as
an error. Each line with a mistake must have an error with the words beside it, and no other line may have one.
"""

import re
import subprocess
import sys
import unittest

HEAD = """
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/detail/thread_mutex.h>
#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/rw_mutex.h>
struct Counter {
  LOCK lock;
  int value TUZA_GUARDED_BY(lock) = 0;
  int read() TUZA_REQUIRES(lock) { return value; }
};
"""
# The error that a function must cause, and the function; one line each.
FUNCTIONS = [
    (None, "int f(Counter& c) { const tuza::LockGuard held(c.lock); return c.read() + c.value; }"),
    (None, "int f(Counter& c) { c.lock.lock(); const int value = c.value; c.lock.unlock(); return value; }"),
    (None, "int f(Counter& c) { if (!c.lock.try_lock()) return 0; const int v = c.value; c.lock.unlock(); return v; }"),
    ("reading variable 'value' requires holding", "int f(Counter& c) { return c.value; }"),
    ("writing variable 'value' requires holding", "void f(Counter& c) { c.value = 1; }"),
    ("calling function 'read' requires holding", "int f(Counter& c) { return c.read(); }"),
    ("is still held at the end of function", "void f(Counter& c) { c.lock.lock(); c.value = 1; }"),
    ("that is already held", "void f(Counter& c) { c.lock.lock(); c.lock.lock(); c.lock.unlock(); }"),
    ("that was not held", "void f(Counter& c) { c.lock.unlock(); }"),
]
# Templates are in no library: here the analysis sees them.
TEMPLATES = """
#include <tuza/sync.h>
#include <string>
template class tuza::Chan<int>;
template class tuza::Chan<std::string>;
template class tuza::Future<int>;
template class tuza::Promise<int>;
template class tuza::Pool<std::string>;
template class tuza::GoroutineLocal<int>;
template class tuza::singleflight::Group<std::string, int>;
int use(tuza::Once& once, const tuza::Context& context, tuza::singleflight::Group<std::string, int>& group, tuza::Chan<int>& chan) {
  once.call([] {});
  (void)once.call(context, [] {});
  tuza::OnceValue value([] { return 1; });
  std::optional<int> received;
  tuza::select(tuza::on_recv(chan, received), tuza::otherwise());
  (void)group.call(context, "key", [] { return 1; });
  return group.call("key", [] { return 1; }).value + value();
}
"""
SHARED = [
    (None, "int f(Counter& c) { c.lock.lock_shared(); const int v = c.value; c.lock.unlock_shared(); return v; }"),
    ("writing variable 'value' requires holding RWMutex 'c.lock' exclusively",
     "void f(Counter& c) { c.lock.lock_shared(); c.value = 1; c.lock.unlock_shared(); }"),
]


def errors_of(lock, functions):
    """What the compiler says of each function, by its index."""
    head = HEAD.replace("LOCK", lock)
    lines = [code.replace(" f(", f" f{i}(") for i, (_, code) in enumerate(functions)]
    done = subprocess.run([*COMMAND, "-"],
        input=head + "\n".join(lines), capture_output=True, text=True)
    errors = {}
    for line, words in re.findall(r"^<stdin>:(\d+):\d+: error: (.*)$", done.stderr, re.MULTILINE):
        errors.setdefault(int(line) - 1 - head.count("\n"), []).append(words)
    return errors


class ThreadSafety(unittest.TestCase):
    def expect(self, lock, functions):
        errors = errors_of(lock, functions)
        self.assertLessEqual(set(errors), set(range(len(functions))), errors)
        for index, (expected, code) in enumerate(functions):
            with self.subTest(lock=lock, code=code):
                said = " ".join(errors.get(index, []))
                if expected is None:
                    self.assertEqual(said, "")
                else:
                    self.assertIn(expected, said)

    def test_locks(self):
        for lock in "Mutex", "ThreadMutex", "rt::RawMutex", "rt::SpinLock", "RWMutex":
            self.expect(f"tuza::{lock}", FUNCTIONS)

    def test_public_templates_keep_their_own_rules(self):
        done = subprocess.run([*COMMAND, "-"], input=TEMPLATES, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_readers_of_an_rwmutex_do_not_write(self):
        self.expect("tuza::RWMutex", SHARED)


if __name__ == "__main__":
    COMMAND = [sys.argv[1], "-std=c++23", "-fsyntax-only", "-Wthread-safety", "-Werror", *(f"-I{folder}" for folder in sys.argv[2:]), "-x", "c++"]
    unittest.main(argv=sys.argv[:1])
