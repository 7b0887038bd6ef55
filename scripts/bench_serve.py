"""`settrain serve` beside the same model behind a Python server, on the same cores, photographs one by one over HTTP.

The contestants are processes that serve at once: settrain; Python's ThreadingHTTPServer; FastAPI under uvicorn where both are installed
(`pip install fastapi 'uvicorn[standard]'`). Python's decode with Pillow, transform with torchvision and compute in PyTorch's inference mode, in
the memory format that is faster there, or in ONNX Runtime where it is installed; with as many compute threads as settrain, and with one a request. Clients are threads of
this process, each with one connection, which send the next photograph when the answer to the last has come. Only one contestant is under
load at a time; who comes first alternates. Python's servers are in python_servers.py.
"""

import concurrent.futures
import contextlib
import http.client
import importlib.metadata
import importlib.util
import io
import itertools
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from bench_pairs import built_program, cpu_name, duration, median_interval, output_of, print_ratio
from python_servers import RULE

SETTRAIN = "settrain"
COLUMNS = {"requests_per_second": "requests/s", "p50_ms": "p50 ms", "p99_ms": "p99 ms", "peak_mib": "peak MiB"}
RATIOS = {"requests_per_second": "requests/s", "p50_ms": "p50 latency", "p99_ms": "p99 latency"}
TOLERANCE = 1e-4  # of probabilities, some 0.1 each; both decode and resize to the same pixels, and were seen to agree to 4e-8
CLASSES, MADE_UP_PHOTOGRAPHS, MOST_FILES, CHECKED = 10, 32, 512, 8


class Server:
    """A process that serves, from its start to the end of the `with`."""

    def __init__(self, name, command, threads, folder):
        self.name, self.log = name, folder / f"{name}.log"
        with self.log.open("w") as log:
            environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
            self.process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=subprocess.STDOUT, env=environment)

    def __enter__(self):
        deadline = time.monotonic() + 120
        while not (ready := re.search(r"Serving .* at http://([^:/\s]+):(\d+)", self.log.read_text())):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise SystemExit(f"{self.log.read_text()}\n{self.name} does not serve")
            time.sleep(0.1)
        self.address = (ready[1], int(ready[2]))
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def connect(self):
        return contextlib.closing(http.client.HTTPConnection(*self.address, timeout=60))

    def ask(self, connection, photograph):
        connection.request("POST", "/predict", photograph, {"Content-Type": "image/jpeg"})
        reply = connection.getresponse()
        body = reply.read()
        if reply.status != 200:
            raise SystemExit(f"{self.name} answers {reply.status}: {body[:500].decode(errors='replace')}")
        if connection.sock is None:  # http.client would silently connect anew
            raise SystemExit(f"{self.name} does not keep its connections")
        return body

    def measure(self, photographs, clients, args):
        """All clients run through warm-up and measurement without a pause; what is answered in the latter counts."""
        facts = pathlib.Path("/proc", str(self.process.pid))
        (facts / "clear_refs").write_text("5")  # the peak of its memory starts anew
        start, own_seconds = time.perf_counter() + args.warm_up, time.process_time()
        end = start + args.seconds

        def run_client(index):
            first = index * len(photographs) // clients  # each starts elsewhere
            times, turns = [], itertools.cycle(photographs[first:] + photographs[:first])
            with self.connect() as connection:
                while (sent := time.perf_counter()) < end:
                    self.ask(connection, next(turns))
                    times.append((sent, time.perf_counter()))
            return times

        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            times = [pair for one in pool.map(run_client, range(clients)) for pair in one]
        latencies = sorted(1000 * (done - sent) for sent, done in times if start <= done < end)
        if len(latencies) < 20:
            raise SystemExit(f"{self.name}: {len(latencies)} answers in {args.seconds} s; --seconds must be more")
        return {
            "requests_per_second": len(latencies) / args.seconds,
            "p50_ms": statistics.median(latencies),
            "p99_ms": latencies[min(len(latencies) - 1, int(0.99 * len(latencies)))],
            "peak_mib": int(re.search(r"VmHWM:\s+(\d+) kB", (facts / "status").read_text())[1]) / 1024,
            "client_ms": 1000 * (time.process_time() - own_seconds) / len(times),
        }


def noise_image(seed, grain, size):
    from PIL import Image

    width, height = size[0] // grain, size[1] // grain
    noise = Image.frombytes("RGB", (width, height), random.Random(seed).randbytes(3 * width * height))
    return noise.resize(size, Image.Resampling.BICUBIC)


def photographs_of(args):
    """The bytes of image files."""
    if args.files:
        files = sorted(path for path in args.files.rglob("*") if path.suffix.lower() in {".jpg", ".jpeg"})[:MOST_FILES]
        if not files:
            raise SystemExit(f"no JPEG below {args.files}")
        return [path.read_bytes() for path in files]
    files = [io.BytesIO() for _ in range(MADE_UP_PHOTOGRAPHS)]
    for seed, file in enumerate(files):
        noise_image(seed, 8, (640, 480)).save(file, "JPEG", quality=90)
    return [file.getvalue() for file in files]


def make_model(args, folder):
    """Trains for an epoch on made-up images, which spreads the scores, and exports."""
    for split, images in {"train": 4, "val": 1, "test": 1}.items():
        for label in range(CLASSES):
            (folder / "images" / split / f"class_{label}").mkdir(parents=True)
            for index in range(images):
                image = noise_image(f"{split} {index} {label}", 4 + 4 * label, (256, 256))
                image.save(folder / "images" / split / f"class_{label}" / f"{index}.png")
    settings = {"data.name": "image_folder", "data.root": folder / "images", "data.pipeline": "imagenet", "data.batch_size": 10,
                "model.name": args.model, "loss.name": "cross_entropy", "optimizer.lr": 0.01, "train.epochs": 1,
                "run.dir": folder / "run"}  # fmt: skip
    (folder / "run.yaml").write_text("{}\n")
    overrides = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    output_of([str(args.program), "train", "--config", str(folder / "run.yaml"), *overrides])
    output_of([str(args.program), "export", str(folder / "run"), "--output", str(folder / "model.safetensors")])
    return folder / "model.safetensors"


def check_answers(servers, photographs):
    for index, photograph in enumerate(photographs[:CHECKED]):
        answers = {}
        for server in servers:
            with server.connect() as connection:
                answers[server.name] = json.loads(server.ask(connection, photograph))["sets"][RULE]
        ours = answers[SETTRAIN]
        for name, answer in answers.items():
            distance = max(abs(a - b) for a, b in zip(ours["probabilities"], answer["probabilities"], strict=True))
            if any(ours[key] != answer[key] for key in ("classes", "names", "size")) or distance > TOLERANCE:
                raise SystemExit(f"photograph {index}: {SETTRAIN} answers {ours}, {name} {answer}")


def contestants_of(args, model, cores):
    """Names, with commands and compute threads."""
    serve = [args.program, "serve", model, "--port", 0, "--rule", RULE, "--threads", args.threads]
    contestants = {SETTRAIN: (serve, args.threads)}
    kinds = {"http": "http.server"}
    if all(importlib.util.find_spec(package) for package in ("fastapi", "uvicorn")):
        kinds["fastapi"] = "FastAPI"
    else:
        print("[bench] fastapi and uvicorn are not both installed, and left out", file=sys.stderr)
    engines = [engine for engine in ("torch", "onnxruntime") if importlib.util.find_spec(engine)]
    for (kind, title), engine, threads in itertools.product(kinds.items(), engines, sorted({1, args.threads})):
        server = pathlib.Path(__file__).with_name("python_servers.py")
        command = [sys.executable, server, kind, engine, args.model, model, threads, cores]
        contestants[f"{title}, {engine}, {threads} thread{'s' * (threads > 1)}"] = (command, threads)
    return contestants


def measure_rounds(args, servers, photographs):
    """By number of clients, a dictionary a round, of one measurement a contestant."""
    rounds, start = {clients: [] for clients in args.clients}, time.perf_counter()
    todo = [(clients, index) for index in range(args.rounds) for clients in rounds]
    for count, (clients, index) in enumerate(todo, 1):
        order = servers if index % 2 == 0 else servers[::-1]
        measured = {server.name: server.measure(photographs, clients, args) for server in order}
        rounds[clients].append(measured)
        speeds = ", ".join(f"{server.name} {measured[server.name]['requests_per_second']:.1f}" for server in servers)
        left = duration((time.perf_counter() - start) / count * (len(todo) - count))
        print(f"[bench] round {index + 1} of {args.rounds}, clients: {clients}: {speeds} requests/s; {left} left",
              file=sys.stderr, flush=True)  # fmt: skip
    return rounds


def print_results(clients, rounds):
    medians = {name: {key: statistics.median(one[name][key] for one in rounds) for key in COLUMNS} for name in rounds[0]}
    print(f"{f'medians, clients: {clients}':<38}" + "".join(f"{title:>13}" for title in COLUMNS.values()))
    for name in medians:
        print(f"{name:<38}" + "".join(f"{medians[name][key]:>13.1f}" for key in COLUMNS))
    best = max((name for name in medians if name != SETTRAIN), key=lambda name: medians[name]["requests_per_second"])
    ratios = {key: [one[SETTRAIN][key] / one[best][key] for one in rounds] for key in RATIOS}
    for key, what in RATIOS.items():
        print_ratio(f"settrain / {best}, {what}", ratios[key])
    return {"best": best, "ratios": ratios, "intervals": {key: median_interval(values) for key, values in ratios.items()}}


def compare_serving(args):
    cores = sorted(os.sched_getaffinity(0))
    args.threads = args.threads or len(cores)
    if args.threads > len(cores):
        raise SystemExit(f"--threads {args.threads}: there are {len(cores)} cores")
    args.program = args.program or built_program()
    settrain = output_of([str(args.program), "--version"])[0].removeprefix("settrain").strip()
    versions = {"settrain": settrain, "python": sys.version.split()[0]}
    photographs = photographs_of(args)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-serve-")))
        print("[bench] a model is trained", file=sys.stderr, flush=True)
        contestants = contestants_of(args, make_model(args, folder), args.threads)
        os.sched_setaffinity(0, cores[: args.threads])  # of all servers
        servers = [stack.enter_context(Server(name, *what, folder)) for name, what in contestants.items()]
        os.sched_setaffinity(0, cores[args.threads :] or cores)  # the clients' own, where there are more
        check_answers(servers, photographs)
        rounds = measure_rounds(args, servers, photographs)
    results = {clients: print_results(clients, measured) for clients, measured in rounds.items()}
    client_ms = statistics.median(one["client_ms"] for measured in rounds.values() for pair in measured for one in pair.values())
    for package in ("torch", "torchvision", "onnxruntime", "pillow", "fastapi", "uvicorn"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    print(f"{args.model}, {len(photographs)} photographs of {statistics.mean(map(len, photographs)) / 1024:.0f} KiB on average; "
          f"{args.threads} of {len(cores)} cores of {cpu_name()}; a request takes the clients {client_ms:.2f} ms of a core"
          f"{', of the same cores' if args.threads == len(cores) else ''}; " + ", ".join(" ".join(pair) for pair in versions.items()))
    if args.json:
        arguments = {key: str(v) if isinstance(v, pathlib.Path) else v for key, v in vars(args).items() if key != "action"}
        everything = {"arguments": arguments, "hardware": cpu_name(), "versions": versions, "results": results, "rounds": rounds}
        args.json.write_text(json.dumps(everything, indent=1) + "\n")
