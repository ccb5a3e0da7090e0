#!/usr/bin/env python3
"""What Doxygen reads in place of a public header: doxygen_filter.py FILE

The house comments with //. Doxygen wants to be told which comments belong to the reference: the first one of a file is
the file's, one above a declaration is that declaration's, one behind it too. Lines keep their numbers. Indented lines
of a comment that look like code become a code block.
"""

import pathlib
import re
import sys

ONLY = re.compile(r"^(\s*)//(.*)$")
BEHIND = re.compile(r"^(.*\S)(\s+)//\s?(.*)$")
SECTION = re.compile(r"^\s*--\s")  # "// -- Ps.": a heading of the source, not of the reference


def escape(text):
    # Doxygen takes @, \\, # and <word> for commands, links and tags, and ::name for a link.
    return re.sub(r"(?<!\w)::(?=\w)", r"\\::", re.sub(r"([@\\#<>])", r"\\\1", text))


def block(lines):
    """The text of one comment: paragraphs, with indented lines as code."""
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
        # One line more or less does not matter to anybody but to messages.
        out += [*head, *block([text.removeprefix(" ") for text in texts]), "*/"]
        first = False
    return out


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1])
    text = path.read_text().replace("*/", "*\\/")
    # Specialisations of std's templates are no part of the reference, and Doxygen does not find their scope.
    text = re.sub(r"template <>\nstruct std::.*\{\};", "\n", text)
    lines = text.splitlines()
    if lines[0].startswith("// Public header"):
        lines[:2] = ["", ""]  # it is for readers of the source
    print("\n".join(convert(lines, path.name)))
