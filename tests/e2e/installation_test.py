"""The program as `cmake --install` leaves it."""

import pathlib
import subprocess
import unittest

from program import PROGRAM, ProgramTest


class Installation(ProgramTest):
    def test_the_installed_program_runs_with_its_own_configs_and_golden_values(self):
        build = pathlib.Path(PROGRAM).parents[2]
        subprocess.run(["cmake", "--install", build, "--prefix", self.folder / "there"], check=True, capture_output=True)
        for arguments in (["config", "show", "--config", "quickstart.yaml"], ["check", "metrics", "--device", "cpu"]):
            done = subprocess.run([self.folder / "there/bin/settrain", *arguments], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            if arguments[0] == "config":
                self.assertIn("there/share/settrain/configs/quickstart.yaml", done.stdout)


if __name__ == "__main__":
    unittest.main()
