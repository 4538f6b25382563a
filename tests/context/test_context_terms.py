import numpy as np
import pytest

from samesense.context.corpus.corpus import Window
from samesense.context.generator.base import KINDS, Cells, Generator, LogProbs, NoGenerator
from samesense.context.origin import terms as module
from samesense.context.origin.similarity import Weights
from samesense.context.origin.terms import Terms, window_keys
from samesense.errors import ModelError
from tests.context.worlds import WordCounts, some_sentences, some_windows


class Lengths(Generator):
    """Stub of a model: its numbers depend on the texts of a cell, and it counts requests."""

    protocol = "lengths"

    def __init__(self, identity="one"):
        self.identity, self.asked = identity, 0

    def measure(self, cells, kinds=KINDS):
        self.asked += len(cells) * len(kinds)
        totals = np.array(
            [
                [
                    self.total(kind, cells.sentences[row], cells.windows[column])
                    for row, column in zip(cells.rows, cells.columns, strict=True)
                ]
                for kind in kinds
            ]
        ).reshape(len(kinds), len(cells))
        return LogProbs(totals, np.full(totals.shape, 2))

    def total(self, kind, sentence, window):
        side = {"sentence": window.left[-1], "left": window.left[0], "right": window.right[0]}[kind]
        return -abs(len(sentence) - len(side)) - 0.125 * len(set(sentence) ^ set(side)) - len(self.identity)


@pytest.fixture
def world():
    windows = some_windows(7)
    return some_sentences(6), windows, WordCounts(windows)


def test_terms_of_every_cell(world):
    sentences, windows, discriminator = world
    generator = Lengths()
    values = Terms(discriminator, generator, Weights()).values(Cells.grid(sentences, windows))
    for index, cell in enumerate(values.T):
        sentence = sentences[index // 7]
        window = windows[index % 7]
        fits = discriminator.scores(discriminator.encode([sentence]), [window.id])[0, 0]
        expected = [fits, *(generator.total(kind, sentence, window) / 2 for kind in KINDS)]
        np.testing.assert_allclose(cell, expected, rtol=1e-6)


def test_nothing_is_computed_twice(world, tmp_path, monkeypatch):
    sentences, windows, discriminator = world
    monkeypatch.setattr(module, "BLOCK_CELLS", 10)
    cells = Cells.grid(sentences, windows)
    first = Lengths()
    early = Terms(discriminator, first, Weights(), tmp_path)
    some = early.values(cells.take(np.arange(0, 42, 2)))
    assert first.asked == early.computed == 21 * 3
    whole = early.values(cells)
    assert first.asked == 42 * 3
    np.testing.assert_array_equal(whole[:, ::2], some)
    later = Lengths()
    np.testing.assert_array_equal(Terms(discriminator, later, Weights(), tmp_path).values(cells), whole)
    assert later.asked == 0
    fewer = Lengths()
    partial = Terms(discriminator, fewer, Weights(left=0, discriminative=0), tmp_path).values(cells)
    assert fewer.asked == 0
    np.testing.assert_array_equal(partial[[1, 3]], whole[[1, 3]])
    assert not partial[[0, 2]].any()


def test_another_model_sentence_or_context_is_computed_again(world, tmp_path):
    sentences, windows, discriminator = world
    Terms(discriminator, Lengths(), Weights(), tmp_path).values(Cells.grid(sentences, windows))
    other_generator = Lengths("another")
    values = Terms(discriminator, other_generator, Weights(), tmp_path).values(Cells.grid(sentences, windows))
    assert other_generator.asked == 42 * 3
    assert values[1, 0] == np.float32(other_generator.total("sentence", sentences[0], windows[0]) / 2)
    changed = Window(windows[0].left, "x", (*windows[0].right[:-1], "Another end."), id=0)
    counting = Lengths()
    Terms(discriminator, counting, Weights(), tmp_path).values(Cells.grid([sentences[0]], [changed]))
    assert counting.asked == 3


def test_a_model_without_weight_is_not_asked(world):
    sentences, windows, discriminator = world
    generator = Lengths()
    cells = Cells.grid(sentences, windows)
    Terms(discriminator, generator, Weights(sentence=0, left=0, right=0)).values(cells)
    assert (generator.asked, discriminator.asked) == (0, 6)
    Terms(discriminator, generator, Weights(discriminative=0, left=0)).values(cells)
    assert (generator.asked, discriminator.asked) == (42 * 2, 6)


def test_statistics_are_those_of_the_reference(world, tmp_path, monkeypatch):
    _, windows, discriminator = world
    monkeypatch.setattr(module, "BLOCK_WINDOWS", 3)
    reference = some_sentences(11, seed=9)
    generator = Lengths()
    terms = Terms(discriminator, generator, Weights(), tmp_path)
    statistics = terms.statistics(windows, reference)
    grid = Terms(discriminator, Lengths(), Weights()).values(Cells.grid(reference, windows)).reshape(4, 11, 7)
    np.testing.assert_allclose(statistics.means, grid.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(statistics.deviations, grid.std(axis=1), rtol=1e-6)
    assert generator.asked == 11 * 7 * 3
    again = terms.statistics(windows[::-1], reference)
    np.testing.assert_array_equal(again.means, statistics.means[:, ::-1])
    assert generator.asked == 11 * 7 * 3
    terms.statistics(windows, reference[:-1])
    assert generator.asked == 11 * 7 * 3 + 10 * 7 * 3


def test_windows_are_ranked_by_the_discriminator(world):
    sentences, _, discriminator = world
    terms = Terms(discriminator, Lengths(), Weights())
    pools = [np.array([5, 1, 3]), np.array([], dtype=np.int64), np.arange(7)]
    for most in (9, 2):
        for sentence, pool, ranked in zip(sentences, pools, terms.ranked(sentences[:3], pools, most), strict=False):
            scores = dict(zip(pool, discriminator.scores(discriminator.encode([sentence]), pool)[0], strict=True))
            assert ranked.tolist() == sorted(pool, key=lambda i: (-scores[i], i))[:most]


def test_pools_with_much_in_common_are_scored_at_once(world, monkeypatch):
    sentences, _, discriminator = world
    terms = Terms(discriminator, Lengths(), Weights())
    calls = []
    scores = type(discriminator).scores

    def counted(self, vectors, windows):
        calls.append((len(vectors), len(windows)))
        return scores(self, vectors, windows)

    monkeypatch.setattr(type(discriminator), "scores", counted)
    terms.ranked(sentences[:2], [np.arange(1, 7), np.arange(6)], 3)
    assert calls == [(2, 7)]
    terms.ranked(sentences[:3], [np.array([1]), np.array([5]), np.array([3])], 3)
    assert calls[1:] == [(1, 1)] * 3


def test_without_a_generator_only_the_discriminator_is_asked(world):
    sentences, windows, discriminator = world
    grid = Cells.grid(sentences, windows)
    alone = Terms(discriminator, NoGenerator(), Weights(sentence=0, left=0, right=0)).values(grid)
    assert alone[0].any() and not alone[1:].any()
    with pytest.raises(ModelError, match="Without a generator there is no probability of left"):
        Terms(discriminator, NoGenerator(), Weights(sentence=0, right=0)).values(grid)


def test_the_centre_of_a_window_is_not_in_its_key():
    first, second = (Window(("a",), centre, ("b",), id=0) for centre in "xy")
    moved = Window(("a", "b"), "x", (), id=0)
    keys = window_keys([first, second, moved]).tolist()
    assert keys[0] == keys[1] != keys[2]
