"""A body that is trained first, and a head that is balanced afterwards (Kang et al., ICLR 2020)."""

import json
import pathlib
import re
import shutil

from program import TINY, ProgramTest, main, tensors_of, write_png

FIRST = "runs/first/checkpoints/last.safetensors"


class TwoStages(ProgramTest):
    def second(self, name, *settings):
        return self.train(name, f"model.pretrained={FIRST}", "model.trainable=[head]", *settings)

    def train(self, name, *settings):
        self.write(f"{name}.yaml", "extends: tail.yaml\n")
        arguments = [word for setting in settings for word in ((setting,) if setting.startswith("--") else ("--set", setting))]
        return self.run_program("--config", f"{name}.yaml", "--device", "cpu", *arguments)

    def setUp(self):
        super().setUp()
        tail = TINY.replace("loss: {name: noised_topk, k: 2, epsilon: 1.0, num_draws: 3}", "loss: {name: cross_entropy}")
        self.write("tail.yaml", tail.replace("  workers: 1", "  workers: 1\n  imbalance: 20"))
        self.train("first")

    def changed(self, name):
        """The tensors of the model that a run ended with other values of than the first."""
        before, after = (tensors_of(self.folder / path) for path in (FIRST, f"runs/{name}/checkpoints/last.safetensors"))
        return {tensor for tensor in after if tensor.startswith("model.") and after[tensor] != before.get(tensor)}

    def test_classifier_retraining_changes_the_head_alone(self):
        self.second("crt", "model.pretrained_head=draw", "data.sampler=class_balanced")
        self.assertEqual(self.changed("crt"), {"model.fc.weight", "model.fc.bias"})
        state = tensors_of(self.folder / "runs/crt/checkpoints/last.safetensors")
        self.assertEqual({name for name in state if name.startswith("optimizer.")}, {"optimizer.momentum.fc.weight", "optimizer.momentum.fc.bias"})

    def test_a_head_of_other_classes_is_warned_of(self):
        told = "was trained for other classes, or in another order"
        self.assertNotIn(told, self.second("same").stderr)
        names = [f"class_{i}" for i in range(6)]
        self.write("names.csv", "".join(f"{name},{other}\n" for name, other in zip(names, reversed(names))))
        self.assertIn("its class 0 is 'class_0', and here it is 'class_5'. Set model.pretrained_head: draw", self.second("other", "data.class_names=names.csv").stderr)
        self.assertNotIn(told, self.second("drawn", "data.class_names=names.csv", "model.pretrained_head=draw").stderr)

    def test_it_goes_on_as_if_it_had_never_stopped(self):
        self.second("whole", "schedule.name=constant", "train.epochs=2")
        self.second("parts", "schedule.name=constant", "train.epochs=1")
        self.run_program("--resume", "runs/parts", "--set", "train.epochs=2", "--device", "cpu")
        self.assertEqual(self.metrics("parts"), self.metrics("whole"))

    def test_learnable_weight_scaling_trains_factors_alone_and_exports_a_linear_head(self):
        self.second("lws", "model.head=scaled", "data.sampler=class_balanced")
        self.assertEqual(self.changed("lws"), {"model.fc.factor"})
        self.run_program("export", "runs/lws", "--checkpoint", "last", "--output", "lws.safetensors")
        # Loaded again, the linear head gives the same accuracies.
        self.train("again", "model.pretrained=lws.safetensors", "train.epochs=0")
        last = self.run_program("eval", "runs/lws", "--checkpoint", "last", "--device", "cpu").stdout
        self.assertEqual(last.splitlines()[1:], (self.folder / "runs/again/results.txt").read_text().splitlines()[1:])

    def test_parts_of_the_body_are_trained_by_name(self):
        done = self.second("part", "model.trainable=[head, layer3, norm]", "optimizer.layer_decay=0.5")
        self.assertRegex(done.stderr, r"resnet8: 4,938 parameters, 3,678 of them trained")
        self.assertRegex(done.stderr, r"the first layer's is 0.00313")
        changed = self.changed("part")
        weights = {name for name in changed if not name.split(".")[-1].startswith(("running_", "num_batches"))}
        norms = {name for name in tensors_of(self.folder / FIRST) if ".bn" in name and name.endswith((".weight", ".bias")) and name.startswith("model.")}
        expected = norms | {"model.layer3.0.conv1.weight", "model.layer3.0.conv2.weight", "model.fc.weight", "model.fc.bias"}
        self.assertEqual(weights - {"model.bn1.weight", "model.bn1.bias"}, expected - {"model.bn1.weight", "model.bn1.bias"})
        state = tensors_of(self.folder / "runs/part/checkpoints/last.safetensors")
        self.assertEqual({name.replace("optimizer.momentum.", "model.") for name in state if name.startswith("optimizer.")}, expected | {"model.bn1.weight", "model.bn1.bias"})
        told = self.second("dry", "model.trainable=[head, layer3, norm]", "--dry-run").stdout
        self.assertRegex(told, r"parameters +4,938, 3,678 trained")

    def test_statistics_of_layers_that_are_kept_stay(self):
        self.second("last", "model.trainable=[head, layer3]")
        self.assertEqual({name.split(".")[1] for name in self.changed("last")}, {"fc", "layer3"})
        self.assertIn("model.layer3.0.bn1.running_mean", self.changed("last"))

    def test_several_processes_train_parts_as_one_does(self):
        settings = ("model.trainable=[head, norm, layer3]", "model.stochastic_depth=0.4", "optimizer.layer_decay=0.8", "train.ema_decay=0.9",
                    "train.ema_warmup=false", "run.threads=1")
        self.second("alone", *settings, "train.accumulate=2")
        self.second("pair", *settings, "--processes=2")
        one, two = (tensors_of(self.folder / f"runs/{name}/checkpoints/last.safetensors") for name in ("alone", "pair"))
        self.assertEqual(one, two)

    def test_adapters_are_trained_stopped_and_exported(self):
        vit = ("model.name=vit", "model.patch=4", "model.width=12", "model.depth=2")
        self.train("plain", *vit, "optimizer.name=adamw", "optimizer.lr=0.01")
        first = "runs/plain/checkpoints/last.safetensors"
        pictures = self.folder / "pictures"
        pictures.mkdir()
        for level in (20, 120, 220):
            write_png(pictures / f"{level}.png", 12, 12, level)
        for kind in ("lora", "adaptformer"):
            with self.subTest(kind=kind):
                settings = (*vit, "optimizer.name=adamw", "optimizer.lr=0.01", f"model.pretrained={first}", f"model.adapter.kind={kind}",
                            "model.adapter.rank=3", "schedule.name=constant", "train.ema_decay=0.5")
                done = self.train("whole", *settings, "train.epochs=2", "run.dir=runs/whole")
                self.assertRegex(done.stderr, r"model\.trainable\b.*\[adapter, head\]")
                before, after = (tensors_of(self.folder / path) for path in (first, "runs/whole/checkpoints/last.safetensors"))
                changed = {name for name in after if name.startswith("model.") and after[name] != before.get(name) and not name.endswith(".scale")}
                own = {name for name in changed if f".{kind}." in name}
                self.assertEqual(changed - own, {"model.head.weight", "model.head.bias"})
                self.assertEqual(len(own), 8)
                self.train("parts", *settings, "train.epochs=1", "run.dir=runs/parts")
                self.run_program("--resume", "runs/parts", "--set", "train.epochs=2", "--device", "cpu")
                self.assertEqual(self.metrics("parts"), self.metrics("whole"))
                self.assertEqual(tensors_of(self.folder / "runs/parts/checkpoints/last.safetensors"), after)

                self.run_program("export", "runs/whole", "--checkpoint", "last", "--output", f"{kind}.safetensors")
                names = tensors_of(self.folder / f"{kind}.safetensors")
                self.assertEqual(any(".lora." in name for name in names), False)
                self.assertEqual(any(".adaptformer." in name for name in names), kind == "adaptformer")
                answers = [self.run_program("predict", model, "pictures", "--rule", "top:6", "--device", "cpu").stdout for model in ("runs/whole/checkpoints/last.safetensors", f"{kind}.safetensors")]
                self.assertEqual(*answers)
                # The exported weights are those that training evaluated beside the adapter.
                plain = (*vit, f"model.pretrained={kind}.safetensors", "train.epochs=0", "run.dir=runs/again")
                if kind == "lora":
                    self.train("again", *plain)
                    last = self.run_program("eval", "runs/whole", "--checkpoint", "last", "--device", "cpu").stdout
                    self.assertEqual(last.splitlines()[1:], (self.folder / "runs/again/results.txt").read_text().splitlines()[1:])
                for run in ("whole", "parts", "again"):
                    shutil.rmtree(self.folder / f"runs/{run}", ignore_errors=True)

    def test_tau_normalisation_needs_no_training(self):
        done = self.train("tau", f"model.pretrained={FIRST}", "model.pretrained_head=tau_normalised", "model.head_tau=1", "train.epochs=0")
        self.assertIn("head fc normalised with tau 1", done.stderr)
        self.assertEqual(self.changed("tau"), {"model.fc.weight", "model.fc.bias"})
        self.assertEqual(json.loads((self.folder / "runs/tau/provenance.json").read_text())["pretrained"]["change"], "head fc normalised with tau 1")

    def test_what_would_do_nothing_is_refused(self):
        for settings, reason in (
            (("model.head=scaled",), "set model.pretrained"),
            (("model.pretrained_head=draw",), "only with model.pretrained"),
            (("model.trainable=[head]",), "model.trainable"),
            (("model.head_tau=2",), "only with model.pretrained_head: tau_normalised"),
            ((f"model.pretrained={FIRST}", "model.head=scaled"), "set model.trainable: [head]"),
            ((f"model.pretrained={FIRST}", "model.trainable=[head]", "optimizer.head_lr_factor=3"), "optimizer.head_lr_factor: is read only"),
            ((f"model.pretrained={FIRST}", "model.trainable=[body]", "model.pretrained_head=draw"), "leaves as it was drawn"),
            (("model.trainable=[body]",), "leaves a head as it was drawn"),
            (("model.trainable=[head, layer3]",), "model.trainable"),
            ((f"model.pretrained={FIRST}", "model.trainable=[head, layr3]"), "did you mean 'layer3'"),
            ((f"model.pretrained={FIRST}", "model.trainable=[head]", "optimizer.layer_decay=0.5"), "optimizer.layer_decay: is read only"),
            ((f"model.pretrained={FIRST}", "model.trainable=[layer2, layer3]", "optimizer.head_lr_factor=3"), "optimizer.head_lr_factor: is read only"),
            (("train.ema_warmup=false",), "only with train.ema_decay above 0"),
            (("model.name=densenet40_12", "model.stochastic_depth=0.1"), "model.stochastic_depth"),
            ((f"model.pretrained={FIRST}", "model.trainable=[head]", "model.sync_batch_norm=true"), "keeps its batch statistics"),
            (("data.long_tail.rounding=down",), "only with data.long_tail.imbalance above 1"),
            (("schedule.warmup_epochs=3",), "the rate would never reach optimizer.lr"),
            (("train.mixup_alpha=0.4",), "only with train.mix: mixup or either"),
            (("train.mix=mixup", "train.cutmix_alpha=0.4"), "only with train.mix: cutmix or either"),
            (("train.mix=mixup", "data.batch_size=1"), "data.batch_size is 1"),
        ):
            with self.subTest(settings=settings):
                arguments = [word for setting in settings for word in ("--set", setting)]
                self.assertIn(reason, self.run_program("--config", "tail.yaml", *arguments, "--device", "cpu", expect=2).stderr)

    def test_a_body_that_is_not_trained_takes_batches_of_one(self):
        one_left = ("data.batch_size=479", "data.image_size=4", "train.epochs=1", "schedule.warmup_epochs=0")
        trained = [word for setting in one_left for word in ("--set", setting)]
        self.assertIn("a batch of one image", self.run_program("--config", "tail.yaml", "--device", "cpu", *trained, expect=1).stderr)
        self.second("one", *one_left, "data.sampler=class_balanced")

    def test_a_finished_run_is_read_whatever_later_versions_refuse(self):
        recorded = self.folder / "runs/first/config.yaml"
        text = recorded.read_text()
        broken = text.replace("warmup_epochs: 0.5", "warmup_epochs: 5.0")
        self.assertNotEqual(text, broken)
        recorded.write_text(broken)
        self.assertIn("warmup_epochs", self.run_program("--config", "runs/first/config.yaml", "--device", "cpu", expect=2).stderr)
        for command in (("eval",), ("eval", "--set", "eval.top_k=[1]"), ("compare",), ("report",)):
            self.run_program(command[0], "runs/first", *command[1:])
        self.assertIn("eval.top_k", self.run_program("eval", "runs/first", "--set", "eval.top_k=[]", "--set", "eval.average_k=[]", expect=2).stderr)

    def test_the_shipped_second_stages_resolve(self):
        configs = pathlib.Path(__file__).resolve().parents[2] / "configs"
        lines = (configs / "cifar100/long_tail_crt.yaml").read_text().splitlines()
        variants = [re.findall(r"--set \S+", line) for line in lines if line.startswith("#") and "--set model." in line]
        self.assertEqual(len(variants), 2)
        for settings in ([], *variants):
            shown = self.run_program("config", "show", "--config", "cifar100/long_tail_crt.yaml", *" ".join(settings).split()).stdout
            self.assertIn("trainable: [head]", shown)

    def test_a_first_stage_that_is_not_there_is_to_be_trained_first(self):
        missing = ("--set", "model.pretrained=runs/none/checkpoints/last.safetensors")
        self.assertIn("train that run first", self.run_program("--config", "tail.yaml", *missing, "--device", "cpu", expect=1).stderr)
        folder = ("--set", "model.pretrained=runs/first")
        self.assertIn(f"such as '{FIRST}'", self.run_program("--config", "tail.yaml", *folder, "--device", "cpu", expect=1).stderr)

    def test_a_dry_run_refuses_the_folder_that_the_run_would(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine/notes.txt").write_text("mine")
        for dry in ((), ("--dry-run",)):
            error = self.run_program("--config", "tail.yaml", "--set", "run.dir=mine", "--device", "cpu", *dry, expect=1).stderr
            self.assertIn("is not a run's folder and not empty (it has 'notes.txt')", error)

    def test_a_damaged_first_stage_is_found(self):
        file = self.folder / FIRST
        damaged = bytearray(file.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        file.write_bytes(damaged)
        errors = self.run_program("--config", "tail.yaml", "--set", f"model.pretrained={FIRST}", "--device", "cpu", expect=2).stderr
        self.assertIn("the file is damaged", errors)

    def test_rare_classes_are_not_counted_twice_without_a_warning(self):
        done = self.train("twice", "loss.name=logit_adjusted", "data.sampler=class_balanced", "train.epochs=0")
        self.assertIn("rare classes count twice over: by logit_adjusted and by data.sampler class_balanced", done.stderr)


if __name__ == "__main__":
    main()
