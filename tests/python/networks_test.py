"""settrain.load(): the networks that torchvision lacks give the scores that their sources gave for the same weights."""

from package import PROGRAM, SOURCE, TensorTest, main

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import torchvision
from safetensors.torch import save_file

import settrain

sys.path.insert(0, str(SOURCE / "scripts"))
from record_model_golden import closed_input, s, u  # noqa: E402

# Golden values, and settings where the file has none.
GOLDEN = {
    "resnet20": [],
    "resnet8_grey_normalised": [],
    "densenet_bc_40_40": ["model.name=densenet40_40"],
    "densenet_bc_40_40_normed": ["model.name=densenet40_40", "model.head=normalised"],
    "efficientnet_lite0_72px": [],
    "vit_small_parts": [],
    "vit_dinov2_parts": [],
    "vit_reg4_parts": [],
    "vit_no_token_parts": [],
    "vit_clip_parts": [],
}


def weights_of(name, index, shape):
    """The values that scripts/record_model_golden.py fills an entry with."""
    count = torch.Size(shape).numel()
    if name.endswith("running_var"):
        values = 1 + 0.25 * u(index, count)
    elif name.endswith("running_mean"):
        values = 0.0625 * s(index, count)
    elif len(shape) >= 2:
        values = (4.5 / (count / shape[0])) ** 0.5 * s(index, count)
    elif name.endswith("weight"):
        values = 1 + 0.125 * s(index, count)
    else:
        values = 0.125 * s(index, count)
    return torch.from_numpy(values).float().view(shape)


class Networks(TensorTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="settrain-python-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def exported(self, golden, settings, weights):
        """A file as `settrain export` writes it."""
        words = [word for setting in settings for word in ("--set", setting)]
        config = subprocess.run([PROGRAM, "config", "show", *words], capture_output=True, text=True)
        self.assertEqual(config.returncode, 0, config.stderr)
        _, channels, height, width = golden["input_shape"]
        classes = golden["num_classes"]
        head = next((setting.split("=")[1] for setting in settings if setting.startswith("model.head=")), "linear")
        card = {"classes": [f"class {c}" for c in range(classes)], "train_images": [1] * classes, "superclass_of": [], "head": head}
        card |= {"input": [height, width], "channels": channels, "mean": [0.5] * channels, "std": [0.5] * channels, "score_scale": 1.0, "probability": "softmax"}
        path = self.folder / "model.safetensors"
        save_file(weights, path, {"config": config.stdout, "card": json.dumps(card)})
        return path

    def weights_in(self, name):
        """By the list of the state_dict's entries."""
        weights, index = {}, 0
        for line in (SOURCE / f"tests/golden/models/{name}.params.txt").read_text().splitlines():
            if line.startswith("#"):
                continue
            _, dtype, shape, entry = line.split("\t")[:4]
            shape = json.loads(shape)
            if dtype.startswith("float"):
                weights[entry] = weights_of(entry, index, shape)
                index += 1
            else:
                weights[entry] = torch.zeros(shape, dtype=torch.int64)
        return weights

    def test_they_give_their_sources_scores(self):
        for name, settings in GOLDEN.items():
            with self.subTest(network=name):
                golden = json.loads((SOURCE / f"tests/golden/models/{name}.json").read_text())
                settings = settings or golden["settings"]
                model = settrain.load(self.exported(golden, settings, self.weights_in(name))).double()
                with torch.no_grad():
                    scores = model(closed_input(golden["input_shape"]).double())
                self.assert_close(scores, golden["float64"]["eval_logits"], 1e-9)

    def test_grey_images(self):
        network = torchvision.models.resnet18(num_classes=4).eval()
        network.conv1 = torch.nn.Conv2d(1, 64, 7, 2, 3, bias=False)
        golden = {"input_shape": [2, 1, 64, 64], "num_classes": 4}
        model = settrain.load(self.exported(golden, ["model.name=resnet18"], network.state_dict()))
        images = model.normalise((closed_input(golden["input_shape"]) / 4 + 0.5).clamp(0, 1))
        with torch.no_grad():
            self.assertTrue(torch.equal(model(images), network(images)))

    def test_every_network_of_the_program_can_be_loaded(self):
        listed = json.loads(subprocess.run([PROGRAM, "config", "schema"], capture_output=True, text=True).stdout)
        names = {choice["const"] for choice in listed["properties"]["model"]["properties"]["name"]["anyOf"][0]["oneOf"]}
        self.assertEqual(names, set(settrain._model.HEADS))
        self.assertGreater(len(names), 50)


if __name__ == "__main__":
    main()
