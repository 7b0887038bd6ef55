#!/usr/bin/env python3
"""Records golden values of some losses from their formulas, with plain Python arithmetic and values that are recorded already.

Usage: record_loss_golden.py tests/golden/losses

topk_hinge_scaled, (alpha + ((s without y)_[K] - s_y)/K)_+, takes scores and labels from topk_hinge.json. exact_topk_imbalanced,
(scale (m_y + E[(s + epsilon z)_[K+1]] - s_y))_+ with m_j = max_margin (n_min/n_j)^(1/4), takes the expectations and their
gradients from exact_topk.json. logit_adjusted and balanced_softmax, the cross-entropy of s + tau log(n_j / sum_i n_i), take scores, labels and counts
from ldam.json.
"""

import json
import math
import pathlib
import sys


def finished(case, losses, gradients):
    """The case with its results. A row's gradient is None at a kink or a tie; then the case has none."""
    batch = len(losses)
    gradient = None if None in gradients else [[g / batch for g in row] for row in gradients]
    return {**case, "from": "formula", "per_sample": losses, "loss": sum(losses) / batch, "grad_scores": gradient}


def scaled_hinge(scores, label, k, alpha):
    others = sorted((s for j, s in enumerate(scores) if j != label), reverse=True)
    rank = others[k - 1]
    value = alpha + (rank - scores[label]) / k
    if value == 0 or others.count(rank) > 1:
        return max(value, 0.0), None
    chosen = next(j for j, s in enumerate(scores) if s == rank and j != label)
    slope = 1 / k if value > 0 else 0.0
    return max(value, 0.0), [slope * ((j == chosen) - (j == label)) for j in range(len(scores))]


def scaled_hinge_cases(folder):
    for case in json.loads((folder / "topk_hinge.json").read_text())["cases"]:
        for alpha in (1.0, 0.3):
            k = case["params"]["k"]
            rows = [scaled_hinge(s, y, k, alpha) for s, y in zip(case["scores"], case["labels"])]
            made = {"name": f"{case['name']}_alpha_{alpha}", "params": {"k": k, "alpha": alpha}, "scores": case["scores"], "labels": case["labels"]}
            yield finished(made, *map(list, zip(*rows)))


def imbalanced_cases(folder):
    for case in json.loads((folder / "exact_topk.json").read_text())["cases"]:
        classes, params = len(case["scores"][0]), case["params"]
        counts = [(3 * j * j) % 41 + 1 for j in range(classes)]
        for max_margin, scale in ((0.2, 60.0), (0.5, 1.0)):
            margins = [max_margin * (min(counts) / n) ** 0.25 for n in counts]
            losses, gradients = [], []
            for s, y, t, slope in zip(case["scores"], case["labels"], case["smoothed_topk"], case["grad_smoothed_topk"]):
                value = scale * (margins[y] + t - s[y])
                losses.append(max(value, 0.0))
                # `slope` is that of the expectation; none is recorded where it has a kink.
                active = value > 0
                gradients.append(None if slope is None or value == 0 else [scale * active * (g - (j == y)) for j, g in enumerate(slope)])
            settings = {"k": params["k"], "epsilon": params["epsilon"], "max_margin": max_margin, "scale": scale}
            made = {"name": f"{case['name']}_scale_{scale}", "params": settings, "class_counts": counts, "scores": case["scores"], "labels": case["labels"]}
            yield finished(made, losses, gradients)


def adjusted(scores, label, counts, tau):
    shifted = [s + tau * math.log(n / sum(counts)) for s, n in zip(scores, counts)]
    largest = max(shifted)
    terms = [math.exp(s - largest) for s in shifted]
    total = math.fsum(terms)
    shares = [term / total for term in terms]
    return math.log(total) + largest - shifted[label], [share - (j == label) for j, share in enumerate(shares)]


def adjusted_cases(folder, taus):
    """`taus`: by what the case is called, with the loss' keys and tau."""
    for case in json.loads((folder / "ldam.json").read_text())["cases"]:
        for name, (params, tau) in taus.items():
            scores = [[5 * s for s in row] for row in case["scores"]]
            rows = [adjusted(s, y, case["class_counts"], tau) for s, y in zip(scores, case["labels"])]
            made = {"name": f"{case['name']}{name}", "params": params, "class_counts": case["class_counts"], "scores": scores, "labels": case["labels"]}
            yield finished(made, *map(list, zip(*rows)))


if __name__ == "__main__":
    golden = pathlib.Path(sys.argv[1])
    taus = {f"_tau_{tau}": ({"tau": tau}, tau) for tau in (0.0, 0.5, 1.0, 2.0)}
    for loss, cases in (
        ("topk_hinge_scaled", scaled_hinge_cases(golden)),
        ("exact_topk_imbalanced", imbalanced_cases(golden)),
        ("logit_adjusted", adjusted_cases(golden, taus)),
        ("balanced_softmax", adjusted_cases(golden, {"": ({}, 1.0)})),
    ):
        (golden / f"{loss}.json").write_text(json.dumps({"loss": loss, "source": "scripts/record_loss_golden.py", "cases": list(cases)}) + "\n")
