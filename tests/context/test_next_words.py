import numpy as np
import pytest

from samesense.context.corpus.corpus import Corpus
from samesense.context.generator.base import NoGenerator
from samesense.context.generator.language_models import open_language_model
from samesense.context.generator.pretrained import start_mark
from samesense.context.origin import reader as module
from samesense.context.origin.parts import OWN, STATE, WORDS, Parts, WordPart
from samesense.context.origin.reader import Reader, Readings, closed, leading_word, word_tokens
from samesense.context.origin.word_explanation import stem
from samesense.context.origin.word_origin import WordOrigin
from samesense.errors import ConfigError, DataError, ModelError
from samesense.execution.unread import counted
from samesense.recipes.origin.settings import OriginSettings
from samesense.recipes.origin.words import fit_parts
from tests.context.worlds import small_causal, small_worded_causal, some_documents, some_sentences, tokenizer_of
from tests.references import next_words as twin


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return Reader(open_language_model(str(small_worded_causal(tmp_path_factory.mktemp("causal")))))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus.build(tmp_path_factory.mktemp("corpus") / "c", some_documents(8))


def fitted(reader, *, weights=(0.4, 0.2, 0.4), dim=12, kept_words=20):
    by_name = dict(zip(("weight_own", "weight_state", "weight_words"), weights, strict=True))
    settings = OriginSettings(**by_name, kept_words=kept_words, dimensions=dim, seed=1)
    return fit_parts(reader, reader.read(some_sentences(60, seed=5)), settings)


@pytest.fixture(scope="module")
def parts(reader):
    return fitted(reader)


def ids(reader, text):
    return reader.generator.tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize(("own_layer", "state_layer"), [(1, None), (0, 3), (3, 0), (2, 2)])
def test_readings_equal_one_forward_a_sentence(reader, own_layer, state_layer):
    sentences, model = [*some_sentences(9), "Snow."], reader.generator.model
    layered = Reader(reader.generator, own_layer=own_layer, state_layer=state_layer)
    found = layered.read(sentences)
    assert (found.own.shape, found.states.shape, found.log_probs.shape) == ((10, 16), (10, 16), (10, len(reader.words)))
    for row, text in enumerate(sentences):
        expected = twin.own_vector(model, 1, ids(reader, text), own_layer)
        np.testing.assert_allclose(found.own[row], expected, atol=2e-5)
        prompt = ids(reader, f'The topic of this sentence : "{text}" is in one word:"')
        state, logs = twin.end_of_prompt(model, [1, *prompt], layered.state_layer)
        np.testing.assert_allclose(found.states[row], state, atol=2e-5)
        np.testing.assert_allclose(found.log_probs[row], logs[reader.words], atol=2e-5)
    assert found.log_probs.std(axis=0).min() > 1e-3


@pytest.mark.parametrize("budget", [1, 90, 10**6])
def test_what_is_read_together_changes_nothing(reader, monkeypatch, budget):
    sentences = ["one two", "two one", "a b c", "c b a", "the end of it"]
    expected = reader.read(sentences)
    monkeypatch.setattr(reader, "_token_budget", budget)
    found = reader.read(sentences)
    for name in ("own", "states", "log_probs"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-5)


@pytest.mark.parametrize(
    "text", ['"Quoted" from its start.', "{text} and {braces}", "(in brackets)", " spaces  around "]
)
def test_a_text_of_any_signs_is_read_in_the_prompt(reader, text):
    expected = ids(reader, f'The topic of this sentence : "{text.strip()}" is in one word:"')
    assert reader.prompt_ids(text) == [1, *expected]
    state, _ = twin.end_of_prompt(reader.generator.model, [1, *expected], reader.state_layer)
    np.testing.assert_allclose(reader.read([text]).states[0], state, atol=2e-5)


def test_a_prompt_that_begins_with_the_text_has_no_shared_beginning(reader):
    own_prompt = Reader(reader.generator, prompt='{text} is about "')
    expected = ids(reader, 'A man eats. is about "')
    state, _ = twin.end_of_prompt(reader.generator.model, [1, *expected], reader.state_layer)
    np.testing.assert_allclose(own_prompt.read(["A man eats."]).states[0], state, atol=2e-5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rain stops play", "Rain stops play."),
        ("It rains.", "It rains."),
        ("Does it? ", "Does it?"),
        ('He said "no."', 'He said "no."'),
        ('He said "no"', 'He said "no".'),
        ("first,", "first."),
        ("No…", "No…"),
        ("यह पानी है।", "यह पानी है।"),
        ("هل هذا ماء؟", "هل هذا ماء؟"),
        ("これは水です｡", "これは水です｡"),
        ("(as it was)", "(as it was)."),
        ("雨停了", "雨停了。"),
        ("雨停了。", "雨停了。"),
        ("雨停了，", "雨停了。"),
    ],
)
def test_a_sentence_is_read_with_a_mark_at_its_end(reader, text, expected):
    assert closed(text) == expected
    np.testing.assert_array_equal(reader.read([text]).own, reader.read([expected]).own)


def test_words_are_tokens_of_letters_without_a_space_before_them(reader):
    tokenizer = reader.generator.tokenizer
    texts = tokenizer.batch_decode([[token] for token in reader.words])
    assert all(text.isalpha() and len(text) > 1 for text in texts) and {"man", "rain"} <= set(texts)
    spaced = [
        token
        for token, text in enumerate(tokenizer.batch_decode([[i] for i in range(len(tokenizer))]))
        if text.startswith(" ")
    ]
    assert spaced and not set(spaced) & set(reader.words.tolist())

    class SentencePiece:
        pieces = ("▁Guitar", "Gu", "itar", "é", "▁a", '"')

        def __len__(self):
            return len(self.pieces)

        def batch_decode(self, rows):
            return [self.pieces[row[0]].removeprefix("▁") for row in rows]

        def convert_ids_to_tokens(self, tokens):
            return [self.pieces[token] for token in tokens]

    assert word_tokens(SentencePiece()).tolist() == [1, 2]


def test_parts_equal_the_formula(reader, tmp_path):
    texts, reference = some_sentences(6), reader.read(some_sentences(60, seed=5))
    readings, parts = reader.read(texts), fitted(reader)
    expected = twin.ppmi(readings.log_probs.astype(float), reference.log_probs.astype(float), 20)
    rows = parts.words.rows(readings.log_probs).toarray()
    np.testing.assert_allclose(rows, expected, atol=1e-5)
    assert ((rows > 0).sum(axis=1) <= 20).all()
    numbers = parts.numbers(readings)
    for name, state, usual in (
        (OWN, readings.own, reference.own),
        (STATE, readings.states, reference.states),
    ):
        whitened = twin.whitened(state.astype(float), usual.astype(float))
        gram = whitened @ whitened.T / np.outer(*2 * [np.linalg.norm(whitened, axis=1)])
        np.testing.assert_allclose(numbers[name] @ numbers[name].T, gram, atol=1e-4)
    pairs = [(numbers[name][0], numbers[name][1]) for name in (OWN, STATE, WORDS)]
    vectors = parts.vectors(readings)
    assert float(vectors[0] @ vectors[1]) == pytest.approx(twin.similarity(pairs, (2, 1, 2)), abs=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    parts.write(tmp_path / "parts.npz")
    np.testing.assert_array_equal(Parts.read(tmp_path / "parts.npz").vectors(readings), vectors)
    (tmp_path / "parts.npz").write_bytes(b"x")
    with pytest.raises(DataError, match="no whole parts"):
        Parts.read(tmp_path / "parts.npz")


def test_all_dimensions_of_the_reference_keep_the_cosines_of_its_words(reader):
    readings = reader.read(some_sentences(30, seed=5))
    words = WordPart.fit(reader.words, readings.log_probs, kept_words=50, dim=1000, seed=1)
    assert words.components.shape[1] == 29
    rows, dense = words.rows(readings.log_probs).toarray(), words.apply(readings.log_probs)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(dense @ dense.T, unit @ unit.T, atol=0.02)


def test_what_a_part_cannot_say(reader, parts):
    readings = reader.read(["one two"])
    mean = Readings(parts.own.mean[None], readings.states, readings.log_probs)
    with pytest.raises(ModelError, match="exactly the mean"):
        parts.vectors(mean)
    silent = Readings(readings.own, readings.states, parts.words.log_rates[None] - 1)
    assert np.linalg.norm(parts.vectors(silent)) == pytest.approx(1, abs=1e-6)  # by hidden states
    with pytest.raises(ModelError, match="no word is more likely than usual, and words alone count"):
        fitted(reader, weights=(0, 0, 1)).vectors(silent)


@pytest.mark.parametrize("weights", [(0.4, 0.2, 0.4), (0.5, 0.5, 0), (0, 0, 1)])
def test_a_sentence_is_one_vector_and_its_words_share_the_score(corpus, reader, weights):
    origin = WordOrigin(corpus, reader, fitted(reader, weights=weights))
    texts = some_sentences(4)
    vectors = origin.encode([*texts, texts[0]])
    np.testing.assert_array_equal(vectors[0], vectors[4])
    scores = origin([(texts[0], texts[1]), (texts[2], texts[2])])
    assert scores[0] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-6)
    assert scores[1] == pytest.approx(1, abs=1e-6)
    told = origin.explain(texts[0], texts[1], top=1000)
    assert told.own + told.state + told.words + told.projection == pytest.approx(told.score, abs=1e-9)
    rows = origin.parts.words.rows(reader.read(texts[:2]).log_probs).toarray()
    cosine = rows[0] @ rows[1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[1])
    assert told.words == pytest.approx(weights[2] * cosine, abs=1e-6)
    shared = sum(row.share for row in told.both)
    assert -1e-9 <= shared <= told.words + 1e-6
    assert all(row.first > 0 and row.second > 0 for row in told.both)
    assert all((row.first > 0) != (row.second > 0) for row in (*told.only_first, *told.only_second))
    assert all(row.share <= 1e-12 for row in (*told.only_first, *told.only_second))
    assert str(told) == told.table() and told.to_dict()["sentences"] == texts[:2]


def test_what_a_word_of_one_sentence_takes_off_is_what_the_score_would_gain(reader):
    from samesense.context.origin.word_explanation import _cost

    first, second = np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 0.0])
    cosine, without = ((a @ second / np.linalg.norm(a) / np.linalg.norm(second)) for a in (first, first * [1, 1, 0]))
    assert _cost(cosine, 1 / 14) == pytest.approx(cosine - without)


def test_refusals_of_texts(corpus, reader, parts):
    origin = WordOrigin(corpus, reader, parts)
    for asks in (lambda: origin([("one", " ")]), lambda: origin.explain("one", " ")):
        with pytest.raises(DataError, match="text 1 is blank"):
            asks()
    with pytest.raises(DataError, match="text 2 is blank"):
        origin.encode(["a b", "a b", " "])


def test_vectors_are_kept_by_content_and_by_what_decides_them(corpus, reader, parts, tmp_path, monkeypatch):
    asked, read = [], Reader.read

    def counted_read(self, sentences):
        asked.append(len(sentences))
        return read(self, sentences)

    monkeypatch.setattr(Reader, "read", counted_read)
    texts = some_sentences(5)
    first = WordOrigin(corpus, reader, parts, folder=tmp_path).encode(texts[:3])
    again = WordOrigin(corpus, reader, parts, folder=tmp_path).encode(texts)
    np.testing.assert_array_equal(again[:3], first)
    assert asked == [3, 2]
    WordOrigin(corpus, reader, fitted(reader, weights=(1, 0, 0)), folder=tmp_path).encode(texts[:1])
    assert asked[-1] == 1


def test_texts_of_which_only_the_beginning_is_read_are_counted(corpus, reader, parts):
    long = "a very long text " * 40
    origin = WordOrigin(corpus, reader, parts)
    with counted(apart=True) as unread:
        origin.encode(["short", long])
    assert (unread.figures, unread.texts, unread.longest, unread.cut.example) == ({"cut": 1}, 2, 128, long)
    np.testing.assert_array_equal(origin.fresh().encode([long]), origin.fresh().encode([f"{long} and an end"]))
    with counted(apart=True) as unread:
        origin.explain("short", long)
    assert (unread.figures, unread.texts) == ({"cut": 1}, 2)
    with counted(apart=True) as unread:
        origin.encode(["short", "others"])
    assert not unread.any


def test_a_token_is_completed_to_the_word_that_it_begins(reader):
    tokens = reader.words[:30]
    words = reader.complete("A man eats.", tokens)
    prompt, tokenizer = reader.prompt_ids("A man eats."), reader.generator.tokenizer
    for token, word in zip(tokens, words, strict=True):
        row = [*prompt, int(token)]
        for _ in range(module.LONGEST_WORD - 1):
            row.append(int(twin.end_of_prompt(reader.generator.model, row, 0)[1].argmax()))
        assert word == leading_word(tokenizer.decode(row[len(prompt) :]))
    assert reader.is_frequent("man") and not reader.is_frequent("manx")


def test_inflections_of_a_word_have_one_stem():
    same = (("play", "plays", "played", "playing", "player"), ("make", "makes", "making"), ("run", "running", "runs"))
    assert all(len({stem(word) for word in words}) == 1 for words in same)
    assert len({stem(word) for word in ("king", "thing", "bus", "red", "class", "glass", "sing")}) == 7


def test_a_text_begins_where_another_ends_not_with_a_chat():
    chat = tokenizer_of(["<|im_start|>", "<|endoftext|>"])
    chat.bos_token = "<|im_start|>"
    assert start_mark(chat) == chat.convert_tokens_to_ids("<|endoftext|>")
    plain = tokenizer_of(["<s>"])
    assert start_mark(plain) == plain.eos_token_id
    plain.bos_token = "<s>"
    assert start_mark(plain) == plain.bos_token_id


def test_refusals(reader, tmp_path):
    with pytest.raises(ModelError, match="Next words need a causal language model"):
        Reader(NoGenerator())
    with pytest.raises(ConfigError, match="layers 0 to 3; received 4"):
        Reader(reader.generator, own_layer=4)
    with pytest.raises(ConfigError, match=r"A prompt holds \{text\} once"):
        Reader(reader.generator, prompt="The topic is")
    with pytest.raises(ModelError, match="a vocabulary with 100 whole words or more; this language model has 0"):
        Reader(open_language_model(str(small_causal(tmp_path))))
    assert Reader(reader.generator).state_layer == 1


def test_a_language_model_with_few_positions_reads_the_beginning_of_a_long_text(tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    from tests.context.worlds import word_tokenizer

    tokenizer = word_tokenizer()
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=128,
        n_embd=16,
        n_layer=3,
        n_head=2,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=0,
    )
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    reader = Reader(open_language_model(str(tmp_path)))
    assert all(np.isfinite(rows).all() for rows in vars(reader.read(["a dog runs " * 80, "a cat"])).values())
    assert reader.longest + len(reader.prompt_ids("x")) <= 128
