"""The figures, as a user draws them."""

import os
import shutil
import subprocess
import unittest

from program import PROGRAM, ProgramTest, environment, main

NAMES = ("level-sets-k2", "level-sets-draws", "level-sets-epsilon", "level-sets-k1")


class Figures(ProgramTest):
    def run_without_gnuplot(self, *arguments):
        env = {**environment(), "PATH": str(self.folder)}
        return subprocess.run([PROGRAM, *arguments], cwd=self.folder, env=env, capture_output=True, text=True, timeout=300)

    @unittest.skipUnless(shutil.which("gnuplot"), "Debian's package gnuplot-nox is not installed")
    def test_all_figures_are_drawn_and_their_paths_printed(self):
        printed = self.run_program("figure", "level-sets", "--size", 11, "--replications", 2).stdout.split()
        self.assertEqual(sorted(printed), sorted(f"figures/{name}.{ending}" for name in NAMES for ending in ("svg", "png", "dat", "gp")))
        for path in printed:
            self.assertGreater((self.folder / path).stat().st_size, 1000, path)

    @unittest.skipUnless(shutil.which("gnuplot"), "Debian's package gnuplot-nox is not installed")
    def test_a_seed_repeats_the_draws_and_a_folder_may_have_any_name(self):
        odd = "a folder's; $(touch owned)"
        draw = ("figure", "level-sets", "--figure", 4, "--size", 11)
        for out, seed in ((odd, 3), ("again", 3), ("other", 4)):
            self.run_program(*draw, "--out", out, "--seed", seed)
        data = [(self.folder / out / "level-sets-draws.dat").read_text() for out in (odd, "again", "other")]
        self.assertEqual(data[0], data[1])
        self.assertNotEqual(data[0], data[2])
        self.assertEqual(sorted(os.listdir(self.folder)), sorted([odd, "again", "other"]))

    def test_without_gnuplot_data_and_script_are_left_and_the_package_is_named(self):
        done = self.run_without_gnuplot("figure", "level-sets", "--figure", "1", "--size", "11", "--out", "figures")
        self.assertEqual(done.returncode, 1)
        self.assertIn("gnuplot-nox", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder / "figures")), ["level-sets-k2.dat", "level-sets-k2.gp"])

    def test_mistakes(self):
        self.run_program("figure", "level-sets", "--figure", 7, expect=2)
        self.run_program("figure", "level-sets", "--size", 2, expect=2)
        self.run_program("figure", "level-sets", "--out", "", expect=2)
        self.run_program("figure", expect=2)
        self.write("file", "")
        self.assertIn("file/figures", self.run_program("figure", "level-sets", "--out", "file/figures", expect=1).stderr)


if __name__ == "__main__":
    main()
