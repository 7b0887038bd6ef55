"""The lines of docs/python.md's table of replacements: what another library computes, and what the Python package settrain does.

Pairs of measurements on the same scores; who goes first alternates. Losses include the backward pass. tests/python/replacements_test.py checks that
both sides give the same. Libraries that are not installed are left out.
"""

import ast
import re
import statistics
import time
import warnings

import torch

from bench_pairs import ROOT, cpu_name, median_interval

MEASURED_SECONDS = 0.1  # of each measurement, at least


def section():
    return (ROOT / "docs/python.md").read_text(encoding="utf-8").split("## In place of other libraries")[1]


def lines():
    """Pairs of code: of the other library, and of settrain."""
    return re.findall(r"^\| `([^`]+)` \| `(settrain[^`]+)` \|", section(), re.MULTILINE)


def imported(names):
    """Adds what the section imports to `names`. Returns the errors of what cannot be."""
    errors = []
    for line in re.search(r"```python\n(.*?)```", section(), re.DOTALL)[1].splitlines():
        try:
            exec(line, names)
        except ImportError as error:
            errors.append(f"{line}: {error}")
    return errors


def absent(code, names):
    """The names that the code reads, and neither `names` nor itself has."""
    found = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    return {node.id for node in found if isinstance(node.ctx, ast.Load)} - names.keys() - {node.id for node in found if isinstance(node.ctx, ast.Store)}


def compiled(code):
    """A function of names that gives the value of the last of some statements."""
    *before, last = ast.parse(code).body
    before, last = (compile(part, "docs/python.md", mode) for part, mode in ((ast.Module(before, []), "exec"), (ast.Expression(last.value), "eval")))

    def value(names):
        own = dict(names)
        exec(before, own)
        return eval(last, own)

    return value


def names_of(scores, labels, calibration_scores, calibration_labels):
    """The variables of the lines, but for the libraries and a classifier."""
    classes = scores.shape[1]
    names = {"scores": scores, "labels": labels, "calibration_scores": calibration_scores, "calibration_labels": calibration_labels, "classes": classes}
    return names | {"targets": calibration_scores.softmax(1), "cosines": scores.tanh(), "counts": [1 + 1000 // (c + 1) for c in range(classes)]}


def measured(work, names):
    """Milliseconds of one call, and of the backward pass where there is one."""

    def once():
        value = work(names)
        if isinstance(value, torch.Tensor) and value.requires_grad:
            value.backward()
            names["scores"].grad = names["cosines"].grad = None

    once()  # warms up
    calls, start = 0, time.perf_counter()
    while calls == 0 or time.perf_counter() - start < MEASURED_SECONDS:
        once()
        calls += 1
    return 1000 * (time.perf_counter() - start) / calls


def compare_replacements(args):
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    warnings.simplefilter("ignore")
    scores, others = (torch.randn(args.images, args.classes) * 3 for _ in range(2))
    labels, of_others = (torch.randint(args.classes, (args.images,)) for _ in range(2))
    names = names_of(scores, labels, others, of_others)
    of_losses = names | {name: names[name].clone().requires_grad_() for name in ("scores", "cosines")}
    imported(of_losses)
    for error in imported(names):
        print(f"left out: {error}")
    print(f"{cpu_name()}, {args.threads} threads, {args.images} x {args.classes} scores, float32, {args.pairs} pairs\n")
    print("| there | there, ms | settrain, ms | times faster |\n|---|---|---|---|")
    for there, here in lines():
        if absent(there, names):
            continue
        works, times = (compiled(there), compiled(here)), []
        for pair in range(args.pairs):
            order = (0, 1) if pair % 2 else (1, 0)
            got = {side: measured(works[side], of_losses if "losses" in here else names) for side in order}
            times.append((got[0], got[1]))
        ratios = [theirs / ours for theirs, ours in times]
        interval = "({:.1f} to {:.1f})".format(*(median_interval(ratios) or (min(ratios), max(ratios))))
        theirs, ours = (statistics.median(side) for side in zip(*times))
        print(f"| `{there}` | {theirs:.2f} | {ours:.2f} | {statistics.median(ratios):.1f} {interval} |", flush=True)
