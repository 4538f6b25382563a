"""A template stands around every text, in every reader of a folder."""

import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import AutoModel, AutoTokenizer

import samesense
from samesense.encoder.assembly.build import build, set_prompt
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.assembly.template import set_template
from samesense.encoder.names import split_options
from samesense.errors import ConfigError, ModelError
from samesense.inference.models.load import load
from tests.command import run_command
from tests.context.worlds import small_worded_causal

TEMPLATE = 'the cat "{text}" is in one word:"'
TEXTS = ["a man eats", "rain", "the dog runs in the garden"]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return str(small_worded_causal(tmp_path_factory.mktemp("decoder")))


def last_states(folder, texts):
    """The hidden state of the last token of each text in the template, by transformers alone."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    pieces = TEMPLATE.split("{text}")
    rows = []
    for text in texts:
        ids = [tokenizer(part, add_special_tokens=False, return_tensors="pt") for part in (pieces[0], text, pieces[1])]
        whole = np.concatenate([part["input_ids"][0].numpy() for part in ids])
        hidden = model(input_ids=tokenizer.pad({"input_ids": [whole]}, return_tensors="pt")["input_ids"])
        rows.append(hidden.last_hidden_state[0, -1].detach().numpy())
    return np.array(rows)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_last_token_of_the_template_speaks_for_a_text(decoder):
    model = load(f"{decoder}?template={TEMPLATE}", precision="float32")
    assert "lasttoken pooling" in model.protocol
    np.testing.assert_allclose(unit(model.encode(TEXTS)), unit(last_states(decoder, TEXTS)), atol=1e-5)
    named = load(decoder, prompt=TEMPLATE, precision="float32")
    np.testing.assert_array_equal(named.encode(TEXTS), model.encode(TEXTS))
    assert named.identity == model.identity != load(f"{decoder}?lasttoken", precision="float32").identity


def test_every_reader_of_the_folder_applies_it(decoder, tmp_path):
    model = set_prompt(build(decoder, pooling="lasttoken"), TEMPLATE)
    expected = model.encode(TEXTS)
    model.save(str(tmp_path / "saved"))
    np.testing.assert_allclose(SentenceTransformer(str(tmp_path / "saved")).encode(TEXTS), expected, atol=1e-6)
    samesense.export(str(tmp_path / "saved"), output=tmp_path / "exported")
    np.testing.assert_allclose(unit(load(str(tmp_path / "exported")).encode(TEXTS)), unit(expected), atol=1e-4)


def test_a_long_text_loses_its_own_end_and_not_that_of_the_template(decoder):
    model = build(decoder, pooling="lasttoken", max_seq_length=40)
    tokenizer = set_template(model, TEMPLATE)
    ids = tokenizer("the dog runs " * 100, truncation=True, max_length=40)["input_ids"]
    assert len(ids) == 40 and tokenizer.decode(ids).endswith('" is in one word:"')


def test_marks_of_the_tokenizer_stay_around_it(tiny_trunk):
    tokenizer = set_template(build(str(tiny_trunk)), "the {text} sings")
    ids = tokenizer("the dog sings", add_special_tokens=False)["input_ids"]
    assert tokenizer("dog")["input_ids"] == [tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]


def test_a_training_keeps_it(decoder, toy_pairs, tmp_path):
    run = samesense.train(
        str(toy_pairs / "train.tsv"),
        model=decoder,
        prompt=TEMPLATE,
        max_steps=1,
        output=tmp_path / "run",
        precision="float32",
        batch_size=4,
        folds="none",
        report=False,
    )
    saved = SentenceTransformer(str(run.model))
    assert saved.tokenizer("rain")["input_ids"] == set_template(build(decoder), TEMPLATE)("rain")["input_ids"]
    assert "lasttoken pooling" in load(str(run.model)).protocol


def test_a_folder_that_wraps_texts_into_a_chat_says_so_in_training(decoder, toy_pairs, tmp_path, caplog):
    caplog.set_level("INFO", "samesense")
    trunk = Transformer(decoder)
    trunk.tokenizer.chat_template = "the dog runs {{ messages[0]['content'] }}"
    trunk.modality_config["message"] = {**trunk.modality_config["text"], "format": "flat"}
    SentenceTransformer(modules=[trunk, Pooling(trunk.get_embedding_dimension())]).save(str(tmp_path / "chat"))
    chat = SentenceTransformer(str(tmp_path / "chat"))
    around = len(chat.preprocess(["a"])["input_ids"][0]) - len(trunk.tokenizer("a")["input_ids"])
    assert around > 0
    options = {"max_steps": 1, "batch_size": 4, "precision": "float32", "folds": "none", "report": False}
    for name, is_said in ((tmp_path / "chat", True), (decoder, False)):
        caplog.clear()
        samesense.train(str(toy_pairs / "train.tsv"), model=name, output=tmp_path / f"run{is_said}", **options)
        assert (f"each text in the chat template of the tokenizer ({around} tokens)" in caplog.text) == is_said
    with pytest.raises(ModelError, match='copy of the start\'s folder, without "message" in modality_config of its'):
        samesense.export(tmp_path / "chat", output=tmp_path / "exported")
    settings = tmp_path / "chat" / "sentence_bert_config.json"
    values = json.loads(settings.read_text())
    del values["modality_config"]["message"]
    settings.write_text(json.dumps(values))
    samesense.export(tmp_path / "chat", output=tmp_path / "exported")


def test_by_its_name_in_a_command(decoder, capsys):
    code, out, _ = run_command(capsys, "similarity", f"{decoder}?lasttoken&template={TEMPLATE}", *TEXTS[:2])
    assert code == 0 and -1 <= float(out) <= 1


def test_names_and_refusals(decoder, tiny_trunk):
    assert split_options("m?cls") == ("m", "cls", None)
    assert split_options("m?template=is {text}?") == ("m", None, "is {text}?")
    assert split_options("a?b?cls") == ("a?b", "cls", None)
    assert split_options("a?b?cls&template=is {text}?") == ("a?b", "cls", "is {text}?")
    with pytest.raises(ConfigError, match=r"After \? stands the pooling of a model"):
        split_options("m?neither")
    with pytest.raises(ConfigError, match=r"A template holds \{text\} once"):
        load(f"{decoder}?template=" + "{text} {text}")
    templated = set_prompt(build(decoder), TEMPLATE)
    with pytest.raises(ConfigError, match="has a template already"):
        set_prompt(templated, TEMPLATE)
    with pytest.raises(ConfigError, match="A template is a prompt; received both"):
        load(f"{decoder}?template={TEMPLATE}", prompt="query: ")
    with pytest.raises(ConfigError, match="a cross-encoder reads both together"):
        set_prompt(build_cross(str(tiny_trunk), seed=1), TEMPLATE)
    with pytest.raises(ModelError, match="needs a transformer with a fast tokenizer"):
        set_template(SentenceTransformer(modules=[static_embedding()]), TEMPLATE)


def static_embedding():
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    return StaticEmbedding(Tokenizer(WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]")), embedding_dim=2)
