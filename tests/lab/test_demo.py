# SPDX-License-Identifier: Apache-2.0
"""`mvagent demo` of a real guest: what it shows, that it can show failure, and that nothing is left."""

import os

from harness import ROOT, directory, expect, expect_equal, expect_in, main, mvagent


def demo(place, *options, status):
    """What it prints; all that it made is gone afterwards."""
    env = dict(os.environ, TMPDIR=str(place), HOME=str(place / "home"))
    (place / "home").mkdir(exist_ok=True)
    result = mvagent("demo", *ROOT, *options, env=env, cwd=str(place), limit=400)
    expect_equal(result.status, status, f"exit status ({result.out[-400:]} {result.err[-800:]})")
    expect_equal([p.name for p in place.iterdir() if p.name.startswith("mvagent")], [], "left behind")
    return result


def test_all_is_stopped():
    with directory() as place:
        page = place / "page.html"
        result = demo(place, "--html", "page.html", "--json", "run.json", status=0)
        expect_in("FAILED: 'Hello,Ada!', not 'Hello, Ada!'", result.out)
        expect_in("all tests pass", result.out)
        expect_in("Put a space in the greeting", result.out)
        expect_in("9 attempts: 9 stopped, 0 got through, 0 not tried.", result.out)
        expect_equal(result.out.count("  STOPPED: "), 8)
        expect_in("1 frame reached the card, and ended there", result.out)
        expect_in("there is no hook in the project", result.out)
        # Then the page: only what the user alone can answer is open.
        wrong = [line for line in result.out.splitlines() if line.startswith("OPEN ") and "(on purpose)" not in line]
        expect_equal(wrong, ["OPEN      Who owns the patch of an escape?", "OPEN      On what clock?",
                             "OPEN      Is that the auth-bug clock?"])
        expect("<svg" in page.read_text(), "the page is there")


def test_what_gets_through_is_shown():
    """With the very directory shared that the key is in, all names shown, and the variable passed in."""
    with directory() as place:
        shown = [word for name in (".ssh", "id_ed25519", ".env") for word in ("--show", name)]
        result = demo(place, "--share", "../home", *shown, "--env", "DEMO_API_KEY", status=1)
        expect_equal(result.out.count("GOT THROUGH: the agent has the key"), 2)
        expect_in("GOT THROUGH: the agent has the token", result.out)
        expect_in("GOT THROUGH: the agent has DEMO_API_KEY", result.out)
        expect_in("9 attempts: 5 stopped, 4 got through, 0 not tried.", result.out)
        expect("HOLDS" not in result.out, "no page of what did not hold")


def test_wrong_options():
    for options, sentence in ((("--no-such-option",), "--no-such-option"), (("--html",), "needs a file"),
                              (("--", "true"), "has no place here"), (("--no-record",), "has no place here")):
        with directory() as place:
            expect_in(sentence, demo(place, *options, status=125).err)


if __name__ == "__main__":
    main(globals())
