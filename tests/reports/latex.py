"""A strict reader of the LaTeX that tables are written in: what a compiler would stumble over is an error."""

import re

COMMANDS = {
    "begin",
    "end",
    "centering",
    "caption",
    "toprule",
    "midrule",
    "bottomrule",
    "textbf",
    "emph",
    "par",
    "smallskip",
    "textbackslash",
    "textasciicircum",
    "textasciitilde",
    "textless",
    "textgreater",
    "textbar",
}
"""Commands of text that a table may hold."""

IN_MATH = {"pm", "approx"}


def read_tables(text):
    """Return the rows of each table, a list of cells each, and check everything else; AssertionError with the line."""
    lines = [line for line in text.split("\n") if not line.startswith("%")]
    body = "\n".join(lines)
    _check_commands(body)
    _check_characters(body)
    _check_braces(body)
    _check_environments(body)
    tables = []
    for columns, content in re.findall(r"\\begin\{tabular\}\{(l?r*)\}(.*?)\\end\{tabular\}", body, flags=re.DOTALL):
        rows = [row.strip() for row in content.replace(r"\toprule", "").replace(r"\bottomrule", "").split(r"\\")]
        rows = [row.removeprefix(r"\midrule").strip() for row in rows if row]
        cells = [re.split(r"(?<!\\)&", row) for row in rows]
        assert all(len(row) == len(columns) for row in cells), cells
        assert not any(row.startswith(("[", "*")) for row in rows), "an option of the line end above"
        tables.append([[cell.strip() for cell in row] for row in cells])
    return tables


def _check_commands(body):
    math = "".join(re.findall(r"(?<!\\)\$([^$]*)\$", body))
    for name in re.findall(r"\\([A-Za-z]+)", body):
        assert name in COMMANDS or name in IN_MATH, name
    for name in re.findall(r"\\([A-Za-z]+)", re.sub(r"(?<!\\)\$[^$]*\$", "", body)):
        assert name in COMMANDS, f"{name} outside of math"
    assert set(re.findall(r"\\([A-Za-z]+)", math)) <= IN_MATH


def _check_characters(body):
    outside = re.sub(r"(?<!\\)\$[^$]*\$", "", body)
    assert len(re.findall(r"(?<!\\)\$", body)) % 2 == 0, "a lone $"
    for raw in ("#", "%", "_", "^", "~", "<", ">", "|", "±", "≈"):
        assert not re.search(rf"(?<!\\){re.escape(raw)}", outside), f"a raw {raw}"
    tabular = re.sub(r"\\begin\{tabular\}.*?\\end\{tabular\}", "", outside, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)&", tabular), "a raw & outside of a table"


def _check_braces(body):
    depth = 0
    for sign in re.findall(r"(?<!\\)[{}]", body):
        depth += 1 if sign == "{" else -1
        assert depth >= 0, "a brace too many is closed"
    assert depth == 0, "a brace is not closed"


def _check_environments(body):
    stack = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if kind == "begin":
            stack.append(name)
        else:
            assert stack and stack.pop() == name, name
    assert not stack, stack
