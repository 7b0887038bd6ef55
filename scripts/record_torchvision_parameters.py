#!/usr/bin/env python3
"""Records the names, shapes and types of the entries of torchvision's models, in the order of their state_dict.

Usage: record_torchvision_parameters.py OUTPUT_FOLDER

Writes NAME.params.txt, with 1000 classes, for every model of torchvision that settrain has, and for the convolutional ones of timm (1.0.31).
"""

import pathlib
import sys

import torch

from reference_models import TIMM, TORCHVISION, make, parameter_list, torchvision_models

VERSION = "0.26"
CLASSES = 1000


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    torchvision_models()
    import torchvision

    if not torchvision.__version__.startswith(f"{VERSION}."):
        raise SystemExit(f"the golden files are those of torchvision {VERSION}; this is {torchvision.__version__}")
    folder = pathlib.Path(sys.argv[1])
    for name in (*TORCHVISION, *TIMM):
        with torch.device("meta"):  # no memory, no time for first weights
            model = make(name, CLASSES)
        (folder / f"{name}.params.txt").write_text(parameter_list(name, CLASSES, model))


if __name__ == "__main__":
    main()
