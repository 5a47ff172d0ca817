# SPDX-License-Identifier: Apache-2.0
"""`mvagent review` of real guests: what holds by default, what is shown as open, and that it can fail.

Pages are left in the directory that MVAGENT_PAGES names, if it does, for tests/cli/test_review_page.py to print.
"""

import contextlib
import json
import os
import pathlib
import shutil
import sys

from harness import BUILD, MVAGENT, ROOT, cache, directory, expect, expect_equal, expect_in, main, mvagent

SCRATCH = "/scratch" if os.path.isdir("/scratch") else None


@contextlib.contextmanager
def places():
    """A home with a work tree below it, other projects beside, credentials in it; and its environment."""
    with directory(SCRATCH) as place:
        home = place / "home"
        work = home / "src/work"
        for project in (work, home / "src/other"):
            (project / ".git").mkdir(parents=True)
            (project / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (work / "main.c").write_text("int main(void) { return 0; }\n")
        (work / ".env").write_text("TOKEN=x\n")
        for name in (".ssh", ".aws"):
            (home / name).mkdir()
        (home / ".ssh/id_ed25519").write_text("a private key\n")
        (home / ".bash_history").write_text("history\n")
        env = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        yield home, work, dict(env, **cache(), HOME=str(home), API_TOKEN="ghp_0123456789abcdefghijklmn")


def review(work, env, *options, status, program=None):
    """A review of a run with a share of @work; its lines by id, and all of it."""
    output = work.parents[1] / "review.json"
    output.unlink(missing_ok=True)
    shares = () if {"--share", "--from"} & set(options) else ("--share", str(work))
    result = mvagent("review", *ROOT, "--json", str(output), *shares, *options, env=env, limit=400, program=program)
    page = json.loads(output.read_text()) if output.exists() else {"lines": []}
    wrong = [(line["id"], line["evidence"]) for line in page["lines"] if line["answer"] == "OPEN"]
    expect_equal(result.status, status, f"exit status ({result.err[-800:]} {wrong})")
    return {line["id"]: line for line in page["lines"]}, page


GIVEN = ("--owner", "Security team", "--clock", "24h", "--auth-clock", "48h")
# What no policy of ours opens, and what only the user can answer.
ALWAYS = ("above", "routes", "keys", "projects", "log", "inside", "raw", "sockets", "cloud", "walls", "machine")


def keep_page(name, work, env, *options, status, program=None):
    """A review whose page is kept."""
    html = work.parents[1] / "page.html"
    found = review(work, env, "--html", str(html), *options, status=status, program=program)
    if os.environ.get("MVAGENT_PAGES"):
        shutil.copy(html, pathlib.Path(os.environ["MVAGENT_PAGES"]) / f"{name}.html")
    return found


def expect_clean(home):
    """Nothing that was planted is left."""
    expect_equal([str(p) for p in home.rglob(".mvagent-review*")], [], "files left behind")


def test_secret():
    """What the guest has is a placeholder; that it may be used is shown as opened."""
    with places() as (home, work, env):
        reasons = ("--why", "the agent edits the code", "--secret", "API_TOKEN@api.example.com", "--why", "it asks the model", *GIVEN)
        lines, page = keep_page("guest-secret", work, env, *reasons, "--allow", "example.com", "--why", "packages", status=0)
        for name in (*ALWAYS, "environment"):
            expect_equal(lines[name]["answer"], "HOLDS", f"{name}: {lines[name]['evidence']}")
        expect_equal((lines["secrets"]["answer"], lines["secrets"]["on_purpose"]), ("OPEN", True), lines["secrets"]["evidence"])
        expect_in("API_TOKEN is the placeholder that mvagent made, for root too", lines["secrets"]["evidence"])
        expect("ghp_0123456789abcdefghijklmn" not in json.dumps(page), "the secret is not in it")
        # The command that makes the page again is there as it was given.
        words = " ".join(page["command"])
        for part in ("--secret API_TOKEN@api.example.com", "--auth-clock 48h", "--allow example.com --why packages"):
            expect_in(part, words, "the command")
        lines, _ = review(work, env, "--secret", "API_TOKEN@api.example.com", *GIVEN, status=1)
        expect_equal((lines["secrets"]["answer"], lines["secrets"]["on_purpose"]), ("OPEN", False), "without a reason")


def test_default_run():
    with places() as (home, work, env):
        lines, page = keep_page("guest-default", work, env, "--why", "the agent edits the code", *GIVEN, status=0)
        for name in (*ALWAYS, "root", "outside", "environment", "after", "terminal", "owner", "clock", "kind"):
            expect_equal(lines[name]["answer"], "HOLDS", f"{name}: {lines[name]['evidence']}")
        expect_equal((lines["changes"]["answer"], lines["changes"]["on_purpose"]), ("OPEN", True), "changes")
        expect_equal(lines["secrets"]["answer"], "NOT ASKED")
        expect_equal(page["result"]["open"], 0)
        expect_in(f"came back: in {home}/src, {home}, {home}/.local/state/mvagent", lines["above"]["evidence"])
        expect_in("1 repository beside", lines["projects"]["evidence"])
        printed = dict(text.split("=", 1) for text in lines["environment"]["printed"])
        expect(printed["PATH"].startswith("/") and "HOME" in printed, f"its environment: {printed}")
        expect("ghp_" not in json.dumps(page), "no secret of the host's is in it")
        expect_clean(home)
        lines, _ = review(work, env, status=1)
        expect_equal([name for name, line in lines.items() if line["answer"] == "OPEN" and not line["on_purpose"]],
                     ["changes", "owner", "clock", "kind"], "what is open without reasons")


def test_allowed_host():
    with places() as (home, work, env):
        share = ("--why", "it edits")
        # A token that says itself when it ends: {"exp": 1893456000}
        env["JWT"] = "eyJhbGciOiJub25lIn0.eyJleHAiOjE4OTM0NTYwMDB9.x"
        lines, page = review(work, env, *share, "--allow", "example.com", "--why", "packages", "--env", "API_TOKEN",
                             "--why", "the model's API", "--env", "JWT", "--why", "the user's session", *GIVEN, status=0)
        expect_in("API_TOKEN: as long as its issuer says; JWT: valid until 2030-01-01T00:00:00Z", lines["after"]["evidence"])
        for name in ("outside", "environment", "after"):
            expect_equal((lines[name]["answer"], lines[name]["on_purpose"]), ("OPEN", True), name)
        expect_equal(lines["outside"]["opened"], [{"by": "--allow example.com", "why": "packages"}])
        for name in ALWAYS:
            expect_equal(lines[name]["answer"], "HOLDS", f"{name}: {lines[name]['evidence']}")
        expect("ghp_" not in json.dumps(page), "no value of a variable is in it")
        lines, _ = review(work, env, *share, "--allow", "example.com", *GIVEN, status=1)
        expect_equal((lines["outside"]["answer"], lines["outside"]["on_purpose"]), ("OPEN", False))
        # What is internal, and where a cloud tells of roles, when it is allowed as such.
        lines, _ = review(work, env, *share, "--allow", "10.0.0.7", "--allow", "169.254.169.254", "--why", "a test", *GIVEN, status=1)
        for name, purpose in (("outside", False), ("inside", False), ("cloud", True)):
            expect_equal((lines[name]["answer"], lines[name]["on_purpose"]), ("OPEN", purpose), name)
        expect("169.254.169.254" not in lines["cloud"]["evidence"], "what is allowed was not tried")
        result = mvagent("review", *ROOT, "--share", str(work), "--allow", "*", env=env)
        expect_equal(result.status, 125, "any host at all cannot be allowed")
        expect_clean(home)


def test_share_of_a_parent():
    """A reason does not help: what lies beside the work is in reach."""
    with places() as (home, work, env):
        lines, _ = review(work, env, "--share", str(work.parent), "--why", "all of it", "--workdir", str(work), *GIVEN,
                          status=1)
        for name in ("above", "routes", "projects"):
            expect_equal((lines[name]["answer"], lines[name]["on_purpose"]), ("OPEN", False), name)
        expect_in("came back", lines["above"]["evidence"])
        expect_in(str(work.parent / "other"), lines["projects"]["evidence"])
        expect_equal(lines["inside"]["answer"], "HOLDS")
        expect_clean(home)
        lines, _ = review(work, env, "--share", str(home), "--share-anyway", "--show", ".ssh", *GIVEN, status=1)
        expect_equal((lines["keys"]["answer"], lines["keys"]["on_purpose"]), ("OPEN", False), "keys")
        expect_in(str(home / ".ssh"), lines["keys"]["evidence"])
        expect_clean(home)


def test_modes_and_root():
    with places() as (_, work, env):
        for mode in ("ro", "review"):
            lines, _ = review(work, env, "--share", f"{work}:{mode}", "--user", "root", *GIVEN, status=0)
            expect_equal(lines["changes"]["answer"], "HOLDS", lines["changes"]["evidence"])
        expect_equal(sorted(p.name for p in work.iterdir()), [".env", ".git", "main.c"], "the work tree afterwards")


def test_weakened_boundary():
    with places() as (_, work, env):
        lines, _ = review(work, env, "--why", "it edits", "--allow-degraded", "--terminal-passthrough",
                          "--unprotect", ".vscode", *GIVEN, status=1)
        for name in ("walls", "terminal", "changes"):
            expect_equal((lines[name]["answer"], lines[name]["on_purpose"]), ("OPEN", False), name)


def without(what, place):
    """mvagent as on a host that has no such wall."""
    program = place / f"without-{what}"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -B {pathlib.Path(__file__).parent}/without.py {what} {MVAGENT} \"$@\"\n")
    program.chmod(0o755)
    return str(program)


def test_host_without_landlock():
    """One wall fewer than there should be: the run goes on by the others, and the lines that rest on it say so."""
    with places() as (home, work, env):
        lines, _ = review(work, env, "--why", "it edits", *GIVEN, status=1, program=without("landlock", home.parent))
        for name in ("root", "walls"):
            expect_equal((lines[name]["answer"], lines[name]["on_purpose"]), ("OPEN", False), name)
            expect_in("mvagent-fs is missing: landlock" if name == "root" else "missing around fs: landlock", lines[name]["evidence"])
        for name in ALWAYS:
            expect(name == "walls" or lines[name]["answer"] == "HOLDS", f"{name}: {lines[name]['evidence']}")


def test_degraded_host():
    """Neither Landlock nor a file system of their own: the run does not begin, or what is missing is named, and taken with a reason."""
    with places() as (home, work, env):
        program = without("both", home.parent)
        refused = mvagent("review", *ROOT, "--share", str(work), env=env, limit=400, program=program)
        expect_equal(refused.status, 125, refused.out + refused.err)
        expect_in("--allow-degraded", refused.err)
        degraded = ("--why", "it edits", "--allow-degraded", "--why", "an old kernel", *GIVEN)
        lines, _ = keep_page("guest-degraded", work, env, *degraded, status=0, program=program)
        for name in ("root", "walls"):
            expect_equal((lines[name]["answer"], lines[name]["on_purpose"]), ("OPEN", True), name)
            expect_in("landlock", lines[name]["evidence"])
            expect_in({"by": "--allow-degraded", "why": "an old kernel"}, lines[name]["opened"], name)
        expect_in("missing around vmm: mounts, landlock", lines["walls"]["evidence"])
        for name in (*ALWAYS, "outside"):
            expect(name == "walls" or lines[name]["answer"] == "HOLDS", f"{name}: {lines[name]['evidence']}")
        lines, _ = review(work, env, "--allow-degraded", *GIVEN, status=1, program=program)
        expect_equal((lines["walls"]["answer"], lines["walls"]["on_purpose"]), ("OPEN", False), "without a reason")
        expect_clean(home)


def lying_installation(place):
    """This build, but its guest sends frames to itself and says that it sent them by the card."""
    for name in ("bin", "libexec"):
        shutil.copytree(BUILD / name, place / name)
    shutil.copytree(BUILD / "share", place / "share", ignore=shutil.ignore_patterns("base.erofs", "vmlinux"))
    (place / "share/mvagent/vmlinux").symlink_to(BUILD / "share/mvagent/vmlinux")
    archive = place / "share/mvagent/initramfs.cpio"
    honest = archive.read_bytes()
    lying = honest.replace(b"\0eth0\0", b"\0lo\0\0\0")
    expect(lying != honest, "the card's name is in the guest")
    archive.write_bytes(lying)
    return place / "bin/mvagent"


def test_guest_that_lies():
    with places() as (home, work, env):
        program = lying_installation(home.parent)
        lines, _ = review(work, env, "--why", "it edits", *GIVEN, status=1, program=str(program))
        expect_equal(lines["raw"]["answer"], "OPEN")
        expect_in("the card dropped only", lines["raw"]["evidence"])
        expect_equal(lines["above"]["answer"], "HOLDS")


def test_files_that_are_made():
    with places() as (home, work, env):
        html, rows = home / "page.html", home / "rows.csv"
        review(work, env, "--why", "it edits", "--html", str(html), "--register", str(rows), *GIVEN, status=0)
        expect_in("Owner of an escape", rows.read_text())
        for path in (html, home / "review.json"):
            result = mvagent("review", "verify", str(path), env=env)
            expect_equal(result.status, 0, result.out + result.err)
            text = bytearray(path.read_bytes())
            text[text.index(b"HOLDS") + 1] = ord("0")
            path.write_bytes(text)
            expect_equal(mvagent("review", "verify", str(path), env=env).status, 1, "an edited byte")
        result = mvagent("run", "--share", str(work), "--why", "it edits", "--", "true", env=env, limit=200)
        expect_equal(result.status, 0, result.err)
        run = mvagent("runs", env=env).out.splitlines()[0].split()[0]
        lines, page = review(work, env, "--from", run, *GIVEN, status=0)
        expect_equal((page["run"], page["from"]), (run, "record"))
        expect_equal((lines["walls"]["answer"], lines["above"]["answer"]), ("HOLDS", "NOT ASKED"))
        record = home / ".local/state/mvagent/records" / f"{run}.jsonl"
        record.write_bytes(record.read_bytes().replace(b'"exits":', b'"exits":1', 1))
        lines, _ = review(work, env, "--from", run, *GIVEN, status=1)
        expect_in("the record does not hold", lines["walls"]["evidence"])


if __name__ == "__main__":
    main(globals())
