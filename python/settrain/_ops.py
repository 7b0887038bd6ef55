"""Loads the operators torch.ops.settrain, and turns what users pass into their arguments."""

import math
import numbers
import operator
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from settrain._version import CUDA_VERSION, TORCH_VERSION


def _check_torch() -> None:
    """Raises ImportError where the operators are for another PyTorch: they would not load, or would crash."""
    wanted = f"PyTorch {TORCH_VERSION}" + (f" with CUDA {CUDA_VERSION}" if CUDA_VERSION else "")
    cuda = torch.version.cuda
    is_release = torch.__version__.split("+")[0] == TORCH_VERSION
    if is_release and (not CUDA_VERSION or (cuda or "").split(".")[0] == CUDA_VERSION):
        return
    found = f"PyTorch {torch.__version__} {f'with CUDA {cuda}' if cuda else 'without CUDA'}"
    force = "--force-reinstall " if is_release else ""  # else pip thinks that it is there
    advice = f"pip install {force}torch=={TORCH_VERSION}, or see docs/python.md"
    raise ImportError(f"settrain was built for {wanted}, and this Python has {found}: {advice}")


_check_torch()
torch.ops.load_library(pathlib.Path(__file__).parent / "libsettrain_ops.so")  # type: ignore[no-untyped-call]

ops: Any = torch.ops.settrain


def tensor(name: str, values: object, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor of the argument `name`, a tensor, NumPy array or list, without a copy where there needs to be none."""
    array: Any = values
    if any(stride < 0 for stride in getattr(values, "strides", ())):  # torch.as_tensor() takes none
        array = array.copy()
    try:
        return torch.as_tensor(array, dtype=dtype)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        is_of_values = isinstance(error, OverflowError) or "verflow" in str(error)
        if is_of_values or (isinstance(error, ValueError) and "'str'" not in str(error)):
            raise ValueError(f"{name}: {error}") from None
        raise TypeError(f"{name}: expected a tensor, an array or a list of numbers, got {_shown(values)}") from None


def scores(name: str, values: object) -> Tensor:
    """Scores of float32 or float64, without a gradient."""
    found = tensor(name, values).detach()
    return found.float() if found.dtype in (torch.float16, torch.bfloat16) else found


def scores_and_labels(of_scores: object, of_labels: object, name: str = "scores") -> tuple[Tensor, Tensor]:
    """Scores of float32 or float64, the argument `name`, and labels of int64, both on the scores' device."""
    found, labels = scores(name, of_scores), tensor("labels", of_labels)
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise TypeError(f"labels: expected integers, got {labels.dtype}")
    return found, labels.to(found.device, torch.int64)


def label_matrix(name: str, values: object, device: torch.device) -> Tensor:
    """All labels of samples, the argument `name`, [samples, classes], as bool on the device; they are bool, or 0 and 1."""
    sets = tensor(name, values)
    if sets.dtype != torch.bool:
        if sets.ne(0).logical_and(sets.ne(1)).any():
            raise ValueError(f"{name}: expected bool, or 0 and 1, got other numbers")
        sets = sets.ne(0)
    return sets.to(device)


def integers(name: str, values: object | None) -> list[int]:
    """A list of a sequence, array or one-dimensional tensor of integers, the argument `name`; empty for None."""
    if values is None:
        return []
    try:
        listed = values if isinstance(values, Sequence) else tensor(name, values).tolist()
        found = [operator.index(value) for value in listed]
    except TypeError:
        raise TypeError(f"{name}: expected whole numbers, got {_shown(values)}") from None
    for number in found:
        in_64_bits(name, number)
    return found


def integer(name: str, value: object) -> int:
    """The argument `name`, which is one integer."""
    try:
        return in_64_bits(name, operator.index(value))  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}: expected an integer, got {value!r}") from None


def in_64_bits(name: str, number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{name}: expected an integer of 64 bits, got {number}")
    return number


def seed(value: object) -> int:
    """The argument `seed` of a function or loss that draws noise."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"seed: expected an integer, got {value!r}") from None
    if not 0 <= number < 2**63:
        raise ValueError(f"seed: expected 0 to 2^63 - 1, got {number}")
    return number


def counts(name: str, values: object | None) -> list[int]:
    """The same for numbers of images, of which none is below 0."""
    images = integers(name, values)
    if any(count < 0 for count in images):
        raise ValueError(f"{name}: expected numbers of images, got {min(images)}")
    return images


def word(name: str, value: object) -> str:
    """The argument `name`, which is a text."""
    if isinstance(value, str):
        return value
    raise TypeError(f"{name}: expected a text, got {_shown(value)}")


def number(name: str, value: object) -> float:
    """The argument `name`, which is one real number."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return float(value)
    raise TypeError(f"{name}: expected a number, got {value!r}")


def check_average_k_score(value: object) -> None:
    if value not in ("softmax", "sigmoid", "raw"):
        raise ValueError(f"average_k_score: expected 'softmax', 'sigmoid' or 'raw', got {value!r}")


def numbers_of(name: str, values: object) -> list[float]:
    """The argument `name`, which is a list of real numbers."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: expected a list of numbers, got {_shown(values)}")
    return [number(name, value) for value in values]


def check_size(name: str, size: float, scores: Tensor) -> None:
    """Raises ValueError unless a set can have `size` of the classes of `scores` [samples, classes]."""
    if not 0 < size < math.inf:
        raise ValueError(f"{name}: expected a number above 0, got {size!r}")
    if scores.dim() == 2 and size > scores.shape[1]:
        raise ValueError(f"{name}: expected at most {scores.shape[1]}, the number of classes, got {size!r}")


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 60 else text[:60] + '...'}"
