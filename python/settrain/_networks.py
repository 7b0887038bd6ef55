"""The program's convolutional networks that torchvision lacks, with the program's names of their tensors. Only for load(): first
weights are PyTorch's.

Forward methods take images [batch, channels, height, width] and return scores [batch, classes].
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.added = stride, outputs - inputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        before = self.added // 2  # channels of zeros, the paper's shortcut A
        shortcut = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.added - before))
        return F.relu(y + shortcut)


class SmallResNet(nn.Module):
    """For images of about 32x32 pixels (He et al., 2016, section 4.2). depth: 6 n + 2. width: channels of the first stage."""

    def __init__(self, depth: int, width: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self._stage(depth, width, width)
        self.layer2 = self._stage(depth, width, 2 * width)
        self.layer3 = self._stage(depth, 2 * width, 4 * width)
        self.fc = nn.Linear(4 * width, classes)

    @staticmethod
    def _stage(depth: int, inputs: int, outputs: int) -> nn.Sequential:
        later = [ResidualBlock(outputs, outputs, 1) for _ in range((depth - 2) // 6 - 1)]
        return nn.Sequential(ResidualBlock(inputs, outputs, outputs // inputs), *later)

    def forward(self, images: Tensor) -> Tensor:
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(images))))))
        scores: Tensor = self.fc(x.mean((2, 3)))
        return scores


class DenseLayer(nn.Module):
    def __init__(self, inputs: int, growth: int, bc: bool) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, 4 * growth, 1, bias=False) if bc else nn.Conv2d(inputs, growth, 3, 1, 1, bias=False)
        if bc:
            self.bn2 = nn.BatchNorm2d(4 * growth)
            self.conv2 = nn.Conv2d(4 * growth, growth, 3, 1, 1, bias=False)
        self.bc = bc

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(F.relu(self.bn1(x)))
        return torch.cat([x, self.conv2(F.relu(self.bn2(y))) if self.bc else y], 1)


class Transition(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(self.conv1(F.relu(self.bn1(x))), 2)


class SmallDenseNet(nn.Module):
    """For images of 32x32 pixels (Huang et al., 2017, section 4). `bc`: bottlenecks, and transitions that halve the channels."""

    def __init__(self, depth: int, growth: int, bc: bool, classes: int) -> None:
        super().__init__()
        layers, channels = (depth - 4) // (6 if bc else 3), 2 * growth
        self.conv1 = nn.Conv2d(3, channels, 3, 1, 1, bias=False)
        for block in (1, 2, 3):
            dense = [DenseLayer(channels + layer * growth, growth, bc) for layer in range(layers)]
            self.add_module(f"block{block}", nn.ModuleDict({"layer": nn.Sequential(*dense)}))
            channels += layers * growth
            if block < 3:
                outputs = channels // 2 if bc else channels
                self.add_module(f"trans{block}", Transition(channels, outputs))
                channels = outputs
        self.bn1 = nn.BatchNorm2d(channels)
        self.fc = nn.Linear(channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.conv1(images)
        for block in (1, 2, 3):
            x = self.get_submodule(f"block{block}.layer")(x)
            if block < 3:
                x = self.get_submodule(f"trans{block}")(x)
        scores: Tensor = self.fc(F.relu(self.bn1(x)).mean((2, 3)))
        return scores


class SameConv2d(nn.Conv2d):
    """Padded as TensorFlow pads: the output has ceil(size / stride) pixels, and an odd one of padding is at the right or bottom."""

    def forward(self, x: Tensor) -> Tensor:
        pads: list[int] = []
        for size in (x.shape[3], x.shape[2]):
            both = max((-(-size // self.stride[0]) - 1) * self.stride[0] + self.kernel_size[0] - size, 0)
            pads += [both // 2, both - both // 2]
        return F.conv2d(F.pad(x, pads), self.weight, None, self.stride, 0, 1, self.groups)


def lite_norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class LiteBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = expansion * inputs
        self.expands, self.adds = expansion > 1, stride == 1 and inputs == outputs
        if self.expands:
            self._expand_conv, self._bn0 = SameConv2d(inputs, inner, 1, bias=False), lite_norm(inner)
        self._depthwise_conv = SameConv2d(inner, inner, kernel, stride, groups=inner, bias=False)
        self._bn1 = lite_norm(inner)
        self._project_conv, self._bn2 = SameConv2d(inner, outputs, 1, bias=False), lite_norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = self._bn2(self._project_conv(F.relu6(self._bn1(self._depthwise_conv(y)))))
        return y + x if self.adds else y


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0, without its stochastic depth."""

    # expansion, kernel, stride, channels, blocks
    STAGES = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1))

    def __init__(self, classes: int, dropout: float) -> None:
        super().__init__()
        inputs, blocks = 32, []
        for expansion, kernel, stride, outputs, count in self.STAGES:
            for block in range(count):
                blocks.append(LiteBlock(inputs, outputs, kernel, 1 if block else stride, expansion))
                inputs = outputs
        self._conv_stem, self._bn0 = SameConv2d(3, 32, 3, 2, bias=False), lite_norm(32)
        self._blocks = nn.Sequential(*blocks)
        self._conv_head, self._bn1 = SameConv2d(inputs, 1280, 1, bias=False), lite_norm(1280)
        self.dropout, self._fc = dropout, nn.Linear(1280, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self._blocks(F.relu6(self._bn0(self._conv_stem(images))))
        features = F.relu6(self._bn1(self._conv_head(x))).mean((2, 3))
        scores: Tensor = self._fc(F.dropout(features, self.dropout, self.training))
        return scores
