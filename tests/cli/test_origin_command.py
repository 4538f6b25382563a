import json

import pytest
from cyclopts import App

from samesense.cli.origin import origin
from samesense.context.origin import load as module
from samesense.context.origin.explain import Contribution, Explanation
from samesense.errors import ConfigError
from samesense.recipes.origin import recipe


@pytest.fixture
def command():
    app = App(suppress_keyboard_interrupt=False)
    app.command(origin)
    return lambda *words: app(["origin", *words], exit_on_error=False, print_error=False, result_action="return_value")


def test_settings_reach_the_recipe(command, monkeypatch, tmp_path):
    given = []

    def run(sources, settings, output, *, overwrite):
        given.append((sources, settings, output, overwrite))
        return True

    monkeypatch.setattr(recipe, "run", run)
    folder = tmp_path / "o"
    command("a.txt", "b.txt", "--output", str(folder), "--windows", "7", "--weight-left", "0.5", "--overwrite")
    sources, settings, output, overwrite = given[0]
    assert (sources, output, overwrite) == (["a.txt", "b.txt"], folder, True)
    assert (settings.contexts, settings.windows, settings.weight_left) == ("bank", 7, 0.5)
    monkeypatch.setattr(recipe, "run", lambda *rest, **others: False)
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(KeyboardInterrupt, match="What is finished is kept: the same command goes on"):
        command("a.txt", "--output", str(folder))


def test_an_explanation_is_printed(command, monkeypatch, tmp_path, capsys):
    entry = Contribution(
        window=3, left=("Before.",), centre="x", right=("After.",), whose="both", first=1.0, second=2.0, share=0.25
    )
    told = Explanation(sentences=("-a", "b"), score=0.5, contexts=4, alike=[entry], apart=[])

    class Opened:
        def explain(self, first, second, *, top):
            assert (first, second, top) == ("-a", "b", 2)
            return told

    monkeypatch.setattr(module, "open_origin", lambda folder: Opened())
    command("--output", str(tmp_path), "--explain", "-a", "b", "--top", "2")
    assert "Before. [...] After." in capsys.readouterr().out
    command("--output", str(tmp_path), "--explain", "-a", "b", "--top", "2", "--json")
    assert json.loads(capsys.readouterr().out)["alike"][0]["left"] == ["Before."]


def test_refusals(command, tmp_path):
    with pytest.raises(ConfigError, match="none are given; or it explains"):
        command("--output", str(tmp_path))
    with pytest.raises(ConfigError, match="Settings are for the making"):
        command("--output", str(tmp_path), "--explain", "a", "b", "--windows", "5")
    with pytest.raises(ConfigError, match="nothing is to be explained"):
        command("a.txt", "--output", str(tmp_path), "--sampled")
