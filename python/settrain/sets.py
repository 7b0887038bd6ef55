"""Rules that answer with sets of classes, calibrated on scores.

    rule = settrain.sets.calibrate("conformal:lac:0.1", calibration_scores, calibration_labels)
    rule.guarantee                       # what holds, and what for
    rule.sets(scores)                    # [images, classes] bool

Rules are named as in the program: "top:5", "average:5", "error:0.1", "average-error:0.1", and "conformal:SCORE:ALPHA[:THRESHOLD]" with the
scores lac, aps, raps, saps, pas, wpas, tree(nodes=M) and risk, and the thresholds marginal, classwise, superclass, interpolated(TAU), rc3p, clustered and
fuzzy(SIGMA). docs/sets.md says which one to take, and has their sources.
"""

import json
import math
from collections.abc import Sequence

from torch import Tensor

from settrain._ops import counts, integers, label_matrix, ops, scores_and_labels, tensor

__all__ = ["CalibratedRule", "calibrate", "quality"]


class CalibratedRule:
    """A rule, and what calibration came to. Its text, str(rule), keeps every bit: CalibratedRule(text) is the same rule."""

    def __init__(self, text: str) -> None:
        try:
            facts = json.loads(text)
            self.name: str = facts["rule"]
            self.guarantee: str = facts["guarantee"]
            self.notes: list[str] = facts.get("notes", [])
            self.num_images: int = facts.get("images", 0)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"expected the text of a calibrated rule: {error!r}") from None
        self._text = text

    @property
    def wanted_coverage(self) -> float:
        """1 - alpha; NaN for a rule without an error."""
        return ops.wanted_coverage(self.name)

    def sets(self, scores: object, *, first_image: int = 0) -> Tensor:
        """[images, classes] bool, on the scores' device. `first_image`: the number of the first, on which randomised rules depend."""
        scores = tensor(scores).detach()
        return ops.sets_of(scores.float() if scores.element_size() < 4 else scores, self._text, first_image)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"CalibratedRule({self.name!r}, {self.num_images} images)"


def _scores_and_labels(scores: object, labels: object) -> tuple[Tensor, Tensor]:
    if tensor(labels).dim() != 2:
        return scores_and_labels(scores, labels)
    scores = tensor(scores).detach()
    return scores.float() if scores.element_size() < 4 and scores.is_floating_point() else scores, label_matrix(labels, scores.device)


def calibrate(
    rule: str,
    scores: object,
    labels: object,
    *,
    train_counts: object | None = None,
    superclass_of: object | None = None,
    taxonomy: Sequence[Sequence[str]] | None = None,
    sigmoid: bool = False,
    seed: int = 0,
) -> CalibratedRule:
    """Calibrates `rule` on images that chose nothing else: `scores` [images, classes] logits, `labels` [images]; of risk also [images, classes],
    bool or 0 and 1: all labels of each image, at least one.

    train_counts: [classes] training images, which pas, wpas and fuzzy need. superclass_of: [classes], which superclass needs. taxonomy:
    [classes] lists, all as long, of the names of what the class belongs to, from the rank above its own upward: ["Acer", "Sapindaceae"],
    which tree needs. sigmoid:
    probabilities are sigmoids of the scores, not their softmax. seed: of what randomised rules draw. A rule that does not suit is a
    ValueError.
    """
    scores, labels = _scores_and_labels(scores, labels)
    images, superclasses = counts("train_counts", train_counts), integers("superclass_of", superclass_of)
    paths = [[str(name) for name in path] for path in taxonomy or []]
    if any(len(path) != len(paths[0]) for path in paths):
        raise ValueError("taxonomy: expected lists of the same length, an empty name where a class has nothing of a rank")
    lists = [["class", *(f"rank {r + 1}" for r in range(len(paths[0])))], *paths] if paths else []
    return CalibratedRule(ops.calibrate(rule, scores, labels, images, superclasses, json.dumps(lists), sigmoid, seed))


def quality(
    sets: object, labels: object, *, rule: CalibratedRule | None = None, wanted_coverage: float = math.nan, train_counts: object | None = None
) -> dict[str, object]:
    """How good sets are: coverage with its 95 % Wilson interval, sizes, coverage of classes, and the gaps to what was wanted.

    sets: [images, classes] bool. labels: [images], or all labels of each image, [images, classes] bool or 0 and 1: coverage is then the mean
    share of an image's labels that its set holds. rule: has the coverage that was wanted. train_counts: [classes], for few_, medium_ and
    many_coverage. None where a number is undefined.
    """
    if rule is not None:
        wanted_coverage = rule.wanted_coverage
    sets, labels = _scores_and_labels(sets, labels)
    return json.loads(ops.set_quality(sets, labels, wanted_coverage, counts("train_counts", train_counts)))
