"""The noised top-K loss of settrain beside pytopk, the package of its paper's authors, and PyTorch's cross-entropy.

Forward and backward in float32, the gradient set to None before, on random scores N(0, sd^2) of one size, in pairs of
measurements; who goes first alternates. settrain's figures are those of `settrain bench losses`, or with --package of the Python package
settrain that is installed.
"""

import importlib.metadata
import json
import pathlib
import statistics
import sys
import time

import torch
from torch.nn import functional as F

from bench_pairs import built_program, cpu_name, duration, median_interval, output_of, print_ratio

# What settrain draws noise for, the noise' and the scores' standard deviation. Of the first, also with noise for every class.
EPSILONS, SCORES_SDS = [0.2, 1.0], [3.0, 1.0, 0.3]
ROWS = [("fast", 0.2, 3.0), ("fast", 0.2, 1.0), ("unpruned", 0.2, 3.0), ("fast", 1.0, 3.0), ("fast", 0.2, 0.3)]
MEASURED_SECONDS = 0.05  # of each Python measurement, at least
CROSS_ENTROPY = "cross_entropy"


def name_of(row):
    method, epsilon, sd = row
    return f"N(0, {sd:g}^2), epsilon {epsilon:g}" + (", unpruned" if method == "unpruned" else "")


class PythonLosses:
    """What Python computes, on scores of its own of the same size and spread: `make_loss(epsilon)`, and PyTorch's cross-entropy."""

    def __init__(self, args, make_loss):
        self.device = torch.device(args.device)
        torch.manual_seed(0)
        scores = torch.randn(args.batch, args.classes)
        self.labels = torch.randint(args.classes, (args.batch,)).to(self.device)
        self.works = {}
        for _, epsilon, sd in ROWS:
            self.works[epsilon, sd] = (make_loss(epsilon), (scores * sd).to(self.device).requires_grad_())
        self.works[CROSS_ENTROPY] = (F.cross_entropy, (scores * SCORES_SDS[0]).to(self.device).requires_grad_())

    def measure(self):
        """Milliseconds of each."""
        return {what: self._measure(*work) for what, work in self.works.items()}

    def _measure(self, loss, scores):
        once = self._seconds(loss, scores, 2) / 2  # warms up, too
        repetitions = max(1, round(MEASURED_SECONDS / once))
        return 1000 * self._seconds(loss, scores, repetitions) / repetitions

    def _seconds(self, loss, scores, repetitions):
        self._synchronise()
        start = time.perf_counter()
        for _ in range(repetitions):
            scores.grad = None
            loss(scores, self.labels).backward()
        self._synchronise()
        return time.perf_counter() - start

    def _synchronise(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def pytopk_losses(args):
    try:
        from pytopk import BalNoisedTopK
    except ImportError:
        raise SystemExit("pytopk is missing: python -m pip install --no-deps pytopk==0.1.0") from None
    return PythonLosses(args, lambda epsilon: BalNoisedTopK(k=args.k, epsilon=epsilon, n_sample=args.draws))


def package_losses(args):
    try:
        from settrain.losses import NoisedTopK
    except ImportError:
        raise SystemExit("the package settrain is missing: pip install . (docs/python.md)") from None
    return PythonLosses(args, lambda epsilon: NoisedTopK(k=args.k, epsilon=epsilon, num_draws=args.draws))


def measure_package(losses):
    """The same of the package, which computes it in one way only."""
    times = losses.measure()
    result = {(method, epsilon, sd): times[epsilon, sd] if method == "fast" else None for method, epsilon, sd in ROWS}
    result[CROSS_ENTROPY] = times[CROSS_ENTROPY]
    return result


def measure_settrain(args):
    """Milliseconds of each of ROWS, or None where this program computes it in one way only; and of cross-entropy."""
    command = [args.program, "bench", "losses", "--losses", "noised_topk", "--json", "--device", args.device]
    for option in ("batch", "classes", "k", "draws", "rounds", "threads"):
        command += [f"--{option}", getattr(args, option)]
    command += ["--epsilon", ",".join(map(str, EPSILONS)), "--scores-sd", ",".join(map(str, SCORES_SDS))]
    stdout, _, shown = output_of([str(part) for part in command])
    reply = json.loads(stdout)
    if reply["threads"] != args.threads:
        raise SystemExit(f"settrain took {reply['threads']} threads, not {args.threads}: {shown}")
    times = {(row["loss"], row["method"], row["epsilon"], row["scores_sd"]): row["ms"] for row in reply["scores"]}
    result = {row: times.get(("noised_topk", *row)) for row in ROWS}
    result[CROSS_ENTROPY] = times[CROSS_ENTROPY, "fast", EPSILONS[0], SCORES_SDS[0]]
    return result


def measure_pairs(args):
    python, pairs, start = pytopk_losses(args), [], time.perf_counter()
    package = package_losses(args) if args.package else None
    measure_ours = (lambda: measure_package(package)) if package else (lambda: measure_settrain(args))
    for index in range(args.pairs):
        if index % 2 == 0:
            ours, theirs = measure_ours(), python.measure()
        else:
            theirs, ours = python.measure(), measure_ours()
        pairs.append((ours, theirs))
        left = (time.perf_counter() - start) / len(pairs) * (args.pairs - len(pairs))
        print(f"[bench] pair {len(pairs)} of {args.pairs}: settrain {ours[ROWS[0]]:.2f}, pytopk {theirs[ROWS[0][1:]]:.2f} ms; "
              f"{duration(left)} left", file=sys.stderr, flush=True)
    return pairs


def write_json(args, version, results, pairs):
    everything = {
        "arguments": {key: str(v) if isinstance(v, pathlib.Path) else v for key, v in vars(args).items() if key != "action"},
        "hardware": cpu_name() if args.device == "cpu" else torch.cuda.get_device_name(),
        "versions": {"torch": torch.__version__, "pytopk": importlib.metadata.version("pytopk"), "settrain": version},
        "results": results,
        "pairs": [{who: {str(key): ms for key, ms in times.items()} for who, times in zip(("settrain", "python"), pair)} for pair in pairs],
    }
    args.json.write_text(json.dumps(everything, indent=1) + "\n")


def compare_losses(args):
    if args.k >= args.classes:
        raise SystemExit(f"--k {args.k}: must be less than the number of classes, {args.classes}")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("there is no CUDA device that this PyTorch can use")
    torch.set_num_threads(args.threads)
    if args.package:
        from settrain import __version__

        version = f"settrain's Python package {__version__}"
    else:
        args.program = args.program or built_program()
        version = output_of([str(args.program), "--version"])[0].strip()
    pairs = measure_pairs(args)

    results = {}
    print(f"{'medians, ms':<36}{'settrain':>10}{'pytopk':>10}")
    for row in ROWS:
        theirs = statistics.median(python[row[1:]] for _, python in pairs)
        own = [ours[row] for ours, _ in pairs if ours[row] is not None]
        print(f"{name_of(row):<36}" + (f"{statistics.median(own):>10.3f}" if own else f"{'-':>10}") + f"{theirs:>10.3f}")
    own, theirs = ([pair[side][CROSS_ENTROPY] for pair in pairs] for side in (0, 1))
    print(f"{'cross-entropy':<36}{statistics.median(own):>10.3f}{statistics.median(theirs):>10.3f} (PyTorch)")
    for row in ROWS:
        if pairs[0][0][row] is None:
            print(f"{name_of(row)}: this program has one way only to compute it")
            continue
        speeds = [python[row[1:]] / ours[row] for ours, python in pairs]
        times_reference = [ours[row] / python[CROSS_ENTROPY] for ours, python in pairs]
        print_ratio(f"settrain / pytopk in speed, {name_of(row)}", speeds)
        print_ratio(f"time over PyTorch's cross-entropy, {name_of(row)}", times_reference)
        results[name_of(row)] = {
            "median_ratio": statistics.median(speeds), "interval": median_interval(speeds), "ratios": speeds,
            "over_cross_entropy": statistics.median(times_reference), "over_cross_entropy_interval": median_interval(times_reference),
        }  # fmt: skip
    print(f"batch {args.batch} x {args.classes} classes, K {args.k}, {args.draws} draws, on {args.device}, {cpu_name()}; {args.threads} "
          f"threads; torch {torch.__version__}, pytopk {importlib.metadata.version('pytopk')}, {version}")
    if args.json:
        write_json(args, version, results, pairs)
