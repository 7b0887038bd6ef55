"""Models that `settrain export` wrote, as torch.nn.Modules."""

import json
import os
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from settrain._files import CHECKPOINT, is_exported, kind_of, safetensors_metadata
from settrain._networks import EfficientNetLite0, SmallDenseNet, SmallResNet
from settrain._transformer import SHAPES, AdaptedMLP, AdaptFormer, Shape, VisionTransformer
from settrain.sets import CalibratedRule, rules_of

# The layer that gives the scores of torchvision's networks, by their constructors; of timm's; and of those of this package.
TORCHVISION = {
    **dict.fromkeys(["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2", "resnext50_32x4d"], "fc"),
    **dict.fromkeys(["inception_v3", "wide_resnet101_2"], "fc"),
    **dict.fromkeys(["densenet121", "densenet161", "densenet169", "densenet201"], "classifier"),
    **dict.fromkeys(["convnext_tiny", "convnext_small", "convnext_base", "convnext_large"], "classifier.2"),
    **dict.fromkeys([*(f"efficientnet_b{number}" for number in range(5)), "efficientnet_v2_s", "mobilenet_v2"], "classifier.1"),
    **dict.fromkeys(["mobilenet_v3_small", "mobilenet_v3_large"], "classifier.3"),
    "shufflenet_v2_x1_0": "fc",
    **dict.fromkeys(["alexnet", "vgg11"], "classifier.6"),
    "squeezenet1_0": "classifier.1",
    "vit_b_16": "heads.head",
}
TIMM = {"inception_v4": "last_linear", "inception_resnet_v2": "classif"}
OWN = {
    **dict.fromkeys([*(f"resnet{depth}" for depth in (8, 20, 32, 44, 56)), "densenet", "densenet40_12", "densenet40_40"], "fc"),
    "efficientnet_lite0": "_fc",
    **dict.fromkeys([*SHAPES, "vit", "head_only"], "head"),
}
HEADS = {**TORCHVISION, **TIMM, **OWN}

CARD = ("classes", "train_images", "superclass_of", "input", "channels", "mean", "std", "score_scale", "probability", "head")


class NormalisedLinear(nn.Module):
    """Cosines between features [batch, features] and class weights: [batch, classes]. `weight` is [features, classes]."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, classes))

    def forward(self, features: Tensor) -> Tensor:
        return F.normalize(features, dim=1) @ F.normalize(self.weight, dim=0)


class PreparedNetwork(nn.Module):
    """A network that the program's own layers compute, on the CPU, in a form of `run.inference`: it has no parameters and no gradient.

    settings: the section `model` of a config, as JSON. size: [classes, channels, height, width]. weights: by the program's names. inference: "fast"
    or "bf16". problem: why the network is exact instead; empty where it is not. ValueError where these do not fit each other.
    """

    def __init__(self, settings: str, size: Sequence[int], weights: dict[str, Tensor], inference: str) -> None:
        super().__init__()
        self._arguments = settings, size, weights, inference  # copies and pickles build the network from them
        self._network = torch.classes.settrain.Network(settings, *size, weights, inference)
        self.problem: str = self._network.problem()

    def forward(self, images: Tensor) -> Tensor:
        """[batch, classes] float32 scores of images [batch, channels, height, width], or of features [batch, width] for head_only, float32 on
        the CPU, finite; ValueError for others."""
        if images.dtype != torch.float32 or not images.is_cpu:
            raise ValueError(f"images: expected float32 on the CPU, got {images.dtype} on {images.device}")
        if not images.sum().isfinite():  # which the fused activations would hide
            wrong = images.flatten(1).isfinite().all(1).logical_not().nonzero().flatten().tolist()
            if wrong:
                raise ValueError(f"images: expected finite numbers, got others in the images {wrong[:5]}, counted from 0")
        scores: Tensor = self._network.scores(images)
        return scores

    def __reduce__(self) -> tuple[Any, ...]:
        return PreparedNetwork, self._arguments


class TrainedModel(nn.Module):
    """A network with settrain's weights, made by load().

    class_names, train_counts, superclass_of: of each class; the last is empty where there are no superclasses. input_size: height and width in pixels.
    is_sigmoid: whether probabilities are sigmoids. rules: those that `settrain calibrate` made, by name, the default first.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, network: nn.Module, card: dict[str, Any], temperature: float, rules: dict[str, CalibratedRule]) -> None:
        super().__init__()
        self.network = network
        self.class_names: list[str] = card["classes"]
        self.train_counts: list[int] = card["train_images"]
        self.superclass_of: list[int] = card["superclass_of"]
        self.input_size: tuple[int, int] = tuple(card["input"])  # height, width
        self.is_sigmoid: bool = card["probability"] == "sigmoid"
        self.rules = rules  # of the scores that the model gives
        self._score_scale, self._temperature = card["score_scale"], temperature
        self.register_buffer("mean", torch.tensor(card["mean"]).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(card["std"]).view(-1, 1, 1), persistent=False)

    def normalise(self, pixels: Tensor) -> Tensor:
        """The network's input, float of the shape of `pixels`: [batch, channels, height, width], uint8 or float in [0, 1], whose size should be
        `input_size`. ValueError for other dtypes."""
        channels = len(self.mean)
        if pixels.dim() < 3 or pixels.shape[-3] != channels:
            raise ValueError(f"pixels: expected [batch, {channels}, height, width], got the shape {list(pixels.shape)}")
        if pixels.dtype == torch.uint8:
            pixels = pixels.to(self.mean.dtype) / 255
        elif not pixels.is_floating_point():
            raise ValueError(f"pixels: expected uint8, or floating point in [0, 1], got {pixels.dtype}")
        return (pixels - self.mean) / self.std

    def forward(self, images: Tensor) -> Tensor:
        """[batch, classes] scores of normalised images, [batch, channels, height, width] float (of head_only, of features [batch, width]): cosines
        where the head is normalised."""
        scores: Tensor = self.network(images)
        return scores

    def logits(self, images: Tensor) -> Tensor:
        """[batch, classes] what probabilities and rules are made of: scores times the loss' scale, over the calibrated temperature."""
        logits: Tensor = self(images) * self._score_scale / self._temperature
        return logits

    def probabilities(self, images: Tensor) -> Tensor:
        """[batch, classes] the softmax of logits(), or its sigmoids where the loss was trained on these."""
        logits = self.logits(images)
        return logits.sigmoid() if self.is_sigmoid else logits.softmax(1)

    def sets(self, images: Tensor, rule: str, *, first_image: int | None = None) -> Tensor:
        """[batch, classes] bool: the sets of one of `rules`, which `settrain calibrate` made. `first_image`: the number of the batch's first
        image, by which randomised rules draw and which they need; count on from batch to batch. ValueError for another rule."""
        if rule not in self.rules:
            raise ValueError(f"rule: expected one of {list(self.rules)}, got {rule!r}")
        return self.rules[rule].sets(self(images), first_image=first_image)


def load(
    path: "str | os.PathLike[str]", *, device: torch.device | str = "cpu", inference: Literal["exact", "fast", "bf16"] = "exact"
) -> TrainedModel:
    """The model in a file that `settrain export` wrote, in evaluation mode.

    All networks of the program can be loaded. A model with two heads keeps the head that predicts. Rules that were calibrated on the mean scores of
    ten crops (eval.crops: ten) are left out, as this model sees one. In training mode, networks of torchvision and timm have the dropout and
    stochastic depth that these give them, and the package's own no stochastic depth.

    inference: "exact" is PyTorch's layers in float32, which can be trained on. "fast" and "bf16" answer by the program's layers, as its
    `run.inference` does, on the CPU alone and without gradients; where fast scores differ by more than 1e-4 from exact ones, or the processor has no
    instructions for bfloat16, a warning says so and the model is exact. Rules that were calibrated in bf16 and answer otherwise, or the reverse, are
    warned of; evaluation of a run with train.precision: bf16 counts as bf16.

    Needs safetensors, PyYAML and torchvision: pip install '.[models]'; Inception-v4 and Inception-ResNet-v2 need timm. ValueError where the
    file is no such model; it says what kind of file this is. ONNX graphs are refused too, since onnxruntime runs them. FileNotFoundError where
    there is no file.
    """
    place = os.fspath(path)
    if place.lower().endswith(".onnx"):
        raise ValueError(
            f"{place!r}: an ONNX graph, which onnxruntime.InferenceSession() runs (docs/file_formats.md); load() reads the safetensors file that "
            "`settrain export RUN` writes"
        )
    if os.path.isdir(place):
        raise ValueError(f"{place!r}: a folder; load() reads the file that `settrain export {place}` writes")
    if inference not in ("exact", "fast", "bf16"):
        raise ValueError(f"inference: expected 'exact', 'fast' or 'bf16', got {inference!r}")
    if inference != "exact" and torch.device(device).type != "cpu":
        raise ValueError(f"inference: {inference!r} is for the CPU, and the device is {device!s}")
    metadata = safetensors_metadata(place)
    if metadata is None or not is_exported(metadata):
        raise ValueError(f"{place!r}: no model that settrain exported: this is {_described(place, metadata)}")
    import yaml  # type: ignore[import-untyped]
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            weights = {name: file.get_tensor(name) for name in file.keys()}
        card = json.loads(metadata["card"])
        config = yaml.safe_load(metadata["config"])
        model, crops = config["model"], config["eval"].get("crops", "center")
        stored = json.loads(metadata.get("rules", '{"temperature": 1, "rules": []}'))
        card = {key: card[key] for key in CARD}
        rules = rules_of(stored, card["score_scale"]) if crops == "center" else {}
        if model["name"] not in HEADS:
            raise ValueError(f"the network {model['name']} is of a later version")
        network: nn.Module
        form, problem = inference, ""
        if inference != "exact":
            network = _prepared(model, card, weights, inference)
            problem = network.problem
        if inference == "exact" or problem:
            form, network = "exact", _network(model, card, weights)
            network.load_state_dict(weights)
        made = TrainedModel(network, card, stored["temperature"], rules)
        if rules:
            _warn_of_form(place, stored, config["train"].get("precision", "float32"), form)
    except SafetensorError as error:
        raise ValueError(f"{place!r}: the file is cut off or damaged, so export it again (settrain export RUN): {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, yaml.YAMLError) as error:
        raise ValueError(f"{place!r}: no model that settrain exported (settrain export RUN): {error!r}") from None
    if problem:
        warnings.warn(f"{place!r}: inference={inference!r}: {problem}; answers are exact", UserWarning, stacklevel=2)
    return made.to(device).eval()


def _described(place: str, metadata: dict[str, Any] | None) -> str:
    """Says what kind of file this is, which `settrain export` did not write, and what helps."""
    kind = kind_of(place, metadata)
    described = f"{kind}; load() reads the safetensors file that `settrain export RUN` writes"
    if kind == "a JSON file":
        return f"{described}, and settrain.sets.load() reads a file of rules"
    if "torch.save()" in kind or (metadata is not None and metadata.get("kind") != CHECKPOINT):
        return f"{described}. Weights of other programs go into their own network, by its load_state_dict()"
    return described


def _prepared(model: dict[str, Any], card: dict[str, Any], weights: dict[str, Tensor], inference: str) -> PreparedNetwork:
    """The network in that form, or exact where it has a problem."""
    own = model | {"pretrained": "none"}
    if "adapter" in own and own["adapter"]["kind"] == "lora":  # it is in the weights
        own["adapter"] = {"kind": "none"}
    if own["head"] == "scaled":  # exported as the linear head that gives the same scores
        own["head"] = "linear"
    return PreparedNetwork(json.dumps({"model": own}), (len(card["classes"]), card["channels"], *card["input"]), weights, inference)


def _warn_of_form(place: str, stored: dict[str, Any], precision: str, form: str) -> None:
    """Warns where rules were calibrated in bfloat16 and answer otherwise, or the reverse."""
    calibrated = "bf16" if precision == "bf16" else stored.get("inference", "exact")
    if not stored["rules"] or calibrated == form or "bf16" not in (calibrated, form):
        return
    found = stored.get("inference_differences", {}).get(form)
    difference = f"; scores of some images that calibrated differed by up to {found:.1e}" if found is not None else ""
    message = f"{place!r}: its rules were calibrated in {calibrated}, and answer in {form}: their guarantees are for the former{difference}"
    warnings.warn(message, UserWarning, stacklevel=3)


def _network(model: dict[str, Any], card: dict[str, Any], weights: dict[str, Tensor]) -> nn.Module:
    """The network of the section `model` of a config, and of the card. Renames and drops weights where the network has them otherwise."""
    network, head = _made(model, card, weights), HEADS[model["name"]]
    last = network.get_submodule(head)
    if card["head"] == "two_head":
        for part in ("weight", "bias"):
            weights.pop(f"{head}.{part}", None)
            if f"{head}_multi.{part}" in weights:
                weights[f"{head}.{part}"] = weights.pop(f"{head}_multi.{part}")
    if card["head"] == "normalised" and isinstance(last, nn.Conv2d):  # SqueezeNet's; it sees the means of the features
        means = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        network.set_submodule("classifier", nn.Sequential(means, NormalisedLinear(last.in_channels, last.out_channels)))
    elif card["head"] == "normalised" and isinstance(last, nn.Linear):
        network.set_submodule(head, NormalisedLinear(last.in_features, last.out_features))
    elif f"{head}.bias" not in weights:
        last.register_parameter("bias", None)
    _see_channels(network, card["channels"])
    _adapt(network, model, weights)
    return network


def _made(model: dict[str, Any], card: dict[str, Any], weights: dict[str, Tensor]) -> nn.Module:
    """The network with a linear head, for three channels."""
    name, classes, image = model["name"], len(card["classes"]), tuple(card["input"])
    if name in TIMM:
        import timm  # type: ignore[import-not-found]

        made: nn.Module = timm.create_model(name, num_classes=classes)
        return made
    if name in TORCHVISION:
        import torchvision  # type: ignore[import-untyped]

        options = {"image_size": image[0]} if name == "vit_b_16" else {}
        if name == "inception_v3":
            options = {"aux_logits": False, "init_weights": False}
        constructor: Callable[..., nn.Module] = getattr(torchvision.models, name)
        return constructor(num_classes=classes, **options)
    if name == "head_only":
        return nn.Sequential(OrderedDict(flatten=nn.Flatten(), head=nn.Linear(image[1], classes)))
    if name == "efficientnet_lite0":
        return EfficientNetLite0(classes, model["dropout"])
    if name.startswith("resnet"):
        return SmallResNet(int(name.removeprefix("resnet")), model["width"], classes)
    if name.startswith("densenet"):
        depth, growth = (int(number) for number in name[8:].split("_")) if "_" in name else (model["depth"], model["growth"])
        return SmallDenseNet(depth, growth, model["bc"], classes)
    shape: Shape = SHAPES.get(name) or model  # type: ignore[assignment]
    projected = weights["proj"].shape[1] if "proj" in weights else 0
    return VisionTransformer(shape, model, image, classes, projected)  # type: ignore[arg-type]


def _see_channels(network: nn.Module, channels: int) -> None:
    """Has the first convolution see images of so many channels."""
    for name, layer in network.named_modules():
        if isinstance(layer, nn.Conv2d):
            if layer.in_channels != channels:
                sizes = layer.out_channels, layer.kernel_size, layer.stride, layer.padding
                network.set_submodule(name, type(layer)(channels, *sizes, bias=layer.bias is not None))
            return


def _adapt(network: nn.Module, model: dict[str, Any], weights: dict[str, Tensor]) -> None:
    """Puts an AdaptFormer beside the MLPs that have one, and renames the weights of both."""
    for name in [name for name in weights if name.endswith(".adaptformer.down.weight")]:
        block, down = name.removesuffix(".adaptformer.down.weight"), weights[name]
        adapter = AdaptFormer(down.shape[1], down.shape[0], model["adapter"]["scale"])
        network.set_submodule(f"{block}.mlp", AdaptedMLP(network.get_submodule(f"{block}.mlp"), adapter))
        for part in [part for part in weights if part.startswith((f"{block}.mlp.", f"{block}.adaptformer."))]:
            weights[part.replace(f"{block}.", f"{block}.mlp.", 1)] = weights.pop(part)
