"""Epochs of a linear head on features in settrain, beside a loop of PyTorch over the same features, on the same threads.

Cross-entropy and SGD with momentum on random features. settrain trains from a file (data.name: features); PyTorch's loop has the
features in memory, shuffles their numbers in each epoch and takes x[index]. Each measurement is the median of several epochs behind
the first. Pairs of measurements; who goes first alternates.
"""

import json
import pathlib
import statistics
import struct
import tempfile
import time

import torch

from bench_pairs import built_program, cpu_name, output_of, print_ratio

CONFIG = """
data: {{name: features, train: {folder}/train.safetensors, val_size: 100, batch_size: {batch}}}
model: {{name: head_only}}
loss: {{name: cross_entropy}}
optimizer: {{name: sgd, lr: 0.01, momentum: 0.9, weight_decay: 1.0e-4}}
train: {{epochs: {epochs}}}
eval: {{every: {epochs}, splits: [val], top_k: [1], average_k: []}}
select: [last]
"""


def write_features(file, features, labels):
    """safetensors: the length of a header, the header, the tensors."""
    parts, entries, offset = [], {}, 0
    for name, dtype, tensor in (("features", "F32", features), ("labels", "I64", labels)):
        content = tensor.numpy().tobytes()
        entries[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [offset, offset + len(content)]}
        parts.append(content)
        offset += len(content)
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    file.write_bytes(struct.pack("<Q", len(header)) + header + b"".join(parts))


def epochs_of_pytorch(args, features, labels):
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    head = torch.nn.Linear(args.width, args.classes)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    seconds = []
    for _ in range(args.epochs):
        start = time.perf_counter()
        for index in torch.randperm(args.images).split(args.batch):
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(head(features[index]), labels[index]).backward()
            optimizer.step()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def epochs_of_settrain(args, folder):
    program = args.program or built_program()
    run = folder / "run"
    output_of([program, "--config", folder / "features.yaml", "--device", "cpu", "--set", f"run.dir={run}", "--set", f"run.threads={args.threads}", "--overwrite"])
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(row["time/epoch_s"] for row in rows[1:])


def compare_features(args):
    torch.manual_seed(0)
    # 100 rows more are held out, since a run evaluates something.
    features, labels = torch.randn(args.images + 100, args.width), torch.randint(args.classes, (args.images + 100,))
    pairs = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_features(folder / "train.safetensors", features, labels)
        (folder / "features.yaml").write_text(CONFIG.format(folder=folder, batch=args.batch, epochs=args.epochs))
        contestants = {"settrain": lambda: epochs_of_settrain(args, folder), "pytorch": lambda: epochs_of_pytorch(args, features[: args.images], labels[: args.images])}
        for pair in range(args.pairs):
            order = list(contestants) if pair % 2 == 0 else list(contestants)[::-1]
            pairs.append({who: contestants[who]() for who in order})
    print(f"{args.images} x {args.width} features, {args.classes} classes, batches of {args.batch}, {args.threads} threads of {cpu_name()}, torch {torch.__version__}")
    for who in ("settrain", "pytorch"):
        print(f"{who}: {statistics.median(pair[who] for pair in pairs):.3f} s an epoch")
    print_ratio("of settrain's speed to PyTorch's", [pair["pytorch"] / pair["settrain"] for pair in pairs])
