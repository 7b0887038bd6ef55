#!/usr/bin/env python3
"""Records what torchvision makes of images by its operations and policies of augmentation, on Pillow images.

    python scripts/record_augmentation_golden.py tests/golden/augmentation.json    (scripts/requirements-test.txt)

The images are made by formulas (`numbers`), which tests/loader/augmentation_golden.h repeats. `operations`: for each image the first
half of the SHA-256 of the results of an operation with all of its `amounts`, one after the other. `chains`: the same of 200
draws of torchvision's transforms, whose random numbers come from settrain's Philox words (src/loader/augmentation.cpp) in the place
of torch's. `small`: the bytes of one image and of an operation's results on it.

PyTorch computes the magnitudes by torch.linspace, whose vectorised versions round otherwise than the plain one, so that the
middle translation of TrivialAugment's 31 is 15 pixels on a processor with AVX2 and 16 on others. This takes the plain one.
"""

import hashlib
import json
import os
import pathlib
import sys

os.environ["ATEN_CPU_CAPABILITY"] = "default"

import PIL
import torch
import torchvision
from PIL import Image
from torchvision import transforms
from torchvision.transforms import autoaugment, functional

# kind, height, width, channels
IMAGES = [("smooth", 32, 32, 3), ("noise", 32, 32, 3), ("dim", 33, 47, 3), ("smooth", 96, 64, 3), ("noise", 28, 28, 1), ("dim", 40, 25, 1),
          ("flat", 9, 9, 3), ("noise", 2, 7, 3)]
SMALL = ("smooth", 6, 5, 3)
SIGNED = ["ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness"]
DRAWS, SEED, EPOCH = 200, 7, 3
MASK = 0xFFFFFFFF


def numbers(kind, height, width, channels):
    """The image's bytes, rows from the top, channels interleaved."""
    found = bytearray()
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                mixed = (x * 374761393 + y * 668265263 + c * 974634777 + 12345) & MASK
                mixed = ((mixed ^ (mixed >> 13)) * 1274126177) & MASK
                noise = (mixed ^ (mixed >> 16)) & 255
                smooth = (40 * c + 5 * x + 3 * y + ((x * y) >> 3)) & 255
                found.append({"smooth": smooth, "noise": noise, "dim": 60 + (noise & 63) + 9 * c, "flat": 77 + c}[kind])
    return bytes(found)


def picture(kind, height, width, channels):
    return Image.frombytes("RGB" if channels == 3 else "L", (width, height), numbers(kind, height, width, channels))


def digest(results):
    sha = hashlib.sha256()
    for result in results:
        sha.update(result.tobytes())
    return sha.hexdigest()[:32]


def all_amounts():
    """The magnitudes of all spaces and their negatives, by torchvision's names; those of translations, which depend on the size, by hand."""
    spaces = [autoaugment.RandAugment()._augmentation_space(31, (32, 32)), autoaugment.AutoAugment()._augmentation_space(10, (32, 32)),
              autoaugment.TrivialAugmentWide()._augmentation_space(31)]
    found = {}
    for space in spaces:
        for name, (magnitudes, signed) in space.items():
            values = [float(m) for m in magnitudes] if magnitudes.ndim else [0.0]
            found.setdefault(name, []).extend(values + [-value for value in values] * signed)
    del found["Identity"]
    found["TranslateX"] = found["TranslateY"] = [0.0, 1.0, -1.0, 3.0, -3.0, 16.0, -16.0, 40.0, -40.0]
    found["Rotate"] += [180.0, 0.5, 359.75, 120.0]
    found["Hue"] = [0.0, 0.1, -0.1, 0.25, -0.33, 0.5, -0.5]
    found["Invert"] = [0.0]
    for name in ("Brightness", "Contrast", "Color"):
        found[name] += [1.7, -1.0]
    return {name: sorted(set(values)) for name, values in found.items()}


def applied(image, name, amount):
    if name == "Hue":
        return functional.adjust_hue(image, amount)
    return autoaugment._apply_op(image, name, amount, functional.InterpolationMode.NEAREST, None)


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., SC 2011)."""
    x, (low, high) = list(counter), (key & MASK, key >> 32)
    for _ in range(10):
        first, second = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(second >> 32) ^ x[1] ^ low, second & MASK, (first >> 32) ^ x[3] ^ high, first & MASK]
        low, high = (low + 0x9E3779B9) & MASK, (high + 0xBB67AE85) & MASK
    return x


def words(sample, block):
    return philox((sample, block, 0, EPOCH), SEED ^ 0x13198A2E03707344)


def below(word, n):
    return (word * n) >> 32


def between(least, most, word):
    return least + (most - least) * (word / 2**32)


class FromPhilox:
    """Stands in for torch.randint in the two policies that draw operation, sign and bin one by one."""

    def __init__(self, sample, operations):
        self.sample, self.operations, self.drawn = sample, operations, 0
        self.words = None

    def __call__(self, high, size, dtype=None):
        if high == self.operations:
            self.words = words(self.sample, 16 + self.drawn)
            self.drawn += 1
            return torch.tensor([below(self.words[0], high)])
        return torch.tensor([below(self.words[1] if high == 2 else self.words[2], high)])


def space_chain(transform):
    def run(image, sample):
        real = torch.randint
        torch.randint = FromPhilox(sample, 14)
        try:
            return transform(image)
        finally:
            torch.randint = real

    return run


def auto_chain(policy):
    transform = transforms.AutoAugment(policy)

    def run(image, sample):
        random = words(sample, 16)
        probabilities = torch.tensor([random[1] / 2**32, random[2] / 2**32], dtype=torch.float64)
        signs = torch.tensor([random[3] & 1, random[3] >> 1 & 1])
        transform.get_params = lambda count: (below(random[0], count), probabilities, signs)
        return transform(image)

    return run


def order_of_four(number):
    order, left = [0, 1, 2, 3], 4
    while left > 1:
        place = number % left
        order[left - 1], order[place] = order[place], order[left - 1]
        number, left = number // left, left - 1
    return order


def jitter_chain(brightness, contrast, saturation, hue):
    transform = transforms.ColorJitter(brightness, contrast, saturation, hue)

    def run(image, sample):
        random = words(sample, 65)
        ranges = (transform.brightness, transform.contrast, transform.saturation, transform.hue)
        factors = [between(*ends, word) if ends else None for ends, word in zip(ranges, random)]
        transform.get_params = lambda *_: (order_of_four(below(words(sample, 66)[0], 24)), *factors)
        return transform(image)

    return run


def rotate_chain(degrees):
    transform = transforms.RandomRotation(degrees)

    def run(image, sample):
        transform.get_params = lambda ends: between(*ends, words(sample, 64)[0])
        return transform(image)

    return run


def in_turn(*chains):
    def run(image, sample):
        for chain in chains:
            image = chain(image, sample)
        return image

    return run


# Settings of the section data, and the same by torchvision.
CHAINS = [
    ({"augment": "trivial"}, space_chain(transforms.TrivialAugmentWide())),
    ({"augment": "rand(2, 9)"}, space_chain(transforms.RandAugment(2, 9))),
    ({"augment": "rand(5, 30)"}, space_chain(transforms.RandAugment(5, 30))),
    ({"augment": "auto_imagenet"}, auto_chain(transforms.AutoAugmentPolicy.IMAGENET)),
    ({"augment": "auto_cifar"}, auto_chain(transforms.AutoAugmentPolicy.CIFAR10)),
    ({"augmentation.rotate": 25}, rotate_chain(25)),
    ({"augmentation.brightness": 0.4, "augmentation.contrast": 0.5, "augmentation.saturation": 0.6, "augmentation.hue": 0.1},
     jitter_chain(0.4, 0.5, 0.6, 0.1)),
    ({"augment": "rand(1, 5)", "augmentation.rotate": 10, "augmentation.brightness": 1.5},
     in_turn(space_chain(transforms.RandAugment(1, 5)), rotate_chain(10), jitter_chain(1.5, 0, 0, 0))),
]


def main():
    output = pathlib.Path(sys.argv[1])
    amounts, operations, chains, small = all_amounts(), [], [], []
    for sizes in IMAGES:
        image = picture(*sizes)
        for name, values in amounts.items():
            operations.append({"image": sizes, "operation": name, "sha256": digest(applied(image, name, value) for value in values)})
    for sizes in IMAGES[:2] + IMAGES[3:5]:
        for settings, chain in CHAINS:
            if sizes[3] == 1 and ("augmentation.saturation" in settings):
                continue
            results = [chain(picture(*sizes), sample) for sample in range(DRAWS)]
            chains.append({"image": sizes, "settings": settings, "draws": DRAWS, "seed": SEED, "epoch": EPOCH, "sha256": digest(results)})
    for name, amount in [("ShearX", 0.3), ("Rotate", 27.0), ("Color", 0.5), ("Sharpness", 0.9), ("Equalize", 0.0), ("Hue", 0.2)]:
        small.append({"operation": name, "amount": amount, "bytes": applied(picture(*SMALL), name, amount).tobytes().hex()})
    golden = {"made_with": f"torchvision {torchvision.__version__.split('+')[0]}, pillow {PIL.__version__}", "small_image": SMALL, "small": small,
              "chains": chains, "amounts": amounts, "operations": operations}
    output.write_text(json.dumps(golden).replace('}, {', '},\n {') + "\n")


if __name__ == "__main__":
    main()
