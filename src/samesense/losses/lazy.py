"""torch, loaded when a loss is first computed: the command line reads the settings in a loss's file without it.

The file of a loss imports ``torch``, ``F`` and ``Module`` from here and is otherwise written as if they were torch's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
    from torch.nn import functional as F
else:

    class _LazyModule:
        """A package that is imported at the first use of one of its names."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._name), name)

    torch = _LazyModule("torch")
    F = _LazyModule("torch.nn.functional")

    class _WithoutTorch:
        """The base of :class:`Module` before torch is loaded; Python replaces a base only by one of its kind."""

    class Module(_WithoutTorch):
        """``torch.nn.Module`` as a base class, which it becomes when the first module is made."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            """Return a new ``torch.nn.Module``."""
            if not issubclass(cls, torch.nn.Module):
                Module.__bases__ = (torch.nn.Module,)
            return super().__new__(cls)


__all__ = ["F", "Module", "torch"]
