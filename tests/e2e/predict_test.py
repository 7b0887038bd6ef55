"""settrain predict: sets for images of one's own, by a run and by its exported file."""

import csv
import json
import math
import os
import re
import shutil
import struct
import subprocess
import unittest

from program import PROGRAM, ProgramTest, environment, write_png

CONFIG = """
data: {name: image_folder, root: pictures, superclasses: genera.csv, input_size: 16, batch_size: 4, workers: 1}
model: {name: resnet8, width: 4}
train: {epochs: 1}
select: []
eval: {top_k: [1], average_k: []}
"""
CLASSES = ("acer_a", "acer_b", "quercus_a", "quercus_b", "quercus_c", "tilia")


class Predict(ProgramTest):
    trained = None  # a copy of what the first test made

    def setUp(self):
        """A run that was trained once, with calibrated rules, its exported file, and photographs."""
        super().setUp()
        if Predict.trained:
            shutil.copytree(Predict.trained, self.folder, dirs_exist_ok=True)
            return
        self.write_pictures(CLASSES, images=4, step=40)
        self.write("genera.csv", "".join(f"{name},{name.split('_')[0]}\n" for name in CLASSES))
        config = self.write("trees.yaml", CONFIG)
        self.run_program("--config", config, "--device", "cpu")
        self.run_program("calibrate", "runs/trees", "--rules", "conformal:lac:0.2", "--rules", "average:2", "--device", "cpu")
        self.run_program("export", "runs/trees", "--output", "trees.safetensors")
        for name, size in (("a/1.png", 30), ("a/2.png", 40), ("b/3.png", 20), ("4.png", 50), ("5.png", 16)):
            path = self.folder / "photos" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_png(path, size, 2 * size, 5 * size)
        Predict.trained = self.folder.parent / f"{self.folder.name}-trained"
        shutil.copytree(self.folder, Predict.trained)
        unittest.addModuleCleanup(shutil.rmtree, Predict.trained)

    def predict(self, *arguments, model="runs/trees", expect=0):
        return self.run_program("predict", model, *arguments, "--device", "cpu", expect=expect)

    def rows(self, *arguments, **options):
        """The rows of a JSONL file."""
        done = self.predict(*arguments, "--out", "out.jsonl", "--overwrite", **options)
        return [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()], done

    def test_rows_come_in_order_whatever_the_workers(self):
        (self.folder / "list.txt").write_text("photos/5.png\nphotos/a/1.png\n")
        inputs = ("list.txt", "photos", "--rule", "top:2", "--rule", "error:0.3")
        rows, _ = self.rows(*inputs)
        self.assertEqual([row["path"] for row in rows], ["photos/5.png", "photos/a/1.png"] + [f"photos/{n}.png" for n in ("4", "5", "a/1", "a/2", "b/3")])
        for row in rows:
            self.assertEqual(list(row["sets"]), ["top:2", "error:0.3"])
            top = row["sets"]["top:2"]
            self.assertEqual(top["size"], 2)
            self.assertEqual(top["names"], [CLASSES[c] for c in top["classes"]])
            self.assertEqual(top["probabilities"], sorted(top["probabilities"], reverse=True))
        self.assertEqual(rows[0]["sets"], rows[3]["sets"])
        self.assertEqual(self.rows(*inputs, "--set", "data.workers=4")[0], rows)

    def test_an_exported_file_answers_with_the_same_bits_without_data(self):
        rows, done = self.rows("photos")
        self.assertIn("conformal:lac:0.2 (the default rule)", done.stderr)
        self.assertIn("no guarantee", done.stderr)
        shutil.rmtree(self.folder / "pictures")
        shutil.rmtree(self.folder / "runs")
        self.assertEqual(self.rows("photos", model="trees.safetensors")[0], rows)
        missing = self.predict("photos", "--rule", "conformal:aps:0.1", model="trees.safetensors", expect=2).stderr
        self.assertIn("is not calibrated", missing)
        self.assertIn("calibrated are: conformal:lac:0.2, average:2", missing)

    def test_broken_images_are_rows(self):
        (self.folder / "photos/5.png").write_text("no image")
        rows, done = self.rows("photos", "gone.png", "--rule", "top:1", expect=1)
        self.assertIn("2 of 6 images", done.stderr)
        self.assertEqual(["error" in row for row in rows], [False, True, False, False, False, True])
        self.assertIn("'photos/5.png'", rows[1]["error"])
        self.assertIn("gone.png", rows[5]["error"])
        shown = self.predict("photos", "--rule", "top:1", expect=1)
        self.assertRegex(shown.stdout, r"photos/5\.png +error: ")

    def test_images_whose_scores_are_not_finite_are_rows_with_their_error(self):
        """Weights of the head so large that scores overflow."""
        content = bytearray((self.folder / "trees.safetensors").read_bytes())
        start = 8 + int.from_bytes(content[:8], "little")
        begin, end = json.loads(content[8:start])["fc.weight"]["data_offsets"]
        content[start + begin : start + end] = struct.pack("<f", 3e38) * ((end - begin) // 4)
        (self.folder / "large.safetensors").write_bytes(content)
        (self.folder / "photos/5.png").write_text("no image")
        rows, done = self.rows("photos", "--rule", "top:1", model="large.safetensors", expect=1)
        self.assertEqual([sorted(row) for row in rows], [["error", "path"]] * 5)
        self.assertIn("'photos/4.png'", rows[0]["error"])
        self.assertIn("finite", rows[0]["error"])
        self.assertIn("5 of 5 images", done.stderr)
        rows, _ = self.rows("photos", "--rule", "top:1", "--group", "folder", model="large.safetensors", expect=1)
        self.assertEqual([(row["group"], row["images"], row["unreadable"]) for row in rows], [("photos", 0, 2), ("photos/a", 0, 2), ("photos/b", 0, 1)])

    def test_another_form_than_the_rules_is_told_and_changes_no_set_but_at_a_threshold(self):
        """The difference that is told is that of scores; within as much of the threshold a set may be another one."""
        for level in range(60):
            write_png(self.folder / "photos" / f"level{level}.png", 20 + level % 3, 20, 4 * level)
        rules = ("--rule", "conformal:lac:0.2", "--rule", f"top:{len(CLASSES)}")
        own, done = self.rows("photos", *rules)
        self.assertNotIn("run.inference", done.stderr)
        exact, done = self.rows("photos", *rules, "--set", "run.inference=exact")
        self.assertIn("calibrated with run.inference: fast, and answer with exact", done.stderr)
        most = float(re.search(r"scores of some images that calibrated differed by up to (\S+)", done.stderr)[1])
        self.assertLess(most, 1e-4)
        stored = json.loads(next((self.folder / "runs/trees").glob("rules-*.json")).read_text())
        self.assertIn(most, [float(f"{difference:.1e}") for difference in stored["inference_differences"].values()])
        threshold = 1 - stored["rules"][0]["thresholds"][0]
        at_the_threshold = 0
        for one, other in zip(own, exact, strict=True):
            probabilities = other["sets"][rules[3]]["probabilities"]
            is_near = any(abs(p - threshold) < 1e-4 for p in probabilities)
            at_the_threshold += is_near
            if not is_near:
                self.assertEqual(one["sets"][rules[1]]["classes"], other["sets"][rules[1]]["classes"], other["path"])
        self.assertLess(at_the_threshold, len(own) / 4)

    def test_metrics_are_of_the_exact_form(self):
        told = self.run_program("eval", "runs/trees", "--set", "run.inference=bf16", expect=2).stderr
        self.assertIn("--set run.inference: metrics are of the exact form", told)
        self.run_program("eval", "runs/trees", "--set", "run.inference=exact", "--device", "cpu")

    def test_randomised_rules_draw_by_the_row(self):
        self.run_program("calibrate", "runs/trees", "--rules", "conformal:aps(randomised=true):0.2", "--device", "cpu")
        rule = ("--rule", "conformal:aps(randomised=true):0.2")
        whole = self.rows("photos", *rule)[0]
        (self.folder / "photos/4.png").write_text("no image")
        broken = self.rows("photos", *rule, expect=1)[0]
        self.assertEqual(broken[1:], whole[1:])

    def test_the_table(self):
        lines = self.predict("photos", "--rule", "top:6", "--rule", "top:1").stdout.splitlines()
        self.assertRegex(lines[0], r"^image +rule +size  set$")
        self.assertRegex(lines[1], r"^photos/4\.png +top:6 +6  (\w+ [01]\.\d\d, ){5}\.\.\. and 1 more$")
        self.assertRegex(lines[2], r"^ +top:1 +1  \w+ [01]\.\d\d$")
        self.assertEqual(len(lines), 1 + 2 * 5)

    def test_the_default_rule_is_chosen_by_calibrate_and_exported(self):
        told = self.run_program("calibrate", "runs/trees", "--rules", "conformal:lac:0.2", "--default", "average:2", "--device", "cpu").stderr
        self.assertIn("answer by average:2", told)
        # It stays until another is chosen.
        self.run_program("calibrate", "runs/trees", "--rules", "conformal:lac:0.2", "--device", "cpu")
        self.run_program("export", "runs/trees", "--output", "other.safetensors")
        for model in ("runs/trees", "other.safetensors"):
            rows, done = self.rows("photos", model=model)
            self.assertIn("average:2 (the default rule)", done.stderr)
            self.assertEqual({rule for row in rows for rule in row["sets"]}, {"average:2"})

    def test_notes_of_a_rule_are_repeated_and_a_rule_that_is_always_full_is_not_the_default(self):
        full = "conformal:lac:0.001"
        self.run_program("calibrate", "runs/trees", "--rules", full, "--device", "cpu")
        self.assertIn("conformal:lac:0.2 (the default rule)", self.predict("photos").stderr)
        path = next((self.folder / "runs/trees").glob("rules-*.json"))
        stored = json.loads(path.read_text())
        stored["rules"] = [rule for rule in stored["rules"] if rule["rule"] == full]
        path.write_text(json.dumps(stored))
        self.assertIn("top:5 (no rule is calibrated that leaves classes out; `settrain calibrate` makes sets with a guarantee)", self.predict("photos").stderr)
        self.assertRegex(self.predict("photos", "--rule", full).stderr, f"warning.*{full}: ")

    def test_a_graph_for_onnx_runtime_is_no_model(self):
        (self.folder / "trees.onnx").write_bytes(b"\x08\x08")
        self.assertIn("is a graph for ONNX Runtime: name the run", self.predict("photos", model="trees.onnx", expect=2).stderr)

    def test_csv(self):
        self.predict("photos/4.png", "gone.png", "--rule", "top:2", "--rule", "top:1", "--out", "out.csv", expect=1)
        with open(self.folder / "out.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["path"], row["rule"], row["size"]) for row in rows], [("photos/4.png", "top:2", "2"), ("photos/4.png", "top:1", "1"), ("gone.png", "top:2", ""), ("gone.png", "top:1", "")])
        self.assertEqual(rows[0]["names"].split(";"), [CLASSES[int(c)] for c in rows[0]["classes"].split(";")])
        self.assertIn("gone.png", rows[2]["error"])
        self.assertIn("--overwrite replaces it", self.predict("photos", "--out", "out.csv", expect=1).stderr)
        self.assertIn("ends in .jsonl or .csv", self.predict("photos", "--out", "out.txt", expect=2).stderr)

    def test_a_list_on_standard_input(self):
        done = subprocess.run([PROGRAM, "predict", "runs/trees", "-", "--rule", "top:1", "--device", "cpu"], cwd=self.folder, env=environment(), input="photos/b/3.png\n", capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("photos/b/3.png", done.stdout)

    def test_groups_are_joined_by_mean_log_probability(self):
        single = {row["path"]: row["sets"]["top:6"] for row in self.rows("photos", "--rule", "top:6")[0]}
        (self.folder / "photos/b/x.png").write_text("no image")
        rows, _ = self.rows("photos", "--rule", "top:6", "--group", "folder", expect=1)
        self.assertEqual([(row["group"], row["images"], row.get("unreadable", 0)) for row in rows], [("photos", 2, 0), ("photos/a", 2, 0), ("photos/b", 1, 1)])
        sums = [0.0] * 6
        for name in ("photos/a/1.png", "photos/a/2.png"):
            for c, p in zip(single[name]["classes"], single[name]["probabilities"]):
                sums[c] += math.log(p) / 2
        total = sum(map(math.exp, sums))
        for c, p in zip(rows[1]["sets"]["top:6"]["classes"], rows[1]["sets"]["top:6"]["probabilities"]):
            self.assertAlmostEqual(p, math.exp(sums[c]) / total, places=5)
        self.write("groups.csv", "photos/a/1.png,x\nphotos/4.png,x\nphotos/b/3.png,y\n")
        rows, _ = self.rows("photos/a/1.png", "photos/b/3.png", "photos/4.png", "--rule", "top:1", "--group", "groups.csv")
        self.assertEqual([(row["group"], row["images"]) for row in rows], [("y", 1), ("x", 2)])
        self.assertIn("in no group", self.predict("photos", "--group", "groups.csv", expect=1).stderr)

    def test_a_picture_of_another_kind_is_a_row_with_its_error(self):
        (self.folder / "photos/a/phone.HEIC").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
        (self.folder / "photos/notes.txt").write_text("no picture")
        shutil.copy(self.folder / "photos/4.png", self.folder / "photos/web.jfif")  # the content counts
        rows, _ = self.rows("photos", "--rule", "top:1", expect=1)
        self.assertEqual([row["path"] for row in rows], [f"photos/{name}" for name in ("4.png", "5.png", "a/1.png", "a/2.png", "a/phone.HEIC", "b/3.png", "web.jfif")])
        self.assertEqual([row["path"] for row in rows if "error" in row], ["photos/a/phone.HEIC"])
        rows, _ = self.rows("photos/a/phone.HEIC", "--rule", "top:1", expect=1)
        self.assertIn("phone.HEIC", rows[0]["error"])
        shutil.copy(self.folder / "photos/4.png", self.folder / "photos/scan")  # without an ending
        self.assertIn("1 without an ending", self.predict("photos", "--rule", "top:1", expect=1).stderr)
        os.symlink("..", self.folder / "photos/a/up")
        self.assertIn("photos/a/up", self.predict("photos", expect=1).stderr)

    def test_an_input_that_is_no_file_is_a_row_with_its_error(self):
        os.mkfifo(self.folder / "photos/pipe.png")
        rows, done = self.rows("photos", "--rule", "top:1", expect=1)
        self.assertEqual([row["path"] for row in rows if "error" in row], ["photos/pipe.png"])
        self.assertIn("is no regular file", next(row["error"] for row in rows if "error" in row))
        self.assertIn("1 of 6 images", done.stderr)

    def test_rules_that_are_damaged_or_of_other_weights_are_refused(self):
        rules = self.folder / "runs/trees/rules-last.json"
        text = rules.read_text()
        for damaged in (text[:-20], text.replace('"checkpoint_sha256":"', '"checkpoint_sha256":"0')):
            rules.write_text(damaged)
            self.assertIn("rules-last.json'", self.predict("photos", expect=1).stderr)
            self.assertIn("rules-last.json'", self.run_program("export", "runs/trees", "--output", "new.safetensors", expect=1).stderr)
        self.assertIn("the earlier rules are replaced", self.run_program("calibrate", "runs/trees", "--rules", "top:1", "--device", "cpu").stderr)

    def test_a_rule_among_the_images_is_reported(self):
        self.assertIn("'top:2' is a rule", self.predict("photos", "--rule", "top:1", "top:2", expect=2).stderr)

    def test_features_have_the_answers_of_their_images(self):
        self.run_program("embed", "runs/trees", "photos", "--out", "photos.safetensors", "--device", "cpu")
        for rule in ("top:3", "conformal:lac:0.2"):
            for model in ("runs/trees", "trees.safetensors"):
                images, _ = self.rows("photos", "--rule", rule, model=model)
                features, _ = self.rows("--features", "photos.safetensors", "--rule", rule, model=model)
                self.assertEqual([row["path"] for row in features], [row["path"] for row in images])
                for one, other in zip(features, images, strict=True):
                    self.assertEqual(one["sets"][rule]["classes"], other["sets"][rule]["classes"])
                    for p, q in zip(one["sets"][rule]["probabilities"], other["sets"][rule]["probabilities"], strict=True):
                        self.assertAlmostEqual(p, q, 5)
        self.assertRegex(self.predict("--features", "photos.safetensors", "--rule", "top:1").stdout, r"photos/5.png +top:1")
        self.assertIn("--features", self.predict(expect=2).stderr)
        self.assertIn("--features", self.predict("photos", "--features", "photos.safetensors", expect=2).stderr)
        self.assertIn("--group", self.predict("--features", "photos.safetensors", "--group", "folder", expect=2).stderr)
        config = self.write("wide.yaml", CONFIG.replace("width: 4", "width: 8"))
        self.run_program("--config", config, "--device", "cpu", "--set", "run.dir=runs/wide")
        self.assertIn("photos.safetensors", self.predict("--features", "photos.safetensors", model="runs/wide", expect=1).stderr)

    def test_answers_by_nodes_of_the_taxonomy(self):
        self.run_program("calibrate", "runs/trees", "--rules", "conformal:tree(nodes=2):0.2", "--device", "cpu")
        self.run_program("export", "runs/trees", "--output", "with_tree.safetensors", "--overwrite")
        for model in ("runs/trees", "with_tree.safetensors"):
            rows, _ = self.rows("photos", "--rule", "conformal:tree(nodes=2):0.2", model=model)
            for row in rows:
                answer = row["sets"]["conformal:tree(nodes=2):0.2"]
                self.assertLessEqual(len(answer["nodes"]), 2)
                held = {name for name in CLASSES for node in answer["nodes"] if node in (name, name.split("_")[0], "all classes")}
                self.assertEqual(held, set(answer["names"]))
        rows, _ = self.rows("photos", "--rule", "top:3", "--roll-up", "1")
        for row in rows:
            answer = row["sets"]["top:3"]
            self.assertEqual(len(answer["nodes"]), 1)
            genera = {name.split("_")[0] for name in answer["names"]}
            self.assertEqual(answer["nodes"], ["all classes"] if len(genera) > 1 else [genera.pop()])
        text = self.predict("photos/5.png", "--rule", "top:3", "--roll-up", "1").stdout
        self.assertRegex(text, r"all classes \(root\) 1.00|quercus \(superclass\)")
        done = self.predict("photos", "--rule", "top:3", "--roll-up", "1", "--by", "superclass", expect=2)
        self.assertIn("--roll-up", done.stderr)

    def test_a_place_p_values_and_unknown_classes(self):
        (self.folder / "flora.txt").write_text("tilia\nacer_a\nyew\n")
        (self.folder / "prior.csv").write_text("class,count\ntilia,30\nacer_a,10\n")
        for flag, file in (("--only", "flora.txt"), ("--prior", "prior.csv")):
            for model in ("runs/trees", "trees.safetensors"):
                rows, done = self.rows("photos", flag, file, "--p-values", model=model)
                for row in rows:
                    self.assertEqual(list(row["sets"]), ["conformal:lac:0.2"])
                    answer = row["sets"]["conformal:lac:0.2"]
                    self.assertLessEqual(set(answer["names"]), {"tilia", "acer_a"})
                    self.assertEqual(len(answer["p_values"]), answer["size"])
                    self.assertTrue(all(p > 0.2 for p in answer["p_values"]))
                self.assertRegex(done.stderr, r"2 of the 6 classes")
                self.assertRegex(done.stderr, r"effective number of calibration images is \d+ of \d+")
        self.assertIn("yew", self.predict("photos", "--only", "flora.txt").stderr)
        rows, _ = self.rows("photos", "--rule", "conformal:lac:0.2", "--unknown", "1")
        self.assertTrue(all(row["sets"]["conformal:lac:0.2"]["unknown"] for row in rows))
        self.predict("photos", "--rule", "conformal:lac:0.2", "--p-values", "--unknown", "0.05", "--out", "p.csv")
        with open(self.folder / "p.csv", newline="") as file:
            self.assertEqual(next(csv.reader(file))[-3:], ["p_values", "unknown", "error"])
        self.assertIn("average:2", self.predict("photos", "--rule", "average:2", "--p-values", expect=2).stderr)

    def test_places_by_name(self):
        """Scores are corrected to the shares of a place that rules were calibrated for."""
        self.write("prior.csv", "class,count\ntilia,30\nacer_a,10\nyew,5\n")
        rules = ("--rules", "conformal:lac:0.2", "top:2", "average:2")
        done = self.run_program("calibrate", "runs/trees", *rules, "--prior", "alps=prior.csv", "--shift", "jura=photos", "--json", "--device", "cpu")
        self.assertIn("2 of the 6 classes", done.stderr)
        alps, jura = json.loads(done.stdout)["places"]
        self.assertEqual([alps["name"], alps["prior"]], ["alps", [0.25, 0, 0, 0, 0, 0.75]])
        self.assertIn("average:2", alps["notes"][0] + alps["notes"][-1])
        self.assertEqual([jura["name"], jura["source"]], ["jura", "EM on 5 pictures of 'photos'"])
        self.assertAlmostEqual(sum(jura["prior"]), 1, 6)
        self.assertIn(round(sum(jura["by_confusion"]), 6), (0, 1))  # of a handful of images it may know nothing
        self.run_program("export", "runs/trees", "--output", "trees.safetensors", "--overwrite")
        plain, _ = self.rows("photos", "--rule", "top:6")
        for model in ("runs/trees", "trees.safetensors"):
            rows, done = self.rows("photos", "--prior", "alps", "--rule", "conformal:lac:0.2", "--rule", "top:2", model=model)
            self.assertIn("the shares of the classes at alps are those of 'prior.csv'", done.stderr)
            for row, before in zip(rows, plain, strict=True):
                self.assertEqual(list(row["sets"]), ["conformal:lac:0.2", "top:2"])
                p = dict(zip(before["sets"]["top:6"]["names"], before["sets"]["top:6"]["probabilities"]))
                there = {"acer_a": p["acer_a"], "tilia": 3 * p["tilia"]}  # trained on equal shares
                answer = row["sets"]["top:2"]
                self.assertEqual(set(answer["names"]), {"acer_a", "tilia"})
                for name, probability in zip(answer["names"], answer["probabilities"]):
                    self.assertAlmostEqual(probability, there[name] / sum(there.values()), 4)
                self.assertLessEqual(set(row["sets"]["conformal:lac:0.2"]["names"]), {"acer_a", "tilia"})
        self.assertIn("there are: alps, jura", self.predict("photos", "--prior", "berlin", expect=2).stderr)
        for arguments, reason in (
            (("--prior", "alps"), "NAME=FILE"),
            (("--prior", "a b=prior.csv"), "letters"),
            (("--prior", "alps=prior.csv", "--shift", "alps=photos"), "two places"),
            (("--prior", "alps=none.csv"), "none.csv"),
        ):
            self.assertIn(reason, self.run_program("calibrate", "runs/trees", *arguments, "--device", "cpu", expect=2).stderr)
        config = CONFIG.replace("select: []", "select: []\nloss: {name: topk_hinge, k: 2}")
        self.run_program("--config", self.write("hinge.yaml", config), "--device", "cpu")
        refused = self.run_program("calibrate", "runs/hinge", "--prior", "alps=prior.csv", "--device", "cpu", expect=2)
        self.assertIn("the loss topk_hinge estimates no probabilities", refused.stderr)

    def test_superclasses(self):
        classes, genera = (self.rows("photos", "--rule", f"top:{k}", "--by", by)[0] for k, by in ((6, "class"), (3, "superclass")))
        for row, genus in zip(classes, genera):
            sums = {}
            for name, p in zip(row["sets"]["top:6"]["names"], row["sets"]["top:6"]["probabilities"]):
                sums[name.split("_")[0]] = sums.get(name.split("_")[0], 0) + p
            answer = genus["sets"]["top:3"]
            self.assertEqual(answer["names"], sorted(sums, key=lambda name: -sums[name]))
            for name, p in zip(answer["names"], answer["probabilities"]):
                self.assertAlmostEqual(p, sums[name], places=5)
        species, genera = (self.rows("photos", "--rule", "conformal:lac:0.2", "--by", by)[0] for by in ("class", "superclass"))
        for row, genus in zip(species, genera):
            self.assertEqual({name.split("_")[0] for name in row["sets"]["conformal:lac:0.2"]["names"]}, set(genus["sets"]["conformal:lac:0.2"]["names"]))

    def test_answers_are_those_of_the_scores(self):
        """The test images, whose scores `settrain scores` writes by another way."""
        self.run_program("scores", "runs/trees", "--split", "test", "--out", "test.safetensors", "--device", "cpu")
        content = (self.folder / "test.safetensors").read_bytes()
        start = 8 + int.from_bytes(content[:8], "little")
        entry = json.loads(content[8:start])["scores"]
        begin, end = entry["data_offsets"]
        scores = memoryview(content[start + begin : start + end]).cast("f", entry["shape"]).tolist()
        rows, _ = self.rows("pictures/test", "--rule", "top:6", "--threads", "1")
        self.assertEqual(len(rows), len(scores))
        for row, score in zip(rows, scores):
            self.assertEqual(row["sets"]["top:6"]["classes"], sorted(range(6), key=lambda c: -score[c]))
            total = sum(math.exp(s) for s in score)
            self.assertAlmostEqual(row["sets"]["top:6"]["probabilities"][0], math.exp(max(score)) / total, places=5)

    def test_weights_alone_answer_where_the_rest_is_said(self):
        """The exported file without its metadata, whose tensors have a prefix and another head."""
        content = (self.folder / "trees.safetensors").read_bytes()
        start = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:start])
        header.pop("__metadata__")
        renamed = {("head." + name if name.startswith("fc.") else "backbone." + name): entry for name, entry in header.items()}
        text = json.dumps(renamed).encode()
        (self.folder / "weights.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + content[start:])
        self.write("names.txt", "".join(f"{name}\n" for name in CLASSES))
        expected, _ = self.rows("pictures/test", "--rule", "top:6")

        said = ("--model", "resnet8", "--set", "model.width=4", "--classes", "names.txt", "--normalisation", "none", "--input-size", "16")
        rows, done = self.rows("pictures/test", "--rule", "top:6", *said, model="weights.safetensors")
        self.assertEqual(rows, expected)
        self.assertIn("16x16", done.stderr)
        error = self.predict("photos", model="weights.safetensors", expect=1).stderr
        for word in ("weights.safetensors", "--model", "--classes"):
            self.assertIn(word, error)
        self.assertIn("--normalisation", self.predict("photos", *said[:-4], model="weights.safetensors", expect=2).stderr)
        self.assertIn("--model", self.predict("photos", *said, model="trees.safetensors", expect=2).stderr)

    def test_what_cannot_be_asked_is_said(self):
        self.assertIn("is not there", self.predict("nothing", expect=1).stderr)
        os.mkdir(self.folder / "empty")
        self.assertIn("no .jpg", self.predict("empty", expect=1).stderr)
        self.assertEqual(self.predict("photos", model="nowhere", expect=1).stdout, "")
        self.assertIn("is one model", self.predict("photos", "--checkpoint", "last", model="trees.safetensors", expect=2).stderr)
        self.predict("photos", "--rule", "top:7", expect=2)
        self.predict("photos", "--rule", "best", expect=2)
        (self.folder / "broken.safetensors").write_bytes((self.folder / "trees.safetensors").read_bytes()[:-8])
        self.assertIn("broken.safetensors", self.predict("photos", model="broken.safetensors", expect=1).stderr)


if __name__ == "__main__":
    unittest.main()
