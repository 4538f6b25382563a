"""URLs of every kind: those that are documented are opened, all others are refused by name before fsspec sees them."""

import random
import re
import string
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest

from samesense.data import load_rows
from samesense.errors import ConfigError, DataError
from samesense.urls import SCHEMES, is_file, is_url, matching, open_file, state, store_of
from tests.command import run_command
from tests.hostile.conftest import rounds

REFUSED = (
    "tar://x.tsv::bomb.zip",
    "zip://x.tsv::s3://bucket/all.zip",
    "reference://x.tsv",
    "jupyter://host/x.tsv",
    "ssh://h/x.tsv",
    "sftp://h/x.tsv",
    "smb://h/x.tsv",
    "ftp://h/x.tsv",
    "github://o:r@main/x.tsv",
    "dask://x.tsv",
    "git://x.tsv",
    "local://x.tsv",
    "simplecache::s3://bucket/x.tsv",
    "filecache::memory://x.tsv",
    "memory://x.tsv::memory://y.tsv",
    "blockcache::https://host/x.tsv",
    "libarchive://x.tsv::a.7z",
    "dir://x.tsv",
    "data://text,x.tsv",
    "hdfs://h/x.tsv",
    "FILE://x.tsv",
    "S3://bucket/x.tsv",
    "generic://x.tsv",
    "asynclocal://x.tsv",
    "python://os:system.tsv",
)


@pytest.mark.parametrize("url", REFUSED)
def test_what_is_not_documented_is_refused_by_name(url, monkeypatch):
    monkeypatch.setattr("fsspec.core.url_to_fs", lambda *_: pytest.fail("fsspec was asked"))
    scheme = re.match(r"\w+", url)[0]
    for read in (store_of, is_file, matching, open_file, state, lambda name: list(load_rows(name))):
        with pytest.raises(DataError, match=rf"received {scheme}://|'::' would lead through"):
            read(url)


@pytest.mark.parametrize(
    "command",
    [
        "doctor URL",
        "encode words:words.vec URL",
        "dedup URL --model words:words.vec",
        "evaluate words:words.vec --data URL",
        "train URL --output run",
        "encode words:words.vec texts.txt --output URL --format npy",
    ],
)
@pytest.mark.parametrize("url", REFUSED[:4])
def test_commands_refuse_it_in_one_line(here, capsys, command, url):
    code, _, err = run_command(capsys, *(word.replace("URL", url) for word in command.split()))
    assert code == 2 and "Traceback" not in err and url in err, err


def test_schemes_of_chance_are_refused(monkeypatch):
    protocols = sorted(fsspec.available_protocols())
    for seed in range(rounds(300, 5000)):
        draw = random.Random(seed)
        scheme = draw.choice(
            ["".join(draw.choices(string.ascii_letters + "+-._", k=draw.randint(2, 9))), draw.choice(protocols)]
        )
        url = f"{scheme}://{draw.choice(['h/x.tsv', 'x.tsv::memory://y', '::', '//', 'a:b@c/x.jsonl'])}"
        if is_url(url) and (scheme not in SCHEMES or "::" in url):
            with pytest.raises(DataError):
                store_of(url)


def test_documented_schemes_are_those_that_are_opened():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    section = page.partition("### URLs")[2].partition("\n#")[0]
    documented = set(re.findall(r"`(\w+)://", section)) - {"zip", "file"}
    assert documented == set(SCHEMES)
    assert set(SCHEMES) <= set(fsspec.available_protocols())


@pytest.mark.parametrize("error", [RuntimeError("no network"), KeyError("x"), OSError("timed out"), TimeoutError()])
def test_what_a_store_raises_is_said(monkeypatch, error, here, capsys):
    from fsspec.implementations.memory import MemoryFileSystem

    def fail(*_, **__):
        raise error

    for method in ("isfile", "info", "glob", "open", "_open"):
        monkeypatch.setattr(MemoryFileSystem, method, fail)
    for read in (is_file, state, matching):
        with pytest.raises(DataError, match=r"memory://x.tsv cannot be read"):
            read("memory://x.tsv")
    with pytest.raises((OSError, DataError)):
        open_file("memory://x.tsv")
    code, _, err = run_command(capsys, "doctor", "memory://x.tsv")
    assert code == 2 and "memory://x.tsv" in err


def test_the_hub_without_a_network_is_an_error_of_one_line():
    code = "from samesense.cli.main import main; main(['doctor', 'hf://datasets/no-owner/no-name/y.tsv'])"
    environment = {"HF_HUB_OFFLINE": "1", "PATH": "", "PYTHONPATH": ":".join(sys.path), "HOME": "/nonexistent"}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert ended.returncode == 2 and "Traceback" not in ended.stderr, ended.stderr
    assert "hf://datasets/no-owner/no-name/y.tsv" in ended.stderr


def test_a_pattern_of_files_is_no_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a::b.txt").write_text("a text\n")
    assert matching("*::b.tx?") == [str(tmp_path / "a::b.txt")]


def test_an_absent_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(ConfigError, match="this store cannot be opened"):
        store_of("gs://bucket/x.tsv")
