# SPDX-License-Identifier: Apache-2.0
"""mvagent run as a program that other programs call: statuses, streams, environment, refusals."""

import hashlib
import json
import os
import subprocess
import time

import harness
from harness import directory, expect, expect_equal, expect_in, mvagent, run, run_json, run_ok


def test_exit_status_comes_through():
    for status in (0, 1, 42, 124, 125, 255):
        result, outcome = run_json("--", "sh", "-c", f"exit {status}")
        expect_equal(result.status, status, "exit status")
        expect_equal(outcome["outcome"], "exited", "outcome")
        expect_equal(outcome["command_status"], status, "command_status")
        expect_equal(result.stderr, b"", "standard error")


def test_signal_is_128_plus_number():
    for number in (9, 15, 11):
        result, outcome = run_json("--", "sh", "-c", f"kill -{number} $$")
        expect_equal(result.status, 128 + number, "exit status")
        expect_equal(outcome["outcome"], "signaled", "outcome")
        expect_equal(outcome["command_signal"], number, "command_signal")


def test_not_found_and_not_executable():
    result, outcome = run_json("--", "no-such-command")
    expect_equal((result.status, outcome["outcome"]), (127, "not-found"))
    expect_in("no-such-command: command not found", result.err)
    result, outcome = run_json("--", "/etc/passwd")
    expect_equal((result.status, outcome["outcome"]), (126, "not-executable"))
    result, outcome = run_json("--", "/usr")
    expect_equal((result.status, outcome["outcome"]), (126, "not-executable"))


def test_streams_are_separate_and_exact():
    blob = bytes(range(256)) * 4096
    result = run_ok("--", "cat", stdin=blob)
    expect_equal(hashlib.sha256(result.stdout).digest(), hashlib.sha256(blob).digest(), "stdout")
    result = run_ok("--", "sh", "-c", "printf out; printf err >&2")
    expect_equal((result.stdout, result.stderr), (b"out", b"err"))


def test_large_stream_in():
    """1 GiB through stdin, with memory of the processes flat."""
    mebibytes = int(os.environ.get("STREAM_MIB", "1024"))
    block = os.urandom(1 << 20)
    digest = hashlib.sha256()
    process = harness.start("--", "sha256sum", stdin=subprocess.PIPE)
    peak = 0
    for _ in range(mebibytes):
        process.stdin.write(block)
        digest.update(block)
        for pid in harness.processes():
            try:
                status = open(f"/proc/{pid}/status", encoding="ascii").read()
            except OSError:
                continue
            anonymous = [line for line in status.splitlines() if line.startswith("RssAnon:")]
            if anonymous:
                peak = max(peak, int(anonymous[0].split()[1]))
    output, _ = process.communicate(timeout=harness.LIMIT)
    expect_equal(output.split()[0].decode(), digest.hexdigest(), "sha256 in the guest")
    expect(peak < 64 * 1024, f"a process held {peak} KiB of its own memory")


def test_large_stream_out():
    result = run_ok("--", "sh", "-c", "head -c 67108864 /dev/urandom | tee /tmp/x; sha256sum /tmp/x >&2")
    expect_equal(hashlib.sha256(result.stdout).hexdigest(), result.err.split()[0], "sha256 of the output")


def test_open_stdin_does_not_hold_the_run():
    reader, writer = os.pipe()
    try:
        begin = time.monotonic()
        process = harness.start("--", "true", stdin=reader)
        expect_equal(process.wait(timeout=harness.LIMIT), 0, "exit status")
        expect(time.monotonic() - begin < 60, "it waited for standard input")
    finally:
        os.close(writer)
        os.close(reader)


def test_end_of_stdin_is_passed_on():
    expect_equal(run_ok("--", "wc", "-c", stdin=b"12345").out.strip(), "5")
    expect_equal(run_ok("--", "cat", stdin=subprocess.DEVNULL).out, "")


def test_reader_that_leaves_gives_epipe():
    result = subprocess.run(
        f"{harness.MVAGENT} run {harness.ROOT_WORDS} -- sh -c 'trap \"\" PIPE; yes' | head -n 3",
        shell=True, capture_output=True, timeout=harness.LIMIT, check=False)
    expect_equal(result.stdout, b"y\ny\ny\n", "what the reader got")
    expect_in("Broken pipe", result.stderr.decode())


def test_standard_descriptors_may_be_closed():
    result = subprocess.run(f"{harness.MVAGENT} run {harness.ROOT_WORDS} -- echo hello 0<&- 2>&-", shell=True,
                            stdout=subprocess.PIPE, timeout=harness.LIMIT, check=False)
    expect_equal((result.returncode, result.stdout), (0, b"hello\n"))


def test_environment_is_built_from_nothing():
    environment = dict(os.environ, SECRET_TOKEN="do-not-tell", PASSED="yes", EMPTY="")
    result = run_ok("--env", "PASSED", "--env", "EMPTY", "--env", "SET=a=b\nc", "--", "env", "-0", env=environment)
    names = dict(entry.split("=", 1) for entry in result.out.split("\0") if entry)
    expect_equal(names["PASSED"], "yes")
    expect_equal(names["EMPTY"], "")
    expect_equal(names["SET"], "a=b\nc")
    extra = set(names) - {"PASSED", "EMPTY", "SET", "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG"}
    expect_equal(extra, set(), "variables that nobody asked for")
    result = run("--env", "NOT_SET_AT_ALL", "--", "true")
    expect_equal(result.status, 125)
    expect_in("NOT_SET_AT_ALL: it is not set", result.err)


def test_variables_of_a_file():
    """They reach the command, are told of if they look like secrets, and are no more than names in the record."""
    value = "do-not-tell-this-word"
    with harness.directory() as place:
        (place / "variables").write_text(f"# of this test\nPASSED\nMY_TOKEN={value}\nSET=file\nQUOTED=\"a b\"\n")
        result = run_ok("--env", "SET=option", "--env-file", str(place / "variables"), "--why", "it is asked for them",
                        "--record", str(place / "records"), "--", "sh", "-c", "env -0", value, env={**os.environ, "PASSED": "yes"})
        names = dict(entry.split("=", 1) for entry in result.out.split("\0") if entry)
        expect_equal({name: names.get(name) for name in ("PASSED", "MY_TOKEN", "SET", "QUOTED")},
                     {"PASSED": "yes", "MY_TOKEN": value, "SET": "option", "QUOTED": '"a b"'}, "variables")
        expect_in(f"--env-file {place}/variables, MY_TOKEN: the command has what may be a secret; --secret MY_TOKEN@HOST", result.err)
        record = next((place / "records").rglob("*.jsonl")).read_text()
        start = json.loads(record.splitlines()[0])
        expect_equal(start["policy"]["environment"], ["PASSED", "MY_TOKEN", "SET", "QUOTED"], "variables in the policy")
        expect_equal([(reason["option"], reason["value"]) for reason in start["reasons"]],
                     [("--env", name) for name in ("PASSED", "MY_TOKEN", "SET", "QUOTED")], "reasons")
        expect(value not in record, "a value is in the record")
        (place / "variables").write_text("A=1\nexport B=" + value)
        result = run("--env-file", str(place / "variables"), "--", "true")
        expect_equal(result.status, 125)
        expect_in("variables, line 2: leave out 'export', which is for shells; a line is NAME=VALUE or NAME", result.err)
        expect(value not in result.err, "a value is in what the user is told")


def test_many_variables_and_long_arguments():
    options = [part for number in range(1000) for part in ("--env", f"V{number}={'x' * 100}")]
    result = run_ok(*options, "--", "sh", "-c", "env | grep -c ^V")
    expect_equal(result.out.strip(), "1000", "variables in the guest")
    long = "y" * 131000
    result = run_ok("--", "sh", "-c", 'for a; do printf "%s" "${#a} "; done', "sh", long, "", "a b\nc'\"\\")
    expect_equal(result.out, "131000 0 8 ", "lengths of the arguments")
    result = run_ok("--", "sh", "-c", "echo $#", "sh", *(["z" * 131000] * 14))
    expect_equal(result.out, "14\n", "count of arguments, nearly all that a kernel takes")


def test_user_and_root():
    result = run_ok("--", "sh", "-c", "id -un; id -u; echo $HOME; test -w $HOME && pwd")
    expect_equal(result.out.split("\n")[1], str(os.getuid() or 1000), "uid")
    name = result.out.split("\n")[0]
    expect_equal(result.out.split("\n")[2], f"/home/{name}", "HOME")
    result = run_ok("--user", "root", "--", "sh", "-c", "id -u; mount -t tmpfs t /mnt && echo mounted")
    expect_equal(result.out, "0\nmounted\n")


def test_work_directory():
    with directory() as place:
        (place / "sub").mkdir()
        expect_equal(run_ok("--share", place, "--", "pwd").out.strip(), str(place), "default")
        expect_equal(run_ok("--share", place, "--at", "/w", "--", "pwd").out.strip(), "/w", "--at")
        expect_equal(run_ok("--share", place, "--workdir", f"{place}/sub", "--", "pwd").out.strip(), f"{place}/sub")
        result, outcome = run_json("--workdir", "/not/there", "--", "true")
        expect_equal((result.status, outcome["outcome"]), (125, "guest-failed"))
        expect_in("/not/there", result.err)


def test_refusals_are_one_clear_sentence():
    with directory() as place:
        (place / "file").write_text("")
        cases = [
            ([], "no command was given"),
            (["--share", f"{place}/none", "--", "true"], "none"),
            (["--share", f"{place}/file", "--", "true"], "not a directory"),
            (["--share", "/", "--", "true"], "/"),
            (["--share", place, "--share", place, "--", "true"], "two shares"),
            (["--at", "/w", "--", "true"], "--at /w"),
            (["--cpus", "17", "--", "true"], "--cpus 17"),
            (["--cpus", "0", "--", "true"], "--cpus 0"),
            (["--memory", "32", "--", "true"], "--memory 32"),
            (["--memory", "99999G", "--", "true"], "--memory 99999G"),
            (["--memory", "x", "--", "true"], "--memory x"),
            (["--timeout", "0", "--", "true"], "--timeout 0"),
            (["--user", "bob", "--", "true"], "--user bob"),
            (["--workdir", "relative", "--", "true"], "relative"),
            (["--no-such-option", "--", "true"], "--no-such-option"),
            (["--kernel", f"{place}/none", "--", "true"], "none"),
            (["--kernel", f"{place}/file", "--", "true"], f"--kernel {place}/file is not an uncompressed vmlinux"),
            (["--kernel", str(place), "--", "true"], f"--kernel {place} is not"),
            (["--root", f"{place}/none", "--", "true"], "none"),
            (["--root", f"{place}/file", "--", "true"], f"--root {place}/file is not an EROFS image"),
        ]
        for options, words in cases:
            result = run(*options)
            expect_equal(result.status, 125, f"status of {options}")
            expect_in(words, result.err, f"message of {options}")
            expect(result.err.startswith("mvagent"), f"message of {options}: {result.err}")
            expect_equal(result.stdout, b"", f"output of {options}")
            harness.expect_nothing_left()


def test_json_file_and_standard_error():
    result = run("--json", "-", "--", "sh", "-c", "exit 3")
    outcome = json.loads(result.err)
    expect_equal(outcome["exit_status"], 3)
    for phase in ("prepare", "boot", "session", "command", "leave", "total"):
        expect(outcome["milliseconds"][phase] is not None, f"no time for {phase}")
    expect_equal(outcome["machine"]["end"], "stopped")
    result, outcome = run_json("--share", "/nowhere", "--", "true")
    expect_equal((result.status, outcome["outcome"]), (125, "setup-failed"))
    expect_equal(outcome["command_status"], None)
    result = run("--json", "/no/such/place", "--", "true")
    expect_equal(result.status, 125)
    expect_in("/no/such/place", result.err)


def test_nothing_of_the_host_is_there():
    result = run_ok("--user", "root", "--", "sh", "-c",
                    "ip -o addr 2>/dev/null; cat /proc/net/route; ls /home; cat /proc/cmdline /proc/mounts")
    expect("virtiofs" not in result.out, "a share was mounted that nobody asked for")


def test_no_route():
    program = ("import socket,errno\n"
               "for family,address in ((socket.AF_INET,'192.0.2.1'),(socket.AF_INET6,'2001:db8::1')):\n"
               "  s=socket.socket(family,socket.SOCK_STREAM)\n"
               "  try: s.connect((address,80)); print('connected')\n"
               "  except OSError as e: print(errno.errorcode[e.errno])\n")
    result = run_ok("--", "python3", "-c", program)
    expect_equal(result.out, "ENETUNREACH\nENETUNREACH\n", "what connect says")


def test_background_processes_end_with_the_command():
    begin = time.monotonic()
    result = run_ok("--", "sh", "-c", "(setsid sleep 1000 >/dev/null 2>&1 &) ; sleep 1000 & echo done")
    expect_equal(result.out, "done\n")
    expect(time.monotonic() - begin < 60, "it waited for background processes")


def test_help_and_version():
    for arguments in (["--help"], ["run", "--help"], ["doctor", "--help"], ["version", "--help"], ["version"]):
        result = mvagent(*arguments)
        expect_equal(result.status, 0, f"status of {arguments}")
        expect_in("mvagent", result.out)
        expect_equal(result.stderr, b"", f"standard error of {arguments}")
    expect_equal(mvagent("frobnicate").status, 125)
    expect_equal(mvagent().status, 125)


def test_doctor():
    result = mvagent("doctor")
    expect_equal(result.status, 0, result.out)
    expect_in("hardware", result.out)
    checks = json.loads(mvagent("doctor", "--json").stdout)
    expect_equal(checks["can_run"], True)


def test_kvm_absent_or_forbidden():
    """In a mount namespace where /dev/kvm is not there, or not a KVM."""
    if os.getuid() != 0:
        raise harness.Skip("needs root to change what /dev/kvm is")
    for setup, words in (("mount --bind /dev/null /dev/kvm", "does not answer as KVM does"),
                         ("mount -t tmpfs t /dev && mknod /dev/null c 1 3", "there is no /dev/kvm")):
        begin = time.monotonic()
        result = subprocess.run(["unshare", "-m", "sh", "-c", f"{setup} && exec {harness.MVAGENT} run {harness.ROOT_WORDS} -- true"],
                                capture_output=True, timeout=60, check=False)
        expect_equal(result.returncode, 125, "status")
        expect_in(words, result.stderr.decode())
        expect(time.monotonic() - begin < 5, "it took long to say so")
    result = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "sh", "-c",
                             f"exec {harness.MVAGENT} run {harness.ROOT_WORDS} -- true"], capture_output=True, timeout=60, check=False)
    if os.stat("/dev/kvm").st_mode & 0o002 == 0:
        expect_in("add yourself to its group", result.stderr.decode())


if __name__ == "__main__":
    harness.main(globals())
