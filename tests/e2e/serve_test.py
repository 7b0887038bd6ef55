"""settrain serve: sets over HTTP, as `settrain predict` gives them, whatever clients send."""

import concurrent.futures
import contextlib
import email.utils
import http.client
import json
import pathlib
import random
import signal
import socket
import struct
import time
import zlib

from program import main
from serving import CLASSES, RULES, ServingTest, form_of

PHOTOGRAPHS = [f"photograph_{i}.png" for i in range(4)]


def resident_bytes(process):
    return int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


def png_header(width, height):
    """The beginning of a PNG file of that size; the pixels are missing."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))


def bad_requests(good_image, count):
    """Requests that something is wrong with, as bytes; always the same ones."""
    draw = random.Random(7)
    form, kind = form_of([good_image, good_image])

    def post(body, headers=b"", length=None):
        return b"POST /predict HTTP/1.1\r\nHost: a\r\n" + headers + b"Content-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body

    good = [post(good_image), post(form, b"Content-Type: " + kind.encode() + b"\r\n"), b"GET /model HTTP/1.1\r\nHost: a\r\n\r\n"]

    def cut():
        whole = draw.choice(good)
        return whole[: draw.randrange(1, len(whole))]

    def changed():
        text = bytearray(draw.choice(good))
        for _ in range(draw.randrange(1, 20)):
            text[draw.randrange(len(text))] = draw.randrange(256)
        return bytes(text)

    def broken_image():
        image = bytearray(good_image)
        for _ in range(draw.randrange(1, 10)):
            image[draw.randrange(len(image))] ^= 1 << draw.randrange(8)
        return post(bytes(image[: draw.randrange(1, len(image) + 1)]))

    def noise():
        return draw.randbytes(draw.randrange(1, 400))

    def odd():
        method = draw.choice([b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"PRI", b"get", b"", b"CONNECT"])
        paths = [b"/predict", b"/../../etc/passwd", b"/%00", b"/" + b"a" * draw.randrange(9000), b"*", b"//", b"/model?" + b"x=1&" * 500]
        path = draw.choice([*paths, b"http://a/predict", b"http://u@a:x/", b"a:443"])
        host = draw.choice([b"", b"Host: a\r\n", b"Host: a\r\n", b"Host: a b\r\n", b"\r\n"])
        header = draw.choice([b"Content-Length: -5", b"Transfer-Encoding: chunked", b"Range: bytes=0-" + b",1-" * 500, b"X: " + b"y" * 9000, b": :", b"Expect: 100-continue"])
        return method + b" " + path + b" HTTP/1.1\r\n" + host + header + b"\r\n\r\n" + noise()

    kinds = [cut, changed, broken_image, noise, odd]
    return [draw.choice(kinds)() for _ in range(count)]


class Serve(ServingTest):
    def sets_of_predict(self, *inputs):
        rules = [] if "--rule" in inputs else [f"--rule={rule}" for rule in RULES]
        self.run_program("predict", "runs/trees", *inputs, *rules, "--out", "out.jsonl", "--overwrite", "--device", "cpu")
        return [json.loads(line)["sets"] for line in (self.folder / "out.jsonl").read_text().splitlines()]

    def assert_same_sets(self, answered, expected):
        """The same classes in the same order, with the same probabilities but for how sums of other batches round."""
        self.assertEqual(list(answered), list(expected))
        for rule, wanted in expected.items():
            self.assertEqual({**answered[rule], "probabilities": None}, {**wanted, "probabilities": None})
            for mine, theirs in zip(answered[rule]["probabilities"], wanted["probabilities"], strict=True):
                self.assertAlmostEqual(mine, theirs, delta=1e-5)

    def test_answers_are_those_of_predict(self):
        expected = self.sets_of_predict(*PHOTOGRAPHS)
        self.start_server()
        for name, sets in zip(PHOTOGRAPHS, expected, strict=True):
            answer = self.predict(name)
            self.assertEqual(answer["images"], 1)
            self.assert_same_sets(answer["sets"], sets)
        for name in PHOTOGRAPHS:
            (self.folder / "specimen").mkdir(exist_ok=True)
            (self.folder / name).rename(self.folder / "specimen" / name)
        answer = self.predict(*(f"specimen/{name}" for name in PHOTOGRAPHS))
        self.assertEqual(answer["images"], 4)
        self.assert_same_sets(answer["sets"], self.sets_of_predict("specimen", "--group", "folder")[0])

    def test_an_exported_file_answers_by_the_rules_that_are_named(self):
        self.run_program("export", "runs/trees", "--output", "trees.safetensors")
        expected = self.sets_of_predict(PHOTOGRAPHS[1], "--by", "superclass", "--rule", "top:2", "--rule", "error:0.5")
        self.start_server("--by", "superclass", "--rule", "top:2", "error:0.5", model="trees.safetensors")
        self.assert_same_sets(self.predict(PHOTOGRAPHS[1])["sets"], expected[0])
        model = self.ask("GET", "/model")[2]
        self.assertEqual(model["names"], ["a<b>&", "acer", "quercus"])
        self.assertEqual([model["file"], model["by"]], ["trees.safetensors", "superclass"])

    def test_a_request_may_name_a_place(self):
        (self.folder / "prior.csv").write_text("acer,3\nquercus_a,1\n")
        (self.folder / "flora.txt").write_text("acer\nquercus_b\n")
        self.run_program("calibrate", "runs/trees", *(f"--rules={rule}" for rule in RULES), "--prior", "alps=prior.csv", "--device", "cpu")
        expected = {}
        for flag, place in (("--prior", "alps"), ("--only", "flora.txt")):
            rules = [f"--rule={rule}" for rule in RULES]
            self.run_program("predict", "runs/trees", PHOTOGRAPHS[0], flag, place, *rules, "--out", "out.jsonl", "--overwrite", "--device", "cpu")
            expected[place] = json.loads((self.folder / "out.jsonl").read_text())["sets"]
        plain = self.sets_of_predict(PHOTOGRAPHS[0])[0]
        self.start_server("--offer", "flora=flora.txt")
        places = self.ask("GET", "/model")[2]["places"]
        self.assertEqual([(place["kind"], place["name"]) for place in places], [("prior", "alps"), ("only", "flora")])
        self.assertIn("at the place", places[0]["rules"][0]["guarantee"])
        photograph = (self.folder / PHOTOGRAPHS[0]).read_bytes()
        for query, sets in (("prior=alps", expected["alps"]), ("pr%69or=%61lps", expected["alps"]), ("only=flora", expected["flora.txt"]), ("", plain), ("&", plain)):
            status, _, answer = self.ask("POST", f"/predict?{query}", photograph)
            self.assertEqual(status, 200)
            self.assert_same_sets(answer["sets"], sets)
        for query in ("prior=flora", "only=", "prior", "prior=alps&only=flora", "prior=%00", "rule=top:1", "only=flora&x"):
            status, _, answer = self.ask("POST", f"/predict?{query}", photograph)
            self.assertEqual([status, list(answer)], [400, ["error"]])

    def test_a_place_answers_by_the_rules_that_it_has(self):
        (self.folder / "prior.csv").write_text("acer,3\nquercus_a,1\n")
        lac, aps = "conformal:lac:0.2", "conformal:aps:0.2"
        self.run_program("calibrate", "runs/trees", f"--rules={lac}", "--prior", "alps=prior.csv", "--device", "cpu")
        self.run_program("calibrate", "runs/trees", f"--rules={aps}", "--device", "cpu")
        self.start_server(f"--rule={lac}", f"--rule={aps}")
        model = self.ask("GET", "/model")[2]
        self.assertEqual([rule["name"] for rule in model["rules"]], [lac, aps])
        self.assertEqual([[rule["name"] for rule in place["rules"]] for place in model["places"]], [[lac]])

    def test_the_model_says_what_it_promises(self):
        self.start_server()
        status, headers, model = self.ask("GET", "/model")
        self.assertEqual([status, headers["Cache-Control"]], [200, "no-store"])
        self.assertLess(abs(email.utils.parsedate_to_datetime(headers["Date"]).timestamp() - time.time()), 60)
        self.assertEqual(model["names"], list(CLASSES))
        self.assertEqual([rule["name"] for rule in model["rules"]], list(RULES))
        self.assertIn("at least 0.8", model["rules"][0]["guarantee"])
        self.assertEqual([model["rules"][1]["guarantee"], "size is fixed" in model["rules"][1]["no_guarantee"]], [None, True])
        self.assertIn("calibration", model["calibrated_on"])
        self.assertEqual(model["input"], {"height": 16, "width": 16, "channels": 3})

    def test_clients_at_a_time_are_answered_together_and_alike(self):
        self.start_server("--window", "200")
        alone = {name: self.predict(name) for name in PHOTOGRAPHS}
        with concurrent.futures.ThreadPoolExecutor(16) as clients:
            names = PHOTOGRAPHS * 25
            for name, answer in zip(names, clients.map(self.predict, names), strict=True):
                self.assert_same_sets(answer["sets"], alone[name]["sets"])
        for _ in range(100):  # a request is counted behind its answer
            metrics = self.ask("GET", "/metrics")[2].decode()
            values = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
            if values['settrain_requests_total{path="/predict",status="200"}'] == "104":
                break
            time.sleep(0.1)
        self.assertEqual(values['settrain_requests_total{path="/predict",status="200"}'], "104")
        self.assertEqual(values['settrain_set_size_count{rule="top:4"}'], "104")
        self.assertEqual(values["settrain_batch_images_sum"], "104")
        self.assertLess(int(values["settrain_batch_images_count"]), 104)
        self.assertEqual(values["settrain_waiting_images"], "0")

    def test_what_is_refused_says_why(self):
        self.start_server("--megapixels", "0.01", "--mebibytes", "0.01", "--images", "2")
        good = (self.folder / PHOTOGRAPHS[0]).read_bytes()

        def refused(body, kind="image/png"):
            status, headers, answer = self.ask("POST", "/predict", body, {"Content-Type": kind})
            return status, answer["error"]

        self.assertEqual(refused(b"no image"), (400, "the image cannot be read: is no JPEG, PNG, BMP, WebP or TIFF image"))
        self.assertEqual(refused(good[:-40])[0], 400)
        self.assertEqual(refused(png_header(200, 100)), (413, "the image has 200 x 100 pixels, more than the 10,000 that are taken"))
        self.assertEqual(refused(png_header(2**31 - 1, 2**31 - 1))[0], 413)
        self.assertEqual(refused(bytes(20000))[0], 413)
        self.assertEqual(refused(*form_of([good, b"no image"]))[1], "'x.png' cannot be read: is no JPEG, PNG, BMP, WebP or TIFF image")
        self.assertEqual(refused(*form_of([good] * 3)), (413, "there are more than 2 images, the most that are taken together"))
        self.assertEqual(self.ask("GET", "/nothing")[0], 404)
        self.assertEqual(self.ask("POST", "/predict", good)[0], 200)

    def test_a_form_may_have_fields_beside_its_photographs(self):
        self.start_server("--megapixels", "0.01")
        good = (self.folder / PHOTOGRAPHS[0]).read_bytes()

        def answer_to(*parts):
            """The status and the answer to a form with these parts, each with its headers behind the field's name, and its content."""
            head = b'--limit\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
            body = b"".join(head % part for part in parts) + b"--limit--\r\n"
            return self.ask("POST", "/predict", body, {"Content-Type": "multipart/form-data; boundary=limit"})[::2]

        note, leaf = (b"note", b"found by the river"), b'leaf"; filename="x.png'
        self.assertEqual(answer_to(note, (leaf, good), (b"n", b"")), (200, self.predict(PHOTOGRAPHS[0])))
        self.assertEqual(answer_to((b"leaf", good), (b"bark", good))[1]["images"], 2)  # no file names at all: they are the images
        for bad, status in ((b"no image", 400), (good[:-40], 400), (b"", 400), (png_header(200, 100), 413)):
            refused = answer_to((b'flower"; filename="x.png', good), note, (leaf, bad))
            self.assertEqual((refused[0], refused[1]["field"]), (status, "leaf"), refused)
        self.assertEqual(answer_to(note)[1]["field"], "note")
        self.assertNotIn("field", self.ask("POST", "/predict", b"no image")[2])

    def test_pages_of_other_origins_may_ask_where_they_are_allowed(self):
        self.start_server("--allow-origin", "https://a.org", "--allow-origin", "http://localhost:3000")
        good = (self.folder / PHOTOGRAPHS[0]).read_bytes()

        def allowed(origin, method="POST", path="/predict", body=good, **more):
            status, headers, _ = self.ask(method, path, body, {"Origin": origin, **more})
            self.assertEqual(headers["Vary"], "Origin")
            return status, headers["Access-Control-Allow-Origin"]

        for origin in ("https://a.org", "http://localhost:3000"):
            self.assertEqual(allowed(origin), (200, origin))
            self.assertEqual(allowed(origin, body=b"no image"), (400, origin))
            self.assertEqual(allowed(origin, "GET", "/nothing", None), (404, origin))
            self.assertEqual(allowed(origin, "OPTIONS", "/predict", None, **{"Access-Control-Request-Method": "POST"}), (204, origin))
        self.assertEqual(allowed("https://b.org"), (200, None))
        for origins in (["a.org"], ["https://a.org/"], ["https://A.org"], ["null"], ["https://a.org:443"], ["*", "https://a.org"], [""]):
            arguments = [word for origin in origins for word in ("--allow-origin", origin)]
            refused = self.run_program("serve", "runs/trees", *arguments, "--device", "cpu", expect=2)
            self.assertIn("--allow-origin", refused.stderr)

    def test_idle_connections_are_closed_after_the_time_that_is_asked_for(self):
        for seconds in ("0", "nan", "86401", "-1"):
            self.assertIn("--idle", self.run_program("serve", "runs/trees", "--idle", seconds, expect=2).stderr)
        self.start_server("--idle", "1.5")
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            for _ in range(2):
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
                answer = connection.recv(4096)
                self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer)
                self.assertNotIn(b"Connection: close", answer)
                time.sleep(0.7)
            start = time.monotonic()
            self.assertEqual(connection.recv(1), b"")
            self.assertLess(time.monotonic() - start, 4)

    def test_a_randomised_rule_has_one_answer_to_an_image(self):
        rule = "conformal:aps(randomised=true):0.3"
        self.run_program("calibrate", "runs/trees", "--rules", rule, "--device", "cpu")
        self.start_server("--rule", rule)
        answers = [self.predict(name)["sets"][rule] for name in PHOTOGRAPHS * 3]
        self.assertEqual(answers[:4] * 3, answers)

    def test_ten_thousand_bad_requests_do_no_harm(self):
        self.start_server("--timeout", "5")
        good = (self.folder / PHOTOGRAPHS[0]).read_bytes()
        before = self.predict(PHOTOGRAPHS[0])
        requests = bad_requests(good, 10_000)
        answered = []

        def send(some):
            for request in some:
                with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
                    try:
                        connection.sendall(request)
                        connection.shutdown(socket.SHUT_WR)
                        answer = b""
                        while more := connection.recv(65536):
                            answer += more
                    except ConnectionError:
                        continue  # refused before it was all sent
                    if answer:
                        self.assertTrue(answer.startswith(b"HTTP/1.1 "), answer[:80])
                        answered.append(int(answer[9:12]))

        def send_by_eight(some):
            with concurrent.futures.ThreadPoolExecutor(8) as clients:
                list(clients.map(send, [some[i::8] for i in range(8)]))

        send_by_eight(requests[:2000])  # memory that is taken once
        size = resident_bytes(self.server)
        send_by_eight(requests[2000:])
        self.assertIsNone(self.server.poll())
        self.assertNotIn(500, answered)
        self.assertGreater(answered.count(400), 1000)
        self.assertGreater(len(answered), 8000)
        self.assertEqual(self.predict(PHOTOGRAPHS[0]), before)
        self.assertLess(resident_bytes(self.server) - size, 24 << 20)
        # libpng writes a line of its own about each broken PNG.
        self.assertNotRegex((self.folder / "serve.log").read_text(), "(?m)^(error|warning|terminate)|/predict")

    def test_a_signal_lets_what_has_begun_be_answered(self):
        self.start_server()
        idle = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        idle.request("GET", "/healthz")
        idle.getresponse().read()
        body = (self.folder / PHOTOGRAPHS[0]).read_bytes()
        begun = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        begun.sendall(b"POST /predict HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        self.assertTrue(begun.recv(100).startswith(b"HTTP/1.1 100"))
        begun.sendall(body[:10])
        self.server.send_signal(signal.SIGTERM)
        limit = time.monotonic() + 60
        with self.assertRaises(ConnectionRefusedError):
            while time.monotonic() < limit:
                with contextlib.suppress(ConnectionResetError):  # it came as the door closed
                    socket.create_connection(("127.0.0.1", self.port), timeout=60).close()
        self.assertIsNone(self.server.poll())
        begun.sendall(body[10:])
        answer = b""
        while more := begun.recv(65536):
            answer += more
        self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer)
        self.assertIn(b'"sets":', answer)
        self.assertIn(b"\r\nConnection: close\r\n", answer)
        self.assertEqual(self.server.wait(timeout=60), 143)
        self.server.stdout.close()
        begun.close()
        idle.close()

    def test_it_writes_nothing(self):
        before = sorted((path, path.stat().st_mtime_ns) for path in self.folder.rglob("*"))
        self.start_server()
        for name in PHOTOGRAPHS:
            self.predict(name)
        for path in ("/", "/model", "/metrics"):
            self.ask("GET", path)
        self.stop_server()
        after = sorted((path, path.stat().st_mtime_ns) for path in self.folder.rglob("*") if path.name != "serve.log")
        self.assertEqual(after, before)

    def test_what_cannot_be_served_is_said_at_once(self):
        self.start_server()
        taken = self.run_program("serve", "runs/trees", "--port", self.port, "--device", "cpu", expect=1)
        self.assertIn(f"cannot listen at 127.0.0.1:{self.port}: Address already in use; end the program that listens there, or", taken.stderr)
        self.assertIn("cannot listen at 203.0.113.1:", self.run_program("serve", "runs/trees", "--host", "203.0.113.1", "--device", "cpu", expect=1).stderr)
        self.assertIn("is not calibrated", self.run_program("serve", "runs/trees", "--rule", "conformal:aps:0.1", "--device", "cpu", expect=2).stderr)
        self.assertIn("--queue 3", self.run_program("serve", "runs/trees", "--queue", "3", "--device", "cpu", expect=2).stderr)
        self.run_program("serve", "runs/nothing", expect=1)


if __name__ == "__main__":
    main()
