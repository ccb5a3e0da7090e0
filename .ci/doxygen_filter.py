#!/usr/bin/env python3
"""Prints a public header in the form that Doxygen reads instead: doxygen_filter.py FILE

The sources use // comments only. Doxygen must be told which comments belong to the reference: the first comment of a
file describes the file; a comment above or behind a declaration describes that declaration. Lines keep their numbers.
Indented lines of a comment that look like code become a code block.
"""

import pathlib
import re
import sys

ONLY = re.compile(r"^(\s*)//(.*)$")
BEHIND = re.compile(r"^(.*\S)(\s+)//\s?(.*)$")
SECTION = re.compile(r"^\s*--\s")  # "// -- Ps.": a heading of the source, not of the reference


def escape(text):
    # Doxygen reads @, \\, # and <word> as commands, links and tags, and ::name as a link.
    return re.sub(r"(?<!\w)::(?=\w)", r"\\::", re.sub(r"([@\\#<>])", r"\\\1", text))


def block(lines):
    """The text of one comment as paragraphs, with indented lines as code."""
    out, code = [], False
    for line in lines:
        indented = line.startswith("   ") and line.strip() != ""
        if indented and not code:
            out.append("@verbatim")
            code = True
        elif code and not indented and line.strip() != "":
            out.append("@endverbatim")
            code = False
        out.append(line if code else escape(line))
    if code:
        out.append("@endverbatim")
    return out


def convert(lines, name):
    out, at, first = [], 0, True
    while at < len(lines):
        if not ONLY.match(lines[at]):
            behind = BEHIND.match(lines[at])
            if behind and '"' not in behind[3] and behind[1].rstrip().endswith((";", ",")):
                out.append(f"{behind[1]}{behind[2]}///< {escape(behind[3])}")
            else:
                out.append(lines[at])
            at += 1
            continue
        begin = at
        while at < len(lines) and ONLY.match(lines[at]):
            at += 1
        texts = [ONLY.match(line)[2] for line in lines[begin:at]]
        indent = ONLY.match(lines[begin])[1]
        if SECTION.match(texts[0]) or (not first and at < len(lines) and lines[at].strip() == ""):
            out += lines[begin:at]
            continue
        head = [f"{indent}/** @file {name}", ""] if first else [f"{indent}/**"]
        # An additional line affects only the line numbers in messages.
        out += [*head, *block([text.removeprefix(" ") for text in texts]), "*/"]
        first = False
    return out


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1])
    text = path.read_text().replace("*/", "*\\/")
    # Specialisations of std's templates are not part of the reference, and Doxygen cannot find their scope.
    text = re.sub(r"template <>\nstruct std::.*\{\};", "\n", text)
    lines = text.splitlines()
    if lines[0].startswith("// Public header"):
        lines[:2] = ["", ""]  # these lines are for readers of the source
    print("\n".join(convert(lines, path.name)))
