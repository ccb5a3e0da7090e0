"""Processes of a load test: started on given CPUs, ended by their own pid. They never outlive the driver.

Each process runs in a session of its own, for two reasons. Ctrl-C at the terminal reaches only the driver, which then
stops the processes in order. And the workers of a server with several processes can be identified by their session.
If the driver is killed outright, the kernel kills the processes (PR_SET_PDEATHSIG).
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess

PR_SET_PDEATHSIG = 1


class LoadTestError(Exception):
    """A measurement could not be made. The text is written for the reader of the report."""


def allowed_cpus():
    """Returns (server CPU, client CPU, both), as sets for spawn()."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise LoadTestError("needs two CPUs: one for the server, one for its clients")
    return {cpus[0]}, {cpus[1]}, {cpus[0], cpus[1]}


def raise_descriptor_limit():
    """Raises the soft limit for this process and its children; returns it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def spawn(command, cpus, **popen):
    """Starts `command` (a list) on the set `cpus`. The caller must stop() it."""
    parent = os.getpid()
    libc = ctypes.CDLL(None)

    def prepare():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the prctl
            os._exit(1)
        os.sched_setaffinity(0, cpus)

    popen.setdefault("stdin", subprocess.DEVNULL)
    try:
        return subprocess.Popen(command, preexec_fn=prepare, start_new_session=True, **popen)
    except OSError as error:
        raise LoadTestError(f"cannot start {command[0]}: {error.strerror}") from error


def stop(process, first=signal.SIGTERM, grace_s=8):
    """Ends the process and returns its exit status. Blocks for little more than `grace_s` at most."""
    if process.poll() is None:
        process.send_signal(first)
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            # The process is not yet reaped, so its pid and process group cannot have been reused.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode


@contextlib.contextmanager
def running(command, cpus, **popen):
    process = spawn(command, cpus, **popen)
    try:
        yield process
    finally:
        stop(process)
        if process.stdout:
            process.stdout.close()


def run(command, cpus, timeout_s, environment=None):
    """Runs `command` to its end and returns its output (stdout, with stderr in it).

    `environment` is added to the environment of this process.
    """
    with running(command, cpus, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                 env=os.environ | (environment or {})) as process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise LoadTestError(f"{command[0]} did not end within {timeout_s} s") from None
    if process.returncode != 0:
        raise LoadTestError(f"{command[0]} failed ({process.returncode}): {output.strip()}")
    return output
