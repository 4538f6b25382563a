"""Augmentations: how much they change, their determinism, and their effect on the data."""

import json
import random
import sys
import types

import pytest

from samesense.data.tuples.augment import augment_positives, deletion, example_lines, examples, synonyms, wordnet
from samesense.data.tuples.augmentations import SHARES, augment_named
from samesense.data.tuples.data import Group, tuple_data
from samesense.data.tuples.paraphrase import paraphrase
from samesense.errors import ConfigError, DataError, MissingExtraError, ModelError
from samesense.execution.unread import counted
from tests.conftest import WORDS

FAKE = {"dog": ["hound", "domestic dog"], "big": ["large"], "runs": ["hurries", "dashes", "races"]}


def fake(word):
    return FAKE.get(word, [])


def texts(count=200, seed=0):
    source = random.Random(seed)
    return [" ".join(source.choice(WORDS) for _ in range(source.randint(1, 30))) for _ in range(count)]


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.99])
def test_deletion_leaves_the_rest_in_order(probability):
    for text, new in zip(texts(), deletion(probability)([(text, 0) for text in texts()]), strict=True):
        words = text.split()
        if len(words) == 1:
            assert new is None
            continue
        left = new.split()
        assert len(words) - len(left) == min(len(words) - 1, max(1, round(probability * len(words))))
        remaining_words = iter(words)
        assert all(word in remaining_words for word in left)


@pytest.mark.parametrize("make", [deletion, lambda **seed: synonyms(0.5, of=fake, **seed)])
def test_the_same_text_number_and_seed_give_the_same(make):
    variants = [("the big dog runs and runs by the big dog", number) for number in range(30)]
    once = make(seed=1)(variants)
    assert once == [make(seed=1)([variant])[0] for variant in variants]
    assert once == make(seed=1)(variants[::-1])[::-1]
    assert len(set(once)) > 5
    assert once != make(seed=2)(variants)


def test_synonyms_replace_words_and_nothing_else():
    text = "Big dogs, the DOG's tail -- a dog; runs 3 times!"
    variants = synonyms(0.99, of=fake)([(text, number) for number in range(40)])
    assert {new.split(" ")[0] for new in variants} == {"Large"}
    assert {new[len("Large") :][: len(" dogs, the DOG's tail -- a ")] for new in variants} == {
        " dogs, the DOG's tail -- a "
    }
    tails = {new.split("-- a ")[1] for new in variants}
    assert tails == {f"{a}; {b} 3 times!" for a in FAKE["dog"] for b in FAKE["runs"]}
    replaced = synonyms(0.2, of=fake)([("dog dog dog dog dog dog dog dog dog one", 0)])[0]
    assert replaced.count("hound") + replaced.count("domestic dog") == 2
    assert synonyms(of=fake)([("nothing known", 0), ("一只狗", 1)]) == [None, None]


@pytest.mark.parametrize("probability", [0, 1, -0.1])
def test_shares_that_make_no_sense(probability):
    with pytest.raises(ConfigError, match=r"^The share of words to change must lie between 0 and 1; received"):
        deletion(probability)
    with pytest.raises(ConfigError, match="must lie between 0 and 1"):
        synonyms(probability, of=fake)


def test_wordnet_through_nltk(monkeypatch):
    """Uses a stub of nltk's shape: senses in order, underscores in names of several words."""

    class Sense:
        def __init__(self, *names):
            self.names = names

        def lemma_names(self):
            return list(self.names)

    senses = {"dog": [Sense("dog", "domestic_dog"), Sense("hot_dog", "Dog", "domestic_dog")]}
    net = types.SimpleNamespace(ensure_loaded=lambda: None, synsets=lambda word: senses.get(word, []))
    monkeypatch.setitem(sys.modules, "nltk", types.ModuleType("nltk"))
    monkeypatch.setitem(sys.modules, "nltk.corpus", types.SimpleNamespace(wordnet=net))
    assert wordnet()("dog") == ["domestic dog", "hot dog"]
    assert synonyms()([("My dog.", 0)])[0] in ("My domestic dog.", "My hot dog.")

    def absent():
        raise LookupError("Resource wordnet not found.")

    net.ensure_loaded = absent
    with pytest.raises(DataError, match=r"python -m nltk\.downloader wordnet$"):
        wordnet()
    monkeypatch.setitem(sys.modules, "nltk.corpus", None)
    with pytest.raises(MissingExtraError, match=r"nltk is needed here .* pip install 'samesense\[augment\]'"):
        synonyms()


def made(rows):
    return tuple_data([Group(*row, []) for row in rows], source="made", name="made")


def test_places_are_filled_with_variants_of_an_anchors_own_positives_in_turn():
    data = made(
        [("a", ["one big dog", "a dog runs"], ["n"]), ("big dog", [], []), ("c", ["x"] * 4, []), ("d", ["y"], [])]
    )
    requests = []

    def augment(variants):
        requests.extend(variants)
        return [None if text == "y" else f"{text} {number}" for text, number in variants]

    augmented = augment_positives(data, augment, 5)
    assert requests == [
        ("one big dog", 0),
        ("a dog runs", 0),
        ("one big dog", 1),
        *(("big dog", n) for n in range(5)),
        ("x", 0),
        *(("y", n) for n in range(4)),
    ]
    assert augmented.positives[0] == ["one big dog", "a dog runs", "one big dog 0", "a dog runs 0", "one big dog 1"]
    assert [len(positives) for positives in augmented.positives] == [5, 5, 5, 1]  # unchanged variants are not added
    assert data.positives[1] == []
    assert augmented.sha256 != data.sha256
    assert augment_positives(data, augment, 1).positives[0] == data.positives[0]


def test_examples_are_shown():
    data = made([("a", ["the big dog runs"], []), ("b", ["nothing", "the old dog"], [])])
    lines = example_lines(data, synonyms(0.3, of=fake, seed=3), 2)
    assert lines[0] == "  from: the big dog runs"
    assert lines[1].startswith("  to:   the ")
    assert lines[2:] == ["  from: nothing", "  to:   (not changed)"]


@pytest.fixture(scope="module")
def tiny_writer(tmp_path_factory):
    """Folder of a random T5 of one layer with a word tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    names = ["<pad>", "</s>", "<unk>"]
    vocabulary = {token: index for index, token in enumerate([*names, *WORDS, "paraphrase", ":"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    folder = tmp_path_factory.mktemp("models") / "tiny-t5"
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(vocabulary),
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    return str(folder)


def test_a_model_writes_paraphrases(tiny_writer):
    variants = [(text, number) for text in texts(6, seed=1) for number in range(2)]
    paraphrases = paraphrase(tiny_writer, 1.0, longest=8)(variants)
    assert any(new is not None for new in paraphrases)
    assert paraphrases == paraphrase(tiny_writer, 1.0, longest=8, batch_size=2)(variants[::-1])[::-1]
    pairs = [
        (paraphrases[index], paraphrases[index + 1])
        for index in range(0, 12, 2)
        if paraphrases[index] and paraphrases[index + 1]
    ]
    assert pairs
    assert all(first != second for first, second in pairs)  # another beam for another number
    half = paraphrase(tiny_writer, 0.5, longest=8)(variants)
    chosen = [index for index, new in enumerate(half) if new is not None]
    assert 0 < len(chosen) < len(variants)
    assert [half[index] for index in chosen] == [paraphrases[index] for index in chosen]
    assert half == paraphrase(tiny_writer, 0.5, longest=8)(variants)
    assert half != paraphrase(tiny_writer, 0.5, longest=8, seed=1)(variants)


def test_texts_of_which_a_writer_does_not_read_the_end_are_counted(tiny_writer):
    long = "the big dog runs " * 30
    with counted(apart=True) as unread:
        paraphrase(tiny_writer, 1.0)([("the dog", 0), (long, 0)])
    assert (unread.figures, unread.texts, unread.longest, unread.cut.example) == ({"cut": 1}, 2, 64, long)


def test_no_such_writer(tmp_path):
    with pytest.raises(ModelError, match="to write paraphrases"):
        paraphrase(str(tmp_path))
    with pytest.raises(ConfigError, match="must be above 0 and at most 1; received 2"):
        paraphrase(str(tmp_path), 2)


def test_augmentations_by_name(tiny_writer):
    assert augment_named("none") is None
    text = [("one two some no not man woman child dog cat", 0)]
    assert augment_named("deletion", seed=4)(text) == deletion(0.1, seed=4)(text)
    assert augment_named("deletion", fraction=0.6, seed=4)(text) == deletion(0.6, seed=4)(text)
    assert augment_named("paraphrase", fraction=1.0, paraphraser=tiny_writer)(text) == paraphrase(tiny_writer, 1.0)(
        text
    )
    assert set(SHARES) == {"deletion", "synonym", "paraphrase"}


def test_the_command_shows_examples(tmp_path, capsys):
    from samesense.cli.commands.augment import augment

    path = tmp_path / "x.jsonl"
    path.write_text('{"query": "a", "pos": ["the big dog runs", "alone"]}\n')
    augment([str(path)], share=0.4, seed=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "from: the big dog runs"
    assert len(lines[1].split()) == 3
    assert lines[2:] == ["from: alone", "to:   (not changed)"]
    augment([str(path)], show=1, json=True, share=0.4, seed=1)
    assert json.loads(capsys.readouterr().out) == {"text": "the big dog runs", "augmented": lines[1][6:]}
    augment([str(path)], augment="none")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("count", [0, -1])
def test_no_example_at_all_cannot_be_asked_for(count):
    data = tuple_data([Group("a", ["b c"], [], [])], source="made", name="made")
    assert examples(data, deletion(), 1)[0][0] == "b c"
    with pytest.raises(ConfigError, match=f"At least one positive must be asked for; received {count}"):
        examples(data, deletion(), count)
