#!/usr/bin/env python3
"""Records golden values of vision transformers with timm and OpenCLIP, implementations apart from the C++ one.

Usage: record_transformer_golden.py OUTPUT_FOLDER

Needs timm 1.0.31 and open_clip_torch. The files are as record_model_golden.py writes them, of small networks that have every part between
them; weights, images and results follow its formulas. Prints, for every registered model with timm's names, the number of its parameters
and a digest of its entries, which tests/models/vision_transformer_test.cpp has.
"""

import functools
import hashlib
import json
import pathlib
import sys

import numpy as np
import open_clip
import timm
import torch
from open_clip.transformer import QuickGELU
from timm.layers import LayerNorm
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from record_model_golden import closed_input, deviation, fill, results
from reference_models import parameter_list

CLASSES, WIDTH, DEPTH, HEADS = 10, 24, 2, 3
FULL = [f"vit_{size}_patch16" for size in ("tiny", "small", "base", "large")]
FULL += [f"vit_{size}_patch14_{registers}dinov2" for registers in ("", "reg4_") for size in ("small", "base", "large")]
FULL += ["clip_vit_b_16", "clip_vit_l_14"]


class Small(VisionTransformer):
    """timm's, of one small size."""

    def __init__(self, patch, image, **options):
        super().__init__(img_size=image, patch_size=patch, num_classes=CLASSES, embed_dim=WIDTH, depth=DEPTH, num_heads=HEADS, **options)


class TokenAndPatches(Small):
    """DINOv2's linear classifiers on the last block: they see the class' token beside the mean of the patches', both after the norm."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.head = nn.Linear(2 * WIDTH, CLASSES)

    def forward(self, images):
        tokens = self.forward_features(images)
        return self.head(torch.cat([tokens[:, 0], tokens[:, self.num_prefix_tokens :].mean(1)], 1))


class OpenClip(Small):
    """OpenCLIP's network for images, with the parameters of a model of timm, and a linear head on its features before the projection."""

    def __init__(self, patch, image):
        norm = functools.partial(LayerNorm, eps=1e-5)
        super().__init__(patch, image, pre_norm=True, norm_layer=norm, act_layer="quick_gelu")
        arguments = dict(image_size=image, patch_size=patch, width=WIDTH, layers=DEPTH, heads=HEADS, mlp_ratio=4.0)
        visual = open_clip.transformer.VisionTransformer(**arguments, output_dim=WIDTH, act_layer=QuickGELU)
        visual.proj = None
        self.visual = [visual.double()]  # in a list it is no module of this one

    @staticmethod
    def renamed(name):
        for ours, theirs in (("patch_embed.proj", "conv1"), ("blocks.", "transformer.resblocks."), ("norm_pre", "ln_pre"), ("attn.qkv.", "attn.in_proj_"),
                             ("attn.proj", "attn.out_proj"), ("norm1", "ln_1"), ("norm2", "ln_2"), ("mlp.fc1", "mlp.c_fc"), ("mlp.fc2", "mlp.c_proj")):
            name = name.replace(ours, theirs)
        if name.startswith("norm."):
            return "ln_post" + name.removeprefix("norm")
        return {"cls_token": "class_embedding", "pos_embed": "positional_embedding"}.get(name, name)

    def forward(self, images):
        parameters = {self.renamed(name): p for name, p in self.named_parameters() if not name.startswith("head.")}
        parameters["class_embedding"] = parameters["class_embedding"][0, 0]
        parameters["positional_embedding"] = parameters["positional_embedding"][0]
        assert parameters.keys() == dict(self.visual[0].named_parameters()).keys()
        return self.head(torch.func.functional_call(self.visual[0], parameters, (images,)))


def first_weights(model):
    """What timm's constructors say of their first weights, by parameter: distribution, mean and deviation."""
    bound = model.patch_embed.proj.weight[0].numel() ** -0.5
    for name, p in model.named_parameters():
        if name.startswith("patch_embed"):
            yield name, "uniform(-b, b), b = 1 / sqrt(in)", 0.0, bound / 3**0.5
        elif name in ("cls_token", "reg_token"):
            yield name, "normal", 0.0, 1e-6
        elif p.dim() > 1:
            yield name, "normal", 0.0, 0.02
        else:
            value = float(np.float32(1e-5)) if name.endswith("gamma") else float(name.endswith("weight"))
            yield name, f"constant {value}", value, 0.0


def record(folder, name, make, shape, *settings, first=False):
    torch.manual_seed(4)
    model, labels, images = make(), torch.tensor([3, 7]), closed_input(shape)
    if first:
        weights = [dict(zip(("name", "distribution", "expected_mean", "expected_std"), row)) for row in first_weights(model)]
        for weight, p in zip(weights, model.parameters()):  # what was read in the constructors is what they draw
            assert abs(p.std(unbiased=False).item() - weight["expected_std"]) <= max(0.3 * weight["expected_std"], 1e-12), weight
        (folder / f"{name}.init.json").write_text(json.dumps({"model": name, "parameters": weights}) + "\n")
    (folder / f"{name}.params.txt").write_text(parameter_list(name, CLASSES, model))
    exact = results(make, torch.float64, images, labels)
    golden = {
        "model": name,
        "settings": ["model.name=vit", f"model.width={WIDTH}", f"model.depth={DEPTH}", f"model.heads={HEADS}", *settings],
        "num_classes": CLASSES,
        "input_shape": shape,
        "labels": labels.tolist(),
        "made_with": f"torch {torch.__version__}, timm {timm.__version__}, open_clip {open_clip.__version__}, CPU",
        "parameters": sum(p.numel() for p in model.parameters()),
        "fill_sha256": fill(model),
        "float64": exact,
    }
    if not isinstance(model, OpenClip):  # whose copy of the network is float64
        golden["deviation_float32_from_float64"] = deviation(results(make, torch.float32, images, labels), exact)
    (folder / f"{name}.json").write_text(json.dumps(golden) + "\n")


def timm_model(name):
    clip = {"clip_vit_b_16": "vit_base_patch16_clip_224", "clip_vit_l_14": "vit_large_patch14_clip_224"}
    with torch.device("meta"):
        return timm.create_model(clip.get(name, name + "_224" if name.endswith("patch16") else name), num_classes=1000)


if __name__ == "__main__":
    output = pathlib.Path(sys.argv[1])
    dino, mean = dict(init_values=1e-5), dict(global_pool="avg", fc_norm=False)
    registers = dict(reg_tokens=4, no_embed_class=True, **dino)
    record(output, "vit_small_parts", lambda: Small(8, 32, **mean), [2, 3, 32, 32], "model.patch=8", "model.pooling=mean")
    record(output, "vit_dinov2_parts", lambda: TokenAndPatches(14, (42, 28), **dino), [2, 3, 42, 28], "model.patch=14", "model.layer_scale=1e-5", "model.pooling=both")
    record(output, "vit_reg4_parts", lambda: Small(14, 42, **registers), [2, 3, 42, 42], "model.patch=14", "model.layer_scale=1e-5", "model.registers=4", first=True)
    record(output, "vit_no_token_parts", lambda: Small(8, 16, class_token=False, **mean), [2, 3, 16, 16], "model.patch=8", "model.class_token=false", "model.pooling=mean")
    record(output, "vit_clip_parts", lambda: OpenClip(8, 32), [2, 3, 32, 32], "model.patch=8", "model.ln_pre=true", "model.activation=quick_gelu")
    for name in FULL:
        model = timm_model(name)
        lines = [line for line in parameter_list(name, 1000, model).splitlines() if not line.startswith("#")]
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        print(f'{{"{name}", {sum(p.numel() for p in model.parameters())}, "{digest[:16]}"}},')
