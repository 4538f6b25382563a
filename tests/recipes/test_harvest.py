import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.recipes.harvest.recipe import ShardWork, harvest, open_work
from samesense.recipes.harvest.settings import HarvestSettings
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
    assert summary.requested == summary.planned == {"random": 96, "neighbours": 96, "section": 48}
    starts = [0, *corpus._documents.tolist()]
    for row in rows:
        for which in "12":
            index = starts[row[f"document{which}"]] + row[f"position{which}"]
            assert corpus.sentence(index) == row[f"sentence{which}"]
        if row["kind"] == "section":
            assert row["document1"] == row["document2"]
        digest = hashlib.sha256(repr((row["sentence1"], row["sentence2"])).encode()).digest()
        assert row["score"] == int.from_bytes(digest[:4], "big") / 2**31 - 1
    assert len({frozenset((row["sentence1"], row["sentence2"])) for row in rows}) == len(rows)
    message = "\n".join(lines)
    assert "240 pairs in 12 shards: random 96, neighbours 96, section 48" in lines[0]
    assert "left out, since all fits of a sentence are alike" in message
    assert "100M pairs would take" in message


def test_pairs_that_are_missing_are_said(place, tmp_path):
    summary, lines = make(place, tmp_path / "h", pairs=2000, shard_size=1000, unit=2, neighbours=0.0, section=1.0)
    missing = summary.requested["section"] - summary.planned["section"]
    assert missing > 0 and summary.requested["random"] == summary.planned["random"]
    (message,) = [line for line in lines if line.startswith("missing where the units of a shard were used up")]
    assert f"section {missing}" in message


def test_manifest_says_what_it_was_made_of(place, tmp_path):
    summary, _ = make(place, tmp_path / "h")
    content = json.loads((tmp_path / "h" / "manifest.json").read_text())
    assert (content["method"], content["status"]) == ("harvest", "finished")
    assert content["settings"]["pairs"] == 240 and "workers" not in content["settings"]
    assert content["origin"]["generator"] == "made up"
    assert content["scored"] == summary.scored and content["undefined"] == summary.undefined
    assert sum(entry["pairs"] for entry in content["shards"]) == summary.pairs
    for entry in content["shards"]:
        shard_bytes = (tmp_path / "h" / "shards" / entry["file"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(shard_bytes).hexdigest()
    assert content["cost"]["rows"] == summary.pairs and content["cost"]["cells"] == 2400


@pytest.mark.posix
def test_it_is_the_same_with_any_workers_and_goes_on(place, tmp_path):
    make(place, tmp_path / "one")
    whole = shards(tmp_path / "one")
    for number in (0, 5, 11):
        (tmp_path / "one" / "shards" / f"{number:05}.parquet").unlink()
    (tmp_path / "one" / "shards" / ".00005.parquet.99999999-0123abcd.part").write_bytes(b"cut off")
    (place / "dies-now").touch()
    _, lines = make(place, tmp_path / "one", workers=2)
    assert not (place / "dies-now").exists()
    assert "9 of 12 shards are there already" in lines
    assert shards(tmp_path / "one") == whole


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
    with pytest.raises(OutputError, match="another origin: generator was 'made up' and is 'made upother'"):
        make(place, tmp_path / "h")
    work = ShardWork(place, HarvestSettings(**SETTINGS), MadeUp).expecting({"generator": "made up"})
    with pytest.raises(ModelError, match=r"Every worker must have the same Origin; .* another generator"):
        open_work(work)


def test_scores_that_are_all_alike_are_refused_as_they_are_made(place):
    class Flat(MadeUp):
        def score(self, pairs):
            scored = super().score(pairs)
            return replace(scored, scores=np.full(len(scored.rows), 0.3))

    with pytest.raises(ModelError, match="all are alike"):
        ShardWork(place, HarvestSettings(**{**SETTINGS, "shard_size": 240}), Flat)(0)


def test_settings_of_another_executor_are_refused():
    with pytest.raises(ConfigError, match="address is for the ray executor"):
        HarvestSettings(address="auto")
    with pytest.raises(ConfigError, match="workers is for the embedded executor"):
        HarvestSettings(executor="ray", workers=2)
    names = {
        type(HarvestSettings(**options).choose_executor()).__name__
        for options in ({}, {"workers": 2}, {"executor": "ray"})
    }
    assert names == {"Serial", "Processes", "OnRay"}


@pytest.mark.long
def test_a_cluster_that_loses_a_machine_loses_and_doubles_nothing(place, tmp_path):
    pytest.importorskip("ray")
    make(place, tmp_path / "embedded")
    (place / "slow").write_text("0.3")
    words = [sys.executable, "-m", "tests.ray_cluster", place, tmp_path / "ray", "tests.recipes.harvest_world", "{}"]
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert 4 <= int((place / "killed-at").read_text()) <= 9
    assert shards(tmp_path / "ray") == shards(tmp_path / "embedded")
    noted = [json.loads(line)["shard"] for line in (tmp_path / "ray" / "history.jsonl").read_text().splitlines()]
    assert sorted(noted) == list(range(12))


def test_a_damaged_shard_is_said(place, tmp_path):
    make(place, tmp_path / "h")
    (tmp_path / "h" / "shards" / "00003.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"00003\.parquet\. They are damaged"):
        make(place, tmp_path / "h")


def test_import_is_light():
    heavy = "[m for m in ('torch', 'ray', 'pyarrow', 'scipy') if m in sys.modules]"
    code = f"import sys, samesense.cli.commands.harvest, samesense.recipes.harvest.settings; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_page_lists_every_setting_with_its_default():
    text = (ROOT / "docs" / "harvest.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", text.partition("\n## Settings\n")[2].partition("\n## ")[0], re.M)
    fields = HarvestSettings.model_fields
    assert [name for name, _ in rows] == list(fields)
    for name, default_shown in rows:
        default = fields[name].default
        assert default_shown == ("none" if default is None else str(default)), name


@pytest.mark.slow
def test_scores_are_those_of_the_origin(tmp_path, smallest_generator):
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
    rows = [row for file in sorted((tmp_path / "one" / "shards").iterdir()) for row in pq.read_table(file).to_pylist()]
    expected = Origin.open(tmp_path / "o")([(row["sentence1"], row["sentence2"]) for row in rows])
    np.testing.assert_allclose([row["score"] for row in rows], expected, atol=1e-4)
