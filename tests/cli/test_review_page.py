#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `mvagent review` as it is printed, and the command without a guest.

    tests/cli/test_review_page.py [--build DIR] [--pages DIR] [TEST...]

Prints "ok NAME", "not ok NAME: why" or "skip NAME: why" for each test. Pages come from the unit test of the page,
which writes them where MVAGENT_PAGES says, and from --pages, where tests/lab/test_review_page.py left those of real
guests; they are printed by Chromium, and read back by pdftotext.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import traceback
import zlib

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
# Width and height in points, and in pixels of Chromium's (96 to the inch).
PAPERS = {"A4": (595, 842), "Letter": (612, 792)}
SMALLEST = 5.5  # points of a letter: what a contract has in its footnotes


class Skip(Exception):
    """A test that cannot be run here, with the reason."""


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    raise Skip("there is no Chromium to print the page with (apt-get install chromium)")


def make_pages(place):
    """Those of the unit test, and those of guests; a list of paths."""
    program = BUILD / "tests/unit/test_checklist_page"
    if not program.exists():
        raise Skip(f"{program} is not built ('make unit')")
    done = subprocess.run([program], env=dict(os.environ, MVAGENT_PAGES=str(place)), capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-600:]
    for page in GUEST_PAGES.glob("*.html") if GUEST_PAGES else ():
        shutil.copy(page, place)
    return sorted(place.glob("*.html"))


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
        for page in make_pages(place):
            for paper in PAPERS:
                assert count_pages(print_page(page, paper, place)) == 1, f"{page} on {paper}"


def test_a_page_too_long_is_seen():
    """The count above can be another one."""
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        chromium()
        make_pages(place)
        page = place / "long.html"
        page.write_text(page.read_text().replace("</body>", "<p>x</p>" * 60 + "</body>"))
        assert count_pages(print_page(page, "A4", place)) == 2


MEASURE = """<script>
const right = document.body.getBoundingClientRect().right + 1, all = [...document.querySelectorAll('td,th,p,svg,code,div,text')];
const scale = document.querySelector('svg').getBoundingClientRect().width / document.querySelector('svg').viewBox.baseVal.width;
const size = e => parseFloat(getComputedStyle(e).fontSize) * (e.tagName == 'text' ? scale : 1) * .75;
document.title = JSON.stringify({
  out: all.filter(e => e.getBoundingClientRect().right > right).length,
  cut: [...document.querySelectorAll('.k,.l')].filter(e => e.scrollHeight > e.clientHeight + 1).map(e => e.textContent),
  smallest: Math.min(...all.filter(e => e.textContent).map(size))})
</script></body>"""


def measure(html, place):
    """What Chromium makes of a page: elements that stick out, texts that are cut, and the smallest letters in points."""
    measured = place / "measured.html"
    measured.write_text(html.replace("</body>", MEASURE))
    title = re.search("<title>(.*?)</title>", browse("--dump-dom", f"file://{measured}", place=place))[1]
    measured.unlink()
    return json.loads(title.replace("&quot;", '"').replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


def test_nothing_sticks_out():
    """No cell is wider than its column, the page is as wide as the paper leaves it, and all letters can be read."""
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        chromium()
        for page in make_pages(place):
            seen = measure(page.read_text(), place)
            assert seen["out"] == 0, (page.name, seen)
            assert seen["smallest"] >= SMALLEST, (page.name, seen)
            # Where a text is as long as it can be, it is cut; those of the ordinary pages are not. (A guest's has paths.)
            assert page.name.startswith("guest") or bool(seen["cut"]) == (page.name == "long.html"), (page.name, seen)
        seen = measure((place / "default.html").read_text().replace("6pt", "4pt").replace("</table>", "</table><p style='width:300mm'>x</p>", 1), place)
        assert seen["out"] and seen["smallest"] < SMALLEST, "it can be seen"


def text_of(pdf, place):
    """The words of a printed page, in their order on paper."""
    if not shutil.which("pdftotext"):
        raise Skip("there is no pdftotext to read the page with (apt-get install poppler-utils)")
    (place / "read.pdf").write_bytes(pdf)
    done = subprocess.run(["pdftotext", "-layout", place / "read.pdf", "-"], capture_output=True, text=True, timeout=60, check=True)
    return " ".join(done.stdout.split())


def plain(html):
    """The words between the marks of a piece of HTML."""
    text = re.sub("<[^>]*>", " ", html).replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
    return text.split()


def expect_words(html, printed, cut):
    """Every word of every cell and paragraph is on paper, but for the cells that are known to be cut."""
    printed, cut = printed.lower(), {"".join(text.split()) for text in cut}  # a style may make capitals
    cells = [cell for cell in re.findall("<(?:td|p|text)[^>]*>(.*?)</(?:td|p|text)>", html) if "".join(plain(cell)) not in cut]
    missing = [word for cell in cells for word in plain(cell.lower())
               if word not in printed and word.replace("-", "") not in printed.replace("- ", "").replace("-", "") and len(word) < 30]
    assert not missing, missing


def test_all_words_are_on_paper():
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        chromium()
        for page in make_pages(place):
            if page.name == "long.html":
                continue
            html = page.read_text()
            cut = measure(html, place)["cut"]
            for paper in PAPERS:
                printed = text_of(print_page(page, paper, place), place)
                expect_words(html, printed, cut)
                for words in ("Can it read a file two", "Is that the auth-bug", "Signed (Ed25519)"):
                    assert words in printed, (page.name, words)
        assert "OPEN" in text_of(print_page(place / "opened.html", "A4", place), place)


def test_pages_of_guests_say_what_their_policy_is():
    if not GUEST_PAGES:
        raise Skip("pages of guests are made by tests/lab/test_review_page.py, and given with --pages")
    said = {
        "guest-default": ["the boundary holds, but for", "network: no route", "environment: none of yours", "NOT ASKED"],
        "guest-secret": ["opened: --allow example.com packages", "opened: --secret API_TOKEN it asks the model", "and 1 more"],
        "guest-degraded": ["opened: --allow-degraded an old kernel", "missing around vmm: mounts, landlock"],
    }
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        make_pages(place)
        for page, texts in said.items():
            printed = " ".join(plain((place / f"{page}.html").read_text()))
            for text in texts:
                assert text in printed, (page, text)


def test_each_line_is_in_the_table_of_the_checklist():
    """docs/review.md says for each line of the page what question of the checklist it answers, and no other."""
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        make_pages(place)
        rows = re.findall(r"<tr>(?:<td class=\"s\".*?</td>)?<td><div class=\"k\">(.*?)</div></td><td class=\"a", (place / "default.html").read_text())
        table = (CHECKOUT / "docs/review.md").read_text().split("## The checklist, line by line")[1].split("\n## ")[0]
        assert len(rows) == 21 and sorted(rows) == sorted(re.findall(r"\*([^*|]+\?)\*", table)), rows


def test_mechanisms_are_in_the_sources():
    """The files and functions that the page names for each boundary are there."""
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        make_pages(place)
        cells = re.findall('<td class="a.*?</td><td>.*?</td><td><div class="k">(.*?)</div></td>', (place / "default.html").read_text())
        sources = {path.relative_to(CHECKOUT): path.read_text() for top in ("vmm", "guest") for path in (CHECKOUT / top).rglob("*.c")}
        functions = {word for cell in cells for word in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b(?!\.c)", cell)} - {"no_new_privs"}
        files = {word for cell in cells for word in re.findall(r"[a-z_/]+\.c\b", cell)}
        assert len(cells) == 21 and len(functions) > 10 and len(files) > 5, (cells, functions, files)
        for function in functions:
            assert any(re.search(rf"^[a-z].*\b\*?{function}\(", text, re.MULTILINE) for text in sources.values()), f"{function} is nowhere"
            assert any(re.search(rf"^\s.*\b{function}\(", text, re.MULTILINE) for text in sources.values()), f"nobody calls {function}"
        for file in files:
            assert any(str(path).endswith("/" + file.lstrip("/")) or str(path) == file for path in sources), file


def pixels(png):
    """Rows of RGB of a picture of 8 bits a sample (PNG, 9 and 10: filters and zlib)."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8 and kind in (2, 6), (depth, kind)
    size, at, data = {2: 3, 6: 4}[kind], 8, b""
    while at < len(png):
        length, = struct.unpack(">I", png[at:at + 4])
        if png[at + 4:at + 8] == b"IDAT":
            data += png[at + 8:at + 8 + length]
        at += length + 12
    data, before, rows = zlib.decompress(data), bytearray(width * size), []
    for row in range(height):
        start = row * (width * size + 1)
        kind, line = data[start], bytearray(data[start + 1:start + 1 + width * size])
        for i in range(len(line)):
            left, above, corner = line[i - size] if i >= size else 0, before[i], before[i - size] if i >= size else 0
            guess = left + above - corner
            nearest = min((left, above, corner), key=lambda value: abs(guess - value))
            line[i] = (line[i] + (0, left, above, (left + above) // 2, nearest)[kind]) & 255
        rows.append(line)
        before = line
    return rows, size


def test_png_is_one_page():
    """Each page as a picture of a sheet of A4: there is ink, and none in the margins."""
    width, height, margin = 794, 1123, 20
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        chromium()
        for page in make_pages(place):
            browse(f"--screenshot={place}/page.png", f"--window-size={width},{height}", "--hide-scrollbars", f"file://{page}", place=place)
            rows, size = pixels((place / "page.png").read_bytes())
            assert (len(rows), len(rows[0])) == (height, width * size), page
            dark = [min(row[i] for i in range(0, len(row), size)) for row in rows]
            assert min(dark) < 64, "there is ink"
            assert min(dark[-margin:]) == 255, f"{page.name}: it goes on below the sheet"
            edges = {row[i] for row in rows for i in (*range(0, margin * size), *range(len(row) - margin * size, len(row)))}
            assert edges == {255}, f"{page.name}: it goes on beside the sheet"


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


def test_a_file_of_settings_that_is_too_long():
    with tempfile.TemporaryDirectory() as home:
        (pathlib.Path(home) / "mvagent").mkdir()
        (pathlib.Path(home) / "mvagent/review.conf").write_text("owner = Security\n" + "# words\n" * 9000)
        done = mvagent("review", "--from", "20260101-000000-0000", env=dict(os.environ, HOME=home, XDG_STATE_HOME=home, XDG_CONFIG_HOME=home))
        assert done.returncode == 125 and "review.conf is longer than" in done.stderr, done


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
    global BUILD, GUEST_PAGES
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=CHECKOUT / "build", type=pathlib.Path)
    parser.add_argument("--pages", type=pathlib.Path, help="pages of guests, as tests/lab/test_review_page.py leaves them")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    BUILD, GUEST_PAGES = options.build.resolve(), options.pages
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
