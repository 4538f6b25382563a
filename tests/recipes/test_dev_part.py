"""The pairs that selected the checkpoint of a run are saved in its folder, and used for its calibration."""

import json
from dataclasses import replace

import numpy as np
import pytest

import samesense
from samesense.data import PairData, sample_path
from samesense.errors import ConfigError, DataError
from samesense.recipes.held_out.pairs import read_dev, write_pairs
from samesense.recipes.run.run_folder import begin
from samesense.training.manifest import describe
from tests.command import run_command
from tests.messages import listen


def pairs(labels, kind="scored", scale=(0, 5), texts=None, **fields):
    texts = texts or [f"text {i}" for i in range(len(labels))]
    return PairData(
        sentences1=texts,
        sentences2=[f"{text} again" for text in texts],
        labels=labels,
        kind=kind,
        scale=scale,
        source="train.tsv",
        label_column="score",
        **{"subsets": None, **fields},
    )


DATA = {
    "scored": pairs([0.1, 5.0, 1 / 3]),
    "on its own scale": pairs([1.0, 7.0, 2.5], scale=(1, 7), own_scale=True),
    "binary": pairs([0.0, 1.0], "binary", (0, 1)),
    "nli": pairs([0.0, 2.0, 1.0], "nli", (0.0, 2.0)),
    "in parts": replace(pairs([0.0, 5.0]), subsets=["a", ""]),
    "quotes": pairs([0.0, 5.0], texts=['"open', " spaces "]),
    "quotes as TSV may have them of a program": pairs([0.0, 5.0], texts=['"open"', '"a ""b"" c"']),
    "what TSV cannot hold": pairs([0.0, 5.0, 1.0], texts=["a\ttab", "a\nline", "a\rreturn"]),
}


@pytest.mark.parametrize("name", DATA)
def test_what_is_kept_is_read_again(tmp_path, name):
    data = DATA[name]
    path = write_pairs(tmp_path, data)
    assert path.name == ("dev.jsonl" if "TSV" in name else "dev.tsv")
    read = samesense.read(path)
    unlike = {"source": "", "label_column": ""}
    assert replace(read, **unlike) == replace(data, **unlike)
    assert read.sha256 == data.sha256


def as_run(folder, dev, **about):
    folder.mkdir()
    manifest = {"data": {"dev": {"sha256": dev.sha256, "rows": len(dev), "scale": dev.scale, **about}}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_the_scale_of_the_whole_holds_for_the_part(tmp_path):
    subset = pairs([1.0, 3.0, 3.5])
    run = as_run(tmp_path / "run", subset, source="train.tsv")
    write_pairs(run, subset)
    assert samesense.read(run / "dev.tsv").scale == (1, 4)
    assert read_dev(str(run), {}).scale == (0, 5)
    assert read_dev(str(run / "model"), {}).labels == subset.labels


def test_a_file_that_was_given_must_be_what_it_was(tmp_path):
    dev = samesense.read(sample_path("dev"))
    table = tmp_path / "own.csv"
    table.write_text("q1,q2,same\na,b,0\nc,d,1\n")
    columns = {"columns": "q1,q2,same"}
    run = as_run(tmp_path / "run", samesense.read(table, **columns), source=str(table))
    lines = listen()
    assert read_dev(str(run), columns).labels == [0, 1]
    assert lines[-1] == f"data: {table}, 2 pairs on which the run was selected"
    table.write_text("q1,q2,same\na,b,1\nc,d,0\n")
    with pytest.raises(DataError, match="which was another file then, or was read with other flags"):
        read_dev(str(run), columns)
    table.unlink()
    with pytest.raises(DataError, match=r"was selected on .*own\.csv, which is not there. Give labelled pairs that"):
        read_dev(str(run), columns)
    (as_run(tmp_path / "none", dev) / "manifest.json").write_text('{"data": {}}')
    for folder, message in ((tmp_path / "none", "had no dev pairs"), (tmp_path, "is no run of samesense train")):
        with pytest.raises(ConfigError, match=message):
            read_dev(str(folder), {})


def test_a_run_keeps_what_it_held_out_and_is_calibrated_on_it(tiny_trunk, sentences, tmp_path, capsys):
    train = tmp_path / "train.jsonl"
    drawn = [*np.random.default_rng(0).integers(40, size=(600, 2)).tolist(), *([index, index] for index in range(40))]
    rows = [{"text1": f"{sentences[a]}\t", "text2": sentences[b], "score": 5 * (a == b)} for a, b in drawn]
    train.write_text("".join(json.dumps(row) + "\n" for row in rows))
    trained = samesense.train(
        train, model=str(tiny_trunk), max_steps=1, folds="none", keep_start="never", output=tmp_path / "run"
    )
    retained = samesense.read(trained.folder / "dev.jsonl")
    held = json.loads((trained.folder / "manifest.json").read_text())["data"]["dev"]
    assert (len(retained), retained.sha256) == (held["rows"], held["sha256"])
    capsys.readouterr()
    code, _, err = run_command(capsys, "calibrate", trained.folder, "--folds", "2")
    strategy = "each pair scored at the step that others chose, which share no pair with it"
    message = f"data: {len(retained)} pairs of train.jsonl with the scores that the run has kept of them ({strategy})"
    assert (code, err.splitlines()[0]) == (0, message), err
    assert run_command(capsys, "calibrate", trained.folder, "--seed", "-1")[::2] == (
        2,
        f"{message}\nsamesense: error: A seed is 0 or more; received --seed -1.\n",
    )
    begin(trained.folder, describe("cosent", {}, {}), {})  # another run replaces it
    assert not (trained.folder / "dev.jsonl").exists() and not (trained.folder / "held-out-scores.json").exists()
