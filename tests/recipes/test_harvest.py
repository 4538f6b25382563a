import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from filelock import FileLock

from samesense.errors import ConfigError, DataError, ModelError, OutputError, SamesenseError
from samesense.recipes.harvest import recipe
from samesense.recipes.harvest.recipe import harvest
from samesense.recipes.harvest.settings import HarvestSettings
from samesense.recipes.harvest.shard import ShardWork, opened
from samesense.training import manifest
from tests.messages import listen
from tests.recipes.harvest_world import SETTINGS, MadeUp, make, shards, world

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture
def place(tmp_path):
    return world(tmp_path / "world")


def program(name, *words, **options):
    return [sys.executable, "-m", f"tests.recipes.{name}", *map(str, words)]


def test_a_harvest_is_scored_pairs_with_their_places(place, tmp_path):
    summary, lines = make(place, tmp_path / "h")
    tables = [pq.read_table(path).to_pylist() for path in sorted((tmp_path / "h" / "shards").iterdir())]
    rows = [row for table in tables for row in table]
    corpus = MadeUp(place, "cpu").corpus
    assert len(tables) == summary.shards == 12
    assert summary.pairs == len(rows) == 240 - sum(summary.undefined.values())
    assert summary.undefined["all fits of a sentence are alike"] > 0
    assert dict(Counter(row["kind"] for row in rows)) == summary.scored
    assert summary.wanted == summary.planned == {"random": 96, "neighbours": 96, "section": 48}
    starts = [0, *corpus._documents.tolist()]
    for row in rows:
        for which in "12":
            at = starts[row[f"document{which}"]] + row[f"position{which}"]
            assert corpus.sentence(at) == row[f"sentence{which}"]
        if row["kind"] == "section":
            assert row["document1"] == row["document2"]
        digest = hashlib.sha256(repr((row["sentence1"], row["sentence2"])).encode()).digest()
        assert row["score"] == int.from_bytes(digest[:4], "big") / 2**31 - 1
    assert len({frozenset((row["sentence1"], row["sentence2"])) for row in rows}) == len(rows)
    told = "\n".join(lines)
    assert "240 pairs in 12 shards: random 96, neighbours 96, section 48" in lines[0]
    assert "kept out, since all fits of a sentence are alike" in told
    assert "100M pairs would take" in told


def test_pairs_that_are_missing_are_said(place, tmp_path):
    summary, lines = make(place, tmp_path / "h", pairs=2000, shard_size=1000, unit=2, neighbours=0.0, section=1.0)
    missing = summary.wanted["section"] - summary.planned["section"]
    assert missing > 0 and summary.wanted["random"] == summary.planned["random"]
    (said,) = [line for line in lines if line.startswith("missing where the units of a shard were used up")]
    assert f"section {missing}" in said


def test_manifest_says_what_it_was_made_of(place, tmp_path):
    summary, _ = make(place, tmp_path / "h")
    content = json.loads((tmp_path / "h" / "manifest.json").read_text())
    assert (content["method"], content["status"]) == ("harvest", "finished")
    assert content["settings"]["pairs"] == 240 and "workers" not in content["settings"]
    assert content["data"]["origin"]["generator"] == "made up"
    assert content["scored"] == summary.scored and content["undefined"] == summary.undefined
    assert sum(entry["pairs"] for entry in content["shards"]) == summary.pairs
    for entry in content["shards"]:
        found = (tmp_path / "h" / "shards" / entry["file"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(found).hexdigest()
    assert content["cost"]["pairs"] == summary.pairs and content["cost"]["cells"] == 2400


def test_it_is_the_same_with_any_workers_and_goes_on(place, tmp_path):
    make(place, tmp_path / "one")
    whole = shards(tmp_path / "one")
    for number in (0, 5, 11):
        (tmp_path / "one" / "shards" / f"{number:05}.parquet").unlink()
    (tmp_path / "one" / "shards" / ".00005.parquet.17-0123abcd.part").write_bytes(b"cut off")
    (place / "dies-now").touch()
    _, lines = make(place, tmp_path / "one", workers=2)
    assert not (place / "dies-now").exists()
    assert "9 of 12 shards are there already" in lines
    assert shards(tmp_path / "one") == whole


def test_nothing_is_made_twice(place, tmp_path, monkeypatch):
    make(place, tmp_path / "h")
    monkeypatch.setattr(MadeUp, "score", lambda self, pairs: 1 / 0)
    summary, lines = make(place, tmp_path / "h")
    assert summary.pairs > 0 and "12 of 12 shards are there already" in lines


def test_shards_that_fail_are_said_and_the_others_kept(place, tmp_path, monkeypatch):
    score, tries = MadeUp.score, Counter()

    def fails(self, pairs):
        tries[pairs[0]] += 1
        if pairs[0] == bad:
            raise OSError("no luck")
        return score(self, pairs)

    work = ShardWork(place, HarvestSettings(**SETTINGS), MadeUp)
    scorer, plan = opened(work)
    bad = plan.shard(4).texts(scorer.corpus)[0]
    monkeypatch.setattr(MadeUp, "score", fails)
    with pytest.raises(SamesenseError, match=r"1 shards could not be made, .* 3 attempts: shard 4, OSError: no luck"):
        make(place, tmp_path / "h")
    assert tries[bad] == 3 and len(shards(tmp_path / "h")) == 11
    monkeypatch.setattr(MadeUp, "score", lambda self, pairs: 1 / 0)
    with pytest.raises(SamesenseError, match="10 shards could not be made"):
        make(place, tmp_path / "other")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": 260}, "pairs was 240 and is 260"),
        ({"seed": 7, "neighbours": 0.3}, r"neighbours was 0.4 and is 0.3; seed was 42 and is 7"),
    ],
)
def test_other_settings_are_refused(place, tmp_path, changes, message):
    make(place, tmp_path / "h")
    before = shards(tmp_path / "h")
    with pytest.raises(OutputError, match=message):
        make(place, tmp_path / "h", **changes)
    assert shards(tmp_path / "h") == before


def test_another_origin_is_refused(place, tmp_path):
    make(place, tmp_path / "h")
    (place / "salt").write_text("other")
    with pytest.raises(OutputError, match="the Origin has another generator"):
        make(place, tmp_path / "h")
    work = ShardWork(place, HarvestSettings(**SETTINGS), MadeUp).expecting({"generator": "made up"})
    with pytest.raises(ModelError, match=r"Every worker must have the same Origin; .* another generator"):
        opened(work)


def test_other_folders_are_left_alone(place, tmp_path):
    (tmp_path / "h").mkdir()
    (tmp_path / "h" / "thesis.txt").write_text("much work")
    with pytest.raises(OutputError, match="holds no harvest"):
        make(place, tmp_path / "h")
    (tmp_path / "h" / "manifest.json").write_text('{"method": "origin"}')
    with pytest.raises(OutputError, match="a run of origin"):
        make(place, tmp_path / "h")
    make(place, tmp_path / "mine")
    with FileLock(tmp_path / "mine" / ".lock"), pytest.raises(OutputError, match="one writer at a time"):
        make(place, tmp_path / "mine")
    (tmp_path / "mine" / "shards" / "00003.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"00003\.parquet is no whole shard"):
        make(place, tmp_path / "mine")


def test_a_harvest_begun_while_another_opened_its_origin_is_not_gone_on_with(place, tmp_path, monkeypatch):
    held = recipe.only_writer

    @contextmanager
    def first(folder):
        monkeypatch.setattr(recipe, "only_writer", held)
        make(place, folder, seed=7)
        with held(folder):
            yield

    monkeypatch.setattr(recipe, "only_writer", first)
    with pytest.raises(OutputError, match="seed was 7 and is 42"):
        make(place, tmp_path / "h")


def test_shards_made_with_other_libraries_are_said_and_noted(place, tmp_path, monkeypatch):
    make(place, tmp_path / "h")
    assert "other_versions" not in json.loads((tmp_path / "h" / "manifest.json").read_text())
    installed = manifest.installed_versions
    monkeypatch.setattr(manifest, "installed_versions", lambda names: {**installed(names), "numpy": "0.1"})
    _, lines = make(place, tmp_path / "h")
    assert "numpy" not in "".join(lines)  # nothing was made
    for expected in (1, 0):
        (tmp_path / "h" / "shards" / "00003.parquet").unlink()
        lines = make(place, tmp_path / "h")[1]
        said = [line for line in lines if line.startswith(f"numpy was {np.__version__!r} and is '0.1'")]
        content = json.loads((tmp_path / "h" / "manifest.json").read_text())
        assert [entry["versions"]["numpy"] for entry in content["other_versions"]] == ["0.1"]
        assert content["versions"]["numpy"] == np.__version__ and content["status"] == "finished"
        assert len(said) == expected


def test_ctrl_c_says_what_is_kept(place, tmp_path, monkeypatch):
    lines, score = listen(), MadeUp.score

    def pressed(self, pairs):
        if len(list((tmp_path / "h").glob("shards/*.parquet"))) == 3:
            raise KeyboardInterrupt
        return score(self, pairs)

    monkeypatch.setattr(MadeUp, "score", pressed)
    settings = HarvestSettings(**SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        recipe.run(ShardWork(place, settings, MadeUp), tmp_path / "h", settings.choose_executor())
    assert lines[-1].startswith("stopped; finished shards are kept") and len(shards(tmp_path / "h")) == 3


def test_settings_of_another_executor_are_refused():
    with pytest.raises(ConfigError, match="--address is for --executor ray"):
        HarvestSettings(address="auto")
    with pytest.raises(ConfigError, match="--workers is for --executor embedded"):
        HarvestSettings(executor="ray", workers=2)
    names = {
        type(HarvestSettings(**one).choose_executor()).__name__ for one in ({}, {"workers": 2}, {"executor": "ray"})
    }
    assert names == {"Serial", "Processes", "OnRay"}


@pytest.mark.parametrize("stride", [17, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_a_harvest_killed_at_any_file_operation_goes_on(tmp_path, stride):
    done = subprocess.run(
        program("killed_harvest", tmp_path, stride), capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * stride > 60


@pytest.mark.slow
def test_processes_killed_at_random_lose_and_double_nothing(place, tmp_path):
    """The main process, its workers and Ctrl-C, by turns."""
    make(place, tmp_path / "whole")
    (place / "slow").write_text("0.1")
    chance = random.Random(0)
    for number in range(6):
        process = subprocess.Popen(
            program("harvest_world", place, tmp_path / "h", 2), env=ENVIRONMENT, cwd=ROOT, stderr=subprocess.DEVNULL
        )
        had = len(list(tmp_path.glob("h/shards/*.parquet")))
        while len(list(tmp_path.glob("h/shards/*.parquet"))) < min(12, had + 2) and process.poll() is None:
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.1))
        if number % 3 == 0:
            (place / "dies-now").touch()
            time.sleep(0.3)
        process.send_signal((signal.SIGKILL, signal.SIGKILL, signal.SIGINT)[number % 3])
        process.wait()
    for accident in place.glob("dies-*"):
        accident.unlink()
    (place / "slow").unlink()
    make(place, tmp_path / "h")
    assert shards(tmp_path / "h") == shards(tmp_path / "whole")


@pytest.mark.slow
def test_a_cluster_that_loses_a_machine_loses_and_doubles_nothing(place, tmp_path):
    pytest.importorskip("ray")
    make(place, tmp_path / "embedded")
    (place / "slow").write_text("0.3")
    done = subprocess.run(
        program("harvest_cluster", place, tmp_path / "ray"), capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert 4 <= int((place / "killed-at").read_text()) <= 9
    assert shards(tmp_path / "ray") == shards(tmp_path / "embedded")
    noted = [json.loads(line)["shard"] for line in (tmp_path / "ray" / "history.jsonl").read_text().splitlines()]
    assert sorted(noted) == list(range(12))


def test_import_is_light():
    heavy = "[m for m in ('torch', 'ray', 'pyarrow', 'scipy') if m in sys.modules]"
    code = f"import sys, samesense.cli.harvest, samesense.recipes.harvest.settings; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_page_lists_every_setting_with_its_default():
    text = (ROOT / "docs" / "harvest.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", text.partition("\n## Settings\n")[2].partition("\n## ")[0], re.M)
    fields = HarvestSettings.model_fields
    assert [name for name, _ in rows] == list(fields)
    for name, shown in rows:
        default = fields[name].default
        assert shown == ("none" if default is None else str(default)), name


@pytest.mark.slow
def test_scores_are_those_of_the_origin_with_any_workers(tmp_path):
    from samesense.context.origin.origin import Origin
    from samesense.recipes.origin.recipe import run
    from samesense.recipes.origin.settings import OriginSettings
    from tests.context.worlds import some_documents
    from tests.recipes.test_origin import SMALL

    lines = [json.dumps({"sentences": sections[0]}) for sections in some_documents(12)]
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    settings = OriginSettings(**{**SMALL, "generator_max_steps": 2})
    assert run([str(tmp_path / "d.jsonl")], settings, tmp_path / "o")
    chosen = HarvestSettings(pairs=24, shard_size=8, unit=4)
    summary = harvest(tmp_path / "o", tmp_path / "one", chosen)
    assert summary.pairs == 24
    harvest(tmp_path / "o", tmp_path / "two", chosen.model_copy(update={"workers": 2}))
    assert shards(tmp_path / "one") == shards(tmp_path / "two")
    rows = [row for file in sorted((tmp_path / "one" / "shards").iterdir()) for row in pq.read_table(file).to_pylist()]
    expected = Origin.open(tmp_path / "o")([(row["sentence1"], row["sentence2"]) for row in rows])
    np.testing.assert_allclose([row["score"] for row in rows], expected, atol=1e-4)
