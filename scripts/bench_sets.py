"""Rules that answer with sets in settrain, beside TorchCP and MAPIE, on the same scores and threads.

`settrain bench sets` calibrates and predicts; so do TorchCP's predictors (without randomness) and MAPIE's classifier, which is given
the probabilities and knows lac alone without randomness. Pairs of measurements; who goes first alternates. rc3p of TorchCP makes a
tensor [images, classes, classes], so it is left out. Needs torchcp and mapie: scripts/record_sets_golden.py says how to install them.
"""

import importlib.metadata
import json
import statistics
import sys
import tempfile
import time

import torch

from bench_pairs import built_program, cpu_name, output_of, print_ratio

ALPHA = 0.1
TORCHCP = {"lac": "LAC", "aps": "APS", "raps": "RAPS"}
RULES = [f"conformal:{score}:{ALPHA}{threshold}" for score in TORCHCP for threshold in ("", ":classwise")]


def random_scores(images, classes):
    """float32 scores, and labels of which class 0 has most and the last class fewest."""
    torch.manual_seed(0)
    labels = torch.multinomial(0.99 ** torch.arange(classes, dtype=torch.float64), images, replacement=True)
    scores = torch.randn(images, classes) * 2
    scores[torch.arange(images), labels] += 8
    return scores, labels


class TorchCP:
    def __init__(self, rule, classes):
        from torchcp.classification import predictor, score

        name, _, threshold = rule.removeprefix("conformal:").partition(f":{ALPHA}")
        options = {"lac": {}, "aps": {"randomized": False}, "raps": {"randomized": False, "penalty": 0.01, "kreg": 5}}[name]
        kind = predictor.ClassConditionalPredictor if threshold else predictor.SplitPredictor
        self.predictor = kind(getattr(score, TORCHCP[name])(**options))
        self.predictor.num_classes = classes

    def calibrate(self, scores, labels):
        self.predictor.calculate_threshold(scores, labels, ALPHA)

    def predict(self, scores):
        return self.predictor.predict_with_logits(scores)


class Mapie:
    """lac, of probabilities."""

    def __init__(self, classes):
        import numpy
        from mapie.classification import SplitConformalClassifier
        from sklearn.base import BaseEstimator, ClassifierMixin

        class GivenProbabilities(ClassifierMixin, BaseEstimator):
            def __init__(self):
                self.classes_ = numpy.arange(classes)

            def fit(self, images, labels):
                return self

            def predict_proba(self, images):
                return images

            def predict(self, images):
                return images.argmax(axis=1)

        self.mapie = SplitConformalClassifier(GivenProbabilities(), confidence_level=1 - ALPHA, conformity_score="lac", prefit=True)

    def calibrate(self, scores, labels):
        self.mapie.conformalize(torch.softmax(scores, 1).numpy(), labels.numpy())

    def predict(self, scores):
        return self.mapie.predict_set(torch.softmax(scores, 1).numpy())


def milliseconds(work):
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def measure_python(contestant, scores, labels):
    return {"calibrate": milliseconds(lambda: contestant.calibrate(scores, labels)), "predict": milliseconds(lambda: contestant.predict(scores))}


def measure_settrain(args, rule, file):
    command = [args.program, "bench", "sets", "--scores", file, "--rules", rule, "--rounds", 3, "--threads", args.threads, "--json"]
    row = json.loads(output_of([str(part) for part in command])[0])["rules"][0]
    return {"calibrate": row["calibrate_ms"], "predict": row["predict_ms"]}


def compare_sets(args):
    from safetensors.torch import save_file

    if args.program is None:
        args.program = built_program()
    from record_sets_golden import StandIns  # needs NumPy, which the other comparisons do not

    sys.meta_path.append(StandIns())
    torch.set_num_threads(args.threads)
    scores, labels = random_scores(args.images, args.classes)
    contests = [(rule, "TorchCP", lambda rule=rule: TorchCP(rule, args.classes)) for rule in RULES]
    contests.append((f"conformal:lac:{ALPHA}", "MAPIE", lambda: Mapie(args.classes)))
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        save_file({"scores": scores, "labels": labels}, file.name)
        for rule, name, make in contests:
            pairs = []
            for index in range(args.pairs):
                turns = [lambda: measure_settrain(args, rule, file.name), lambda: measure_python(make(), scores, labels)]
                results = [turn() for turn in (turns if index % 2 == 0 else turns[::-1])]
                pairs.append(results if index % 2 == 0 else results[::-1])
                print(f"[bench] {rule}, {name}: pair {index + 1} of {args.pairs}", file=sys.stderr, flush=True)
            for part in ("calibrate", "predict"):
                ours, theirs = ([pair[side][part] for pair in pairs] for side in (0, 1))
                print(f"{rule}, {part}: settrain {statistics.median(ours):.1f} ms, {name} {statistics.median(theirs):.1f} ms")
                print_ratio(f"settrain / {name} in speed, {rule}, {part}", [their / our for our, their in zip(ours, theirs)])
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in ("torch", "torchcp", "mapie"))
    print(f"{args.images} images x {args.classes} classes, {args.threads} threads, {cpu_name()}; {versions}")
