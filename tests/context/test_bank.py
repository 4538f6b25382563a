import numpy as np
import pytest
from transformers import GenerationConfig

import samesense
from samesense.context.corpus.corpus import Corpus
from samesense.context.generator.base import NoGenerator
from samesense.context.generator.language_models import open_language_model
from samesense.context.generator.pretrained import start_mark
from samesense.context.origin import reader as module
from samesense.context.origin.bank import Bank
from samesense.context.origin.banked import BankOrigin, parts_of, window_shares
from samesense.context.origin.blocks import Block, joined, read_blocks, write_blocks
from samesense.context.origin.reader import Reader
from samesense.context.origin.sampled import ContinuationScore
from samesense.errors import ConfigError, DataError, ModelError
from samesense.execution.unread import counted
from tests.context.worlds import small_causal, some_documents, some_sentences, tokenizer_of
from tests.references import bank as twin


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return Reader(open_language_model(str(small_causal(tmp_path_factory.mktemp("causal")))), 1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus.build(tmp_path_factory.mktemp("corpus") / "c", some_documents(8))


@pytest.fixture(scope="module")
def bank(corpus, reader):
    return Bank.draw(corpus, reader.tail, windows=7, tokens=5, seed=1)


def ids(reader, text):
    return reader.generator.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_readings_equal_one_forward_a_window(reader, bank):
    sentences = some_sentences(9)
    found = reader.read(sentences, bank.tails)
    assert (found.logs.shape, found.own.shape) == ((9, 7, 5), (9, 16))
    for row, text in enumerate(sentences):
        for column, tail in enumerate(bank.tails):
            expected = twin.token_logs(reader.generator.model, 1, ids(reader, text), tail.tolist())
            np.testing.assert_allclose(found.logs[row, column], expected, atol=2e-5)
        expected = twin.own_vector(reader.generator.model, 1, ids(reader, text), 1)
        np.testing.assert_allclose(found.own[row], expected, atol=2e-5)
    assert found.logs.std(axis=0).min() > 1e-3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rain stops play", "Rain stops play."), ("It rains.", "It rains."), ("Does it? ", "Does it?"),
        ('He said "no."', 'He said "no."'), ('He said "no"', 'He said "no".'), ("first,", "first."), ("No…", "No…"),
        ("यह पानी है।", "यह पानी है।"), ("هل هذا ماء؟", "هل هذا ماء؟"), ("これは水です｡", "これは水です｡"),
        ("(as it was)", "(as it was)."), ("雨停了", "雨停了。"), ("雨停了。", "雨停了。"), ("雨停了，", "雨停了。"),
    ],
)  # fmt: skip
def test_a_sentence_is_read_with_a_mark_at_its_end(reader, bank, text, expected):
    assert module.closed(text) == expected
    one, other = (reader.read([given], bank.tails) for given in (text, expected))
    np.testing.assert_array_equal(one.logs, other.logs)
    np.testing.assert_array_equal(one.own, other.own)


@pytest.mark.parametrize(("prefixes", "positions"), [(1, 1), (3, 9), (100, 10**6)])
def test_what_is_read_together_changes_nothing(reader, bank, monkeypatch, prefixes, positions):
    sentences = ["one two", "two one", "a b c", "c b a", "the end of it"]
    expected = reader.read(sentences, bank.tails)
    monkeypatch.setattr(module, "PREFIXES", prefixes)
    monkeypatch.setattr(reader, "_most", positions)
    found = reader.read(sentences, bank.tails)
    np.testing.assert_allclose(found.logs, expected.logs, atol=1e-5)
    np.testing.assert_allclose(found.own, expected.own, atol=1e-5)
    one = reader.read(sentences, bank.tails[:, :1])
    np.testing.assert_allclose(one.logs, expected.logs[:, :, :1], atol=1e-5)


def test_a_bank_is_drawn_once_and_grows_at_its_end(corpus, reader, bank, tmp_path):
    larger = Bank.draw(corpus, reader.tail, windows=12, tokens=5, seed=1)
    np.testing.assert_array_equal(larger.tails[:7], bank.tails)
    assert len({tuple(tail) for tail in larger.tails.tolist()}) == 12
    window = corpus.window(int(bank.windows[3]))
    assert ids(reader, f" {window.right[0]}")[:5] == bank.tails[3].tolist()[: len(ids(reader, f" {window.right[0]}"))]
    bank.write(tmp_path)
    np.testing.assert_array_equal(Bank.read(tmp_path).tails, bank.tails)
    with pytest.raises(ConfigError, match="A bank of 100000 windows was asked for, and the corpus has"):
        Bank.draw(corpus, reader.tail, windows=100000, tokens=5, seed=1)
    (tmp_path / "tails.npy").write_bytes(b"x")
    with pytest.raises(DataError, match="no whole bank"):
        Bank.read(tmp_path)


def some_blocks(numbers, weights):
    draw = np.random.default_rng(3)
    return [
        Block(name, draw.normal(size=size), draw.normal(size=(size, size)), weight)
        for (name, size), weight in zip(numbers.items(), weights, strict=True)
    ]


def test_joined_vectors_have_the_weighted_mean_of_cosines(tmp_path):
    blocks = some_blocks({"bank": 4, "own": 3}, (0.75, 0.25))
    draw = np.random.default_rng(0)
    parts = {"bank": draw.normal(size=(2, 4)).astype(np.float32), "own": draw.normal(size=(2, 3)).astype(np.float32)}
    first, second = joined(parts, blocks)
    pairs = [tuple((parts[block.name] - block.mean) @ block.matrix) for block in blocks]
    assert float(first @ second) == pytest.approx(twin.similarity(pairs, (3, 1)), abs=1e-6)
    assert float(first @ first) == pytest.approx(1, abs=1e-6)
    write_blocks(tmp_path / "w.npz", blocks)
    np.testing.assert_array_equal(joined(parts, read_blocks(tmp_path / "w.npz")), joined(parts, blocks))
    with pytest.raises(ModelError, match="exactly the mean"):
        blocks[0].apply(blocks[0].mean[None].astype(np.float64))
    (tmp_path / "w.npz").write_bytes(b"x")
    with pytest.raises(DataError, match="no whole whitening"):
        read_blocks(tmp_path / "w.npz")


@pytest.mark.parametrize("cells", ["means", "tokens"])
def test_a_sentence_is_one_vector_and_windows_share_its_cosine(corpus, bank, reader, cells):
    numbers = {"bank": 7 if cells == "means" else 35, "own": 16}
    origin = BankOrigin(corpus, bank, reader, some_blocks(numbers, (0.5, 0.5)), cells=cells)
    texts = some_sentences(4)
    vectors = origin.encode([*texts, texts[0]])
    np.testing.assert_array_equal(vectors[0], vectors[4])
    scores = origin([(texts[0], texts[1]), (texts[2], texts[2])])
    assert scores[0] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-6)
    assert scores[1] == pytest.approx(1, abs=1e-6)
    told = origin.explain(texts[0], texts[1], top=7)
    alone = origin.blocks[1].apply(origin.read(texts[:2]).own)
    assert told.rest == pytest.approx(float(alone[0] @ alone[1]), abs=1e-6)
    shares = [entry.share for entry in [*told.alike, *told.apart]]
    assert len(shares) == 7 and told.rest + sum(shares) == pytest.approx(told.score, abs=1e-6)
    assert "by the model's own vectors" in told.table()
    both = parts_of(origin.read(texts[:2]), cells)["bank"]
    assert window_shares(origin.blocks[0], both, 7).sum() == pytest.approx(told.score - told.rest, abs=1e-6)
    with pytest.raises(DataError, match="text 1 is blank"):
        origin([("one", " ")])
    with pytest.raises(DataError, match="text 1 is blank"):
        origin.explain("one", " ")
    with pytest.raises(DataError, match="text 2 is blank"):
        origin.encode(["a b", "a b", " "])
    alone = BankOrigin(corpus, bank, reader, some_blocks({"bank": numbers["bank"]}, (1.0,)), cells=cells)
    told = alone.explain(*texts[:2])
    assert told.rest is None and "own vectors" not in told.table()


def test_cells_are_kept_by_content_and_only_new_windows_read(corpus, reader, tmp_path, monkeypatch):
    asked = []
    read = Reader.read

    def counted(self, sentences, tails):
        asked.append((len(sentences), len(tails)))
        return read(self, sentences, tails)

    monkeypatch.setattr(Reader, "read", counted)
    texts = some_sentences(5)
    small, large = (Bank.draw(corpus, reader.tail, windows=count, tokens=5, seed=1) for count in (4, 6))

    def opened(bank):
        return BankOrigin(corpus, bank, reader, [], cells="means", folder=tmp_path)

    first = opened(small).read(texts[:3])
    again = opened(small).read(texts)
    grown = opened(large).read(texts)
    assert asked == [(3, 4), (2, 4), (5, 2)]
    np.testing.assert_array_equal(again.logs[:3], first.logs)
    np.testing.assert_array_equal(again.own[:3], first.own)
    np.testing.assert_allclose(grown.logs, read(reader, texts, large.tails).logs, atol=1e-5)


def test_texts_of_which_only_the_beginning_is_read_are_counted(corpus, bank, reader):
    long = "a very long text " * 20
    origin = BankOrigin(corpus, bank, reader, some_blocks({"bank": 7, "own": 16}, (0.5, 0.5)), cells="means")
    with counted(apart=True) as unread:
        origin.encode(["short", long])
    assert (unread.figures, unread.texts, unread.longest, unread.cut.example) == ({"cut": 1}, 2, 128, long)
    np.testing.assert_array_equal(origin.fresh().encode([long]), origin.fresh().encode([f"{long} and an end"]))
    score = ContinuationScore(reader, count=2, tokens=2)
    with counted(apart=True) as unread:
        score([(long, f"{long} end")])
    assert unread.figures == {"cut": 2}
    for one in (origin, score):
        with counted(apart=True) as unread:
            one.explain("short", long)
        assert (unread.figures, unread.texts) == ({"cut": 1}, 2)
    with counted(apart=True) as unread:
        origin.encode(["short", "others"])
    assert not unread.any


def test_continuations_are_drawn_after_both_and_scored_after_both(reader):
    first, second = some_sentences(2)
    score = ContinuationScore(reader, count=6, tokens=4)
    told = score.explain(first, second, top=12)
    assert len(told.alike) == 12 and {one.after for one in told.alike} == {"first", "second"}
    assert told.score == pytest.approx(-sum(one.gap for one in told.alike) / 12)
    assert [one.gap for one in told.alike] == sorted(one.gap for one in told.alike)
    assert ContinuationScore(reader, count=6, tokens=4).explain(first, second, top=12).to_dict() == told.to_dict()
    assert score([(first, second), (second, first)]).tolist() == pytest.approx([told.score] * 2)
    tail = reader.sample(first, 6, 4, 42)[0].tolist()
    after = [twin.token_logs(reader.generator.model, 1, ids(reader, text), tail) for text in (first, second)]
    text = reader.text(np.array(tail))
    (one,) = [one for one in told.alike if one.text == text and one.after == "first"]
    assert (one.first, one.second) == pytest.approx(tuple(np.mean(after, axis=1)), abs=1e-4)
    equal = ContinuationScore(reader, count=6, tokens=4).explain(first, first)
    assert equal.score == pytest.approx(0, abs=1e-5) and equal.table().startswith("0.0000")
    assert "go on otherwise" in told.table() and not told.apart
    told = score.explain(first, second, top=8)
    assert (len(told.alike), len(told.apart)) == (8, 4)  # none of them twice
    assert min(one.gap for one in told.apart) >= max(one.gap for one in told.alike)


@pytest.mark.parametrize(
    "own",
    [
        {"repetition_penalty": 5.0}, {"no_repeat_ngram_size": 1}, {"min_p": 0.5}, {"typical_p": 0.1},
        {"suppress_tokens": list(range(2, 100))}, {"do_sample": True, "temperature": 0.1, "top_k": 2, "num_beams": 3},
    ],
)  # fmt: skip
def test_continuations_do_not_follow_how_the_model_is_set_to_generate(reader, monkeypatch, own):
    (sentence,) = some_sentences(1)
    expected = reader.sample(sentence, 6, 20, 42)
    model = reader.generator.model
    config = GenerationConfig(eos_token_id=model.generation_config.eos_token_id, **own)
    monkeypatch.setattr(model, "generation_config", config)
    np.testing.assert_array_equal(reader.sample(sentence, 6, 20, 42), expected)
    assert model.generation_config is config
    assert not (expected == config.eos_token_id).any()  # a text of so many tokens does not end before them


def test_a_language_model_alone_is_a_model_by_its_name(tmp_path):
    first, second = some_sentences(2)
    folder = small_causal(tmp_path / "causal")
    row = samesense.similarity(f"continuations:{folder}", first, second)
    told = samesense.explain(f"continuations:{folder}", first, second, top=3)
    assert told.score == pytest.approx(row) and row < 0
    assert len(told.alike) == len(told.apart) == 3
    assert "16 continuations of 10 tokens" in samesense.load(f"continuations:{folder}").protocol
    with pytest.raises(ModelError, match=r"Cannot open .* as a causal"):
        samesense.explain(f"continuations:{tmp_path / 'absent'}", first, second)


def test_a_text_begins_where_another_ends_not_with_a_chat():
    chat = tokenizer_of(["<|im_start|>", "<|endoftext|>"])
    chat.bos_token = "<|im_start|>"
    assert start_mark(chat) == chat.convert_tokens_to_ids("<|endoftext|>")
    plain = tokenizer_of(["<s>"])
    assert start_mark(plain) == plain.eos_token_id
    plain.bos_token = "<s>"
    assert start_mark(plain) == plain.bos_token_id


def test_refusals(reader):
    with pytest.raises(ModelError, match="scored by a causal language model"):
        Reader(NoGenerator())
    with pytest.raises(ConfigError, match="layers 0 to 2; received 3"):
        Reader(reader.generator, 3)
    assert Reader(reader.generator).layer == 1


def test_a_language_model_with_few_positions_reads_the_beginning_of_a_long_text(tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=258, n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1, pad_token_id=0
    )
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    tokenizer_of().save_pretrained(tmp_path)
    model = samesense.load(f"continuations:{tmp_path}", device="cpu")
    assert np.isfinite(model.scores([("a dog runs " * 40, "a cat")])).all()
    assert "at most 32 tokens of a text" in model.protocol
