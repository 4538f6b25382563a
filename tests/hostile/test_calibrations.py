"""Calibrations of random scores and labels hold or are refused; damaged files are refused with the key."""

import copy
import json
import random

import numpy as np
import pytest

from samesense.errors import ConfigError, DataError, ModelError
from samesense.inference.calibration.fit import CalibrationSettings, calibrate
from samesense.inference.calibration.storage import home_of, read, store
from samesense.metrics import precision_at, recall_at
from tests.hostile.conftest import json_items
from tests.inference.made_labelled import labelled, reader


def made_scores(random):
    """Scores and labels of yes and no: told apart well, badly, or not at all; few of a kind; tied; repeated."""
    count = int(random.integers(50, 600))
    right = (random.uniform(size=count) < random.choice([0.05, 0.2, 0.5, 0.9])).astype(float)
    scores = random.normal(random.choice([-1.0, 0.0, 0.5, 2.0, 5.0]) * right, 1)
    scores = {
        "as they are": lambda: scores,
        "cosines": lambda: np.tanh(scores / 3),
        "tied": lambda: np.round(scores),
        "large": lambda: 1e6 * scores,
        "one value": lambda: np.full(count, 0.5),
        "two values": lambda: (scores > 0).astype(float),
    }[random.choice(["as they are", "cosines", "tied", "large", "two values", "one value"])]()
    rows = random.integers(0, count, count) if random.uniform() < 0.3 else np.arange(count)  # some rows many times
    return scores[rows], right[rows], rows


def settings_of(random):
    """Random settings; some promise more than most pairs allow."""
    promise = random.choice(["none", "min_precision", "min_recall"])
    least = {} if promise == "none" else {promise: float(random.choice([0.3, 0.8, 0.9, 0.95, 0.99, 1.0]))}
    return CalibrationSettings(
        decide=str(random.choice(["accuracy", "f1"])), folds=int(random.integers(2, 11)), **least
    )


def check_seed(home, seed):
    """Calibrate what a seed makes; return whether it was calibrated."""
    generator = np.random.default_rng(seed)
    scores, right, _ = made_scores(generator)
    settings = settings_of(generator)
    data = labelled(scores, right, kind="binary", scale=(0.0, 1.0))
    try:
        made = calibrate(reader(), data, home.fingerprint(), settings)
    except (DataError, ConfigError) as error:
        assert not isinstance(error, ConfigError) or settings.promise is None
        return False
    store(made.calibration, home.file)
    calibration = read(home)
    assert calibration == made.calibration
    assert calibration.says_yes(scores).sum() > 0 or settings.promise
    for by in calibration.thresholds:
        assert np.isfinite(calibration.threshold(by))
    assert np.isfinite(calibration.apply(scores)).all()
    assert str(made)
    if settings.promise is not None:
        name, least = settings.promise
        assert calibration.errors[name] >= least
        inside = {"precision": precision_at, "recall": recall_at}[name](scores, right, calibration.threshold())
        assert inside >= least - 0.05  # rows that are repeated count once for the promise
    for least, threshold in calibration.precisions:
        assert calibration.at_precision(least) == threshold
    return True


@pytest.fixture
def home(tmp_path):
    (tmp_path / "origin.json").write_text("{}")
    return home_of(f"origin:{tmp_path}")


def test_what_was_calibrated_can_be_used_and_holds(home):
    calibrated = sum(check_seed(home, seed) for seed in range(30))
    assert 5 < calibrated < 30


@pytest.mark.long
def test_what_was_calibrated_can_be_used_and_holds_for_many(home):
    assert sum(check_seed(home, seed) for seed in range(1000, 2000)) > 200


JUNK = (
    None,
    True,
    -1,
    0,
    3,
    1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "0.5",
    "x" * 5000,
    [],
    [5, 0],
    [0, 1, 2],
    {},
    {"f1": "x"},
    [[[[[0]]]]],
    {"kind": "isotonic"},
    {"kind": "logistic", "slope": float("nan")},
)


def places(value, path=()):
    """Yield the path of keys to every value in a JSON value."""
    if path:
        yield path
    for key, inner in json_items(value):
        yield from places(inner, (*path, key))


def damaged(content, generator):
    """Return the content with one value changed, removed, or added."""
    changed = copy.deepcopy(content)
    *outer, last = generator.choice([*places(changed)])
    inside = changed
    for key in outer:
        inside = inside[key]
    kind = generator.random()
    if kind < 0.7:
        inside[last] = generator.choice(JUNK)
    elif kind < 0.85:
        del inside[last]
    elif isinstance(inside, dict):
        inside[generator.choice(["extra", "__class__", ""])] = generator.choice(JUNK)
    else:
        inside.append(generator.choice(JUNK))
    return changed


@pytest.mark.parametrize("shape", ["isotonic", "logistic"])
def test_a_damaged_calibration_is_refused_with_its_file_and_key_or_still_usable(home, shape):
    generator = random.Random(shape)
    scores = np.random.default_rng(0).uniform(size=300)
    data = labelled(scores, (scores > 0.4).astype(float), kind="binary", scale=(0.0, 1.0))
    settings = CalibrationSettings(shape=shape, min_precision=0.8)
    store(calibrate(reader(), data, home.fingerprint(), settings).calibration, home.file)
    whole = json.loads(home.file.read_text())
    refused = 0
    for _ in range(600):
        home.file.write_text(json.dumps(damaged(whole, generator)))
        try:
            calibration = read(home)
        except ModelError as error:
            assert str(home.file) in str(error) and "Calibrate again" in str(error)
            assert len(str(error)) < 1000
            refused += 1
        else:
            values = calibration.apply(np.linspace(-3, 3, 50))
            assert ((values >= -1e-6) & (values <= 1 + 1e-6)).all() and (np.diff(values) >= 0).all()
            assert np.isfinite(calibration.threshold())
    assert refused > 300


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"map": ' * 5000]
)
def test_what_is_no_calibration_at_all_is_refused(home, content):
    home.file.write_bytes(content)
    with pytest.raises(ModelError, match="Calibrate again") as refused:
        read(home)
    assert str(home.file) in str(refused.value)
