"""Take the picture of the page in the README: the demo's answer to a question, with feedback.

python scripts/page_screenshot.py docs/images/page.png

Needs the extra [server], playwright, and chromium on the path.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from colbert_prf.demo import QUESTIONS

SIZE = {"width": 1280, "height": 800}
WAIT = 300_000
"""Milliseconds: the first start indexes the demo's passages."""


def main() -> None:
    command = [sys.executable, "-m", "colbert_prf", "serve", "--demo", "--port", "0", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            take(server.stdout.readline().strip(), sys.argv[1])
        finally:
            server.terminate()
    print(f"wrote {sys.argv[1]}: {Path(sys.argv[1]).stat().st_size // 1000} kB")


def take(address: str, path: str) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        page.set_default_timeout(WAIT)
        while not page.request.get(f"{address}/ready", fail_on_status_code=False).ok:
            page.wait_for_timeout(200)
        page.goto(f"{address}/?{urlencode({'q': QUESTIONS[0], 'method': 'prf'})}")
        page.wait_for_selector(".hit")
        page.wait_for_selector("#plane svg")
        page.wait_for_timeout(1000)  # labels of the plane find their places
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    main()
