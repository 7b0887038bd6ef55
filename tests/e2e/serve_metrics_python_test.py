"""GET /metrics of settrain serve, as Prometheus' own Python package reads it."""

import json
import os
import subprocess

from program import main
from serving import CLASSES, ServingTest

PYTHON = os.environ.get("SETTRAIN_PYTHON")
READ = """
import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = text_string_to_metric_families(sys.stdin.buffer.read().decode())
print(json.dumps([[sample.name, sample.labels, sample.value] for family in families for sample in family.samples]))
"""


def has_parser():
    return bool(PYTHON) and subprocess.run([PYTHON, "-c", "import prometheus_client"], capture_output=True).returncode == 0


class Metrics(ServingTest):
    def setUp(self):
        if not has_parser():
            self.skipTest("no Python with prometheus_client (SETTRAIN_PYTHON)")
        super().setUp()

    def test_rules_whose_names_hold_quotes_and_backslashes(self):
        rules = [f"conformal:wpas(weights={file}):0.1" for file in ('my "best" w.csv', "a\\nb\\.csv", "\u00e9\u20ac}.csv")]
        for rule in rules:
            self.write(rule.split("=")[1].rsplit(")", 1)[0], "".join(f"{name},{1 + i}\n" for i, name in enumerate(CLASSES)))
        arguments = [f"--rule={rule}" for rule in rules]
        self.run_program("calibrate", "runs/trees", *(f"--rules={rule}" for rule in rules), "--device", "cpu")
        self.start_server(*arguments)
        for _ in range(2):
            self.assertEqual(list(self.predict("photograph_0.png")["sets"]), rules)
        self.ask("GET", "/nothing")
        done = subprocess.run([PYTHON, "-c", READ], input=self.ask("GET", "/metrics")[2], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        samples = json.loads(done.stdout)
        counted = {labels["rule"]: value for name, labels, value in samples if name == "settrain_set_size_count"}
        self.assertEqual(counted, {rule: 2 for rule in rules})
        self.assertIn(["settrain_requests_total", {"path": "/predict", "status": "200"}, 2], samples)
        self.assertIn(["settrain_requests_total", {"path": "other", "status": "404"}, 1], samples)
        self.assertTrue({name for name, _, _ in samples} >= {"settrain_predict_seconds_bucket", "settrain_waiting_images", "process_resident_memory_bytes"})


if __name__ == "__main__":
    main()
