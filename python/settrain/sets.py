"""Rules that answer with sets of classes, calibrated on scores.

    rule = settrain.sets.calibrate("conformal:lac:0.1", calibration_scores, calibration_labels)
    rule.guarantee                       # what holds, and what for
    rule.sets(scores)                    # [images, classes] bool
    settrain.sets.load("runs/a")         # the rules that `settrain calibrate` made, by name

Rules are named as in the program, with A the error, 1 - A the coverage:

    top:K                                the K most probable classes
    average:K                            sets of K classes on average
    error:E                              classes whose probabilities sum to 1 - E
    average-error:E                      an error of E on the calibration images
    conformal:SCORE:A[:THRESHOLD]        a guaranteed coverage

    SCORE   lac                          the smallest sets on average
            aps, raps(lambda=,k=), raps(tune=size), raps(tune=strata), saps(lambda=)
                                         sets that are larger where the network is less sure
            pas, wpas(weights=FILE)      a high mean coverage of classes, on long-tailed data
            tree(nodes=M)                at most M nodes of a taxonomy
            risk                         images with several labels
        (nonempty=true) in any, (randomised=true) in aps, raps and saps

    THRESHOLD   (none: that of all images), classwise, superclass, interpolated(TAU), rc3p, clustered, fuzzy(SIGMA)

docs/sets.md says which one to take, docs/set_rules.md has the guarantees and sources.
"""

import json
import math
import os
import pathlib
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import NotRequired, TypedDict

from settrain._files import is_exported, kind_of, safetensors_metadata
from settrain._ops import counts, integer, integers, label_matrix, number, ops, scores_and_labels, tensor, word
from settrain._ops import scores as checked_scores
from settrain._ops import seed as checked_seed

__all__ = ["CalibratedRule", "Quality", "calibrate", "load", "quality"]



class CalibratedRule:
    """A calibrated rule. Its text, str(rule), keeps every bit: CalibratedRule(text) == rule.

    name, guarantee, notes, num_images: of the rule, its promise, remarks, and the images that calibrated it. score_scale, temperature: scores are
    multiplied by the one and divided by the other before the rule sees them; both are 1 unless the program stored others with it. place: the name
    of the place that it is for, whose shares of the classes then correct the scores; else None.
    """

    def __init__(self, text: str) -> None:
        content = word("text", text)
        try:
            facts = json.loads(content)
            if "rules" in facts:
                raise ValueError("this is a file of rules, which settrain.sets.load(path) reads")
            self.name: str = facts["rule"]
            self.guarantee: str = facts["guarantee"]
            self.notes: list[str] = facts.get("notes", [])
            self.num_images: int = facts.get("images", 0)
            self.score_scale = float(facts.pop("score_scale", 1))
            self.temperature = float(facts.pop("temperature", 1))
            self.place: str | None = facts["place"]["name"] if "place" in facts else None
            self._is_sigmoid = facts["probability"] == "sigmoid"
            self._is_randomised = "randomised=true" in self.name
        except KeyError as error:
            raise ValueError(f"expected the text of a calibrated rule: it has no {error}") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"expected the text of a calibrated rule: {error}") from None
        self._facts: dict[str, Any] = facts
        self._text = json.dumps(facts, separators=(",", ":"))

    @property
    def wanted_coverage(self) -> float:
        """1 - alpha; NaN for a rule without an error."""
        coverage: float = ops.wanted_coverage(self.name)
        return coverage

    def sets(self, scores: object, *, probabilities: bool = False, first_image: int | None = None) -> Tensor:
        """[images, classes] bool, on the scores' device.

        scores: [images, classes] finite logits; with `probabilities` their softmax, or their sigmoids for a rule of these, after score_scale and
        temperature, as TrainedModel.probabilities() gives them. first_image: the number of the first image, 0 or more. Randomised rules draw by it and
        need it, since batches with the same number would get the same draws: count on from batch to batch.
        """
        if first_image is None and self._is_randomised:
            raise ValueError("first_image: needed, since this rule is randomised: the number of the first image, counted on from batch to batch")
        first = integer("first_image", first_image or 0)
        if not 0 <= first < 2**62:
            raise ValueError(f"first_image: expected 0 to 2^62 - 1, got {first}")
        logits = _logits(scores, probabilities, self._is_sigmoid)
        if logits.dim() == 2 and len(logits) == 0:
            return torch.zeros(logits.shape, dtype=torch.bool, device=logits.device)
        is_scaled = probabilities or self.score_scale == self.temperature == 1
        scaled = logits if is_scaled else logits * self.score_scale / self.temperature
        sets: Tensor = ops.sets_of(scaled, self._text, first)
        return sets

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CalibratedRule) and self._all_facts() == other._all_facts()

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return json.dumps(self._all_facts(), separators=(",", ":"))

    def __repr__(self) -> str:
        return f"CalibratedRule({self.name!r}, {self.num_images} images)"

    def _all_facts(self) -> dict[str, Any]:
        scaling = {"score_scale": self.score_scale, "temperature": self.temperature}
        return self._facts | {name: number for name, number in scaling.items() if number != 1}


def _logits(scores: object, are_probabilities: bool, are_sigmoids: bool) -> Tensor:
    """Scores whose softmax, or sigmoids, these probabilities are; or the scores, with a warning where they look like probabilities."""
    numbers = checked_scores("scores", scores)
    if numbers.is_meta or numbers.dim() != 2 or not numbers.is_floating_point():
        return numbers
    in_range = bool(((numbers >= 0) & (numbers <= 1)).all())
    sums_to_100 = bool((numbers >= 0).all() and ((numbers.sum(1) - 100).abs() < 1).all())
    sums_to_1 = bool(((numbers.sum(1) - 1).abs() < 1e-2).all())
    if not are_probabilities:
        if ((in_range and sums_to_1) or sums_to_100) and numbers.numel() and numbers.shape[1] > 1:
            total, advice = ("100", "divide by 100 and say probabilities=True") if sums_to_100 else ("1", "or probabilities=True")
            message = f"scores: every row sums to {total}, as probabilities do; expected logits, {advice}"
            warnings.warn(message, UserWarning, stacklevel=3)
        return numbers
    if not in_range or not (sums_to_1 or are_sigmoids):
        raise ValueError(f"scores: expected probabilities from 0 to 1{'' if are_sigmoids else ' that sum to 1 in each row'}, got others")
    p = numbers.double()
    smallest = 1e-300  # as small as the program's own probabilities become
    logs = p.clamp_min(smallest).log()
    return logs - (1 - p).clamp_min(torch.finfo(torch.float64).tiny).log() if are_sigmoids else logs


def _scores_and_labels(scores: object, labels: object, name: str = "scores") -> tuple[Tensor, Tensor]:
    if tensor("labels", labels).dim() != 2:
        return scores_and_labels(scores, labels, name)
    numbers = checked_scores(name, scores)
    return numbers, label_matrix("labels", labels, numbers.device)


def calibrate(
    rule: str,
    scores: object,
    labels: object,
    *,
    probabilities: bool = False,
    train_counts: object | None = None,
    superclass_of: object | None = None,
    taxonomy: Sequence[Sequence[str]] | None = None,
    sigmoid: bool = False,
    seed: int = 0,
) -> CalibratedRule:
    """Calibrates `rule` on images that chose nothing else: `scores` [images, classes] finite logits, `labels` [images] integers; of risk also
    [images, classes], bool or 0 and 1: all labels of each image, at least one.

    probabilities: the scores are probabilities in place of logits. train_counts: [classes] training images, which pas, wpas and fuzzy need.
    superclass_of: [classes], which superclass needs. taxonomy: [classes] lists, all as long, of the names of what the class belongs to, from the
    rank above its own upward: ["Acer", "Sapindaceae"], which tree needs. sigmoid: probabilities are sigmoids of the scores, not their softmax.
    seed: of what randomised rules draw, 0 to 2^63 - 1. A rule that does not suit is a ValueError. Scores that look like probabilities are warned of.
    """
    name, number = word("rule", rule), checked_seed(seed)
    numbers, of_labels = _scores_and_labels(_logits(scores, probabilities, sigmoid), labels)
    images, superclasses = counts("train_counts", train_counts), integers("superclass_of", superclass_of)
    for row, path in enumerate(() if taxonomy is None else taxonomy):
        if isinstance(path, str) or not all(isinstance(name, str) for name in path):
            raise TypeError(f"taxonomy: expected a list of names for each class, got {path!r} for class {row}")
    paths = [list(path) for path in (() if taxonomy is None else taxonomy)]
    if any(superclass < 0 for superclass in superclasses):
        raise ValueError(f"superclass_of: expected numbers from 0, got {min(superclasses)}")
    if any(len(path) != len(paths[0]) for path in paths):
        raise ValueError("taxonomy: expected lists of the same length, an empty name where a class has nothing of a rank")
    lists = [["class", *(f"rank {r + 1}" for r in range(len(paths[0])))], *paths] if paths else []
    return CalibratedRule(ops.calibrate(name, numbers, of_labels, images, superclasses, json.dumps(lists), bool(sigmoid), number))


def load(path: "str | os.PathLike[str]", *, place: str | None = None) -> dict[str, CalibratedRule]:
    """The rules that `settrain calibrate` made, by name, the default first: of a file RUN/rules-CHECKPOINT.json, of the only such file of a run's
    folder, or of a file that `settrain export` wrote.

    Their temperature is in them, and in an exported file also the scale of its loss: `rule.sets()` takes the model's scores. If the file is a rule
    file and the loss has a scale (cosines), multiply the scores by it first. place: the name of a place that `settrain calibrate --prior` or
    `--shift` made rules for, in place of those for no place. ValueError where the file has no rules, or none for the place; it says what kind of
    file this is. OSError where it cannot be read.
    """
    file = pathlib.Path(path)
    if file.is_dir():
        files = sorted(file.glob("rules-*.json"))
        if len(files) != 1:
            found = ", ".join(one.name for one in files) or "none; `settrain calibrate RUN` writes one"
            raise ValueError(f"{str(file)!r}: expected one file rules-CHECKPOINT.json, got {found}")
        file = files[0]
    problem = f"{str(file)!r}: no rules that settrain calibrated"
    advice = (
        "load() reads the file rules-CHECKPOINT.json that `settrain calibrate RUN` writes, or the safetensors file that `settrain export RUN` "
        "writes after it; settrain.sets.calibrate() makes a rule from scores"
    )
    metadata = safetensors_metadata(file)
    if metadata is not None and not is_exported(metadata):
        raise ValueError(f"{problem}: this is {kind_of(file, metadata)}; {advice}")
    if metadata is not None and "rules" not in metadata:
        raise ValueError(f"{problem}: when this model was exported, it had none; run `settrain calibrate RUN`, and export it again")
    kind = kind_of(file, metadata)
    if metadata is None and kind not in ("a JSON file", "a text file"):
        raise ValueError(f"{problem}: this is {kind}; {advice}")
    score_scale, content = 1.0, file.read_bytes() if metadata is None else metadata["rules"]
    try:
        stored = json.loads(content)
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"{problem}: this is {kind}; {advice}") from None
    if not isinstance(stored, dict) or "rules" not in stored:
        is_one_rule = isinstance(stored, dict) and "rule" in stored
        what = "the text of one rule, which settrain.sets.CalibratedRule(text) reads" if is_one_rule else "a JSON file without rules"
        raise ValueError(f"{problem}: this is {what}; {advice}")
    try:
        if metadata is not None:
            score_scale = json.loads(metadata["card"])["score_scale"]
        places = [of_place["name"] for of_place in stored.get("places", [])]
        if place is None or place in places:
            return rules_of(stored, score_scale, place)
    except KeyError as error:
        raise ValueError(f"{problem}: it has no {error}; {advice}") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"{problem}: {str(error)[:200]}; {advice}") from None
    raise ValueError(f"place: expected one of {places or 'none'}, for which {str(file)!r} has rules, got {place!r}")


def rules_of(stored: dict[str, Any], score_scale: float, place: str | None = None) -> dict[str, CalibratedRule]:
    """The rules of what the program stores, the default first."""
    facts: dict[str, Any] = {"score_scale": score_scale, "temperature": stored["temperature"]}
    found = stored["rules"]
    for of_place in stored.get("places", []):
        if of_place["name"] == place:
            found, facts["place"] = of_place["rules"], of_place | {"rules": []}
    rules = [CalibratedRule(json.dumps(rule | facts)) for rule in found]
    rules.sort(key=lambda rule: rule.name != stored.get("default"))
    return {rule.name: rule for rule in rules}


class Quality(TypedDict):
    """The result of quality(). None where a number is undefined."""

    images: int
    coverage: float  # share of the images whose set holds their label; of several labels, the mean share of an image's labels
    interval: list[float]  # its 95 % Wilson interval
    mean_size: float  # classes in a set
    median_size: float
    macro_coverage: float  # the mean over classes with images
    below_half: float  # share of these classes whose coverage is under 50 %
    undercoverage_gap: float | None  # mean over these classes of what they lack of the wanted coverage
    coverage_gap: float | None  # mean over these classes of the distance to the wanted coverage
    size_stratified_violation: float | None  # largest distance over images with sets of 0 to 1, 2 to 3, 4 to 10, 11 to 100, more classes
    empty: float  # share of the sets with no class
    full: float  # share of the sets with all classes
    classes_without_images: int
    class_coverage: list[float | None]  # [classes]
    few_coverage: NotRequired[float | None]  # with train_counts: the mean over classes with under 20 training images,
    medium_coverage: NotRequired[float | None]  # 20 to 100,
    many_coverage: NotRequired[float | None]  # and over 100


def quality(
    sets: object, labels: object, *, rule: CalibratedRule | None = None, wanted_coverage: float = math.nan, train_counts: object | None = None
) -> Quality:
    """How good sets are: coverage with its 95 % Wilson interval, sizes, coverage of classes, and the gaps to what was wanted.

    sets: [images, classes] bool. labels: [images], or all labels of each image, [images, classes] bool or 0 and 1: coverage is then the mean
    share of an image's labels that its set holds. rule: has the coverage that was wanted; otherwise wanted_coverage, a share. train_counts: [classes], for few_, medium_ and
    many_coverage.
    """
    if rule is not None:
        if not isinstance(rule, CalibratedRule):
            raise TypeError(f"rule: expected a CalibratedRule, got {rule!r}")
        if not math.isnan(wanted_coverage):
            raise ValueError("wanted_coverage: without an effect, since there is a rule")
        wanted_coverage = rule.wanted_coverage
    elif not (math.isnan(number("wanted_coverage", wanted_coverage)) or 0 <= wanted_coverage <= 1):
        raise ValueError(f"wanted_coverage: expected a share from 0 to 1, got {wanted_coverage!r}")
    rows, of_labels = _scores_and_labels(sets, labels, "sets")
    found: Quality = json.loads(ops.set_quality(rows, of_labels, number("wanted_coverage", wanted_coverage), counts("train_counts", train_counts)))
    return found
