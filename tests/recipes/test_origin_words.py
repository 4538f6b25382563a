import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import samesense
from samesense.context.generator.language_models import open_language_model
from samesense.context.origin.load import open_origin
from samesense.context.origin.reader import Reader
from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.execution.shards.executors import choose_executor
from samesense.inference.models.load import load
from samesense.inference.shards.encode import ShardSettings, encode_shards
from samesense.recipes.context import estimate
from samesense.recipes.context.documents import name_documents
from samesense.recipes.context.settings import ContextSettings
from samesense.recipes.origin import recipe, settings, words
from samesense.recipes.origin.settings import OriginSettings, choose_origin
from samesense.recipes.run.job import Job
from tests.context.worlds import small_worded_causal, some_sentences
from tests.messages import listen
from tests.recipes.harvest_world import shards
from tests.recipes.word_world import SMALL, make, write_documents
from tests.references import next_words as twin

SMALL_RETRIEVED = {
    "contexts": "retrieved",
    "discriminator_epochs": 1,
    "held_out_windows": 10,
    "windows": 4,
    "rescored": 10,
    "reference": 4,
    "precision": "float32",
    "score_precision": "float32",
    "random_sentences": 0,
}
PAIR = ("a man eats a meal", "some child walks slow")


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    return write_documents(tmp_path_factory.mktemp("documents"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(small_worded_causal(tmp_path_factory.mktemp("causal")))


@pytest.fixture(scope="module")
def made(documents, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "o"
    assert make(documents, model, folder)[0]
    return folder


def test_a_similarity_equals_that_of_plain_transformers(made, model):
    origin, generator = open_origin(made), open_language_model(model)
    tokens = origin.reader.words

    def readings(texts):
        own, states, logs = [], [], []
        for text in texts:
            ids = generator.tokenizer(text, add_special_tokens=False)["input_ids"]
            own.append(twin.own_vector(generator.model, 1, ids, 1))
            prompt = f'The topic of this sentence : "{text}" is in one word:"'
            ids = [1, *generator.tokenizer(prompt, add_special_tokens=False)["input_ids"]]
            state, log = twin.end_of_prompt(generator.model, ids, 1)
            states.append(state)
            logs.append(log[tokens])
        return np.array(own), np.array(states), np.array(logs)

    texts = json.loads((made / "reference.json").read_text(encoding="utf-8"))["texts"]
    pair = [f"{text}." for text in PAIR]
    usual, own = readings(texts), readings(pair)
    parts = [tuple(twin.whitened(rows, fitted)) for rows, fitted in zip(own[:2], usual[:2], strict=True)]
    ppmi = twin.ppmi(own[2], usual[2], 20)
    unit = ppmi / np.linalg.norm(ppmi, axis=1, keepdims=True)
    parts.append(tuple(unit @ origin.parts.words.components))
    assert origin([pair])[0] == pytest.approx(twin.similarity(parts, (1, 0.5, 1)), abs=1e-3)


def test_it_is_a_model_that_embeds(made):
    opened, origin = load(f"origin:{made}"), open_origin(made)
    assert opened.scores([PAIR])[0] == pytest.approx(origin([PAIR])[0], abs=1e-6)
    assert opened.encode(PAIR).shape == (2, 16 + 16 + 8)
    assert "the 20 likeliest of 192 words in 8 dimensions (own 0.4, state 0.2, words 0.4)" in opened.protocol
    assert "60 sentences of the corpus" in opened.protocol
    assert opened.identity == origin.identity
    explanation = samesense.explain(f"origin:{made}", *PAIR, top=2)
    assert len(explanation.both) <= 2 and explanation.score == pytest.approx(origin([PAIR])[0], abs=1e-6)
    assert samesense.explain(opened, *PAIR, top=2).to_dict() == explanation.to_dict()


def test_how_it_computes_is_its_own(made, model, monkeypatch):
    name, said = f"origin:{made}", listen()
    for opened in (load(name, precision="float32"), load(name)):
        assert opened.protocol == open_origin(made).protocol
    assert not said
    assert load(name, precision="bfloat16").protocol == open_origin(made).protocol
    told = "scores in float32, in which it was made; `precision` bfloat16 has no effect"
    assert told in "\n".join(said)
    samesense.explain(name, *PAIR, precision="bfloat16")
    assert "\n".join(said).count(told) == 2
    with pytest.raises(ConfigError, match="last bits; received `deterministic`"):
        load(name, deterministic=True)
    asked = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("samesense.context.origin.load.open_origin", lambda *_, **how: asked.append(how) or 1 / 0)
    for how in ({}, {"device": "cpu"}):
        with pytest.raises(ZeroDivisionError):
            load(name, **how)
    assert asked == [{"device": "cuda"}, {"device": "cpu"}]


def test_shards_are_the_same_whatever_the_origin_remembers(made, tmp_path, monkeypatch):
    texts, folder = some_sentences(24, seed=11), tmp_path / "o"
    shutil.copytree(made, folder)
    (tmp_path / "t.txt").write_text("\n".join(texts), encoding="utf-8")
    chosen = ShardSettings(shard_size=8, normalize=True)

    def encoded(output):
        encode_shards(f"origin:{folder}", [str(tmp_path / "t.txt")], output, chosen, choose_executor("embedded"))
        return shards(output)

    shutil.rmtree(folder / "cache", ignore_errors=True)
    one = encoded(tmp_path / "one")
    assert not list((folder / "cache").rglob("*.npy"))  # nothing is remembered
    origin = open_origin(folder)
    read = Reader.read
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "read", lambda *arguments: _moved(read(*arguments)))
        for text in texts[::3]:
            origin.encode([text])  # which keeps what it has read, each text beside no other
    assert encoded(tmp_path / "two") == one
    rows = np.concatenate([np.load(path) for path in sorted((tmp_path / "one" / "shards").iterdir())])
    np.testing.assert_allclose(
        rows, open_origin(made).encode(texts), atol=1e-3
    )  # threads and batches differ, and whitening spreads that


def _moved(found):
    return replace(found, own=found.own + 1)


def test_long_texts_can_be_cut_into_windows_that_are_read(made):
    opened, long = load(f"origin:{made}"), "some words of a text " * 30
    windows = opened.windows(["short", long])
    assert windows.counts[0] == 1 and windows.counts[1] > 2 and " ".join(windows.texts[1:]) == long.strip()
    assert max(opened.reading.lengths(windows.texts)) <= 128


def test_a_stopped_reading_goes_on_and_reads_nothing_twice(documents, model, made, tmp_path, monkeypatch):
    folder, read, asked = tmp_path / "o", Reader.read, []

    def once(self, sentences):
        if len(sentences) > 5:  # a shard, not the estimate
            asked.append(tuple(sentences))
            if len(asked) == 2:
                raise KeyboardInterrupt
        return read(self, sentences)

    monkeypatch.setattr(words, "SHARD", 20)
    monkeypatch.setattr(Reader, "read", once)
    done, _ = make(documents, model, folder)
    assert not done
    with pytest.raises(DataError, match="no finished Origin"):
        open_origin(folder)
    done, lines = make(documents, model, folder)
    assert done and len(set(asked)) == 3 and len(asked) == 4
    assert any("sentences to read, about" in line for line in lines)
    assert open_origin(folder)([PAIR])[0] == pytest.approx(open_origin(made)([PAIR])[0], abs=1e-4)
    _, lines = make(documents, model, folder)
    assert sum("there already" in line for line in lines) == 3 and len(asked) == 4


def test_another_weight_reads_nothing_again_and_another_prompt_asks(documents, model, tmp_path, monkeypatch):
    folder = tmp_path / "o"
    make(documents, model, folder)
    with pytest.raises(OutputError, match=r"stage parts .* weight_own was 1.0 and is 0.5"):
        make(documents, model, folder, weight_own=0.5)
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "read", None)
        done, lines = make(documents, model, folder, weight_own=0.5, overwrite=True)
    assert done and "reference: there already" in " ".join(lines)
    for changes in ({"prompt": '"{text}" is "'}, {"own_layer": 2}, {"state_layer": 2}):
        with pytest.raises(OutputError, match=r"stage reference .* reader was "):
            make(documents, model, folder, **changes)
    open_origin(folder)([PAIR])  # which keeps the vectors
    make(documents, model, folder, prompt='"{text}" is "', overwrite=True)
    assert np.isfinite(open_origin(folder)([PAIR])).all()
    assert """prompt '"{text}" is "'""" in open_origin(folder).protocol


def test_documents_in_a_script_that_the_tokenizer_does_not_know_are_said(model, tmp_path):
    sentences = [f"雨停了以后第{number}只猫回家。" for number in range(80)]
    documents = tmp_path / "d.jsonl"
    documents.write_text(json.dumps({"sentences": sentences}, ensure_ascii=False) + "\n", encoding="utf-8")
    _, lines = make(str(documents), model, tmp_path / "o")
    assert any("tokens a character, so it was made for another language or script" in line for line in lines)


def test_a_language_model_that_was_trained_further_is_told(documents, model, tmp_path):
    own = shutil.copytree(model, tmp_path / "lm")
    make(documents, str(own), tmp_path / "o")
    said = listen()
    open_origin(tmp_path / "o")
    assert not any("was made with" in line for line in said)
    weights = load_file(own / "model.safetensors")
    save_file({name: weight + 0.01 for name, weight in weights.items()}, own / "model.safetensors", {"format": "pt"})
    open_origin(tmp_path / "o")
    assert any("is not the language model that" in line and "make the Origin again" in line for line in said)


def test_a_language_model_that_was_trained_further_makes_another_origin(documents, model, tmp_path):
    own = shutil.copytree(model, tmp_path / "lm")
    make(documents, str(own), tmp_path / "one")
    assert words._reader.cache_info().currsize == 0  # the model is not held any longer
    weights = load_file(own / "model.safetensors")
    save_file({name: weight + 0.01 for name, weight in weights.items()}, own / "model.safetensors", {"format": "pt"})
    _, lines = make(documents, str(own), tmp_path / "two")
    assert not any("was made with" in line for line in lines)
    one, two = (json.loads((tmp_path / name / "origin.json").read_text())["reader"] for name in ("one", "two"))
    assert one != two


def test_an_origin_is_not_replaced_by_one_with_other_contexts_unless_told(documents, model, tmp_path):
    folder = tmp_path / "o"
    make(documents, model, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    other = OriginSettings(**{**SMALL_RETRIEVED, "weight_sentence": 0, "weight_left": 0, "weight_right": 0})
    with pytest.raises(OutputError, match="the stages reference, parts of an Origin with other contexts"):
        recipe.run([documents], other, folder)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert recipe.run([documents], other, folder, overwrite=True)
    assert "discriminative 1" in open_origin(folder).protocol
    assert not any((folder / name).exists() for name in ("reference", "reference.json", "parts.npz"))
    assert make(documents, model, folder, overwrite=True)[0]
    assert "Origin by next words" in open_origin(folder).protocol and not (folder / "discriminator").exists()
    stages = json.loads((folder / "manifest.json").read_text())["stages"]
    assert list(stages) == ["corpus", "reference", "parts"]


def test_texts_of_the_user_say_what_is_usual(documents, model, made, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(some_sentences(80, seed=9)), encoding="utf-8")
    make(documents, model, tmp_path / "o", texts=str(texts))
    origin = open_origin(tmp_path / "o")
    assert "60 sentences of the texts given" in origin.protocol
    assert origin([PAIR])[0] != pytest.approx(open_origin(made)([PAIR])[0], abs=1e-3)
    texts.write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="Whitening needs 50 different texts at least"):
        make(documents, model, tmp_path / "few", texts=str(texts))


def test_an_estimate_counts_the_reading_of_the_sentences_that_are_harvested(documents, model, tiny_trunk, monkeypatch):
    seen = {}
    monkeypatch.setattr(estimate, "time_summary", lambda seconds: seen.update(seconds) or "")
    settings = ContextSettings(
        model=str(tiny_trunk),
        precision="float32",
        batch_size=8,
        max_seq_length=32,
        origin={**SMALL, "language_model": model, "reference": 100},
        harvest={"sentences": 80, "pairs": 2000},
    )
    given = Job(method="context", data=name_documents([documents], settings), settings=settings, output=Path())
    estimate.estimate(given)
    # the little reads 50 sentences; 100 are to be read for the whitening, and 80 by the harvest
    assert seen["harvest"] >= 0.8 * seen["reference"] > 0


def test_a_small_folder_gives_all_its_sentences_as_reference(documents, model, tmp_path):
    make(documents, model, tmp_path / "o", reference=5000)
    count = len({text for text in open_origin(tmp_path / "o").corpus if len(text.split()) > 1})
    assert f"{count} sentences of the corpus" in open_origin(tmp_path / "o").protocol and count < 200
    few = tmp_path / "few.jsonl"
    few.write_text(json.dumps({"sentences": [f"It was number {number}." for number in range(20)]}) + "\n")
    with pytest.raises(ConfigError, match=r"The reference is 50 different sentences .* has 20. Give more documents"):
        make(str(few), model, tmp_path / "p", reference=500)


@pytest.mark.slow
def test_processes_read_the_same(documents, model, made, tmp_path, monkeypatch, ready_workers):
    monkeypatch.setattr(words, "SHARD", 20)
    done, _ = make(documents, model, tmp_path / "o", workers=2)
    assert done and len(list((tmp_path / "o" / "reference" / "shards").iterdir())) >= 2
    assert open_origin(tmp_path / "o")([PAIR])[0] == pytest.approx(open_origin(made)([PAIR])[0], abs=1e-4)


def test_what_is_not_there_any_more_is_made_again(documents, model, tmp_path):
    folder = tmp_path / "o"
    make(documents, model, folder)
    before = open_origin(folder)([PAIR])
    shutil.rmtree(folder / "reference")
    done, lines = make(documents, model, folder, weight_own=3, overwrite=True)
    assert done and sum("there already" in line for line in lines) == 1
    assert make(documents, model, folder, overwrite=True)[0]
    assert open_origin(folder)([PAIR]) == pytest.approx(before, abs=1e-4)


@pytest.mark.parametrize(
    ("config", "idle", "contexts"),
    [
        ("words", {"normalisation": "raw"}, "words"),
        ("words", {"weight_left": 0}, "words"),
        ("words", {"left": 3}, "words"),
        ("words", {"windows": 3}, "words"),
        ("words", {"chunk": 3}, "words"),
        ("scaled", {"prompt": "{text}"}, "retrieved"),
        ("scaled", {"own_layer": 3}, "retrieved"),
        ("scaled", {"texts": ("nofile.txt",)}, "retrieved"),
        ("scaled", {"workers": 8}, "retrieved"),
    ],
)
def test_settings_of_other_contexts_are_refused(config, idle, contexts):
    (name,) = idle
    with pytest.raises(ConfigError, match=f"{name} has no effect where contexts is {contexts}; received {name} "):
        choose_origin(config, idle)
    with pytest.raises(ConfigError, match=f"{name} has no effect where contexts is {contexts}"):
        ContextSettings(origin_config=config, origin=idle)


def test_every_setting_is_of_one_kind_of_contexts_or_of_both():
    of_words, of_retrieved = (set(names) for names in (settings._OF_WORDS, settings._OF_RETRIEVED))
    fields = OriginSettings.model_fields
    assert not of_words & of_retrieved and of_words | of_retrieved < set(fields)
    for name in fields.keys() - {"contexts"}:
        part = fields[name].description.partition(":")[0]
        expected = {"words": of_words, "ray": of_words, "discriminator": of_retrieved, "generator": of_retrieved}.get(
            part
        )
        assert expected is None or name in expected


def test_documents_in_memory_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="An Origin reads documents from files; received"):
        samesense.origin([{"sentences": ["It rained.", "We stayed."]}], output=tmp_path / "o")


def test_refusals(documents, tmp_path):
    with pytest.raises(ModelError, match=r"Cannot open .* as a causal"):
        make(documents, str(tmp_path / "none"), tmp_path / "o")
    with pytest.raises(ConfigError, match="workers is for the embedded executor"):
        OriginSettings(workers=2, executor="ray")
