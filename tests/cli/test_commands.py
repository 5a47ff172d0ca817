#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it, without a guest: help, manual, output that cannot be written.

    tests/cli/test_commands.py [--build DIR] [TEST...]

Prints "ok NAME" or "not ok NAME: why" for each test.
"""

import argparse
import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = ["run", "diff", "apply", "discard", "runs", "record", "log", "root", "image", "policy", "review", "demo", "doctor", "selftest", "version"]
# For the project's own tests; run_options.c says so.
UNDOCUMENTED = {"--trap-registers", "--no-io-uring", "--no-notes"}

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def mvagent(*words, **named):
    named.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([MVAGENT, *words], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          errors="replace", timeout=60, check=False, **named)


def help_of(command):
    done = mvagent(command, "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: mvagent " + command), done
    assert not done.stderr, done.stderr
    return done.stdout


def options_of(command):
    """What the help of a command describes: lines that begin with an option, and the usage."""
    text = help_of(command)
    lines = re.findall(r"^  (-.*?)(?:   ?\b|$)", text, re.MULTILINE)
    return set(OPTION.findall(" ".join([text.split("\n")[0], *lines])))


def manual():
    """The manual page as words, without the marks of troff."""
    text = (CHECKOUT / "docs/mvagent.1").read_text()
    text = re.sub(r"\\f[A-Z]|\\&|^\.(?:BR?|BI|IR?|RB|RI|IB) |^\.\\\".*$", "", text, flags=re.MULTILINE)
    return text.replace("\\-", "-")


def section(title):
    return re.search(rf"^\.SH {title}\n(.*?)(?=^\.SH |\Z)", manual(), re.MULTILINE | re.DOTALL)[1]


def test_help_command_is_the_help_of_the_command():
    for command in COMMANDS:
        done = mvagent("help", command)
        assert done.returncode == 0 and done.stdout == help_of(command), (command, done)
    assert mvagent("help").stdout == mvagent("--help").stdout == mvagent("-h").stdout
    done = mvagent("help", "nothing")
    assert done.returncode == 125 and "there is no command 'nothing'" in done.stderr, done


def test_every_command_is_in_usage_and_manual():
    usage, synopsis = mvagent("--help").stdout, section("SYNOPSIS").replace('"', "")
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", usage), command
        assert f"mvagent {command}" in synopsis, command


def test_every_option_is_in_the_manual():
    text = manual()
    for command in COMMANDS:
        for option in options_of(command):
            assert re.search(rf"{option}\b(?!-)", text), f"{command} {option}"


def test_every_option_of_the_manual_is_in_a_help():
    helped = {option for command in COMMANDS for option in options_of(command)}
    # NAME of an option, where the manual describes it: after .TP, and in the synopsis.
    described = set(OPTION.findall(section("SYNOPSIS")))
    for entry in re.findall(r"^\.TP\n(.*)$", manual(), re.MULTILINE):
        described |= set(OPTION.findall(entry))
    assert len(described) > 25, described
    assert described <= helped, described - helped


def test_every_option_that_is_understood_is_in_a_help():
    for source in (CHECKOUT / "vmm/cli").glob("*.c"):
        known = set(re.findall(r'^\t\{"([a-z-]+)", (?:no|required)_argument,', source.read_text(), re.MULTILINE))
        helped = {option for command in COMMANDS for option in options_of(command)}
        missing = {"--" + name for name in known} - helped - UNDOCUMENTED
        assert not missing, (source.name, missing)


def test_review_takes_the_options_of_run():
    """Each of them; and what it has beyond is none of run's."""
    with tempfile.TemporaryDirectory() as state:
        env = {**os.environ, "XDG_STATE_HOME": state, "HOME": state}
        options = options_of("run")
        assert len(options) > 40, options
        for option in options - {"--help"}:
            # What is next to the option may be its value, and then a file's name.
            done = mvagent("review", option, "--no-such-option", env=env, cwd=state)
            assert done.returncode == 125 and f"unknown option '{option}'" not in done.stderr, (option, done)
        for option in options_of("review") - options:
            done = mvagent("run", option, "x", "--", "true", env=env)
            assert f"unknown option '{option}'" in done.stderr, (option, done)


def test_synopsis_has_the_options_of_the_small_commands():
    synopsis = section("SYNOPSIS")
    for command in COMMANDS[1:]:
        # Several, where it has verbs.
        lines = " ".join(re.findall(rf"^\"?mvagent {command}\b.*?(?=^\.br|\Z)", synopsis, re.MULTILINE | re.DOTALL))
        wanted = options_of(command) - {"--help"}
        assert set(OPTION.findall(lines)) == wanted, (command, wanted, OPTION.findall(lines))


def test_every_exit_status_is_in_the_manual():
    statuses = section("EXIT STATUS")
    for header in ("outcome.h", "review_commands.h", "record_commands.h", "checklist_command.h"):
        for name, number in re.findall(r"^#define (EXIT_\w+)\s+(\d+)", (CHECKOUT / "vmm/cli" / header).read_text(),
                                       re.MULTILINE):
            assert re.search(rf"\b{number}\b", statuses), name


def test_every_variable_that_is_read_is_in_the_manual():
    described = section("ENVIRONMENT")
    for source in (CHECKOUT / "vmm").rglob("*.c"):
        for name in re.findall(r'getenv\("(\w+)"\)', source.read_text()):
            assert re.search(rf"\b{name}\b", described), f"{source.name} reads {name}"


def test_output_that_cannot_be_written():
    with tempfile.TemporaryDirectory() as state:
        env = {**os.environ, "XDG_STATE_HOME": state}
        for words in (["--help"], ["help", "run"], ["version"], ["doctor"], ["doctor", "--json"],
                      ["runs", "--json"], ["root", "show"], ["root", "show", "--json"],
                      *([command, "--help"] for command in COMMANDS)):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = mvagent(*words, stdout=full, env=env)
            assert done.returncode == 125, (words, done)
            assert "cannot write to standard output" in done.stderr, (words, done.stderr)


def test_what_is_wrong_with_options_is_told_before_the_machine():
    """Nothing of KVM where something else is wrong."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        os.chmod(directory, 0o700)
        for words, wanted in ((["--root-add", directory], "only what everybody may read"),
                              (["--root-add", "/etc"], "--root-add /etc"),
                              (["--share", directory + ":r0"], "':r0' is no mode"),
                              (["--timeout", "9000h"], "at most 8760h"),
                              (["--memory", "99999G"], "this host has")):
            done = mvagent("run", *words, "--", "true")
            assert done.returncode == 125 and wanted in done.stderr, (words, done)
            assert "kvm" not in done.stderr.lower(), done.stderr
            assert done.stderr.count("\n") == 1, done.stderr


def test_what_is_wrong_is_one_sentence_that_names_it():
    with tempfile.TemporaryDirectory() as state:
        env = {**os.environ, "XDG_STATE_HOME": state, "XDG_DATA_HOME": state, "TMPDIR": state}
        for words, wanted in ((["demo", "--html"], "demo: '--html' needs a file"),
                              (["demo", "--", "true"], "demo: '--' has no place here"),
                              (["demo", "true"], "demo: 'true' has no place here"),
                              (["demo", "--no-such-option"], "unknown option '--no-such-option'"),
                              (["demo", "--html", "/nowhere/x"], "--html /nowhere/x: cannot write there"),
                              (["demo", "--memory", "much"], "--memory much"),
                              (["review", "--html", "/nowhere/x"], "--html /nowhere/x: cannot write there"),
                              (["review", "--register", "/nowhere/x.csv"], "--register /nowhere/x.csv: cannot"),
                              (["review", "--from", "nothing"], "--from nothing: there is no such record"),
                              (["run", "--json", "/nowhere/x", "--", "true"], "--json /nowhere/x: cannot write there"),
                              (["run", "--allow-preset", "nothing", "--", "true"], "anthropic, openai or google"),
                              (["run", "--allow-preset", "../x", "--", "true"], "anthropic, openai or google"),
                              (["run", "--allow", "https://example.com", "--", "true"], "give the host alone"),
                              # Before what is wrong with this host: that it has no KVM, or nothing is installed.
                              (["run", "--secret", "NOT_SET_HERE@a.test", "--", "true"], "--secret NOT_SET_HERE: it is not set"),
                              (["run", "--secret-file", "A=/nowhere@a.test", "--", "true"], "--secret-file A=/nowhere: cannot read it"),
                              (["run", "--env", "NOT_SET_HERE", "--", "true"], "--env NOT_SET_HERE: it is not set"),
                              (["run", "--env-file", "/nowhere", "--", "true"], "--env-file /nowhere: cannot read it"),
                              (["run", "--known-hosts", "/nowhere", "--", "true"], "it is for --ssh-agent, which was not given"),
                              (["policy", "check", "https://example.com"], "give HOST or HOST:PORT"),
                              (["image", "list", "--package", "x"], "image list: --package has no place here"),
                              (["image", "build", "--json"], "image build: --json has no place here"),
                              (["run", "--root", "x@sha256:12", "--", "true"], "64 hexadecimal digits"),
                              (["image", "list", "x"], "image list: give no NAME"),
                              (["log", "--record", "/nowhere"], "directory for records, /nowhere"),
                              (["runs", "--record", "/nowhere"], "directory for records, /nowhere"),
                              (["runs", "--repair", "--record", "/nowhere"], "directory for records, /nowhere"),
                              (["runs", "prune", "--keep", "1", "--record", "/nowhere"], "for records, /nowhere")):
            done = mvagent(*words, env=env)
            assert done.returncode == 125 and wanted in done.stderr, (words, done)
            assert done.stderr.count("\n") == 1 and "Invalid argument" not in done.stderr, done.stderr
            assert not any(name.startswith("mvagent-demo") for name in os.listdir(state)), words


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def write_record(place, count):
    """A record by Python and OpenSSL, as docs/record.md has it: its lines, and the public key beside them."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=place, check=True, capture_output=True)

    openssl("genpkey", "-algorithm", "ed25519", "-out", "key")
    openssl("pkey", "-in", "key", "-pubout", "-out", "key.pub")
    public = base64.b64decode("".join((place / "key.pub").read_text().splitlines()[1:-1]))[-32:].hex()
    lines, previous = [], "0" * 64
    for number in range(1, count + 1):
        line = {"n": number, "previous": previous, "time": "2026-01-01T00:00:00.000000Z", "event": "notice", "notice": f"{number}"}
        if number == count:
            line = {**line, "event": "signature", "key": public}
            del line["notice"]
            (place / "message").write_bytes(b"mvagent record 1\n" + canonical(line))
            openssl("pkeyutl", "-sign", "-inkey", "key", "-rawin", "-in", "message", "-out", "signature")
            line["signature"] = (place / "signature").read_bytes().hex()
        lines.append(canonical(line) + b"\n")
        previous = hashlib.sha256(lines[-1][:-1]).hexdigest()
    return lines


def test_record_is_verified_on_a_bare_machine():
    """With the program, the record and the public key alone: no other file, no network, no home, no /proc."""
    with tempfile.TemporaryDirectory() as name:
        place, bare = pathlib.Path(name), pathlib.Path(name) / "bare"
        bare.mkdir()
        lines = write_record(place, 5)
        shutil.copy(place / "key.pub", bare)
        shutil.copy(MVAGENT, bare / "mvagent")
        for line in subprocess.run(["ldd", MVAGENT], capture_output=True, text=True, check=True).stdout.splitlines():
            library = re.search(r"(/\S+) \(", line)
            if library:
                target = bare / library[1].lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library[1], target)
        for changed, status, said in ((lines, 0, "5 lines, each as it was written"), (lines[:4], 2, "cut after line 4"),
                                      (lines[:1] + lines[2:], 1, "line 2 was removed"), (lines[:2] + lines[1:], 1, "line 3 was added"),
                                      ([lines[0], lines[2], lines[1], *lines[3:]], 1, "reordered"),
                                      ([lines[0], lines[1].replace(b'"2"', b'"3"'), *lines[2:]], 1, "line 2 was changed")):
            (bare / "record.jsonl").write_bytes(b"".join(changed))
            done = subprocess.run([shutil.which("unshare"), "--user", "--map-root-user", "--net", shutil.which("chroot"), bare, "/mvagent", "record", "verify",
                                   "/record.jsonl", "--key", "/key.pub"], env={}, capture_output=True, text=True, timeout=60,
                                  check=False)
            assert done.returncode == status and said in done.stdout, (said, done)


def test_demo_finds_the_place_of_its_page_where_it_was_called():
    with tempfile.TemporaryDirectory() as directory:
        done = mvagent("demo", "--html", "nowhere/page.html", cwd=directory)
        assert done.returncode == 125 and "--html nowhere/page.html: cannot write there" in done.stderr, done


def test_doctor_tells_of_shares():
    done = mvagent("doctor")
    for name in ("fanotify", "review", "diff"):
        assert re.search(rf"^(ok  |note) {name} ", done.stdout, re.MULTILINE), (name, done.stdout)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as state:
        done = mvagent("doctor", env={**os.environ, "XDG_STATE_HOME": state + "/a/b"})
        assert f"can keep its changes below {state}\n" in done.stdout, done.stdout
        assert not os.listdir(state)
    done = mvagent("doctor", env={**os.environ, "XDG_STATE_HOME": "/proc/nothing"})
    assert re.search(r"^note review .*/proc takes no new directories", done.stdout, re.MULTILINE), done.stdout


def test_root_show_names_what_was_left_out():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        os.chmod(directory, 0o755)
        for name in ("tool", ".netrc", "closed", "pipe"):
            pathlib.Path(directory, name).touch()
            os.chmod(pathlib.Path(directory, name), 0o644)
        os.chmod(pathlib.Path(directory, "closed"), 0o600)
        os.unlink(pathlib.Path(directory, "pipe"))
        os.mkfifo(pathlib.Path(directory, "pipe"))
        brief = mvagent("root", "show", "--root-add", directory)
        assert directory + "/" not in brief.stdout and "--verbose names them" in brief.stdout, brief.stdout
        done = mvagent("root", "show", "--verbose", "--root-add", directory)
        for name in (".netrc", "closed", "pipe"):
            assert f"\n    {directory}/{name}\n" in done.stdout, (name, done.stdout)
        assert f"{directory}/tool" not in done.stdout
        # Of /etc: what is there of the names that enter, not the patterns.
        assert re.search(r"^    (os-release|services|ssl/.*|ld\.so\.cache)$", done.stdout, re.MULTILINE), done.stdout
        assert "*" not in done.stdout, done.stdout


def main():
    global MVAGENT
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    MVAGENT = os.path.abspath(os.path.join(arguments.build, "bin/mvagent"))
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (arguments.tests and name not in arguments.tests):
            continue
        try:
            test()
            print("ok", name, flush=True)
        except (AssertionError, subprocess.SubprocessError, OSError, TypeError) as error:
            traceback.print_exc()
            print(f"not ok {name}: {type(error).__name__}", flush=True)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
