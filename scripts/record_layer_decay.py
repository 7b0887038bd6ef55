#!/usr/bin/env python3
"""Records which learning rate timm gives each parameter of a network whose rates fall by layer, and which it decays.

Usage: record_layer_decay.py OUTPUT_FILE    (timm 1.0.31)

A line has the model's name, the factor of the learning rate, 1 or 0 for whether weight decay applies, and the names of the
parameters in settrain.
"""

import pathlib
import re
import sys

import timm
import torch
from timm.optim import param_groups_layer_decay

DECAY = 0.75
LITE_UNITS = [("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")]
LITE_DEPTHS = [1, 2, 2, 3, 3, 4, 1]  # blocks of the stages, which efficientnet_pytorch numbers through
CONVNEXT_PARTS = {"gamma": "layer_scale", "conv_dw": "block.0", "norm": "block.2", "mlp.fc1": "block.3", "mlp.fc2": "block.5"}

# timm's names, as regular expressions, and torchvision's, where settrain has those.
VIT = [
    ("cls_token", "class_token"),
    ("pos_embed", "encoder.pos_embedding"),
    (r"patch_embed\.proj", "conv_proj"),
    (r"blocks\.(\d+)", r"encoder.layers.encoder_layer_\1"),
    (r"attn\.qkv\.", "self_attention.in_proj_"),
    (r"attn\.proj", "self_attention.out_proj"),
    (r"\.norm([12])", r".ln_\1"),
    (r"mlp\.fc1", "mlp.0"),
    (r"mlp\.fc2", "mlp.3"),
    (r"^norm\.", "encoder.ln."),
    (r"^head\.", "heads.head."),
]
CONVNEXT = [
    (r"^stem\.", "features.0."),
    (r"^stages\.(\d+)\.downsample", lambda match: f"features.{2 * int(match[1])}"),
    (
        r"^stages\.(\d+)\.blocks\.(\d+)\.(gamma|conv_dw|norm|mlp\.fc[12])",
        lambda match: f"features.{2 * int(match[1]) + 1}.{match[2]}.{CONVNEXT_PARTS[match[3]]}",
    ),
    (r"^head\.norm\.", "classifier.0."),
    (r"^head\.fc\.", "classifier.2."),
]


def efficientnet_parts(fused, squeezes, lite):
    """Renames the parts of timm's blocks; `fused`: the stages whose blocks begin with a whole convolution."""

    def part_name(match):
        stage, block, rest = int(match[1]), match[2], match[3]
        if stage in fused:
            order = [["conv", "bn1"]] if stage == 0 else [["conv_exp", "bn1"], ["conv_pwl", "bn2"]]
        elif stage == 0:  # expands nothing
            order = [["conv_dw", "bn1"], ["se"], ["conv_pw", "bn2"]]
        else:
            order = [["conv_pw", "bn1"], ["conv_dw", "bn2"], ["se"], ["conv_pwl", "bn3"]]
        if not squeezes:
            order.remove(["se"])
        names, parameter = rest.rsplit(".", 1)
        part, *inside = names.split(".")
        place = next(i for i, parts in enumerate(order) if part in parts)
        if part == "se":
            layer = {"conv_reduce": "fc1", "conv_expand": "fc2"}[inside[0]]
            return f"features.{stage + 1}.{block}.block.{place}.{layer}.{parameter}"
        which = order[place].index(part)
        if not lite:
            return f"features.{stage + 1}.{block}.block.{place}.{which}.{parameter}"
        unit = LITE_UNITS[place + len(LITE_UNITS) - len(order)][which]
        return f"_blocks.{sum(LITE_DEPTHS[:stage]) + int(block)}.{unit}.{parameter}"

    outer = [("conv_stem", "_conv_stem"), ("bn1", "_bn0"), ("conv_head", "_conv_head"), ("bn2", "_bn1"), ("classifier", "_fc")]
    if not lite:
        last = "features.7" if fused else "features.8"
        outer = [("conv_stem", "features.0.0"), ("bn1", "features.0.1"), ("conv_head", f"{last}.0"), ("bn2", f"{last}.1"), ("classifier", "classifier.1")]
    return [(rf"^{theirs}\.", f"{ours}.") for theirs, ours in outer] + [(r"^blocks\.(\d+)\.(\d+)\.(.*)$", part_name)]


# Ours, timm's, and how names differ.
MODELS = [
    ("resnet18", "resnet18", []),
    ("densenet121", "densenet121", []),
    ("convnext_tiny", "convnext_tiny", CONVNEXT),
    ("inception_resnet_v2", "inception_resnet_v2", []),
    ("inception_v3", "inception_v3", []),
    ("efficientnet_b0", "efficientnet_b0", efficientnet_parts((), True, False)),
    ("efficientnet_v2_s", "tf_efficientnetv2_s", efficientnet_parts((0, 1, 2), True, False)),
    ("efficientnet_lite0", "tf_efficientnet_lite0", efficientnet_parts((), False, True)),
    ("vit_b_16", "vit_base_patch16_224", VIT),
    ("vit_small_patch14_reg4_dinov2", "vit_small_patch14_reg4_dinov2", []),
    ("clip_vit_b_16", "vit_base_patch16_clip_224", []),
]


def main():
    lines = []
    for ours, theirs, renamings in MODELS:
        with torch.device("meta"):
            model = timm.create_model(theirs, num_classes=1000)
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        spared = getattr(model, "no_weight_decay", lambda: ())()
        for group in param_groups_layer_decay(model, 0.05, spared, layer_decay=DECAY):
            renamed = []
            for parameter in group["params"]:
                name = names[id(parameter)]
                for pattern, replacement in renamings:
                    name = re.sub(pattern, replacement, name)
                renamed.append(name)
            lines.append(f"{ours} {group['lr_scale']!r} {int(group['weight_decay'] > 0)} {' '.join(renamed)}\n")
    pathlib.Path(sys.argv[1]).write_text("".join(lines))


if __name__ == "__main__":
    main()
