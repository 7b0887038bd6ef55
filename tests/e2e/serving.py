"""A server of a tiny model, for tests of settrain serve."""

import http.client
import json
import shutil
import signal
import subprocess
import unittest

from program import PROGRAM, ProgramTest, environment, line_with, write_png

CONFIG = """
data:
  name: image_folder
  root: pictures
  superclasses: genera.csv
  input_size: 16
  batch_size: 4
  workers: 1
  calibration_share: 0.5
model: {name: resnet8, width: 4}
train: {epochs: 1}
select: []
eval: {top_k: [1], average_k: []}
"""
CLASSES = ("a<b>&", "acer", "quercus_a", "quercus_b")
RULES = ("conformal:lac:0.2", "top:4")


def form_of(contents):
    """A multipart body with its content type."""
    head = b'--limit\r\nContent-Disposition: form-data; name="photograph"; filename="x.png"\r\n\r\n'
    return b"".join(head + content + b"\r\n" for content in contents) + b"--limit--\r\n", "multipart/form-data; boundary=limit"


class ServingTest(ProgramTest):
    """Each test has a copy of a run that was trained and calibrated once, and photographs."""

    trained = None  # where the first test made them

    def setUp(self):
        super().setUp()
        if ServingTest.trained:
            shutil.copytree(ServingTest.trained, self.folder, dirs_exist_ok=True)
            return
        self.write_pictures(CLASSES, images=6, step=60)
        self.write("genera.csv", "".join(f"{name},{name.split('_')[0]}\n" for name in CLASSES))
        self.run_program("--config", self.write("trees.yaml", CONFIG), "--device", "cpu")
        self.run_program("calibrate", "runs/trees", *(f"--rules={rule}" for rule in RULES), "--device", "cpu")
        self.write("notes.txt", "no image")
        for i, level in enumerate((10, 190, 120, 60)):
            write_png(self.folder / f"photograph_{i}.png", 40 + 7 * i, 30, level)
        ServingTest.trained = self.folder.parent / f"{self.folder.name}-trained"
        shutil.copytree(self.folder, ServingTest.trained)
        unittest.addModuleCleanup(shutil.rmtree, ServingTest.trained)

    def start_server(self, *arguments, model="runs/trees"):
        """Starts the program, and waits until it listens."""
        with open(self.folder / "serve.log", "w") as log:
            rules = [] if any(word.startswith("--rule") for word in arguments) else [f"--rule={rule}" for rule in RULES]
            command = [PROGRAM, "serve", model, "--port", "0", "--device", "cpu", *rules, *arguments]
            self.server = subprocess.Popen(command, cwd=self.folder, env=environment(), stdout=subprocess.PIPE, stderr=log)
        self.addCleanup(self.stop_server)
        self.address = line_with(self.server, "http://", seconds=120).split(" at ")[-1]
        self.port = int(self.address.rsplit(":", 1)[1])

    def stop_server(self):
        if self.server.stdout.closed:
            return
        self.server.send_signal(signal.SIGTERM)
        code = self.server.wait(timeout=60)
        self.server.stdout.close()
        self.assertEqual(code, 143, (self.folder / "serve.log").read_text())

    def ask(self, method, path, body=None, headers=None):
        """The status, the headers and the content of the answer, JSON as what it stands for."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        is_json = response.getheader("Content-Type", "").startswith("application/json")
        return response.status, response.headers, json.loads(content) if is_json and content else content

    def predict(self, *names):
        """What the server answers about one photograph, or about several of one specimen."""
        contents = [(self.folder / name).read_bytes() for name in names]
        body, kind = form_of(contents) if len(contents) > 1 else (contents[0], "image/png")
        return self.ask("POST", "/predict", body, {"Content-Type": kind})[2]
