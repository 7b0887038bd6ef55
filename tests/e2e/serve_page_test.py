"""The page of settrain serve, in headless Chromium: photographs go in, sets come out."""

import base64
import functools
import http.server
import shutil
import threading
import unittest

from browser import CHROMEDRIVER, Browser
from program import main
from serving import CLASSES, RULES, ServingTest

FILES = "const files = arguments[0].map(([name, bytes]) => new File([Uint8Array.from(atob(bytes), (one) => one.charCodeAt(0))], name));"
TRANSFER = "const transfer = new DataTransfer(); files.forEach((file) => transfer.items.add(file));"
DROP = 'document.querySelector("main").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: transfer }));'
CARDS = """
return [...document.querySelectorAll(".card")].map((card) => ({
  rule: card.querySelector("h2").textContent,
  size: card.querySelector("header span").textContent,
  classes: [...card.querySelectorAll(".set li")].map((row) => [...row.querySelectorAll("span")].map((part) => part.textContent)),
}));
"""
# In place of the server: an answer with a set of so many classes, or an error.
ANSWER_OF = """
const [size, status, nodes] = arguments;
const ask = window.fetch;
window.fetch = async (path, options) => {
  if (path !== "predict") return ask(path, options);
  if (status !== 200) return new Response('{"error":"too much to do"}', { status });
  const made = (value) => Array.from({ length: size }, (_, i) => value(i));
  const set = { size, names: made((i) => "class " + i), classes: made((i) => i), probabilities: made((i) => (i ? 0.0001 : 0.9999)), ...nodes };
  return new Response(JSON.stringify({ images: 1, sets: { "top:4": set } }));
};
"""


def percent(probability):
    shown = f"{100 * probability:.1f}"
    sign = "< 0.1" if shown == "0.0" and probability > 0 else "> 99.9" if shown == "100.0" and probability < 1 else shown
    return sign + "\u00a0%"


class Pages(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Nothing between the lines of the tests."""


@unittest.skipUnless(CHROMEDRIVER, "chromedriver is missing: apt-get install chromium-driver")
class ServePage(ServingTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        """A server of a run that was trained once, and its page."""
        super().setUp()
        self.start_server()
        self.browser.open(self.address + "/")
        self.browser.wait("document.querySelector('#answer > *')")
        self.addCleanup(self.expect_no_errors_of_the_page)

    def expect_no_errors_of_the_page(self):
        """Nothing in the console but requests that failed: no exception, nothing that the Content-Security-Policy forbids."""
        self.assertEqual([message for message in self.browser.log() if "Failed to load resource" not in message], [])

    def wait_for_answer(self, act):
        """Waits for what the page shows after `act`."""
        self.browser.script("for (const part of document.querySelectorAll('#answer > *')) part.dataset.old = true")
        act()
        self.browser.wait("document.querySelector('#answer > :not([data-old])')")

    def choose(self, *names):
        self.wait_for_answer(lambda: self.browser.type("#files", "\n".join(str(self.folder / name) for name in names)))

    def dropped(self, *names):
        """The argument of FILES."""
        return [[name, base64.b64encode((self.folder / name).read_bytes()).decode()] for name in names]

    def drop(self, *names):
        self.wait_for_answer(lambda: self.browser.script(FILES + TRANSFER + DROP, self.dropped(*names)))

    def expect_sets(self, answer):
        """The page shows what the server answered."""
        cards = self.browser.script(CARDS)
        self.assertEqual([card["rule"] for card in cards], list(answer["sets"]))
        for card, made in zip(cards, answer["sets"].values()):
            self.assertEqual(card["size"], f"{made['size']} of {len(CLASSES)} classes")
            self.assertEqual(card["classes"], [[name, percent(p)] for name, p in zip(made["names"], made["probabilities"])])

    def problem(self):
        return self.browser.text("#answer > .problem p")

    def state(self):
        """What is seen of the line above the answer: without what is only read out."""
        return self.browser.script("return document.querySelector('#status').firstChild?.textContent ?? ''")

    def test_it_loads_without_errors_and_asks_only_its_own_server(self):
        browser = self.browser
        self.assertEqual(browser.text("h1"), "image_folder, resnet8")
        self.assertEqual(browser.texts(".card h2"), list(RULES))
        promises = browser.texts(".promise")
        self.assertIn("Guarantee. The set holds the label of a new image with probability at least 0.8", promises[0])
        self.assertIn("No guarantee. ", promises[1])
        browser.type("body", "\ue004")  # the key Tab
        self.assertEqual(browser.script("return document.activeElement.id"), "files")
        self.choose("photograph_0.png")
        self.assertEqual(browser.log(), [])
        asked = browser.script("return performance.getEntriesByType('resource').map((one) => one.name)")
        for path in ("/page.css", "/page.js", "/model", "/predict"):
            self.assertIn(self.address + path, asked)
        origins = browser.script("return performance.getEntriesByType('resource').map((one) => new URL(one.name).origin)")
        self.assertEqual(set(origins), {self.address})

    def test_a_photograph_that_is_chosen(self):
        self.choose("photograph_0.png")
        self.assertEqual(self.state(), "Answer to this photograph")
        self.expect_sets(self.predict("photograph_0.png"))
        self.assertEqual(self.browser.texts("#thumbnails li"), ["photograph_0.png"])
        self.assertEqual(self.browser.script("return document.querySelector('#thumbnails img').naturalWidth"), 40)
        self.assertEqual(self.browser.texts("#answer > .note"), [])
        names = [name for name, _ in self.browser.script(CARDS)[1]["classes"]]
        self.assertEqual(sorted(names), sorted(CLASSES))
        self.assertEqual(self.browser.texts("main b"), [])
        self.choose("photograph_1.png")
        self.expect_sets(self.predict("photograph_1.png"))

    def test_photographs_that_are_dropped_or_pasted(self):
        over = 'document.dispatchEvent(new DragEvent("dragover", { bubbles: true, cancelable: true }));'
        self.browser.script(over)
        self.assertEqual(self.browser.script("return document.body.className"), "dragging")
        self.drop("photograph_1.png")
        self.assertEqual(self.browser.script("return document.body.className"), "")
        self.expect_sets(self.predict("photograph_1.png"))
        paste = 'document.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, clipboardData: transfer }));'
        self.wait_for_answer(lambda: self.browser.script(FILES + TRANSFER + paste, self.dropped("photograph_0.png")))
        self.expect_sets(self.predict("photograph_0.png"))
        self.drop()
        self.assertIn("That is not a file", self.problem())

    def test_two_photographs_of_one_specimen(self):
        self.choose("photograph_0.png", "photograph_1.png")
        self.assertEqual(self.state(), "One answer to 2 photographs of one specimen")
        self.assertEqual(self.browser.texts("#answer > .note"), ["A guarantee is for a single photograph, not for a group of them."])
        answer = self.predict("photograph_0.png", "photograph_1.png")
        self.assertEqual(answer["images"], 2)
        self.expect_sets(answer)
        self.assertEqual(self.browser.texts("#thumbnails li"), ["photograph_0.png", "photograph_1.png"])

    def test_a_file_that_is_no_photograph(self):
        self.choose("photograph_0.png")
        self.choose("notes.txt")
        self.assertIn(self.predict("notes.txt")["error"].split(";")[0].lower(), self.problem().lower())
        self.assertEqual(self.browser.texts(".card"), [])
        self.assertEqual(self.browser.texts("#thumbnails li"), ["no preview\nnotes.txt"])
        self.choose("photograph_0.png")
        self.expect_sets(self.predict("photograph_0.png"))

    def test_a_server_that_is_gone(self):
        self.stop_server()
        self.choose("photograph_0.png")
        self.assertEqual(self.problem(), "The server does not answer. It was stopped, or the network is gone.")
        self.wait_for_answer(lambda: self.browser.click(".problem button"))
        self.assertIn("The server does not answer.", self.problem())

    def test_a_newer_drop_cancels_the_older_request(self):
        never = """
        window.cancelled = [];
        const ask = window.fetch;
        window.fetch = (path, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => {
          window.fetch = ask;
          window.cancelled.push(path);
          reject(signal.reason);
        }));
        """
        self.browser.script(never + FILES + TRANSFER + DROP, self.dropped("notes.txt"))
        self.browser.wait("document.querySelector('#status.busy')")
        self.assertEqual(self.state(), "Waiting for the answer …")
        self.drop("photograph_0.png")
        self.expect_sets(self.predict("photograph_0.png"))
        self.assertEqual(self.browser.script("return window.cancelled.sort()"), ["model", "predict"])

    def test_what_is_beyond_the_limits_is_said_before_it_is_sent(self):
        limits = self.browser.script("return fetch('model').then((answer) => answer.json())")["limits"]
        self.drop(*["photograph_0.png"] * (limits["images"] + 1))
        self.assertIn(f"These are {limits['images'] + 1} photographs. The server takes at most {limits['images']}", self.problem())
        large = "const files = [new File([new Uint8Array(arguments[0])], 'large.png')];"
        self.wait_for_answer(lambda: self.browser.script(large + TRANSFER + DROP, limits["bytes"] + 1))
        self.assertRegex(self.problem(), r"^'large\.png' has [\d.]+ MiB\. The server takes at most [\d.]+ MiB\.$")
        asked = self.browser.script("return performance.getEntriesByType('resource').map((one) => one.name)")
        self.assertNotIn(self.address + "/predict", asked)

    def test_sets_of_all_sizes(self):
        for size, shown, button in ((0, 0, []), (1, 1, []), (20, 20, []), (1081, 20, ["Show all 1,081"])):
            with self.subTest(size=size):
                self.browser.script(ANSWER_OF, size, 200)
                self.choose("photograph_0.png")
                self.assertEqual(len(self.browser.texts(".set li")), shown)
                self.assertEqual(self.browser.texts(".card button"), button)
                empty = ["The set is empty: no class is likely enough by this rule."] if size == 0 else []
                self.assertEqual(self.browser.texts(".empty"), empty)
        rows = self.browser.script(CARDS)[0]["classes"]
        self.assertEqual([rows[0], rows[-1]], [["class 0", percent(0.9999)], ["class 19", percent(0.0001)]])
        self.browser.click(".card button")
        self.assertEqual([row[0] for row in self.browser.script(CARDS)[0]["classes"]], [f"class {i}" for i in range(1081)])
        self.assertEqual(self.browser.script("return document.activeElement.querySelector('span').textContent"), "class 20")
        self.assertEqual(self.browser.texts(".card button"), [])

    def test_nodes_of_a_taxonomy_stand_above_the_classes_of_the_set(self):
        nodes = {"nodes": ["genus one", "class 2"], "node_ranks": ["genus", "species"], "node_probabilities": [0.9, 0.1]}
        self.browser.script(ANSWER_OF, 3, 200, nodes)
        self.choose("photograph_0.png")
        rows = [row[0] for row in self.browser.script(CARDS)[0]["classes"]]
        self.assertEqual(rows, ["genus one (genus)", "class 2", "class 0", "class 1", "class 2"])
        self.assertEqual(self.browser.texts(".card summary"), ["The 3 classes of the set"])
        self.assertEqual(self.browser.script("return document.querySelector('.card details').open"), False)

    def test_a_place_is_chosen(self):
        self.assertTrue(self.browser.script("return document.querySelector('#where').hidden"))
        (self.folder / "prior.csv").write_text("acer,3\nquercus_a,1\n")
        self.run_program("calibrate", "runs/trees", *(f"--rules={rule}" for rule in RULES), "--prior", "alps=prior.csv", "--device", "cpu")
        self.stop_server()
        self.start_server()
        self.browser.open(self.address + "/")
        self.browser.wait("document.querySelector('#answer > *')")
        self.assertEqual(self.browser.texts("#place option"), ["anywhere", "alps"])
        self.choose("photograph_0.png")
        choose = "const one = document.querySelector('#place'); one.value = arguments[0]; one.dispatchEvent(new Event('change'));"
        self.wait_for_answer(lambda: self.browser.script(choose, "prior=alps"))
        names = {name for card in self.browser.script(CARDS) for name, _ in card["classes"]}
        self.assertEqual(names, {"acer", "quercus_a"})
        self.assertIn("At the place", self.browser.texts(".promise")[0])
        self.assertIn("'prior.csv'", self.browser.text("#where"))
        self.wait_for_answer(lambda: self.browser.script(choose, ""))
        self.expect_sets(self.predict("photograph_0.png"))

    def test_a_server_that_is_busy(self):
        self.browser.script(ANSWER_OF, 0, 503)
        self.choose("photograph_0.png")
        self.assertEqual(self.problem(), "Too much to do. Try again in a moment.")

    def test_a_page_of_another_origin_asks_where_it_is_allowed(self):
        (self.folder / "elsewhere").mkdir()
        self.write("elsewhere/index.html", "<!doctype html><link rel=icon href=data:,><title>elsewhere</title>")
        pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Pages, directory=self.folder / "elsewhere"))
        self.addCleanup(pages.server_close)
        self.addCleanup(pages.shutdown)
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{pages.server_port}"
        ask = """
        const [address, bytes, type] = arguments;
        const body = Uint8Array.from(atob(bytes), (one) => one.charCodeAt(0));
        return fetch(address + "/predict", { method: "POST", body, headers: { "Content-Type": type } })
          .then((answer) => answer.json().then((content) => [answer.status, content]), (error) => [0, error.name]);
        """
        good, bad = self.dropped("photograph_0.png", "notes.txt")
        answer = self.predict("photograph_0.png")
        for arguments, status in ((["--allow-origin", origin], 200), (["--allow-origin", "*"], 200), (["--allow-origin", "http://a.org"], 0), ([], 0)):
            with self.subTest(arguments=arguments):
                self.stop_server()
                self.start_server(*arguments)
                self.browser.open(origin + "/")
                for type_ in ("text/plain", "image/png"):  # the second one needs a preflight
                    got = self.browser.script(ask, self.address, good[1], type_)
                    self.assertEqual(got, [200, answer] if status else [0, "TypeError"])
                if status:
                    refused = self.browser.script(ask, self.address, bad[1], "image/png")
                    self.assertEqual([refused[0], "error" in refused[1]], [400, True])
        self.browser.log()  # the refusals that were wanted

    def test_a_narrow_window_needs_no_scrolling_sideways(self):
        self.addCleanup(self.browser.devtools, "Emulation.clearDeviceMetricsOverride")
        self.browser.resize(400, 800)
        too_wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        self.assertEqual(self.browser.script(too_wide), 0)
        long = f"{'long' * 40}.png"
        shutil.copy(self.folder / "photograph_0.png", self.folder / long)
        for names in ((long,), (long, "photograph_1.png"), ("notes.txt",)):
            self.choose(*names)
            self.assertEqual(self.browser.script(too_wide), 0)


if __name__ == "__main__":
    main()
