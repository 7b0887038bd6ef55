#!/usr/bin/env python3
"""Compares settrain's speed with that of Python's PyTorch, alternately on one machine. Needs torch; torchvision for its models
and for loading images.

    python scripts/bench_against_python.py train --model densenet40_40 --batch 64
    python scripts/bench_against_python.py loader --files IMAGES --threads 1
    python scripts/bench_against_python.py losses --threads 2
    python scripts/bench_against_python.py sets --threads 2
    python scripts/bench_against_python.py replacements --threads 2
    python scripts/bench_against_python.py features --threads 2
    python scripts/bench_against_python.py inference --model resnet18 --images 16 --threads 2
    python scripts/bench_against_python.py serve --files IMAGES --clients 1 4

`train`: whole optimizer steps on one random batch that is in memory: forward, cross-entropy, backward, SGD. In every pair of
measurements both train the same model; who goes first alternates, so that a slow minute of the machine hits both alike. Python's
PyTorch is what a careful user would write: the fused optimizer, gradients set to None, both memory formats, of which the one
that is faster over all pairs counts; on a GPU, cuDNN's search for the fastest algorithm, and no TF32, as in settrain.

With `--compile MODE`, which may be given several times, torch.compile of that mode is another contestant, in the memory format that
settrain takes. With `--beside N`, N other processes keep a core busy each meanwhile.

`loader`: training batches of random resized crops of 224x224 pixels, mirrored and normalised, float32, from the files of a folder,
over and over where they are few; both on the same cores. With `--augment "rand(2, 9)"` or `trivial` both augment them too, by the same transform. Python's is torchvision's DataLoader with as many worker processes as
settrain has threads and, for one, with none too, of which the faster one over all pairs counts.

`losses`: forward and backward of noised_topk, beside the paper's authors' package pytopk and PyTorch's cross-entropy, on random
scores of one size (scripts/bench_losses.py).

`sets`: calibrating rules and making sets, beside TorchCP and MAPIE (scripts/bench_sets.py).

`replacements`: what docs/python.md has in place of other packages' functions, beside these (scripts/bench_replacements.py).

`features`: epochs of a linear head on features, beside a loop of PyTorch over x[index] (scripts/bench_features.py).

`inference`: a model's answers, beside ONNX Runtime, OpenVINO and torch.compile with freezing (scripts/bench_inference.py).

`serve`: a trained model's answers over HTTP, beside the same model behind Python's http.server and FastAPI (scripts/bench_serve.py).
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import torch
from torch.nn import functional as F

from bench_features import compare_features
from bench_inference import compare_inference
from bench_losses import compare_losses
from bench_pairs import built_program, cpu_name, duration, median_interval, output_of, print_ratio
from bench_replacements import compare_replacements
from bench_serve import compare_serving
from bench_sets import compare_sets
from reference_models import make, usual_classes, usual_size

FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
# What both contestants say of a measurement, and the table's columns.
KEYS = {"images_per_second": "images/s", "forward_ms": "forward ms", "backward_ms": "backward ms", "update_ms": "update ms"}
REPLY_KEYS = [*KEYS, "step_ms", "channels_last", "threads"]
SEED = 0
IMAGE_ENDINGS = {".jpg", ".jpeg", ".jpe", ".png", ".bmp", ".webp", ".tif", ".tiff"}


class PyTorchTrainer:
    """A model of Python's PyTorch with its optimizer and a batch, in one memory format; with `mode` compiled."""

    def __init__(self, args, memory_format, mode=None):
        torch.manual_seed(SEED)
        self.device, self.bf16 = torch.device(args.device), args.precision == "bf16"
        self.model = make(args.model, args.classes).to(self.device, memory_format=memory_format).train()
        self.forward = torch.compile(self.model, mode=mode) if mode else self.model
        images = torch.randn(args.batch, 3, args.size, args.size)
        self.images = images.to(self.device).contiguous(memory_format=memory_format)
        self.labels = torch.randint(args.classes, (args.batch,)).to(self.device)
        settings = {"lr": 1e-3, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4}
        try:
            self.optimizer = torch.optim.SGD(self.model.parameters(), fused=True, **settings)
        except RuntimeError:  # not for this device
            self.optimizer = torch.optim.SGD(self.model.parameters(), foreach=True, **settings)

    def measure(self, steps, warm_up):
        for _ in range(warm_up):
            self._step()
        self._synchronise()
        start = time.perf_counter()
        stamps = [self._step() for _ in range(steps)]
        self._synchronise()
        seconds = time.perf_counter() - start

        def mean_ms(*phases):
            return sum(self._milliseconds(step[p], step[p + 1]) for step in stamps for p in phases) / steps

        return {
            "images_per_second": steps * len(self.labels) / seconds,
            "forward_ms": mean_ms(1),
            "backward_ms": mean_ms(2),
            "update_ms": mean_ms(0, 3),
            "step_ms": 1000 * seconds / steps,
        }

    def _step(self):
        """One optimizer step. Returns the times at which its four phases start, and its end."""
        stamps = [self._stamp()]
        self.optimizer.zero_grad(set_to_none=True)
        stamps.append(self._stamp())
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            logits = self.forward(self.images)
        loss = F.cross_entropy(logits.float(), self.labels)
        stamps.append(self._stamp())
        loss.backward()
        stamps.append(self._stamp())
        self.optimizer.step()
        stamps.append(self._stamp())
        return stamps

    def _stamp(self):
        if self.device.type == "cpu":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # does not make the device wait, as a look at the clock would
        event.record()
        return event

    def _milliseconds(self, start, end):
        return 1000 * (end - start) if self.device.type == "cpu" else start.elapsed_time(end)

    def _synchronise(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()


class TorchvisionLoader:
    """torchvision's DataLoader of the files, with the transforms of its ImageNet training."""

    def __init__(self, args, workers):
        from torchvision import datasets, transforms

        files = sorted(path for path in args.files.rglob("*") if path.suffix.lower() in IMAGE_ENDINGS)
        if not files:
            raise SystemExit(f"no image below {args.files}")
        policies = {"none": [], "trivial": [transforms.TrivialAugmentWide()], "rand(2, 9)": [transforms.RandAugment(2, 9)]}
        transform = transforms.Compose([
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            *policies[args.augment],
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ])

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return args.images

            def __getitem__(self, index):
                return transform(datasets.folder.pil_loader(str(files[index % len(files)]))), 0

        self.loader = torch.utils.data.DataLoader(Images(), args.batch, num_workers=workers, persistent_workers=workers > 0)
        self.measure()  # starts the workers, which stay

    def measure(self):
        start = time.perf_counter()
        images = sum(len(batch) for batch, _ in self.loader)
        return {"images_per_second": images / (time.perf_counter() - start)}


def measure_settrain(args):
    command = [args.program, "bench", "train", "--model", args.model, "--batch", args.batch, "--size", args.size]
    command += ["--classes", args.classes, "--steps", args.steps, "--warm-up", args.warm_up, "--rounds", 1]
    command += ["--device", args.device, "--json"]
    command += ["--set", f"run.threads={args.threads}", "--set", f"train.precision={args.precision}"]
    stdout, stderr, shown = output_of([str(part) for part in command])
    try:
        reply = json.loads(stdout)
        missing = [key for key in REPLY_KEYS if key not in reply]
    except (ValueError, TypeError):
        raise SystemExit(f"{stderr}{stdout}\nno JSON object came from: {shown}") from None
    if missing:
        raise SystemExit(f"{stderr}{stdout}\n{', '.join(missing)} missing in the answer of: {shown}")
    if reply["threads"] != args.threads:
        raise SystemExit(f"settrain took {reply['threads']} threads, not {args.threads}: {shown}")
    return reply


def measure_settrain_loader(args):
    command = [args.program, "bench", "loader", "--files", args.files, "--images", args.images, "--threads", args.threads]
    command += ["--rounds", 1, "--json", "--set", f"data.batch_size={args.batch}", "--set", f"data.augment={args.augment}"]
    stdout, _, _ = output_of([str(part) for part in command])
    return {"images_per_second": json.loads(stdout)["loaders"][-1]["images_per_second"][0]}


def measure_pairs(args, contestants):
    """All measurements: one dictionary a pair, with one measurement a contestant, in the order in which they were made."""
    pairs, start = [], time.perf_counter()
    rivals = [name for name in contestants if name != "settrain"]
    for index in range(args.pairs):
        # The rivals take turns too, every second pair, so that each comes first and last among them equally often.
        order = rivals if index // 2 % 2 == 0 else rivals[::-1]
        order = ["settrain", *order] if index % 2 == 0 else [*order, "settrain"]
        pair = {}
        for name in order:
            if name == "settrain" and args.device == "cuda":
                torch.cuda.empty_cache()  # it may need the memory
            pair[name] = contestants[name]()
        pairs.append(pair)
        speeds = ", ".join(f"{name} {pair[name]['images_per_second']:.1f}" for name in contestants)
        left = (time.perf_counter() - start) / len(pairs) * (args.pairs - len(pairs))
        print(f"[bench] pair {len(pairs)} of {args.pairs}: {speeds} images/s; {duration(left)} left", file=sys.stderr, flush=True)
    return pairs


@contextlib.contextmanager
def busy_processes(count):
    """So many processes, which keep a core busy each to the end of the `with`."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.callback(stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"])).kill)
        yield


def medians(pairs, contestant):
    return {key: statistics.median(pair[contestant][key] for pair in pairs) for key in KEYS}


def prepare(args):
    """Sees to what was not given and to PyTorch's settings. Returns what the program says of its version."""
    if args.threads is None:
        args.threads = torch.get_num_threads()
    args.size, args.classes = args.size or usual_size(args.model), args.classes or usual_classes(args.model)
    if args.program is None:
        args.program = built_program()
    if args.device == "cuda":
        if not torch.cuda.is_available():
            raise SystemExit("there is no CUDA device that this PyTorch can use")
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    if args.json and not args.json.absolute().parent.is_dir():
        raise SystemExit(f"no folder {args.json.absolute().parent}")
    torch.set_num_threads(args.threads)
    return output_of([str(args.program), "--version"])[0].strip()


def write_json(args, version, hardware, faster, ratios, pairs):
    result = {"faster": faster, "median_ratio": statistics.median(ratios), "interval": median_interval(ratios), "ratios": ratios}
    everything = {
        "arguments": {key: str(v) if isinstance(v, pathlib.Path) else v for key, v in vars(args).items() if key != "action"},
        "hardware": hardware,
        "versions": {"torch": torch.__version__, "settrain": version, "python": sys.version.split()[0]},
        "result": result,
        "pairs": pairs,
    }
    args.json.write_text(json.dumps(everything, indent=1) + "\n")


def format_of(measured):
    return "channels_last" if measured["channels_last"] else "contiguous"


def compiled_name(mode):
    return f"torch.compile, {mode}"


def compare_training(args):
    version = prepare(args)
    contestants = {"settrain": lambda: measure_settrain(args)}
    for name, memory_format in FORMATS.items():
        trainer = PyTorchTrainer(args, memory_format)
        contestants[name] = lambda trainer=trainer: trainer.measure(args.steps, args.warm_up)
    for mode in args.compile or []:
        own_format = format_of(measure_settrain(args))
        trainer = PyTorchTrainer(args, FORMATS[own_format], mode)
        print(f"[bench] torch.compile, {mode}", file=sys.stderr, flush=True)
        trainer.measure(1, args.warm_up)  # compiles
        contestants[compiled_name(mode)] = lambda trainer=trainer: trainer.measure(args.steps, args.warm_up)
    with busy_processes(args.beside):
        pairs = measure_pairs(args, contestants)

    summary = {name: medians(pairs, name) for name in contestants}
    faster = max(FORMATS, key=lambda name: summary[name]["images_per_second"])
    ratios = {name: [pair["settrain"]["images_per_second"] / pair[name]["images_per_second"] for pair in pairs] for name in contestants}
    labels = {name: f"PyTorch, {name}" if name in FORMATS else name for name in contestants}
    labels["settrain"] = f"settrain, {format_of(pairs[0]['settrain'])}"
    print(f"{'medians':<32}" + "".join(f"{title:>13}" for title in KEYS.values()))
    for name, label in labels.items():
        print(f"{label:<32}" + "".join(f"{summary[name][key]:>13.1f}" for key in KEYS))
    print_ratio(f"settrain / PyTorch ({faster})", ratios[faster])
    for mode in args.compile or []:
        print_ratio(f"settrain / {compiled_name(mode)}", ratios[compiled_name(mode)])

    hardware = cpu_name() if args.device == "cpu" else f"{torch.cuda.get_device_name()}, {cpu_name()}"
    threads = "1 thread" if args.threads == 1 else f"{args.threads} threads"
    beside = f" beside {args.beside} busy" if args.beside else ""
    print(f"{args.model}, {args.size}x{args.size} pixels, {args.classes} classes, batch {args.batch}, {args.precision}, on "
          f"{args.device}: {hardware}; {threads}{beside}; torch {torch.__version__}, {version}")
    if args.json:
        write_json(args, version, hardware, faster, ratios[faster], pairs)


def compare_loading(args):
    import torchvision
    import PIL

    args.files = args.files.resolve()
    if args.program is None:
        args.program = built_program()
    version = output_of([str(args.program), "--version"])[0].strip()
    cores = sorted(os.sched_getaffinity(0))
    if args.threads > len(cores):
        raise SystemExit(f"--threads {args.threads}: there are {len(cores)} cores")
    os.sched_setaffinity(0, cores[: args.threads])  # of the program and of the worker processes too
    torch.set_num_threads(1)
    contestants = {"settrain": lambda: measure_settrain_loader(args)}
    for workers in [args.threads] if args.threads > 1 else [0, 1]:
        loader = TorchvisionLoader(args, workers)
        contestants[f"DataLoader, {workers} workers"] = loader.measure
    pairs = measure_pairs(args, contestants)

    summary = {name: statistics.median(pair[name]["images_per_second"] for pair in pairs) for name in contestants}
    for name, speed in summary.items():
        print(f"{name:<24}{speed:>10.1f} images/s")
    faster = max((name for name in contestants if name != "settrain"), key=summary.get)
    ratios = [pair["settrain"]["images_per_second"] / pair[faster]["images_per_second"] for pair in pairs]
    print_ratio(f"settrain / {faster}", ratios)
    print(f"random resized crops of 224x224, augment {args.augment}, batches of {args.batch}, {args.threads} of the cores of {cpu_name()}; torchvision "
          f"{torchvision.__version__}, Pillow {PIL.__version__}, {version}")
    if args.json:
        write_json(args, version, cpu_name(), faster, ratios, pairs)


def at_least(low):
    def integer(text):
        if int(text) < low:
            raise argparse.ArgumentTypeError(f"{text} is less than {low}")
        return int(text)

    return integer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    train = commands.add_parser("train", help="optimizer steps")
    train.add_argument("--model", default="densenet40_40", help="a model's name, the same in both (%(default)s)")
    train.add_argument("--batch", type=at_least(2), default=64, help="images in a batch (%(default)s)")
    train.add_argument("--size", type=at_least(1), help="height and width of an image (what the model was made for)")
    train.add_argument("--classes", type=at_least(2), help="number of classes (what the model was made for)")
    train.add_argument("--pairs", type=at_least(1), default=15, help="how often each is measured (%(default)s)")
    train.add_argument("--steps", type=at_least(1), default=3, help="measured steps each time (%(default)s)")
    train.add_argument("--warm-up", type=at_least(0), default=1, help="steps before them (%(default)s)")
    train.add_argument("--threads", type=at_least(1), help="compute threads of both (PyTorch's choice)")
    train.add_argument("--beside", type=at_least(0), default=0, metavar="N", help="busy processes that share the cores (%(default)s)")
    train.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where both compute (%(default)s)")
    train.add_argument("--precision", choices=["float32", "bf16"], default="float32", help="bf16: autocast in both (%(default)s)")
    modes = ["default", "reduce-overhead", "max-autotune"]
    train.add_argument("--compile", action="append", choices=modes, metavar="MODE", help=f"also against torch.compile: {', '.join(modes)}")
    train.add_argument("--program", type=pathlib.Path, help="settrain (the one that is built here)")
    train.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every measurement to FILE")
    train.set_defaults(action=compare_training)
    loader = commands.add_parser("loader", help="loading images")
    loader.add_argument("--files", type=pathlib.Path, required=True, help="a folder of images")
    loader.add_argument("--threads", type=at_least(1), default=1, help="threads, processes and cores of each (%(default)s)")
    loader.add_argument("--augment", choices=["none", "trivial", "rand(2, 9)"], default="none", help="a policy of both (%(default)s)")
    loader.add_argument("--batch", type=at_least(1), default=32, help="images in a batch (%(default)s)")
    loader.add_argument("--images", type=at_least(64), default=640, help="images in a measurement (%(default)s)")
    loader.add_argument("--pairs", type=at_least(1), default=15, help="how often each is measured (%(default)s)")
    loader.add_argument("--program", type=pathlib.Path, help="settrain (the one that is built here)")
    loader.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every measurement to FILE")
    loader.set_defaults(action=compare_loading, device="cpu")
    losses = commands.add_parser("losses", help="the noised top-K loss, beside pytopk")
    losses.add_argument("--batch", type=at_least(1), default=256, help="rows of scores (%(default)s)")
    losses.add_argument("--classes", type=at_least(2), default=1000, help="classes (%(default)s)")
    losses.add_argument("--k", type=at_least(1), default=5, help="K, less than the classes (%(default)s)")
    losses.add_argument("--draws", type=at_least(1), default=5, help="noise draws (%(default)s)")
    losses.add_argument("--pairs", type=at_least(1), default=15, help="how often each is measured (%(default)s)")
    losses.add_argument("--rounds", type=at_least(1), default=1, help="rounds of settrain each time (%(default)s)")
    losses.add_argument("--threads", type=at_least(1), default=2, help="compute threads of both (%(default)s)")
    losses.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where both compute (%(default)s)")
    losses.add_argument("--package", action="store_true", help="settrain's Python package (docs/python.md) in place of the program")
    losses.add_argument("--program", type=pathlib.Path, help="settrain (the one that is built here)")
    losses.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every measurement to FILE")
    losses.set_defaults(action=compare_losses)
    sets = commands.add_parser("sets", help="rules that answer with sets, beside TorchCP and MAPIE")
    sets.add_argument("--images", type=at_least(100), default=50000, help="images (%(default)s)")
    sets.add_argument("--classes", type=at_least(10), default=1000, help="classes (%(default)s)")
    sets.add_argument("--pairs", type=at_least(1), default=6, help="how often each is measured (%(default)s)")
    sets.add_argument("--threads", type=at_least(1), default=2, help="compute threads of both (%(default)s)")
    sets.add_argument("--program", type=pathlib.Path, help="settrain (the one that is built here)")
    sets.set_defaults(action=compare_sets, device="cpu")
    replacements = commands.add_parser("replacements", help="the lines of docs/python.md's table, beside other Python packages")
    replacements.add_argument("--images", type=at_least(1), default=10000, help="rows of scores (%(default)s)")
    replacements.add_argument("--classes", type=at_least(6), default=1000, help="classes (%(default)s)")
    replacements.add_argument("--pairs", type=at_least(1), default=6, help="how often each is measured (%(default)s)")
    replacements.add_argument("--threads", type=at_least(1), default=2, help="compute threads of both (%(default)s)")
    replacements.set_defaults(action=compare_replacements, device="cpu", program=None)
    features = commands.add_parser("features", help="a linear head on features")
    features.add_argument("--images", type=at_least(100), default=50000, help="rows (%(default)s)")
    features.add_argument("--width", type=at_least(1), default=1280, help="numbers of a row (%(default)s)")
    features.add_argument("--classes", type=at_least(2), default=100, help="classes (%(default)s)")
    features.add_argument("--batch", type=at_least(1), default=256, help="rows of a batch (%(default)s)")
    features.add_argument("--epochs", type=at_least(3), default=6, help="epochs of a measurement (%(default)s)")
    features.add_argument("--pairs", type=at_least(1), default=6, help="how often each is measured (%(default)s)")
    features.add_argument("--threads", type=at_least(1), default=2, help="compute threads of both (%(default)s)")
    features.add_argument("--program", type=pathlib.Path, help="settrain (the one that is built here)")
    features.set_defaults(action=compare_features, device="cpu")
    inference = commands.add_parser("inference", help="a model's answers, beside ONNX Runtime, OpenVINO and torch.compile")
    inference.add_argument("--model", default="resnet18", help="a model's name, the same in both (%(default)s)")
    inference.add_argument("--images", type=at_least(1), default=1, help="images in a batch (%(default)s)")
    inference.add_argument("--size", type=at_least(1), help="height and width of an image (what the model was made for)")
    inference.add_argument("--threads", type=at_least(1), default=1, help="compute threads of each (%(default)s)")
    inference.add_argument("--pairs", type=at_least(1), default=7, help="how often each is measured (%(default)s)")
    inference.add_argument("--compile", action="store_true", help="also against torch.compile, which needs a C++ compiler")
    inference.add_argument("--openvino", action="store_true", help="also against OpenVINO (pip install openvino)")
    inference.add_argument("--program", type=pathlib.Path, help="settrain (the one that is built here)")
    inference.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every measurement to FILE")
    inference.set_defaults(action=compare_inference)
    serve = commands.add_parser("serve", help="answers over HTTP, beside http.server and FastAPI")
    serve.add_argument("--model", default="resnet18", help="a model of torchvision, of photographs of 224x224 (%(default)s)")
    serve.add_argument("--files", type=pathlib.Path, help="a folder of JPEGs to send (made-up ones of 640x480)")
    serve.add_argument("--clients", type=at_least(1), nargs="+", default=[4], help="connections at once, each count by itself (4)")
    serve.add_argument("--rounds", type=at_least(1), default=3, help="how often each is measured (%(default)s)")
    serve.add_argument("--seconds", type=at_least(1), default=10, help="of a measurement (%(default)s)")
    serve.add_argument("--warm-up", type=at_least(0), default=2, help="seconds before it (%(default)s)")
    serve.add_argument("--threads", type=at_least(1), help="compute threads and cores of each (all cores)")
    serve.add_argument("--program", type=pathlib.Path, help="settrain (the one that is built here)")
    serve.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every measurement to FILE")
    serve.set_defaults(action=compare_serving, device="cpu")
    args = parser.parse_args()
    if args.program is not None:
        args.program = args.program.resolve()
    try:
        args.action(args)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
