"""Colours are checked with a model of colour vision, not by eye."""

import itertools

import numpy as np
import pytest

from samesense.reports.figures.plot import DARK, LIGHT, SERIES, SERIES_ON_DARK, style_of, variables

KINDS = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
}
"""Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB."""


def linear(colour):
    channels = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    scaled = np.array(matrix) @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    root = np.where(scaled > (6 / 29) ** 3, np.cbrt(scaled), scaled / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def contrast(foreground, background):
    light, dark = sorted(
        (float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (foreground, background)), reverse=True
    )
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("colours", [SERIES[:6], SERIES_ON_DARK[:6]], ids=["light", "dark"])
def test_series_are_told_apart(colours, kind):
    lab_colours = [lab(np.array(KINDS[kind]) @ linear(colour)) for colour in colours]
    assert min(np.linalg.norm(first - second) for first, second in itertools.combinations(lab_colours, 2)) > 12


@pytest.mark.parametrize("ground", [LIGHT, DARK], ids=["light", "dark"])
def test_words_are_legible(ground):
    assert contrast(ground["ink"], ground["ground"]) > 12
    assert contrast(ground["muted"], ground["ground"]) > 4.5


def test_series_stand_out_on_dark_ground():
    assert min(contrast(colour, DARK["ground"]) for colour in SERIES_ON_DARK) > 5


def test_colour_is_never_the_only_difference():
    styles = [style_of(index) for index in range(49)]
    assert len(set(styles)) == 49
    assert len({(style.marker, style.dash) for style in styles[:7]}) == 7


def test_every_drawn_colour_is_replaced_by_one_variable():
    drawn = [colours[0] for colours in variables().values()]
    assert len(set(drawn)) == len(drawn) == 11
