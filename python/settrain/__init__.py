"""Losses, metrics and set rules for set-valued classification in PyTorch.

    settrain.losses      losses for sets of classes, as torch.nn.Modules
    settrain.functional  what the losses are made of, as differentiable functions
    settrain.metrics     top-K, average-K and macro-averaged accuracies, calibration
    settrain.sets        rules that answer with sets, calibrated and with guarantees
    settrain.load        a model that `settrain export` wrote, as a torch.nn.Module

They are the kernels of the program settrain; docs/python.md of its repository shows them at work.
"""

from settrain import functional, losses, metrics, sets
from settrain._model import TrainedModel, load
from settrain._version import __version__

__all__ = ["TrainedModel", "__version__", "functional", "load", "losses", "metrics", "sets"]
