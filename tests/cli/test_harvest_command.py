from pathlib import Path

import pytest
from cyclopts import App

from samesense.cli.commands.harvest import harvest
from samesense.errors import ConfigError
from samesense.recipes.harvest import recipe
from samesense.recipes.harvest.recipe import ShardWork
from tests.recipes.harvest_world import MadeUp, make, world


@pytest.fixture
def command():
    app = App(suppress_keyboard_interrupt=False)
    app.command(harvest)
    return lambda *words: app(["harvest", *words], exit_on_error=False, print_error=False, result_action="return_value")


def test_settings_reach_the_recipe(command, monkeypatch, tmp_path, capsys):
    calls = []

    def called(origin, output, settings):
        calls.append((origin, output, settings))
        return make(world(tmp_path / "w"), output)[0]

    monkeypatch.setattr(recipe, "harvest", called)
    (tmp_path / "mine.toml").write_text("pairs = 9\nsection = 0.5\n")
    words = ["--origin", "o", "--output", str(tmp_path / "h"), "--config", str(tmp_path / "mine.toml")]
    command(*words, "--pairs", "50", "--spacings", "3", "--spacings", "12", "--workers", "2")
    origin, output, settings = calls[0]
    assert (origin, output) == (Path("o"), tmp_path / "h")
    assert (settings.pairs, settings.section, settings.random) == (50, 0.5, 0.4)
    assert (settings.spacings, settings.workers, settings.executor) == ((3, 12), 2, "embedded")
    assert capsys.readouterr().out == f"{tmp_path / 'h'}\n"
    with pytest.raises(ConfigError, match="workers"):
        command(*words, "--workers", "0")


def test_ctrl_c_says_how_to_go_on(command, monkeypatch, tmp_path):
    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    def called(origin, output, settings):
        work = ShardWork(world(tmp_path / "w"), settings, MadeUp)
        return recipe.run(work, output, settings.choose_executor())

    monkeypatch.setattr(recipe, "harvest", called)
    monkeypatch.setattr(MadeUp, "score", pressed)
    with pytest.raises(KeyboardInterrupt, match="Finished shards are kept: the same command resumes"):
        command("--origin", "o", "--output", str(tmp_path / "h"))
