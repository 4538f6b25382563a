"""Objectives: tensors in, a scalar out. One formula a file, named by its mathematics."""

from samesense.losses.cosent import cosent

__all__ = ["cosent"]
