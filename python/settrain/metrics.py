"""Metrics of set-valued classification.

`scores` are [samples, classes] logits and `labels` [samples] integers, tensors on any device, NumPy arrays or lists; all scores must be
finite. Accuracies are fractions. `k` is a number of classes, at most all. Wrong values are ValueErrors and wrong types TypeErrors. Ties go to the
lower class.

TopKAccuracy, MacroTopKAccuracy, AverageKAccuracy and Coverage are fed batch by batch, in one process or several.
"""

import warnings
from collections.abc import Sequence

from torch import Tensor

from settrain._accumulators import AverageKAccuracy, AverageKScore, Coverage, MacroTopKAccuracy, TopKAccuracy, covered
from settrain._ops import (
    check_average_k_score,
    check_size,
    counts,
    integer,
    integers,
    label_matrix,
    number,
    numbers_of,
    ops,
    scores_and_labels,
    tensor,
)
from settrain._ops import scores as checked_scores

__all__ = [
    "AverageKAccuracy",
    "Coverage",
    "MacroTopKAccuracy",
    "TopKAccuracy",
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

# The defaults of accuracies(), the same as those of eval.top_k and eval.average_k.
USUAL_K = (1, 5)
USUAL_AVERAGE_K = (2, 5)

# The program warns below the same number: kImagesForTemperature in metrics/sets/temperature.h.
IMAGES_FOR_TEMPERATURE = 50


def accuracies(
    scores: object,
    labels: object,
    *,
    k: Sequence[int] | None = None,
    average_k: Sequence[float] | None = None,
    average_k_score: AverageKScore = "softmax",
    strict: bool = False,
    threshold_scores: object | None = None,
    train_counts: object | None = None,
) -> dict[str, float]:
    """All accuracies in one pass, by the names that `settrain eval` prints.

    top5, macro_top5 (the mean over classes with samples), avg5 (Garcin's thesis, eq. 5.16, 5.17), macro_avg5, avg5_size (the realised mean
    size of the sets) and avg5_lambda (their threshold); with `train_counts` [classes] also few_, medium_ and many_ of them, over classes
    with under 20, 20 to 100, and over 100 training images (NaN where there are none).

    k: the sizes of top-K, 1 and 5 without it. average_k: the mean sizes of sets, 2 and 5 without it. These defaults leave out sizes above the
    number of classes; a size that you name must be at most that number.

    average_k_score: what is compared with the threshold: "softmax", "sigmoid" or "raw". threshold_scores: [any number, classes] scores that
    set the thresholds, such as those of validation images, in place of `scores`. strict: see average_k_thresholds().
    """
    of_scores, of_labels = scores_and_labels(scores, labels)
    ks, means = _sizes(of_scores, k, average_k, average_k_score)
    others = _threshold_scores(threshold_scores, of_scores)
    names, values = ops.accuracies(
        of_scores, of_labels, ks, means, average_k_score, strict, others, counts("train_counts", train_counts)
    )
    return dict(zip(names, values))


def label_set_accuracies(
    scores: object,
    label_sets: object,
    *,
    k: Sequence[int] | None = None,
    average_k: Sequence[float] | None = None,
    average_k_score: AverageKScore = "sigmoid",
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

    The other arguments, and the defaults of k and average_k, as of accuracies().
    """
    of_scores = checked_scores("scores", scores)
    ks, means = _sizes(of_scores, k, average_k, average_k_score)
    others = _threshold_scores(threshold_scores, of_scores)
    names, values = ops.label_set_accuracies(
        of_scores, label_matrix("label_sets", label_sets, of_scores.device), ks, means, average_k_score, strict, others
    )
    return dict(zip(names, values))


def _sizes(
    scores: Tensor, k: Sequence[int] | None, average_k: Sequence[float] | None, average_k_score: AverageKScore
) -> tuple[list[int], list[float]]:
    check_average_k_score(average_k_score)
    ks = integers("k", _possible(USUAL_K, scores) if k is None else k)
    means = numbers_of("average_k", _possible(USUAL_AVERAGE_K, scores) if average_k is None else average_k)
    for name, sizes in (("k", ks), ("average_k", means)):
        for size in sizes:
            check_size(name, size, scores)
        if len(set(sizes)) != len(sizes):
            raise ValueError(f"{name}: expected each number once, got {sizes!r}")
    return ks, means


def _possible(sizes: Sequence[int], scores: Tensor) -> list[int]:
    """The sizes up to the number of classes of `scores` [samples, classes]; all for scores of a wrong shape, which are refused later."""
    return [size for size in sizes if scores.dim() != 2 or size <= scores.shape[1]]


def _threshold_scores(values: object | None, scores: Tensor) -> Tensor | None:
    return None if values is None else tensor("threshold_scores", values, scores.dtype).detach().to(scores.device)


def topk_accuracy(scores: object, labels: object, k: int) -> float:
    """The share of samples whose label is among the k largest scores."""
    return _topk(scores, labels, k)[0]


def macro_topk_accuracy(scores: object, labels: object, k: int) -> float:
    """The mean over classes with samples of their top-k accuracies (Garcin's thesis, section 3.3.1)."""
    return _topk(scores, labels, k)[1]


def _topk(scores: object, labels: object, k: int) -> list[float]:
    """The accuracy and its mean over classes, which come first."""
    return list(accuracies(scores, labels, k=(integer("k", k),), average_k=()).values())


def average_k_accuracy(
    scores: object,
    labels: object,
    k: float,
    *,
    average_k_score: AverageKScore = "softmax",
    strict: bool = False,
    threshold_scores: object | None = None,
) -> float:
    """The share of samples whose label is in a set, where sets hold k classes on average. The other arguments as of accuracies()."""
    size = number("k", k)
    check_size("k", size, checked_scores("scores", scores))
    values = accuracies(
        scores, labels, k=(), average_k=(size,), average_k_score=average_k_score, strict=strict, threshold_scores=threshold_scores
    )
    return next(iter(values.values()))


def average_k_thresholds(values: object, k: Sequence[float], *, strict: bool = False) -> list[float]:
    """For each number of `k` the threshold with which sets of `values`, [samples, classes] such as probabilities, hold as many classes on
    average (Garcin's thesis, algorithm 1): infinite where all or none are in.

    strict: values that equal the threshold are not in the set, so that sets hold at most k classes on average (eq. 3.5).
    """
    of_values, sizes = checked_scores("values", values), numbers_of("k", k)
    for size in sizes:
        check_size("k", size, of_values)
    found: list[float] = ops.average_k_thresholds(of_values, sizes, strict)
    return found


def returned_classes(values: object, threshold: float, *, strict: bool = False) -> Tensor:
    """The sets of a threshold: bool of the shape of `values`, which are of any floating dtype, exact for float32 values too."""
    sets: Tensor = ops.returned_classes(tensor("values", values).detach(), number("threshold", threshold), strict)
    return sets


def label_ranks(scores: object, labels: object) -> Tensor:
    """[samples] int64: how many classes come before the label, from 0. A label is among the k largest where its rank is below k."""
    ranks: Tensor = ops.label_ranks(*scores_and_labels(scores, labels))
    return ranks


def coverage(sets: object, labels: object) -> float:
    """The share of samples whose set, a row of `sets` [samples, classes] bool, holds their label. settrain.sets.quality() says more."""
    return covered(sets, labels).double().mean().item()


def fit_temperature(scores: object, labels: object) -> float:
    """The temperature T for which softmax(scores / T) gives the labels the largest likelihood (Guo et al., ICML 2017).

    Raises ValueError that says why where there is none: where every label has the largest score, for instance. Warns where there are fewer than
    50 samples, since the temperature then depends on which samples these are.
    """
    of_scores, of_labels = scores_and_labels(scores, labels)
    temperature: float = ops.fit_temperature(of_scores, of_labels)
    images = len(of_labels)
    if images < IMAGES_FOR_TEMPERATURE:
        message = (
            f"the temperature {temperature:.4g} is fitted to {images} image{'' if images == 1 else 's'} only; with fewer than "
            f"{IMAGES_FOR_TEMPERATURE} it depends on which images these are, and more calibration images help"
        )
        warnings.warn(message, UserWarning, stacklevel=2)
    return temperature


def expected_calibration_error(scores: object, labels: object, *, bins: int = 15) -> float:
    """Expected calibration error of the largest probability, in bins of equal width (Guo et al., ICML 2017, eq. 3)."""
    error: float = ops.expected_calibration_error(*scores_and_labels(scores, labels), integer("bins", bins))
    return error
