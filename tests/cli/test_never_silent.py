"""Commands are never silent: each shows what it is at and how far it is."""

import json

import pytest

from samesense.cli.main import BeforeTorch
from samesense.execution import progress
from samesense.execution.progress import stage
from tests.context.worlds import some_documents
from tests.messages import PROGRESS, listen
from tests.recipes.test_context import ORIGIN

pytestmark = pytest.mark.usefixtures("shown")


def heads(error):
    """What progress was shown, without its figures."""
    lines = [line for line in error.splitlines() if line.endswith(PROGRESS)]
    return list(dict.fromkeys(line.split(",")[0].split(": ")[0] for line in lines))


def test_what_goes_on_is_shown_before_torch_is_loaded(monkeypatch):
    lines = listen()
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    with stage("samesense export"):
        finder = BeforeTorch()
        assert finder.find_spec("json") is None and not lines
        assert finder.find_spec("torch") is None and lines == ["samesense export, 0:00 so far"]
        finder.find_spec("torch")
    assert len(lines) == 1


def test_training_and_what_uses_its_model(run, tiny_trunk, toy_pairs, tmp_path):
    output, files = tmp_path / "run", {split: str(toy_pairs / f"{split}.tsv") for split in ("train", "dev", "test")}
    options = ["--model", tiny_trunk, "--dev", files["dev"], "--test", files["test"], "--max-steps", "4", "-o", output]
    code, _, err = run("train", files["train"], *options)
    assert code == 0
    assert heads(err) == [
        "samesense train",
        "loading torch",
        f"loading {tiny_trunk}",
        "preparing the examples",
        "measuring which arithmetic is faster",
        "evaluation of the start",
        "encode (evaluation of the start)",
        "train",
        "evaluation on dev",
        "encode (evaluation on dev)",
        "saving the model",
        "evaluation",
        f"loading {output}",
        "encode (evaluation)",
        "drawing the report",
    ]
    counted = [line for line in err.splitlines() if line.startswith("train: ")]
    assert list(dict.fromkeys(line.split(",")[0] for line in counted)) == [f"train: {n} of 4 steps" for n in range(5)]
    second = next(line for line in counted if line.startswith("train: 2 "))
    assert all(figure in second for figure in (", loss ", ", dev ", ", best ", " gone, about ", " left"))
    phases = [phase.rsplit(" ", 1)[0] for phase in said(err, "time: ").partition(" in all: ")[2].split(", ")]
    assert phases == ["loading", "evaluation", "training", "saving"]
    assert "\x1b" not in err and said(err, "test.tsv ")
    assert said(err, "verdict: ").endswith("60 examples") and said(err, "dev, which selected: ")

    code, _, err = run("evaluate", output, "--data", files["test"])
    assert (code, heads(err)[:3]) == (0, ["samesense evaluate", f"loading {output}", "evaluate on test.tsv"])
    page = tmp_path / "report.html"
    code, _, err = run("compare", tiny_trunk, output, "--data", files["test"], "--output", page)
    headings = heads(err)
    for heading in ("loading", "encode by run", "run on sts test.tsv", "comparing the models", "writing the page"):
        assert any(shown_heading.startswith(heading) for shown_heading in headings), (heading, headings)
    texts = tmp_path / "texts.txt"
    texts.write_text("a man eats\na child sleeps\n")
    code, _, err = run("encode", output, texts, "--output", tmp_path / "v.npy")
    assert (code, heads(err)) == (0, ["samesense encode", f"loading {output}", "encode"])
    code, _, err = run("index", "build", tmp_path / "collection", texts, "--model", output)
    assert (code, heads(err)) == (0, ["samesense index", f"loading {output}", "index"])
    assert err.splitlines()[-1] == f'next: samesense index query {tmp_path / "collection"} "TEXT"'
    assert said(err, "time: ")


@pytest.mark.usefixtures("smallest_generator")
def test_an_origin_and_its_harvest(run, tmp_path):
    path, origin = tmp_path / "some.jsonl", tmp_path / "origin"
    path.write_text("\n".join(json.dumps({"sentences": document[0]}) for document in some_documents(12)) + "\n")
    flags = [str(word) for name, value in ORIGIN.items() for word in (f"--{name.replace('_', '-')}", value)]
    code, _, err = run("origin", path, "--config", "scaled", *flags, "--output", origin)
    assert code == 0, err
    headings = heads(err)
    for heading in ("loading torch", "corpus", "discriminator", "train", "evaluation", "generator", "index"):
        assert heading in headings, (heading, headings)
    assert any("loss" in line and "dev loss" in line for line in err.splitlines() if line.startswith("train: "))
    options = ["--pairs", "20", "--unit", "6", "--spacings", "4"]
    code, _, err = run("harvest", "--origin", origin, "--output", tmp_path / "harvest", *options)
    assert code == 0, err
    assert {"samesense harvest", "opening the Origin", "harvest"} <= {*heads(err)}


def said(error, begin):
    return next(line for line in error.splitlines() if line.startswith(begin))
