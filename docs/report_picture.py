"""The picture of docs/report.md: the first screens of a report of a cohort with planted signals.

python benchmarks/cohort.py --individuals 6 --junctions 25000 --steps contamination sharing enrich report \
    --folder cohort --output cohort.csv
python docs/report_picture.py cohort/report.html docs/report.webp

Needs Chromium, chromedriver and the extra `test`.
"""

import shutil
import sys
import time
from base64 import b64decode
from pathlib import Path

from selenium import webdriver


def main() -> None:
    """Write the picture of a page."""
    page, target = map(Path, sys.argv[1:])
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("headless=new", "no-sandbox", "hide-scrollbars", "window-size=1300,2600"):
        options.add_argument(f"--{argument}")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.get(page.resolve().as_uri())
    while not driver.execute_script("return document.documentElement.dataset.drawn"):
        time.sleep(0.1)
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 70})["data"]
    target.write_bytes(b64decode(picture))
    driver.quit()


if __name__ == "__main__":
    main()
