#!/usr/bin/env python3
"""Tests tuza-gdb.py: gdb_test.py <gdb_target> <tuza-gdb.py>

gdb looks into gdb_target when every goroutine is where gdb_target.cpp says: first into the live process,
which must go on undisturbed to its end, then into a core file saved from it. Both must show the same.
Needs gdb in PATH, or named by $GDB, and the right to trace processes. Exit status 0 or 1.
"""

import ast
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TIMEOUT_S = 60
SOURCE = pathlib.Path(__file__).with_name("gdb_target.cpp")
ARCH = SOURCE.parent.parent / "arch"

# Runs inside gdb. Before the output of each command stands a line `@@ COMMAND`.
IN_GDB = """
import gdb
import re

def begin(title):
    print(f"\\n@@ {title}")

def query(command, title=None):
    begin(title or command)
    try:
        gdb.execute(command)
    except gdb.error as error:
        print(f"error: {error}")

def query_all(names):
    thread = gdb.selected_thread()
    gdb.newest_frame().older().select()
    selected = gdb.selected_frame()
    query("info goroutines")
    listing = gdb.execute("info goroutines", to_string=True)
    for name in names:
        found = re.search(rf"^[* ] +(\\d+) .*  {name} ", listing, re.M)
        if found is not None:
            query(f"goroutine {found[1]} bt", f"bt {name}")
            query(f"goroutine {found[1]} frame apply all -q -s print kept", f"kept {name}")
    query("goroutine all bt")
    query("goroutine 999999 bt", "no such goroutine")
    query("goroutine 1", "no command")
    query("goroutine 1 nonsense", "bad command")
    begin("selection kept")
    print(gdb.selected_thread() == thread, gdb.selected_frame() == selected)
    # Whatever another thread is doing, and in whatever language: what is shown is the same.
    for other in gdb.selected_inferior().threads():
        other.switch()
        query("info goroutines", "info goroutines from another thread")
        waiter = re.search(r"^[* ] +(\\d+) .*  waiter ", listing, re.M)
        query(f"goroutine {waiter[1]} bt", "bt waiter from another thread")
    thread.switch()
"""

LIVE = """
begin("saved frames")
for frame in SAVED_FRAMES.values():
    print({{**frame.offsets, "size": frame.size}})
query("info goroutines", "before run")
gdb.execute("break ready_for_gdb")
gdb.execute("run")
query_all({names})
query("gcore-goroutines {core}", "gcore")
query("continue")
query("info goroutines", "after run")
"""

CORE = """
query_all({names})
"""


class Expected:
    def __init__(self, state, functions, kept, created_by):
        self.state = state
        self.functions = functions  # innermost first; others may stand between them
        self.kept = kept  # values of the variable `kept`, innermost frame first
        self.created_by = created_by  # text in the line of its creation


END = ["run_closure", "goroutine_main", "tuza_context_entry"]
# Where goroutines leave their stacks. Without debug info, what was inlined there has no frames.
SWITCHES = ("context_switch", "switch_to", "switch_to_next")
PARKED = ["park"]

EXPECTED = {
    "main": Expected(r"running \(thread \d+\)", ["ready_for_gdb", "main_goroutine"], [], "tuza::run("),
    "sleeper": Expected(
        r"waiting \(sleep\)",
        PARKED + ["sleep_until_ns", "inner_sleep", "outer_sleep"],
        [1002, 1001],
        'tuza::go({.name = "sleeper"}',
    ),
    "waiter": Expected(
        r"waiting \(wait group\)",
        PARKED + ["wait", "inner_wait", "middle_wait", "outer_wait"],
        [2003, 2002, 2001],
        "tuza::go({.name = name}",
    ),
    "locker": Expected(
        r"waiting \(mutex\)",
        PARKED + ["lock_slow", "inner_lock", "outer_lock"],
        [3002, 3001],
        "tuza::go({.name = name}",
    ),
    "caller": Expected(
        r"syscall \(thread \d+\)", ["inner_call", "outer_call"], [], "tuza::go({.name = name}"
    ),
    "burner": Expected(
        r"running \(thread \d+\)", ["inner_burn", "outer_burn"], [], "tuza::go({.name = name}"
    ),
}
# Made when every P was busy; but a P may have become free since then, and the goroutine have run or ended.
NEWBORN = "newborn"

failures = []


def check(condition, what, shown):
    if not condition:
        failures.append(what)
        indented = "".join(f"    {line}\n" for line in shown.splitlines())
        print(f"FAILED: {what}\n{indented}", file=sys.stderr)
    return condition


def source_line(text):
    lines = SOURCE.read_text().splitlines()
    found = [number for number, line in enumerate(lines, 1) if text in line]
    assert len(found) == 1, f"{SOURCE.name} has {len(found)} lines with {text}"
    return found[0]


def gdb(extension, arguments, script):
    quiet = ["set confirm off", "set pagination off", "set width 0", "set style enabled off",
             "set debuginfod enabled off"]
    command = [os.environ.get("GDB", "gdb"), "-q", "-nx", "-batch"]
    for setting in quiet:
        command += ["-iex", setting]
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(IN_GDB + script)
        file.flush()
        command += ["-x", extension, "-x", file.name, *arguments]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as expired:
            output = expired.stdout or ""
            output = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
            print(f"FAILED: gdb took more than {TIMEOUT_S} s\n{output}", file=sys.stderr)
            sys.exit(1)
    sections = {}
    for section in re.split(r"^@@ ", done.stdout, flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        sections.setdefault(title, []).append(text.strip("\n"))
    check(done.returncode == 0 and sections, "gdb ran the script", done.stdout + done.stderr)
    return sections


def function_of(frame):
    """`#2  0x41 in tuza::rt::f<int>(int) (x=1) at f.cpp:1` -> f"""
    text = re.sub(r"^#\d+ +(0x[0-9a-f]+ in )?", "", frame).replace("(anonymous namespace)::", "")
    return re.match(r"[^<( ]*", text)[0].rsplit("::", 1)[-1]


def in_order(wanted, names):
    rest = iter(names)
    return all(name in rest for name in wanted)


def check_back_trace(where, name, text):
    frames = [line for line in text.splitlines() if line.startswith("#")]
    functions = [function_of(frame) for frame in frames]
    wanted = EXPECTED[name].functions + END
    check(in_order(wanted, functions), f"{where}: {name} is in {', '.join(wanted)}, in this order", text)
    check(functions[-2:] == END[-2:], f"{where}: the back trace of {name} ends at {END[-1]}", text)
    garbage = "??" in text or "Backtrace stopped" in text or "corrupt" in text
    check(not garbage, f"{where}: every frame of {name} is a function", text)
    if wanted[0] == PARKED[0]:
        innermost = functions[0] if functions else ""
        check(innermost in SWITCHES, f"{where}: {name} begins where it parked", text)


def check_newborn(where, text):
    has_not_run = re.search(r"has not run yet; it will begin in tuza::rt::run_closure<.*run_newborn", text)
    check(has_not_run or function_of(text.splitlines()[-1]) == END[-1],
          f"{where}: {NEWBORN} has not run, or has a back trace", text)


def check_saved_frames(text):
    """The frames that the script knows are those that the assembly makes, on every architecture."""
    constants = (ARCH / "context.h").read_text()
    sizes = [int(n) for n in re.findall(r"kFrameBytes = (\d+);", constants)]
    resumes = [int(n) for n in re.findall(r"kFrameResume = (\d+);", constants)]
    x86 = (ARCH / "context_x86_64.S").read_text()
    stores = [{name: int(at) for name, at in re.findall(r"movq +%(r\w+), (\d+)\(%rsp\)", x86)}, {}]
    aarch64 = (ARCH / "context_aarch64.S").read_text()
    for first, second, at in re.findall(r"stp +(x\d+), (x\d+), \[sp, #(\d+)\]", aarch64):
        stores[1] |= {first: int(at), second: int(at) + 8}
    for frame, pc, size, resume, registers in zip(
            text.splitlines(), ("rip", "pc"), sizes, resumes, stores, strict=True):
        wanted = {**registers, pc: resume, "size": size}
        check(ast.literal_eval(frame) == wanted, f"the saved frame is {wanted}", frame)


def check_listing(where, listing):
    ids = [int(number) for number in re.findall(r"^[* ] +(\d+) ", listing, re.M)]
    check(len(ids) == len(listing.splitlines()) and ids == sorted(ids),
          f"{where}: one line per goroutine, in the order of their ids", listing)
    for name, expected in EXPECTED.items():
        line = next((line for line in listing.splitlines() if f"  {name} " in line), None)
        if not check(line is not None, f"{where}: {name} is listed", listing):
            continue
        mark = r"\*" if expected.state.startswith(("running", "syscall")) else " "
        site = rf"\S*{re.escape(SOURCE.name)}:{source_line(expected.created_by)}"
        wanted = rf"{mark} +\d+ {expected.state} +{name} +{site}"
        check(re.fullmatch(wanted, line), f"{where}: the line of {name} matches {wanted}", line)


def check_all(where, sections):
    def only(title):
        texts = sections.get(title, [""])
        return texts[0]

    check_listing(where, only("info goroutines"))
    for name, expected in EXPECTED.items():
        check_back_trace(where, name, only(f"bt {name}"))
        printed = only(f"kept {name}")
        kept = [int(value) for value in re.findall(r"^\$\d+ = (\d+)$", printed, re.M)]
        check(kept == expected.kept, f"{where}: the variables of {name} are {expected.kept}", printed)
    if f"bt {NEWBORN}" in sections:
        check_newborn(where, only(f"bt {NEWBORN}"))
    every = re.split(r"^Goroutine \d+, ", only("goroutine all bt"), flags=re.M)[1:]
    for name in EXPECTED:
        text = next((text for text in every if re.match(rf".*, {name}:\n", text)), "")
        check_back_trace(f"{where}, all", name, text)
    check("error: No goroutine 999999." in only("no such goroutine"), f"{where}: a wrong id is an error",
          only("no such goroutine"))
    check("error: usage: goroutine" in only("no command"), f"{where}: no command is an error",
          only("no command"))
    check("error: Undefined command" in only("bad command"),
          f"{where}: gdb's own errors are shown as they are", only("bad command"))
    check(only("selection kept") == "True True", f"{where}: thread and frame stay selected",
          only("selection kept"))
    same = [only("info goroutines")]
    others = sections.get("info goroutines from another thread", [])
    check(len(others) > 2 and all(text in same for text in others),
          f"{where}: the list is the same from every thread", "\n".join(same + others))
    for text in sections.get("bt waiter from another thread", []):
        check_back_trace(f"{where}, another thread selected", "waiter", text)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    target, extension = sys.argv[1:]
    names = [*EXPECTED, NEWBORN]
    with tempfile.TemporaryDirectory() as directory:
        core = os.path.join(directory, "core")
        live = gdb(extension, [target], LIVE.format(names=names, core=core))
        check_saved_frames(live.get("saved frames", [""])[0])
        check("error: No goroutines" in live.get("before run", [""])[0], "live: a message before tuza::run",
              live.get("before run", [""])[0])
        check_all("live", live)
        end = live.get("continue", [""])[0]
        check("exited normally" in end, "live: the program goes on to its end", end)
        check("error: No goroutines" in live.get("after run", [""])[0], "live: a message after tuza::run",
              live.get("after run", [""])[0])
        if check(os.path.exists(core), "a core file was saved", live.get("gcore", [""])[0]):
            check_all("core", gdb(extension, [target, core], CORE.format(names=names)))
    print("ok" if not failures else f"{len(failures)} checks failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
