"""Random weights of torchvision's models, and the logits that they give there.

make MODEL FILE [legacy]         writes FILE.pth by torch.save, and the same weights as FILE.safetensors
logits MODEL FILE IMAGES LOGITS  loads FILE into MODEL, name by name; IMAGES and LOGITS are safetensors files of one tensor
"""

import sys

import torch
import torchvision
from safetensors.torch import load_file, save_file

CLASSES = 7


def make(name, file, form="zip"):
    torch.manual_seed(5)
    weights = torchvision.models.get_model(name, num_classes=CLASSES).state_dict()
    for tensor in weights.values():
        if tensor.is_floating_point():
            tensor.uniform_(0.5, 1.5)  # none is zero, so that a step of next to nothing changes no bit
        else:
            tensor.fill_(3)
    torch.save(weights, file + ".pth", _use_new_zipfile_serialization=form == "zip")
    save_file(weights, file + ".safetensors")


def logits(name, file, images, output):
    model = torchvision.models.get_model(name, num_classes=CLASSES).eval()
    model.load_state_dict(load_file(file), strict=True)
    with torch.no_grad():
        save_file({"logits": model(load_file(images)["images"])}, output)


{"make": make, "logits": logits}[sys.argv[1]](*sys.argv[2:])
