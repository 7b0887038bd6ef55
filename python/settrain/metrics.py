"""Metrics of set-valued classification.

`scores` are [samples, classes] logits and `labels` [samples] integers, tensors on any device, NumPy arrays or lists; all scores must be
finite. Accuracies are fractions. Wrong values are ValueErrors. Ties go to the lower class.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from settrain._ops import counts, integers, label_matrix, ops, scores_and_labels, tensor

__all__ = [
    "accuracies",
    "average_k_accuracy",
    "average_k_thresholds",
    "coverage",
    "expected_calibration_error",
    "fit_temperature",
    "label_ranks",
    "label_set_accuracies",
    "macro_topk_accuracy",
    "returned_classes",
    "topk_accuracy",
]


def accuracies(
    scores: object,
    labels: object,
    *,
    top_k: tuple[int, ...] = (1, 5),
    average_k: tuple[float, ...] = (2, 5),
    average_k_score: str = "softmax",
    strict: bool = False,
    threshold_scores: object | None = None,
    train_counts: object | None = None,
) -> dict[str, float]:
    """All accuracies in one pass, by the names that `settrain eval` prints.

    top5, macro_top5 (the mean over classes with samples), avg5 (Garcin's thesis, eq. 5.16, 5.17), macro_avg5, avg5_size (the realised mean
    size of the sets) and avg5_lambda (their threshold); with `train_counts` [classes] also few_, medium_ and many_ of them, over classes
    with under 20, 20 to 100, and over 100 training images (NaN where there are none).

    average_k_score: what is compared with the threshold: "softmax", "sigmoid" or "raw". threshold_scores: [any number, classes] scores that
    set the thresholds, such as those of validation images, in place of `scores`. strict: see average_k_thresholds().
    """
    top_k = _checked_top_k(top_k, average_k, average_k_score)
    scores, labels = scores_and_labels(scores, labels)
    if threshold_scores is not None:
        threshold_scores = tensor(threshold_scores, scores.dtype).to(scores.device)
    names, values = ops.accuracies(
        scores, labels, top_k, [float(k) for k in average_k], average_k_score, strict, threshold_scores, counts("train_counts", train_counts)
    )
    return dict(zip(names, values))


def label_set_accuracies(
    scores: object,
    label_sets: object,
    *,
    top_k: tuple[int, ...] = (1, 5),
    average_k: tuple[float, ...] = (2, 5),
    average_k_score: str = "sigmoid",
    strict: bool = False,
    threshold_scores: object | None = None,
) -> dict[str, float]:
    """Accuracies of samples with several labels, by all of them. `scores`: [samples, classes] floating point. `label_sets`: [samples, classes]
    bool or 0 and 1 on the same device, at least one label each. Wrong shapes and values are ValueErrors.

    top5_recall: the share of a sample's labels among its 5 largest scores. avg5_recall: the share in its set, where sets hold 5 classes on
    average. avg5_f1: F1 of the set, 2 |set and labels| / (|set| + |labels|); both are means over samples. avg5_micro_f1: F1 of all pairs
    of a sample and a class; avg5_macro_f1: the mean over classes that are labels. avg5_size, avg5_lambda: as of accuracies().

    sparse_top_weight, sparse_top_f1, sparse_top_size: of settrain.functional.sparse_top_projection(scores, number of labels), the answer
    where that number is known (Garcin's thesis, section 6.2.7): the share of its weight that labels have; F1 and size of the set of classes
    with some.

    The other arguments as of accuracies().
    """
    top_k = _checked_top_k(top_k, average_k, average_k_score)
    scores = tensor(scores).detach()
    scores = scores.float() if scores.element_size() < 4 else scores
    if threshold_scores is not None:
        threshold_scores = tensor(threshold_scores, scores.dtype).to(scores.device)
    names, values = ops.label_set_accuracies(
        scores, label_matrix(label_sets, scores.device), top_k, [float(k) for k in average_k], average_k_score, strict, threshold_scores
    )
    return dict(zip(names, values))


def _checked_top_k(top_k: Sequence[int], average_k: Sequence[float], average_k_score: str) -> list[int]:
    if average_k_score not in ("softmax", "sigmoid", "raw"):
        raise ValueError(f"average_k_score: expected 'softmax', 'sigmoid' or 'raw', got {average_k_score!r}")
    top_k = integers("top_k", top_k)
    for name, ks in (("top_k", top_k), ("average_k", average_k)):
        _check_ks(name, ks)
        if len(set(ks)) != len(ks):
            raise ValueError(f"{name}: expected each number once, got {ks!r}")
    return top_k


def _check_ks(name: str, ks: Sequence[float]) -> None:
    if any(not 0 < k < math.inf for k in ks):
        raise ValueError(f"{name}: expected {'a number' if name == 'k' else 'numbers'} above 0, got {ks[0] if name == 'k' else ks!r}")


def topk_accuracy(scores: object, labels: object, k: int) -> float:
    """The share of samples whose label is among the k largest scores."""
    return _topk(scores, labels, k)[0]


def macro_topk_accuracy(scores: object, labels: object, k: int) -> float:
    """The mean over classes with samples of their top-k accuracies (Garcin's thesis, section 3.3.1)."""
    return _topk(scores, labels, k)[1]


def _topk(scores: object, labels: object, k: int) -> list[float]:
    """The accuracy and its mean over classes, which come first."""
    _check_ks("k", integers("k", [k]))
    return list(accuracies(scores, labels, top_k=(k,), average_k=()).values())


def average_k_accuracy(scores: object, labels: object, k: float, **options) -> float:
    """The share of samples whose label is in a set, where sets hold k classes on average. `options` as of accuracies()."""
    _check_ks("k", [k])
    values = accuracies(scores, labels, top_k=(), average_k=(k,), **options)
    return next(iter(values.values()))


def average_k_thresholds(values: object, ks: tuple[float, ...], *, strict: bool = False) -> list[float]:
    """For each k the threshold with which sets of `values`, [samples, classes] such as probabilities, hold k classes on average (Garcin's
    thesis, algorithm 1): infinite where all or none are in.

    strict: values that equal the threshold are not in the set, so that sets hold at most k classes on average (eq. 3.5).
    """
    _check_ks("ks", ks)
    return ops.average_k_thresholds(tensor(values).detach(), [float(k) for k in ks], strict)


def returned_classes(values: object, threshold: float, *, strict: bool = False) -> Tensor:
    """The sets of a threshold: bool of the shape of `values`, exact for float32 values too."""
    return ops.returned_classes(tensor(values).detach(), threshold, strict)


def label_ranks(scores: object, labels: object) -> Tensor:
    """[samples] int64: how many classes come before the label, from 0. A label is among the k largest where its rank is below k."""
    return ops.label_ranks(*scores_and_labels(scores, labels))


def coverage(sets: object, labels: object) -> float:
    """The share of samples whose set, a row of `sets` [samples, classes] bool, holds their label. settrain.sets.quality() says more."""
    sets, labels = scores_and_labels(sets, labels)
    if sets.dtype != torch.bool or sets.dim() != 2 or labels.shape != sets.shape[:1] or not len(labels):
        raise ValueError(f"expected sets [samples, classes] bool and labels [samples], got {list(sets.shape)} {sets.dtype} and {list(labels.shape)}")
    if labels.min() < 0 or labels.max() >= sets.shape[1]:
        raise ValueError(f"labels: expected classes from 0 to {sets.shape[1] - 1}, got {labels.min()} to {labels.max()}")
    return sets.gather(1, labels.unsqueeze(1)).double().mean().item()


def fit_temperature(scores: object, labels: object) -> float:
    """The temperature T for which softmax(scores / T) gives the labels the largest likelihood (Guo et al., ICML 2017).

    Raises ValueError that says why where there is none: where every label has the largest score, for instance.
    """
    return ops.fit_temperature(*scores_and_labels(scores, labels))


def expected_calibration_error(scores: object, labels: object, *, bins: int = 15) -> float:
    """Expected calibration error of the largest probability, in bins of equal width (Guo et al., ICML 2017, eq. 3)."""
    return ops.expected_calibration_error(*scores_and_labels(scores, labels), bins)
