"""settrain.metrics: against recorded values, formulas written out, and properties."""

from package import SOURCE, TensorTest, drawn, golden, main

import math
import re
import tempfile
import warnings

import numpy
import torch

from settrain import functional, metrics


class Accuracies(TensorTest):
    def test_against_a_stable_sort(self):
        scores, labels = drawn()
        order = scores.sort(dim=1, descending=True, stable=True).indices
        ranks = order.eq(labels.unsqueeze(1)).long().argmax(1)
        self.assertTrue(torch.equal(metrics.label_ranks(scores, labels), ranks))
        for k in (1, 3, 12):
            hit = (ranks < k).double()
            self.assertAlmostEqual(metrics.topk_accuracy(scores, labels, k), hit.mean().item(), 12)
            by_class = [hit[labels == c].mean().item() for c in labels.unique()]
            self.assertAlmostEqual(metrics.macro_topk_accuracy(scores, labels, k), sum(by_class) / len(by_class), 12)

    def test_average_k_against_algorithm_1(self):
        scores, labels = drawn()
        p = scores.softmax(1)
        for k in (0.5, 2, 3.7):
            count = int(k * len(labels))
            ordered = p.flatten().sort(descending=True).values
            threshold = (ordered[count - 1] + ordered[count]).item() / 2
            self.assertAlmostEqual(metrics.average_k_thresholds(p, (k,))[0], threshold, 12)
            chosen = metrics.returned_classes(p, threshold)
            self.assertTrue(torch.equal(chosen, p >= threshold))
            values = metrics.accuracies(scores, labels, k=(), average_k=(k,))
            self.assertAlmostEqual(values[f"avg{k:g}"], metrics.coverage(chosen, labels), 12)
            self.assertAlmostEqual(values[f"avg{k:g}_size"], chosen.sum(1).double().mean().item(), 12)
            self.assertAlmostEqual(metrics.average_k_accuracy(scores, labels, k), values[f"avg{k:g}"], 12)

    def test_thresholds_of_other_scores(self):
        scores, labels = drawn()
        others, _ = drawn(seed=4)
        values = metrics.accuracies(scores, labels, average_k=(2,), threshold_scores=others)
        self.assertAlmostEqual(values["avg2_lambda"], metrics.average_k_thresholds(others.softmax(1), (2,))[0], 12)

    def test_recorded_values(self):
        cases = golden("metrics.json")["cases"]
        self.assertGreater(len(cases), 0)
        for case in cases:
            with self.subTest(case=case["name"]):
                val, test, expected = (case[part] for part in ("val", "test", "expected"))
                p, val_p = (torch.tensor(part["probabilities"], dtype=torch.float64) for part in (test, val))
                top_k, average_k = case["k_values"], case["average_k_values"]
                options = {"average_k_score": "raw", "threshold_scores": val_p, "train_counts": case["train_counts"]}
                values = metrics.accuracies(p, test["labels"], k=top_k, average_k=average_k, **options)
                for k in top_k:
                    self.assertAlmostEqual(values[f"top{k}"], expected["topk_accuracy"][str(k)], 12)
                    self.assertAlmostEqual(values[f"macro_top{k}"], expected["macro_topk_accuracy"][str(k)], 12)
                for k in average_k:
                    of_k = expected["average_k"][str(k)]
                    self.assertAlmostEqual(values[f"avg{k:g}"], of_k["test_accuracy"], 12)
                    self.assertAlmostEqual(values[f"avg{k:g}_size"], of_k["test_mean_set_size"], 12)
                    self.assertAlmostEqual(values[f"avg{k:g}_lambda"], of_k["lambda"], 12)
                    self.assertAlmostEqual(values[f"macro_avg{k:g}"], of_k["test_macro_accuracy"], 12)

    def test_groups_by_training_images(self):
        scores, labels = drawn()
        counts = [5] * 4 + [50] * 4 + [500] * 4
        values = metrics.accuracies(scores, labels, train_counts=counts)
        hits = metrics.label_ranks(scores, labels) < 5
        few = [hits[labels == c].double().mean().item() for c in range(4)]
        self.assertAlmostEqual(values["few_top5"], sum(few) / 4, 12)
        self.assertNotIn("few_top5", metrics.accuracies(scores, labels))

    def test_usual_sizes_are_those_that_the_classes_allow(self):
        expected = {1: ["top1"], 2: ["top1", "avg2"], 4: ["top1", "avg2"], 5: ["top1", "top5", "avg2", "avg5"], 12: ["top1", "top5", "avg2", "avg5"]}
        for classes, names in expected.items():
            with self.subTest(classes=classes):
                scores, labels = drawn(classes=classes)
                found = metrics.accuracies(scores, labels)
                self.assertEqual([name for name in found if re.fullmatch("(top|avg)[0-9]+", name)], names)
                self.assertEqual(found, metrics.accuracies(scores, labels, k=None, average_k=None))
                sizes = {kind: [int(name[3:]) for name in names if name.startswith(kind)] for kind in ("top", "avg")}
                self.assertEqual(found, metrics.accuracies(scores, labels, k=sizes["top"], average_k=sizes["avg"]))
        scores, labels = drawn(classes=3)
        for wrong in ({"k": (1, 5)}, {"average_k": (2, 5)}):
            with self.assertRaisesRegex(ValueError, f"^{next(iter(wrong))}: expected at most 3, the number of classes, got 5"):
                metrics.accuracies(scores, labels, **wrong)

    def test_arrays_lists_and_tensors_are_alike(self):
        scores, labels = drawn(60)
        expected = metrics.accuracies(scores, labels)
        self.assertEqual(metrics.accuracies(scores.numpy(), labels.numpy().astype(numpy.int32)), expected)
        self.assertEqual(metrics.accuracies(scores, labels.tolist()), expected)

    def test_calibration(self):
        scores, labels = drawn(2000)
        temperature = metrics.fit_temperature(scores, labels)
        likelihood = lambda t: -torch.nn.functional.cross_entropy(scores / t, labels).item()
        for factor in (0.99, 1.01):
            self.assertGreater(likelihood(temperature), likelihood(temperature * factor))
        p, best = scores.softmax(1).max(1)
        bins = (p * 15).long().clamp_max(14)
        gaps = [((best[bins == b] == labels[bins == b]).double().sum() - p[bins == b].sum()).abs().item() for b in range(15)]
        self.assertAlmostEqual(metrics.expected_calibration_error(scores, labels), sum(gaps) / len(labels), 9)

    def test_a_temperature_of_few_images_is_warned_of(self):
        header = (SOURCE / "metrics/sets/temperature.h").read_text(encoding="utf-8")
        enough = int(re.search(r"kImagesForTemperature = (\d+);", header)[1])
        program = (SOURCE / "src/inference/calibration.cpp").read_text(encoding="utf-8")
        words = re.sub(r'"\s+"', "", program)  # a text in several pieces
        self.assertIn("is fitted to {} only; with fewer than {} it depends on which images these are, and more calibration images help", words)
        scores, labels = drawn(enough)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            metrics.fit_temperature(scores, labels)
        few = enough - 1
        for images, of_scores, of_labels in ((f"{few} images", scores[:few], labels[:few]), ("1 image", [[3.0, 2.0, -5.0]], [1])):
            message = f"^the temperature [0-9.]+ is fitted to {images} only; with fewer than {enough} it depends on which images these are, and more calibration images help$"
            with self.assertWarnsRegex(UserWarning, message) as caught:
                temperature = metrics.fit_temperature(of_scores, of_labels)
            self.assertEqual(caught.filename, __file__)
            self.assertIn(f" {temperature:.4g} ", str(caught.warning))

    def test_a_temperature_that_does_not_exist(self):
        scores = torch.eye(12)
        for labels, message in ((torch.arange(12), "largest"), (torch.arange(12).roll(1), "")):
            with self.assertRaisesRegex(ValueError, message):
                metrics.fit_temperature(scores, labels)
        with self.assertRaisesRegex(ValueError, "equal"):
            metrics.fit_temperature(torch.zeros(12, 12), torch.arange(12))

    def test_errors(self):
        scores, labels = drawn(20)
        wrong = [
            (lambda: metrics.topk_accuracy(scores, labels, 0), "^k: "),
            (lambda: metrics.accuracies(scores, labels, k=(0,)), "^k: "),
            (lambda: metrics.accuracies(scores, labels, k=(2, 2)), "^k: .*once"),
            (lambda: metrics.topk_accuracy(scores, labels[:5], 1), "labels"),
            (lambda: metrics.topk_accuracy(scores, labels + 12, 1), "labels"),
            (lambda: metrics.topk_accuracy(scores * math.nan, labels, 1), "scores"),
            (lambda: metrics.accuracies(scores, labels, average_k=(0,)), "average_k"),
            (lambda: metrics.average_k_accuracy(scores, labels, math.nan), "^k: "),
            (lambda: torch.ops.settrain.accuracies(scores, labels, [], [math.nan], "softmax", False, None, []), "average_k: must be above 0"),
            (lambda: metrics.coverage((scores > 0).byte(), labels), "bool"),
            (lambda: metrics.coverage(scores > 0, labels + 12), "labels: expected classes from 0 to 11"),
            (lambda: metrics.accuracies(scores, labels, average_k_score="logits"), "average_k_score"),
            (lambda: metrics.accuracies(scores, labels, train_counts=[1, 2]), "train_counts"),
            (lambda: metrics.average_k_thresholds(scores, (-1,)), "^k: "),
            (lambda: metrics.accuracies(scores, labels, threshold_scores=scores[:, :5]), "^threshold_scores: "),
            (lambda: metrics.coverage(scores > 0, labels[:3]), "labels"),
            (lambda: metrics.expected_calibration_error(scores, labels, bins=0), "bins"),
            (lambda: metrics.topk_accuracy(scores, labels, 13), "^k: expected at most 12, the number of classes, got 13"),
            (lambda: metrics.accuracies(scores, labels, average_k=(12.5,)), "^average_k: expected at most 12"),
            (lambda: metrics.average_k_accuracy(scores, labels, 13), "^k: expected at most 12"),
            (lambda: metrics.average_k_thresholds(scores, (13,)), "^k: expected at most 12"),
            (lambda: metrics.topk_accuracy([[1.0, 2.0], [1.0]], [0, 1], 1), "^scores: "),
            (lambda: metrics.topk_accuracy(scores, labels, 2**64), "^k: expected an integer of 64 bits"),
            (lambda: metrics.topk_accuracy(scores, [2**70] * 20, 1), "^labels: "),
            (lambda: metrics.AverageKAccuracy(2, average_k_score="logits"), "^average_k_score: expected"),
            (lambda: metrics.MacroTopKAccuracy(-1, 1), "^classes: expected a number above 0"),
            (lambda: metrics.AverageKAccuracy(math.inf), "^k: expected a number above 0"),
            (lambda: [of_batches.update(scores[:, :classes], labels * 0) for of_batches in [metrics.AverageKAccuracy(2)] for classes in (12, 5)], "^scores: expected 12 classes"),
        ]
        for call, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(ValueError, message):
                call()

    def test_wrong_types(self):
        scores, labels = drawn(20)
        wrong = [
            (lambda: metrics.topk_accuracy(scores, labels.double(), 1), "labels: expected integers"),
            (lambda: metrics.topk_accuracy(scores, labels, 1.5), "^k: expected an integer, got 1.5"),
            (lambda: metrics.accuracies(scores, labels, train_counts=[0.5] * 12), "^train_counts: .*whole numbers"),
            (lambda: metrics.topk_accuracy(scores, labels, None), "^k: expected an integer, got None"),
            (lambda: metrics.topk_accuracy({0: 1}, labels, 1), "^scores: expected a tensor, an array or a list of numbers, got dict"),
            (lambda: metrics.topk_accuracy(scores, "0", 1), "^labels: expected a tensor"),
            (lambda: metrics.accuracies(scores, labels, train_counts={0: 1}), "^train_counts: expected whole numbers, got dict"),
            (lambda: metrics.average_k_accuracy(scores, labels, "2"), "^k: expected a number, got '2'"),
            (lambda: metrics.accuracies(scores, labels, average_k=5), "^average_k: expected a list of numbers, got int 5"),
        ]
        for call, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(TypeError, message):
                call()

    def test_views_of_arrays_that_go_backwards(self):
        scores, labels = drawn(50)
        array, of_labels = scores.numpy()[::-1], labels.numpy()[::-1]
        self.assertEqual(metrics.accuracies(array, of_labels), metrics.accuracies(scores.flip(0), labels.flip(0)))
        self.assertEqual(metrics.topk_accuracy(scores.numpy()[:, ::-1], 11 - labels, 3), metrics.topk_accuracy(scores.flip(1), 11 - labels, 3))


class Streaming(TensorTest):
    """Metrics batch by batch."""

    def each(self, group=None):
        """A metric, what feeds it, and the function whose value it has."""
        return [
            (metrics.TopKAccuracy(3, group=group), lambda s: s, lambda s, y: metrics.topk_accuracy(s, y, 3)),
            (metrics.MacroTopKAccuracy(12, 3, group=group), lambda s: s, lambda s, y: metrics.macro_topk_accuracy(s, y, 3)),
            (metrics.AverageKAccuracy(2.5, group=group), lambda s: s, lambda s, y: metrics.average_k_accuracy(s, y, 2.5)),
            (metrics.AverageKAccuracy(2, average_k_score="sigmoid", strict=True), lambda s: s, self.strict_average),
            (metrics.Coverage(group=group), lambda s: s > 0.5, metrics.coverage),
        ]

    def strict_average(self, scores, labels):
        return metrics.average_k_accuracy(scores, labels, 2, average_k_score="sigmoid", strict=True)

    def test_batches_give_the_value_of_all(self):
        for metric, fed, function in self.each():
            with self.subTest(metric=type(metric).__name__):
                self.assertTrue(math.isnan(metric.compute()))
                for seed in (3, 4):
                    scores, labels = drawn(seed=seed, dtype=torch.float32)
                    for part in range(0, 400, 150):
                        metric.update(fed(scores[part : part + 150]), labels[part : part + 150])
                    self.assertAlmostEqual(metric.compute(), function(fed(scores), labels), 12)
                    metric.reset()
                self.assertTrue(math.isnan(metric.compute()))

    def test_in_a_training_loop(self):
        torch.manual_seed(0)
        scores, labels = drawn(dtype=torch.float32)
        model = torch.nn.Linear(12, 12)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        metric, seen = metrics.TopKAccuracy(1), []
        for _ in range(3):
            metric.reset()
            for part in range(0, 400, 100):
                answers = model(scores[part : part + 100])
                torch.nn.functional.cross_entropy(answers, labels[part : part + 100]).backward()
                optimizer.step()
                optimizer.zero_grad()
                metric.update(answers, labels[part : part + 100])  # with a gradient, which it drops
            seen.append(metric.compute())
        self.assertGreater(seen[-1], seen[0])

    def test_several_processes(self):
        with tempfile.TemporaryDirectory(prefix="settrain-python-") as folder:
            context = torch.multiprocessing.get_context("fork")
            answers = context.SimpleQueue()
            processes = [context.Process(target=self.work, args=(rank, f"file://{folder}/meeting", answers)) for rank in range(3)]
            for process in processes:
                process.start()
            got = [answers.get() for _ in processes]
            for process in processes:
                process.join()
                self.assertEqual(process.exitcode, 0)
        scores, labels = drawn(dtype=torch.float32)
        for values in got:
            for value, (_, fed, function) in zip(values, self.each()):
                self.assertAlmostEqual(value, function(fed(scores), labels), 12)

    def work(self, rank, meeting, answers):
        """The process `rank` of three; the last has no samples."""
        torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=3)
        scores, labels = drawn(dtype=torch.float32)
        parts = [slice(0, 250), slice(250, 400), slice(0, 0)]
        values = []
        for metric, fed, _ in self.each():
            if rank < 2:
                metric.update(fed(scores[parts[rank]]), labels[parts[rank]])
            values.append(metric.compute())
        answers.put(values)
        torch.distributed.destroy_process_group()

    def test_errors(self):
        scores, labels = drawn(20)
        wrong = [
            (lambda: metrics.TopKAccuracy(0), "^k: expected a number above 0"),
            (lambda: metrics.TopKAccuracy(13).update(scores, labels), "^k: expected at most 12"),
            (lambda: metrics.MacroTopKAccuracy(12, 13), "^k: expected at most 12"),
            (lambda: metrics.MacroTopKAccuracy(11, 1).update(scores, labels), "^scores: expected 11 classes, got 12"),
            (lambda: metrics.AverageKAccuracy(math.nan), "^k: "),
            (lambda: metrics.TopKAccuracy(1).update(scores, labels + 12), "labels"),
            (lambda: metrics.AverageKAccuracy(2).update(scores * math.nan, labels), "scores"),
            (lambda: metrics.Coverage().update(scores, labels), "bool"),
        ]
        for call, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(ValueError, message):
                call()


class LabelSets(TensorTest):
    """Accuracies by all labels of a sample."""

    def drawn_sets(self):
        scores, labels = drawn()
        label_sets = torch.rand(scores.shape, generator=torch.Generator().manual_seed(4)) < 0.2
        label_sets[torch.arange(len(labels)), labels] = True
        return scores, label_sets

    def test_against_the_formulas(self):
        scores, label_sets = self.drawn_sets()
        wanted = label_sets.sum(1)
        values = metrics.label_set_accuracies(scores, label_sets, k=(3,), average_k=(2.5,))
        order = scores.sort(dim=1, descending=True, stable=True).indices
        in_top = torch.zeros_like(label_sets).scatter(1, order[:, :3], True)
        self.assertAlmostEqual(values["top3_recall"], ((in_top & label_sets).sum(1) / wanted).double().mean().item(), 6)
        p = scores.sigmoid()
        (threshold,) = metrics.average_k_thresholds(p, (2.5,))
        self.assertEqual(values["avg2.5_lambda"], threshold)
        of_sets = metrics.returned_classes(p, threshold)
        hits = of_sets & label_sets
        self.assertAlmostEqual(values["avg2.5_recall"], (hits.sum(1) / wanted).double().mean().item(), 6)
        self.assertAlmostEqual(values["avg2.5_f1"], (2 * hits.sum(1) / (of_sets.sum(1) + wanted)).double().mean().item(), 6)
        self.assertAlmostEqual(values["avg2.5_micro_f1"], (2 * hits.sum() / (of_sets.sum() + wanted.sum())).item(), 6)
        self.assertAlmostEqual(values["avg2.5_macro_f1"], (2 * hits.sum(0) / (of_sets.sum(0) + label_sets.sum(0))).double().mean().item(), 6)
        self.assertAlmostEqual(values["avg2.5_size"], of_sets.sum(1).double().mean().item(), 12)
        q = functional.sparse_top_projection(scores, wanted)
        self.assertAlmostEqual(values["sparse_top_weight"], ((q * label_sets).sum(1) / wanted).mean().item(), 12)
        self.assertAlmostEqual(values["sparse_top_f1"], (2 * ((q > 0) & label_sets).sum(1) / ((q > 0).sum(1) + wanted)).double().mean().item(), 6)
        self.assertAlmostEqual(values["sparse_top_size"], (q > 0).sum(1).double().mean().item(), 12)

    def test_usual_sizes_are_those_that_the_classes_allow(self):
        for classes, names in ((1, ["top1"]), (3, ["top1", "avg2"]), (5, ["top1", "top5", "avg2", "avg5"])):
            with self.subTest(classes=classes):
                scores, labels = drawn(classes=classes)
                found = metrics.label_set_accuracies(scores, torch.nn.functional.one_hot(labels, classes))
                recalls = [name.removesuffix("_recall") for name in found if name.endswith("_recall")]
                self.assertEqual(recalls, names)
        with self.assertRaisesRegex(ValueError, "^k: expected at most 5, the number of classes, got 6"):
            metrics.label_set_accuracies(scores, torch.nn.functional.one_hot(labels, 5), k=(1, 6))

    def test_arrays_numbers_and_half_precision_are_taken(self):
        scores, label_sets = self.drawn_sets()
        expected = metrics.label_set_accuracies(scores, label_sets)
        self.assertEqual(metrics.label_set_accuracies(scores.numpy(), label_sets.numpy().astype(numpy.uint8)), expected)
        self.assertEqual(metrics.label_set_accuracies(scores.half(), label_sets), metrics.label_set_accuracies(scores.half().float(), label_sets))

    def test_errors(self):
        scores, label_sets = self.drawn_sets()
        wrong = [
            (lambda: metrics.label_set_accuracies(scores, label_sets[:, :5]), "^label_sets: "),
            (lambda: metrics.label_set_accuracies(scores, label_sets & False), "^label_sets: .*no label"),
            (lambda: metrics.label_set_accuracies(scores, scores), "^label_sets: expected bool, or 0 and 1"),
            (lambda: metrics.label_set_accuracies(scores, label_sets, k=(0,)), "^k: "),
            (lambda: metrics.label_set_accuracies(scores, label_sets, average_k=(2, 2)), "^average_k: "),
            (lambda: metrics.label_set_accuracies(scores, label_sets, average_k_score="logits"), "^average_k_score: "),
            (lambda: metrics.label_set_accuracies(scores, label_sets, threshold_scores=scores[:, :5]), "^threshold_scores: "),
            (lambda: metrics.label_set_accuracies(scores / 0, label_sets), "^scores: "),
            (lambda: metrics.label_set_accuracies(scores[0], label_sets), "^scores: "),
        ]
        for call, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(ValueError, message):
                call()


if __name__ == "__main__":
    main()
