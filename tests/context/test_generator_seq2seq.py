import numpy as np
import pytest
import torch

from samesense.context.corpus.corpus import Window
from samesense.context.generator import seq2seq as generator_seq2seq
from samesense.context.generator.base import KINDS, Cells, batches_of, groups_of, kinds_of
from samesense.context.generator.seq2seq import open_seq2seq
from samesense.context.generator.transformer import Seq2Seq
from samesense.errors import DataError, ModelError
from tests.context.worlds import log_probability, small_generator, some_sentences, some_windows

END = 2


def slow_total(generator, kind, sentence, window):
    """Sum log p token by token: the encoder without padding, the decoder from scratch on every prefix."""
    texts_at = {**{index - len(window.left): text for index, text in enumerate(window.left)}, 0: sentence}
    texts_at |= {index + 1: text for index, text in enumerate(window.right)}
    after = {"right": lambda p: p > 0, "continuation": lambda p: p > 0}
    is_target = {"sentence": lambda p: p == 0, "left": lambda p: p < 0, **after}[kind]
    model = generator.models[kind]

    def tokens(text):
        return [*generator.tokenizer.encode(text).ids[: model.shape.max_tokens - 1], END]

    read = [
        (tokens(texts_at[p]), p) for p in sorted(texts_at) if not is_target(p) and (kind != "continuation" or p == 0)
    ]
    if kind == "left":  # the centre is always read first
        read.sort(key=lambda piece: piece[1] != 0)
    rows = [[piece] for piece in read] if generator.reading == "apart" else [read]
    states = []
    for row in rows:
        ids = torch.tensor([[token for piece, _ in row for token in piece]])
        inside = torch.tensor([[index for piece, _ in row for index in range(len(piece))]])
        which = torch.tensor([[p for piece, p in row for _ in piece]])
        states.append(model.encode(ids, inside, which))
    memory = torch.cat(states, dim=1)
    target = [
        (token, index, p) for p in sorted(texts_at) if is_target(p) for index, token in enumerate(tokens(texts_at[p]))
    ]
    total = 0.0
    before = 1
    inputs = []
    for token, index, p in target:
        inputs.append((before, index, p))
        columns = [torch.tensor([column]) for column in zip(*inputs, strict=True)]
        state = model.decode(*columns, memory, torch.zeros(memory.shape[:2], dtype=torch.bool))[0, -1]
        scores = model.logits(state).double()
        total += float(scores[token] - torch.log(torch.exp(scores).sum()))
        before = token
    return total, len(target)


@pytest.mark.parametrize("condition", ["both", "sentence"])
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("reading", ["apart", "together"])
def test_probabilities_equal_a_token_by_token_computation(reading, separate, condition):
    generator = small_generator(reading, separate=separate, kinds=kinds_of(condition))
    sentences = some_sentences(3)
    windows = some_windows(4)
    with torch.inference_mode():
        for kind in kinds_of(condition):
            values, lengths = log_probability(generator, kind, sentences, windows)
            for row, sentence in enumerate(sentences):
                for column, window in enumerate(windows):
                    total, length = slow_total(generator, kind, sentence, window)
                    assert lengths[row, column] == length
                    assert values[row, column] * length == pytest.approx(total, abs=2e-4)
            assert values.std() > 0.01


def test_shared_states_change_nothing(monkeypatch):
    generator = small_generator()
    sentences = some_sentences(20)
    windows = some_windows(3)
    values = []
    groups = []
    decode = Seq2Seq.decode

    def counted(self, tokens, positions, sentences, memory, absent):
        groups.append(len(tokens) // len(memory))
        return decode(self, tokens, positions, sentences, memory, absent)

    monkeypatch.setattr(Seq2Seq, "decode", counted)
    for worth in (1, 10**9):
        monkeypatch.setattr(generator_seq2seq, "WORTH_SHARING", worth)
        values.append(log_probability(generator, "sentence", sentences, windows)[0])
    np.testing.assert_allclose(values[0], values[1], atol=2e-6)
    assert groups == [20, 20, 20, 1]


@pytest.mark.parametrize("budget", [1, 40, 10**6])
def test_neighbours_in_a_batch_change_nothing(monkeypatch, budget):
    generator = small_generator()
    sentences = some_sentences(9, most=20)
    windows = some_windows(5)
    whole = generator.measure(Cells.grid(sentences, windows))
    monkeypatch.setattr(generator_seq2seq, "CPU_TOKENS", budget)
    monkeypatch.setattr(generator_seq2seq, "CELLS", {"apart": 7})
    cells = Cells.grid(sentences, windows)
    some = np.array([40, 3, 3, 17, 0])
    subset = generator.measure(cells.take(some))
    np.testing.assert_allclose(subset.totals, whole.totals[:, some], atol=1e-4)
    np.testing.assert_array_equal(subset.tokens, whole.tokens[:, some])


def test_the_sentence_counts_only_where_it_is_read_and_long_ones_are_cut():
    generator = small_generator()
    windows = some_windows(2)
    long = " ".join(some_sentences(6))
    _, lengths = log_probability(generator, "sentence", [long, "a dog."], windows)
    assert lengths.tolist()[0] == [12, 12]
    values, lengths = log_probability(generator, "left", ["a dog.", "the red bird sings."], windows)
    assert (lengths[0] == lengths[1]).all()
    assert (values[0] != values[1]).all()


def test_saved_and_opened_is_the_same_generator(tmp_path):
    sentences = some_sentences(4)
    windows = some_windows(3)
    for separate in (False, True):
        generator = small_generator(separate=separate)
        folder = tmp_path / str(separate)
        generator.save(folder)
        assert len(list(folder.glob("*.safetensors"))) == (3 if separate else 1)
        again = open_seq2seq(folder)
        assert again.identity == generator.identity
        for kind in KINDS:
            np.testing.assert_array_equal(
                log_probability(again, kind, sentences, windows)[0],
                log_probability(generator, kind, sentences, windows)[0],
            )


def test_another_weight_is_another_identity():
    assert small_generator(seed=0).identity == small_generator(seed=0).identity
    assert small_generator(seed=0).identity != small_generator(seed=1).identity
    assert small_generator("apart").identity != small_generator("together").identity


def test_half_precision_is_near():
    generator = small_generator()
    sentences = some_sentences(3)
    windows = some_windows(3)
    exact = log_probability(generator, "right", sentences, windows)[0]
    generator.precision = "bfloat16"
    near = log_probability(generator, "right", sentences, windows)[0]
    assert 0 < np.abs(near - exact).max() < 0.1


def test_refusals(tmp_path):
    generator = small_generator()
    edge = Window((), "a cat.", ("a dog.",), id=7)
    with pytest.raises(DataError, match=r"To generate the left.* context 7 has 0 sentences before its centre and 1"):
        log_probability(generator, "left", ["a man."], [edge])
    assert np.isfinite(log_probability(generator, "right", ["a man."], [edge])[0]).all()
    with torch.no_grad():
        generator.models["right"].norm.weight.fill_(float("nan"))
    with pytest.raises(ModelError, match=r"the right is nan for 'a man\.' in context 0"):
        log_probability(generator, "right", ["a man."], some_windows(1))
    with pytest.raises(ModelError, match=r"trained for sentence, left, right; it was asked for the continuation"):
        log_probability(small_generator(), "continuation", ["a man."], some_windows(1))
    small_generator().save(tmp_path / "g")
    (tmp_path / "g" / "sentence.safetensors").write_bytes(b"half")
    with pytest.raises(ModelError, match="Cannot open"):
        open_seq2seq(tmp_path / "g")
    with pytest.raises(DataError, match=r"generator\.json"):
        open_seq2seq(tmp_path)


def test_batches_hold_everyone_once_within_the_budget():
    draw = np.random.default_rng(0)
    for budget in (1, 50, 400):
        lengths = draw.integers(1, 60, size=300)
        batches = list(batches_of(lengths, budget))
        assert sorted(np.concatenate(batches).tolist()) == list(range(300))
        for batch in batches:
            assert len(batch) == 1 or len(batch) * lengths[batch].max() <= budget
    assert list(batches_of([], 10)) == []


def test_groups_are_those_of_a_dictionary():
    keys = np.random.default_rng(1).integers(0, 30, size=500)
    expected = {}
    for index, key in enumerate(keys.tolist()):
        expected.setdefault(key, []).append(index)
    assert [group.tolist() for group in groups_of(keys)] == [expected[key] for key in sorted(expected)]
    assert groups_of(np.empty(0, dtype=np.int64)) == []
