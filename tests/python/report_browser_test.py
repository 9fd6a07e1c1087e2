#!/usr/bin/env python3
"""The report in a real browser: no console errors, nothing fetched, every plot drawn, no overflow.

usage: report_browser_test.py [SCREENSHOT_FOLDER]
Needs the package, plotly, playwright and a Chromium; skips itself where one is missing.
"""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

SHOTS = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
try:
    from playwright.sync_api import sync_playwright
    from fulcrum import report
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(0)
if not CHROMIUM:
    print("skipped: no chromium")
    sys.exit(0)

CASES = """\
{"id": "a1", "scenario": "campaign-a", "concurrency": 1, "measured": {"output_tokens_per_second": 13}, \
"source": "made up for this test </script><b>"}
{"id": "a2", "scenario": "campaign-a", "overrides": {"engine.cuda_graph": false}, "concurrency": 8, \
"measured": {"tpot_seconds": 0.3}, "source": "made up for this test"}
{"id": "a3", "scenario": "nosuch", "concurrency": 8, "measured": {"tpot_seconds": 0.3}}
"""


class Report(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        (folder / "cases.jsonl").write_text(CASES)
        cls.file = folder / "report.html"
        cls.written = report.write(["campaign-a", "campaign-b"], cls.file,
                                   cases=[folder / "cases.jsonl"])
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM,
                                                     args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.folder.cleanup()

    def open(self, width, height, scheme):
        complaints, requests = [], []
        page = self.browser.new_page(viewport={"width": width, "height": height},
                                     color_scheme=scheme)
        self.addCleanup(page.close)
        page.on("console", lambda m: complaints.append(m.text)
                if m.type in ("error", "warning") and "GL Driver" not in m.text else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(self.file.as_uri())
        page.wait_for_selector("html[data-drawn=all]", timeout=60000)
        return page, complaints, requests

    def test_it_draws_everywhere_without_a_complaint(self):
        for scheme in ("light", "dark"):
            for name, width, height in (("desktop", 1280, 900), ("phone", 390, 844)):
                with self.subTest(scheme=scheme, width=width):
                    page, complaints, requests = self.open(width, height, scheme)
                    self.assertEqual(complaints, [])
                    outside = [url for url in requests if not url.startswith(("file:", "data:"))]
                    self.assertEqual(outside, [])
                    for plot in self.written["plots"]:
                        marks = page.locator(f"#{plot} .main-svg").count()
                        self.assertGreater(marks, 0, plot)
                        box = page.locator(f"#{plot} .plot-container").bounding_box()
                        self.assertGreater(box["width"], 200, plot)
                        self.assertLessEqual(box["width"], width, plot)
                    overflow = page.evaluate(
                        "document.documentElement.scrollWidth - document.documentElement.clientWidth")
                    self.assertLessEqual(overflow, 0)
                    if SHOTS:
                        SHOTS.mkdir(parents=True, exist_ok=True)
                        page.screenshot(path=SHOTS / f"{name}-{scheme}.png", full_page=True)

    def test_a_choice_redraws_its_plot(self):
        page, complaints, _ = self.open(1280, 900, "light")
        before = page.locator("#s0-step").inner_text()
        page.locator("select[data-plot=s0-step]").select_option("C=16")
        page.wait_for_function(
            "text => document.getElementById('s0-step').innerText !== text", arg=before)
        self.assertEqual(complaints, [])

    def test_text_follows_the_colour_scheme(self):
        page, _, _ = self.open(1280, 900, "light")
        fill = "getComputedStyle(document.querySelector('#throughput .xtick text')).fill"
        light = page.evaluate(fill)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"light => {fill} !== light", arg=light)

    def test_it_prints(self):
        page, complaints, _ = self.open(1280, 900, "light")
        self.assertGreater(len(page.pdf(format="A4")), 50_000)
        self.assertEqual(complaints, [])

    def test_measured_cases_are_drawn_and_the_rest_is_named(self):
        page, _, _ = self.open(1280, 900, "light")
        self.assertIn("campaign-a, measured", page.locator("#throughput").inner_text())
        self.assertIn("1 left out", page.locator("#validation").inner_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
