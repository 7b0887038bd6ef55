"""Losses for set-valued classification, as torch.nn.Modules.

Every loss takes `scores`, [batch, classes] logits (or cosines, where its docstring says so) of float32, float64, bfloat16 or
float16, on the CPU or CUDA, and `labels`, [batch] int64 on the same device. Half precision is computed in float32. It returns the mean
of the samples' losses, [] float32 or float64, or with reduction="sum" their sum, with "none" the losses, [batch].

Parameters have the names and defaults of `loss` in settrain's configs. All take besides:

    reduction       "mean", "sum" or "none"
    class_weights   [classes] weights that multiply the losses of samples with these labels

Sources: Berrada et al., ICLR 2018; Garcin et al., ICML 2022; Garcin's thesis, 2023; others by name. Losses with kernels of their own, the
noised, smoothed and exact ones, have no second derivative. Wrong values are ValueErrors.
"""

from torch import Tensor

from settrain._loss import Integers, Loss, NoisedLoss

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


class _SmoothableHinge(NoisedLoss):
    """A hinge whose rank may be smoothed. Without smoothing it draws nothing, no seed either."""

    def __init__(
        self, keys: dict[str, object], epsilon: float, num_draws: int, *, seed: int | None = None, generator=None, **others
    ) -> None:
        if epsilon:
            keys = keys | {"smoothing.epsilon": epsilon, "smoothing.num_draws": num_draws}
        else:
            given = {"smoothing_num_draws": num_draws != 10, "seed": seed is not None, "generator": generator is not None}
            for name, is_given in given.items():
                if is_given:
                    raise ValueError(f"{name}: without an effect, since smoothing_epsilon is 0")
            seed = 0
        super().__init__(keys, seed=seed, generator=generator, **others)
        self._is_smoothed = bool(epsilon)

    def forward(self, scores: Tensor, labels: Tensor, noise: Tensor | None = None) -> Tensor:
        if noise is not None and not self._is_smoothed:
            raise ValueError("noise: without an effect, since smoothing_epsilon is 0")
        return super().forward(scores, labels, noise)


class CrossEntropy(Loss):
    """Cross-entropy of the softmax of the scores, with a share `label_smoothing` of the target spread over all classes."""

    name = "cross_entropy"

    def __init__(self, *, label_smoothing: float = 0.0, **others) -> None:
        super().__init__({"label_smoothing": label_smoothing}, **others)


class Focal(Loss):
    """Focal loss, which weights samples down as their probability grows (Lin et al., ICCV 2017)."""

    name = "focal"

    def __init__(self, *, gamma: float = 2.0, **others) -> None:
        super().__init__({"gamma": gamma}, **others)


class LDAM(Loss):
    """Cross-entropy with larger margins for rarer classes (Cao et al., NeurIPS 2019). Scores are cosines, of features and class weights
    of length 1.

    class_counts: [classes] training images. zero_count_class: what a class without one gets, "largest_margin" or "error".
    """

    name = "ldam"

    def __init__(
        self, class_counts: Integers, *, max_margin: float = 0.2, scale: float = 40.0, zero_count_class: str = "largest_margin", **others
    ) -> None:
        keys = {"max_margin": max_margin, "scale": scale, "zero_count_class": zero_count_class}
        super().__init__(keys, class_counts=class_counts, **others)


class LogitAdjusted(Loss):
    """Cross-entropy of scores shifted by tau times the log frequencies of the classes (Menon et al., ICLR 2021).

    class_counts: [classes] training images. scale: multiplies the scores, for cosines.
    """

    name = "logit_adjusted"

    def __init__(self, class_counts: Integers, *, tau: float = 1.0, scale: float = 1.0, **others) -> None:
        super().__init__({"tau": tau, "scale": scale}, class_counts=class_counts, **others)


class BalancedSoftmax(Loss):
    """Cross-entropy of a softmax weighted by the classes' training images, `class_counts` [classes] (Ren et al., NeurIPS 2020)."""

    name = "balanced_softmax"

    def __init__(self, class_counts: Integers, **others) -> None:
        super().__init__({}, class_counts=class_counts, **others)


class TopKHinge(_SmoothableHinge):
    """Top-K hinge (Garcin et al., ICML 2022, eq. 4).

    smoothing_epsilon: standard deviation of a noise by which the rank is smoothed, as NoisedTopK smooths TopKHingeCalibrated; 0: none.
    smoothing_num_draws: its draws. `noise` of a call is [batch, draws, classes - 1]: for the wrong classes, in their order.
    """

    name = "topk_hinge"

    def __init__(self, *, k: int = 5, smoothing_epsilon: float = 0.0, smoothing_num_draws: int = 10, **others) -> None:
        super().__init__({"k": k}, smoothing_epsilon, smoothing_num_draws, **others)


class TopKHingeConvex(_SmoothableHinge):
    """Convex top-K hinge (Garcin et al., ICML 2022, table 1). Smoothed as TopKHinge, with noise for all classes."""

    name = "topk_hinge_convex"

    def __init__(self, *, k: int = 5, smoothing_epsilon: float = 0.0, smoothing_num_draws: int = 10, **others) -> None:
        super().__init__({"k": k}, smoothing_epsilon, smoothing_num_draws, **others)


class TopKHingeCalibrated(Loss):
    """Calibrated top-K hinge (Garcin et al., ICML 2022, eq. 5)."""

    name = "topk_hinge_calibrated"

    def __init__(self, *, k: int = 5, **others) -> None:
        super().__init__({"k": k}, **others)


class TopKHingeScaled(_SmoothableHinge):
    """Top-K hinge on scores over K (Berrada et al., ICLR 2018, eq. 8). alpha: the margin. Smoothed as TopKHinge."""

    name = "topk_hinge_scaled"

    def __init__(
        self, *, k: int = 5, alpha: float = 1.0, smoothing_epsilon: float = 0.0, smoothing_num_draws: int = 10, **others
    ) -> None:
        super().__init__({"k": k, "alpha": alpha}, smoothing_epsilon, smoothing_num_draws, **others)


class TopKZeroOne(Loss):
    """Top-K error, which has no gradient (Garcin et al., ICML 2022, eq. 3)."""

    name = "topk_zero_one"

    def __init__(self, *, k: int = 5, **others) -> None:
        super().__init__({"k": k}, **others)


class SmoothedTopKHinge(Loss):
    """Smoothed top-K hinge, with sums over all sets of K classes (Berrada et al., ICLR 2018, eq. 9, 10).

    tau: temperature; the smaller, the nearer to the hinge. alpha: the margin. reference_threshold: 1000 takes the hard hinge where
    s_[k] - s_[k+1] >= k tau log(1000), as the authors' code has it; 0 is smooth everywhere.
    """

    name = "smoothed_topk_hinge"

    def __init__(self, *, k: int = 5, tau: float = 1.0, alpha: float = 1.0, reference_threshold: float = 0.0, **others) -> None:
        super().__init__({"k": k, "tau": tau, "alpha": alpha, "reference_threshold": reference_threshold}, **others)


class NoisedTopK(NoisedLoss):
    """Noised top-K loss, for balanced data (Garcin et al., ICML 2022, eq. 10 to 12): (margin + t - s_y)_+, t the (K+1)-th largest of the
    scores with noise, averaged over draws.

    epsilon: standard deviation of the noise; "auto" is that of the sample's own scores. num_draws: draws a sample.
    """

    name = "noised_topk"

    def __init__(self, *, k: int = 5, epsilon: float | str = "auto", num_draws: int = 10, margin: float = 1.0, **others) -> None:
        super().__init__({"k": k, "epsilon": epsilon, "num_draws": num_draws, "margin": margin}, **others)


class NoisedTopKImbalanced(NoisedLoss):
    """Noised top-K loss with larger margins for rarer classes (Garcin et al., ICML 2022, eq. 13). Scores are cosines, of features and
    class weights of length 1.

    class_counts: [classes] training images. scale_on: "loss" (the authors' code) or "scores" (the paper's text). zero_count_class: what a
    class without an image gets, "largest_margin" or "error".
    """

    name = "noised_topk_imbalanced"

    def __init__(
        self,
        class_counts: Integers,
        *,
        k: int = 5,
        epsilon: float | str = "auto",
        num_draws: int = 5,
        max_margin: float = 0.2,
        scale: float = 60.0,
        zero_count_class: str = "largest_margin",
        scale_on: str = "loss",
        **others,
    ) -> None:
        keys = {"k": k, "epsilon": epsilon, "num_draws": num_draws, "max_margin": max_margin, "scale": scale}
        super().__init__(keys | {"zero_count_class": zero_count_class, "scale_on": scale_on}, class_counts=class_counts, **others)


class ExactTopK(Loss):
    """Noised top-K loss with the expectation taken exactly, without draws (Garcin et al., ICML 2022, eq. 8, 9).

    nodes: points of the quadrature; 32 are right to float32's last digit, 64 to float64's.
    """

    name = "exact_topk"

    def __init__(self, *, k: int = 5, epsilon: float | str = "auto", nodes: int = 48, margin: float = 1.0, **others) -> None:
        super().__init__({"k": k, "epsilon": epsilon, "nodes": nodes, "margin": margin}, **others)


class ExactTopKImbalanced(Loss):
    """Exact noised top-K loss with larger margins for rarer classes (Garcin et al., ICML 2022, eq. 8, 9, 13). Scores are cosines.

    class_counts: [classes] training images. zero_count_class: what a class without one gets, "largest_margin" or "error".
    """

    name = "exact_topk_imbalanced"

    def __init__(
        self,
        class_counts: Integers,
        *,
        k: int = 5,
        epsilon: float | str = "auto",
        nodes: int = 48,
        max_margin: float = 0.2,
        scale: float = 60.0,
        zero_count_class: str = "largest_margin",
        **others,
    ) -> None:
        keys = {"k": k, "epsilon": epsilon, "nodes": nodes, "max_margin": max_margin, "scale": scale, "zero_count_class": zero_count_class}
        super().__init__(keys, class_counts=class_counts, **others)


class AssumeNegative(Loss):
    """Binary cross-entropy with every other class a negative (Garcin's thesis, eq. 5.5)."""

    name = "assume_negative"

    def __init__(self, **others) -> None:
        super().__init__({}, **others)


class BCEPositive(Loss):
    """Binary cross-entropy of the label alone (Garcin's thesis, eq. 5.6)."""

    name = "bce_positive"

    def __init__(self, **others) -> None:
        super().__init__({}, **others)


class ExpectedPositiveRegularisation(Loss):
    """Binary cross-entropy of the label, with K positives expected a sample (Garcin's thesis, eq. 5.8). Couples the samples of a batch.

    beta: weight of the regulariser.
    """

    name = "expected_positive_regularisation"

    def __init__(self, *, k: int = 5, beta: float = 0.01, **others) -> None:
        super().__init__({"k": k, "beta": beta}, **others)


class ROLE(Loss):
    """Regularised online label estimation (Cole et al., CVPR 2021), whose `estimates` of every sample's labels learn beside the network.

    k: expected labels a sample. lambda_: weight of the regulariser, `lambda` in configs. scale: multiplies the loss.
    """

    name = "role"

    def __init__(self, *, k: int = 5, lambda_: float = 0.0, scale: float = 1.0, **others) -> None:
        super().__init__({"k": k, "lambda": lambda_, "scale": scale}, **others)

    def forward(self, scores: Tensor, estimates: Tensor, labels: Tensor) -> Tensor:
        """`estimates`: [batch, classes] logits of the samples' estimated labels, such as rows of a torch.nn.Embedding."""
        return self._loss(scores, labels, estimates=estimates)


class AverageKTwoHead(Loss):
    """Average-K loss of a model with two heads (Garcin's thesis, eq. 5.9 to 5.15): cross-entropy of the first head, whose best guesses are
    candidates of a binary cross-entropy of the second. Couples the samples of a batch.

    k: mean size of the sets to train for; need not be whole. alpha: weight of candidates and negatives. negatives_include_label: True
    follows eq. 5.14 as printed, False eq. 5.9.
    """

    name = "average_k_two_head"

    def __init__(self, *, k: float = 5.0, alpha: float = 0.3, negatives_include_label: bool = False, **others) -> None:
        super().__init__({"k": k, "alpha": alpha, "negatives_include_label": negatives_include_label}, **others)

    def forward(self, scores: Tensor, scores_multi: Tensor, labels: Tensor) -> Tensor:
        """`scores`: of the first head; `scores_multi`, [batch, classes]: of the second, which predicts."""
        return self._loss(scores, labels, scores_multi=scores_multi)


class SparseTop(Loss):
    """Multi-label loss of the projection on the top-|Y| simplex; sparsemax for one label (Garcin's thesis, eq. 6.25).

    labels: [batch] int64, or [batch, classes] of 0 and 1.
    """

    name = "sparse_top"

    def __init__(self, **others) -> None:
        super().__init__({}, **others)


class BCEMultilabel(Loss):
    """Binary cross-entropy of every class against the sample's label set (Garcin's thesis, eq. 6.3).

    labels: [batch] int64, or [batch, classes] of 0 and 1.
    """

    name = "bce_multilabel"

    def __init__(self, **others) -> None:
        super().__init__({}, **others)
