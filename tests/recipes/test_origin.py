import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import TrainerCallback

from samesense.context.origin.origin import Origin
from samesense.data.documents import first_words
from samesense.errors import ConfigError, DataError, ModelError, OutputError, SamesenseError
from samesense.hashes import source_hash
from samesense.inference.models.load import load
from samesense.inference.names import settled_name
from samesense.recipes import stages as recipe_stages
from samesense.recipes.origin import paper, recipe
from samesense.recipes.origin.settings import OriginSettings, choose_origin
from samesense.recipes.settings import shipped
from samesense.recipes.stages import Stages
from tests.context.worlds import small_causal, some_documents
from tests.messages import listen

SMALL = {
    "vocabulary": 300,
    "generator_max_steps": 6,
    "generator_batch_size": 8,
    "max_tokens": 16,
    "held_out_windows": 10,
    "discriminator_epochs": 1,
    "contexts": "retrieved",
    "windows": 4,
    "rescored": 10,
    "reference": 4,
    "precision": "float32",
    "score_precision": "float32",
}
PAIR = ("a man eats a meal", "some child walks slow")

pytestmark = pytest.mark.usefixtures("smallest_generator")


class StopAt(TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            control.should_save = control.should_training_stop = True


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "documents.jsonl.gz"
    lines = [json.dumps({"sentences": sections[0]}) for sections in some_documents(12)]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return str(path)


def make(documents, folder, **changes):
    lines = listen()
    overwrite = changes.pop("overwrite", False)
    done = recipe.run([documents], OriginSettings(**{**SMALL, **changes}), folder, overwrite=overwrite)
    return done, lines


@pytest.mark.slow
def test_from_documents_to_a_score_through_a_stop(documents, tmp_path, monkeypatch):
    whole = tmp_path / "whole"
    folder = tmp_path / "stopped"
    assert make(documents, whole)[0]
    expected = Origin.open(whole)([PAIR])[0]
    callbacks = paper._callbacks
    for stopped_in, step in (("discriminator", 1), ("generator-all", 2)):
        monkeypatch.setattr(
            paper,
            "_callbacks",
            lambda stages, name, where=stopped_in, stopped_at=step: [StopAt(stopped_at)] if name == where else [],
        )
        assert not make(documents, folder)[0]
        with pytest.raises(DataError, match="no finished Origin"):
            Origin.open(folder)
    monkeypatch.setattr(paper, "_callbacks", callbacks)
    done, lines = make(documents, folder)
    assert done
    assert [line for line in lines if "there already" in line][1].startswith("discriminator: there already; 2 steps")
    assert "generator: going on" in lines
    assert not (folder / "work").exists()
    origin = Origin.open(folder)
    assert origin([PAIR])[0] == pytest.approx(expected, abs=1e-3)
    computed = origin.terms.computed
    again = Origin.open(folder)
    assert again([PAIR])[0] == origin([PAIR])[0]
    assert computed > again.terms.computed == 0
    candidate = load(f"origin:{folder}")
    assert candidate.scores([PAIR])[0] == again([PAIR])[0]
    assert "4 contexts a sentence" in candidate.protocol


@pytest.mark.slow
def test_stages_that_another_call_made_meanwhile_are_not_made_again(documents, tmp_path, monkeypatch):
    made = []
    opened = paper.PaperMaker.__init__

    def while_another_call_makes_it(*arguments):
        if not made:
            made.append(None)
            make(documents, tmp_path / "o")
        opened(*arguments)

    monkeypatch.setattr(paper.PaperMaker, "__init__", while_another_call_makes_it)
    done, lines = make(documents, tmp_path / "o")
    assert done and sum("there already" in line for line in lines) == 4
    # Those of the other call are heard too.
    assert sum(line.endswith(": begins") for line in lines) == 4


@pytest.mark.slow
def test_only_what_changed_is_made_again_and_only_when_told(documents, tmp_path):
    folder = tmp_path / "o"
    make(documents, folder, generator_max_steps=2)
    done, lines = make(documents, folder, generator_max_steps=2, windows=3)
    assert done and sum("there already" in line for line in lines) == 3
    assert "3 contexts a sentence" in Origin.open(folder).protocol
    identity = Origin.open(folder).generator.identity
    with pytest.raises(OutputError, match=r"stage generator .* other inputs: training was .* `overwrite`"):
        make(documents, folder, generator_max_steps=3)
    assert Origin.open(folder).generator.identity == identity  # the refused calls have changed nothing
    done, lines = make(documents, folder, generator_max_steps=3, overwrite=True)
    assert done and sum("there already" in line for line in lines) == 2
    assert Origin.open(folder).generator.identity != identity
    recorded = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert (recorded["status"], recorded["method"]) == ("finished", "origin")
    assert set(recorded["stages"]) == {"corpus", "discriminator", "generator", "random pairs"}


@pytest.mark.slow
def test_without_weight_no_generator_is_made_until_it_has_one(documents, tmp_path):
    alone = {"weight_sentence": 0, "weight_left": 0, "weight_right": 0}
    folder = tmp_path / "o"
    done, lines = make(documents, folder, **alone)
    assert done and "generator: none, since its terms have no weight" in lines
    assert not (folder / "generator").exists()
    origin = Origin.open(folder)
    assert "weights discriminative 1;" in origin.protocol and origin.protocol.endswith("no generator")
    score = origin([PAIR])[0]
    assert -1 <= score <= 1
    with pytest.raises(DataError, match="has no generator: it was made with weights of 0"):
        Origin.open(folder, scheme=OriginSettings(**SMALL).scheme())
    assert make(documents, folder)[0]
    assert Origin.open(folder).generator.protocol.startswith("1 sequence-to-sequence model")
    done, lines = make(documents, folder, **alone)
    assert done and (folder / "generator").exists()
    assert Origin.open(folder)([PAIR])[0] == score


@pytest.mark.slow
def test_three_models_and_a_language_model(documents, tmp_path):
    make(documents, tmp_path / "three", models="three", generator_max_steps=1)
    assert len(list((tmp_path / "three" / "generator").glob("*.safetensors"))) == 3
    assert Origin.open(tmp_path / "three").generator.protocol.startswith("3 sequence-to-sequence models")
    folder = small_causal(tmp_path / "causal")
    done, lines = make(documents, tmp_path / "given", language_model=str(folder))
    assert done and not any(line.startswith("generator") for line in lines)
    origin = Origin.open(tmp_path / "given")
    assert "causal language model by Bayes' rule" in origin.protocol
    assert -1 < origin([PAIR])[0] < 1


@pytest.mark.slow
@pytest.mark.parametrize("models", ["one", "three"])
def test_the_right_side_may_be_given_the_sentence_alone(documents, tmp_path, models):
    changes = {"right_given": "sentence", "models": models, "generator_max_steps": 1}
    done, lines = make(documents, tmp_path / "o", random_sentences=4, **changes)
    (line,) = [line for line in lines if line.startswith("random pairs: mean")]
    assert done and "mean score of 6 pairs by each normalisation: raw 1.0" in line and ", standardised " in line
    origin = Origin.open(tmp_path / "o")
    assert list(origin.generator.models) == ["sentence", "left", "continuation"]
    assert "right given the sentence alone 1" in origin.protocol
    assert -1 < origin([PAIR])[0] < 1
    done, lines = make(documents, tmp_path / "o", random_sentences=4, **changes)
    assert done and any(line.startswith("random pairs: there already") for line in lines)


def test_a_language_model_that_is_none_is_refused_at_once(documents, tmp_path):
    with pytest.raises(ModelError, match="Cannot open"):
        make(documents, tmp_path / "o", language_model=str(tmp_path / "nothing"))
    assert not (tmp_path / "o").exists()


def test_a_language_model_is_the_same_one_from_every_folder(tmp_path, monkeypatch):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert settled_name("models/mine") == str(tmp_path / "models" / "mine")
    assert settled_name("owner/name") == "owner/name"


def test_a_source_given_twice_is_read_twice(documents, tmp_path):
    outputs = listen()
    for sources in ([documents], [documents, documents]):
        stages = Stages(tmp_path / "o", {"method": "origin"}, overwrite=True)
        prints = {source: source_hash(source) for source in sources}
        outputs.append(recipe._corpus(stages, sources, prints, OriginSettings()).documents)
    assert [entry for entry in outputs if isinstance(entry, int)] == [12, 24]


def test_a_folder_with_something_else_is_left_alone(documents, tmp_path):
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "thesis.txt").write_text("much work")
    with pytest.raises(OutputError, match="holds no Origin"):
        make(documents, tmp_path / "o")
    (tmp_path / "o" / "manifest.json").write_text('{"method": "cosent"}')
    with pytest.raises(OutputError, match="a run of cosent"):
        make(documents, tmp_path / "o")


def test_fingerprints_are_of_content(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("A text.")
    before = source_hash(str(tmp_path / "one"))
    assert before == source_hash(str(tmp_path / "two")) != source_hash(str(tmp_path / "one" / "a.txt"))
    (tmp_path / "two" / "a.txt").write_text("A test.")
    assert before != source_hash(str(tmp_path / "two"))
    assert source_hash("owner/name:train") == "name owner/name:train"
    splits = [source_hash(f"{tmp_path / name}:{split}") for name, split in (("one", "a"), ("two", "a"), ("one", "b"))]
    assert len(set(splits)) == 3
    assert splits[0] == f"{before} a"


def test_a_stage_killed_while_it_was_removed_is_made_again(tmp_path, monkeypatch):
    calls = []

    def make_part(number):
        calls.append((number, sorted(path.name for path in folder.glob("*"))))
        for name in "ab":
            (folder / name).mkdir(parents=True, exist_ok=True)
        return []

    folder = tmp_path / "o" / "part"

    def run(number):
        stages = Stages(tmp_path / "o", {"method": "origin"}, overwrite=True)
        stages.run("corpus", {"number": number}, ["part"], lambda: make_part(number))

    def killed(path):
        (path / "a").rmdir()
        raise KeyboardInterrupt

    run(1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(recipe_stages.shutil, "rmtree", killed)
        run(2)
    run(1)
    assert calls == [(1, []), (1, [])]


def test_a_generator_that_is_kept_is_whole(tmp_path, monkeypatch):
    def cut_off(weights, path):
        Path(path).write_bytes(b"half")
        raise KeyboardInterrupt

    trained = SimpleNamespace(interrupted=False, model=torch.nn.Linear(2, 2))
    monkeypatch.setattr(paper, "train_generator", lambda *_, **__: trained)
    monkeypatch.setattr(paper, "save_file", cut_off)
    with pytest.raises(KeyboardInterrupt):
        paper._model(SimpleNamespace(folder=tmp_path), None, None, ("left",), None, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_tokenizer_learns_from_what_is_not_held_out(tmp_path, monkeypatch):
    texts_seen = []
    tokenizer = SimpleNamespace(to_str=lambda: "{}")
    monkeypatch.setattr(paper, "train_tokenizer", lambda texts, size: texts_seen.extend(texts) or tokenizer)
    corpus = SimpleNamespace(sentence=lambda index: f"sentence {index}")
    paper._tokenizer(corpus, np.array([True, False, True]), 300, tmp_path / "tokenizer.json")
    assert texts_seen == ["sentence 0", "sentence 2"]


def test_a_mistyped_source_is_corrected_without_being_told_to_overwrite(documents, tmp_path):
    folder = tmp_path / "o"
    with pytest.raises(SamesenseError, match="documens"):
        make(documents.replace("documents", "documens"), folder)
    stages = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["stages"]
    assert stages["corpus"]["status"] == "running"
    assert make(documents, folder, generator_max_steps=1)[0]


def test_an_output_among_the_documents_is_refused(tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("It rained. We stayed inside. Tea was made.", encoding="utf-8")
    for output in (tmp_path / "texts", tmp_path / "texts" / "o"):
        with pytest.raises(ConfigError, match="must not lie in a folder of documents"):
            make(str(tmp_path / "texts"), output)
    assert [path.name for path in (tmp_path / "texts").iterdir()] == ["one.txt"]


@pytest.mark.parametrize(("most", "taken"), [(None, 3), (1, 1), (4, 1), (5, 2), (100, 3)])
def test_a_corpus_ends_with_the_document_that_reaches_the_words(most, taken):
    documents = [[["one two", "three four"]]] * 3
    assert len(list(first_words(documents, most))) == taken


def test_shipped_settings_are_settings():
    assert shipped("origin") == ["paper", "scaled", "words"]
    with pytest.raises(ConfigError, match="takes a TOML file or one of paper, scaled, words; received 'wrods'"):
        choose_origin("wrods", {})
    published = choose_origin("paper", {"windows": 20})
    assert (published.contexts, published.size, published.models) == ("retrieved", "large", "three")
    assert published.windows == 20
    assert (published.scheme().normalisation, published.scheme().selection.screened) == ("raw", 20000)
    assert choose_origin("scaled", {}).models == "one"
    with pytest.raises(ConfigError, match="A context set has"):
        choose_origin("scaled", {"windows": 5000}).scheme()
    with pytest.raises(ConfigError, match="Did you mean 'contexts'"):
        choose_origin("scaled", {"context": 5})


def test_settings_offer_every_interaction_and_need_no_torch():
    from samesense.context.discriminator.lstm import Interaction

    assert OriginSettings.model_fields["interaction"].annotation == Interaction
    code = "import sys, samesense.cli.commands.origin; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_the_page_lists_every_setting_with_its_default():
    text = (Path(__file__).parents[2] / "docs" / "methods" / "origin.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", text.partition("\n## Settings\n")[2].partition("\n## ")[0], re.M)
    fields = OriginSettings.model_fields
    assert [name for name, _ in rows] == list(fields)
    for name, default_shown in rows:
        assert default_shown == ("none" if fields[name].default is None else str(fields[name].default)), name
