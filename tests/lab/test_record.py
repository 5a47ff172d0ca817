# SPDX-License-Identifier: Apache-2.0
"""The record of real runs: true to what the host sees, checked by other means than mvagent's own."""

import base64
import contextlib
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from harness import BUILD, CHECKOUT, Failure, directory, expect, expect_equal, expect_in, mvagent, start, wait_until

SCRATCH = "/scratch" if os.path.isdir("/scratch") else None


@contextlib.contextmanager
def places():
    """A work tree and an environment whose state directory is beside it. What is hashed once stays known."""
    with directory(SCRATCH) as place:
        work = place / "work"
        work.mkdir()
        yield work, dict(os.environ, XDG_STATE_HOME=str(place / "state"))


def records(env):
    return pathlib.Path(env["XDG_STATE_HOME"]) / "mvagent/records"


def run(work, env, *command, options=(), status=0):
    """A run with a share; returns its lines."""
    before = set(records(env).glob("*.jsonl"))
    result = mvagent("run", "--share", str(work), *options, "--", *command, env=env, limit=200)
    expect_equal(result.status, status, f"exit status ({result.err})")
    new = set(records(env).glob("*.jsonl")) - before
    expect_equal(len(new), 1, "new records")
    return new.pop()


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def events(path, kind):
    return [line for line in lines(path) if line["event"] == kind]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def check_schema(path):
    import jsonschema
    schema = json.loads((CHECKOUT / "docs/record.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    of_event = {}
    for line in lines(path):
        of_event.setdefault(line["event"], []).append(line)
    # A line takes tens of milliseconds in the lab, and one record here has 8,000 of a kind.
    for line in (line for every in of_event.values() for line in every[:100] + every[100:][-100:]):
        for error in validator.iter_errors(line):
            raise Failure(f"line {line['n']} ({line['event']}): {error.message}: {[c.message for c in error.context]}")


def check_chain(path, env):
    """The chain and the signature, by Python and OpenSSL alone."""
    previous = "0" * 64
    whole = path.read_bytes().splitlines()
    for number, line in enumerate(whole, 1):
        parsed = json.loads(line)
        expect_equal((parsed["n"], parsed["previous"]), (number, previous), f"line {number}")
        expect_equal(canonical(parsed), line, f"line {number} in canonical form")
        previous = sha256(line)
    last = json.loads(whole[-1])
    signature = bytes.fromhex(last.pop("signature"))
    with directory() as place:
        (place / "message").write_bytes(b"mvagent record 1\n" + canonical(last))
        (place / "signature").write_bytes(signature)
        key = pathlib.Path(env["XDG_STATE_HOME"]) / "mvagent/record.key.pub"
        der = base64.b64decode("".join(key.read_text().splitlines()[1:-1]))
        expect_equal(der[-32:].hex(), last["key"], "the key")
        done = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(key), "-rawin", "-in",
                               str(place / "message"), "-sigfile", str(place / "signature")], capture_output=True,
                              text=True, check=False)
        expect_in("Verified Successfully", done.stdout + done.stderr)


WORK = r"""
set -e
printf changed > old
echo more >> long
rm gone
mv here there
chmod 755 script
mkdir -p made/below && echo new > 'made/below/n%w ö'
printf '#!/bin/sh\n' > tool && chmod +x tool
echo 'all: x' >> Makefile
echo passing > passing && rm passing
mv directory renamed
echo inside >> renamed/kept
git init -q nested
echo x 2>/dev/null > .exrc || echo refused
cat .env 2>/dev/null || echo hidden
mkdir .aws 2>/dev/null || echo refused
"""


def make_tree(work):
    for name in ("old", "long", "gone", "here", "script", "Makefile", ".env", ".exrc"):
        (work / name).write_text(f"this is {name}\n")
    (work / "directory").mkdir()
    (work / "directory/kept").write_text("kept\n")
    (work / "directory/still").write_text("still\n")


def test_record_of_a_session():
    with places() as (work, env):
        make_tree(work)
        before = {str(p.relative_to(work)): p.read_bytes() for p in work.rglob("*") if p.is_file()}
        record = run(work, env, "sh", "-c", WORK, options=("--env", "SECRET=hunter22", "--user", "root"))
        check_schema(record)
        check_chain(record, env)
        verified = mvagent("record", "verify", str(record), env=env)
        expect_equal(verified.status, 0, verified.out + verified.err)
        expect("hunter22" not in record.read_text(), "no secret is in the record")

        begin = events(record, "start")[0]
        expect_equal(begin["policy_sha256"], sha256(canonical(begin["policy"])), "hash of the policy")
        expect_equal(begin["policy"]["shares"], [{"host": str(work), "guest": str(work), "mode": "rw"}])
        hashes = events(record, "hashes")[0]
        for name, path in (("kernel", "share/mvagent/vmlinux"), ("initramfs", "share/mvagent/initramfs.cpio"),
                           ("mvagent", "bin/mvagent"), ("mvagent-fs", "libexec/mvagent/mvagent-fs")):
            expect_equal(hashes[name], sha256((BUILD / path).read_bytes()), f"hash of {name}")
        expect(re.fullmatch("[0-9a-f]{64}", hashes["root_image"]), "hash of the image")
        for process in events(record, "walls")[0]["processes"]:
            expect_equal(process["missing"], [], f"walls missing around {process['process']}")
            # Started by root, only who serves root's files stays root.
            wanted = os.geteuid() or (0 if process["process"] == "mvagent-fs" else 65534)
            expect_equal(process["uid"], wanted, f"user of {process['process']}")
        expect_equal([p["phase"] for p in events(record, "phase")], ["running", "booted", "started", "exited"])
        end = events(record, "end")[0]
        expect_equal((end["outcome"], end["exit_status"], end["detail"]), ("exited", 0, "complete"))
        check_changes(record, work, before)


def check_changes(record, work, before):
    """The changes on record, against the trees before and after."""
    changes = {change["path"]: change for change in events(record, "change")}
    kinds = {path: change["change"] for path, change in changes.items() if not path.startswith("nested")}
    expect_equal(kinds, {"old": "changed", "long": "changed", "gone": "deleted", "there": "renamed", "script": "mode",
                         "made": "created", "made/below": "created", "made/below/n%25w ö": "created",
                         "tool": "created", "Makefile": "changed", "renamed": "renamed", "renamed/kept": "renamed"})
    expect_equal(changes["renamed/kept"]["from"], "directory/kept")
    for path, change in changes.items():
        file = work / path.replace("%25", "%")
        if change.get("after_sha256"):
            expect_equal(change["after_sha256"], sha256(file.read_bytes()), f"hash of {path} now")
        if change.get("before_sha256"):
            old = before[change.get("from", path)]
            expect_equal(change["before_sha256"], sha256(old), f"hash of {path} before")
    share = events(record, "share")[0]
    expect_equal((share["hidden"], share["protected"], share["untold"]), (1, 1, 0))
    refused = {line["path"]: line for line in events(record, "refusal")}
    expect_equal(sorted(refused), [".aws", ".exrc"])
    expect_equal((refused[".aws"]["hidden"], refused[".exrc"]["hidden"]), (True, False))
    found = {(line["finding"], line["path"]) for line in events(record, "finding")}
    for wanted in (("repository", "nested/.git"), ("executable", "tool"), ("build-file", "Makefile"),
                   ("executable", "script")):
        expect(wanted in found, f"{wanted} is found: {found}")


def test_review_changes_are_recorded():
    with places() as (work, env):
        make_tree(work)
        record = run(f"{work}:review", env, "sh", "-c", "printf changed > old; rm gone; echo n > new")
        kinds = {change["path"]: change["change"] for change in events(record, "change")}
        expect_equal(kinds, {"old": "changed", "gone": "deleted", "new": "created"})
        change = [c for c in events(record, "change") if c["path"] == "old"][0]
        expect_equal(change["before_sha256"], sha256(b"this is old\n"))
        expect_equal(change["after_sha256"], sha256(b"changed"))
        expect_equal((work / "old").read_text(), "this is old\n", "the host's file")
        name = record.name.removesuffix(".jsonl")
        listed = json.loads(mvagent("runs", "--json", env=env).out)
        expect_equal([(r["run"], r["state"]) for r in listed], [(name, "open")], "one run under one name")
        expect_in("0 of 1", mvagent("runs", "prune", "--keep", "0", env=env).out)
        expect_equal(mvagent("discard", name, env=env).status, 0)
        expect_in("1 of 1", mvagent("runs", "prune", "--keep", "0", env=env).out)
        expect_equal(json.loads(mvagent("runs", "--json", env=env).out), [])


def test_killed_run_is_cut():
    with places() as (work, env):
        run(work, env, "true")
        before = set(records(env).glob("*.jsonl"))
        running = start("--share", str(work), "--", "sleep", "1000", env=env)
        wait_until(lambda: set(records(env).glob("*.jsonl")) - before, "the record")
        record = (set(records(env).glob("*.jsonl")) - before).pop()
        wait_until(lambda: b'"phase":"started"' in record.read_bytes(), "the command's start", 60)
        name = record.name.removesuffix(".jsonl")
        expect_in("running", mvagent("runs", env=env).out)
        follow = subprocess.Popen([str(BUILD / "bin/mvagent"), "log", "-f", name], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        expect(follow.poll() is None, "log -f goes on")
        running.send_signal(signal.SIGKILL)
        running.communicate()
        out, err = follow.communicate(timeout=20)
        expect_in("started", out)
        expect_in("was cut", err)
        verified = mvagent("record", "verify", name, env=env)
        expect_equal(verified.status, 2, verified.out)
        expect_in("cut after line", verified.out)
        check_schema(record)
        expect_in("cut", mvagent("runs", env=env).out)


def test_tampering_is_named():
    with places() as (work, env):
        record = run(work, env, "sh", "-c", "echo x > x; exit 3", status=3)
        whole = record.read_bytes().splitlines(keepends=True)
        copy = work / "copy.jsonl"
        key = pathlib.Path(env["XDG_STATE_HOME"]) / "mvagent/record.key.pub"

        def verify(text, *arguments):
            copy.write_bytes(text)
            return mvagent("record", "verify", str(copy), "--json", *arguments, env=dict(env, XDG_STATE_HOME="/none"))

        result = verify(b"".join(whole), "--key", str(key))
        expect_equal((result.status, json.loads(result.out)["verdict"]), (0, "whole"), result.err)
        expect_equal(verify(b"".join(whole)).status, 125, "without a key nobody can tell")
        for number, line in enumerate(whole):
            for changed, word in ((line.replace(b'"event"', b'"evens"'), "changed"), (b"", "removed")):
                result = verify(b"".join(whole[:number] + [changed] + whole[number + 1:]), "--key", str(key))
                said = json.loads(result.out)
                if number == len(whole) - 1 and not changed:
                    expect_equal((result.status, said["verdict"]), (2, "cut"))
                else:
                    expect_equal((result.status, said["line"]), (1, number + 1), f"{word} line ({said})")
                    expect_in(word, said["message"])
        with directory() as other:
            environment = dict(env, XDG_STATE_HOME=str(other))
            run(work, environment, "true")
            stranger = other / "mvagent/record.key.pub"
            result = verify(b"".join(whole), "--key", str(stranger))
            expect_equal((result.status, json.loads(result.out)["verdict"]), (1, "other-key"))


def test_guest_cannot_reach_the_record():
    """--share-anyway of the directory that holds records and key."""
    with places() as (work, env):
        state = work / "state"
        env = dict(env, XDG_STATE_HOME=str(state))
        run(work, env, "true", options=("--share-anyway",))
        script = ("find state; ls state/mvagent; cat state/mvagent/record.key; mv state/mvagent/records state/x;"
                  "mv state/mvagent state/y; mv state z; echo x > state/mvagent/record.key; true")
        result = mvagent("run", "--share", str(work), "--share-anyway", "--", "sh", "-c", script, env=env)
        expect("PRIVATE KEY" not in result.out, result.out)
        expect(".jsonl" not in result.out, result.out)
        for record in records(env).glob("*.jsonl"):
            expect_equal(mvagent("record", "verify", str(record), env=env).status, 0, str(record))
        mode = (state / "mvagent/record.key").stat().st_mode & 0o777
        expect_equal(mode, 0o600, "mode of the key")
        expect_equal(records(env).stat().st_mode & 0o777, 0o700, "mode of the directory")


def test_many_files_are_counted():
    with places() as (work, env):
        (work / "mine").write_text("mine\n")
        script = "i=0; while [ $i -lt 9000 ]; do : > f$i; i=$((i+1)); done; echo x >> mine; echo stage: > .gitlab-ci.yml"
        record = run(work, env, "sh", "-c", script)
        check_schema(record)
        expect_equal(mvagent("record", "verify", str(record), env=env).status, 0)
        end = events(record, "end")[0]
        expect_equal(end["detail"], "bounded")
        share = events(record, "share")[0]
        expect_equal((share["made"], share["untold"]), (9001, 9000 - 8192))
        changes = {change["path"]: change["change"] for change in events(record, "change")}
        expect_equal((changes["mine"], changes[".gitlab-ci.yml"]), ("changed", "created"))
        expect_equal(end["counts"]["change"], {"seen": 9002, "written": 8194})


def test_denied_host_is_recorded():
    with places() as (work, env):
        key = work.parent / "my.key"
        record = run(work, env, "sh", "-c", "getent hosts denied.example; true", "--secret", "swordfish", "--auth-clock=hunter22",
                     options=("--allow", "allowed.example", "--record-key", str(key)))
        expect_equal(key.stat().st_mode & 0o777, 0o600, "mode of the key that was made")
        verified = mvagent("record", "verify", str(record), "--key", f"{key}.pub", env=env)
        expect_equal(verified.status, 0, verified.out + verified.err)
        check_schema(record)
        expect_equal(events(record, "start")[0]["policy"]["network"]["rules"],
                     [{"by": "--allow allowed.example", "deny": False, "host": "allowed.example", "port": None}])
        denied = {(line["decision"], line.get("host")) for line in events(record, "network")}
        expect(("denied", "denied.example") in denied, f"the host is denied: {denied}")
        # Of mvagent's own options it is known that they are no secrets; of another's with the same names it is not.
        expect("swordfish" not in record.read_text() and "hunter22" not in record.read_text(), "what may be a secret is on record")
        walls = {p["process"]: p for p in events(record, "walls")[0]["processes"]}
        expect_equal(walls["mvagent-relay"]["missing"], [])
        expect("not_told" not in walls["mvagent-relay"], f"the relay tells its walls: {walls['mvagent-relay']}")


def test_no_record():
    with places() as (work, env):
        result = mvagent("run", "--no-record", "--share", str(work), "--", "true", env=env)
        expect_equal(result.status, 0, result.err)
        expect(not records(env).exists(), "nothing is kept")


def test_failed_run_has_a_record():
    with places() as (work, env):
        record = run(work, env, "sleep", "1000", options=("--timeout", "2"), status=124)
        check_schema(record)
        expect_equal([line["limit"] for line in events(record, "limit")], ["time"])
        expect_equal(events(record, "end")[0]["outcome"], "time-limit")
        shown = mvagent("record", "show", env=env)
        expect_in("time-limit", shown.out)
        expect_in("limit     time", shown.out)


if __name__ == "__main__":
    import harness
    harness.main(globals())
