"""Python twins of settrain's models, for the scripts that record golden values and compare speed: same names and shapes in the
state_dict, same function. First weights are not settrain's.
"""

import importlib.util

import torch
from torch import nn
from torch.nn import functional as F

# depth, growth
SMALL_DENSENETS = {"densenet40_40": (40, 40), "densenet40_12": (40, 12)}
SMALL_RESNETS = {f"resnet{depth}": depth for depth in (8, 20, 32, 44, 56)}
TORCHVISION = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2", "resnext50_32x4d")
TORCHVISION += ("wide_resnet101_2", "alexnet", "inception_v3", "squeezenet1_0", "vgg11")
TORCHVISION += ("densenet121", "densenet161", "densenet169", "densenet201", "vit_b_16")
TORCHVISION += ("convnext_tiny", "convnext_small", "convnext_base", "convnext_large", "efficientnet_v2_s")
TORCHVISION += tuple(f"efficientnet_b{number}" for number in range(5))
TORCHVISION += ("mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "shufflenet_v2_x1_0")
TIMM = ("inception_resnet_v2", "inception_v4")
# Where it is not 224.
SIZES = {"efficientnet_b1": 240, "efficientnet_b2": 288, "efficientnet_b3": 300, "efficientnet_b4": 380, "efficientnet_v2_s": 384}
SIZES |= dict.fromkeys(("inception_v3", *TIMM), 299)


class NormalisedHead(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.weight = nn.Parameter(F.normalize(torch.rand(features, classes) * 2 - 1, dim=0))

    def forward(self, x):
        return F.normalize(x, dim=1) @ F.normalize(self.weight, dim=0)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.extra = stride, outputs - inputs

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        if self.extra:
            before = self.extra // 2
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.extra - before))
        return F.relu(y + x, inplace=True)


class SmallResNet(nn.Module):
    """The ResNets for CIFAR: three stages, shortcuts without parameters."""

    def __init__(self, depth, width, channels, classes, normalised):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        blocks = (depth - 2) // 6
        for stage in (1, 2, 3):
            outputs = width * 2 ** (stage - 1)
            inputs = outputs if stage == 1 else outputs // 2
            layers = [Block(inputs if b == 0 else outputs, outputs, 2 if b == 0 and stage > 1 else 1) for b in range(blocks)]
            setattr(self, f"layer{stage}", nn.Sequential(*layers))
        self.fc = NormalisedHead(4 * width, classes) if normalised else nn.Linear(4 * width, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class DenseLayer(nn.Module):
    def __init__(self, inputs, growth, bc):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.bc = bc
        if bc:
            self.conv1 = nn.Conv2d(inputs, 4 * growth, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(4 * growth)
            self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)
        else:
            self.conv1 = nn.Conv2d(inputs, growth, 3, padding=1, bias=False)

    def forward(self, x):
        y = self.conv1(F.relu(self.bn1(x), inplace=True))
        if self.bc:
            y = self.conv2(F.relu(self.bn2(y), inplace=True))
        return torch.cat([x, y], 1)


class DenseBlock(nn.Module):
    def __init__(self, layers, inputs, growth, bc):
        super().__init__()
        self.layer = nn.Sequential(*[DenseLayer(inputs + l * growth, growth, bc) for l in range(layers)])

    def forward(self, x):
        return self.layer(x)


class Transition(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, x):
        return F.avg_pool2d(self.conv1(F.relu(self.bn1(x), inplace=True)), 2)


class SmallDenseNet(nn.Module):
    """The papers' DenseNet for CIFAR, for 32x32 pixels. `bc`: bottlenecks, and transitions that halve the channels."""

    def __init__(self, depth, growth, bc, channels, classes, normalised):
        super().__init__()
        layers, width = (depth - 4) // (6 if bc else 3), 2 * growth
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        for block in (1, 2, 3):
            setattr(self, f"block{block}", DenseBlock(layers, width, growth, bc))
            width += layers * growth
            if block < 3:
                outputs = width // 2 if bc else width
                setattr(self, f"trans{block}", Transition(width, outputs))
                width = outputs
        self.bn1 = nn.BatchNorm2d(width)
        self.fc = NormalisedHead(width, classes) if normalised else nn.Linear(width, classes)

    def forward(self, x):
        x = self.trans1(self.block1(self.conv1(x)))
        x = self.trans2(self.block2(x))
        x = F.relu(self.bn1(self.block3(x)), inplace=True)
        return self.fc(x.mean((2, 3)))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if inputs != outputs or stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        return F.relu(self.bn3(self.conv3(y)) + (x if self.downsample is None else self.downsample(x)), inplace=True)


class ResNet50(nn.Module):
    """torchvision's, for machines that lack torchvision."""

    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        inputs = 64
        for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), 1):
            layers = []
            for block in range(blocks):
                layers.append(Bottleneck(inputs, width, 2 if block == 0 and stage > 1 else 1))
                inputs = 4 * width
            setattr(self, f"layer{stage}", nn.Sequential(*layers))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class SameConv2d(nn.Conv2d):
    """Padded as TensorFlow pads: the output has ceil(size / stride) pixels."""

    def forward(self, x):
        pads = []
        for size, stride, kernel in zip(x.shape[:-3:-1], self.stride[::-1], self.kernel_size[::-1]):
            both = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            pads += [both // 2, both - both // 2]
        return F.conv2d(F.pad(x, pads), self.weight, None, self.stride, 0, 1, self.groups)


class LiteBlock(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride, expansion, skipped):
        super().__init__()
        norm = lambda channels: nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)
        inner = expansion * inputs
        if inner != inputs:
            self._expand_conv, self._bn0 = SameConv2d(inputs, inner, 1, bias=False), norm(inner)
        self._depthwise_conv = SameConv2d(inner, inner, kernel, stride, groups=inner, bias=False)
        self._bn1 = norm(inner)
        self._project_conv, self._bn2 = SameConv2d(inner, outputs, 1, bias=False), norm(outputs)
        self.adds, self.skipped = stride == 1 and inputs == outputs, skipped

    def forward(self, x):
        y = F.relu6(self._bn0(self._expand_conv(x))) if hasattr(self, "_expand_conv") else x
        y = self._bn2(self._project_conv(F.relu6(self._bn1(self._depthwise_conv(y)))))
        if not self.adds:
            return y
        if self.training and self.skipped:
            keeps = 1 - self.skipped
            y = y / keeps * torch.bernoulli(torch.full((len(y), 1, 1, 1), keeps, dtype=y.dtype, device=y.device))
        return y + x


class EfficientNetLite0(nn.Module):
    """That of the Python package efficientnet_lite_pytorch."""

    def __init__(self, classes, stochastic_depth=0.2, dropout=0.2):
        super().__init__()
        norm = lambda channels: nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)
        stages = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4))
        stages += ((6, 3, 1, 320, 1),)
        self._conv_stem, self._bn0 = SameConv2d(3, 32, 3, 2, bias=False), norm(32)
        self._blocks, inputs, count = nn.ModuleList(), 32, sum(stage[-1] for stage in stages)
        for expansion, kernel, stride, outputs, blocks in stages:
            for block in range(blocks):
                skipped = stochastic_depth * len(self._blocks) / count
                self._blocks.append(LiteBlock(inputs, outputs, kernel, 1 if block else stride, expansion, skipped))
                inputs = outputs
        self._conv_head, self._bn1 = SameConv2d(inputs, 1280, 1, bias=False), norm(1280)
        self.dropout, self._fc = dropout, nn.Linear(1280, classes)

    def forward(self, x):
        x = F.relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        x = F.relu6(self._bn1(self._conv_head(x))).mean((2, 3))
        return self._fc(F.dropout(x, self.dropout, self.training))


def has_torchvision():
    return importlib.util.find_spec("torchvision") is not None


def torchvision_models():
    """The module torchvision.models. Imported on demand: only some models need it."""
    try:
        from torchvision import models
    except ImportError as error:
        raise SystemExit(f"torchvision is needed, one that fits torch {torch.__version__}: pip install torchvision ({error})")
    return models


def torchvision_network(name, classes, **options):
    """torchvision's `name` with first weights. Inception-v3 is without the auxiliary classifier, as the code of the thesis has it."""
    if name == "inception_v3":
        options = {"aux_logits": False, "init_weights": True, **options}
    return torchvision_models().get_model(name, weights=None, num_classes=classes, **options)


def timm_network(name, classes):
    """timm's `name` with first weights. Imported on demand."""
    import timm

    return timm.create_model(name, num_classes=classes)


def make(name, classes=100):
    """settrain's model `name` as it is without further keys, for colour images."""
    if name in SMALL_RESNETS:
        return SmallResNet(SMALL_RESNETS[name], 16, 3, classes, normalised=False)
    if name in SMALL_DENSENETS:
        return SmallDenseNet(*SMALL_DENSENETS[name], bc=True, channels=3, classes=classes, normalised=False)
    if name == "resnet50" and not has_torchvision():
        return ResNet50(classes)
    if name == "efficientnet_lite0":
        return EfficientNetLite0(classes)
    if name in TORCHVISION:
        return torchvision_network(name, classes)
    if name in TIMM:
        return timm_network(name, classes)
    known = [*SMALL_RESNETS, *SMALL_DENSENETS, *TORCHVISION, *TIMM, "efficientnet_lite0"]
    raise SystemExit(f"no model {name!r}; there are {', '.join(known)}")


def usual_size(name):
    """Height and width of the images that the model was made for."""
    return SIZES.get(name, 224 if name in TORCHVISION or name == "efficientnet_lite0" else 32)


def usual_classes(name):
    return 1000 if usual_size(name) > 32 else 100


def parameter_list(name, classes, model):
    """The text of a file NAME.params.txt: every entry of the state_dict, and their numbers."""
    parameters, state = dict(model.named_parameters()), model.state_dict()
    lines = [f"# {name}, {classes} classes: state_dict entries in order: index, dtype, shape, name"]
    for index, (entry, tensor) in enumerate(state.items()):
        fields = [str(index), str(tensor.dtype).removeprefix("torch."), str(list(tensor.shape)).replace(" ", ""), entry]
        lines.append("\t".join(fields if entry in parameters else [*fields, "buffer"]))
    elements = sum(p.numel() for p in parameters.values())
    buffers = sum(t.numel() for entry, t in state.items() if entry not in parameters)
    counts = f"entries {len(state)}, parameters {len(parameters)}, parameter elements {elements}, buffer elements {buffers}"
    lines.append(f"# {counts}")
    return "\n".join(lines) + "\n"
