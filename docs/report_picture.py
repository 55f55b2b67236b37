"""The picture of docs/report.md: the first screens of a report of the tests' example files.

python docs/report_picture.py docs/report.webp

Needs Chromium, chromedriver and the extra `test`.  The numbers of the example are made up.
"""

import shutil
import sys
import tempfile
import time
from base64 import b64decode
from pathlib import Path

from selenium import webdriver

sys.path.insert(0, str(Path(__file__).parent.parent))
from hpcvdj.reports.page import write_report
from tests.report import examples


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [
            examples.contamination(folder / "contamination.tsv"),
            examples.sharing(folder / "sharing.tsv"),
            *(examples.enrichment(folder / f"{k}.tsv", sample) for k, sample in enumerate(examples.NAMES)),
        ]
        write_report(files, folder / "r.html")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for argument in ("headless=new", "no-sandbox", "hide-scrollbars", "window-size=1300,2600"):
            options.add_argument(f"--{argument}")
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        driver.get((folder / "r.html").as_uri())
        while not driver.execute_script("return document.documentElement.dataset.drawn"):
            time.sleep(0.1)
        picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 70})["data"]
        Path(sys.argv[1]).write_bytes(b64decode(picture))
        driver.quit()


if __name__ == "__main__":
    main()
