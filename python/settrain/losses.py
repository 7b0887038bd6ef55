"""Losses for set-valued classification, as torch.nn.Modules.

`loss(scores, labels)` takes `scores`, [batch, classes] logits (or cosines, where the class says so) of float32, float64, bfloat16 or float16,
on the CPU or CUDA, and `labels`, [batch] integers on the same device. Half precision is computed in float32, and so is everything under
autocast. It returns the mean of the samples' losses, [] float32 or float64, or what `reduction` asks for. An empty batch has the sum 0, the mean NaN,
and [0] losses. A class whose score is -infinity is masked: it takes no part, unless it is the label, whose loss is then infinite.

Settings are attributes with the names and defaults of `loss` in settrain's configs, and can be set between calls. All losses have:

    reduction       "mean" (over the samples that are not ignored), "sum" or "none"
    ignore_index    a label whose sample takes no part, as in torch.nn.CrossEntropyLoss: 0 with "none", and no gradient

and all but those that couple the samples of a batch or take label sets:

    class_weights   [classes] numbers of at least 0 that multiply the losses of samples with these labels; the mean divides by
                    the number of samples

Where a class says so, labels may be [batch, classes] probabilities in floating point, whose rows sum to 1, such as those of mixup: the loss is then
the mean of the labels' losses by them.

Wrong values are ValueErrors and wrong types TypeErrors; on CUDA labels out of range are found by LibTorch's assertions or make NaN. Losses with
kernels of their own, the noised, smoothed and exact ones, have no second derivative. torch.func's transforms are refused. Sources: Berrada
et al., ICLR 2018; Garcin et al., ICML 2022; Garcin's thesis, 2023; others by name.
"""

from typing import Any, ClassVar, Literal

from torch import Tensor

from settrain._loss import CountingLoss, Loss, Noised, WeightedLoss

__all__ = [
    "AssumeNegative",
    "AverageKTwoHead",
    "BCEMultilabel",
    "BCEPositive",
    "BalancedSoftmax",
    "CrossEntropy",
    "ExactTopK",
    "ExactTopKImbalanced",
    "ExpectedPositiveRegularisation",
    "Focal",
    "LDAM",
    "LogitAdjusted",
    "NoisedTopK",
    "NoisedTopKImbalanced",
    "ROLE",
    "SmoothedTopKHinge",
    "SparseTop",
    "TopKHinge",
    "TopKHingeCalibrated",
    "TopKHingeConvex",
    "TopKHingeScaled",
    "TopKZeroOne",
]

Epsilon = float | Literal["auto"]


class SmoothableHinge(Noised, WeightedLoss):
    """A hinge whose rank may be smoothed by noise. Without smoothing it draws nothing, no seed either, and seed, generator and
    smoothing_num_draws are refused."""

    smoothing_epsilon: float = 0.0
    smoothing_num_draws: int = 10

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) != getattr(SmoothableHinge, name) for name in ("seed", "generator", "smoothing_num_draws")}
        super().__post_init__()
        for name, is_given in given.items():
            if is_given:
                self._check_smoothed(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_is_made" in self.__dict__ and name in ("seed", "generator", "smoothing_num_draws"):
            self._check_smoothed(name)
        super().__setattr__(name, value)

    def _check_smoothed(self, name: str) -> None:
        if not self.smoothing_epsilon:
            raise ValueError(f"{name}: without an effect, since smoothing_epsilon is 0")

    def forward(self, scores: Tensor, labels: Tensor, noise: Tensor | None = None) -> Tensor:
        """`noise`: [batch, smoothing_num_draws, classes] standard normals in place of drawn ones; only
        with smoothing."""
        if noise is not None:
            self._check_smoothed("noise")
        return super().forward(scores, labels, noise)

    def _draws(self, values: dict[str, Any]) -> bool:
        return bool(values["smoothing_epsilon"])

    def _keys(self, values: dict[str, Any]) -> dict[str, Any]:
        keys = super()._keys(values)
        if values["smoothing_epsilon"]:
            return keys
        return {name: value for name, value in keys.items() if not name.startswith("smoothing_")}


class CrossEntropy(WeightedLoss):
    """Cross-entropy of the softmax of the scores.

    scores: [batch, classes]. labels: [batch], or [batch, classes] probabilities. label_smoothing: share of the target that is spread over
    all classes, from 0 to below 1 (Szegedy et al., CVPR 2016).
    """

    name: ClassVar[str] = "cross_entropy"

    label_smoothing: float = 0.0


class Focal(WeightedLoss):
    """Focal loss, which weights samples down as their probability grows (Lin et al., ICCV 2017).

    scores: [batch, classes]. labels: [batch], or [batch, classes] probabilities. gamma: at least 0; 0 is cross-entropy.
    """

    name: ClassVar[str] = "focal"

    gamma: float = 2.0


class LDAM(CountingLoss):
    """Cross-entropy with larger margins for rarer classes (Cao et al., NeurIPS 2019).

    scores: [batch, classes] cosines, of features and class weights of length 1. labels: [batch], or [batch, classes] probabilities.
    class_counts: [classes] training images. max_margin: of the rarest class, at least 0. scale: multiplies the cosines, above 0.
    zero_count_class: what a class without an image gets, "largest_margin" or "error", a ValueError at the first call.
    """

    name: ClassVar[str] = "ldam"

    max_margin: float = 0.2
    scale: float = 40.0
    zero_count_class: Literal["largest_margin", "error"] = "largest_margin"


class LogitAdjusted(CountingLoss):
    """Cross-entropy of scores shifted by tau times the log frequencies of the classes (Menon et al., ICLR 2021, eq. 10).

    scores: [batch, classes]. labels: [batch], or [batch, classes] probabilities. class_counts: [classes] training images. tau: at least 0.
    scale: multiplies the scores, for cosines. zero_count_class: a class without an image is "excluded" (it takes no part, and as a label
    it is a ValueError, on CUDA an infinite loss), counts as the "rarest" class, or is an "error" at the first call.
    """

    name: ClassVar[str] = "logit_adjusted"

    tau: float = 1.0
    scale: float = 1.0
    zero_count_class: Literal["excluded", "rarest", "error"] = "excluded"


class BalancedSoftmax(CountingLoss):
    """Cross-entropy of a softmax weighted by the classes' training images (Ren et al., NeurIPS 2020, eq. 3, 4).

    scores: [batch, classes]. labels: [batch], or [batch, classes] probabilities. class_counts: [classes] training images.
    zero_count_class: as of LogitAdjusted.
    """

    name: ClassVar[str] = "balanced_softmax"

    zero_count_class: Literal["excluded", "rarest", "error"] = "excluded"


class TopKHinge(SmoothableHinge):
    """Top-K hinge (Garcin et al., ICML 2022, eq. 4).

    scores: [batch, classes]. labels: [batch]. k: 1 to classes - 1. smoothing_epsilon: standard deviation of a noise by which the rank is smoothed, as
    NoisedTopK smooths TopKHingeCalibrated; 0: none. smoothing_num_draws: its draws. `noise` of a call is [batch, draws, classes].
    """

    name: ClassVar[str] = "topk_hinge"

    k: int = 5


class TopKHingeConvex(SmoothableHinge):
    """Convex top-K hinge (Garcin et al., ICML 2022, table 1).

    scores: [batch, classes]. labels: [batch]. k: 1 to classes - 1. Smoothed as TopKHinge, with noise for all classes.
    """

    name: ClassVar[str] = "topk_hinge_convex"

    k: int = 5


class TopKHingeCalibrated(WeightedLoss):
    """Calibrated top-K hinge (Garcin et al., ICML 2022, eq. 5).

    scores: [batch, classes]. labels: [batch]. k: 1 to classes - 1.
    """

    name: ClassVar[str] = "topk_hinge_calibrated"

    k: int = 5


class TopKHingeScaled(SmoothableHinge):
    """Top-K hinge on scores over K (Berrada et al., ICLR 2018, eq. 8).

    scores: [batch, classes]. labels: [batch]. k: 1 to classes - 1. alpha: the margin, at least 0. Smoothed as TopKHinge.
    """

    name: ClassVar[str] = "topk_hinge_scaled"

    k: int = 5
    alpha: float = 1.0


class TopKZeroOne(WeightedLoss):
    """Top-K error, whose gradient is 0 (Garcin et al., ICML 2022, eq. 3).

    scores: [batch, classes]. labels: [batch]. k: 1 to classes - 1.
    """

    name: ClassVar[str] = "topk_zero_one"

    k: int = 5


class SmoothedTopKHinge(WeightedLoss):
    """Smoothed top-K hinge, with sums over all sets of K classes (Berrada et al., ICLR 2018, eq. 9, 10).

    scores: [batch, classes]. labels: [batch]. k: 1 to classes - 1. tau: temperature, at least 1e-6; the smaller, the nearer to the hinge. alpha: the
    margin, at least 0. reference_threshold: 1000 takes the hard hinge where s_[k] - s_[k+1] >= k tau log(1000), as the authors' code has it; 0 is
    smooth everywhere.
    """

    name: ClassVar[str] = "smoothed_topk_hinge"

    k: int = 5
    tau: float = 1.0
    alpha: float = 1.0
    reference_threshold: float = 0.0


class NoisedTopK(Noised, WeightedLoss):
    """Noised top-K loss, for balanced data (Garcin et al., ICML 2022, eq. 10 to 12): (margin + t - s_y)_+, t the (K+1)-th largest of the
    scores with noise, averaged over draws.

    scores: [batch, classes]. labels: [batch]. k: 1 to classes - 1. epsilon: standard deviation of the noise, at least 0; "auto" is that of
    the sample's own scores. num_draws: draws a sample, 1 to 1000. margin: at least 0. seed, generator: where the noise comes from (docs/python.md).
    """

    name: ClassVar[str] = "noised_topk"

    k: int = 5
    epsilon: Epsilon = "auto"
    num_draws: int = 10
    margin: float = 1.0


class NoisedTopKImbalanced(Noised, CountingLoss):
    """Noised top-K loss with larger margins for rarer classes (Garcin et al., ICML 2022, eq. 13).

    scores: [batch, classes] cosines, of features and class weights of length 1. labels: [batch]. class_counts: [classes] training images.
    k, epsilon, num_draws, seed, generator: as of NoisedTopK. max_margin, scale, zero_count_class: as of LDAM. scale_on: "loss" (the authors'
    code) or "scores" (the paper's text).
    """

    name: ClassVar[str] = "noised_topk_imbalanced"

    k: int = 5
    epsilon: Epsilon = "auto"
    num_draws: int = 5
    max_margin: float = 0.2
    scale: float = 60.0
    zero_count_class: Literal["largest_margin", "error"] = "largest_margin"
    scale_on: Literal["loss", "scores"] = "loss"


class ExactTopK(WeightedLoss):
    """Noised top-K loss with the expectation taken exactly, without draws (Garcin et al., ICML 2022, eq. 8, 9).

    scores: [batch, classes]. labels: [batch]. k, epsilon, margin: as of NoisedTopK. nodes: points of the quadrature, 4 to 512; 32 are right to
    float32's last digit, 64 to float64's.
    """

    name: ClassVar[str] = "exact_topk"

    k: int = 5
    epsilon: Epsilon = "auto"
    nodes: int = 48
    margin: float = 1.0


class ExactTopKImbalanced(CountingLoss):
    """Exact noised top-K loss with larger margins for rarer classes (Garcin et al., ICML 2022, eq. 8, 9, 13).

    scores: [batch, classes] cosines. labels: [batch]. class_counts: [classes] training images. k, epsilon, nodes: as of ExactTopK. max_margin,
    scale, zero_count_class: as of LDAM.
    """

    name: ClassVar[str] = "exact_topk_imbalanced"

    k: int = 5
    epsilon: Epsilon = "auto"
    nodes: int = 48
    max_margin: float = 0.2
    scale: float = 60.0
    zero_count_class: Literal["largest_margin", "error"] = "largest_margin"


class AssumeNegative(WeightedLoss):
    """Binary cross-entropy with every other class a negative (Garcin's thesis, eq. 5.5).

    scores: [batch, classes]. labels: [batch].
    """

    name: ClassVar[str] = "assume_negative"


class BCEPositive(WeightedLoss):
    """Binary cross-entropy of the label alone (Garcin's thesis, eq. 5.6).

    scores: [batch, classes]. labels: [batch].
    """

    name: ClassVar[str] = "bce_positive"


class ExpectedPositiveRegularisation(Loss):
    """Binary cross-entropy of the label, with K positives expected a sample (Garcin's thesis, eq. 5.8). Couples the samples of a batch.

    scores: [batch, classes]. labels: [batch]. k: 1 to classes - 1. beta: weight of the regulariser, at least 0.
    """

    name: ClassVar[str] = "expected_positive_regularisation"

    k: int = 5
    beta: float = 0.01


class ROLE(Loss):
    """Regularised online label estimation (Cole et al., CVPR 2021), whose `estimates` of every sample's labels learn beside the network.
    Couples the samples of a batch.

    scores: [batch, classes]. estimates: [batch, classes] logits. labels: [batch]. k: expected labels a sample, 1 to classes - 1. lambda_:
    weight of the regulariser, `lambda` in configs, at least 0. scale: multiplies the loss, above 0.
    """

    name: ClassVar[str] = "role"

    k: int = 5
    lambda_: float = 0.0
    scale: float = 1.0

    def forward(self, scores: Tensor, estimates: Tensor, labels: Tensor) -> Tensor:  # type: ignore[override]
        """`estimates`: [batch, classes] logits of the samples' estimated labels, such as rows of a torch.nn.Embedding."""
        return self._loss(scores, labels, estimates=estimates)


class AverageKTwoHead(Loss):
    """Average-K loss of a model with two heads (Garcin's thesis, eq. 5.9 to 5.15): cross-entropy of the first head, whose best guesses are
    candidates of a binary cross-entropy of the second. Couples the samples of a batch.

    scores, scores_multi: [batch, classes]. labels: [batch]. k: mean size of the sets to train for, 1 to classes; need not be whole. alpha: weight of
    candidates and negatives, at least 0. negatives_include_label: True follows eq. 5.14 as printed, False eq. 5.9.
    """

    name: ClassVar[str] = "average_k_two_head"

    k: float = 5.0
    alpha: float = 0.3
    negatives_include_label: bool = False

    def forward(self, scores: Tensor, scores_multi: Tensor, labels: Tensor) -> Tensor:  # type: ignore[override]
        """`scores`: of the first head; `scores_multi`, [batch, classes]: of the second, which predicts."""
        return self._loss(scores, labels, scores_multi=scores_multi)


class SparseTop(Loss):
    """Multi-label loss of the projection on the top-|Y| simplex; sparsemax for one label (Garcin's thesis, eq. 6.25).

    scores: [batch, classes]. labels: [batch] integers, or [batch, classes] of 0 and 1, at least one label a sample.
    """

    name: ClassVar[str] = "sparse_top"


class BCEMultilabel(Loss):
    """Binary cross-entropy of every class against the sample's label set (Garcin's thesis, eq. 6.3).

    scores: [batch, classes]. labels: [batch] integers, or [batch, classes] of 0 and 1, at least one label a sample.
    """

    name: ClassVar[str] = "bce_multilabel"
