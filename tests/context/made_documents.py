"""Small documents for the tests of contexts, made of a few words."""

from itertools import pairwise

import numpy as np

SUBJECTS = "the dog|a cat|my neighbour|the old sailor|our teacher|a tall woman|the child|his brother".split("|")
VERBS = "saw|followed|painted|forgot|carried|sold|wanted|described".split("|")
OBJECTS = "the river|a red boat|two letters|the garden|an empty house|some bread|the map|a song".split("|")
TIMES = "in the morning|after the rain|on Monday|without a word|at night|in spring".split("|")


def sentence(draw):
    phrases = [str(draw.choice(names)) for names in (SUBJECTS, VERBS, OBJECTS, TIMES)]
    return " ".join(phrases).capitalize() + "."


def documents(count, seed=0, most=23):
    """Documents of 0 to ``most`` sentences in 1 to 3 sections."""
    draw = np.random.default_rng(seed)
    sections = []
    for _ in range(count):
        sentences = [sentence(draw) for _ in range(int(draw.integers(0, most + 1)))]
        cuts = sorted(int(edge) for edge in draw.integers(0, len(sentences) + 1, size=draw.integers(0, 3)))
        edges = [0, *cuts, len(sentences)]
        sections.append([sentences[start:end] for start, end in pairwise(edges)])
    return sections
