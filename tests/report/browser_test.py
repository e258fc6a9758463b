#!/usr/bin/env python3
"""The report of 6,400 samples in headless Chromium: it opens without a console error, the viewer shows a sample, and the
keyboard alone leads through steps and trajectories. Exit code 77: Chromium is not installed.

usage: browser_test.py REPORT_TEST PAGE    (run by ctest; REPORT_TEST writes PAGE)
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

KEYS = {"Tab": 9, "ArrowRight": 39, "ArrowDown": 40, "ArrowUp": 38, "PageUp": 33, "PageDown": 34}


class Browser:
    """Chromium, spoken with by the DevTools protocol over a pair of pipes: JSON messages that end in a zero byte."""

    def __init__(self, program, folder):
        read, self._out = os.pipe()
        self._in, write = os.pipe()

        def place():  # Chromium reads from 3 and writes to 4
            ends = os.dup(read), os.dup(write)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--user-data-dir=" + folder, "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self._rest, self._number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    _session = None

    def call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def _next(self):
        while b"\0" not in self._rest:
            got = os.read(self._in, 1 << 16)
            assert got, "Chromium has ended"
            self._rest += got
        line, self._rest = self._rest.split(b"\0", 1)
        return json.loads(line)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])

    def until(self, expression, what):
        for _ in range(600):
            if self.value(expression):
                return
            time.sleep(0.05)
        raise AssertionError("after 30 s: " + what)

    def close(self):
        self._process.kill()
        self._process.wait()


def main():
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        print("skipped: Chromium is not installed (apt install chromium)")
        sys.exit(77)
    test, page = sys.argv[1:]
    subprocess.run([test, "--gtest_filter=*APageOf*"], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        try:
            check(browser, page)
            check_stages(browser, page.replace(".html", "_stages.html"))
        finally:
            browser.close()


def check(browser, page):
    for domain in ("Page", "Runtime", "Log", "Performance"):
        browser.call(domain + ".enable")
    browser.call("Network.enable")
    browser.call("Page.navigate", url="file://" + os.path.abspath(page))
    shown = "document.querySelector('#trajectories .interactive pre.tokens') !== null"
    # By the page's own clock, since it was asked for.
    browser.until("document.readyState === 'complete'", "the page is not there")
    milliseconds = browser.value("""new Promise((found) => {
      const look = () => %s ? found(performance.now()) : setTimeout(look, 5); look(); })""" % shown)
    work = {m["name"]: m["value"] for m in browser.call("Performance.getMetrics")["metrics"]}
    print("%.1f MB; a sample was shown by %.2f s after the navigation; %.2f s of work" %
          (os.path.getsize(page) / 1e6, milliseconds / 1e3, work["TaskDuration"]))
    sections = browser.value("[...document.querySelectorAll('main > section')].map((s) => s.id)")
    for expected in ("headline", "learning", "outcomes", "heldout", "time", "trajectories", "configuration"):
        assert expected in sections, sections

    # A KL that spikes once: what most steps had, beside the spike.
    learning = browser.value("document.querySelector('#learning').textContent")
    assert "median 0.5, 95th percentile 0.5, largest 1000 at step 2" in learning, learning
    # A value that two seeds measured once: a dot at their mean, between the axis's ends.
    dot = browser.value("""(() => {
      const figure = curves('once', [{ label: 'a', color: 'red', runs: [[[7, 1]], [[7, 3]]] }]);
      return [...figure.querySelectorAll('circle')].map((c) => [Number(c.getAttribute('cx')), Number(c.getAttribute('cy'))]);
    })()""")
    assert len(dot) == 1 and 150 < dot[0][0] < 250 and 60 < dot[0][1] < 120, dot
    table = browser.value("document.querySelector('#suggestions table').textContent")
    assert "applied, for example, as" in table and "unroll the loop" in table, table

    # Tab leads to the viewer, and from there the arrows.
    for _ in range(300):
        browser.press("Tab")
        if browser.value("document.activeElement.tagName === 'BUTTON' && "
                         "document.activeElement.closest('#trajectories .interactive') !== null"):
            break
    else:
        raise AssertionError("Tab never comes to the viewer")
    place = "Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"
    text = "document.querySelector('#trajectories .chip').parentNode.textContent"
    browser.press("ArrowDown")
    browser.until(place + ".trajectory === '1'", "arrow down does not go to the next trajectory")
    browser.until(text + ".includes('of trajectory 1')", "the next trajectory is not shown")
    browser.press("ArrowUp")
    browser.until(place + ".trajectory === '0'", "arrow up does not go back")
    assert browser.value(place + ".step") == "100"
    browser.press("PageUp")
    browser.until(place + ".step === '99'", "page up does not go to the step before")
    browser.press("PageDown")
    browser.until(place + ".step === '100'", "page down does not go to the next step")

    complaints = [event for event in browser.events
                  if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded") or
                  (event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] in ("error", "warning"))]
    assert not complaints, complaints
    asked = [event["params"]["request"]["url"] for event in browser.events if event["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith(("file:", "data:")) for url in asked), "it asks the network: %s" % asked


def check_stages(browser, page):
    """Runs with different stages: each stage is said of its own run."""
    browser.call("Page.navigate", url="file://" + os.path.abspath(page))
    browser.until("document.querySelector('#learning') !== null && document.readyState === 'complete'", "no page")
    learning = browser.value("document.querySelector('#learning').textContent")
    assert re.search(r"Stages: trainer_grpo from step 1, second from step 3 \([^)]*one[^)]*\); "
                     r"trainer_grpo from step 1 \([^)]*two[^)]*\)\.", learning), learning


if __name__ == "__main__":
    main()
