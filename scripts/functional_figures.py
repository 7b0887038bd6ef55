#!/usr/bin/env python3
"""Draws the pictures of docs/functional.md from what settrain.functional computes. Needs the package and gnuplot.

    PYTHONPATH=build/release/python python scripts/functional_figures.py [FOLDER]

writes functional_NAME.png into FOLDER, by default docs/images.
"""

import math
import pathlib
import subprocess
import sys

import torch

from settrain import functional

OTHERS = [0.5, 0.0, -1.0]  # the scores beside the one that moves


def moving_scores(low=-3.0, high=3.0, points=301):
    """Scores [points, 4] whose first one moves."""
    first = torch.linspace(low, high, points, dtype=torch.float64)
    return torch.cat([first.unsqueeze(1), torch.tensor(OTHERS, dtype=torch.float64).expand(points, -1)], 1).requires_grad_()


def curve(x, y):
    return list(zip(x.tolist(), y.tolist()))


def value_and_slope(function):
    """Curves of a function of the first score, and of its gradient by that score."""
    scores = moving_scores()
    values = function(scores)
    slope = torch.autograd.grad(values.sum(), scores)[0]
    x = scores[:, 0].detach()
    return curve(x, values), curve(x, slope[:, 0])


def draw(file, *panels):
    """`panels`: (title, label of x, {name: curve}, more commands), side by side."""
    lines = [
        f"set terminal pngcairo size {480 * len(panels)},320 font 'Sans,10'",
        f"set output '{file}'",
        f"set multiplot layout 1,{len(panels)}",
        "set key top left reverse Left samplen 2 spacing 1.1",
        "set border 3",
        "set tics nomirror",
    ]
    for title, x, curves, *more in panels:
        lines += [f"set title '{title}'", f"set xlabel '{x}'", *more]
        lines.append("plot " + ", ".join(f"'-' with lines lw 2 lc {i} title '{name}'" for i, name in enumerate(curves, 1)))
        for points in curves.values():
            lines += [f"{a} {b}" for a, b in points if math.isfinite(b)] + ["e"]
    subprocess.run(["gnuplot"], input="\n".join(lines), text=True, check=True)


def draw_of_moving_score(file, title, title_of_slope, functions, more):
    """`functions`: {name: function of scores}."""
    drawn = {name: value_and_slope(function) for name, function in functions.items()}
    values, slopes = ({name: pair[i] for name, pair in drawn.items()} for i in range(2))
    draw(file, (title, "x", values), (title_of_slope, "x", slopes, more))


def smoothed(file, function, name):
    """One noise for all scores, so that a curve shows the function of few draws, kinks included."""
    normals = torch.randn(1, 1000, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def with_draws(epsilon, draws):
        return lambda scores: function(scores, 2, epsilon=epsilon, noise=normals[:, :draws].expand(len(scores), -1, -1))

    functions = {
        "epsilon = 0": with_draws(0.0, 1),
        "epsilon = 0.5, 10 draws": with_draws(0.5, 10),
        "epsilon = 0.5, 1,000 draws": with_draws(0.5, 1000),
    }
    draw_of_moving_score(file, f"{name} of (x, 0.5, 0, -1)", "its gradient by x", functions, "set yrange [-0.05:1.45]")


def exact(file):
    def with_epsilon(epsilon):
        return lambda scores: functional.exact_smoothed_kth_largest(scores, 2, epsilon=epsilon)

    functions = {f"epsilon = {epsilon}": with_epsilon(epsilon) for epsilon in (0, 0.2, 0.5, 1)}
    titles = "2nd largest of (x, 0.5, 0, -1), expected", "its gradient by x: the probability that x is the 2nd"
    draw_of_moving_score(file, *titles, functions, "set yrange [-0.05:1.45]")


def projection(file):
    scores = moving_scores().detach()
    x, q = scores[:, 0], functional.sparse_top_projection(scores, 2)
    by_x = functional.sparse_top_jacobian(scores, 2)[:, :, 0]
    names = ["x", *map(str, OTHERS)]
    shares = {f"share of {name}": curve(x, q[:, j]) for j, name in enumerate(names)}
    slopes = {f"of the share of {name}": curve(x, by_x[:, j]) for j, name in enumerate(names)}
    draw(
        file,
        ("projection of (x, 0.5, 0, -1), k = 2", "x", shares, "set yrange [-0.05:1.6]"),
        ("its Jacobian: derivatives by x", "x", slopes, "set yrange [-0.6:1.3]"),
    )


def polynomials(file):
    def beside(x, *others):
        return torch.stack([x, *(torch.full_like(x, other) for other in others)], 1)

    x, log_x = torch.linspace(0, 3, 301, dtype=torch.float64), torch.linspace(-6, 6, 301, dtype=torch.float64)
    logs = beside(log_x, math.log(0.5), 0.0, math.log(2)).requires_grad_()
    sigma, log_sigma = functional.elementary_symmetric(beside(x, 0.5, 1.0, 2.0), 4), functional.log_elementary_symmetric(logs, 4)

    def slope(degree):
        return torch.autograd.grad(log_sigma[:, degree].sum(), logs, retain_graph=True)[0][:, 0]

    values = {f"degree {i}": curve(x, sigma[:, i]) for i in range(1, 5)}
    slopes = {f"degree {i}": curve(log_x, slope(i)) for i in range(1, 5)}
    draw(
        file,
        ("polynomials of (x, 0.5, 1, 2)", "x", values),
        ("gradient of their logarithms by log x", "log x", slopes, "set yrange [-0.05:1.6]"),
    )


def threshold(file):
    generator = torch.Generator().manual_seed(2)
    probabilities = (2 * torch.randn(500, 10, generator=generator, dtype=torch.float64)).softmax(1)
    x = torch.linspace(0, 0.6, 301, dtype=torch.float64)
    sizes = (probabilities.flatten().unsqueeze(0) >= x.unsqueeze(1)).double().sum(1) / 500
    marks = []
    for k in (1, 2, 4):
        at = functional.average_k_threshold(probabilities, k).item()
        marks += [
            f"set arrow from {at},0 to {at},{k} nohead dt 2",
            f"set arrow from 0,{k} to {at},{k} nohead dt 2",
            f"set label 'k = {k}: {at:.3f}' at {at + 0.01},{k + 0.3}",
        ]
    curves = {"classes in a set, on average": curve(x, sizes)}
    draw(file, ("sets of probabilities, 500 images, 10 classes", "threshold", curves, "set key top right", *marks))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1] / "docs/images"
    smoothed(folder / "functional_smoothed_topk_sum.png", functional.smoothed_topk_sum, "sum of the 2 largest")
    smoothed(folder / "functional_smoothed_kth_largest.png", functional.smoothed_kth_largest, "2nd largest")
    exact(folder / "functional_exact_smoothed_kth_largest.png")
    projection(folder / "functional_sparse_top_projection.png")
    polynomials(folder / "functional_elementary_symmetric.png")
    threshold(folder / "functional_average_k_threshold.png")


if __name__ == "__main__":
    main()
