import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from samesense.encoder.encode import encode, length_batches
from samesense.encoder.storage import save
from samesense.errors import ModelError, OutputError


def test_rows_stay_with_their_texts_and_repeats_are_computed_once(tiny, sentences):
    texts = [*sentences, *sentences[::-1], sentences[3]]
    seen = []
    vectors = encode(tiny, texts, on_progress=seen.append)
    np.testing.assert_array_equal(vectors[: len(sentences)], vectors[len(sentences) : -1][::-1])
    np.testing.assert_array_equal(vectors[-1], vectors[3])
    assert sum(seen) == len(texts)
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
    one, other = encode(tiny, ["a dog"]), encode(tiny, ["a dog"])
    np.testing.assert_array_equal(one, other)  # no dropout while encoding
    assert tiny.training


def test_empty_list_and_wrong_type(tiny):
    assert encode(tiny, []).shape == (0, 32)
    with pytest.raises(ModelError) as error:
        encode(tiny, ["a", None])
    assert str(error.value) == "Only strings can be encoded; text 1 is None of type NoneType."


def test_batches_are_bounded_and_complete():
    texts = [str(i) * (i % 40 + 1) for i in range(300)]
    batches = list(length_batches(texts, 200))
    assert sorted(t for batch in batches for t in batch) == sorted(texts)
    assert all(len(batch) == 1 or len(batch) * len(batch[0]) <= 200 for batch in batches)


def test_save_refuses_to_lose_anything(tiny, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError) as error:
        save(tiny, tmp_path / "model")
    assert str(error.value) == (
        f"{tmp_path / 'model'} is not empty. Choose another output folder, or pass --overwrite to replace it."
    )
    save(tiny, tmp_path / "model", overwrite=True)
    assert not (tmp_path / "model" / "notes.txt").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_failed_save_leaves_nothing(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(tiny, "save", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(tiny, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
