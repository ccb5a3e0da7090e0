#!/usr/bin/env python3
"""Checks README.md and HACKING.md against the sources: readme_test.py <top folder>

- A block of code behind a comment <!-- FILE --> is that file, which a target compiles, character by character;
  the first one has at most 20 lines.
- README.md shows no C++ that nobody compiles: what is indented is in examples/readme_parts.cpp, paragraph by
  paragraph, but for white space.
- The files that the documents name are there.

Exit status 0 or 1.
"""

import pathlib
import re
import sys

LINES_MAX = 20
BLOCK = re.compile(r"(?:^<!-- (\S+) -->\n)?^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:h|cpp|S|py|pml|md|txt|cmake|sh|in|json))`")


def code_complaints(readme: str, top: pathlib.Path):
    blocks = BLOCK.findall(readme)
    if not blocks:
        yield "README.md: no program"
        return
    if blocks[0][1].count("\n") > LINES_MAX:
        yield f"README.md: its first program has more than {LINES_MAX} lines"
    for name, code in blocks:
        if not name:
            yield f"README.md: C++ that nobody compiles: {code.splitlines()[0]}"
        elif not (top / name).is_file() or (top / name).read_text() != code:
            yield f"README.md: the program is not {name} any more"


def indented_blocks(document: str):
    """The indented blocks, without their indentation."""
    outside_fences = re.sub(r"^```.*?^```$", "", document, flags=re.MULTILINE | re.DOTALL)
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", outside_fences, re.MULTILINE):
        yield re.sub(r"^    ", "", block, flags=re.MULTILINE).strip("\n")


def part_complaints(readme: str, parts: str):
    def squeezed(text):
        return re.sub(r"\s+", "", text)

    known, seen = squeezed(parts), 0
    for block in indented_blocks(readme):
        if not re.search(r";\s*(//.*)?$|^#include", block, re.MULTILINE):
            continue  # of a shell, or of CMake
        for paragraph in block.split("\n\n"):
            seen += 1
            if squeezed(paragraph) not in known:
                yield f"README.md: not in examples/readme_parts.cpp: {paragraph.splitlines()[0]}"
    if seen < 10:
        yield f"README.md: only {seen} parts of programs were found; is this test looking for the right thing?"


def name_complaints(document: pathlib.Path, top: pathlib.Path):
    for name in sorted(set(NAMED.findall(document.read_text()))):
        if not (top / name).is_file():
            yield f"{document.name}: names {name}, which is not there"


def main(top: pathlib.Path) -> int:
    readme = (top / "README.md").read_text()
    complaints = list(code_complaints(readme, top))
    complaints += part_complaints(readme, (top / "examples/readme_parts.cpp").read_text())
    for name in ("README.md", "HACKING.md"):
        complaints += name_complaints(top / name, top)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
