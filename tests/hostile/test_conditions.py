"""Conditions of any size and depth: right, or refused with a short message, in memory that follows their size."""

import random
import threading
import tracemalloc

import pytest

from samesense.errors import ConfigError, OutputError, SamesenseError
from samesense.inference.collection.collection import Collection
from samesense.inference.collection.conditions import condition
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import Entry
from tests.command import run_command
from tests.hostile.conftest import rounds
from tests.inference.serve.toy import STORE, Toy

DEEP = 100_000


def nested(depth, inner=1):
    for _ in range(depth):
        inner = [inner]
    return inner


def nested_object(depth):
    inner = 1
    for _ in range(depth):
        inner = {"a": inner}
    return inner


HUGE = {
    "keys": {f"name {i}": i for i in range(35_000)},
    "brackets in text": f"a = {'[' * 1000}",
    "closed brackets in text": f"a = {'[' * 1000}{']' * 1000}",
    "list": {"a": nested(1000)},
    "list in a list": {"a": ["x", nested(DEEP)]},
    "object": {"a": nested_object(1000)},
    "deep object": {"a": nested_object(DEEP)},
    "name": {"n" * 7_000_000: 1},
    "name in text": f"{'n' * 7_000_000} = 1",
    "name alone": "n" * 7_000_000,
    "quoted name": f'"{"n" * 7_000_000}" = 1',
    "parentheses": "(" * 1_000_000,
    "not": "NOT " * 1_000_000 + "a = 1",
    "comparisons": " OR ".join(["a = 1"] * 500_000),
    "like": "a LIKE '" + "%a" * 500_000 + "'",
    "open quote": "a = '" + "x''" * 1_000_000,
    "open list": "a IN (" + "1," * 1_000_000,
    "open list of quotes": "a IN (" + "''''," * 500_000,
    "spaces": "a" + " " * 3_000_000 + "b",
    "long number": {"a": 10**5000},
    "long number in text": f"a > {'9' * 1_000_000}",
    "long number in a list": {"a": [10**5000, "x"]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    store = tmp_path_factory.mktemp("conditions") / "store"
    entries = [Entry(text, metadata={"a": number}) for number, text in enumerate(STORE)]
    Collection.build(store, entries, Embedder(Toy(), identity="toy"))
    return store


@pytest.mark.parametrize("where", HUGE.values(), ids=HUGE.keys())
def test_a_huge_condition_is_refused_shortly(folder, where):
    collection = Collection.open(folder)
    tracemalloc.start()
    try:
        with pytest.raises(SamesenseError) as refused:
            collection.text_search(["man"], where=where)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(str(refused.value)) < 1000
    assert peak < 150e6


@pytest.mark.parametrize("where", ["a IN (" + ",".join(map(str, range(200_000))) + ")", {"a": list(range(200_000))}])
def test_long_lists_are_any_of_their_values(folder, where):
    assert [hit.id for hit in Collection.open(folder).text_search(["man"], where=where)[0]] == [0]


def test_a_long_text_in_quotes_is_one_value(folder):
    text = "it''s " * 500_000
    (value,) = condition(f"a > '{text}'").values[1:]
    assert value == text.replace("''", "'")


@pytest.mark.parametrize("where", ["a=" + "[" * 1000, "(" * 5000, "NOT " * 5000 + "a = 1"])
def test_a_deep_condition_is_misuse_of_the_command(capsys, folder, where):
    code, out, err = run_command(capsys, "index", "query", folder, "man", "--where", where)
    assert (code, out, "Traceback" in err) == (2, "", False), err
    assert len(err) < 2000


def test_metadata_that_are_nested_too_deeply_are_refused(tmp_path):
    from samesense.errors import DataError

    for value in (nested(DEEP), nested_object(DEEP)):
        with pytest.raises(DataError, match="nested"):
            Collection.build(tmp_path / "deep", [Entry("x", metadata={"a": value})], Embedder(Toy(), identity="toy"))


SIGNS = "( ) = != < >= IN (1,2) ' \" [ ] { } % _ , ; -- /*"
WORDS = "AND OR NOT LIKE IS NULL a b 'x' 'it''s' 1 -1 1e999 nan é true null"
PIECES = [*SIGNS.split(), *WORDS.split(), '"c d"', "\0", "\ud800", "\u2028", "  ", "a = 1"]


def test_random_conditions_are_read_or_refused(folder):
    collection = Collection.open(folder)
    source = random.Random(7)
    read = 0
    for _ in range(rounds(short=1500, long=200_000)):
        where = source.choice(["", " "]).join(source.choices(PIECES, k=source.randint(1, 12)))
        try:
            collection.text_search(["man"], where=where)
            read += 1
        except SamesenseError as error:
            assert len(str(error)) < 1000
    assert read


def test_random_values_are_read_or_refused(folder):
    collection = Collection.open(folder)
    source = random.Random(8)

    def value(depth=0):
        kind = source.randrange(9 if depth < 4 else 6)
        leaves = [None, True, 1.5, -(2**70), "x", "\ud800"]
        if kind < len(leaves):
            return leaves[kind]
        if kind == 6:
            return [value(depth + 1) for _ in range(source.randrange(4))]
        return {source.choice("ab\0\ud800"): value(depth + 1) for _ in range(source.randrange(3))}

    for _ in range(rounds(short=500, long=100_000)):
        where = {source.choice(["a", "b", ""]): value() for _ in range(source.randrange(3))}
        try:
            collection.text_search(["man"], where=where)
        except SamesenseError as error:
            assert len(str(error)) < 1000


def test_no_value_beyond_the_first_error_is_looked_at():
    with pytest.raises(ConfigError, match="has 481 names, and may have at most 480"):
        condition({number: object() for number in range(481)})


@pytest.mark.parametrize("word", [" AND ", " OR "])
@pytest.mark.parametrize("form", ["a = {}", "a != {}", "a > {}", "a IN (x, {})", "a LIKE 'x{}'", "NOT a IS NOT NULL"])
def test_as_many_comparisons_are_read_as_messages_say(word, form):
    assert condition(word.join(form.format(number) for number in range(480))).names
    assert condition({f"n{number}": number for number in range(480)}).names
    with pytest.raises(ConfigError, match="480"):
        condition(word.join(form.format(number) for number in range(481)))


def test_a_search_for_which_no_one_waits_ends_within_a_query(tmp_path):
    entries = [Entry(f"man {number}", metadata={"a": f"{'b' * 50}{number}"}) for number in range(5000)]
    collection = Collection.build(tmp_path / "store", entries, Embedder(Toy(), identity="toy"))
    slow = " OR ".join(f"a LIKE '%{number}%c'" for number in range(400))
    stop = threading.Event()
    stop.set()
    with pytest.raises(OutputError, match="was stopped"):
        collection.text_search(["man"], where=slow, stop=stop)
    with pytest.raises(OutputError, match="was stopped"):
        collection.search(Embedder(Toy(), identity="toy").unit(["man"]), where=slow, stop=stop)
    assert collection.text_search(["man"], where="a LIKE 'b%'", top=1), "later searches go on"
