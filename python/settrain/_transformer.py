"""The program's vision transformers, with timm's names of their tensors, and AdaptFormer. Only for load(): first weights are PyTorch's."""

from typing import Literal, TypedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Shape(TypedDict):
    """Sizes of a transformer, by the keys of `model` in settrain's configs."""

    patch: int
    width: int
    depth: int
    heads: int
    class_token: bool
    registers: int
    layer_scale: float
    ln_pre: bool


class Parts(TypedDict, total=False):
    """Other keys of `model` for a transformer."""

    pooling: Literal["token", "mean", "both"]
    activation: Literal["gelu", "quick_gelu"]


SIZES = {"tiny": (192, 12, 3), "small": (384, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}  # width, depth, heads


def shape_of(patch: int, size: str, **others: object) -> Shape:
    width, depth, heads = SIZES[size]
    plain = {"class_token": True, "registers": 0, "layer_scale": 0.0, "ln_pre": False}
    return {"patch": patch, "width": width, "depth": depth, "heads": heads, **plain, **others}  # type: ignore[typeddict-item]


SHAPES: dict[str, Shape] = {
    **{f"vit_{size}_patch16": shape_of(16, size) for size in SIZES},
    **{f"vit_{size}_patch14_dinov2": shape_of(14, size, layer_scale=1e-5) for size in ("small", "base", "large")},
    **{f"vit_{size}_patch14_reg4_dinov2": shape_of(14, size, layer_scale=1e-5, registers=4) for size in ("small", "base", "large")},
    "clip_vit_b_16": shape_of(16, "base", ln_pre=True),
    "clip_vit_l_14": shape_of(14, "large", ln_pre=True),
}


class AdaptFormer(nn.Module):
    """scale up(relu(down(x))) (Chen et al., 2022, equations 4 and 5)."""

    def __init__(self, features: int, rank: int, scale: float) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(features, rank), nn.Linear(rank, features)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.up(F.relu(self.down(x)))
        return y * self.scale


class AdaptedMLP(nn.Module):
    """An MLP with an AdaptFormer that sees the same."""

    def __init__(self, mlp: nn.Module, adaptformer: AdaptFormer) -> None:
        super().__init__()
        self.mlp, self.adaptformer = mlp, adaptformer

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.mlp(x)
        return y + self.adaptformer(x)


class Attention(nn.Module):
    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(features, 3 * features), nn.Linear(features, features)

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(queries, keys, values)
        y: Tensor = self.proj(seen.transpose(1, 2).flatten(2))
        return y


class MLP(nn.Module):
    def __init__(self, features: int, quick: bool) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)
        self.quick = quick

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.fc1(x)
        y: Tensor = self.fc2(hidden * torch.sigmoid(1.702 * hidden) if self.quick else F.gelu(hidden))
        return y


class LayerScale(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(features))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class Block(nn.Module):
    def __init__(self, shape: Shape, epsilon: float, quick: bool) -> None:
        super().__init__()
        features = shape["width"]
        self.norm1, self.norm2 = nn.LayerNorm(features, epsilon), nn.LayerNorm(features, epsilon)
        self.attn = Attention(features, shape["heads"])
        self.mlp: nn.Module = MLP(features, quick)
        self.ls1 = LayerScale(features) if shape["layer_scale"] else nn.Identity()
        self.ls2 = LayerScale(features) if shape["layer_scale"] else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.ls1(self.attn(self.norm1(x)))
        y: Tensor = self.norm2(x)
        if isinstance(self.mlp, AdaptedMLP):  # the adapter has no LayerScale
            return x + self.ls2(self.mlp.mlp(y)) + self.mlp.adaptformer(y)
        return x + self.ls2(self.mlp(y))


class VisionTransformer(nn.Module):
    """Without stochastic depth. `image`: height and width. `projected`: columns of OpenCLIP's matrix `proj` before the head; 0: none."""

    def __init__(self, shape: Shape, parts: Parts, image: tuple[int, int], classes: int, projected: int) -> None:
        super().__init__()
        features, epsilon = shape["width"], 1e-5 if shape["ln_pre"] else 1e-6
        patches = (image[0] // shape["patch"]) * (image[1] // shape["patch"])
        self.registers, self.has_token = shape["registers"], shape["class_token"]
        self.pooling = parts.get("pooling", "token")
        self.positions_of_all = self.has_token and not self.registers  # else of the patches alone
        if self.has_token:
            self.cls_token = nn.Parameter(torch.zeros(1, 1, features))
        if self.registers:
            self.reg_token = nn.Parameter(torch.zeros(1, self.registers, features))
        self.pos_embed = nn.Parameter(torch.zeros(1, patches + self.positions_of_all, features))
        convolution = nn.Conv2d(3, features, shape["patch"], shape["patch"], bias=not shape["ln_pre"])
        self.patch_embed = nn.ModuleDict({"proj": convolution})
        self.norm_pre = nn.LayerNorm(features, epsilon) if shape["ln_pre"] else nn.Identity()
        quick = parts.get("activation") == "quick_gelu"
        self.blocks = nn.Sequential(*(Block(shape, epsilon, quick) for _ in range(shape["depth"])))
        self.norm = nn.LayerNorm(features, epsilon)
        seen = 2 * features if self.pooling == "both" else features
        if projected:
            self.proj = nn.Parameter(torch.zeros(seen, projected))
        self.head = nn.Linear(projected or seen, classes)

    def forward(self, images: Tensor) -> Tensor:
        patches: Tensor = self.patch_embed["proj"](images).flatten(2).transpose(1, 2)
        tokens = [token.expand(len(images), -1, -1) for token in self._tokens()]
        if self.positions_of_all:
            x = torch.cat([*tokens, patches], 1) + self.pos_embed
        else:
            x = torch.cat([*tokens, patches + self.pos_embed], 1)
        x = self.norm(self.blocks(self.norm_pre(x)))
        mean = x[:, self.has_token + self.registers :].mean(1)
        features = x[:, 0] if self.pooling == "token" else mean if self.pooling == "mean" else torch.cat([x[:, 0], mean], 1)
        scores: Tensor = self.head(features @ self.proj if hasattr(self, "proj") else features)
        return scores

    def _tokens(self) -> list[Tensor]:
        return ([self.cls_token] if self.has_token else []) + ([self.reg_token] if self.registers else [])
