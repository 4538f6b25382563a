"""The page of the command line, from the help of the commands: a section for each, with tables of its flags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import Any, NamedTuple

from cyclopts import App
from cyclopts.help import HelpEntry, HelpPanel
from rich.console import Console

from samesense.cli.command import TABLES
from samesense.cli.commands.train import app_of_method
from samesense.cli.main import COMMANDS, GROUPS, make_app
from samesense.recipes.methods import METHODS

INTRODUCTION = """\
# The command line

Each command has a section: what it does, an example, and a table of its flags. `samesense COMMAND --help` shows the
same in a terminal. `sh scripts/docs` writes this page from the definitions of the commands; do not edit it.

Data goes to standard output, messages go to standard error.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | runs of a sweep failed, or `drift` is above its `--limit` |
| 2 | misuse or bad input, or shards were given up |
| 130 | interrupted by Ctrl-C |

Any other failure is a defect and shows a traceback.

`samesense --install-completion` completes commands and flags in this shell (bash, zsh, fish).
"""

READING = """\
## Flags of files

Every command that reads .tsv, .csv or text files has these flags:
"""

EVERY_METHOD = """\
### Settings of every method

`samesense train --help --method METHOD` shows all settings of a method. Each method has these; where it has another
default or meaning, its own table below says so. [Training](training.md#settings-of-every-run) explains them.
"""

VALUES = {
    "INT": "integer",
    "FLOAT": "number",
    "FLOAT FLOAT": "two numbers",
    "STR": "text",
    "PATH": "path",
    "NAME": "name",
}
"""Kinds of values, as the tables call them."""

DEFAULTS = {"True": "on", "False": "off", "{}": "none"}
"""Defaults, as the tables call them."""

COMMAND = re.compile(r"samesense( |$)")
BRACKETS = re.compile(r"([^\[]*?)((?: \[[^\]]*\])+)\.?")
"""A meaning, and after it a default in brackets, or several."""

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


class Row(NamedTuple):
    """A flag or an argument: its spellings, what it takes, its default and its meaning."""

    names: str
    value: str
    default: str
    meaning: str


class Help:
    """A help formatter of cyclopts that keeps what it is to print."""

    def __init__(self) -> None:
        self.usage = ""
        self.paragraphs: list[str] = []
        self.panels: list[HelpPanel] = []

    def __call__(self, console: Any, options: Any, panel: HelpPanel) -> None:
        """Keep a group of flags or commands."""
        self.panels.append(panel)

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:
        """Keep the line of usage."""
        self.usage = plain(usage).removeprefix("Usage: ")

    def render_description(self, console: Any, options: Any, description: Any) -> None:
        """Keep the paragraphs of the description, one a line."""
        self.paragraphs = [" ".join(text.split()) for text in plain(description).split("\n\n")]


def page() -> str:
    """Return the whole page."""
    program = make_app(overview=True)
    blocks = [INTRODUCTION, overview(program)]
    for name in COMMANDS:
        blocks.append(command_section(program, name, level=2))
        if name == "train":
            blocks += method_sections()
        blocks += [command_section(program, f"{name} {inner}", level=3) for inner in subcommands(program, name)]
    blocks += [READING, table(reading_rows(program))]
    return "\n".join(blocks)


def overview(program: App) -> str:
    """Return the commands by their groups, each with its summary and a link to its section."""
    panels = [panel for panel in help_of(program).panels if plain(panel.title) in GROUPS]
    return "\n".join(f"**{plain(panel.title)}**\n\n{command_table(panel, 'samesense')}" for panel in panels)


def command_section(program: App, name: str, level: int) -> str:
    """Return the section of a command: what it does, its usage, examples, and its flags by groups."""
    shown = help_of(program, name.split())
    summary, *others = shown.paragraphs
    examples = [text for text in others if COMMAND.match(text)]
    remarks = [text for text in others if not COMMAND.match(text)]
    blocks = [f"{'#' * level} samesense {name}\n", f"{escaped(summary)}\n", fenced("text", [shown.usage])]
    if examples:
        blocks.append(fenced("bash", examples))
    blocks += [f"{escaped(text)}\n" for text in remarks]
    for panel in shown.panels:
        if plain(panel.title) == TABLES.name:
            blocks.append("The [flags of files](#flags-of-files) say how .tsv, .csv and text files are read.\n")
        elif panel.format == "command":
            if subcommands(program, *name.split()):  # otherwise it holds only --help
                blocks.append(command_table(panel, f"samesense {name}"))
        elif rows := rows_of(panel):  # empty where the help lists none of a group
            blocks.append(f"**{plain(panel.title).replace(' and ', ', ')}**\n\n{table(rows)}")
    return "\n".join(blocks)


def command_table(panel: HelpPanel, parent: str) -> str:
    """Return the commands of a group as a table, with links to their sections."""
    lines = ["| command | what it does |", "|---|---|"]
    for entry in panel.entries:
        name = entry.names[0]
        if not name.startswith("-"):
            target = f"{parent} {name}".replace(" ", "-")
            lines.append(f"| [`{name}`](#{target}) | {escaped(plain(entry.description))} |")
    return "\n".join([*lines, ""])


def method_sections() -> Iterator[str]:
    """Yield the settings that every method has, and for each method those that are its own or that it changes."""
    rows = {name: [row for panel in help_of(app_of_method(name)).panels for row in rows_of(panel)] for name in METHODS}
    spellings = Counter(row.names for method in rows.values() for row in method)
    variants = Counter(row for method in rows.values() for row in method if spellings[row.names] == len(METHODS))
    usual: dict[str, Row] = {}
    for row, _ in variants.most_common():
        usual.setdefault(row.names, row)
    order = [row.names for row in rows[next(iter(METHODS))] if row.names in usual]
    yield f"{EVERY_METHOD}\n{table(usual[names] for names in order)}"
    for name, settings in rows.items():
        own = [row for row in settings if usual.get(row.names) != row]
        usage = fenced("text", [f"samesense train --method {name} --output PATH [OPTIONS] DATA"])
        yield f"### samesense train --method {name}\n\n{usage}\n{table(own)}"


def reading_rows(program: App) -> list[Row]:
    """Return the flags that say how files of text are read."""
    panels = help_of(program, ["doctor"]).panels
    return rows_of(next(panel for panel in panels if plain(panel.title) == TABLES.name))


def subcommands(program: App, *words: str) -> list[str]:
    """Return the subcommands of a command; most have none."""
    command = program
    for word in words:
        command = command[word]
    if command.default_command is not None:
        return []
    return sorted(inner for inner in command if not inner.startswith("-"))


def help_of(program: App, words: Iterable[str] = ()) -> Help:
    """Return what ``--help`` of a command shows."""
    shown = Help()
    program.help_formatter = shown
    program.help_print([*words], console=Console(file=StringIO()))
    return shown


def rows_of(panel: HelpPanel) -> list[Row]:
    """Return the rows of a group of flags."""
    return [row_of(entry) for entry in panel.entries if entry.names != ("--help",)]


def row_of(entry: HelpEntry) -> Row:
    """Return the row of a flag; a default that the help has in brackets at its end is in the column of defaults."""
    meaning = plain(entry.description)
    default = entry.default or ""
    if entry.required:
        default = "required"
    elif bracketed := BRACKETS.fullmatch(meaning):
        meaning = bracketed[1]
        defaults = re.findall(r"\[([^\]]*)\]", bracketed[2])
        # The last of several is the more exact one, but "none" there says only that nothing was set.
        default = defaults[0] if defaults[-1] == "none" else defaults[-1]
    names = entry.all_options or (entry.positional_label or "",)
    return Row(
        ", ".join(f"`{name}`" for name in names),
        value_of(entry),
        DEFAULTS.get(default, escaped(default)),
        escaped(meaning),
    )


def value_of(entry: HelpEntry) -> str:
    """Return what a flag takes: one of its choices, or a kind of value."""
    metavar = entry.metavar or ""
    kinds, several, _ = metavar.partition("...")
    words = [VALUES.get(kind, kind) for kind in kinds.split("|") if kind not in ("CHOICE", "")]
    words += [f"`{choice}`" for choice in entry.choices or ()]
    return ", ".join(words) + (", several" if several else "")


def table(rows: Iterable[Row]) -> str:
    """Return rows as a table, without the columns that are empty in all of them."""
    rows = [*rows]
    columns = [index for index in range(len(Row._fields)) if any(row[index] for row in rows)]
    first = "flag" if rows[0].names.startswith("`-") else "argument"
    heads = [(first, *Row._fields[1:])[index] for index in columns]
    lines = [f"| {' | '.join(row[index] for index in columns)} |" for row in rows]
    return "\n".join([f"| {' | '.join(heads)} |", f"|{'---|' * len(columns)}", *lines, ""])


def fenced(language: str, lines: Iterable[str]) -> str:
    """Return lines as a block of code."""
    return "\n".join([f"```{language}", *lines, "```\n"])


def escaped(text: str) -> str:
    """Return text of the help as Markdown in a table: flags as code, and no character that Markdown would read."""
    marked = re.sub(r"([\[\]|*<])", r"\\\1", text)
    return FLAG.sub(lambda flag: f"`{flag[0]}`", marked)


def plain(text: Any) -> str:
    """Return what cyclopts would print, without styles and on one line a paragraph."""
    console = Console(file=StringIO(), width=100_000)
    console.print(text or "", highlight=False, markup=False)
    return console.file.getvalue().strip()  # type: ignore[attr-defined]
