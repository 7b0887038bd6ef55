#!/usr/bin/env python3
"""Trains every loss with the defaults of its keys, on the data and with the optimizer of one config or several, and prints a table of their
accuracies on the test images beside those of cross-entropy: how far a loss gets whose user sets nothing but its name.

    scripts/loss_defaults.py CONFIG ... [--losses NAME ...] [--program FILE] [--runs FOLDER] [-- OPTION ...]

Runs one after the other, each in FOLDER/CONFIG-NAME; a run that stands there is not repeated. A loss that needs another head gets it.
Options behind -- go to every run.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEADS = {"a normalised head": "normalised", "two heads": "two_head"}


def losses_of(program):
    """Name to head of every loss that has a gradient."""
    heads = {}
    for line in subprocess.run([program, "list", "losses"], capture_output=True, text=True, check=True).stdout.split("\n\n")[0].splitlines():
        if not line.startswith(" "):
            name = line.split()[0]
            heads[name] = "linear"
        elif "needs: " in line:
            heads[name] = next((head for text, head in HEADS.items() if text in line), heads[name])
    heads.pop("topk_zero_one", None)
    return heads


def accuracies(program, config, loss, head, folder, more):
    """The results on the test split of the last epoch, in percent."""
    results = folder / "results.json"
    if not results.exists():
        settings = {"loss.name": loss, "model.head": head, "run.dir": folder, "select": "[]"}
        command = [program, "--config", config, *(f"--set={key}={value}" for key, value in settings.items()), *more, "--overwrite"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{loss}: {done.stderr}")
        (folder / "stderr.txt").write_text(done.stderr)
    values = json.loads(results.read_text())[0]["metrics"]["test"]
    warned = "hardly fell" in (folder / "stderr.txt").read_text() or "a guess among" in (folder / "stderr.txt").read_text()
    return 100 * values["top1"], 100 * values["top5"], warned


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("configs", nargs="+", type=pathlib.Path, metavar="CONFIG")
    parser.add_argument("--losses", nargs="+", metavar="NAME", help="without it all that have a gradient")
    parser.add_argument("--program", default=ROOT / "scripts/settrain")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs/loss_defaults"), metavar="FOLDER")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    more = words[end + 1 :]
    args = parser.parse_args(words[:end])
    heads = losses_of(args.program)
    print("| loss | " + " | ".join(f"{config.stem}: top-1, top-5" for config in args.configs) + " |")
    print("|---" * (len(args.configs) + 1) + "|")
    for loss in args.losses or heads:
        cells = []
        for config in args.configs:
            top1, top5, warned = accuracies(args.program, config, loss, heads[loss], args.runs / f"{config.stem}-{loss}", more)
            cells.append(f"{top1:.1f}, {top5:.1f}" + (" (warned)" if warned else ""))
        print(f"| `{loss}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
