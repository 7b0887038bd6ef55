#!/usr/bin/env python3
"""Records the sets and p-values that TorchCP, MAPIE and crepes answer with, on long-tailed random scores in float64.

    pip install torch mapie==1.6.0 crepes==0.9.1 scikit-learn && pip install --no-deps torchcp==1.2.1
    python scripts/record_sets_golden.py tests/golden/sets

A case has a rule by settrain's name, the program that answered, and a set for each test image: a hexadecimal number whose lowest
bit is class 0. `near` lists the test images with a class whose score is within 1e-6 of its threshold: rounding decides those.
TorchCP imports packages that nothing here needs; empty modules stand in for them. u is 0 (randomized=False). MAPIE always
randomises aps and raps, so only its lac is recorded. TorchCP's saps without randomisation is not recorded either: it gives a
calibration image whose first class is the label the score 0, and any other image's first class its probability. Scores have four
decimals, so that JSON holds them exactly.

`p_values.json` has crepes' p-values (smoothing=False) as whole numbers, p times one more than the calibration images: of all images, or
of those of the class. `risk.json` has label sets of the same calibration images, and MAPIE's sets by them (conformal risk control of the recall, on
softmax and sigmoid), which tries the thresholds that it is given: the labels' probabilities, times 1 - 1e-12, since MAPIE takes
classes above the threshold and settrain those that reach it. In both, `near` are the images as above.
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


class GivenProbabilities:
    """A fitted classifier whose images are their own probabilities."""

    classes_ = numpy.arange(CLASSES)

    def predict_proba(self, images):
        return images


def softmax(part):
    return torch.softmax(torch.from_numpy(part[0]), dim=1).numpy()


def crepes_cases(calibration, test):
    from crepes import WrapClassifier

    known, images = softmax(calibration), softmax(test)
    labels = calibration[1]
    strangeness = 1 - known[numpy.arange(CALIBRATION), labels]
    for suffix, class_cond in (("", False), (":classwise", True)):
        wrapped = WrapClassifier(GivenProbabilities())
        wrapped.calibrate(known, labels, class_cond=class_cond)
        p_values = wrapped.predict_p(images, smoothing=False)
        beside = numpy.bincount(labels, minlength=CLASSES) + 1 if class_cond else CALIBRATION + 1
        counts = numpy.round(p_values * beside)
        assert numpy.abs(counts / beside - p_values).max() < 1e-12
        near = (numpy.abs((1 - images)[:, :, None] - strangeness) < NEAR).any(axis=(1, 2))
        yield {"rule": f"conformal:lac:0.1{suffix}", "near": numpy.flatnonzero(near).tolist(), "counts": counts.astype(int).tolist()}


def risk_cases(calibration, label_sets, test, alpha):
    from mapie.risk_control import MultiLabelClassificationController

    def sigmoid(part):
        return torch.sigmoid(torch.from_numpy(part[0])).numpy()

    for name, probabilities in (("softmax", softmax), ("sigmoid", sigmoid)):
        known, images = probabilities(calibration), probabilities(test)
        tried = numpy.unique(known[label_sets]) * (1 - 1e-12)
        controller = MultiLabelClassificationController(lambda x: x, risk="recall", method="crc", target_level=1 - alpha, predict_params=tried)
        controller.calibrate(known, label_sets.astype(int))
        sets = controller.predict(images)[:, :, 0]
        near = (numpy.abs(images - numpy.ravel(controller.best_predict_param)[0]) < NEAR).any(axis=1)
        yield {
            "rule": f"conformal:risk:{alpha}", "probability": name, "near": numpy.flatnonzero(near).tolist(),
            "sets": [as_hexadecimal(row) for row in sets],
        }


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
    (folder / "p_values.json").write_text(json.dumps(list(crepes_cases(calibration, test))) + "\n")
    label_sets = calibration[0] + generator.normal(size=calibration[0].shape) > 2
    label_sets[numpy.arange(CALIBRATION), calibration[1]] = True
    risks = [case for alpha in ALPHAS for case in risk_cases(calibration, label_sets, test, alpha)]
    (folder / "risk.json").write_text(json.dumps({"label_sets": [as_hexadecimal(row) for row in label_sets], "cases": risks}) + "\n")


if __name__ == "__main__":
    main()
