"""Disks that are full or may not be written: on small file systems of their own, which takes the right to mount them."""

import subprocess
import unittest

from program import PROGRAM, TINY, ProgramTest, environment, main, tensors_of


class SizeLimit(ProgramTest):
    def test_a_file_over_the_limit_is_an_error_and_leaves_nothing(self):
        self.train_tiny("tiny", "--set", "train.epochs=1")
        for command in ("export runs/tiny --out tiny.safetensors", "export runs/tiny --format onnx --out tiny.onnx", "import runs/tiny/checkpoints/last.safetensors --out w.safetensors",
                        "data show tiny.yaml --out sheet.png"):
            before = sorted(self.folder.rglob("*"))
            done = subprocess.run(["bash", "-c", f"ulimit -f 1; {PROGRAM} {command}"], cwd=self.folder, env=environment(), capture_output=True, text=True)
            self.assertGreater(done.returncode, 0, command)
            self.assertIn("error: ", done.stderr, command)
            self.assertEqual(sorted(self.folder.rglob("*")), before)


class Disk(ProgramTest):
    def on_small_disk(self, kibibytes, script):
        """Runs the shell script with a file system of its own at `disk`. What the script copies to `kept` stays."""
        self.write("tiny.yaml", TINY)
        (self.folder / "disk").mkdir()
        script = f"mount -t tmpfs -o size={kibibytes}k tmpfs disk || exit 77\n{script}"
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script], cwd=self.folder, env=environment(), capture_output=True, text=True)
        if done.returncode == 77 or "unshare:" in done.stderr:
            self.skipTest("needs the right to mount a file system")
        return done

    def assert_goes_on(self):
        self.assertFalse(list((self.folder / "kept").rglob("*.tmp-*")))
        self.run_program("--resume", "kept", "--device", "cpu")
        self.train_tiny()
        self.assertEqual(tensors_of(self.folder / "kept/checkpoints/last.safetensors"), tensors_of(self.folder / "runs/tiny/checkpoints/last.safetensors"))

    def test_a_full_disk(self):
        # Enough for the logs and two checkpoints of 50 KB, and not for a third.
        done = self.on_small_disk(120, f"{PROGRAM} --config tiny.yaml --device cpu --set run.dir=disk/run; code=$?; cp -r disk/run kept; exit $code")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"cannot write '\S+\.safetensors': No space left on device; free some space")
        self.assert_goes_on()

    def test_a_disk_that_may_only_be_read(self):
        train = f"{PROGRAM} --config tiny.yaml --device cpu --set run.dir=disk/run --set select=[]"
        resume = f"{PROGRAM} --resume disk/run --device cpu --set train.epochs=3"
        done = self.on_small_disk(1000, f"{train} || exit 5; mount -o remount,ro disk; {resume}; code=$?; cp -r disk/run kept; exit $code")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("Read-only file system", done.stderr)
        self.assertTrue((self.folder / "kept/results.json").exists())
        self.run_program("--resume", "kept", "--device", "cpu", "--set", "train.epochs=3")
        self.assertEqual(len((self.folder / "kept/metrics.jsonl").read_text().splitlines()), 3)


if __name__ == "__main__":
    main()
