import itertools
import random
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from samesense.context.corpus.corpus import Corpus
from samesense.context.corpus.words import words
from samesense.context.harvest.plan import Mixture, Plan
from samesense.context.harvest.units import (
    DEPTH,
    SWEEPS,
    Neighbours,
    NeighbourUnits,
    Population,
    RandomUnits,
    SectionUnits,
)
from samesense.context.retrieval.tfidf import Tfidf
from samesense.errors import ConfigError, DataError
from samesense.recipes.settings import bind
from tests.conftest import WORDS

ALL = {"random": 2.0, "neighbours": 2.0, "section": 1.0}


def topical(count, *, seed=0):
    """Return documents of three sections whose sentences share words; every ninth sentence is a copy."""
    draw = random.Random(seed)
    texts = ["The one and the other."]
    documents = []
    for _ in range(count):
        document = []
        for _ in range(3):
            topic = draw.sample(WORDS, 6)
            section = []
            for _ in range(draw.randint(1, 9)):
                text = " ".join(draw.choice(topic if draw.random() < 0.7 else WORDS) for _ in range(draw.randint(2, 9)))
                section.append(draw.choice(texts).upper() if draw.random() < 1 / 9 else text.capitalize() + ".")
                texts.append(section[-1])
            document.append(section)
        documents.append(document)
    return documents


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    corpus = Corpus.build(folder / "corpus", topical(40))
    return corpus, Tfidf(corpus, folder / "index")


def mixture(shares, **changes):
    return bind(Mixture, {"random": 0, "neighbours": 0, "section": 0}, shares, changes)


def plan(world, **changes):
    return Plan(*world, mixture(**{"pairs": 900, "shares": ALL, "shard_size": 100, "unit": 8, **changes}))


def plain_near(corpus, tfidf, population, position, depth):
    """Return the nearest sentences of one by plain loops over words and bigrams."""

    def bag(text):
        tokens = words(text)
        return {*tokens, *itertools.pairwise(tokens)}

    text = population.text(position)
    candidates = set()
    for chunk in tfidf.chunks(text, (2 * depth + 4) // 5)[0]:
        start, end = corpus.chunk_bounds(np.array([chunk]))
        for i in range(int(start[0]), int(end[0])):
            candidates.add(int(population.positions[i]))
    fitting = [candidate for candidate in candidates - {position} if 3 <= len(words(population.text(candidate))) <= 64]
    own_bag = bag(text)

    def share(candidate):
        other_bag = bag(population.text(candidate))
        return len(own_bag & other_bag) / (len(own_bag) * len(other_bag)) ** 0.5

    return sorted(fitting, key=lambda candidate: (-round(share(candidate), 9), candidate))[:depth]


def test_population_has_each_text_once(world):
    corpus, _ = world
    population = Population(corpus, 5, 3, 64)
    texts = [" ".join(words(text)) for text in corpus]
    assert len(population) == len(set(texts)) < len(corpus)
    for i, text in enumerate(texts):
        sentence_id = int(population.ids[population.positions[i]])
        assert sentence_id == texts.index(text)
    sections = population.sections(np.arange(len(population)))
    assert sections.tolist() == [int(corpus.sections_of(np.array([int(i)]))[0]) for i in population.ids]
    fitting = population.fitting(np.arange(len(population)))
    assert fitting.tolist() == [
        position for position in range(len(population)) if 3 <= len(words(population.text(position))) <= 64
    ]
    assert Population(corpus, 6, 3, 64).ids.tolist() != population.ids.tolist()


@pytest.mark.parametrize(("least", "size"), [(1, 8), (1, 50), (1, 2)])
def test_random_units_meet_in_one_sentence_at_most(world, least, size):
    population = Population(world[0], 1, least, 64)
    units = RandomUnits(population, size)
    met = set()
    for unit in range(len(units)):
        members = units.members(unit).tolist()
        pairs = {frozenset(pair) for pair in itertools.combinations(members, 2)}
        assert len(pairs) == len(members) * (len(members) - 1) // 2
        assert not pairs & met
        met |= pairs
    rows = units._rows
    same_row = sum(1 for a, b in itertools.combinations(range(len(population)), 2) if a % rows == b % rows)
    assert len(met) == len(population) * (len(population) - 1) // 2 - same_row
    first_turn = [m for unit in range(units._columns) for m in units.members(unit).tolist()]
    assert sorted(first_turn) == list(range(len(population)))


def test_random_pairs_are_uniform(tmp_path):
    corpus = Corpus.build(tmp_path / "c", [[[f"one two three {'four ' * i}" for i in range(12)]]])
    counts = Counter()
    for seed in range(700):
        members = RandomUnits(Population(corpus, seed, 1, 64), 3).members(0)
        ids = Population(corpus, seed, 1, 64).ids[members]
        counts.update(frozenset(pair) for pair in itertools.combinations(ids.tolist(), 2))
    observed = [counts[frozenset(pair)] for pair in itertools.combinations(range(12), 2)]
    assert chisquare(observed).pvalue > 1e-3


def test_section_units_part_each_section(world):
    population = Population(world[0], 3, 1, 64)
    units = SectionUnits(population, 4, 3)
    times = Counter()
    for unit in range(len(units)):
        members = units.members(unit)
        assert 2 <= len(members) <= 4
        assert len(set(population.sections(members).tolist())) == 1
        times.update(members.tolist())
    assert set(times.values()) == {1}
    lengths = Counter(population.sections(np.arange(len(population))).tolist())
    alone = sum(1 for length in lengths.values() if length == 1)
    assert len(times) == len(population) - alone
    assert units.pairs() == sum(len(units.members(u)) * (len(units.members(u)) - 1) // 2 for u in range(len(units)))


def test_neighbours_equal_plain_loops(world):
    corpus, tfidf = world
    population = Population(corpus, 2, 3, 64)
    neighbours = Neighbours(population, tfidf, (3, 9))
    assert neighbours.rounds == [(D, sweep) for sweep in range(min(SWEEPS, 3)) for D in neighbours.spacings]
    depth = DEPTH * neighbours.spacings[-1]
    for position in range(0, len(population), 7):
        near = plain_near(corpus, tfidf, population, position, depth)
        nearest = neighbours.near(position).tolist()
        assert nearest == near
        for index, (spacing, sweep) in enumerate(neighbours.rounds):
            leaders = [member for member in [position, *nearest] if member % spacing == sweep]
            assert neighbours.leaders(position)[index] == (leaders[0] if leaders else -1)


@pytest.mark.parametrize("unit", [2, 8, 40])
@pytest.mark.parametrize("shares", [ALL, {"random": 1.0, "neighbours": 1.0}, {"neighbours": 1.0}, {"section": 1.0}])
def test_no_pair_comes_twice_and_each_is_of_its_kind(world, unit, shares):
    corpus, _ = world
    whole = plan(world, unit=unit, shares=shares)
    pairs = set()
    for shard in range(whole.shards):
        planned = whole.shard(shard)
        assert len(planned.first) == len(planned.second) == len(planned.kinds)
        assert sum(planned.requested.values()) == whole.size(shard) == 100
        counts = Counter(planned.kinds)
        assert all(counts[kind] <= count for kind, count in planned.requested.items())
        for first, second, kind in zip(planned.first.tolist(), planned.second.tolist(), planned.kinds, strict=True):
            key = frozenset(" ".join(words(corpus.sentence(i))) for i in (first, second))
            assert len(key) == 2, "a sentence with its copy"
            assert key not in pairs
            pairs.add(key)
            together = int(corpus.sections_of(np.array([first]))[0]) == int(corpus.sections_of(np.array([second]))[0])
            near = whole._neighbours.first_round(*whole.population.positions[[first, second]].tolist()) >= 0
            if kind == "section":
                assert together
            else:
                assert not (together and "section" in shares)
                assert near or kind != "neighbours"
                assert not (near and kind == "random" and "neighbours" in shares)
    assert len(pairs) > 90


def test_a_shard_is_a_function_of_its_number(world):
    whole = plan(world)
    again = plan(world)
    for shard in (7, 0, 3):
        shard_one = whole.shard(shard)
        shard_again = again.shard(shard)
        assert (shard_one.first.tolist(), shard_one.second.tolist(), shard_one.kinds) == (
            shard_again.first.tolist(),
            shard_again.second.tolist(),
            shard_again.kinds,
        )
    assert plan(world, seed=1).shard(0).first.tolist() != whole.shard(0).first.tolist()


def test_sentences_are_shared_in_a_shard(world):
    wide, narrow = (plan(world, unit=unit, shares={"random": 1.0}).shard(0) for unit in (15, 2))
    counts = [len({*planned.first.tolist(), *planned.second.tolist()}) for planned in (wide, narrow)]
    assert len(wide.first) == len(narrow.first) == 100
    assert counts[0] <= 40 < counts[1]


def test_neighbours_are_nearer_the_closer_the_spacing(world):
    corpus, _ = world

    def overlap(planned):
        both = [(set(words(a)), set(words(b))) for a, b in planned.texts(corpus)]
        return np.mean([len(a & b) / len(a | b) for a, b in both])

    close = overlap(plan(world, pairs=100, shares={"neighbours": 1.0}, spacings=(4,)).shard(0))
    wide = overlap(plan(world, pairs=100, shares={"neighbours": 1.0}, spacings=(16,)).shard(0))
    apart = overlap(plan(world, pairs=100, shares={"random": 1.0}).shard(0))
    assert close > wide > apart


def test_what_cannot_be_had_is_left_out(world):
    short = plan(world, pairs=3000, shares={"section": 1.0, "random": 1.0})
    shards = [short.shard(shard) for shard in range(short.shards)]
    assert sum(planned.requested["section"] for planned in shards) == 1500
    counts = Counter(kind for planned in shards for kind in planned.kinds)
    assert counts["section"] < 1500 == counts["random"]
    assert any("sections have at most" in line for line in short.describe())
    assert any("random 1500, section 1500" in line for line in short.describe())


def test_in_one_section_other_kinds_are_not_searched_for(tmp_path, monkeypatch):
    corpus = Corpus.build(
        tmp_path / "c", [[[text for document in topical(6) for section in document for text in section]]]
    )
    with monkeypatch.context() as patch:
        patch.setattr(RandomUnits, "members", lambda *unit: 1 / 0)
        patch.setattr(NeighbourUnits, "members", lambda *unit: 1 / 0)
        whole = Plan(corpus, Tfidf(corpus, tmp_path / "i"), mixture(pairs=300, shares=ALL, unit=8))
        planned = whole.shard(0)
    assert set(planned.kinds) == {"section"} and len(planned.kinds) == planned.requested["section"]
    assert any("pairs of other kinds cannot be had" in line for line in whole.describe())
    apart = Plan(corpus, Tfidf(corpus, tmp_path / "i"), mixture(pairs=300, shares={"random": 1.0}, unit=8))
    assert len(apart.shard(0).kinds) == 300
    assert not any("cannot be had" in line for line in apart.describe())


def test_shares_add_up_over_shards(world):
    odd = plan(world, pairs=997, shard_size=33, shares={"random": 0.1, "neighbours": 0.2, "section": 0.7})
    sums = Counter()
    for shard in range(odd.shards):
        wanted_of_shard = odd.shard(shard).requested
        assert sum(wanted_of_shard.values()) == odd.size(shard)
        sums.update(wanted_of_shard)
    assert sum(sums.values()) == 997
    assert all(abs(sums[kind] - 997 * getattr(odd.mixture, kind)) <= 2 for kind in sums)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shares": {"random": 0.0}}, "one at least is above 0"),
        ({"shares": {"random": -1.0, "section": 2.0}}, "greater than or equal to 0"),
        ({"shares": {"random": float("nan")}}, "finite number"),
        ({"unit": 1}, "unit: input should be greater than or equal to 2"),
        ({"pairs": 0}, "pairs: input should be greater than or equal to 1"),
        ({"min_words": 9, "max_words": 8}, "9 words or more and 8 or fewer"),
        ({"spacings": (4, 4)}, "ascending"),
        ({"spacings": (1,)}, "from 2 on"),
        ({"spacings": ()}, "Spacings"),
    ],
)
def test_refused(world, changes, message):
    with pytest.raises(ConfigError, match=message):
        plan(world, **changes)


def test_one_text_makes_no_pair(tmp_path):
    corpus = Corpus.build(tmp_path / "c", [[["Same here.", "same HERE", "Same, here!"]]])
    with pytest.raises(DataError, match="two different sentences"):
        Population(corpus, 0, 1, 9)
