#!/usr/bin/env python3
"""Records golden values of models with Python's PyTorch, an implementation apart from the C++ one: of the small ResNets, and of those
of torchvision's and timm's (1.0.31), and EfficientNet-Lite0, whose NAME.json has a size in its name.

Usage: record_model_golden.py OUTPUT_FOLDER

NAME.params.txt lists the entries of the state_dict, NAME.json has the results, NAME.init.json the distributions of torchvision's first weights. Their last digits depend on the number of threads
(those in tests/golden: two).

Weights and input follow a closed formula, so that a file holds results alone. With uint32 arithmetic,
    mix(x):  x ^= x >> 16;  x *= 0x7FEB352D;  x ^= x >> 15;  x *= 0x846CA68B;  x ^= x >> 16
    u(i, j) = mix(mix(i + 1) + j) / 2^32,  s(i, j) = 2 u(i, j) - 1
i counts the floating-point entries of the state_dict, j the elements of one. The entries' values are in fill(), the input's in
closed_input(). Gradients are of the mean cross-entropy in training mode; `dot` is sum_j g_j s(2000 + k, j) for parameter k.
"""

import hashlib
import importlib.metadata
import json
import pathlib
import sys

import numpy as np
import torch
from torch.nn import functional as F

from reference_models import TIMM, EfficientNetLite0, SmallResNet, parameter_list, timm_network, torchvision_models, torchvision_network


CLASSES = 10  # of the models for large images
ZERO = 1e-9  # gradients of less are rounding errors: of biases before a batch norm
EVERY_TIME = ("model.stochastic_depth=0", "model.dropout=0")


def mix(x):
    x = x.astype(np.uint32)
    with np.errstate(over="ignore"):
        x ^= x >> np.uint32(16)
        x *= np.uint32(0x7FEB352D)
        x ^= x >> np.uint32(15)
        x *= np.uint32(0x846CA68B)
        x ^= x >> np.uint32(16)
    return x


def u(i, count):
    with np.errstate(over="ignore"):
        return mix(mix(np.array([i + 1])) + np.arange(count, dtype=np.uint32)).astype(np.float64) / 2**32


def s(i, count):
    return 2 * u(i, count) - 1


def fill(model):
    """Fills the model and returns the SHA-256 of all filled entries, little-endian float32, in order."""
    digest, index = hashlib.sha256(), 0
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point():
            tensor.zero_()
            continue
        count = tensor.numel()
        if name.endswith("running_var"):
            value = 1 + 0.25 * u(index, count)
        elif name.endswith("running_mean"):
            value = 0.0625 * s(index, count)
        elif tensor.dim() >= 2:
            value = np.sqrt(4.5 / (count / tensor.shape[0])) * s(index, count)
        elif name.endswith("weight"):
            value = 1 + 0.125 * s(index, count)
        else:
            value = 0.125 * s(index, count)
        value = value.astype(np.float32)
        digest.update(value.tobytes())
        tensor.copy_(torch.from_numpy(value).reshape(tensor.shape))
        index += 1
    return digest.hexdigest()


def closed_input(shape):
    n, c, h, w = np.indices(shape).astype(np.float64)
    wave = 0.9 * np.sin(0.11 * (n + 1) * h + 0.7 * c) * np.cos(0.06 * (n + 2) * w - 0.4 * c)
    noise = 0.3 * s(1000, int(np.prod(shape))).reshape(shape)
    return torch.from_numpy((wave + noise + 0.75 * np.cos(2 * n + 1.1 * c)).astype(np.float32))


def results(make, dtype, images, labels):
    def fresh():
        model = make()
        fill(model)
        return model.to(dtype)

    images = images.to(dtype)
    model = fresh().eval()
    with torch.no_grad():
        eval_logits = model(images)
    model = fresh().train()
    train_logits = model(images)
    loss = F.cross_entropy(train_logits, labels)
    loss.backward()
    gradients = []
    for k, (name, parameter) in enumerate(model.named_parameters()):
        g = parameter.grad.double().flatten().numpy()
        dot = float(g @ s(2000 + k, g.size))
        gradients.append({"name": name, "l2": float(np.linalg.norm(g)), "dot": dot, "first8": g[:8].tolist()})
    buffers = []
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point():
            b = buffer.double().flatten().numpy()
            buffers.append({"name": name, "l2": float(np.linalg.norm(b)), "first8": b[:8].tolist()})
    return {
        "eval_logits": eval_logits.double().tolist(),
        "train_logits": train_logits.detach().double().tolist(),
        "train_loss": loss.item(),
        "gradients": gradients,
        "buffers_after_train": buffers,
    }


def record(folder, name, depth, width, shape, classes, normalised):
    make = lambda: SmallResNet(depth, width, shape[1], classes, normalised)
    head = "normalised" if normalised else "linear"
    model = make()
    labels = torch.tensor([3, 7])
    golden = {
        "model": name,
        "settings": [f"model.name=resnet{depth}", f"model.width={width}", f"model.head={head}"],
        "num_classes": classes,
        "input_shape": shape,
        "labels": labels.tolist(),
        "made_with": f"torch {torch.__version__}, CPU",
        "parameters": sum(p.numel() for p in model.parameters()),
        "fill_sha256": fill(model),
        "float64": results(make, torch.float64, closed_input(shape), labels),
        "float32": results(make, torch.float32, closed_input(shape), labels),
    }
    (folder / f"{name}.json").write_text(json.dumps(golden, indent=1) + "\n")
    (folder / f"{name}.params.txt").write_text(parameter_list(name, classes, model))


def deviation(float32, float64):
    """How far float32 is from float64."""
    worst = lambda key: float(np.abs(np.array(float32[key]) - np.array(float64[key])).max())
    pairs = zip(float32["gradients"], float64["gradients"])
    norms = [abs(a["l2"] - b["l2"]) / b["l2"] for a, b in pairs if b["l2"] > ZERO]
    return {
        "eval_logits_max_abs": worst("eval_logits"),
        "train_logits_max_abs": worst("train_logits"),
        "gradient_l2_max_rel": max(norms),
    }


def first_weights(model):
    """What torchvision's constructors say of their first weights, by parameter: distribution, mean and deviation."""
    def glorot(p):
        return "uniform(-b, b), b = sqrt(6 / (in + out))", 0.0, (2 / sum(p.shape)) ** 0.5

    def linear(p, fan):
        return "uniform(-b, b), b = 1 / sqrt(in)", 0.0, (3 * fan) ** -0.5

    def normal(std):
        return "normal", 0.0, std

    kind, constant = type(model).__name__, lambda value: (f"constant {value}", value, 0.0)
    for name, p in model.named_parameters():
        module = model.get_submodule(name.rpartition(".")[0])
        if kind in ("AlexNet", "Inception3", "InceptionResnetV2", "InceptionV4", "SqueezeNet", "VGG"):
            yield name, *first_weights_by_module(kind, module, p, constant, normal)
        elif name.endswith("layer_scale"):
            yield name, *constant(float(np.float32(1e-6)))
        elif p.dim() == 1 and name.endswith("weight"):  # of a norm
            yield name, *constant(1.0)
        elif kind == "ShuffleNetV2":
            yield name, *(linear(p, p.numel() // p.shape[0]) if p.dim() > 1 else linear(p, model.fc.in_features) if name == "fc.bias" else constant(0.0))
        elif hasattr(model, "fc"):  # ResNeXt
            if name.startswith("fc."):
                yield name, *linear(p, model.fc.in_features)
            elif p.dim() == 1:
                yield name, *constant(0.0)
            else:
                yield name, *normal((2 / (p.numel() / p.shape[1])) ** 0.5)
        elif kind in ("EfficientNet", "MobileNetV2", "MobileNetV3"):
            if p.dim() == 2 and kind != "EfficientNet":
                yield name, *normal(0.01)
            elif name == "classifier.1.weight":
                yield name, "uniform(-b, b), b = 1 / sqrt(out)", 0.0, (3 * p.shape[0]) ** -0.5
            else:
                yield name, *(normal((2 / (p.numel() / p.shape[1])) ** 0.5) if p.dim() > 1 else constant(0.0))
        elif kind == "ConvNeXt":
            yield name, *(normal(0.02) if p.dim() > 1 else constant(0.0))
        elif name.endswith("pos_embedding"):
            yield name, *normal(0.02)
        elif name == "conv_proj.weight":
            yield name, *normal((p.shape[0] / p.numel()) ** 0.5)
        elif ".mlp." in name:
            yield name, *(glorot(p) if p.dim() > 1 else normal(1e-6))
        elif name.endswith("in_proj_weight"):
            yield name, *glorot(p)
        elif name.endswith("out_proj.weight"):
            yield name, *linear(p, p.shape[1])
        else:
            yield name, *constant(0.0)


def first_weights_by_module(kind, module, p, constant, normal):
    """The same for a network whose weights follow from the module that they are in."""
    if isinstance(module, torch.nn.BatchNorm2d):
        return constant(1.0 if p is module.weight else 0.0)
    is_bias, fan = p.dim() == 1, module.weight[0].numel()
    if kind in ("VGG", "SqueezeNet") and is_bias:
        return constant(0.0)
    if kind == "VGG":
        return normal((2 / (p.numel() / p.shape[1])) ** 0.5) if p.dim() == 4 else normal(0.01)
    if kind == "SqueezeNet":
        return normal(0.01) if p.shape[0] == CLASSES else ("uniform(-b, b), b = sqrt(6 / in)", 0.0, (2 / fan) ** 0.5)
    if kind == "Inception3" and not is_bias:
        return normal(0.1)
    return "uniform(-b, b), b = 1 / sqrt(in)", 0.0, (3 * fan) ** -0.5


def record_first_weights(folder, file, make):
    """Of equal blocks in a row (`repeat`) the first alone."""
    torch.manual_seed(4)
    model = make()
    weights = [
        {"name": entry, "distribution": distribution, "expected_mean": mean, "expected_std": std}
        for entry, distribution, mean, std in first_weights(model)
        if not entry.startswith("repeat") or ".0." in entry
    ]
    parameters = dict(model.named_parameters())
    for weight in weights:  # what was read in the constructors is what they draw
        std = parameters[weight["name"]].std(unbiased=False).item()
        # A few of torchvision's normal weights are -2: its truncated normal of a uniform -1.
        assert abs(std - weight["expected_std"]) < max(0.3 * weight["expected_std"], 1e-12), (weight, std)
    (folder / f"{file}.init.json").write_text(json.dumps({"model": file, "parameters": weights}) + "\n")


def record_large(folder, name, size, make, *settings, is_short=False):
    """Of a model for large images, on smaller ones. `is_short`: without NAME_SIZE.params.txt, and of gradients norms and products alone."""
    classes, shape, file = CLASSES, [2, 3, size, size], f"{name}_{size}px"
    library = "timm" if name in TIMM else "torchvision"
    model = make()
    if not is_short:
        (folder / f"{file}.params.txt").write_text(parameter_list(file, classes, model))
    labels, images = torch.tensor([3, 7]), closed_input(shape)
    exact = results(make, torch.float64, images, labels)
    for gradient in exact["gradients"] if is_short else ():
        del gradient["first8"]
    golden = {
        "model": file,
        "settings": [f"model.name={name}", *settings],
        "num_classes": classes,
        "input_shape": shape,
        "labels": labels.tolist(),
        "made_with": f"torch {torch.__version__}, {library} {importlib.metadata.version(library)}, CPU",
        "parameters": sum(p.numel() for p in model.parameters()),
        "fill_sha256": fill(model),
        "deviation_float32_from_float64": deviation(results(make, torch.float32, images, labels), exact),
        "float64": exact,
    }
    (folder / f"{file}.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    output = pathlib.Path(sys.argv[1])
    record(output, "resnet8_grey_normalised", 8, 16, [2, 1, 28, 28], 10, True)
    record(output, "resnet20", 20, 16, [2, 3, 32, 32], 100, False)
    for name, size, settings, options in (
        ("resnext50_32x4d", 64, (), {}),
        ("convnext_tiny", 64, ("model.stochastic_depth=0",), {"stochastic_depth_prob": 0.0}),
        ("vit_b_16", 64, (), {"image_size": 64}),
        ("efficientnet_b0", 64, EVERY_TIME, {"stochastic_depth_prob": 0.0, "dropout": 0.0}),
        ("efficientnet_b2", 64, EVERY_TIME, {"stochastic_depth_prob": 0.0, "dropout": 0.0}),
        ("efficientnet_v2_s", 64, EVERY_TIME, {"stochastic_depth_prob": 0.0, "dropout": 0.0}),
        ("mobilenet_v2", 64, ("model.dropout=0",), {"dropout": 0.0}),
        ("mobilenet_v3_small", 64, ("model.dropout=0",), {"dropout": 0.0}),
        ("mobilenet_v3_large", 64, ("model.dropout=0",), {"dropout": 0.0}),
        ("shufflenet_v2_x1_0", 64, (), {}),
    ):
        make = lambda: torchvision_models().get_model(name, num_classes=CLASSES, **options)
        record_large(output, name, size, make, *settings)
        if name not in ("efficientnet_b2", "efficientnet_v2_s", "mobilenet_v3_large"):  # drawn as others of their families
            record_first_weights(output, f"{name}_{size}px", make)
    # 72 is halved to 9, which TensorFlow pads on both sides.
    record_large(output, "efficientnet_lite0", 72, lambda: EfficientNetLite0(CLASSES, 0.0, 0.0), *EVERY_TIME)
    # Images that leave some pixels for the last batch norms.
    for name, size in (("alexnet", 64), ("inception_v3", 107), ("squeezenet1_0", 48), ("vgg11", 32)):
        make = lambda: torchvision_network(name, CLASSES, dropout=0.0)
        record_large(output, name, size, make, "model.dropout=0", is_short=True)
        record_first_weights(output, f"{name}_{size}px", make)
    for name, size in (("inception_resnet_v2", 107), ("inception_v4", 139)):
        make = lambda: timm_network(name, CLASSES)
        record_large(output, name, size, make, is_short=True)
        if name == "inception_resnet_v2":  # the other is drawn alike
            record_first_weights(output, f"{name}_{size}px", make)
