"""A graph gives what torch gives: for every pooling, head and map, whatever stands beside a text."""

import json
import shutil
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize, Router, Transformer
from sentence_transformers.sentence_transformer.modules import CNN, LSTM, BoW, Pooling, StaticEmbedding, WordWeights
from transformers import AutoModel, AutoTokenizer, LlamaConfig, LlamaModel

import samesense
from samesense.data import read_pairs
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.encode import encode
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, MissingExtraError, ModelError, OutputError
from samesense.inference.onnx import graph as export_graph
from samesense.inference.onnx.encoder import OnnxEncoder
from samesense.inference.onnx.export import export, parity
from samesense.inference.onnx.format import DESCRIPTION, GRAPHS, read_description
from samesense.locks import only_writer_of
from samesense.metrics import spearman
from tests.inference.exported import check_same, headed, plain_rows, static

pytestmark = pytest.mark.slow  # each export imports and runs the exporter

LONG = "the man walks by the river and " * 40
ODD = ["a", "", "  two   dogs\t", LONG, "unknown Words, Zürich!", LONG + "sea"]


@pytest.fixture(scope="module")
def folder(exported):
    return exported


def test_whitening_and_normalisation_are_in_the_graph(folder, sentences):
    texts = [*sentences, *ODD]
    rows = OnnxEncoder(folder).encode(texts)
    np.testing.assert_allclose(rows, plain_rows(SentenceTransformer(str(folder), device="cpu"), texts), atol=2e-6)
    assert rows.shape == (46, 12) and rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_rows_keep_their_order_and_neighbours_change_nothing(folder, sentences):
    encoder = OnnxEncoder(folder)
    texts = [*sentences, *ODD, *sentences[:7]]
    rows = encoder.encode(texts)
    shuffled = np.random.default_rng(0).permutation(len(texts))
    np.testing.assert_allclose(encoder.encode([texts[index] for index in shuffled]), rows[shuffled], atol=2e-6)
    np.testing.assert_array_equal(rows[46:], rows[:7])
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_allclose(encoder.encode([text])[0], row, atol=2e-6)


def test_each_text_once_and_progress_counts_all(folder, sentences):
    done = []
    encoder = OnnxEncoder(folder)
    assert encoder.encode([], normalize=True).shape == (0, 12)
    encoder.encode([*sentences, *sentences], on_progress=done.append)
    assert sum(done) == 80
    with pytest.raises(ModelError, match="text 1 is 3 of type int"):
        encoder.encode(["a", 3])


def test_int8_is_smaller_and_near(folder, sentences):
    description = read_description(folder)
    exact, rough = (OnnxEncoder(folder, name).encode(sentences) for name in ("onnx", "onnx-int8"))
    assert not np.array_equal(exact, rough)
    assert (exact * rough).sum(axis=1).min() > 0.9
    assert set(description.graphs) == {"onnx", "onnx-int8"}
    assert description.parity["onnx"].least_cosine > 0.999999
    assert description.parity["onnx-int8"].least_cosine < description.parity["onnx"].least_cosine


def cosines(encoder, data):
    first, second = (encoder.encode(list(side)).astype(float) for side in (data.sentences1, data.sentences2))
    return (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)


def test_recorded_drift_is_that_of_spearman(folder, toy_pairs):
    data = read_pairs(toy_pairs / "dev.tsv")
    model = SentenceTransformer(str(folder), device="cpu")

    def judged(run):
        first, second = (run(list(side)).astype(float) for side in (data.sentences1, data.sentences2))
        return 100 * spearman(
            (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1), data.labels
        )

    description = read_description(folder)
    exact, rough = (cosines(OnnxEncoder(folder, name), data) for name in ("onnx", "onnx-int8"))
    agreement = description.agreement["onnx-int8"]
    assert agreement.pairs == 60 and agreement.largest == pytest.approx(np.abs(exact - rough).max(), rel=0.2)
    assert agreement.ranks == pytest.approx(spearmanr(exact, rough).statistic, abs=0.01)
    assert description.agreement["onnx"].ranks > 0.9999 and "scores differ by at most 0." in agreement.text()
    drift = description.drift
    assert drift.pairs == 60 and drift.reference == pytest.approx(judged(lambda t: plain_rows(model, t)), abs=1e-3)
    rough = judged(OnnxEncoder(folder, "onnx-int8").encode) - drift.reference
    assert drift.points["onnx-int8"] == pytest.approx(rough, abs=0.5)
    assert drift.points["onnx"] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("name", ["onnx", "onnx-int8"])
def test_deterministic_bits_are_those_of_the_text_alone(folder, sentences, name):
    encoder = OnnxEncoder(folder, name, deterministic=True, threads=3)
    texts = [*sentences, *ODD]
    rows = encoder.encode(texts)
    np.testing.assert_array_equal(encoder.encode(texts[::-1])[::-1], rows)
    np.testing.assert_array_equal(np.concatenate([encoder.encode([text]) for text in texts]), rows)
    np.testing.assert_array_equal(OnnxEncoder(folder, name, deterministic=True, threads=1).encode(texts), rows)
    if name == "onnx-int8":  # what it is for: the scale of a batch is shared by its texts
        assert not np.array_equal(OnnxEncoder(folder, name).encode(texts), rows)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_deterministic_bits_by_torch(folder, sentences, precision):
    model = samesense.load(str(folder), backend="torch", precision=precision, device="cpu", deterministic=True)
    texts = [*sentences[:12], *ODD]
    rows = model.encode(texts)
    np.testing.assert_array_equal(model.encode(texts[::-1])[::-1], rows)
    np.testing.assert_array_equal(np.concatenate([model.encode([text]) for text in texts]), rows)
    usual = encode(model.encoder, texts, precision=precision)
    np.testing.assert_allclose(rows, usual, atol=1e-5 if precision == "float32" else 0.2)


@pytest.mark.long
@pytest.mark.parametrize("pooling", ["max", "lasttoken", "last-2", "first-last"])
def test_every_pooling(tiny_trunk, tmp_path, sentences, pooling):
    encoder = check_same(build(str(tiny_trunk), device="cpu", pooling=pooling), tmp_path / "out", [*sentences, *ODD])
    assert encoder.description.pooling == pooling


def test_several_layers_a_dense_head_and_a_prompt(tiny_trunk, tmp_path, sentences):
    encoder = check_same(headed(tiny_trunk), tmp_path / "out", [*sentences, *ODD])
    assert encoder.description.pooling == "first-last (first = embeddings)"
    assert encoder.description.prompt == "the dog " and encoder.description.dim == 8
    assert "prompt 'the dog '" in encoder.protocol


def test_a_static_model_and_a_text_without_tokens(tiny_trunk, tmp_path, sentences):
    encoder = check_same(static(tiny_trunk), tmp_path / "out", [*sentences, *ODD])
    assert not encoder.encode([""]).any()


def test_padding_stands_on_the_side_of_the_model(folder):
    encoder = OnnxEncoder(folder)
    encodings = encoder._encodings(["a dog", "a dog eats"], "")
    ids, width = [encoding.ids for encoding in encodings], 6
    right = encoder._padded("input_ids", encodings, width)
    assert right.tolist() == [row + [0] * (width - len(row)) for row in ids]
    encoder.description = encoder.description.model_copy(update={"padding_side": "left", "pad_token": 7})
    left, mask = (encoder._padded(name, encodings, width) for name in ("input_ids", "attention_mask"))
    assert left.tolist() == [[7] * (width - len(row)) + row for row in ids]
    assert mask.tolist() == [[0] * (width - len(row)) + [1] * len(row) for row in ids]


def test_a_model_whose_vectors_depend_on_padding_is_refused(one_layer, tmp_path):
    model = build(str(one_layer), device="cpu")
    model.tokenizer.padding_side = "left"  # a BERT counts positions from the padding on
    with pytest.raises(ModelError, match="the model's own vectors"):
        export(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_graph_that_strays_is_refused(folder, sentences):
    model = SentenceTransformer(str(folder), device="cpu")
    reference = encode(model, sentences, precision="float32")
    reference[3] = -reference[3]
    with pytest.raises(ModelError, match=r"the model's own vectors; a cosine with them is -1\.0"):
        parity(OnnxEncoder(folder), reference, sentences)


def test_what_cannot_be_exported_says_why(tiny_trunk, folder, tmp_path, monkeypatch):
    cross = save(build_cross(str(tiny_trunk), device="cpu"), tmp_path / "cross")
    with pytest.raises(ModelError, match="is a cross-encoder, which has none"):
        export(str(cross), tmp_path / "out")
    with pytest.raises(OutputError, match="is not empty"):
        export(str(tiny_trunk), folder)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"onnx is needed here.*samesense\[export\]"):
        export_graph.write_int8(tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert not (tmp_path / "out").exists() and list(tmp_path.glob(".*")) == []


def test_whatever_is_replaced_goes_once_the_new_folder_is_whole(tiny_trunk, folder, tmp_path, monkeypatch):
    target = tmp_path / "out"
    shutil.copytree(tiny_trunk, target)
    (target / "old").touch()
    monkeypatch.setattr("samesense.inference.onnx.export._write", lambda *_: read_description(folder))

    def fail(*_):
        raise ModelError("checked and refused")

    monkeypatch.setattr("samesense.inference.onnx.export._compare", fail)
    with pytest.raises(ModelError, match="checked and refused"):
        export(str(tiny_trunk), target, overwrite=True)
    assert (target / "old").is_file() and not (target / DESCRIPTION).exists()
    monkeypatch.setattr("samesense.inference.onnx.export._compare", lambda *_: {})
    export(str(tiny_trunk), target, overwrite=True)
    assert (target / DESCRIPTION).is_file() and not (target / "old").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_second_export_to_a_folder_is_refused_at_the_start(tiny_trunk, folder, tmp_path, monkeypatch):
    target = tmp_path / "new" / "out"
    monkeypatch.setattr("samesense.inference.onnx.export._open", lambda model: pytest.fail("nothing is loaded"))
    with only_writer_of(target), pytest.raises(OutputError, match="one writer at a time"):
        export(str(tiny_trunk), target)

    @contextmanager
    def ended_meanwhile(path):
        shutil.copytree(folder, path)
        yield

    monkeypatch.setattr("samesense.inference.onnx.export.only_writer_of", ended_meanwhile)
    with pytest.raises(OutputError, match="is not empty"):
        export(str(tiny_trunk), target)
    assert [path.name for path in target.parent.iterdir()] == ["out"]


def test_a_tokenizer_that_reads_otherwise_is_refused(tiny_trunk, tmp_path, monkeypatch):
    model = build(str(tiny_trunk), device="cpu")
    real = model.preprocess
    monkeypatch.setattr(
        model, "preprocess", lambda texts, **options: real(["dog " + text for text in texts], **options)
    )
    monkeypatch.setattr("samesense.inference.onnx.export.save", None)  # it is refused before anything is written
    with pytest.raises(ModelError, match=r"reads text by its tokenizer\.json alone; for 'a' that gives 3 ids"):
        export(model, tmp_path / "out")
    assert not (tmp_path / "out").exists() and list(tmp_path.glob(".*")) == []


MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


@pytest.mark.parametrize("side", ["right", pytest.param("left", marks=pytest.mark.long)])
def test_a_prompt_that_no_pooling_reads(one_layer, tmp_path, sentences, side):
    if side == "left":  # a model that counts no positions from the padding on
        tokenizer = AutoTokenizer.from_pretrained(one_layer, padding_side=side)
        config = LlamaConfig(
            vocab_size=100,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            pad_token_id=0,
        )
        one_layer = tmp_path / "trunk"
        LlamaModel(config).save_pretrained(one_layer)
        tokenizer.save_pretrained(one_layer)
    trunk = Transformer(str(one_layer))
    pooling = Pooling(trunk.get_embedding_dimension(), MODES, include_prompt=False)
    model = SentenceTransformer(modules=[trunk, pooling], prompts={"mine": "the old dog: "}, default_prompt_name="mine")
    texts = [text for text in (*sentences, *ODD) if text]
    check_same(model.to("cpu").eval(), tmp_path / "out", texts)
    whole = SentenceTransformer(modules=[trunk, Pooling(pooling.embedding_dimension, MODES)], device="cpu")
    assert not np.allclose(whole.encode(texts[0]), OnnxEncoder(tmp_path / "out").encode(texts[:1])[0], atol=0.01)


@pytest.mark.parametrize("seed", range(20))
def test_tokens_behind_a_prompt_are_those_of_sentence_transformers(seed):
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, 9, (7,), generator=draw)
    mask = (torch.arange(9) < lengths.unsqueeze(1)).long()
    mask[int(torch.randint(7, (1,), generator=draw))] = 1  # a row without padding
    for sided_mask in (mask, mask.flip(1)):
        for prompt in range(1, 9):
            expected = Pooling._exclude_prompt_from_mask(sided_mask, prompt)
            assert torch.equal(export_graph._without_prompt(sided_mask, prompt), expected)


class Doubled(Normalize):
    """A module of somebody else."""


def models_that_cannot_be_recorded(folder):
    trunk = Transformer(str(folder))
    pooling = Pooling(32, "mean")
    tokenizer = trunk.tokenizer.backend_tokenizer
    words = StaticEmbedding(tokenizer, embedding_dim=32)
    yield [Router.for_query_document([words], [trunk, pooling])], "has a Router with routes"
    yield [BoW(["dog", "cat"])], "this model begins with BoW"
    yield [trunk, LSTM(32, 8), Pooling(16, "mean")], "cannot hold a module of the kind LSTM"
    yield [trunk, CNN(32, 8, [1, 3], [1, 1]), Pooling(16, "mean")], "cannot hold a module of the kind CNN"
    yield [trunk, WordWeights(["dog"], {"dog": 2.0}), pooling], "cannot hold a module of the kind WordWeights"
    yield [trunk, pooling, BoW(["dog"])], "cannot hold a module of the kind BoW"


def test_what_a_graph_cannot_hold_is_refused_in_a_sentence_before_anything_is_written(
    tiny_trunk, tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr("samesense.inference.onnx.export.save", None)
    for modules, message in models_that_cannot_be_recorded(tiny_trunk):
        with pytest.raises(ModelError, match=message) as error:
            export(SentenceTransformer(modules=modules, device="cpu"), tmp_path / "out")
        assert "\n" not in str(error.value) and len(str(error.value)) < 300
    written = capfd.readouterr()
    assert len(written.out + written.err) < 500
    assert list(tmp_path.iterdir()) == []


def test_a_module_of_somebody_else_is_recorded_where_it_is_one_of_the_known(one_layer, tmp_path, sentences, caplog):
    modules = [*build(str(one_layer), device="cpu", pooling="cls"), Doubled()]
    encoder = check_same(SentenceTransformer(modules=modules, device="cpu"), tmp_path / "out", sentences)
    assert encoder.description.pooling == "cls"
    # Texts of the check are nobody's loss.
    assert "longer than" not in caplog.text and "hold nothing" not in caplog.text


def test_what_torch_cannot_record_is_said_in_a_sentence(one_layer, tmp_path, capfd):
    model = build(str(one_layer), device="cpu")
    real = model[1].forward

    def forward(features, **options):
        if features["attention_mask"].sum() > 5:  # asks for a value, as no graph can
            features = dict(features)
        return real(features, **options)

    model[1].forward = forward
    with pytest.raises(ModelError, match="torch cannot record this model as a graph") as error:
        export(model, tmp_path / "out")
    written = capfd.readouterr()
    assert "\n" not in str(error.value) and len(str(error.value)) < 600
    assert len(written.out + written.err) < 2000, written
    assert list(tmp_path.iterdir()) == []


def test_states_of_tokens_are_a_second_output(folder, sentences):
    encoder = OnnxEncoder(folder)
    encodings = encoder._encodings(sentences[:4], "")
    width = max(len(item.ids) for item in encodings)
    feed = {name: encoder._padded(name, encodings, width) for name in encoder.description.inputs}
    vectors, states = encoder._session.run(["sentence_embedding", "last_hidden_state"], feed)
    assert [item.name for item in encoder._session.get_outputs()] == ["sentence_embedding", "last_hidden_state"]
    trunk = AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = trunk(**{name: torch.from_numpy(value) for name, value in feed.items()}).last_hidden_state.numpy()
    np.testing.assert_allclose(states, expected, atol=1e-5)
    np.testing.assert_allclose(vectors, encoder.encode(sentences[:4]), atol=2e-6)


def test_a_damaged_folder_is_named(folder, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(folder, damaged)
    (damaged / GRAPHS["onnx"]).write_bytes(b"not a graph")
    with pytest.raises(ModelError, match="is not the graph that was exported and checked"):
        OnnxEncoder(damaged)
    shutil.copy(folder / GRAPHS["onnx"], damaged / GRAPHS["onnx"])
    (damaged / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="Cannot open the tokenizer"):
        OnnxEncoder(damaged)
    content = json.loads((damaged / DESCRIPTION).read_text())
    (damaged / DESCRIPTION).write_text(json.dumps(content | {"format": 99}))
    with pytest.raises(ModelError, match="is of format 99; this samesense reads 1"):
        samesense.load(str(damaged))
    (damaged / DESCRIPTION).write_text("half of")
    with pytest.raises(ModelError, match="Export the model again"):
        samesense.load(str(damaged))


def test_load_opens_what_is_asked_for(folder, sentences, tmp_path, tiny_trunk):
    by_onnx = samesense.load(str(folder))
    assert by_onnx.exported is not None and by_onnx.choice.backend == "onnx"
    by_torch = samesense.load(str(folder), backend="torch", precision="float32", device="cpu")
    np.testing.assert_allclose(by_onnx.encode(sentences), by_torch.encode(sentences), atol=2e-6)
    assert samesense.load(str(folder), backend="onnx-int8").exported.name == "onnx-int8"
    assert by_onnx.similarity("a dog", "a dog") == 1.0
    with pytest.raises(ModelError, match="Open it with the backend torch"):
        _ = by_onnx.encoder
    with pytest.raises(ModelError, match=r"opens exported folders only.*--int8"):
        samesense.load(str(tiny_trunk), backend="onnx-int8")
    with pytest.raises(ConfigError, match="for bfloat16 take the backend torch"):
        samesense.load(str(folder), backend="onnx", precision="bfloat16")
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare)
    for path in bare.rglob("*.safetensors"):
        path.unlink()
    with pytest.raises(ModelError, match="was exported without torch's weights"):
        samesense.load(str(bare), backend="torch")
    np.testing.assert_array_equal(samesense.load(str(bare)).encode(sentences), by_onnx.encode(sentences))


def test_two_identities_only_for_two_ways(folder):
    assert OnnxEncoder(folder).identity == OnnxEncoder(folder).identity != OnnxEncoder(folder, "onnx-int8").identity
