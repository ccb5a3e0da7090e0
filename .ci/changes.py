"""What the work tree holds beyond main: files, layers, tests, and the models of what has changed."""

import hashlib
import json
import os
import re
import subprocess

import steps

# Names of layers for `./dev test PRESET LAYER`, with their folders. Those of sched/sync and sched/time are parts of sched.
LAYERS = {"sched": "sched", "sync": "sched/sync", "time": "sched/time", "netpoll": "netpoll", "http": "http",
          "framework": "framework", "examples": "examples", "loadtests": "loadtests"}
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),")
HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
MODELLED = re.compile(r"\b(?:sched|netpoll)/[\w/]+\.(?:h|cpp)\b")


def git(*words):
    """The output of a Git command; None if it failed, as it does where there is no repository."""
    done = subprocess.run(["git", *words], cwd=steps.ROOT, capture_output=True, text=True, errors="replace")
    return done.stdout if done.returncode == 0 else None


def base(commit=None):
    """The commit that the work tree is compared with: the last one in common with main. None if there is none."""
    for name in [commit] if commit else ["origin/main", "main"]:
        if found := git("merge-base", "HEAD", name):
            return found.strip()
    return None


def files(since):
    """The files that differ from a commit, with those that are not committed; a deleted file counts."""
    changed = (git("diff", "--name-only", "-z", since) or "") + (git("ls-files", "-oz", "--exclude-standard") or "")
    return sorted(set(filter(None, changed.split("\0"))))


def layers(names):
    """The layers in which files have changed, lowest first. Pages and scripts belong to none."""
    found = {layer_of(name) for name in names if not name.endswith(".md")} - {None}
    if "sched" in found:  # its parts are tested with it
        found -= {"sync", "time"}
    return [layer for layer in LAYERS if layer in found]


def layer_of(name):
    holders = [layer for layer, folder in LAYERS.items() if name.startswith(f"{folder}/")]
    return max(holders, key=lambda layer: len(LAYERS[layer]), default=None)


def changed_lines(name, since):
    """The numbers of the lines that were added or edited, or that follow a deletion; None for a new file."""
    if git("cat-file", "-e", f"{since}:{name}") is None:
        return None
    hunks = HUNK.findall(git("diff", "-U0", since, "--", name) or "")
    return {int(first) + i for first, count in hunks for i in range(max(1, int(count or 1)))}


def edited_suites(text, lines):
    """The test suites of a googletest file that hold one of these lines (None: all lines). Where all of the lines stand
    above the first test, all suites of the file."""
    suites, edited, suite = set(), set(), None
    for number, line in enumerate(text.split("\n"), 1):
        if found := TEST.match(line):
            suite = found[1]
            suites.add(suite)
        if lines is None or number in lines:
            edited.add(suite)
    return edited - {None} or (suites if edited else set())


def edited_tests(tree, since):
    """The names of the ctest tests of a build tree that a change adds or edits."""
    listed = subprocess.run(["ctest", "--test-dir", tree, "--show-only=json-v1", "-LE", "^all$"], capture_output=True, text=True)
    known = json.loads(listed.stdout)["tests"] if listed.returncode == 0 else []
    suites, scripts = set(), []
    for name in files(since):
        path = steps.ROOT / name
        if "/tests/" not in name or not path.is_file():
            continue
        if name.endswith(".cpp"):
            suites |= edited_suites(path.read_text(errors="replace"), changed_lines(name, since))
        elif name.endswith("_test.py"):
            scripts.append(str(path))
    # A suite with parameters is PREFIX/SUITE, or SUITE/NUMBER for types.
    return [test["name"] for test in known
            if suites & set(test["name"].split("/")) or set(scripts) & set(test.get("command", []))]


def models(names):
    """The models whose first paragraph names a file that has changed, whatever its ending, or that have changed."""
    stems = {name.rpartition(".")[0] for name in names}
    for model in sorted(steps.ROOT.glob("*/model/*.pml")):
        about = {found.rpartition(".")[0] for found in MODELLED.findall(model.read_text().partition("\n//\n")[0])}
        if stems & (about | {str(model.relative_to(steps.ROOT).with_suffix(""))}):
            yield model.stem


def reminders(names):
    """Lines that name tests which a change concerns, and which `./dev test` leaves out."""
    if found := list(models(names)):
        yield f"this change concerns the models {', '.join(found)}: `./dev test models`"
    if any(name.startswith("sched/arch/") for name in names):
        yield "this change concerns sched/arch: `./dev test aarch64`"


def digest():
    """A digest of everything that Git would commit; None if this is not a repository."""
    listed = subprocess.run(["git", "ls-files", "-cozs", "--exclude-standard"], cwd=steps.ROOT, capture_output=True)
    if listed.returncode != 0:
        return None
    result = hashlib.sha256()
    for entry in sorted(set(listed.stdout.split(b"\0"))):
        name = entry.partition(b"\t")[2] or entry
        path = steps.ROOT / os.fsdecode(name)
        result.update(entry + (path.read_bytes() if path.is_file() else b"") + b"\0")
    return result.hexdigest()
