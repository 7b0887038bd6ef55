"""settrain.sets: against recorded sets, formulas written out, and properties."""

from package import SOURCE, TensorTest, drawn, main

import io
import json
import math
import pathlib
import tempfile
import warnings

import numpy
import torch

from settrain import metrics, sets


def with_header(header):
    """A safetensors file of this header, without tensors."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


class Sets(TensorTest):
    COUNTS = [100, 80, 60, 50, 40, 30, 20, 10, 8, 6, 4, 2]

    def test_lac_against_its_formula(self):
        scores, labels = drawn()
        rule = sets.calibrate("conformal:lac:0.1", scores, labels)
        p = scores.softmax(1)
        losses = (1 - p.gather(1, labels.unsqueeze(1)).squeeze(1)).sort().values
        threshold = losses[math.ceil((len(labels) + 1) * 0.9) - 1]
        others, other_labels = drawn(seed=8)
        chosen = rule.sets(others)
        self.assertTrue(torch.equal(chosen, 1 - others.softmax(1) <= threshold))
        quality = sets.quality(chosen, other_labels, rule=rule)
        self.assertEqual(quality["coverage"], metrics.coverage(chosen, other_labels))
        self.assertAlmostEqual(quality["mean_size"], chosen.sum(1).double().mean().item(), 12)
        self.assertAlmostEqual(quality["coverage"], 0.9, delta=0.06)
        self.assertIn("probability at least 0.9", rule.guarantee)
        self.assertEqual((rule.num_images, rule.wanted_coverage), (400, 0.9))

    def test_every_rule_gives_the_same_sets_again_from_its_text(self):
        scores, labels = drawn()
        scores_of_rules = ("lac", "aps", "raps", "saps", "pas", "aps(randomised=true)", "lac(nonempty=true)", "risk")
        rules = [f"conformal:{score}:0.2" for score in scores_of_rules] + ["top:3", "average:2.5", "error:0.2", "average-error:0.2"]
        rules += [f"conformal:lac:0.2:{of}" for of in ("classwise", "superclass", "interpolated(0.5)", "rc3p", "clustered", "fuzzy(0.1)")]
        for name in rules:
            with self.subTest(rule=name):
                rule = sets.calibrate(name, scores, labels, train_counts=self.COUNTS, superclass_of=[c // 3 for c in range(12)])
                chosen = rule.sets(scores, first_image=0)
                self.assertEqual((chosen.shape, chosen.dtype), (scores.shape, torch.bool))
                self.assertGreater(metrics.coverage(chosen, labels), 0.25)
                self.assertTrue(torch.equal(sets.CalibratedRule(str(rule)).sets(scores, first_image=0), chosen))

    def test_coverage_follows_alpha_however_sure_the_network_is(self):
        generator = torch.Generator().manual_seed(4)
        images, classes = 3000, 12
        labels = torch.randint(classes, (images,), generator=generator)
        base = torch.randn(images, classes, generator=generator).clamp(-2.2, 2.2)
        base[torch.arange(images), labels] += 1 + 1.6 * torch.rand(images, generator=generator)
        half = images // 2
        names = ("lac", "aps", "aps(randomised=true)", "raps", "raps(randomised=true)", "saps", "saps(randomised=true)", "pas")
        for scale in (1, 30, 100):
            for name in names:
                for alpha in (0.3, 0.1, 0.02):
                    with self.subTest(scale=scale, name=name, alpha=alpha):
                        scores = base * scale
                        rule = sets.calibrate(f"conformal:{name}:{alpha}", scores[:half], labels[:half], train_counts=self.COUNTS)
                        chosen = rule.sets(scores[half:], first_image=0)
                        m = math.ceil((half + 1) * (1 - alpha) - 1e-9)
                        deviation = math.sqrt(m * (half + 1 - m) * (2 * half + 1) / (half * (half + 1) ** 2 * (half + 2)))
                        self.assertAlmostEqual(metrics.coverage(chosen, labels[half:]), m / (half + 1), delta=4 * deviation)
                        self.assertTrue(torch.equal(rule.sets(scores[half:].double(), first_image=0), chosen))
                        self.assertTrue(torch.equal(sets.CalibratedRule(str(rule)).sets(scores[half:], first_image=0), chosen))

    def test_rules_of_an_earlier_version(self):
        scores, labels = drawn()

        def as_version_1(name, threshold):
            text = json.loads(str(sets.calibrate(name, scores, labels)))
            del text["version"]
            return json.dumps({**text, "thresholds": [threshold]})

        lac = sets.CalibratedRule(as_version_1("conformal:lac:0.1", 0.875))  # 1 - p
        self.assertTrue(torch.equal(lac.sets(scores), scores.double().softmax(1) >= 0.125))
        with self.assertRaisesRegex(ValueError, "conformal:aps:0.1"):
            sets.CalibratedRule(as_version_1("conformal:aps:0.1", 0.9)).sets(scores)

    def test_the_first_images_number_counts_for_randomised_rules(self):
        scores, labels = drawn()
        rule = sets.calibrate("conformal:aps(randomised=true):0.2", scores, labels)
        of_all = rule.sets(scores, first_image=0)
        self.assertTrue(torch.equal(of_all[100:], rule.sets(scores[100:], first_image=100)))
        self.assertFalse(torch.equal(of_all[100:], rule.sets(scores[100:], first_image=0)))
        for number in (None, -1, 2**63 - 1):
            with self.assertRaisesRegex(ValueError, "^first_image: "):
                rule.sets(scores, first_image=number)

    def test_quality_of_groups(self):
        scores, labels = drawn()
        chosen = sets.calibrate("top:3", scores, labels).sets(scores)
        quality = sets.quality(chosen, labels, train_counts=self.COUNTS)
        few = [chosen[labels == c, c].double().mean().item() for c in range(12) if self.COUNTS[c] < 20]
        self.assertAlmostEqual(quality["few_coverage"], sum(few) / len(few), 12)
        self.assertIsNone(quality["coverage_gap"])

    def test_no_set_is_empty_where_it_may_not_be(self):
        scores, labels = drawn()
        plain, filled = (sets.calibrate(f"conformal:lac{option}:0.8", scores, labels).sets(scores) for option in ("", "(nonempty=true)"))
        empty = ~plain.any(1)
        self.assertGreater(empty.sum(), 0)
        self.assertTrue(torch.equal(filled[~empty], plain[~empty]))
        self.assertTrue(torch.equal(filled[empty].double().argmax(1), scores[empty].argmax(1)))
        self.assertTrue((filled.sum(1) >= 1).all())

    def test_all_labels_of_an_image(self):
        scores, first = drawn()
        labels = (scores > 1.2).scatter(1, first.unsqueeze(1), True)
        rule = sets.calibrate("conformal:risk:0.2", scores, labels.to(torch.uint8), sigmoid=True)
        chosen = rule.sets(scores)
        missed = 1 - ((chosen & labels).sum(1) / labels.sum(1)).double().mean().item()
        self.assertLessEqual((400 * missed + 1) / 401, 0.2)
        self.assertAlmostEqual(sets.quality(chosen, labels, rule=rule)["coverage"], 1 - missed, 6)
        self.assertIn("at least a share 0.8 of its labels", rule.guarantee)

    def test_answers_by_one_node_of_a_taxonomy(self):
        scores = torch.zeros(20, 12)
        scores[:, 4], scores[:, 3] = 9, 7  # of one genus, with class 5
        rule = sets.calibrate("conformal:tree(nodes=1):0.1", scores, torch.full((20,), 3), taxonomy=[[f"genus {c // 3}"] for c in range(12)])
        self.assertEqual(rule.sets(scores)[0].nonzero().flatten().tolist(), [3, 4, 5])

    def test_equal_rules(self):
        scores, labels = drawn()
        rule, same = (sets.calibrate("conformal:lac:0.1", scores, labels) for _ in range(2))
        self.assertEqual(rule, same)
        self.assertEqual(rule, sets.CalibratedRule(str(rule)))
        self.assertEqual(len({rule, same}), 1)
        self.assertNotEqual(rule, sets.calibrate("conformal:lac:0.2", scores, labels))
        self.assertNotEqual(rule, sets.calibrate("conformal:lac:0.1", scores + torch.eye(12).repeat(34, 1)[:400], labels))
        self.assertNotEqual(rule, str(rule))

    def test_probabilities_in_place_of_logits(self):
        scores, labels = drawn()
        for sigmoid in (False, True):
            p = scores.sigmoid() if sigmoid else scores.softmax(1)
            rule = sets.calibrate("conformal:lac:0.1", scores, labels, sigmoid=sigmoid)
            of_probabilities = sets.calibrate("conformal:lac:0.1", p, labels, sigmoid=sigmoid, probabilities=True)
            self.assertTrue(torch.equal(of_probabilities.sets(p, probabilities=True), rule.sets(scores)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            certain = sets.calibrate("top:1", torch.eye(12), torch.arange(12), probabilities=True).sets(torch.eye(12), probabilities=True)
        self.assertTrue(torch.equal(certain, torch.eye(12).bool()))
        for wrong in (scores, scores.sigmoid(), scores.softmax(1) - 0.01):
            with self.assertRaisesRegex(ValueError, "^scores: expected probabilities"):
                sets.calibrate("conformal:lac:0.1", wrong, labels, probabilities=True)

    def test_probabilities_are_those_after_scale_and_temperature(self):
        scores, labels = drawn()
        facts = json.loads(str(sets.calibrate("conformal:lac:0.1", scores * 20 / 3, labels)))
        rule = sets.CalibratedRule(json.dumps(facts | {"score_scale": 20, "temperature": 3}))
        self.assertTrue(torch.equal(rule.sets((scores * 20 / 3).softmax(1), probabilities=True), rule.sets(scores)))
        self.assertEqual(rule.sets(scores[:0]).shape, (0, 12))

    def test_superclasses_and_taxonomies_that_are_none(self):
        scores, labels = drawn()
        with self.assertRaisesRegex(ValueError, "^superclass_of: expected numbers from 0, got -1"):
            sets.calibrate("conformal:lac:0.1:superclass", scores, labels, superclass_of=[-1] * 12)
        for taxonomy in (["Acer"] * 12, [[None]] * 12):
            with self.assertRaisesRegex(TypeError, "^taxonomy: expected a list of names for each class"):
                sets.calibrate("conformal:tree(nodes=2):0.1", scores, labels, taxonomy=taxonomy)

    def test_scores_that_look_like_probabilities_are_warned_of(self):
        scores, labels = drawn()
        with self.assertWarnsRegex(UserWarning, "sums to 100"):
            sets.calibrate("top:1", scores.softmax(1) * 100, labels)
        with self.assertWarnsRegex(UserWarning, "probabilities=True") as caught:
            rule = sets.calibrate("conformal:lac:0.1", scores.softmax(1), labels)
        self.assertEqual(caught.filename, __file__)
        with self.assertWarnsRegex(UserWarning, "probabilities=True"):
            rule.sets(scores.softmax(1).float())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rule.sets(scores)
            sets.calibrate("conformal:lac:0.1", scores.sigmoid(), labels)

    def test_help_names_all_that_can_be_used(self):
        scores, labels = drawn()
        of_help = sets.__doc__
        for kind in ("top:", "average:", "error:", "average-error:", "conformal:"):
            self.assertIn(kind, of_help)
        facts = {"train_counts": self.COUNTS, "superclass_of": [c // 3 for c in range(12)], "taxonomy": [[f"genus {c // 3}"] for c in range(12)]}
        for score in ("lac", "aps", "raps(lambda=0.1,k=2)", "raps(tune=size)", "raps(tune=strata)", "saps(lambda=0.1)", "pas", "tree(nodes=2)", "risk"):
            self.assertRegex(of_help, rf"\b{score.partition('(')[0]}\b")
            sets.calibrate(f"conformal:{score}:0.2", scores, labels, **facts)
        for threshold in ("classwise", "superclass", "interpolated(0.5)", "rc3p", "clustered", "fuzzy(0.1)"):
            self.assertRegex(of_help, rf"\b{threshold.partition('(')[0]}\b")
            sets.calibrate(f"conformal:lac:0.2:{threshold}", scores, labels, **facts)

    def test_quality_has_the_keys_of_its_type(self):
        scores, labels = drawn()
        chosen = sets.calibrate("top:3", scores, labels).sets(scores)
        found = sets.quality(chosen, labels, train_counts=self.COUNTS)
        self.assertEqual(sorted(found), sorted(sets.Quality.__annotations__))

    def test_no_data_are_needed_for_shapes(self):
        rule = sets.calibrate("top:3", *drawn())
        self.assertEqual(rule.sets(torch.empty(7, 12, device="meta")).shape, (7, 12))

    def load_of(self, name, content):
        """settrain.sets.load() of a file with this content."""
        with tempfile.TemporaryDirectory(prefix="settrain-python-") as folder:
            path = pathlib.Path(folder) / name
            path.write_bytes(content)
            return sets.load(path)

    def test_files_without_rules_are_named(self):
        scores, labels = drawn()
        rule = str(sets.calibrate("top:3", scores, labels))
        numpy.savez(archive := io.BytesIO(), scores=scores.numpy())
        numpy.save(array := io.BytesIO(), scores.numpy())
        torch.save({"weight": scores}, weights := io.BytesIO())
        torch.save({"weight": scores}, pickle := io.BytesIO(), _use_new_zipfile_serialization=False)
        foreign, plain = with_header({"__metadata__": {"format": "pt"}}), with_header({})
        exported = with_header({"__metadata__": {"card": "{}", "config": ""}})
        damaged = with_header({"__metadata__": {"card": "{}", "config": "", "rules": "[1"}})
        files = [
            ("weights.pth", weights.getvalue(), "a file of torch.save()"),
            ("old.pth", pickle.getvalue(), "a pickle, such as those of torch.save()"),
            ("scores.npz", archive.getvalue(), "an archive of numpy.savez()"),
            ("archive.safetensors", archive.getvalue(), "an archive of numpy.savez()"),
            ("cut.npz", archive.getvalue()[:100], "a zip archive that is cut off or damaged"),
            ("scores.npy", array.getvalue(), "an array of numpy.save()"),
            ("foreign.safetensors", foreign, "a safetensors file that `settrain export` did not write"),
            ("plain.safetensors", plain, "a safetensors file that `settrain export` did not write"),
            ("plain.bin", plain, "a safetensors file that `settrain export` did not write"),
            ("cut.safetensors", foreign[:20], "a safetensors file that is cut off or damaged"),
            ("damaged.safetensors", damaged, "a damaged file of `settrain export`"),
            ("last.safetensors", (SOURCE / "tests/golden/checkpoints/version_1.safetensors").read_bytes(), "a checkpoint of a run"),
            ("notes.txt", "é".encode() * 999, "a text file"),
            ("half.json", b'{"rules": [', "a JSON file"),
            ("deep.json", b"[" * 100_000, "a JSON file"),
            ("list.json", b"[1, 2]", "a JSON file without rules"),
            ("rule.json", rule.encode(), "the text of one rule, which settrain.sets.CalibratedRule(text) reads"),
            ("plants.onnx", b"\x08\x08\x12\x08settrain", "an ONNX graph"),
            ("empty", b"", "an empty file"),
            ("photo.png", b"\x89PNG\r\n", "a file of another format"),
        ]
        for name, content, kind in files:
            with self.subTest(name=name), self.assertRaises(ValueError) as caught:
                self.load_of(name, content)
            message = str(caught.exception)
            self.assertIn(f"{name}': no rules that settrain calibrated: this is {kind}; load() reads the file rules-CHECKPOINT.json that", message)
            self.assertIn("`settrain calibrate RUN` writes, or the safetensors file that `settrain export RUN` writes after it", message)
        for name, content, message in (
            ("model.safetensors", exported, "when this model was exported, it had none; run `settrain calibrate RUN`, and export it again"),
            ("cold.json", b'{"rules": []}', "it has no 'temperature'; load"),
            ("rules.json", b'{"rules": [1], "temperature": 1}', "no rules that settrain calibrated: "),
        ):
            with self.subTest(name=name), self.assertRaisesRegex(ValueError, message):
                self.load_of(name, content)
        self.assertEqual(self.load_of("own.txt", f'{{"rules": [{rule}], "temperature": 1}}'.encode()), {"top:3": sets.CalibratedRule(rule)})
        with self.assertRaises(FileNotFoundError):
            sets.load("missing.json")

    def test_errors(self):
        scores, labels = drawn()
        rule = sets.calibrate("conformal:lac:0.1", scores, labels)
        wrong = [
            (lambda: sets.calibrate("conformal:lak:0.1", scores, labels), "lac"),
            (lambda: sets.calibrate("conformal:tree(nodes=2):0.1", scores, labels), "taxonomy"),
            (lambda: sets.calibrate("conformal:tree(nodes=2):0.1", scores, labels, taxonomy=[["a"]]), "12"),
            (lambda: sets.calibrate("conformal:tree(nodes=2):0.1", scores, labels, taxonomy=[["a"]] * 11 + [[]]), "length"),
            (lambda: sets.calibrate("top:13", scores, labels), "12"),
            (lambda: sets.calibrate("top:3", scores, labels, seed=2**64), "^seed: expected 0 to 2.63 - 1, got 18446744073709551616"),
            (lambda: sets.calibrate("conformal:risk:0.1", scores, scores > 99), "image 0"),
            (lambda: sets.calibrate("conformal:lac:0.1", scores, scores > 0), "^labels: "),
            (lambda: sets.calibrate("conformal:pas:0.1", scores, labels), "training"),
            (lambda: sets.calibrate("conformal:lac:0.1:superclass", scores, labels), "superclass"),
            (lambda: rule.sets(scores[:, :5]), "^scores: .*12.*5 classes"),
            (lambda: sets.calibrate("conformal:pas:0.1", scores, labels, train_counts=[1, 2]), "^train_counts: expected 12"),
            (lambda: sets.calibrate("conformal:pas:0.1", scores, labels, train_counts=[-1] + [1] * 11), "^train_counts: .*-1"),
            (lambda: sets.calibrate("conformal:lac:0.1:superclass", scores, labels, superclass_of=[0]), "^superclass_of: expected 12"),
            (lambda: sets.quality(rule.sets(scores), labels, train_counts=[1]), "^train_counts: expected 12"),
            (lambda: sets.quality(rule.sets(scores)[:0], labels[:0]), "^sets: "),
            (lambda: rule.sets(scores / 0), "scores"),
            (lambda: sets.CalibratedRule("{}"), "calibrated rule"),
            (lambda: sets.CalibratedRule("[1"), "calibrated rule"),
            (lambda: sets.CalibratedRule(str(rule).replace('"classes":12', '"classes":13')).sets(scores), "classes"),
            (lambda: sets.quality(scores, labels), "bool"),
            (lambda: sets.quality(rule.sets(scores), labels[:3]), "labels"),
        ]
        for call, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(ValueError, message):
                call()

    def test_wrong_types(self):
        scores, labels = drawn()
        rule = sets.calibrate("top:3", scores, labels)
        wrong = [
            (lambda: sets.calibrate(["top:1", "top:2"], scores, labels), "^rule: expected a text, got list"),
            (lambda: sets.calibrate("conformal:pas:0.1", scores, labels, train_counts=[0.5] * 12), "^train_counts: "),
            (lambda: sets.calibrate("conformal:pas:0.1", scores, labels, train_counts=dict(enumerate(self.COUNTS))), "^train_counts: .*dict"),
            (lambda: sets.calibrate("top:3", scores, labels, seed="1"), "^seed: "),
            (lambda: sets.calibrate("top:3", scores, labels.double()), "^labels: expected integers"),
            (lambda: rule.sets({0: 1.0}), "^scores: "),
            (lambda: rule.sets(scores, first_image=0.5), "^first_image: "),
        ]
        for call, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(TypeError, message):
                call()


if __name__ == "__main__":
    main()
