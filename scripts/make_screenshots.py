"""Takes the pictures of the web board in docs/: a made-up shop, in a real browser.

Usage: make_screenshots.py [DIRECTORY]; without one they go to docs/.
"""

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Browser, sync_playwright  # noqa: E402 - the tests' home needs the path

from lockgate.faces.web.guard import COOKIE  # noqa: E402
from tests.faces.web.home import a_home, a_shop  # noqa: E402
from tests.faces.web.serving import Board, serving  # noqa: E402

DESK, PHONE = (1280, 800), (390, 844)
CHROMIUM = "/usr/bin/chromium"
KEPT = {("board", "desk"), ("review", "phone")}  # those that the pages of docs/ show


def main(arguments: list[str]) -> int:
    where = Path(arguments[0]) if arguments else ROOT / "docs"
    every = bool(arguments)
    where.mkdir(parents=True, exist_ok=True)
    os.environ["LOCKGATE_NO_ORCHESTRATOR"] = "1"
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        homes = [(a_shop(Path(place) / "shop"), _pages)]
        if every:
            empty = a_home(Path(place) / "empty")
            empty.project("shop")
            homes.append((empty, _empty_pages))
        for home, pages in homes:
            with serving(home) as board:
                for name, path in pages(board).items():
                    _shoot_all(browser, board, name, path, where, every=every)
            home.app.close()
        browser.close()
    return 0


def _shoot_all(
    browser: Browser, board: Board, name: str, path: str, where: Path, *, every: bool
) -> None:
    for size, kind in ((DESK, "desk"), (PHONE, "phone")):
        if not every and (name, kind) not in KEPT:
            continue
        for scheme in ("light", "dark") if every else ("light",):
            file = where / f"{name}-{kind}{'-dark' if scheme == 'dark' else ''}.png"
            _shoot(browser, board, path, size, scheme, file, whole=every)


def _empty_pages(board: Board) -> dict[str, str]:
    """What a person sees on the first day."""
    del board
    return {"empty-board": "/", "empty-train": "/train", "empty-stats": "/stats"}


def _pages(board: Board) -> dict[str, str]:
    rows = {it.branch: it.id for it in board.home.app.boards.board().rows}
    shop = board.home.projects["shop"].id
    review = f"/t/{rows['fix-login']}/review"
    return {
        "board": "/",
        "review": review,
        "comment": f"{review}?c=0n11#c",
        "task": f"/t/{rows['fix-login']}",
        "question": f"/t/{rows['csv-export']}",
        "output": f"/t/{rows['tidy-names']}/output",
        "train": f"/train/{shop}",
        "stats": "/stats",
        "events": "/events",
        "new": "/new",
        "none": "/?q=nothing-has-this",
        "login": "/login?link=x",
    }


def _shoot(  # noqa: PLR0913 - a picture has as many properties
    browser: Browser,
    board: Board,
    path: str,
    size: tuple[int, int],
    scheme: str,
    file: Path,
    *,
    whole: bool,
) -> None:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    cookie = {"name": COOKIE, "value": board.login, "url": board.origin}
    context.add_cookies([cookie])  # type: ignore[list-item]  # a plain dict will do
    page = context.new_page()
    page.goto(f"{board.origin}{path}")
    page.evaluate("document.getElementById('lost')?.remove()")
    page.screenshot(path=str(file), full_page=whole)
    context.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
