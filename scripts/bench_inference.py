"""A model's answers in settrain's forms of run.inference, beside ONNX Runtime, OpenVINO and torch.compile with freezing, on the same threads.

Random weights and images, one batch again and again. In each round all are measured one after the other, with a pause before each,
since thread pools keep their cores busy for a while after they have worked; who goes first rotates.
"""

import json
import statistics
import tempfile
import time

import torch

from bench_pairs import built_program, cpu_name, output_of, print_ratio
from reference_models import make, usual_classes, usual_size

PAUSE_S = 0.2
MEASURED_S = 1.0  # the same for all: the first call of a measurement finds the weights of another network in the cache


def milliseconds(work, seconds):
    """Milliseconds of one call, measured over at least so many seconds after a warm-up call."""
    work()
    calls, start = 0, time.perf_counter()
    while True:
        work()
        calls += 1
        if (spent := time.perf_counter() - start) >= seconds:
            return 1000 * spent / calls


def onnx_runtime(graph, images, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    values = {session.get_inputs()[0].name: images.numpy()}
    return lambda: session.run(None, values)


def openvino(graph, images, threads):
    """In float32, which it would replace by bfloat16 where the processor computes that."""
    import openvino

    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    run = openvino.compile_model(graph, "CPU", options)
    values = [images.numpy()]
    return lambda: run(values)


def compiled(model, images):
    import torch._inductor.config

    torch._inductor.config.freezing = True
    model, images = (x.to(memory_format=torch.channels_last) for x in (model, images))
    run = torch.compile(model)

    def work():
        with torch.inference_mode():
            run(images)

    work()
    return work


def settrain_ms(args):
    command = [args.program or built_program(), "bench", "inference", "--model", args.model, "--images", args.images, "--size", args.size]
    command += ["--rounds", 1, "--seconds", MEASURED_S, "--json", "--set", f"run.threads={args.threads}", "--device", "cpu"]
    forms = json.loads(output_of([str(part) for part in command])[0])["forms"]
    return {f"settrain, {form}": statistics.median(measured["ms"]) for form, measured in forms.items()}


def compare_inference(args):
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    args.size = args.size or usual_size(args.model)
    model = make(args.model, usual_classes(args.model)).eval()
    images = torch.randn(args.images, 3, args.size, args.size)
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        torch.onnx.export(model, (images,), file.name, dynamo=False)
        rivals = {"onnxruntime": onnx_runtime(file.name, images, args.threads)}
        if args.openvino:
            rivals["openvino"] = openvino(file.name, images, args.threads)
    if args.compile:
        rivals["torch.compile"] = compiled(model, images)
    contestants = [*rivals, "settrain"]
    rounds = []
    for number in range(args.pairs):
        measured = {}
        for name in contestants[number % len(contestants) :] + contestants[: number % len(contestants)]:
            time.sleep(PAUSE_S)
            measured |= settrain_ms(args) if name == "settrain" else {name: milliseconds(rivals[name], MEASURED_S)}
        rounds.append(measured)
    print(f"{args.model}, {args.images} x 3x{args.size}x{args.size}, {args.threads} threads of {cpu_name()}, torch {torch.__version__}")
    for name in rounds[0]:
        print(f"{name:<20} {statistics.median(measured[name] for measured in rounds):10.2f} ms")
    for rival in rivals:
        for form in (name for name in rounds[0] if name.startswith("settrain")):
            print_ratio(f"{rival} ms / {form} ms", [measured[rival] / measured[form] for measured in rounds])
    if args.json:
        args.json.write_text(json.dumps({"model": args.model, "images": args.images, "threads": args.threads, "rounds": rounds}, indent=1) + "\n")
