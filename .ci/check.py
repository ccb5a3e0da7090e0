#!/usr/bin/env python3
"""Checks the rules of the source tree that a compiler does not check: check.py [rule...]

    format       clang-format would change nothing
    layers       includes go downwards only: sched <- netpoll <- http <- framework <- examples, loadtests
    public       the first line of a header says whether it is public, and which umbrella header includes it
    installed    headers that are installed include only such headers
    results      functions of public headers that return a Result are [[nodiscard]]: the class std::expected is not
    rooms        includes inside sched/rt go downwards only, and other folders include only what is listed here
    sizes        files of code have at most 500 lines, functions at most 70
    once         headers may be included twice
    sources      CMake's lists of sources are sorted, one file a line
    quarantine   thread_local, errno, volatile and asm occur only in the files listed for them
    portable     in sched and netpoll, only the files that docs/internals/porting.md lists name what is Linux's
    commits      a branch's own commits, which origin/main does not have, have a subject of at most 72 characters, an
                 empty line, and a body

The build target `header_checks` checks that each header compiles alone. Violations are printed as FILE:LINE: text.
Notes name the tests outside of `./dev test` that a change concerns. Exit status 1 if there are any.
"""

import ast
import fnmatch
import pathlib
import re
import subprocess
import sys

import changes
import portability

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLANG_FORMAT = "clang-format-19"  # releases format differently; both Debian 12 and 13 have this one

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
SUBJECT_MAX = 72
WHOLE = ["sched/tuza-gdb.py"]  # may be longer, because gdb loads one file

LAYERS = ["sched", "netpoll", "http", "framework"]
# Public headers lie directly in these folders. Headers in subfolders are internal: examples and loadtests must not
# include them.
PUBLIC = (ROOT / "framework/cmake/public_folders.txt").read_text().split()
UMBRELLAS = {path.name for path in (ROOT / "include/tuza").glob("*.h")}

# The rooms (folders) of sched/rt, lowest first, with the files that lie between them. A header includes only files of
# its own room or of lower ones. The same holds for a source, except that it may include sched.h and the other headers
# that know all rooms.
ROOMS = ["base", "g m enter", "testing", "memory", "queue", "p", "idle", "slice", "report", "lifecycle"]
# Upward calls, by source: each is a place where a lower room starts an action of a higher one.
UPWARDS = {
    "base/check.cpp": ["m", "report"],  # the last report before the process ends shows everything
    "base/fork.cpp": ["enter"],  # the goroutine that forks is not suspended meanwhile
    "memory/g_pool.cpp": ["p"], "memory/per_p_cache.cpp": ["p"],  # each P has a cache of its own
    "testing/chaos.cpp": ["idle", "slice"], "testing/fake_time.cpp": ["idle", "slice", "report"],
    "testing/fake_time.h": ["queue"],
    "memory/g_pool.h": ["queue"],  # lists of goroutines
    "queue/ready.cpp": ["idle"], "queue/poll_role.cpp": ["idle"], "queue/backlog.cpp": ["idle"],  # work wakes an M
    "queue/schedule.h": ["p"],
    "queue/schedule.cpp": ["idle", "slice", "report"],  # no work: go idle, or report a deadlock
    "idle/idle.cpp": ["slice", "report"], "idle/procs.cpp": ["slice"],
    "idle/idle_ms.cpp": ["report"],  # no thread may be made: the last report says who holds them
    "idle/machine_thread.cpp": ["lifecycle"],  # the thread of an M ends by exit()
    "slice/handoff.cpp": ["report"], "slice/sysmon.cpp": ["report"], "slice/preempt_signal.cpp": ["report"],
    "g.h": ["memory"], "enter.h": ["testing"], "enter.cpp": ["slice"],
}
# The internals of sched that higher layers may use.
RT_FOR_OTHERS = ["base", "g", "enter", "park", "slice/before_park", "slice/handoff", "memory/per_p_cache",
                 "memory/idle_stacks", "queue/g_list_inline", "queue/io_source", "queue/poll_role", "idle/machine_thread",
                 "lifecycle/abandon", "lifecycle/end_hook", "lifecycle/environment", "report/activity"]

# Why each word is dangerous in a runtime that moves goroutines between threads: HACKING.md, house rules.
QUARANTINE = {
    "thread_local": ["sched/arch/*", "sched/tests/big_thread_locals.cpp", "sched/tests/lifecycle_test.cpp"],
    # examples/hostile does what programs without any knowledge of Tuza do, and does not park.
    "errno": ["sched/arch/*", "examples/hostile/work.cpp", "examples/docs/*", "loadtests/floor.cpp",
              "loadtests/stall_client.cpp", "loadtests/bulk.cpp"],
    "volatile": ["sched/arch/*", "sched/tests/context_test.cpp", "sched/tests/goroutine_test.cpp",
                 "sched/tests/landing_pads_test.cpp", "sched/tests/gdb_target.cpp",
                 "sched/tests/crash_report_test.cpp", "sched/tests/goroutine_dump_test.cpp", "sched/tests/idle_stacks_test.cpp",
                 "sched/tests/stack_guards_test.cpp", "sched/tests/stderr_test.cpp"],
    "asm": ["sched/arch/*", "sched/tests/held_mutex_test.cpp", "sched/tests/landing_pads_test.cpp",
            "sched/tests/gdb_target.cpp", "sched/tests/valgrind_target.cpp"],
}

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'(?!\w)""",
    re.DOTALL)
NOT_A_FUNCTION = re.compile(r"^\s*(inline\s+)?(namespace|class|struct|enum|union|extern|using|constexpr .*=)\b")


def listed(*patterns):
    """The files of the tree, including those not yet committed."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout.split("\n")
    return [ROOT / n for n in names if n and (ROOT / n).is_file()]


def without_comments_and_strings(text):
    """The same number of lines, with comments and literals removed."""
    return TOKEN.sub(lambda m: "\n" * m[0].count("\n"), text)


def relative(path):
    return path.relative_to(ROOT).as_posix()


def check_format():
    files = listed("*.h", "*.cpp")
    done = subprocess.run([CLANG_FORMAT, "--dry-run", "-Werror", *map(str, files)], cwd=ROOT,
                          capture_output=True, text=True)
    for line in done.stderr.splitlines():
        if "[-Wclang-format-violations]" in line:
            place = line.split(": error:")[0]
            yield f"{relative(pathlib.Path(place.rsplit(':', 2)[0]))}:{place.rsplit(':', 2)[1]}: not formatted"
    if done.returncode != 0 and "violations" not in done.stderr:
        yield f"{CLANG_FORMAT}: {done.stderr.strip()}"


def check_layers():
    for path in listed("*.h", "*.cpp"):
        name = relative(path)
        own = name.split("/")[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = re.match(r'\s*#\s*include\s*[<"](.*)[>"]', line)
            if include is None:
                continue
            target = include[1]
            if line.strip().endswith('"'):
                if own == "examples" and (path.parent / target).is_file():
                    continue  # examples include their own headers as programs do
                yield f"{name}:{number}: includes are spelled <tuza/...>"
            if not target.startswith("tuza/"):
                continue
            layer = target.split("/")[1]
            if layer in UMBRELLAS:
                if own in LAYERS and not name.startswith("framework/tests/consumer/"):
                    yield f"{name}:{number}: umbrella headers are for programs"
                continue
            if own in LAYERS and (layer not in LAYERS or LAYERS.index(layer) > LAYERS.index(own)):
                yield f"{name}:{number}: {own} must not include {layer}"
            folder = target.removeprefix("tuza/").rpartition("/")[0]
            if own in ("examples", "loadtests") and layer in LAYERS and folder not in PUBLIC:
                yield f"{name}:{number}: {own} may include public headers only"


def check_public():
    """Only a public header says so in its first line, and the line names the umbrella header that includes it."""
    for path in listed("*.h"):
        name = relative(path)
        folder = name.rpartition("/")[0]
        first = path.read_text().partition("\n")[0]
        said = re.fullmatch(r"// Public header(?:, part of <tuza/(\w+\.h)>)?\.", first)
        if (said is not None) != (folder in PUBLIC):
            yield f"{name}: public and internal headers differ in their first line: '// Public header'"
        elif said is not None:
            include = f"#include <tuza/{name}>\n"
            having = [u for u in sorted(UMBRELLAS) if include in (ROOT / "include/tuza" / u).read_text()]
            if having != ([said[1]] if said[1] else []):
                yield f"{name}: is part of {having or 'no umbrella header'}, and says otherwise"


def is_installed(folder):
    """As framework/cmake/install.cmake says it."""
    return folder.removesuffix("/detail") in PUBLIC


def check_installed():
    """A header that is installed includes none that is not: a program could not compile it."""
    for path in listed("*.h"):
        name = relative(path)
        if not is_installed(name.rpartition("/")[0]):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = re.match(r"\s*#\s*include\s*<tuza/(.*)>", line)
            folder = include[1].rpartition("/")[0] if include else ""
            if folder and not is_installed(folder):
                yield f"{name}:{number}: <tuza/{include[1]}> is not installed, and this header is"


def check_results():
    """A declaration of a function begins with Result<, after keywords. A friend that is only declared has no attributes."""
    for path in listed("*.h"):
        if relative(path).rpartition("/")[0] not in PUBLIC:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            head = re.match(r"\s*(?:static |inline |virtual |constexpr )*Result<[^=;]*?(?<![\w:])\w+\(", line)
            if head is not None and "unexpected" not in head[0]:
                yield f"{relative(path)}:{number}: returns a Result and is not [[nodiscard]]"


def room_of(path):
    """The index in ROOMS of a file of sched/rt; one past the last index for files that know all rooms."""
    first = path.split("/")[0].removesuffix(".h").removesuffix(".cpp")
    return next((i for i, names in enumerate(ROOMS) if first in names.split()), len(ROOMS))


def check_rooms():
    for path in listed("*.h", "*.cpp"):
        name = relative(path)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = re.match(r"#include <tuza/(sched/(?:rt|sync|time|detail)/.*)>", line)
            if include is None or "/tests/" in name or "/bench/" in name:
                continue
            target = include[1]
            if not name.startswith("sched/") and target.startswith("sched/rt/"):
                unit = target.removeprefix("sched/rt/").removesuffix(".h")
                if not any(unit == allowed or unit.startswith(allowed + "/") for allowed in RT_FOR_OTHERS):
                    yield f"{name}:{number}: {target} is not for the layers above sched"
            if name.startswith("sched/sync/") and target.startswith("sched/time/"):
                yield f"{name}:{number}: sched/sync must not include sched/time, which stands on it"
            if name.startswith("sched/rt/") and target.startswith("sched/rt/"):
                own, other = name.removeprefix("sched/rt/"), target.removeprefix("sched/rt/")
                if name.endswith(".cpp") and room_of(other) == len(ROOMS):
                    continue
                allowed = UPWARDS.get(own, [])
                if room_of(other) > room_of(own) and other.split("/")[0].removesuffix(".h") not in allowed:
                    yield f"{name}:{number}: upwards to {other} (see UPWARDS in .ci/check.py)"


def long_functions(path, text):
    """Functions that are too long. A function is a block whose first and last line have the same indentation."""
    lines = without_comments_and_strings(text).split("\n")
    for start, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if indent > 4 or not line.strip() or line.lstrip()[0] in "}#" or NOT_A_FUNCTION.match(line):
            continue
        # The head may take several lines; it ends where a line ends with an opening brace.
        opening = start
        while opening < len(lines) - 1 and opening - start < 12 and not re.search(r"[{;}]\s*$", lines[opening]):
            opening += 1
        if not lines[opening].rstrip().endswith("{") or "(" not in "".join(lines[start:opening + 1]):
            continue
        for end in range(opening + 1, len(lines)):
            if lines[end].strip() and len(lines[end]) - len(lines[end].lstrip()) < indent:
                break  # the block was part of a statement
            if lines[end].startswith(" " * indent + "}"):
                if end - start + 1 > FUNCTION_LINES_MAX:
                    yield f"{path}:{start + 1}: a function of {end - start + 1} lines, more than {FUNCTION_LINES_MAX}"
                break


def check_once():
    for path in listed("*.h"):
        if not re.search(r"^#pragma once$", path.read_text(), re.MULTILINE):
            yield f"{relative(path)}:1: no #pragma once"


def check_sizes():
    for path in listed("*.h", "*.cpp", "*.S", "*.py", "*.pml", "dev"):
        name, text = relative(path), path.read_text()
        if text.count("\n") > FILE_LINES_MAX and name not in WHOLE:
            yield f"{name}:1: {text.count(chr(10))} lines, more than {FILE_LINES_MAX}"
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= FUNCTION_LINES_MAX:
                    yield f"{name}:{node.lineno}: a function of more than {FUNCTION_LINES_MAX} lines"
        elif path.suffix in (".h", ".cpp"):
            yield from long_functions(name, text)


def check_sources():
    source = re.compile(r"\s*([\w./${}-]+\.(?:cpp|S))(?=[\s)]|$)")
    for path in listed("*CMakeLists.txt"):
        previous = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = source.match(line)
            this = match[1] if match else ""
            if match and source.match(line, match.end()):
                yield f"{relative(path)}:{number}: more than one file on a line of a list of sources"
            elif this and not this.startswith("..") and this < previous:
                yield f"{relative(path)}:{number}: {this} comes after {previous}: sort the list"
            previous = this if line.rstrip().endswith(this) else ""


def check_quarantine():
    words = re.compile(r"\b(" + "|".join(QUARANTINE) + r")\b")
    for path in listed("*.h", "*.cpp"):
        name = relative(path)
        for number, line in enumerate(without_comments_and_strings(path.read_text()).split("\n"), 1):
            if re.match(r"\s*#\s*include", line):
                continue
            for word in words.findall(line):
                if not any(fnmatch.fnmatch(name, pattern) for pattern in QUARANTINE[word]):
                    yield f"{name}:{number}: {word} does not belong here (.ci/check.py says where)"


def check_portable():
    sources = {relative(p): p.read_text() for p in listed(*(f"{layer}/*" for layer in changes.LAYERS)) if portability.is_source(relative(p))}
    yield from portability.problems(sources, (ROOT / portability.PAGE).read_text())


def check_commits():
    """What is new since origin/main; where that does not exist, the last commit. None without Git's data."""
    if not (ROOT / ".git").exists():
        return
    known = subprocess.run(["git", "rev-parse", "--verify", "--quiet", "origin/main"], cwd=ROOT, capture_output=True)
    commits = "origin/main..HEAD" if known.returncode == 0 else "-1"
    done = subprocess.run(["git", "log", "--no-merges", "-z", "--format=%h%n%B", commits], cwd=ROOT, check=False,
                          capture_output=True, text=True)
    if done.returncode != 0:
        yield f"git log: {done.stderr.strip()}"
    for commit in filter(None, done.stdout.split("\0")):
        name, subject, *rest = commit.rstrip().split("\n")
        if len(subject) > SUBJECT_MAX:
            yield f"commit {name}: a subject of {len(subject)} characters, more than {SUBJECT_MAX}"
        if not rest or rest[0] or not any(rest):
            yield f"commit {name}: no empty line and body that says why after the subject"


RULES = {"format": check_format, "layers": check_layers, "public": check_public, "installed": check_installed,
         "results": check_results, "rooms": check_rooms, "sizes": check_sizes, "once": check_once, "sources": check_sources,
         "quarantine": check_quarantine, "portable": check_portable,
         "commits": check_commits}


def main():
    names = sys.argv[1:] or list(RULES)
    unknown = [n for n in names if n not in RULES]
    if unknown:
        print(__doc__)
        return 2
    broken = [f"{problem}  [{name}]" for name in names for problem in RULES[name]()]
    print("\n".join(broken) if broken else f"check: {', '.join(names)}: good")
    if since := changes.base():
        print("".join(f"note: {text}\n" for text in changes.reminders(changes.files(since))), end="")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
