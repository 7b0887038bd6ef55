"""Loads the operators torch.ops.settrain, and turns what users pass into their arguments."""

import operator
import pathlib
from collections.abc import Sequence

import torch

torch.ops.load_library(pathlib.Path(__file__).parent / "libsettrain_ops.so")

ops = torch.ops.settrain


def tensor(values: object, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor of a tensor, NumPy array or list, without a copy where there needs to be none."""
    return torch.as_tensor(values, dtype=dtype)


def scores_and_labels(scores: object, labels: object) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of float32 or float64 and labels of int64, both on the scores' device."""
    of_scores = tensor(scores).detach()
    if of_scores.dtype in (torch.float16, torch.bfloat16):
        of_scores = of_scores.float()
    of_labels = tensor(labels)
    if of_labels.is_floating_point() or of_labels.is_complex() or of_labels.dtype == torch.bool:
        raise ValueError(f"labels: expected integers, got {of_labels.dtype}")
    return of_scores, of_labels.to(of_scores.device, torch.int64)


def label_matrix(values: object, device: torch.device) -> torch.Tensor:
    """All labels of samples, [samples, classes], as bool on the device; they are bool, or 0 and 1."""
    sets = tensor(values)
    if sets.dtype != torch.bool:
        if sets.ne(0).logical_and(sets.ne(1)).any():
            raise ValueError("label_sets: expected bool, or 0 and 1, got other numbers")
        sets = sets.ne(0)
    return sets.to(device)


def integers(name: str, values: object | None) -> list[int]:
    """A list of a sequence, array or one-dimensional tensor of integers, the argument `name`; empty for None."""
    if values is None:
        return []
    try:
        return [operator.index(value) for value in (values if isinstance(values, Sequence) else tensor(values).tolist())]
    except TypeError:
        raise ValueError(f"{name}: expected whole numbers, got {values!r}") from None


def integer(name: str, value: object) -> int:
    """The argument `name`, which is one integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: expected an integer, got {value!r}") from None


def seed(value: object) -> int:
    """The argument `seed` of a function or loss that draws noise."""
    number = integer("seed", value)
    if not 0 <= number < 2**63:
        raise ValueError(f"seed: expected 0 to 2^63 - 1, got {number}")
    return number


def counts(name: str, values: object | None) -> list[int]:
    """The same for numbers of images, of which none is below 0."""
    images = integers(name, values)
    if any(count < 0 for count in images):
        raise ValueError(f"{name}: expected numbers of images, got {min(images)}")
    return images
