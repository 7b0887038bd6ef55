"""Models that `settrain export` wrote, as torch.nn.Modules."""

import json
import os
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from settrain.sets import CalibratedRule, rules_of

# torchvision's constructors, and the layer that gives the scores.
HEADS = {
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

CARD = ("classes", "train_images", "superclass_of", "input", "channels", "mean", "std", "score_scale", "probability", "head")


class NormalisedLinear(nn.Module):
    """Cosines between features [batch, features] and class weights: [batch, classes]. `weight` is [features, classes]."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, classes))

    def forward(self, features: Tensor) -> Tensor:
        return F.normalize(features, dim=1) @ F.normalize(self.weight, dim=0)


class TrainedModel(nn.Module):
    """A network of torchvision with settrain's weights, and what is known of its classes. Made by load()."""

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
        """The network's input: [batch, 3, height, width] of pixels, uint8, or float in [0, 1]. Their size should be `input_size`."""
        if pixels.dtype == torch.uint8:
            pixels = pixels.to(self.mean.dtype) / 255
        elif not pixels.is_floating_point():
            raise ValueError(f"pixels: expected uint8, or floating point in [0, 1], got {pixels.dtype}")
        return (pixels - self.mean) / self.std

    def forward(self, images: Tensor) -> Tensor:
        """[batch, classes] scores of normalised images: cosines where the head is normalised."""
        scores: Tensor = self.network(images)
        return scores

    def logits(self, images: Tensor) -> Tensor:
        """[batch, classes] what probabilities and rules are made of: scores times the loss' scale, over the calibrated temperature."""
        logits: Tensor = self(images) * self._score_scale / self._temperature
        return logits

    def probabilities(self, images: Tensor) -> Tensor:
        logits = self.logits(images)
        return logits.sigmoid() if self.is_sigmoid else logits.softmax(1)

    def sets(self, images: Tensor, rule: str, *, first_image: int = 0) -> Tensor:
        """[batch, classes] bool: the sets of one of `rules`, which `settrain calibrate` made. `first_image`: the number of the batch's first
        image, which randomised rules draw by; count on from batch to batch."""
        if rule not in self.rules:
            raise ValueError(f"rule: expected one of {list(self.rules)}, got {rule!r}")
        return self.rules[rule].sets(self(images), first_image=first_image)


def load(path: "str | os.PathLike[str]", *, device: torch.device | str = "cpu") -> TrainedModel:
    """The model in a file that `settrain export` wrote, in evaluation mode.

    Rules that were calibrated on the mean scores of ten crops (eval.crops: ten) are left out, as this model sees one.
    Needs torchvision, safetensors and PyYAML: pip install '.[models]'. ValueError where the file is no such model, its architecture is not
    torchvision's (ResNets and DenseNets for small images, AdaptFormer), or it has two heads; also for ONNX graphs, which onnxruntime runs.
    """
    if os.fspath(path).lower().endswith(".onnx"):
        raise ValueError(
            f"{os.fspath(path)!r}: an ONNX graph, which onnxruntime.InferenceSession() runs (docs/file_formats.md); load() reads the safetensors file "
            "that `settrain export RUN` writes"
        )
    import torchvision  # type: ignore[import-untyped]
    import yaml  # type: ignore[import-untyped]
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}
        card = json.loads(metadata["card"])
        config = yaml.safe_load(metadata["config"])
        name, crops = config["model"]["name"], config["eval"].get("crops", "center")
        stored = json.loads(metadata.get("rules", '{"temperature": 1, "rules": []}'))
        card = {key: card[key] for key in CARD}
        rules = rules_of(stored, card["score_scale"]) if crops == "center" else {}
    except (SafetensorError, KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{os.fspath(path)!r}: no model that settrain exported (settrain export RUN): {error!r}") from None
    if name not in HEADS:
        raise ValueError(f"{os.fspath(path)!r}: torchvision has no {name}; these can be loaded: {', '.join(HEADS)}")
    if card["head"] == "two_head" or card["channels"] != 3:
        raise ValueError(f"{os.fspath(path)!r}: a torchvision model has one head and 3 channels; this one: {card['head']}, {card['channels']}")
    if any(".adaptformer." in weight for weight in weights):
        raise ValueError(f"{os.fspath(path)!r}: torchvision's {name} has no AdaptFormer; `settrain export --format onnx` writes the network with it")
    options = {"image_size": card["input"][0]} if name == "vit_b_16" else {}
    if name == "inception_v3":
        options = {"aux_logits": False, "init_weights": False}
    network = getattr(torchvision.models, name)(num_classes=len(card["classes"]), **options)
    head = network.get_submodule(HEADS[name])
    if card["head"] == "normalised" and name == "squeezenet1_0":  # it sees the means of the features
        means = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        network.classifier = nn.Sequential(means, NormalisedLinear(head.in_channels, head.out_channels))
    elif card["head"] == "normalised":
        network.set_submodule(HEADS[name], NormalisedLinear(head.in_features, head.out_features))
    elif f"{HEADS[name]}.bias" not in weights:
        head.register_parameter("bias", None)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"{os.fspath(path)!r}: {error}") from None
    return TrainedModel(network, card, stored["temperature"], rules).to(device).eval()
