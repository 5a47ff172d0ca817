# SPDX-License-Identifier: Apache-2.0
"""The record of an agent's session, in one run: git at work, a package from the registry, a host that is denied, and the
time limit in the end. It says what this host's file system shows, neither more nor less.

The registry is the one that this host's npm is set up for; in the lab it is reached by `lab --net`.
"""

import hashlib
import json
import os
import pathlib
import shutil
import stat
import subprocess
import urllib.parse

import harness
from harness import directory, expect, expect_equal, expect_in, mvagent
from test_packages import npm_tools
from test_record import SCRATCH, check_chain, check_schema, events, records
from test_registry import PACKAGE, authorities, npm, registry

DENIED = "denied.example"
LIMITS = (240, 900)  # seconds: npm alone takes two minutes in the lab, and more where that is not alone on its host

SESSION = r"""
set -e
git() { command git -c user.name=Agent -c user.email=agent@example.org -c safe.directory='*' "$@"; }
echo 'changed by the agent' > README
git rm -q gone.c
git mv old.c new.c
chmod 755 run.sh
mkdir -p src/deep && printf 'int x;\n' > 'src/deep/a %b ü.c'
echo passing > passing && rm passing
ln -s README link
git checkout -q -b topic
git add -A
git commit -q -m 'the work'
getent hosts denied.example && exit 9
NPM_INSTALL
echo done > finished
sleep 1000
"""


def tree(top):
    """{path: (kind, mode, SHA-256 of what is in it)} of all below a directory."""
    found = {}
    for place, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(place, name)
            status = os.lstat(path)
            digest = None
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
            elif stat.S_ISLNK(status.st_mode):
                digest = hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
            found[os.path.relpath(path, top)] = (stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), digest)
    return found


def make_project(work):
    def git(*words):
        subprocess.run(["git", "-c", "safe.directory=*", "-c", "user.name=Host", "-c", "user.email=h@example.org", "-C", work, *words],
                       check=True, capture_output=True)

    git("init", "-q", "-b", "main", ".")
    for name in ("README", "gone.c", "old.c", "run.sh", "left.c"):
        (work / name).write_text(f"this is {name}\n")
    (work / "package.json").write_text(json.dumps({"name": "project", "version": "1.0.0", "private": True}))
    (work / ".gitignore").write_text("node_modules\n")
    git("add", "-A")
    git("commit", "-q", "-m", "first")


def run_session(tools, work, env, seconds):
    """Runs it; returns the path of its record, or None when the limit came before it was done."""
    install = f"node {tools}/npm/bin/npm-cli.js install --no-audit --no-fund --no-update-notifier --cache /tmp/cache {PACKAGE}"
    result = mvagent("run", "--allow-from", "npm", *authorities(tools), "--env", "npm_config_registry=" + npm("config", "get", "registry"),
                     "--env", f"PATH={tools}:/usr/bin:/bin", "--env", f"LD_LIBRARY_PATH={tools}", "--env", "HOME=/tmp", "--memory", "1G",
                     "--timeout", str(seconds), "--share", str(work), "--share", f"{tools}:ro", "--", "sh", "-c",
                     SESSION.replace("NPM_INSTALL", install), env=env, limit=seconds + 200)
    expect_equal(result.status, 124, f"exit status ({result.out[-600:]} {result.err[-600:]})")
    if not (work / "finished").exists():
        return None
    found = list(records(env).glob("*.jsonl"))
    expect_equal(len(found), 1, "records")
    return found[0]


def expect_files(record, before, after):
    """Each line about a file, against both trees; and each difference of the trees has its line."""
    changes = {urllib.parse.unquote(change["path"]): change for change in events(record, "change")}
    gone = {urllib.parse.unquote(change["from"]) for change in changes.values() if "from" in change}
    for path, change in changes.items():
        old, new = before.get(urllib.parse.unquote(change.get("from", path))), after.get(path)
        expect_equal((change["change"] != "created", change["change"] != "deleted"), (old is not None, new is not None),
                     f"{change['change']} {path} was there, is there")
        for when, seen in (("before", old), ("after", new)):
            if seen:
                expect_equal((int(change[f"{when}_mode"], 8), change[f"{when}_sha256"]), (seen[0] | seen[1], seen[2]), f"{path} {when}")
    wanted = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    expect_equal(wanted - set(changes) - gone, set(), "changes without a line")
    # A file that was written again as it was has changed for nobody.
    expect_equal(set(changes) - wanted, set(), "lines without a change")
    return {path: change["change"] for path, change in changes.items()}


def test_record_of_a_real_session():
    host, port = registry()
    with directory(SCRATCH) as place:
        tools = place / "tools"
        tools.mkdir()
        npm_tools(tools)
        for seconds in LIMITS:
            work, env = place / f"work{seconds}", dict(os.environ, XDG_STATE_HOME=str(place / f"state{seconds}"))
            work.mkdir()
            make_project(work)
            before = tree(work)
            record = run_session(tools, work, env, seconds)
            if record:
                break
        expect(record, f"the session came to its end within {seconds} s")
        check_schema(record)
        check_chain(record, env)
        kinds = expect_files(record, before, tree(work))
        for path, kind in (("README", "changed"), ("gone.c", "deleted"), ("new.c", "renamed"), ("run.sh", "mode"), ("link", "created"),
                           ("src/deep/a %b ü.c", "created"), ("package.json", "changed"), ("package-lock.json", "created"),
                           (f"node_modules/{PACKAGE}/package.json", "created"), (".git/refs/heads/topic", "created")):
            expect_equal(kinds.get(path), kind, path)
        expect("passing" not in kinds and "left.c" not in kinds, "what is as it was has no line")

        ways = events(record, "network")
        allowed = [way for way in ways if way["decision"] == "allowed"]
        expect_equal({(way["host"], way["port"]) for way in allowed}, {(host, port)}, "hosts that were reached")
        expect(sum(way["received_bytes"] for way in allowed) > 1000, f"bytes: {allowed}")
        expect(all(way["microseconds"] > 0 for way in allowed), f"times: {allowed}")
        expect_equal({way["host"] for way in ways if way["decision"] == "denied"}, {DENIED}, "hosts that were denied")
        rules = events(record, "start")[0]["policy"]["network"]["rules"]
        expect_equal([(rule["host"], rule["port"], rule["deny"]) for rule in rules], [(host, port, False)], "the rule in full")
        expect_equal([line["limit"] for line in events(record, "limit")], ["time"])
        end = events(record, "end")[0]
        expect_equal((end["outcome"], end["exit_status"], end["detail"]), ("time-limit", 124, "complete"))

        # Elsewhere, with the file and the public key alone.
        shutil.copy(record, place / "copy")
        key = pathlib.Path(env["XDG_STATE_HOME"]) / "mvagent/record.key.pub"
        verified = mvagent("record", "verify", str(place / "copy"), "--key", str(key), env=dict(env, HOME="/none", XDG_STATE_HOME="/none"))
        expect_equal(verified.status, 0, verified.out + verified.err)
        expect_in("each as it was written", verified.out)


if __name__ == "__main__":
    harness.main(globals())
