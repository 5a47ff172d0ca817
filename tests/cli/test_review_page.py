#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `mvagent review` as it is printed, and the command without a guest.

    tests/cli/test_review_page.py [--build DIR] [TEST...]

Prints "ok NAME", "not ok NAME: why" or "skip NAME: why" for each test. Pages come from the unit test of the page,
which writes them where MVAGENT_PAGES says; they are printed by Chromium.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import zlib

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("default", "opened", "long")
# Width and height in points, and in pixels of Chromium's (96 to the inch).
PAPERS = {"A4": (595, 842), "Letter": (612, 792)}


class Skip(Exception):
    """A test that cannot be run here, with the reason."""


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    raise Skip("there is no Chromium to print the page with (apt-get install chromium)")


def make_pages(place):
    program = BUILD / "tests/unit/test_checklist_page"
    if not program.exists():
        raise Skip(f"{program} is not built ('make unit')")
    done = subprocess.run([program], env=dict(os.environ, MVAGENT_PAGES=str(place)), capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-600:]


def browse(*options, place):
    done = subprocess.run([chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer",
                           f"--user-data-dir={place / 'profile'}", *options], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-600:]
    return done.stdout


def print_page(html, paper, place):
    """The PDF of a page on a paper, which the page itself leaves to the printer."""
    width, height = PAPERS[paper]
    sized = place / f"{html.stem}-{paper}.html"
    sized.write_text(html.read_text().replace("@page{", f"@page{{size:{width}pt {height}pt;", 1))
    pdf = place / f"{html.stem}-{paper}.pdf"
    browse(f"--print-to-pdf={pdf}", f"file://{sized}", place=place)
    return pdf.read_bytes()


def count_pages(pdf):
    """Objects of /Type /Page, also in compressed streams of objects."""
    whole = pdf
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            whole += zlib.decompress(stream)
        except zlib.error:
            continue
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", whole))


def test_one_page_on_each_paper():
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        chromium()
        make_pages(place)
        for page in PAGES:
            for paper in PAPERS:
                assert count_pages(print_page(place / f"{page}.html", paper, place)) == 1, f"{page} on {paper}"


def test_a_page_too_long_is_seen():
    """The count above can be another one."""
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        chromium()
        make_pages(place)
        page = place / "long.html"
        page.write_text(page.read_text().replace("</body>", "<p>x</p>" * 60 + "</body>"))
        assert count_pages(print_page(page, "A4", place)) == 2


def test_nothing_sticks_out():
    """No cell is wider than its column, and the page is as wide as the paper leaves it."""
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        chromium()
        make_pages(place)
        for page in PAGES:
            html = (place / f"{page}.html").read_text()
            script = ("<script>document.title=[...document.querySelectorAll('td,th,p,svg,code')].filter(e=>"
                      "e.getBoundingClientRect().right>document.body.getBoundingClientRect().right+1).length+' out'"
                      "</script></body>")
            (place / "measured.html").write_text(html.replace("</body>", script))
            seen = browse("--dump-dom", f"file://{place}/measured.html", place=place)
            assert "<title>0 out</title>" in seen, (page, re.search("<title>.*?</title>", seen))


def mvagent(*words, **named):
    return subprocess.run([BUILD / "bin/mvagent", *words], capture_output=True, stdin=subprocess.DEVNULL, text=True,
                          timeout=60, check=False, **named)


def test_mistakes():
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, HOME=home, XDG_STATE_HOME=home, XDG_CONFIG_HOME=home)
        for words, said in ((("--no-record",), "leave it out"), (("--register", "rows.txt"), ".csv or .json"),
                            (("--why", "x"), "after the option"), (("--from", "no-such-run"), "no-such-run"),
                            (("--allow", "*"), "--allow"), (("verify",), "give one file"),
                            (("verify", "/nonexistent"), "/nonexistent"), (("--owners", "x"), "--owners")):
            done = mvagent("review", *words, env=env)
            assert done.returncode == 125 and said in done.stderr, (words, done)
            assert not list(pathlib.Path(home).rglob(".mvagent-review*")), words


def test_verify_of_what_is_no_review():
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, HOME=home, XDG_STATE_HOME=home)
        place = pathlib.Path(home)
        make_pages(place)
        done = mvagent("review", "verify", str(place / "default.html"), env=env)
        assert done.returncode == 125 and "--key" in done.stderr, done
        (place / "other.pub").write_text("-----BEGIN PUBLIC KEY-----\n"
                                         "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
                                         "-----END PUBLIC KEY-----\n")
        for name, said in (("default.html", "another key"), ("other.pub", "nothing signed")):
            done = mvagent("review", "verify", str(place / name), "--key", str(place / "other.pub"), env=env)
            assert done.returncode == 1 and said in done.stdout, done
        os.mkfifo(place / "pipe")  # nobody writes: it must not be waited for
        done = mvagent("review", "verify", str(place / "pipe"), "--key", str(place / "other.pub"), env=env)
        assert done.returncode == 125 and "cannot read the review" in done.stderr, done


def main():
    global BUILD
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=CHECKOUT / "build", type=pathlib.Path)
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    BUILD = options.build.resolve()
    tests = {name: value for name, value in globals().items() if name.startswith("test_")}
    failed = False
    for name in options.tests or tests:
        try:
            tests[name]()
            print(f"ok {name}", flush=True)
        except Skip as reason:
            print(f"skip {name}: {reason}", flush=True)
        except Exception:
            failed = True
            print(f"not ok {name}: " + traceback.format_exc().replace("\n", " | "), flush=True)
    sys.exit(1 if failed else 0)


main()
