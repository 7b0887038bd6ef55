"""Metrics that are fed batch by batch, in one process or several."""

import math
from typing import Literal
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, distributed

from settrain._ops import check_average_k_score, check_size, integer, number, ops, scores_and_labels

AverageKScore = Literal["softmax", "sigmoid", "raw"]


def is_empty(scores: Tensor, labels: Tensor) -> bool:
    """Whether it is a batch of no samples, which changes nothing."""
    return scores.dim() == 2 and labels.dim() == 1 and len(scores) == len(labels) == 0


class Accumulator:
    """Base of the streaming metrics.

    `update()` takes a batch, `compute()` gives the value over all since the start or `reset()`, NaN where there were none. Where
    torch.distributed has several processes, compute() is over the batches of all of them: each must call it, and each gets the same value.

    group: the processes, a torch.distributed.ProcessGroup; None: all.
    """

    def __init__(self, *, group: "distributed.ProcessGroup | None" = None) -> None:
        self.group = group
        self.reset()

    def reset(self) -> None:
        """Forgets all batches."""
        raise NotImplementedError

    def compute(self) -> float:
        """The value over all batches of all processes."""
        raise NotImplementedError

    def _is_shared(self) -> bool:
        return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size(self.group) > 1

    def _device(self) -> torch.device:
        """Where the processes' messages must lie."""
        return torch.device("cuda" if distributed.get_backend(self.group) == "nccl" else "cpu")

    def _sum(self, counts: Tensor) -> Tensor:
        """The sum over the processes of `counts`, int64 on the CPU, of the same shape in each."""
        if not self._is_shared():
            return counts
        total = counts.to(self._device(), copy=True)
        distributed.all_reduce(total, group=self.group)
        return total.cpu()

    def _rows(self, rows: Tensor) -> Tensor:
        """The rows of all processes, [any number, columns] on the CPU; a process may have none, and then 0 columns too."""
        if not self._is_shared():
            return rows
        device = self._device()
        shape = torch.tensor([*rows.shape, rows.element_size()], device=device)
        shapes = [torch.empty_like(shape) for _ in range(distributed.get_world_size(self.group))]
        distributed.all_gather(shapes, shape, group=self.group)
        samples, columns, size = torch.stack(shapes).amax(0).tolist()
        if any(int(of_part[1]) not in (0, columns) for of_part in shapes):
            raise ValueError(f"scores: expected as many classes in each process, got {[int(of_part[1]) for of_part in shapes]}")
        dtype = torch.float64 if size == 8 and rows.is_floating_point() else rows.dtype
        sent = torch.zeros(samples, columns, dtype=dtype, device=device)
        sent[: rows.shape[0], : rows.shape[1]] = rows.to(device)
        received = [torch.empty_like(sent) for _ in shapes]
        distributed.all_gather(received, sent, group=self.group)
        return torch.cat([part[: int(of_part[0])].cpu() for part, of_part in zip(received, shapes)])


class TopKAccuracy(Accumulator):
    """topk_accuracy() batch by batch: the share of samples whose label is among the k largest scores.

    k: 1 to the number of classes, else a ValueError. On CUDA every update waits for the device.
    """

    def __init__(self, k: int, *, group: "distributed.ProcessGroup | None" = None) -> None:
        self.k = integer("k", k)
        if self.k < 1:
            raise ValueError(f"k: expected a number above 0, got {k!r}")
        super().__init__(group=group)

    def reset(self) -> None:
        self._counts = torch.zeros(2, dtype=torch.int64)  # hits, samples

    def update(self, scores: object, labels: object) -> None:
        """`scores` [samples, classes], finite; `labels` [samples] integers."""
        of_scores, of_labels = scores_and_labels(scores, labels)
        check_size("k", self.k, of_scores)
        if is_empty(of_scores, of_labels):
            return
        hits = ops.label_ranks(of_scores, of_labels) < self.k
        self._counts += torch.tensor([int(hits.sum()), len(hits)])

    def compute(self) -> float:
        hits, samples = self._sum(self._counts).tolist()
        return hits / samples if samples else math.nan


class MacroTopKAccuracy(TopKAccuracy):
    """macro_topk_accuracy() batch by batch: the mean over classes with samples of their top-k accuracies.

    classes: their number, which all batches have, else a ValueError. k: 1 to `classes`. On CUDA every update waits for the device.
    """

    def __init__(self, classes: int, k: int, *, group: "distributed.ProcessGroup | None" = None) -> None:
        self.classes = integer("classes", classes)
        if self.classes < 1:
            raise ValueError(f"classes: expected a number above 0, got {classes!r}")
        super().__init__(k, group=group)
        if self.classes < self.k:
            raise ValueError(f"k: expected at most {classes}, the number of classes, got {k!r}")

    def reset(self) -> None:
        self._counts = torch.zeros(2, self.classes, dtype=torch.int64)

    def update(self, scores: object, labels: object) -> None:
        """`scores` [samples, classes], finite; `labels` [samples] integers."""
        of_scores, of_labels = scores_and_labels(scores, labels)
        if of_scores.dim() == 2 and of_scores.shape[1] != self.classes:
            raise ValueError(f"scores: expected {self.classes} classes, got {of_scores.shape[1]}")
        if is_empty(of_scores, of_labels):
            return
        hits = ops.label_ranks(of_scores, of_labels) < self.k
        self._counts[0] += torch.bincount(of_labels[hits], minlength=self.classes).cpu()
        self._counts[1] += torch.bincount(of_labels, minlength=self.classes).cpu()

    def compute(self) -> float:
        hits, samples = self._sum(self._counts)
        seen = samples > 0
        return float((hits[seen].double() / samples[seen]).mean())


class AverageKAccuracy(Accumulator):
    """average_k_accuracy() batch by batch: the share of samples whose label is in a set, where the sets of all batches hold k classes on
    average. Its threshold depends on all scores, so it keeps them in the main memory: 4 bytes for each sample and class, in compute() those of all
    processes.

    k: above 0, at most the number of classes, which all batches have; need not be whole. average_k_score, strict: as of accuracies(). Wrong values
    are ValueErrors. On CUDA every update waits for the device.
    """

    def __init__(
        self,
        k: float,
        *,
        average_k_score: AverageKScore = "softmax",
        strict: bool = False,
        group: "distributed.ProcessGroup | None" = None,
    ) -> None:
        self.k = number("k", k)
        if not 0 < self.k < math.inf:
            raise ValueError(f"k: expected a number above 0, got {k!r}")
        check_average_k_score(average_k_score)
        self.average_k_score, self.strict = average_k_score, strict
        super().__init__(group=group)

    def reset(self) -> None:
        self._scores: list[Tensor] = []
        self._labels: list[Tensor] = []

    def update(self, scores: object, labels: object) -> None:
        """`scores` [samples, classes], finite; `labels` [samples] integers."""
        of_scores, of_labels = scores_and_labels(scores, labels)
        check_size("k", self.k, of_scores)
        if self._scores and of_scores.dim() == 2 and of_scores.shape[1] != self._scores[0].shape[1]:
            raise ValueError(f"scores: expected {self._scores[0].shape[1]} classes as in the batches before, got {of_scores.shape[1]}")
        if is_empty(of_scores, of_labels):
            return
        ops.label_ranks(of_scores, of_labels)  # checks them
        self._scores.append(of_scores.to("cpu", copy=True))
        self._labels.append(of_labels.to("cpu", copy=True))

    def compute(self) -> float:
        scores = self._rows(torch.cat(self._scores) if self._scores else torch.empty(0, 0))
        labels = self._rows(torch.cat(self._labels).unsqueeze(1) if self._labels else torch.empty(0, 0, dtype=torch.int64))
        if not len(scores):
            return math.nan
        _, values = ops.accuracies(scores, labels.squeeze(1), [], [self.k], self.average_k_score, self.strict, None, [])
        return float(values[0])


class Coverage(Accumulator):
    """coverage() batch by batch: the share of samples whose set holds their label. Wrong shapes, and labels that are no class, are ValueErrors."""

    def reset(self) -> None:
        self._counts = torch.zeros(2, dtype=torch.int64)

    def update(self, sets: object, labels: object) -> None:
        """`sets` [samples, classes] bool; `labels` [samples] integers."""
        if is_empty(*scores_and_labels(sets, labels, "sets")):
            return
        is_covered = covered(sets, labels)
        self._counts += torch.tensor([int(is_covered.sum()), len(is_covered)])

    def compute(self) -> float:
        hits, samples = self._sum(self._counts).tolist()
        return hits / samples if samples else math.nan


def covered(sets: object, labels: object) -> Tensor:
    """[samples] bool: whether each set holds the label. At least one sample."""
    rows, of_labels = scores_and_labels(sets, labels, "sets")
    if rows.dtype != torch.bool or rows.dim() != 2 or of_labels.shape != rows.shape[:1] or not len(of_labels):
        raise ValueError(
            f"expected sets [samples, classes] bool and labels [samples], got {list(rows.shape)} {rows.dtype} and {list(of_labels.shape)}"
        )
    if of_labels.min() < 0 or of_labels.max() >= rows.shape[1]:
        raise ValueError(f"labels: expected classes from 0 to {rows.shape[1] - 1}, got {of_labels.min()} to {of_labels.max()}")
    return rows.gather(1, of_labels.unsqueeze(1)).squeeze(1)
