"""torch is imported without garbage collection, which is as it was afterwards."""

import gc
import sys

import pytest

from samesense.execution.torch_import import loading_torch, uncollected


@pytest.fixture
def before_torch(monkeypatch):
    monkeypatch.delitem(sys.modules, "sentence_transformers", raising=False)
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.parametrize("context", [uncollected, loading_torch])
def test_nothing_is_collected_while_torch_is_imported(before_torch, context):
    with context():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_a_failed_import_leaves_collection_on(before_torch):
    with pytest.raises(ModuleNotFoundError), uncollected():
        raise ModuleNotFoundError("torch")
    assert gc.isenabled()


def test_a_process_without_collection_is_left_as_it_is(before_torch):
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
        assert gc.get_freeze_count() == 0
    finally:
        gc.enable()


def test_nothing_is_done_where_torch_is_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", sys)
    frozen = gc.get_freeze_count()
    with uncollected():
        assert gc.isenabled()
    assert gc.get_freeze_count() == frozen
