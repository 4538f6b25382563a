"""Where files may be written and read: checked before the work, so that nothing of the user's is lost, nor time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from samesense.errors import ConfigError, DataError, OutputError
from samesense.failures import writing
from samesense.files import is_special, temporary, write_text
from samesense.hashes import text_hash
from samesense.locks import is_empty, only_writer_of
from samesense.urls import SCHEMES, is_file, is_url, local

JOINT = " + "
"""Between the names of sources that are read as one."""

# pathlib leaves one slash of two; a drive of Windows has a single letter.
_URL = re.compile(r"([A-Za-z][\w+.-]+):/+(.*)")


def check_place(path: str | Path, inputs: Iterable[str | Path] = ()) -> None:
    """Make the folder of a file, and raise OutputError, before long work, if the file could not be written there.

    Neither is it written over one of ``inputs``, or a file in one that is a folder. What is no file among them, such as
    a name of the hub, is passed over.
    """
    _refuse_url(path)
    target = Path(path)
    if is_special(path):
        return  # it is written into, and what it is cannot be told before
    with writing(path):
        if target.is_dir():
            raise OutputError(f"{path} is a folder, and a file is to be written there. Name a file in it.")
        for input_path in _there(inputs) if target.exists() else ():
            if target.samefile(input_path) or target.resolve().is_relative_to(input_path.resolve()):
                raise OutputError(f"{path} would be written over, and {input_path} is read here. Name another output.")
        _check_parents(target)
        target.resolve().parent.mkdir(parents=True, exist_ok=True)
        _try(target.resolve())


@contextmanager
def writing_outputs(
    names: Sequence[str], inputs: Iterable[str | Path | None] = (), *, overwrite: bool
) -> Iterator[None]:
    """Check files before long work, and hold them while it goes on, so that no other process replaces them.

    ``"-"`` is standard output, and ``None`` an input that was not given. ConfigError if two are the same file;
    OutputError for one that cannot be written, is held by another process, or has content and ``overwrite`` is not
    given; see :func:`check_place`.
    """
    if names.count("-") > 1:
        raise _same_output_error(names)
    check_distinct([name for name in names if name != "-"])
    given_inputs = [path for path in inputs if path is not None]
    with ExitStack() as stack:
        for name in names:
            if name == "-":
                continue
            check_place(name, given_inputs)
            stack.enter_context(holding(name))
            # Under the lock, as another process may have written the file since.
            check_absent(name, overwrite=overwrite)
        yield


@contextmanager
def holding(*paths: str | Path | None) -> Iterator[None]:
    """Hold files while work for them goes on; OutputError if another process does, see :func:`only_writer_of`.

    ConfigError if two are the same file.
    """
    held = [path for path in paths if path is not None and not is_special(path)]
    check_distinct(held)
    with ExitStack() as stack:
        for path in held:
            stack.enter_context(only_writer_of(Path(path).resolve()))
        yield


def check_distinct(paths: Sequence[str | Path]) -> None:
    """Raise ConfigError if two outputs are the same file or folder."""
    if len({Path(path).expanduser().resolve() for path in paths}) < len(paths):
        raise _same_output_error(paths)


def _same_output_error(paths: Sequence[str | Path]) -> ConfigError:
    return ConfigError(f"Each output is a file of its own; received {', '.join(map(str, paths))}.")


def check_absent(path: str | Path, *, overwrite: bool) -> None:
    """Raise OutputError, before long work, for a file with content that may not be replaced."""
    if overwrite or is_special(path):
        return
    if is_url(path):
        is_there = is_file(path)
    else:
        target = Path(local(str(path)))
        # An empty one, as mktemp makes it, is no loss.
        is_there = target.is_file() and target.stat().st_size > 0
    if is_there:
        raise OutputError(f"{path} is there. Name another output, or pass `overwrite` to replace it.")


PAGE = (".html", ".htm")
"""Endings of a page."""


def check_suffix(path: str | Path, noun: str, suffixes: Sequence[str]) -> None:
    """Raise ConfigError for a file whose name ends as that of another format; pipes and devices have any name."""
    if Path(path).suffix.lower() not in suffixes and not is_special(path):
        raise ConfigError(f"{noun} ends in {' or '.join(suffixes)}; received {str(path)!r}. Name it so.")


def check_folder(path: str | Path, inputs: Iterable[str | Path] = ()) -> None:
    """Raise OutputError, before long work, if a folder could not be written at ``path``.

    As it may be replaced as a whole, it may not hold one of ``inputs``; see :func:`check_place`.
    """
    _refuse_url(path)
    target = Path(path)
    if is_special(path):
        raise OutputError(f"{path} is no folder or file, and is not replaced by a folder. Name another place.")
    with writing(path):
        for input_path in _there(inputs):
            if input_path.resolve().is_relative_to(target.resolve()):
                raise OutputError(
                    f"{path} would be written over, and {input_path} in it is read here. Name another output."
                )
        # Nothing is made yet: the nearest folder that exists is tried in its place.
        _try(_check_parents(target) / target.name)


def check_outside(sources: Iterable[str], output: Path) -> None:
    """Raise ConfigError if the output lies in a folder of documents: what is written there would be read as one."""
    for source in sources:
        folder = Path(source).expanduser()
        if folder.is_dir() and output.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(
                f"The output must not lie in a folder of documents, which it would be read with; {output} lies in "
                f"{source}. Choose an output folder elsewhere."
            )


def is_free(folder: Path) -> bool:
    """Return whether there is nothing at ``folder`` that writing would lose."""
    return not folder.exists() or (folder.is_dir() and is_empty(folder))


def check_empty(folder: Path) -> None:
    """Raise OutputError if there is something at ``folder`` that writing would lose."""
    if not is_free(folder):
        raise OutputError(f"{folder} is not empty. Choose another output folder, or pass `overwrite` to replace it.")


def _refuse_url(path: str | Path) -> None:
    """Raise OutputError for a URL, which would become folders below the working directory."""
    url = _URL.fullmatch(str(path))
    if url is None or url[1].lower() not in (*SCHEMES, "file"):
        return
    fix = f"Name a path, /{url[2]}."
    if url[1].lower() != "file":
        fix = "Name a path, and copy the result there."
    raise OutputError(f"This output is written to a disk, and {path} is a URL. {fix}")


def _check_parents(target: Path) -> Path:
    """Return the nearest folder above a place that is there; OutputError if something above it is a file."""
    above = next(parent for parent in target.absolute().parents if parent.exists())
    if not above.is_dir():
        raise OutputError(f"{target} cannot be written: {above} is a file, and no folder. Name another output.")
    return above


def _there(inputs: Iterable[str | Path]) -> Iterator[Path]:
    """Yield the files and folders among names of anything, also of several sources that were joined."""
    for value in inputs:
        joined = [str(value), *str(value).split(JOINT)]
        # a folder may be followed by the name of a split
        for name in (name for spec in joined for name in (spec, spec.rpartition(":")[0])):
            with suppress(OSError, ValueError, RuntimeError):  # a name that no file can have
                path = Path(local(name)).expanduser()
                if name and path.exists():
                    yield path


def _try(target: Path) -> None:
    """Write a byte beside a file and remove it again: permissions do not tell of a disk that is full or read-only."""
    with suppress(FileNotFoundError):
        target.lstat()  # says if the name is too long
    beside = temporary(target)
    try:
        beside.write_bytes(b"\n")
    finally:
        beside.unlink(missing_ok=True)


def check_inside(folder: Path, *names: str | Path) -> None:
    """Raise DataError for a name in ``folder``, as a manifest gives it, or a path that leads out, as a link may.

    In the cache of the hub, files are links to what is beside the snapshot.
    """
    home = folder.resolve()
    home = home.parents[1] if home.parent.name == "snapshots" else home
    for name in names:
        path = name if isinstance(name, Path) else folder / name
        if not path.resolve().is_relative_to(home):
            raise DataError(
                f"The files of a folder lie in it; {path} leads out of it, to {path.resolve()}. Copy the file there, "
                "if you trust it."
            )


IDENTITY = "identity.txt"
"""File of a folder for one identity that says it in full."""


def identity_folder(folder: Path, identity: str) -> Path:
    """Return the folder in ``folder`` for what only one identity, such as a model, gives; it is made if absent.

    It is named by the hash of the identity, so that what another one gave is never taken up; a file says it in full.
    """
    home = folder.absolute() / text_hash(identity)[:32]
    home.mkdir(parents=True, exist_ok=True)
    note = home / IDENTITY
    if not note.exists():
        write_text(note, identity + "\n")
    return home


def name_without_folder(source: str) -> str:
    """Return the names of data without their folders; a name on the hub stays whole."""
    return JOINT.join(map(_name_without_folder, source.split(JOINT)))


def _name_without_folder(source: str) -> str:
    path = Path(source).expanduser()
    if path.is_absolute() or path.suffix or path.exists():
        return path.name
    return source
