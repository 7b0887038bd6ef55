#!/usr/bin/env python3
"""Trains every loss of configs/losses on made images whose P(y | x) is known, and prints a table of their regrets: how far the
trained model's accuracy on the test split is below that of the best sets there are.

    scripts/loss_regrets.py [--losses NAME ...] [--seeds N ...] [--runs FOLDER] [-- --set KEY=VALUE ...]

Runs one after the other, each in FOLDER/NAME-SEED. A run that stands there is not repeated, unless it was another command or config.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "scripts/settrain"
METRICS = ["top1", "top2", "avg2"]
# Twenty classes in four superclasses of growing ambiguity. Enough images that what is left is the loss' doing and not the sample's.
DATA = {"data.name": "synthetic", "data.label_noise.kind": "none", "data.train_size": 20000, "data.test_size": 20000, "train.epochs": 4, "eval.every": 4}


def run(loss, seed, folder, more):
    """Seconds of the run, and its results.json."""
    settings = [f"--set={key}={value}" for key, value in {**DATA, "seed": seed, "data.seed": 4, "run.dir": folder}.items()]
    config = ["--config", ROOT / f"configs/losses/{loss}.yaml", *settings, *more]
    resolved = subprocess.run([PROGRAM, "config", "show", *config], capture_output=True, text=True, check=True).stdout
    record = folder / "regret.json"
    before = json.loads(record.read_text()) if record.exists() else {}
    if before.get("config") != resolved:
        start = time.monotonic()
        done = subprocess.run([PROGRAM, *config, "--overwrite"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{loss}: {done.stderr}")
        before = {"config": resolved, "seconds": time.monotonic() - start}
        record.write_text(json.dumps(before))
    return before["seconds"], json.loads((folder / "results.json").read_text())[0]["metrics"]


def main():
    losses = sorted(file.stem for file in (ROOT / "configs/losses").glob("*.yaml") if file.stem != "base")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--losses", nargs="+", choices=losses, default=losses, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[4], metavar="N", help="of weights, order and noise; the images stay")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs/loss_regrets"), metavar="FOLDER")
    parser.add_argument("more", nargs="*", help="more settings of all runs, after --")
    args = parser.parse_args()

    print("| loss | " + " | ".join(f"{metric} regret" for metric in METRICS) + " | seconds |")
    print("|---" * (len(METRICS) + 2) + "|")
    for loss in args.losses:
        runs = [run(loss, seed, args.runs / f"{loss}-{seed}", args.more) for seed in args.seeds]
        cells = []
        for metric in METRICS:
            regrets = [values["test Bayes"][metric] - values["test"][metric] for _, values in runs]
            cells.append(" ".join(f"{regret:.4f}" for regret in regrets))
        print(f"| `{loss}` | " + " | ".join(cells) + f" | {max(seconds for seconds, _ in runs):.0f} |", flush=True)


if __name__ == "__main__":
    main()
