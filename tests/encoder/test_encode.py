import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from samesense.encoder import distinct
from samesense.encoder.assembly.build import build
from samesense.encoder.encode import encode
from samesense.encoder.saving.storage import save
from samesense.errors import ModelError, OutputError
from samesense.inference.models.load import load
from tests.context.worlds import small_causal


def test_rows_stay_with_their_texts_and_repeats_are_computed_once(tiny, sentences):
    texts = [*sentences, *sentences[::-1], sentences[3]]
    counts = []
    vectors = encode(tiny, texts, on_progress=counts.append)
    np.testing.assert_array_equal(vectors[: len(sentences)], vectors[len(sentences) : -1][::-1])
    np.testing.assert_array_equal(vectors[-1], vectors[3])
    assert sum(counts) == len(texts)
    assert vectors.dtype == np.float32


def test_equals_sentence_transformers(tiny, sentences):
    assert isinstance(tiny, SentenceTransformer)
    expected = tiny.encode(sentences)
    np.testing.assert_allclose(encode(tiny, sentences, precision="float32"), expected, atol=1e-5)
    unit = encode(tiny, sentences, normalize=True, precision="float32")
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)


def test_bfloat16_is_close(tiny, sentences):
    full, half = (encode(tiny, sentences, precision=p, normalize=True) for p in ("float32", "bfloat16"))
    assert ((full * half).sum(1) > 0.999).all()


def test_default_prompt_is_used(tiny, sentences):
    tiny.prompts["ask"] = "the old man "
    tiny.default_prompt_name = "ask"
    np.testing.assert_allclose(encode(tiny, ["sings"], precision="float32"), tiny.encode(["sings"]), atol=1e-5)


def test_training_mode_is_put_back(tiny):
    tiny.train()
    first = encode(tiny, ["a dog"])
    second = encode(tiny, ["a dog"])
    np.testing.assert_array_equal(first, second)  # no dropout while encoding
    assert tiny.training


def test_empty_list_and_wrong_type(tiny):
    assert encode(tiny, []).shape == (0, 32)
    with pytest.raises(ModelError) as error:
        encode(tiny, ["a", None])
    assert str(error.value) == "Only strings can be encoded; text 1 is None of type NoneType."


def test_forwards_are_bounded_and_without_padding(tiny, sentences, monkeypatch):
    monkeypatch.setattr(distinct, "BLOCK_TEXTS", 17)
    shapes = []
    real = tiny.forward
    monkeypatch.setattr(tiny, "forward", lambda f, **kw: (shapes.append(f["attention_mask"]), real(f, **kw))[1])
    expected = tiny.encode(sentences)
    shapes.clear()
    np.testing.assert_allclose(encode(tiny, sentences, precision="float32", batch_tokens=60), expected, atol=1e-5)
    assert sum(len(mask) for mask in shapes) == len(set(sentences))
    assert all(mask.numel() <= 60 for mask in shapes)
    padded = sum(mask.numel() - int(mask.sum()) for mask in shapes)
    assert padded < 0.1 * sum(mask.numel() for mask in shapes)


@pytest.mark.parametrize("batch_tokens", [1, 40, 10**6])
def test_size_of_the_forwards_changes_nothing(tiny, sentences, batch_tokens):
    vectors = encode(tiny, sentences, precision="float32", batch_tokens=batch_tokens)
    np.testing.assert_allclose(vectors, encode(tiny, sentences, precision="float32"), atol=1e-5)


def test_a_text_without_tokens_is_zeros_beside_any_text(tmp_path):
    model = build(str(small_causal(tmp_path)), device="cpu")
    assert not model.tokenizer("")["input_ids"]
    alone, (first, blank, second) = encode(model, [""]), encode(model, ["a b c", "", "d e"])
    assert not alone.any() and not blank.any()
    np.testing.assert_allclose([first, second], encode(model, ["a b c", "d e"]), atol=1e-6)
    by_themselves = load(model, deterministic=True, precision="float32").encode(["a b c", ""])
    np.testing.assert_allclose(by_themselves, encode(model, ["a b c", ""], precision="float32"), atol=1e-6)


def test_truncated_dimensions(tiny, sentences):
    tiny.truncate_dim = 5
    np.testing.assert_allclose(encode(tiny, sentences, precision="float32"), tiny.encode(sentences), atol=1e-5)


def test_models_without_a_transformer(sentences):
    """Static embeddings have no attention mask, so their rows cannot be cut."""
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = sorted({word for text in sentences for word in text.split()})
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=words[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=6)], device="cpu")
    np.testing.assert_allclose(encode(model, sentences, precision="float32"), model.encode(sentences), atol=1e-6)


def test_save_refuses_to_lose_anything(tiny, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError) as error:
        save(tiny, tmp_path / "model")
    assert str(error.value) == (
        f"{tmp_path / 'model'} is not empty. Choose another output folder, or pass `overwrite` to replace it."
    )
    with pytest.raises(OutputError, match="neither a model nor a run"):
        save(tiny, tmp_path / "model", overwrite=True)
    for name in ("manifest.json", "config.json"):  # files of another program
        (tmp_path / "model" / name).write_text('{"name": "an extension of a browser"}')
        with pytest.raises(OutputError, match="neither a model nor a run"):
            save(tiny, tmp_path / "model", overwrite=True)
    (tmp_path / "model" / "modules.json").write_text("[]")
    save(tiny, tmp_path / "model", overwrite=True)
    assert not (tmp_path / "model" / "notes.txt").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_failed_save_leaves_nothing(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(tiny, "save", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OutputError, match="disk full"):
        save(tiny, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
