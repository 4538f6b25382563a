import pytest
from cyclopts import App

from samesense.cli.commands.origin import origin
from samesense.recipes.origin import recipe
from samesense.recipes.origin.settings import OriginSettings


@pytest.fixture
def command():
    app = App(suppress_keyboard_interrupt=False)
    app.command(origin)
    return lambda *words: app(["origin", *words], exit_on_error=False, print_error=False, result_action="return_value")


def test_settings_reach_the_recipe(command, monkeypatch, tmp_path):
    calls = []

    def run(sources, settings, output, *, overwrite):
        calls.append((sources, settings, output, overwrite))
        return True

    monkeypatch.setattr(recipe, "run", run)
    folder = tmp_path / "o"
    monkeypatch.setattr(OriginSettings, "check_language_model", lambda settings: None)
    command("a.txt", "b.txt", "--output", str(folder), "--kept-words", "7", "--weight-own", "0.5", "--overwrite")
    sources, settings, output, overwrite = calls[0]
    assert (sources, output, overwrite) == (["a.txt", "b.txt"], folder, True)
    assert (settings.contexts, settings.kept_words, settings.weight_own) == ("words", 7, 0.5)
    monkeypatch.setattr(recipe, "run", lambda *arguments, **options: False)
    folder.mkdir()
    (folder / "manifest.json").write_text('{"method": "origin"}')
    with pytest.raises(KeyboardInterrupt, match="Finished work is kept: the same command resumes"):
        command("a.txt", "--output", str(folder))
