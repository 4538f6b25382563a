"""What a page was made by: the command, versions, the processor, and which models, by their content."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import torch

from samesense.encoder.names import base_of, local_folder, split_options
from samesense.errors import ModelError
from samesense.execution.versions import environment
from samesense.failures import shortened
from samesense.hashes import folder_hash
from samesense.inference.names import split_kind, split_maps
from samesense.types import Precision

PROGRAMS = ("samesense", "samesense.exe", "samesense-script.py")

CPU_FILE = Path("/proc/cpuinfo")


def describe_environment(precision: Precision) -> dict[str, str]:
    """Return what a figure or a time may depend on, with the date and the command."""
    record = environment()
    versions = record["versions"] | {name: version(name) for name in ("scipy", "matplotlib")}
    machine = record["machine"]
    return {
        "date": f"{record['started'][:10]}, begun at {record['started'][11:16]} UTC",
        "command": command_text(),
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
        "processor": processor_name(),
        "machine": f"{machine['system']} {machine['machine']}, {machine['cores']} cores",
        "threads": str(torch.get_num_threads()),
        "precision": precision,
    }


def command_text() -> str:
    """Return the command line that this process was started by, or that it was called from Python."""
    # An embedded interpreter may have no arguments, not even a program.
    program, *arguments = sys.argv or [""]
    if Path(program).name in PROGRAMS:
        return shlex.join(["samesense", *arguments])
    return "samesense.compare, called from Python"


def processor_name() -> str:
    """Return the name of the processor as the system gives it."""
    if torch.cuda.is_available():
        return f"{_cpu_name()}; {torch.cuda.get_device_name()}"
    return _cpu_name()


def _cpu_name() -> str:
    if CPU_FILE.is_file():
        for line in CPU_FILE.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    # The first is empty on many systems.
    return platform.processor() or platform.machine()


def model_fingerprints(specs: Sequence[str]) -> dict[str, str]:
    """Return for each model in a local folder the first digits of a hash of its files; of adapters, of both folders."""
    return {spec: text for spec in specs if (text := _fingerprint(spec))}


def _fingerprint(spec: str) -> str:
    base = split_maps(spec)[0]
    kind, _ = split_kind(base)
    folder = None
    if not kind:
        with suppress(ModelError):  # the name of a function or of an opened model leads to no folder
            folder = local_folder(split_options(base).base)
    if folder is None:
        return ""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and _decides(path, folder))
    try:
        digits = folder_hash(folder, files)[:12]
    except OSError as error:
        return f"unreadable: {shortened(error)}"
    under = base_of(folder)
    if under is None:
        return digits
    return f"{digits} on {_fingerprint(under) or under}"


def _decides(path: Path, folder: Path) -> bool:
    """Return whether a file is part of the model: no text about it, and nothing hidden."""
    hidden = any(name.startswith(".") for name in path.relative_to(folder).parts)
    return not hidden and path.suffix != ".md"
