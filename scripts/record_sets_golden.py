#!/usr/bin/env python3
"""Records the sets that TorchCP and MAPIE answer with, on long-tailed random scores in float64.

    pip install torch mapie==1.6.0 scikit-learn && pip install --no-deps torchcp==1.2.1
    python scripts/record_sets_golden.py tests/golden/sets

A case has a rule by settrain's name, the program that answered, and a set for each test image: a hexadecimal number whose lowest
bit is class 0. `near` lists the test images with a class whose score is within 1e-6 of its threshold: rounding decides those.
TorchCP imports packages that nothing here needs; empty modules stand in for them. u is 0 (randomized=False). MAPIE always
randomises aps and raps, so only its lac is recorded. Scores have four decimals, so that JSON holds them exactly.
"""

import importlib.abc
import importlib.machinery
import json
import pathlib
import sys
import types
import warnings

import numpy
import torch

CLASSES, CALIBRATION, TEST = 20, 240, 160
ALPHAS = (0.05, 0.1, 0.3)  # at 0.05 a class needs 19 images, which the rare ones lack
NEAR = 1e-6
STAND_INS = {"torchsort", "transformers", "pandas", "tqdm", "torch_geometric", "torchvision", "matplotlib", "networkx"}


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in STAND_INS else None

    def create_module(self, spec):
        def attribute(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

        module = types.ModuleType(spec.name)
        module.__getattr__ = attribute
        return module

    def exec_module(self, module):
        pass


def random_scores(generator, images):
    """Scores of four decimals, and labels of which class 0 has most and the last class fewest."""
    shares = 0.8 ** numpy.arange(CLASSES)
    labels = generator.choice(CLASSES, images, p=shares / shares.sum())
    scores = generator.normal(size=(images, CLASSES))
    scores[numpy.arange(images), labels] += 2.5
    return numpy.round(scores, 4), labels


def torchcp_cases(calibration, test, alpha):
    from torchcp.classification.predictor import ClassConditionalPredictor, RC3PPredictor, SplitPredictor
    from torchcp.classification.score import APS, LAC, RAPS

    scores = {
        "lac": LAC(),
        "aps": APS(randomized=False),
        "raps(lambda=0.01,k=5)": RAPS(randomized=False, penalty=0.01, kreg=5),
    }
    predictors = {"": SplitPredictor, ":classwise": ClassConditionalPredictor, ":rc3p": RC3PPredictor}
    logits, labels = (torch.from_numpy(array) for array in calibration)
    images = torch.from_numpy(test[0])
    for score_name, score in scores.items():
        for suffix, predictor_class in predictors.items():
            predictor = predictor_class(score)
            predictor.num_classes = CLASSES  # which rc3p takes only from calibrate(), where scores become float32
            predictor.calculate_threshold(logits, labels, alpha)
            # rc3p's thresholds have another name than those of the other two.
            thresholds = predictor.class_thresholds if suffix == ":rc3p" else predictor.q_hat
            near = ((score(images) - thresholds).abs() < NEAR).any(dim=1)
            sets = predictor.predict_with_logits(images).bool()
            yield f"conformal:{score_name}:{alpha}{suffix}", "torchcp", sets.numpy(), near.numpy()


def mapie_case(calibration, test, alpha):
    from mapie.classification import SplitConformalClassifier
    from sklearn.base import BaseEstimator, ClassifierMixin

    class GivenProbabilities(ClassifierMixin, BaseEstimator):
        """A fitted classifier whose images are their own probabilities."""

        def __init__(self):
            self.classes_ = numpy.arange(CLASSES)

        def fit(self, images, labels):
            return self

        def predict_proba(self, images):
            return images

        def predict(self, images):
            return images.argmax(axis=1)

    calibration_images, images = (torch.softmax(torch.from_numpy(part[0]), dim=1).numpy() for part in (calibration, test))
    mapie = SplitConformalClassifier(GivenProbabilities(), confidence_level=1 - alpha, conformity_score="lac", prefit=True)
    mapie.conformalize(calibration_images, calibration[1])
    sets = mapie.predict_set(images)[1][:, :, 0]
    true = numpy.sort(1 - calibration_images[numpy.arange(CALIBRATION), calibration[1]])
    threshold = true[int(numpy.ceil((CALIBRATION + 1) * (1 - alpha))) - 1]
    yield f"conformal:lac:{alpha}", "mapie", sets, (numpy.abs(1 - images - threshold) < NEAR).any(axis=1)


def as_hexadecimal(row):
    return format(sum(1 << int(label) for label in numpy.flatnonzero(row)), "x")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    sys.meta_path.append(StandIns())
    warnings.simplefilter("ignore")  # both warn of classes with too few images, which are wanted here
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    generator = numpy.random.default_rng(0)
    calibration, test = random_scores(generator, CALIBRATION), random_scores(generator, TEST)
    cases = []
    for alpha in ALPHAS:
        for record in (torchcp_cases, mapie_case):
            for rule, program, sets, near in record(calibration, test, alpha):
                near_images = [int(image) for image in numpy.flatnonzero(near)]
                cases.append({"rule": rule, "from": program, "near": near_images, "sets": [as_hexadecimal(row) for row in sets]})
    parts = {
        name: {"scores": part[0].tolist(), "labels": part[1].tolist()} for name, part in (("calibration", calibration), ("test", test))
    }
    (folder / "conformal.json").write_text(json.dumps({"classes": CLASSES, **parts, "cases": cases}) + "\n")


if __name__ == "__main__":
    main()
