#!/usr/bin/env python3
"""Checks the pages against the sources and against each other: docs_test.py <top folder>

- C++ on a page is compiled. The line above a block is <!-- FILE -->, and the block equals that file; or it is
  <!-- FILE#NAME -->, and the block equals the text in the file between two lines "//! [NAME]", without its indentation.
  Blocks in other languages may do the same.
- README.md begins with a program of at most 20 lines.
- Files that a page names in backquotes exist, and so do the targets of its links, headings included.
- README.md and HACKING.md do not exceed their maximum lengths, and README.md has the figures of the newest results.

Exit status 0 or 1.
"""

import importlib.util
import pathlib
import re
import sys
import textwrap

PROGRAM_LINES_MAX = 20
LINES_MAX = {"README.md": 150, "HACKING.md": 200}
BLOCK = re.compile(r"(?:^<!-- (\S+) -->\n)?^```(\w+|c\+\+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`\n]*`")
INDENTED_CODE = re.compile(r"(?:^|\n\n)((?: {4}.*(?:\n|$))+)")
NAMED = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:h|cpp|S|py|pml|md|txt|cmake|sh|in|json))`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def code_of(name: str, top: pathlib.Path):
    """The text that a block of code must equal, or None."""
    path, _, part = name.partition("#")
    if not (top / path).is_file():
        return None
    text = (top / path).read_text()
    if not part:
        return text
    parts = text.split(f"//! [{part}]\n")
    if len(parts) != 3:
        return None
    return textwrap.dedent(parts[1].rsplit("\n", 1)[0] + "\n")


def code_complaints(page: str, text: str, top: pathlib.Path):
    for name, language, code in BLOCK.findall(text):
        if not name and language not in ("cpp", "c++"):
            continue
        if not name:
            yield f"{page}: C++ that is not compiled: {code.splitlines()[0]}"
        elif code_of(name, top) != code:
            yield f"{page}: the code is not that of {name}"
    for block in INDENTED_CODE.findall(FENCE.sub("", text)):
        if re.search(r";\s*(//.*)?$|^ *#include", block, re.MULTILINE):
            yield f"{page}: C++ that is not compiled: {block.splitlines()[0].strip()}"


def anchors_of(text: str) -> set[str]:
    """The anchors that GitHub makes of headings, and explicit ones."""
    found = set(re.findall(r'<a id="([^"]+)"', text))
    for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
    return found


def link_complaints(page: str, text: str, top: pathlib.Path):
    for target in LINK.findall(INLINE_CODE.sub("", FENCE.sub("", text))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (top / page).parent / path if path else top / page
        if not there.exists():
            yield f"{page}: links to {target}, which is not there"
        elif anchor and anchor not in anchors_of(there.read_text()):
            yield f"{page}: links to {target}, and there is no such heading"


def name_complaints(page: str, text: str, top: pathlib.Path):
    # A page may use the short names of files whose code it shows, and a tutorial the name of the reader's own program.
    shown = {pathlib.PurePath(name.partition("#")[0]).name for name, _, _ in BLOCK.findall(text)} | {"main.cpp"}
    for name in sorted(set(NAMED.findall(text)) - shown):
        if not (top / name).is_file() and not ((top / page).parent / name).is_file():
            yield f"{page}: names {name}, which is not there"


def readme_complaints(text: str):
    programs = [code for _, language, code in BLOCK.findall(text) if language == "cpp"]
    if not programs or programs[0].count("\n") > PROGRAM_LINES_MAX:
        yield f"README.md: begins with a program of at most {PROGRAM_LINES_MAX} lines"


def figure_complaints(top: pathlib.Path):
    spec = importlib.util.spec_from_file_location("figures", top / ".ci/figures.py")
    figures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figures)
    if said := figures.complaint(top):
        yield said


def main(top: pathlib.Path) -> int:
    pages = [*sorted(p.name for p in top.glob("*.md")), *(p.relative_to(top).as_posix() for folder in ("docs", "loadtests")
                                           for p in sorted((top / folder).rglob("*.md")))]
    complaints = [*readme_complaints((top / "README.md").read_text()), *figure_complaints(top)]
    seen = 0
    for page in pages:
        text = (top / page).read_text()
        seen += sum(1 for name, _, _ in BLOCK.findall(text) if name)
        for check in (code_complaints, link_complaints, name_complaints):
            complaints += check(page, text, top)
        lines = text.count("\n")
        if lines > LINES_MAX.get(page, lines):
            complaints.append(f"{page}: has {lines} lines, of at most {LINES_MAX[page]}")
    if seen < 30:
        complaints.append(f"only {seen} blocks of code were found; is this test looking for the right thing?")
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
