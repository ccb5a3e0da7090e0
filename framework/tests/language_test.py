#!/usr/bin/env python3
"""A compiler or a -std= without std::expected is told so by the first error, whichever public header comes first.

    language_test.py COMPILER INCLUDE_FOLDER SOURCE_FOLDER
"""
import pathlib
import subprocess
import sys

SAID = "Tuza needs C++23 with std::expected"
HEADERS_MIN = 70


def public_headers(source):
    folders = (source / "framework/cmake/public_folders.txt").read_text().split()
    return [f"{folder}/{path.name}" for folder in folders for path in sorted((source / folder).glob("*.h"))
            ] + sorted(path.name for path in (source / "include/tuza").glob("*.h"))


def first_error(compiler, include, source, header):
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Wfatal-errors", "-I", include,
                           "-I", source / "include", "-x", "c++", "-"],
                          input=f"#include <tuza/{header}>\n", capture_output=True, text=True)
    return next((line for line in done.stderr.splitlines() if "error:" in line), "no error")


def main():
    compiler, include, source = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    headers = public_headers(source)
    wrong = 0 if len(headers) >= HEADERS_MIN else 1
    for header in headers:
        error = first_error(compiler, include, source, header)
        if SAID not in error:
            print(f"{header}: the first error is: {error}")
            wrong += 1
    print(f"{len(headers)} headers, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
