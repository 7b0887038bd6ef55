#!/usr/bin/env python3
"""Short trainings on a device, for scripts/gpu_check.sh. SETTRAIN_PROGRAM is the program.

    trainings.py quickstart --folder F [--data DIR] [--device cuda]
    trainings.py resume --folder F [--device cuda]

`quickstart`: the quickstart's run on the CPU and on the device, three seeds each. Passes where the means of the validation metric
differ by no more than three standard errors, as estimated from the seeds, within half a point and three points. Without --data, the folder of Fashion-MNIST's
files, images are synthetic.

`resume`: a deterministic run that is killed in mid-epoch and resumed ends with the tensors and results of one that was left alone.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

PROGRAM = os.environ["SETTRAIN_PROGRAM"]
SEEDS = (4, 5, 6)
LEAST_TOLERANCE, MOST_TOLERANCE = 0.005, 0.03  # of accuracy
SYNTHETIC = ["synthetic_long_tail.yaml", "--set", "train.epochs=3", "--set", "data.train_size=4000"]


def command(folder, device, config, settings):
    sets = [part for setting in (f"run.dir={folder}", *settings) for part in ("--set", setting)]
    return [PROGRAM, "--config", *config, "--device", device, *sets]


def run(folder, device, config, settings):
    shutil.rmtree(folder, ignore_errors=True)
    done = subprocess.run(command(folder, device, config, settings), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{done.stderr.rstrip()}\nexit code {done.returncode} from a run on {device}")


def last_row(folder):
    return json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])


def quickstart_config(data):
    return ["quickstart.yaml", "--set", f"data.root={data}"] if data else SYNTHETIC


def quickstart(args):
    config = quickstart_config(args.data)
    values, times = {}, {}
    for device in ("cpu", args.device):
        rows = []
        for seed in SEEDS:
            folder = args.folder / f"quickstart-{device}-{seed}"
            run(folder, device, config, [f"seed={seed}"])
            rows.append(last_row(folder))
        metric = next(name for name in rows[0] if name.startswith("val/top"))
        values[device] = [row[metric] for row in rows]
        times[device] = statistics.mean(row["time/epoch_s"] for row in rows)
        print(f"{device}: {metric} {', '.join(f'{v:.4f}' for v in values[device])}; {times[device]:.1f} s an epoch")
    cpu, other = values["cpu"], values[args.device]
    difference = statistics.mean(other) - statistics.mean(cpu)
    error = ((statistics.variance(cpu) + statistics.variance(other)) / len(SEEDS)) ** 0.5
    tolerance = min(max(3 * error, LEAST_TOLERANCE), MOST_TOLERANCE)
    print(f"{args.device} - cpu {difference:+.4f}, tolerance {tolerance:.4f}, {times['cpu'] / times[args.device]:.1f} times as fast")
    return abs(difference) <= tolerance


def tensors_of(file):
    content = file.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    return {name: content[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]] for name, entry in header.items()}


def kill_in_mid_epoch(folder, device, settings):
    shutil.rmtree(folder, ignore_errors=True)
    process = subprocess.Popen(command(folder, device, SYNTHETIC, settings), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log, deadline = folder / "metrics.jsonl", time.monotonic() + 120
    # After the first epoch's row and before the last one's.
    while not (log.exists() and log.read_text().count("\n") == 1):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("the run to be killed ended or hung before its first epoch did")
        time.sleep(0.005)
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    if process.wait() == 0:
        raise SystemExit("the run ended before it was killed")


def resume(args):
    whole, killed = args.folder / "resume-whole", args.folder / "resume-killed"
    settings = ["train.deterministic=true", "train.epochs=3", "train.checkpoint_every.steps=3"]
    run(whole, args.device, SYNTHETIC, settings)
    kill_in_mid_epoch(killed, args.device, settings)
    done = subprocess.run([PROGRAM, "--resume", str(killed), "--device", args.device], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{done.stderr.rstrip()}\nexit code {done.returncode} from --resume")
    a, b = (tensors_of(folder / "checkpoints/last.safetensors") for folder in (whole, killed))
    differing = [name for name in a if a[name] != b.get(name)]
    same_results = (whole / "results.json").read_bytes() == (killed / "results.json").read_bytes()
    print(f"killed and resumed: {len(a) - len(differing)} of {len(a)} tensors have the same bits, results.json {'equal' if same_results else 'DIFFERS'}")
    return not differing and a.keys() == b.keys() and same_results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["quickstart", "resume"])
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for the runs")
    parser.add_argument("--data", type=pathlib.Path, help="Fashion-MNIST's files")
    parser.add_argument("--device", default="cuda", help="beside the CPU (%(default)s)")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    sys.exit(0 if {"quickstart": quickstart, "resume": resume}[args.what](args) else 1)


if __name__ == "__main__":
    main()
