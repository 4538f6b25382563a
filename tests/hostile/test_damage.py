"""Every folder that the library writes, damaged in one place and opened: refused in words, or usable.

Damage inside bare numbers (vectors, weights) goes unnoticed where no hash of them is stored; such answers are counted
separately, and only formats of ``UNHASHED`` may give them.
"""

import hashlib
import json
import random
import shutil
import sqlite3
import warnings
from collections import Counter
from contextlib import closing

import numpy as np
import pytest

from samesense.errors import DataError, SamesenseError
from samesense.inference.models.load import load
from tests.context.worlds import small_worded_causal, some_documents
from tests.hostile.conftest import figures, rounds, write_json
from tests.hostile.test_model_folders import changes

TEXTS = ["a man eats a meal", "two dogs in the rain", "music by night"]
PAIRS = [(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[2])]
HARVEST = {"pairs": 120, "shard_size": 40, "unit": 6, "min_words": 1}


def damage(folder, source):
    """Damage one file of a folder, and return a description of the damage."""
    path = source.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    content = bytearray(path.read_bytes())
    start = source.randrange(len(content) + 1)
    end = min(len(content), start + source.choice([1, 1, 4, 64, 1000]))
    kind = source.choice(["noise", "noise", "zeros", "digits", "cut", "removed", "empty", "gone"])
    if kind == "gone":
        path.unlink()
        return f"{path.relative_to(folder)} gone"
    new = {
        "noise": content[:start] + source.randbytes(end - start) + content[end:],
        "zeros": content[:start] + bytes(end - start) + content[end:],
        "digits": bytes(
            source.choice(b"0123456789-") if byte in b"0123456789" and source.random() < 0.3 else byte
            for byte in content
        ),
        "cut": content[:start],
        "removed": content[:start] + content[end:],
        "empty": b"",
    }[kind]
    path.write_bytes(new)
    return f"{path.relative_to(folder)} {kind} {start}-{end}"


class Formats:
    """Makes folders of each format, and opens them for an answer to compare."""

    def __init__(self, static_model, exported_static):
        self.static_model = static_model
        self.exported_static = exported_static

    def make_collection(self, folder):
        from samesense.inference.collection.collection import Collection, Entry
        from samesense.inference.collection.embedder import embedder_of

        entries = [Entry(text, metadata={"topic": text[:3], "n": number}) for number, text in enumerate(TEXTS * 9)]
        Collection.build(folder, entries, embedder_of(load(str(self.exported_static)), "m")).delete([3])

    def open_collection(self, folder):
        from samesense.inference.collection.collection import Collection
        from samesense.inference.collection.embedder import embedder_of

        collection = Collection.open(folder)
        model = embedder_of(load(str(self.exported_static)), "m")
        answers = [
            collection.query(TEXTS, model, top=40, hybrid=hybrid, where=where)
            for hybrid, where in ((False, None), (True, None), (False, "topic = 'two' AND n > 4"))
        ]
        return [[(hit.id, hit.text, round(hit.score, 5), hit.metadata) for hit in hits] for a in answers for hits in a]

    def make_exported(self, folder):
        shutil.copytree(self.exported_static, folder, ignore=shutil.ignore_patterns("*.safetensors", "*.md"))

    def open_exported(self, folder):
        return load(str(folder)).encode(TEXTS).round(5).tolist()

    def make_model(self, folder):
        shutil.copytree(self.static_model, folder)

    def open_model(self, folder):
        return load(str(folder)).identity

    def make_words(self, folder):
        folder.mkdir()
        np.save(folder / "vectors.npy", np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32))
        (folder / "words.txt").write_text("man\ndogs\nmusic\n")

    def open_words(self, folder):
        return load(f"words:{folder}").encode(TEXTS).round(5).tolist()

    def make_shards(self, folder):
        (folder.parent / "texts.txt").write_text("\n".join(TEXTS * 4))
        self.open_shards(folder)

    def open_shards(self, folder):
        from samesense.execution.shards.tasks import Serial
        from samesense.inference.shards.encode import ShardSettings, encode_shards

        source = folder.parent / "texts.txt"
        encode_shards(str(self.exported_static), [str(source)], folder, ShardSettings(shard_size=5), Serial())
        return [np.load(path).round(5).tolist() for path in sorted((folder / "shards").iterdir())]

    def make_harvest(self, folder):
        from tests.recipes import harvest_world

        harvest_world.make(harvest_world.world(folder.parent / "world"), folder, **HARVEST)

    def open_harvest(self, folder):
        from samesense.recipes.surrogate.reading import read_harvest
        from samesense.recipes.surrogate.settings import SurrogateSettings

        harvest = read_harvest([str(folder)], SurrogateSettings(held_out_share=0.2))
        return harvest.table.to_pydict()

    def make_corpus(self, folder):
        from samesense.context.corpus.corpus import Corpus
        from samesense.context.retrieval.tfidf import Tfidf

        Tfidf(Corpus.build(folder / "corpus", some_documents(20)), folder / "index")

    def open_corpus(self, folder):
        from samesense.context.corpus.corpus import Corpus
        from samesense.context.retrieval.tfidf import Tfidf

        corpus = Corpus(folder / "corpus")
        return [list(corpus), [chunk.tolist() for chunk in Tfidf(corpus, folder / "index").chunks(TEXTS[0], 5)]]

    def make_origin(self, folder):
        from samesense.recipes.origin import recipe
        from samesense.recipes.origin.settings import choose_origin

        documents = folder.parent / "documents.jsonl"
        documents.write_text("\n".join(json.dumps({"sentences": sections[0]}) for sections in some_documents(12)))
        small = {"reference": 60, "kept_words": 20, "dimensions": 8, "score_precision": "float32"}
        model = small_worded_causal(folder.parent / "causal")
        recipe.run([str(documents)], choose_origin("words", {**small, "language_model": str(model)}), folder)

    def open_origin(self, folder):
        return load(f"origin:{folder}").scores(PAIRS).round(5).tolist()

    def make_remembered(self, folder):
        folder.mkdir()
        self.open_remembered(folder)

    def open_remembered(self, folder):
        return load(str(self.exported_static), cache=folder).encode(TEXTS).round(5).tolist()

    def make_calibration(self, folder):
        from samesense.data import read_pairs, sample_path
        from samesense.inference.calibration.fit import CalibrationSettings, calibrate
        from samesense.inference.calibration.storage import home_of, store

        shutil.copytree(self.exported_static, folder, ignore=shutil.ignore_patterns("*.safetensors", "*.md"))
        home = home_of(str(folder))
        calibration = calibrate(
            load(str(folder)), read_pairs(sample_path("dev")), home.fingerprint(), CalibrationSettings()
        )
        store(calibration.calibration, home.file)

    def open_calibration(self, folder):
        return load(str(folder)).scores(PAIRS, calibrated=True).round(5).tolist()

    def make_results(self, folder):
        from samesense.data import read_pairs, sample_path
        from samesense.evaluation.sts import evaluate_pairs
        from samesense.reports.store import append_results

        model = load(str(self.exported_static))
        dev = read_pairs(sample_path("dev"))
        append_results(folder / "results.jsonl", evaluate_pairs(model, dev, intervals=False))
        (folder / "manifest.json").write_text(json.dumps({"settings": {"seed": 1}}))
        (folder / "history.jsonl").write_text('{"step": 5, "eval_dev_spearman": 0.5}\n' * 3)

    def open_results(self, folder):
        from samesense.reports.store import read_run

        return repr(read_run(folder, "run"))


NAMES = [name.removeprefix("make_") for name in vars(Formats) if name.startswith("make_")]
UNHASHED = {*NAMES} - {"harvest"}
"""Formats that keep no hash of all that they hold; see docs/reliability.md."""


@pytest.fixture(scope="module")
def formats(static_model, exported_static):
    return Formats(static_model, exported_static)


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_folder_is_refused_in_words_or_usable(formats, tmp_path, name):
    make = getattr(formats, f"make_{name}")
    reopen = getattr(formats, f"open_{name}")
    intact = tmp_path / "made" / name
    folder = tmp_path / "opened" / name
    intact.parent.mkdir()
    make(intact)
    shutil.copytree(intact.parent, folder.parent)
    expected = reopen(folder)
    outcomes = Counter()
    source = random.Random(int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]))
    for _ in range(rounds(short=12, long=1000)):
        shutil.rmtree(folder)
        shutil.copytree(intact, folder)
        done = damage(folder, source)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = reopen(folder)
        except SamesenseError as error:
            assert len(str(error)) > 20, done
            outcomes["refused"] += 1
        except Exception as error:
            raise AssertionError(f"{name}: {done}: {type(error).__name__}: {error}") from error
        else:
            outcomes["right" if answer == expected else "differs"] += 1
            assert answer == expected or name in UNHASHED, done
    figures(f"damage, {name}", outcomes)


READ = {
    "collection": ["collection.sqlite", "vectors-"],
    "shards": ["shards/", "manifest", "history"],
    "harvest": ["shards/", "manifest"],
    "origin": ["origin.json", "corpus/", "parts"],
    "exported": ["onnx"],
}
"""Fragments of the names of the files that each format reads."""


@pytest.mark.posix
@pytest.mark.parametrize("name", READ)
def test_links_out_of_a_folder_are_refused(formats, tmp_path, name):
    folder = tmp_path / "made" / name
    folder.parent.mkdir()
    getattr(formats, f"make_{name}")(folder)
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or not any(fragment in str(path.relative_to(folder)) for fragment in READ[name]):
            continue
        content = path.rename(tmp_path / "outside")
        path.symlink_to(content)
        with pytest.raises(SamesenseError, match=r"leads out|a link"):
            getattr(formats, f"open_{name}")(folder)
        path.unlink()
        content.rename(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", -1),
        ("rows", 10**12),
        ("rows", "many"),
        ("dim", -8),
        ("dim", 10**9),
        ("dtype", "int8"),
        ("vectors", "../vectors-00000000-00000000.bin"),
        ("vectors", "collection.sqlite"),
        ("graph", "/etc/passwd"),
        ("graph_rows", 10**6),
        ("key", None),
        ("approximate", "maybe"),
        ("next_id", None),
        ("new", "name"),
    ],
)
def test_a_collection_whose_database_says_what_cannot_be_is_refused(formats, tmp_path, name, value):
    formats.make_collection(tmp_path / "C")
    with closing(sqlite3.connect(tmp_path / "C" / "collection.sqlite")) as db:
        db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))
        db.commit()
    with pytest.raises(DataError, match=r"damaged|another version"):
        formats.open_collection(tmp_path / "C")


@pytest.mark.parametrize("name", ["bytes", "sentences", "sections", "documents"])
def test_negative_counts_of_a_corpus_are_refused(formats, tmp_path, name):
    formats.make_corpus(tmp_path / "C")
    manifest = tmp_path / "C" / "corpus" / "manifest.json"
    write_json(manifest, json.loads(manifest.read_text()) | {name: -5})
    with pytest.raises(DataError, match="must hold -"):
        formats.open_corpus(tmp_path / "C")


JSON_FORMATS = ["exported", "shards", "harvest", "corpus", "origin", "calibration", "results"]
"""Formats with a file of JSON that is no model's; those of models are in test_model_folders.py."""


@pytest.mark.parametrize("name", JSON_FORMATS)
def test_a_changed_file_of_json_is_refused_in_words_or_usable(formats, tmp_path, name):
    make = getattr(formats, f"make_{name}")
    reopen = getattr(formats, f"open_{name}")
    intact = tmp_path / "made" / name
    folder = tmp_path / "opened" / name
    intact.parent.mkdir()
    make(intact)
    shutil.copytree(intact.parent, folder.parent)
    reopen(folder)
    every = list(changes(intact))
    outcomes = Counter()
    seed = JSON_FORMATS.index(name)
    for number in np.random.default_rng(seed).permutation(len(every))[: rounds(short=25, long=100_000)]:
        file, words, content = every[number]
        shutil.rmtree(folder)
        shutil.copytree(intact, folder)
        (folder / file).write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reopen(folder)
        except SamesenseError as error:
            assert len(str(error)) > 20, words
            outcomes["refused"] += 1
        except Exception as error:
            raise AssertionError(f"{name}: {file} {words}: {type(error).__name__}: {error}") from error
        else:
            outcomes["usable"] += 1
    figures(f"changed files of JSON, {name}", outcomes)
