"""A page in a browser without a window: what a script finds in it, and a photograph of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any, Final

BROWSER: Final = shutil.which("chromium") or shutil.which("google-chrome")
QUIET: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SCHEMES: Final = {"dark": 0, "light": 1}


def run(text: str, folder: Path, script: str, *options: str) -> Any:  # noqa: ANN401 - any JSON
    """What a script at the end of a page returns; None if it did not run."""
    end = (
        "<script>window.addEventListener('load', () => {const pre = document.createElement('pre');"
        "pre.id = 'found'; pre.hidden = true; pre.textContent = JSON.stringify((() => {"
        + script
        + "})()); document.body.append(pre)});</script></body>"
    )
    dumped = opened(text.replace("</body>", end), folder, *options)
    result = re.search(r'<pre id="found"[^>]*>(.*?)</pre>', dumped, re.DOTALL)
    return None if result is None else json.loads(unescape(result[1]))


def opened(text: str, folder: Path, *options: str) -> str:
    """The page as the browser has it in the end, as HTML."""
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    assert BROWSER is not None
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [BROWSER, *QUIET, profile, *options, "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout


def with_scripts(text: str) -> str:
    """A page without the policy that would forbid a test's script."""
    return re.sub("<meta http-equiv=[^>]*>", "", text)


def camera(picture: Path, width: int, height: int, scheme: str) -> tuple[str, ...]:
    """Options that photograph the page in a window, in light or dark colours."""
    return (
        f"--screenshot={picture}",
        f"--window-size={width},{height}",
        "--hide-scrollbars",
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
    )
