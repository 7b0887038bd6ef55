"""A headless Chromium, driven by chromedriver over the W3C WebDriver protocol. Nothing but Python's standard library."""

import base64
import json
import pathlib
import shutil
import subprocess
import time
import urllib.error
import urllib.request

from program import line_with

CHROMEDRIVER = shutil.which("chromedriver")  # Debian's package chromium-driver

# The first two are for root in a container, which has no sandbox and a small /dev/shm.
SWITCHES = ("--no-sandbox", "--disable-dev-shm-usage", "--headless=new", "--disable-gpu", "--no-proxy-server", "--window-size=1200,900")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's id, by the standard


class WebDriverError(RuntimeError):
    pass


class Browser:
    """One window. `with Browser() as browser:` closes it, and the driver with it."""

    def __init__(self):
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.session = ""
        self.driver = subprocess.Popen([CHROMEDRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            line = line_with(self.driver, "started successfully on port", seconds=60)
            self.address = f"http://127.0.0.1:{line.split()[-1].rstrip('.')}"
            wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": SWITCHES}, "goog:loggingPrefs": {"browser": "ALL"}}
            self.session = "/session/" + self.call("POST", "/session", capabilities={"alwaysMatch": wanted})["sessionId"]
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            if self.session:
                self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=30)
            self.driver.stdout.close()

    def call(self, method, path, **body):
        """A command of the protocol, to this session once there is one."""
        content = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.address + self.session + path, content, {"Content-Type": "application/json"}, method=method)
        try:
            with self.opener.open(request, timeout=120) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise WebDriverError(json.load(error)["value"]["message"]) from None

    def open(self, address):
        self.call("POST", "/url", url=address)

    def script(self, text, *arguments):
        """What the body of a function returns in the page; a promise is waited for."""
        return self.call("POST", "/execute/sync", script=text, args=arguments)

    def wait(self, condition, *arguments, seconds=60):
        """Waits until an expression of the page is true, and returns its value."""
        limit = time.monotonic() + seconds
        while not (value := self.script(f"return {condition}", *arguments)):
            if time.monotonic() > limit:
                raise TimeoutError(f"not within {seconds} s: {condition}; the page says:\n{self.text('body')}")
            time.sleep(0.02)
        return value

    def text(self, selector):
        """The text of the first element of a CSS selector, as it is rendered."""
        return self.script("return document.querySelector(arguments[0]).innerText", selector)

    def texts(self, selector):
        return self.script("return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)", selector)

    def element(self, selector):
        return f"/element/{self.call('POST', '/element', using='css selector', value=selector)[ELEMENT]}"

    def click(self, selector):
        self.call("POST", self.element(selector) + "/click")

    def type(self, selector, text):
        """Keys; for a file picker paths, a line each."""
        self.call("POST", self.element(selector) + "/value", text=text)

    def log(self):
        """What the console got since the last call, errors of the network and of the Content-Security-Policy among it."""
        return [entry["message"] for entry in self.call("POST", "/se/log", type="browser")]

    def devtools(self, command, **parameters):
        """A command of Chromium's DevTools protocol."""
        return self.call("POST", "/goog/cdp/execute", cmd=command, params=parameters)

    def resize(self, width, height):
        """The page's own size, which may be below the smallest window."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("GET", "/screenshot")))
