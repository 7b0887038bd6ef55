"""Data sets fetched from a server of the test's own."""

import hashlib
import http.server
import io
import os
import re
import signal
import subprocess
import tarfile
import threading
import time
import unittest

from program import PROGRAM, ProgramTest, environment


def archive():
    """CIFAR-100's folder with small files, of bytes that gzip cannot shrink."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in ("train.bin", "test.bin"):
            content = os.urandom(300_000)
            info = tarfile.TarInfo(f"cifar-100-binary/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


class Server:
    """Serves one content. `stall_after`: the first answer stops for good after so many bytes; `break_after`: each ends there."""

    def __init__(self, content, ranges=True, stall_after=None, break_after=None):
        self.starts = []  # of the ranges that were asked for
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                if self.path != "/archive.tar.gz":
                    return self.send_error(404)
                wanted = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
                start = int(wanted[1]) if wanted and ranges else 0
                server.starts.append(start)
                if start >= len(content):
                    return self.send_error(416)
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(content) - start))
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
                self.end_headers()
                first = len(server.starts) == 1
                if first and stall_after:
                    self.wfile.write(content[:stall_after])
                    self.wfile.flush()
                    server.stalled.wait(60)
                elif break_after:
                    self.wfile.write(content[start : start + break_after])
                else:
                    self.wfile.write(content[start:])

        self.stalled = threading.Event()
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/archive.tar.gz"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.stalled.set()
        self.http.shutdown()
        self.http.server_close()


class Fetch(ProgramTest):
    def serve(self, content, **options):
        server = Server(content, **options)
        self.addCleanup(server.close)
        return server

    def arguments(self, server, content, *more):
        return ("data", "fetch", "cifar100", "--to", "here", "--source", server.url, "--md5", hashlib.md5(content).hexdigest(), *more)

    def files(self):
        return sorted(name for name in os.listdir(self.folder / "here") if not name.startswith(".settrain-fetch"))

    def test_it_is_downloaded_checked_unpacked_and_then_left_alone(self):
        content = archive()
        server = self.serve(content)
        self.assertIn("no file train.bin", self.run_program("--config", self.write("c.yaml", "data: {name: cifar100, root: here/cifar-100-binary}\n"), expect=1).stderr)
        self.assertIn("Nothing was downloaded", self.run_program(*self.arguments(server, content, "--dry-run")).stdout)
        self.assertFalse((self.folder / "here").exists())
        out = self.run_program(*self.arguments(server, content)).stdout
        self.assertIn("licence", out)
        self.assertIn("now in 'here/cifar-100-binary'", out)
        self.assertEqual(self.files(), ["cifar-100-binary"])
        self.assertEqual(sorted(os.listdir(self.folder / "here/cifar-100-binary")), ["test.bin", "train.bin"])
        self.assertIn("already in", self.run_program(*self.arguments(server, content)).stdout)
        self.assertEqual(server.starts, [0])

    def stop(self, server, content, number):
        process = self.start_program(*self.arguments(server, content))
        part = self.folder / "here/cifar-100-binary.tar.gz.part"
        limit = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size >= 100_000) and time.monotonic() < limit:
            time.sleep(0.02)
        process.send_signal(number)
        error = process.communicate(timeout=60)[1]
        return process.returncode, part, error

    def test_ctrl_c_leaves_a_part_that_the_next_call_goes_on_with(self):
        content = archive()
        server = self.serve(content, stall_after=200_000)
        code, part, error = self.stop(server, content, signal.SIGINT)
        self.assertEqual(code, 130)
        self.assertIn("run this again to go on", error)
        size = part.stat().st_size  # curl writes whole buffers
        self.assertGreaterEqual(size, 100_000)
        self.run_program(*self.arguments(server, content))
        self.assertEqual(server.starts, [0, size])
        self.assertEqual(self.files(), ["cifar-100-binary"])

    def test_after_a_kill_curl_keeps_others_away_until_it_ends(self):
        content = archive()
        server = self.serve(content, stall_after=200_000)
        code, part, _ = self.stop(server, content, signal.SIGKILL)
        self.assertEqual(code, -signal.SIGKILL)
        self.assertIn("is being written", self.run_program(*self.arguments(server, content), expect=1).stderr)
        server.stalled.set()  # the connection closes, and curl ends
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            done = subprocess.run([PROGRAM, *self.arguments(server, content)], cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=120)
            if done.returncode == 0:
                break
            self.assertIn("is being written", done.stderr)
            time.sleep(0.2)
        self.assertEqual(self.files(), ["cifar-100-binary"])

    def test_a_connection_that_breaks_is_taken_up_again(self):
        content = archive()
        server = self.serve(content, break_after=250_000)
        self.assertIn("trying again", self.run_program(*self.arguments(server, content)).stderr)
        self.assertEqual(server.starts, [0, 250_000, 500_000])

    def test_a_server_without_ranges_is_asked_for_all_of_it(self):
        content = archive()
        server = self.serve(content, ranges=False)
        (self.folder / "here").mkdir()
        (self.folder / "here/cifar-100-binary.tar.gz.part").write_bytes(content[:1000])
        self.assertIn("from the beginning", self.run_program(*self.arguments(server, content)).stderr)
        self.assertEqual(self.files(), ["cifar-100-binary"])

    def test_a_wrong_checksum_tells_got_and_expected(self):
        content = archive()
        server = self.serve(content)
        error = self.run_program(*self.arguments(server, b"other"), expect=1).stderr
        self.assertIn(f"has MD5 {hashlib.md5(content).hexdigest()}, expected MD5 {hashlib.md5(b'other').hexdigest()}", error)
        self.assertIn("cifar-100-binary.tar.gz.wrong", error)
        self.assertEqual(self.files(), ["cifar-100-binary.tar.gz.wrong"])

    def test_errors_repeat_the_address_and_say_what_to_do_by_hand(self):
        content = archive()
        server = self.serve(content)
        by_hand = f"put it at '{self.folder.resolve()}/here/cifar-100-binary.tar.gz'"
        for source, reason in (
            (server.url + ".none", "404"),
            ("http://127.0.0.1:1/a.tar.gz", "onnect"),
            ("http://no-such-host.invalid/a.tar.gz", "connected"),
            ("file:///nowhere/a.tar.gz", "no such file"),
        ):
            error = self.run_program("data", "fetch", "cifar100", "--to", "here", "--source", source, expect=1).stderr
            for text in (source, reason, by_hand):
                self.assertIn(text, error)

    def test_without_curl_the_ways_to_get_it_are_named(self):
        env = {**environment(), "PATH": str(self.folder)}
        done = subprocess.run([PROGRAM, "data", "fetch", "cifar100", "--to", "here"], cwd=self.folder, env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        for way in ("no curl in PATH", "package curl", "conda-forge", "put it at"):
            self.assertIn(way, done.stderr)

    def test_the_table_and_what_cannot_be_fetched(self):
        out = self.run_program("data", "fetch").stdout
        for text in ("cifar100", "03b5dce01913d631647c71ecec9e9cb8", "fashion_mnist", "plantnet300k", "not recorded here", "imagenet_lt", "licence"):
            self.assertIn(text, out)
        error = self.run_program("data", "fetch", "imagenet_lt", "--to", "d", expect=1).stderr
        for text in ("image-net.org", "d/imagenet/train", "ImageNet_LT_train.txt", 'root: "d/imagenet"', "name: imagenet_lt"):
            self.assertIn(text, error)

    def test_mistakes(self):
        self.assertIn("did you mean 'cifar100'?", self.run_program("data", "fetch", "cifar10", expect=2).stderr)
        self.assertIn("--md5", self.run_program("data", "fetch", "cifar100", "--md5", "12", expect=2).stderr)
        self.assertIn("4 files", self.run_program("data", "fetch", "fashion_mnist", "--md5", "0" * 32, expect=2).stderr)
        self.run_program("data", "fetch", "cifar100", "fashion_mnist", expect=2)
        for option in ("--source", "--md5"):
            self.assertIn("name it", self.run_program("data", "fetch", option, "0" * 32, expect=2).stderr)
        self.write("file", "")
        self.assertIn("file/below", self.run_program("data", "fetch", "cifar100", "--to", "file/below", expect=1).stderr)


if __name__ == "__main__":
    unittest.main()
