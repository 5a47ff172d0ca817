# SPDX-License-Identifier: Apache-2.0
"""`mvagent review` of real guests: what holds by default, what is shown as open, and that it can fail."""

import contextlib
import json
import os
import pathlib
import subprocess

from harness import ROOT, directory, expect, expect_equal, expect_in, main, mvagent

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
        yield home, work, dict(env, HOME=str(home), API_TOKEN="ghp_0123456789abcdefghijklmn")


def review(work, env, *options, status):
    """A review of a run with a share of @work; its lines by id, and all of it."""
    output = work.parent.parent / "review.json"
    shares = () if "--share" in options else ("--share", str(work))
    result = mvagent("review", *ROOT, "--json", str(output), *shares, *options, env=env, limit=400)
    page = json.loads(output.read_text()) if output.exists() else {"lines": []}
    wrong = [(line["id"], line["evidence"]) for line in page["lines"] if line["answer"] == "OPEN"]
    expect_equal(result.status, status, f"exit status ({result.err[-800:]} {wrong})")
    return {line["id"]: line for line in page["lines"]}, page


GIVEN = ("--owner", "Security team", "--clock", "24h", "--auth-clock", "48h")
# What no policy of ours opens, and what only the user can answer.
ALWAYS = ("above", "routes", "keys", "projects", "log", "inside", "raw", "sockets", "cloud", "walls", "machine")


def answers(lines):
    return {name: line["answer"] for name, line in lines.items()}


def expect_clean(home):
    """Nothing that was planted is left."""
    expect_equal([str(p) for p in home.rglob(".mvagent-review*")], [], "files left behind")


def test_default_run():
    with places() as (home, work, env):
        lines, page = review(work, env, "--why", "the agent edits the code", *GIVEN, status=0)
        for name in (*ALWAYS, "root", "outside", "environment", "after", "terminal", "owner", "clock", "kind"):
            expect_equal(lines[name]["answer"], "HOLDS", f"{name}: {lines[name]['evidence']}")
        expect_equal((lines["changes"]["answer"], lines["changes"]["on_purpose"]), ("OPEN", True), "changes")
        expect_equal(lines["secrets"]["answer"], "NOT ASKED")
        expect_equal(page["result"]["open"], 0)
        expect("ghp_" not in json.dumps(page), "no secret of the host's is in it")
        expect_clean(home)
        lines, _ = review(work, env, status=1)
        expect_equal([name for name, line in lines.items() if line["answer"] == "OPEN" and not line["on_purpose"]],
                     ["changes", "owner", "clock", "kind"], "what is open without reasons")


if __name__ == "__main__":
    main(globals())
