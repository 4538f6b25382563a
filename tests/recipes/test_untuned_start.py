"""Which starts count as never tuned for sentences, by the cone of their vectors and by paraphrases."""

import numpy as np
import pytest

from samesense.inference.models.load import load
from samesense.recipes.run.outcome.measure import random_cosines
from samesense.recipes.run.outcome.untuned_start import _paraphrases, is_untuned, paraphrase_recall

TEXTS = [f"text {number}" for number in range(100)]


def made(*, offset, languages):
    """Return a model of vectors around an offset, which knows the paraphrases of some languages."""
    draw = np.random.default_rng(0)
    meanings: dict[str, np.ndarray] = {}
    for language, sides in _paraphrases().items():
        for sentence, paraphrase in zip(*sides, strict=True):
            meanings[sentence] = draw.standard_normal(64)
            meanings[paraphrase] = meanings[sentence] if language in languages else draw.standard_normal(64)

    def encode(texts):
        rows = np.array([meanings.get(text, draw.standard_normal(64)) for text in texts])
        rows[:, 0] += offset
        return rows

    return load(encode)


@pytest.mark.parametrize(
    ("offset", "languages", "untuned"),
    [(0, (), False), (20, (), True), (20, ("en",), False), (20, ("zh",), False), (20, ("en", "de", "es", "zh"), False)],
)
def test_a_narrow_cone_alone_does_not_make_a_start_untuned(offset, languages, untuned):
    model = made(offset=offset, languages=languages)
    assert is_untuned(model, random_cosines(model, TEXTS)) == untuned
    assert not is_untuned(model, None)


def test_the_default_model_finds_paraphrases_that_share_hardly_a_word():
    assert paraphrase_recall(load("default"))["en"] == 1.0
    for sentences, paraphrases in _paraphrases().values():
        assert len(sentences) == len(set(sentences)) >= 12
        assert len(paraphrases) == len(set(paraphrases)) == len(sentences)


def test_random_weights_do_not(tiny_trunk):
    assert max(paraphrase_recall(load(str(tiny_trunk))).values()) < 0.5
