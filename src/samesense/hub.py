"""The hub: whether it can be reached is asked once, before anything is loaded from it.

Its client asks for each file by itself, and again after every failure: a model that is not on this machine took two
minutes and a half to be refused without a network. Here one request tells. Without an answer, what is loaded comes
from the copies on this machine, as with ``HF_HUB_OFFLINE=1``.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from samesense.errors import DataError, ModelError

logger = logging.getLogger(__name__)

Kind = Literal["model", "language model", "paraphraser", "dataset"]

NOTICE = 1.0
"""Seconds without an answer after which a copy on this machine is taken, or the wait is reported."""

PATIENCE = 4.0
"""Seconds without an answer after which the hub counts as unreachable: a slow connection answers within two."""

REACHABLE_FOR, UNREACHABLE_FOR = 60.0, 20.0
"""Seconds that an answer, and the lack of one, hold: a process may outlive its network, or wait for it."""

GATEWAY_FAILURES = (502, 504)
"""What a proxy answers that cannot reach the hub itself."""

_FIRST_OWNER = "sentence-transformers"
"""Owner that sentence-transformers puts before a name without one."""


@dataclass(frozen=True)
class _Answer:
    """What came of asking the hub."""

    reason: str  # why it cannot be reached; empty where it can
    patient: bool  # whether it was waited for as long as without a copy
    expires: float  # by the monotonic clock


class _Request(threading.Thread):
    """One request to the hub, in a thread that is given up on: neither DNS nor a proxy need ever answer."""

    def __init__(self) -> None:
        super().__init__(name="samesense-hub", daemon=True)
        self.reason: str | None = None  # None until there is an answer

    def run(self) -> None:
        """Ask for a small file; that the hub has none is an answer too."""
        from huggingface_hub import constants, get_session

        try:
            response = get_session().head(f"{constants.ENDPOINT}/robots.txt", timeout=PATIENCE)
        except Exception as error:  # of the client, whichever it is: all mean that there was no answer
            self.reason = " ".join(str(error).split())[:200] or type(error).__name__
        else:
            failed = response.status_code in GATEWAY_FAILURES
            self.reason = f"a gateway answered {response.status_code}" if failed else ""


_HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w.-]+)?")


def is_hub_name(name: str) -> bool:
    """Return whether a name could be one of the hub, ``owner/name`` or a name alone, by its form."""
    return _HUB_NAME.fullmatch(name) is not None


_lock = threading.Lock()
_answer: _Answer | None = None
_users = 0  # contexts that hold the client offline


def is_offline_by_choice() -> bool:
    """Return whether the user has forbidden to ask the hub, by ``HF_HUB_OFFLINE`` or ``TRANSFORMERS_OFFLINE``."""
    from huggingface_hub import constants

    return _users == 0 and bool(constants.HF_HUB_OFFLINE)


def unreachable(*, cached: bool = False) -> str:
    """Return why the hub cannot be reached; empty where it can.

    Args:
        cached: whether there is a copy to be taken instead: then a second without an answer is enough.
    """
    global _answer
    if is_offline_by_choice():
        return "HF_HUB_OFFLINE is set"
    # Held while the hub is asked, so that threads share one request.
    with _lock:
        now = time.monotonic()
        # A short silence does not settle it for a caller without a copy, who waits longer.
        enough = _answer is not None and (cached or _answer.patient or not _answer.reason)
        if _answer is not None and enough and now < _answer.expires:
            return _answer.reason
        reason = _ask(cached)
        holds = UNREACHABLE_FOR if reason else REACHABLE_FOR
        _answer = _Answer(reason, patient=not cached, expires=time.monotonic() + holds)
        return reason


def _ask(cached: bool) -> str:
    from huggingface_hub import get_session

    get_session()  # made before the clock runs: it reads certificates
    request = _Request()
    request.start()
    request.join(NOTICE)
    waited = NOTICE
    if request.reason is None and not cached:
        logger.warning(f"the hub has not answered for {NOTICE:g} s: waiting {PATIENCE - NOTICE:g} s more")
        request.join(PATIENCE - NOTICE)
        waited = PATIENCE
    if request.reason is None:
        return f"no answer within {waited:g} s"
    return request.reason


def is_cached(name: str, kind: Kind = "model") -> bool:
    """Return whether anything of a repository is in the cache of the hub on this machine."""
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE)
    repository = "dataset" if kind == "dataset" else "model"
    if any((cache / f"{repository}s--{full.replace('/', '--')}" / "snapshots").is_dir() for full in _full_names(name)):
        return True
    # datasets writes three underscores for the slash in the names of its folders.
    return kind == "dataset" and (_prepared_datasets() / name.replace("/", "___")).is_dir()


def _prepared_datasets() -> Path:
    """Return the folder in which ``datasets`` keeps what it has prepared."""
    from huggingface_hub import constants

    return Path(os.environ.get("HF_DATASETS_CACHE") or Path(constants.HF_HOME) / "datasets").expanduser()


def _full_names(name: str) -> list[str]:
    return [name] if "/" in name else [name, f"{_FIRST_OWNER}/{name}"]


FIXES: dict[Kind, str] = {
    "model": "Give a folder, or 'default', which needs no network; or load it once with one.",
    "language model": "Give the folder of one as `language_model`; or load it once with a network.",
    "paraphraser": "Give the folder of one as `paraphraser`; or load it once with a network.",
    "dataset": "Check the spelling if it is a file or a folder; a local one needs no network.",
}
"""What helps where something is not on this machine."""


def check_model(name: str, kind: Kind = "model") -> None:
    """Raise ModelError if a model of the hub is not on this machine, and the hub cannot be asked for it."""
    on_hub = is_hub_name(name) and not Path(name).exists()
    if on_hub and not is_cached(name) and (reason := unreachable()):
        raise ModelError(absence(name, kind, reason))


def absence(name: str, kind: Kind, reason: str) -> str:
    """Return, in words, that something is not on this machine and cannot be loaded, and what helps."""
    whole = "wholly " if is_cached(name, kind) else ""
    where = "the hub is not asked" if is_offline_by_choice() else "the hub cannot be reached"
    return f"{name} is not {whole}on this machine, and {where} ({reason}). {FIXES[kind]}"


@contextmanager
def hub_access(name: str, kind: Kind = "model") -> Iterator[None]:
    """Load something that may come from the hub; without an answer of it, from the copies on this machine.

    A folder is loaded without a question. What fails without the hub raises ModelError, or DataError for a data set,
    which says that it is not on this machine; so does what cannot be kept on this machine.
    """
    if not is_hub_name(name) or Path(name).exists():
        yield
        return
    with _explain_unwritable_cache(name, kind):
        yield from _load_online_or_cached(name, kind)


_UNKEPT = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
"""What the system says where a copy cannot be written: a full disk, a quota, a read-only disk, permissions."""


@contextmanager
def _explain_unwritable_cache(name: str, kind: Kind) -> Iterator[None]:
    """Raise ModelError or DataError, with what helps, if the cache of the hub cannot be written to."""
    try:
        yield
    except (ModelError, DataError):
        raise
    except Exception as error:
        reason = _find_unwritable(error)
        if reason is None:
            raise
        from huggingface_hub.constants import HF_HOME

        refusal = DataError if kind == "dataset" else ModelError
        raise refusal(
            f"{name} cannot be kept on this machine, below {HF_HOME}: {reason.strerror}. Free some space there, see to "
            "its permissions, or set HF_HOME to a folder on another disk."
        ) from error


def _find_unwritable(error: BaseException | None) -> OSError | None:
    """Return the error of the system that caused another one, if it says that a copy cannot be written."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _UNKEPT:
            return error
        error = error.__cause__
    return None


def _load_online_or_cached(name: str, kind: Kind) -> Iterator[None]:
    """Load from the hub, or without an answer of it from the copies on this machine; see :func:`hub_access`."""
    cached = is_cached(name, kind)
    reason = unreachable(cached=cached)
    if not reason:
        yield
        return
    if cached and not is_offline_by_choice():
        logger.info(f"the hub cannot be reached ({reason}): {name} is opened as it is on this machine")
    try:
        with _offline():
            yield
    except (ModelError, DataError):
        raise
    except Exception as error:
        # A copy that is damaged, or a full disk, and not a copy that lacks files.
        if cached and (not isinstance(error, OSError) or _find_unwritable(error) is not None):
            raise
        refusal = DataError if kind == "dataset" else ModelError
        raise refusal(absence(name, kind, reason)) from error


@contextmanager
def _offline() -> Iterator[None]:
    """Keep the client of the hub from asking, as ``HF_HUB_OFFLINE=1`` does, while this is entered."""
    global _users
    if is_offline_by_choice():
        yield
        return
    # The setting is one for the process: of overlapping contexts the last one restores it.
    with _lock:
        _users += 1
        _set_offline(offline=True)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _set_offline(offline=False)


def _set_offline(*, offline: bool) -> None:
    from huggingface_hub import constants

    constants.HF_HUB_OFFLINE = offline
    configuration: Any = sys.modules.get("datasets.config")  # which has copied the setting
    if configuration is not None:
        # HF_DATASETS_OFFLINE is the user's choice, and must outlast this context.
        chosen = os.environ.get("HF_DATASETS_OFFLINE", "").upper() in configuration.ENV_VARS_TRUE_VALUES
        configuration.HF_HUB_OFFLINE = offline or chosen
        configuration.HF_DATASETS_OFFLINE = offline or chosen
