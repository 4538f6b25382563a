"""A command made from a function: its flags, their types and texts, and what the function is called with."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from cyclopts import App

from samesense.api.data import read
from samesense.api.library_function import library_function, parameters_of
from samesense.cli.command import command_of, reads_tables
from samesense.cli.docstrings import for_terminal, texts_of
from samesense.cli.main import COMMANDS, app, summary_of
from samesense.cli.output import FileOrOutput, Json, Several
from samesense.data.rows.table_options import current_options
from samesense.data.rows.table_options import reads_tables as function_reads_tables
from samesense.errors import ConfigError


@function_reads_tables
def sift(
    data: Any,
    *,
    output: str | Path | None = None,
    model: Any = "default",
    share: float | Literal["all"] = 0.5,
    texts: Any | Sequence[Any] | None = None,
    fast: bool = False,
    speed: bool = True,
    languages: str | Sequence[str] | None = None,
    columns: str | None = None,
    quoting: Literal["csv", "none"] | None = None,
    delimiter: str | None = None,
    header: Literal["yes", "no"] | None = None,
    encoding: str | None = None,
) -> None:
    """Sift ``data``.

    It takes a while.

    Args:
        data: texts; see :func:`samesense.read` for texts in memory.
        output: file made by :func:`samesense.mine_negatives`, ``"a.txt"``.
        model: model of ``output``; ``None`` for none.
        share: share of the texts of ``data``, or ``"all"`` of them,
            as in ``"hold 0.1"``.
        fast, speed: how long.
        texts: other texts.
        languages: as in ``"en,de"``.
        columns: see :func:`samesense.read`.

    Returns:
        Nothing.
    """


calls = []


@command_of(sift, without=("languages",))
def sifter(data: Several, /, *, limit: int = 3, json: Json = False, **options: Any) -> None:
    """samesense sift a.txt

    Args:
        limit: most of them.
        json: print JSON.
    """
    calls.append((data, limit, json, options, current_options("delimiter").delimiter))


@pytest.fixture
def run():
    program = App(suppress_keyboard_interrupt=False)
    program.command(sifter, name="sift")
    calls.clear()

    def call(*words):
        program(["sift", *words], exit_on_error=False, print_error=False, result_action="return_value")
        return calls.pop()

    return call


def test_a_command_is_called_with_the_defaults_of_the_function(run):
    data, limit, json, options, delimiter = run("a", "b")
    assert (data, limit, json, delimiter) == (["a", "b"], 3, False, None)
    shared = {"output": None, "model": "default", "share": 0.5, "texts": None, "fast": False, "speed": True}
    assert options == {**shared, "columns": None}
    words = ("-o", "x", "--share", "all", "--texts", "c", "d", "--fast", "--no-speed", "--delimiter", "-")
    _, _, _, options, delimiter = run("a", *words)
    assert options == {
        **shared,
        "output": Path("x"),
        "share": "all",
        "texts": ["c", "d"],
        "fast": True,
        "speed": False,
        "columns": None,
    }
    assert delimiter == "-"


def test_help_is_that_of_the_function_in_the_words_of_a_terminal():
    parameters = parameters_of(sifter)
    texts = {
        name: [note.help for note in value.annotation.__metadata__ if note.help] for name, value in parameters.items()
    }
    assert texts["data"] == ["texts."]
    assert texts["output"] == ["file made by samesense mine-negatives, a.txt."]
    assert texts["model"] == ["model of --output; none for none."]
    assert texts["share"] == ['share of the texts of DATA, or all of them, as in "hold 0.1".']
    assert texts["fast"] == texts["speed"] == ["how long."]
    assert texts["limit"] == ["most of them."]
    for name in ("columns", "quoting", "encoding"):
        assert texts[name] == [for_terminal(texts_of(read)[name], {})]
    assert sifter.__doc__ == "Sift DATA.\n\nsamesense sift a.txt\n\nIt takes a while."


def test_flags_are_listed_in_the_order_of_the_function_between_those_of_the_terminal():
    shared = ["output", "model", "share", "texts", "fast", "speed", "columns"]
    assert [*parameters_of(sifter)] == ["data", "limit", *shared, "json", "quoting", "delimiter", "header", "encoding"]

    @command_of(sift, without=("languages", "columns"))
    def other(data: str, /, *, output: FileOrOutput, json: Json = False, **options: Any) -> None:
        """samesense other a.txt"""

    assert [*parameters_of(other)][:3] == ["data", "output", "model"]


def test_a_command_of_no_function_reads_tables_too():
    @reads_tables
    def peek(data: str, /, *, show: int = 3) -> None:
        """Show ``data``.

        Args:
            show: rows.
        """
        calls.append((data, show, current_options("encoding").encoding))

    peek("a", encoding="cp1252")
    assert calls.pop() == ("a", 3, "cp1252")
    assert current_options().encoding is None
    assert [*parameters_of(peek)] == ["data", "show", "quoting", "delimiter", "header", "encoding"]


def test_the_overview_has_the_first_paragraph_of_every_help():
    for name in COMMANDS:
        text = " ".join(app[name].help.split("\n\n")[0].split())
        assert summary_of(name) == text, name


def test_no_command_loads_torch_before_it_runs():
    modules = [f"samesense.cli.commands.{name.replace('-', '_')}" for name in COMMANDS]
    script = f"import sys; sys.modules['torch'] = None; import {', '.join(modules)}"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_words_are_checked_in_functions_and_in_methods_wherever_they_stand():
    class Shelf:
        @library_function
        def sort(self, by: Literal["title", "author"], *, order: Literal["up", "down"] | None = None) -> str:
            return f"{by} {order}"

    assert Shelf().sort("author", order="up") == "author up"
    with pytest.raises(ConfigError, match="by"):
        Shelf().sort("size")
    with pytest.raises(ConfigError, match="order"):
        Shelf().sort("title", order="aside")
