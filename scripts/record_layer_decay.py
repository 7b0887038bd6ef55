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
# Ours, timm's, and how names differ.
MODELS = [
    ("resnet18", "resnet18", []),
    ("densenet121", "densenet121", []),
    ("convnext_tiny", "convnext_tiny", CONVNEXT),
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
