"""Processes run where they should, and end however the driver ends.

Run from loadtests/: python3 -m unittest
"""

import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from lib import process, procfs
from lib.process import LoadTestError


class Processes(unittest.TestCase):
    def setUp(self):
        self.cpus = {min(os.sched_getaffinity(0))}

    def test_runs_on_the_cpus_asked_for_in_a_session_of_its_own(self):
        child = process.spawn(["sleep", "60"], self.cpus)
        try:
            self.assertEqual(os.sched_getaffinity(child.pid), self.cpus)
            self.assertEqual(procfs.session_members(child.pid), [child.pid])
        finally:
            self.assertEqual(process.stop(child), -signal.SIGTERM)

    def test_one_that_ignores_sigterm_is_killed_with_its_children(self):
        script = "trap '' TERM; sleep 60 & echo $!; wait; sleep 60"
        child = process.spawn(["sh", "-c", script], self.cpus, stdout=subprocess.PIPE, text=True)
        with child.stdout:
            grandchild = int(child.stdout.readline())
        self.assertEqual(process.stop(child, grace_s=0.2), -signal.SIGKILL)
        self.assert_gone(grandchild)

    def test_dies_with_a_driver_that_is_killed(self):
        script = ("import time\nfrom lib import process\n"
                  f"print(process.spawn(['sleep', '60'], {self.cpus}).pid, flush=True)\ntime.sleep(60)")
        driver = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                                  cwd=Path(__file__).parents[1])
        with driver.stdout:
            child = int(driver.stdout.readline())
        driver.kill()
        driver.wait()
        self.assert_gone(child)

    def test_what_cannot_be_started_or_fails_says_so(self):
        for command in (["/no/such/program"], ["false"], ["sleep", "60"]):
            with self.assertRaises(LoadTestError):
                process.run(command, self.cpus, timeout_s=0.2)

    def assert_gone(self, pid):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                if procfs.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] == "Z":
                    return  # nobody has collected it yet
            except OSError:
                return
            time.sleep(0.01)
        self.fail(f"process {pid} is still there")
