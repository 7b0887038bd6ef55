"""What the comparisons of bench_against_python.py share: running settrain, and saying what pairs of measurements show."""

import math
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def built_program():
    """settrain in the build folder that scripts/setup chose."""
    choice = ROOT / "build/setup.txt"
    chosen = dict(line.split("=", 1) for line in choice.read_text().splitlines() if "=" in line) if choice.is_file() else {}
    if not chosen.get("preset"):
        raise SystemExit("settrain is not built here: run scripts/settrain --version once, or name a program with --program")
    return ROOT / "build" / chosen["preset"] / "apps/settrain/settrain"


def output_of(command):
    """What the command prints on stdout and on stderr, and the command as one line."""
    shown = " ".join(map(str, command))
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SystemExit(f"cannot run {shown}: {error.strerror}") from error
    if done.returncode != 0:
        raise SystemExit(f"{done.stderr.rstrip()}\nexit code {done.returncode} from: {shown}")
    return done.stdout, done.stderr, shown


def median_interval(values, confidence=0.95):
    """A confidence interval of the median, without an assumption about the distribution: two order statistics. How many of n
    values lie below the true median is binomial (n, 1/2), so that the r-th lowest and the r-th highest value enclose it but with
    probability 2 P(fewer than r below). None where there are too few values."""
    n, r, tail = len(values), 0, 0.0
    while True:
        tail += math.comb(n, r) / 2**n
        if 2 * tail > 1 - confidence:
            break
        r += 1
    ordered = sorted(values)
    return (ordered[r - 1], ordered[n - r]) if r > 0 else None


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def duration(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


def print_ratio(what, ratios):
    if interval := median_interval(ratios):
        spread = f"95 % interval {interval[0]:.3f} to {interval[1]:.3f}, {len(ratios)} pairs"
    else:
        spread = f"from {min(ratios):.3f} to {max(ratios):.3f}, of {len(ratios)} (a 95 % interval needs 6 pairs)"
    print(f"ratio {what}: median {statistics.median(ratios):.3f}, {spread}")
