"""The Surrogate: training and held-out pairs, regression targets, and the files of a run."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sentence_transformers import CrossEncoder, SentenceTransformer

from samesense.cli.main import app
from samesense.data import read_pairs
from samesense.data.pairs.keys import pair_key
from samesense.encoder.saving.storage import save
from samesense.encoder.vectors.stored import rows_of
from samesense.errors import ConfigError, DataError, OutputError
from samesense.inference.models.load import load
from samesense.metrics import spearman
from samesense.parquet import limits
from samesense.recipes.methods import METHODS
from samesense.recipes.run.job import Job
from samesense.recipes.surrogate import recipe as surrogate
from samesense.recipes.surrogate.data import targets_of
from samesense.recipes.surrogate.reading import read_harvest
from samesense.recipes.surrogate.settings import SurrogateSettings
from samesense.recipes.sweep.file import SweepFile
from samesense.recipes.sweep.plan import make_plan
from samesense.recipes.sweep.run import run
from samesense.reports import read_results
from tests.pages import assert_settings_are_listed, section
from tests.recipes.harvests import cross_pairs, pairs_of, some_pairs, some_sentences, write_harvest, write_vectors

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_harvest(tmp_path_factory.mktemp("harvests") / "small", some_pairs(400))


def settings(**overrides):
    return SurrogateSettings(**{"held_out_share": 0.15, "precision": "float32", **overrides})


def keys(data):
    return {pair_key(*pair) for pair in data.pairs()}


def teaching(harvest):
    rows = harvest.table.to_pydict()
    return list(zip(rows["sentence1"], rows["sentence2"], rows["label"], strict=True))


def test_every_pair_is_in_one_part_whichever_way_round_it_is(tmp_path):
    rows = some_pairs(2000)
    turned = [(second.upper(), first, score, kind) for first, second, score, kind in rows[:500]]
    harvest = read_harvest([write_harvest(tmp_path / "h", rows + turned)], SurrogateSettings())
    teach = {pair_key(first, second) for first, second, _ in teaching(harvest)}
    assert (
        not teach & keys(harvest.dev) and not teach & keys(harvest.held) and not keys(harvest.dev) & keys(harvest.held)
    )
    assert len(harvest) + len(harvest.dev) + len(harvest.held) == 2500
    assert 0.96 < len(harvest) / 2500 < 0.995
    expected = {(a, b): score for a, b, score, _ in rows + turned}
    assert all(expected[a, b] == score for a, b, score in teaching(harvest))
    assert dict(zip(harvest.held.pairs(), harvest.held.labels, strict=True)).items() <= expected.items()
    assert sum(harvest.kinds.values()) == 2500 and set(harvest.kinds) == {"random", "neighbour", "section"}


def test_parts_do_not_depend_on_shards_and_grow_with_the_harvest(tmp_path):
    rows = some_pairs(600)
    large_shards = read_harvest([write_harvest(tmp_path / "a", rows, shard=600)], settings())
    many = read_harvest([write_harvest(tmp_path / "b", rows, shard=7)], settings())
    assert (large_shards.sha256, large_shards.held.sha256, large_shards.dev.sha256) == (
        many.sha256,
        many.held.sha256,
        many.dev.sha256,
    )
    less = read_harvest([write_harvest(tmp_path / "c", rows[:300])], settings())
    assert keys(less.held) <= keys(large_shards.held) and keys(less.dev) <= keys(large_shards.dev)
    joined = read_harvest([str(tmp_path / "c"), write_harvest(tmp_path / "d", rows[300:])], settings())
    assert joined.sha256 == large_shards.sha256
    assert large_shards.take([5, 2]).sha256 != large_shards.take([2, 5]).sha256
    assert teaching(large_shards.take([5])) == [teaching(large_shards)[5]]


def test_fewer_pairs_are_a_part_of_more_and_what_judges_stays(folder):
    whole = read_harvest([folder], settings())
    small, large = (read_harvest([folder], settings(most_pairs=count)) for count in (20, 100))
    assert (len(small), len(large)) == (20, 100)
    assert set(teaching(small)) <= set(teaching(large)) <= set(teaching(whole))
    assert small.held.sha256 == large.held.sha256 == whole.held.sha256
    assert len(read_harvest([folder], settings(most_pairs=10_000))) == len(whole)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: (r[0], r[1], 1.5, r[3]), r"00001.parquet, row 4: a score is a cosine.*received 1\.5"),
        (lambda r: (r[0], r[1], float("nan"), r[3]), r"row 4: a score is a cosine.*received nan"),
        (lambda r: ("  ", r[1], r[2], r[3]), r"row 4: sentence1 must be a text"),
        (lambda r: (r[0], None, r[2], r[3]), r"row 4: sentence2 must be a text.*None"),
    ],
)
def test_a_bad_row_is_named(tmp_path, change, words):
    rows = some_pairs(30)
    rows[13] = change(rows[13])
    with pytest.raises(DataError, match=words):
        read_harvest([write_harvest(tmp_path / "h", rows, shard=10)], settings())


def test_what_cannot_be_split_or_is_no_harvest_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"is no harvest.*method cosent"):
        read_harvest([str(tmp_path)], settings())
    with pytest.raises(DataError, match=r"few\.\w+: a share of 0\.01 of 40 pairs holds \d out.*larger held_out_share"):
        read_harvest([write_harvest(tmp_path / "few", some_pairs(40))], SurrogateSettings())
    harvest = write_harvest(tmp_path / "half", some_pairs(40))
    (tmp_path / "half" / "manifest.json").write_text('{"status": "running"}')
    with pytest.raises(DataError, match="is not finished"):
        read_harvest([harvest], settings())
    harvest = write_harvest(tmp_path / "lost", some_pairs(90), shard=30)
    (tmp_path / "lost" / "shards" / "00001.parquet").unlink()
    with pytest.raises(DataError, match=r"has lost 1 of its shards, 00001\.parquet among them"):
        read_harvest([harvest], settings())
    same = [(a, b, 0.5, kind) for a, b, _, kind in some_pairs(300)]
    with pytest.raises(DataError, match=r"with 1 different scores"):
        read_harvest([write_harvest(tmp_path / "same", same)], settings())


def test_what_is_not_whole_says_what_to_do(tmp_path):
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "manifest.json").write_text('{"method": "harvest", "status": "running"}')
    with pytest.raises(DataError, match=r"begun is not finished.*to resume it"):
        read_harvest([str(tmp_path / "begun")], settings())
    harvest = write_harvest(tmp_path / "bare", some_pairs(90), shard=30)
    (tmp_path / "bare" / "manifest.json").unlink()
    with pytest.raises(DataError, match=r"bare/manifest\.json must be a file of JSON"):
        read_harvest([harvest], settings())
    harvest = write_harvest(tmp_path / "cut", some_pairs(90), shard=30)
    shard = tmp_path / "cut" / "shards" / "00001.parquet"
    whole = shard.read_bytes()
    for content in (b"", whole[:-30], whole[:20] + bytes(200) + whole[220:]):
        shard.write_bytes(content)
        with pytest.raises(DataError, match=r"00001\.parquet.*Delete the shard"):
            read_harvest([harvest], settings())
    pq.write_table(pq.read_table(tmp_path / "cut" / "shards" / "00000.parquet").drop_columns(["score"]), shard)
    with pytest.raises(DataError, match=r"00001\.parquet: the columns .* are needed; score is not there"):
        read_harvest([harvest], settings())


def test_a_shard_that_would_take_far_more_memory_than_its_file_is_refused(tmp_path, monkeypatch):
    rows = [
        (f"{'a' * 20_000} {row}", "b" * 20_000, score, kind) for row, (_, _, score, kind) in enumerate(some_pairs(90))
    ]
    harvest = write_harvest(tmp_path / "bomb", rows)
    monkeypatch.setattr(limits, "LARGEST_TOTAL", 100_000)
    monkeypatch.setattr(limits, "TOTAL_RATIO", 10)
    with pytest.raises(DataError, match=r"00000\.parquet, row 90, column 'sentence1': .* unpacked.*Delete the shard"):
        read_harvest([harvest], settings())


def test_a_shard_with_texts_that_are_no_utf8_is_refused(tmp_path):
    harvest = write_harvest(tmp_path / "h", some_pairs(90))
    (shard,) = Path(harvest).glob("shards/*")
    table = pq.read_table(shard)
    texts = pa.array([b"a", b"\xff\xfe", *[b"b"] * 88]).view(pa.string())
    pq.write_table(table.set_column(0, "sentence1", texts), shard)
    with pytest.raises(DataError, match=r"00000\.parquet.*'sentence1'.*UTF.*Delete the shard"):
        read_harvest([harvest], settings())


def test_a_shard_that_was_exchanged_is_refused(tmp_path):
    harvest = Path(write_harvest(tmp_path / "h", some_pairs(90), shard=30))
    manifest = json.loads((harvest / "manifest.json").read_text())
    shards = sorted((harvest / "shards").iterdir())
    for entry, path in zip(manifest["shards"], shards, strict=True):
        entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (harvest / "manifest.json").write_text(json.dumps(manifest))
    assert len(read_harvest([str(harvest)], settings())) > 50
    shards[1].write_bytes(shards[2].read_bytes())
    with pytest.raises(DataError, match=r"00001\.parquet is not the shard that was made"):
        read_harvest([str(harvest)], settings())


def test_targets(folder):
    scores = np.array([-0.5, 0.0, 0.25, 1.0])
    np.testing.assert_array_equal(targets_of(scores, 0.0, 1.0), scores)
    np.testing.assert_allclose(targets_of(scores, -0.5, 1.0), [(s + 0.5) / 1.5 for s in scores])
    with pytest.raises(DataError, match=r"all are 0\.3"):
        targets_of([0.3], 0.3, 0.3)
    harvest = read_harvest([folder], settings())
    low, high = surrogate.scale_of(harvest, settings(targets="spread"))
    labels = surrogate._dataset(harvest, (low, high))["label"]
    assert (min(labels), max(labels)) == (0, 1)
    assert spearman(np.array(labels), harvest.labels()) == pytest.approx(1)


def test_what_was_kept_is_measured_against_the_targets_as_they_were_spread(folder, tiny, tmp_path):
    chosen = settings(targets="spread")
    harvest = read_harvest([folder], chosen)
    scale = surrogate.scale_of(harvest, chosen)
    save(tiny, tmp_path / "run")
    job = Job(method="surrogate", data=harvest, settings=chosen, output=tmp_path / "run")
    figures = surrogate.measure_kept(job, scale)[1]["kept"]
    scores = load(tmp_path / "run", precision="float32").scores(harvest.held.pairs())
    targets = targets_of(harvest.held.labels, *scale)
    assert figures["mse"] == pytest.approx(np.mean((scores - targets) ** 2), rel=1e-5)
    assert figures["variance"] == pytest.approx(np.var(targets))


def test_scores_that_hardly_differ_are_warned_of(tmp_path):
    near = [(a, b, 0.998 + score / 1000, kind) for a, b, score, kind in some_pairs(300)]
    harvest = read_harvest([write_harvest(tmp_path / "h", near)], settings())
    lines = surrogate.summarize(harvest, settings(), (0.0, 1.0))
    assert lines[-1].startswith("warning: the scores deviate by 0.0007 only")
    assert len(surrogate.summarize(harvest, settings(targets="spread"), (0.997, 0.999))) == 2


@pytest.fixture(scope="module")
def of_words(tmp_path_factory):
    folder, (texts, vectors) = tmp_path_factory.mktemp("harvests") / "words", some_sentences(300)
    write_harvest(folder, pairs_of(texts, vectors, 3000))
    return write_vectors(folder, texts, vectors), dict(zip(texts, vectors, strict=True))


def test_sentences_of_a_harvest_teach_and_pairs_of_others_are_held_out(of_words, tmp_path):
    folder, vector_of = of_words
    harvest = read_harvest([folder], settings(held_out_share=0.05))
    texts = harvest.table["text"].to_pylist()
    np.testing.assert_array_equal(rows_of(harvest.table["embedding"]), [vector_of[text] for text in texts])
    held = {text for data in (harvest.dev, harvest.held) for pair in data.pairs() for text in pair}
    assert not held & set(texts) and 0.6 < len(texts) / 300 < 0.76
    assert not keys(harvest.dev) & keys(harvest.held)
    assert all(60 < len(data) < 260 for data in (harvest.dev, harvest.held))  # of 3000 pairs, 150 of each are expected
    assert all(
        score == pytest.approx(vector_of[a] @ vector_of[b], abs=1e-6)
        for (a, b), score in zip(harvest.held.pairs(), harvest.held.labels, strict=True)
    )
    assert "sentences of words with their vectors" in harvest.summary
    twice = read_harvest([folder, folder], settings(held_out_share=0.05))
    assert twice.sha256 == harvest.sha256 != harvest.take([1, 0]).sha256
    assert harvest.take([1, 0]).table["text"].to_pylist() == texts[1::-1]


def test_pairs_teach_where_sentences_cannot_or_shall_not(of_words, folder):
    for overrides in ({"learn_from": "pairs"}, {"encoder": "cross"}, {"targets": "spread"}, {"most_pairs": 50}):
        assert not read_harvest([of_words[0]], settings(**overrides)).by_sentences
    assert not read_harvest([of_words[0], folder], settings()).by_sentences
    with pytest.raises(ConfigError, match="scores of pairs and no vectors of sentences"):
        read_harvest([of_words[0], folder], settings(learn_from="sentences"))
    with pytest.raises(ConfigError, match=r"vectors; encoder cross and most_pairs 5 is for pairs"):
        SurrogateSettings(learn_from="sentences", encoder="cross", most_pairs=5)
    with pytest.raises(DataError, match=r"sentences are left to learn from.*smaller share"):
        read_harvest([of_words[0]], settings(held_out_share=0.4999))


def test_vectors_of_different_origins_are_not_one_space(of_words, tmp_path):
    other_origin = shutil.copytree(of_words[0], tmp_path / "other")
    manifest = other_origin / "vectors" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"origin": {"identity": "another"}}))
    assert not read_harvest([of_words[0], str(other_origin)], settings()).by_sentences
    with pytest.raises(ConfigError, match="harvests of different Origins, whose vectors have nothing in common"):
        read_harvest([of_words[0], str(other_origin)], settings(learn_from="sentences"))
    assert read_harvest([str(other_origin)], settings()).by_sentences


def test_epochs_left_to_the_data_are_more_of_sentences(of_words, folder):
    sentences, pairs = (read_harvest([path], settings()) for path in (of_words[0], folder))
    assert [settings().for_data(data).epochs for data in (sentences, pairs)] == [4, 1]
    assert [settings(epochs=1).for_data(data).epochs for data in (sentences, pairs)] == [1, 1]


@pytest.mark.slow
def test_a_run_learns_from_sentences(of_words, tiny_trunk, tmp_path):
    chosen = settings(model=str(tiny_trunk), held_out_share=0.05, learning_rate=3e-3, epochs=8, batch_size=32, seed=1)
    harvest = read_harvest([of_words[0]], chosen)
    output = tmp_path / "run"
    trained = METHODS["surrogate"].run(harvest, chosen, output, dev=harvest.dev)
    values = {row.metric: row.value for row in trained.results}
    scores = load(str(output), precision="float32").scores(harvest.held.pairs())
    assert values["spearman"] == pytest.approx(spearman(scores, harvest.held.labels), abs=1e-6)
    assert values["spearman"] > 0.5
    model = SentenceTransformer(str(output / "model"), device="cpu")
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling"]  # its projection is not saved


@pytest.mark.parametrize("options", [{"pooling": "cls"}, {"first": "embeddings"}, {"standardize": "mean"}])
def test_settings_of_vectors_are_none_of_a_cross_encoder(options):
    with pytest.raises(ConfigError, match="belong to encoder bi"):
        SurrogateSettings(encoder="cross", **options)


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "make_rows", "least"), [("bi", some_pairs, 0.4), ("cross", cross_pairs, 0.5)])
def test_a_run_learns_and_says_what_it_kept(tiny_trunk, tmp_path, encoder, make_rows, least):
    folder = write_harvest(tmp_path / "h", make_rows(400))
    chosen = settings(encoder=encoder, model=str(tiny_trunk), learning_rate=3e-3, epochs=6, batch_size=16, seed=1)
    harvest = read_harvest([folder], chosen)
    output = tmp_path / "run"
    trained = METHODS["surrogate"].run(harvest, chosen, output, dev=harvest.dev)
    values = {row.metric: row.value for row in trained.results}
    scores = load(str(output), precision="float32").scores(harvest.held.pairs())
    assert values["spearman"] == pytest.approx(spearman(scores, harvest.held.labels), abs=1e-6)
    assert values["mse"] == pytest.approx(float(np.mean((scores - np.array(harvest.held.labels)) ** 2)), rel=1e-5)
    assert values["mse"] < np.var(harvest.held.labels)
    assert values["spearman"] > least
    assert {row.task for row in trained.results} == {"surrogate"}
    assert read_results(output / "results.jsonl") == trained.results
    record = json.loads((output / "manifest.json").read_text())
    assert (record["method"], record["status"], record["kept"]["pairs"]) == ("surrogate", "finished", len(harvest.held))
    assert record["kept"]["variance"] == pytest.approx(np.var(harvest.held.labels))
    assert "scale" not in surrogate.describe_kept(record["kept"])
    assert surrogate.describe_kept({**record["kept"], "mse": 2.0}).endswith("not on the scale of these scores.")
    assert surrogate.describe_kept(record["kept"]) in (output / "model" / "README.md").read_text()
    if encoder == "bi":
        model = SentenceTransformer(str(output / "model"), device="cpu")
        assert [type(module).__name__ for module in model] == ["Transformer", "Pooling"]
    else:
        theirs = CrossEncoder(str(output / "model"), device="cpu").predict(harvest.held.pairs())
        np.testing.assert_allclose(theirs, scores, rtol=1e-4, atol=1e-6)
        assert "the logit" in load(str(output), precision="float32").protocol


@pytest.mark.slow
def test_a_run_stopped_while_it_is_evaluated_is_evaluated_when_resumed(
    folder, tiny_trunk, toy_pairs, tmp_path, monkeypatch
):
    chosen = settings(model=str(tiny_trunk), max_steps=2, batch_size=8)
    harvest = read_harvest([folder], chosen)
    output = tmp_path / "run"
    test = read_pairs(toy_pairs / "test.tsv")

    def killed(*args):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(surrogate, "describe_kept", killed)
        with pytest.raises(RuntimeError):
            METHODS["surrogate"].run(harvest, chosen, output, test=test)
    with pytest.raises(ConfigError, match=r"settings\.seed was 42 and is 7"):
        METHODS["surrogate"].run(harvest, chosen.model_copy(update={"seed": 7}), output, test=test, resume=True)
    trained = METHODS["surrogate"].run(harvest, chosen, output, test=test, resume=True)
    record = json.loads((output / "manifest.json").read_text())
    assert surrogate.describe_kept(record["kept"]) in (output / "model" / "README.md").read_text()
    assert trained.output.steps == 2 and trained.results == read_results(output / "results.jsonl")
    assert [row.task for row in trained.results[-3:]] == ["surrogate"] * 3
    assert len(trained.results) == len(set(map(str, trained.results))) > 3
    with pytest.raises(OutputError, match="is finished"):
        METHODS["surrogate"].run(harvest, chosen, output, test=test, resume=True)


def test_the_command_holds_out_selects_and_goes_on_from_the_model(folder, tiny_trunk, toy_pairs, tmp_path, capsys):
    quick = ["--precision", "float32", "--max-steps", "2", "--batch-size", "8", "--json"]
    words = ["train", folder, "--method", "surrogate", "--held-out-share", "0.15", "--model", str(tiny_trunk), *quick]
    app([*words, "--output", str(tmp_path / "s"), "--dry-run"], exit_on_error=False, result_action="return_value")
    assert "selection: Spearman on" in capsys.readouterr().err
    app([*words, "--output", str(tmp_path / "s")], exit_on_error=False, result_action="return_value")
    out, err = capsys.readouterr()
    assert "cosines learn Origin's scores, as they are" in err
    *rows, verdict = [json.loads(line) for line in out.splitlines()]
    assert [row["task"] for row in rows if row["dataset"] == "small.held"][-3:] == ["surrogate"] * 3
    assert verdict["sets"][0]["role"] == "cross-fitted dev"
    command = ["train", str(toy_pairs / "train.tsv"), "--loss", "mse", "--model", str(tmp_path / "s"), *quick]
    command += ["--folds", "none"]
    app([*command, "--output", str(tmp_path / "f")], exit_on_error=False, result_action="return_value")
    assert load(str(tmp_path / "f"), precision="float32").scores([("a dog eats", "a cat sleeps")]).shape == (1,)


def test_the_method_is_registered():
    assert set(METHODS["surrogate"].reading) >= {"held_out_share", "most_pairs", "learn_from"}
    assert METHODS["surrogate"].choose("auto", {}, lambda: None)[1] == SurrogateSettings()


def test_the_page_lists_every_setting_with_its_default():
    settings_text, _, _ = section("methods/surrogate.md", "Settings").partition("`--method context`")
    assert_settings_are_listed(settings_text, SurrogateSettings.model_fields)


@pytest.mark.slow
def test_surrogates_by_number_of_pairs_and_structure_in_one_sweep(tiny_trunk, toy_pairs, tmp_path):
    quick = {"max_steps": 2, "batch_size": 8, "precision": "float32", "held_out_share": 0.15, "max_seq_length": 32}
    file = SweepFile(
        seeds=(1,),
        start=True,
        base={"method": "surrogate", "model": str(tiny_trunk), "layers": 2, **quick},
        case=({"most_pairs": 20}, {"most_pairs": 60}, {"name": "both together", "encoder": "cross"}),
        data=(
            {
                "name": "harvest",
                "train": write_harvest(tmp_path / "h", some_pairs(120)),
                "dev": "none",
                "test": str(toy_pairs / "test.tsv"),
            },
        ),
    )
    plan = make_plan(file)
    assert [len(plan.splits_of(cell).train) for cell in plan.cells[1:3]] == [20, 60]
    ended = run(plan, tmp_path / "sweep")
    assert (ended.finished, ended.failed) == (4, 0)
