"""Printed text as HTML: the tables of report.table() become tables that scroll by themselves, the rest stays as it is."""

import html
import re

RULE = re.compile(r"-+(  -+)+")


def cells(line, columns):
    return [line[begin:end].strip() for begin, end in columns]


def table(lines, columns):
    rows = [cells(line, columns) for line in lines]
    numeric = [all(not row[i] or row[i] == "-" or re.match(r"[-+]?\d", row[i]) for row in rows[1:])
               for i in range(len(columns))]
    pieces = []
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        pieces.append("<tr>" + "".join(f"<{tag}{' class=n' if numeric[i] else ''}>{html.escape(cell)}"
                                       for i, cell in enumerate(row)))
    return f"<div class=scroll><table class=printed>{''.join(pieces)}</table></div>"


def to_html(lines):
    pieces, plain, at = [], [], 0

    def flush():
        text = "\n".join(plain).strip("\n")
        if text:
            pieces.append(f"<pre>{html.escape(text)}</pre>")
        plain.clear()

    while at < len(lines):
        rule = lines[at + 1] if at + 1 < len(lines) else ""
        if lines[at] and RULE.fullmatch(rule):
            flush()
            starts = [match.start() for match in re.finditer("-+", rule)]
            columns = list(zip(starts, [*starts[1:], None]))
            end = at + 2
            while end < len(lines) and lines[end].strip():
                end += 1
            pieces.append(table([lines[at], *lines[at + 2:end]], columns))
            at = end
        else:
            plain.append(lines[at])
            at += 1
    flush()
    return pieces
