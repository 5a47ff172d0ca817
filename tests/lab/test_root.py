#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The host's own tools as the guest's root."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import harness
from harness import directory, expect, expect_equal, expect_in
from small_host import PATH, small_host
from test_packages import libraries, npm_archive, pip_tools, wheel

SECRET = "never-in-a-guest-7f3a"


def sums(listing):
    """{path: sum} of sha256sum's output."""
    return dict(reversed(line.split(b"  ", 1)) for line in listing.splitlines())


def test_the_tools_of_the_host_run():
    with small_host() as host:
        script = """
            python3 -c 'import json, asyncio, ssl; print("python", json.dumps([1]))'
            git --version && perl -e 'print "perl\\n"'
            cd /tmp && printf 'int main(void) { return 7; }' >a.c && gcc -o a a.c && ./a || echo "gcc $?"
            git init -q repo && cd repo && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
            git log --oneline | wc -l
            dpkg -S /usr/bin/git; id -un; pwd -P
            """
        out = host.run_ok("--", "sh", "-ec", script).out
        for words in ("python [1]", "git version", "perl\n", "gcc 7", "git: /usr/bin/git", "agent"):
            expect_in(words, out)


def test_every_file_is_the_same_inside_and_outside():
    """All of /usr: names, types, modes, times and contents."""
    describe = r"cd /usr && find . \( -type f -o -type l -o -type d \) -printf '%P %y %m %T@ %l %s\n' | " \
               r"grep -v ' d ' | sort"
    contents = r"cd /usr && find . -type f -print0 | sort -z | xargs -0 sha256sum"
    with small_host() as host:
        inside = host.run_ok("--", "sh", "-ec", f"{describe}; echo ====; {contents}", limit=900).stdout
        outside = host.sh(f"{describe}; echo ====; {contents}")
        expect(len(outside) > 500000, f"{len(outside)} bytes of listing")
        names, listing = outside.split(b"====\n")
        inside_names, inside_listing = inside.split(b"====\n")
        if inside_names != names:
            different = set(inside_names.splitlines()) ^ set(names.splitlines())
            raise harness.Failure(f"{len(different)} entries differ: {sorted(different)[:6]}")
        seen, wanted = sums(inside_listing), sums(listing)
        expect(len(wanted) > 5000, f"{len(wanted)} files")
        wrong = [path for path in wanted if seen.get(path) != wanted[path]]
        expect_equal(wrong, [], "files with other contents")


def plant(host):
    for name, mode in (("/etc/shadow", 0o640), ("/etc/app.conf", 0o644), ("/etc/npmrc", 0o644), ("/etc/profile.d/x.sh", 0o644),
                       ("/etc/ssl/private/key.pem", 0o644), ("/root/file", 0o644), ("/root/.ssh/id", 0o600),
                       ("/home/ada/.netrc", 0o644), ("/var/log/app.log", 0o644), ("/var/lib/app/db", 0o644),
                       ("/usr/local/etc/key", 0o600), ("/usr/local/lib/secret", 0o640), ("/opt/app/token", 0o600),
                       ("/srv/file", 0o644), ("/secret", 0o644)):
        host.write(name, SECRET, mode)
    host.write("/opt/closed/file", SECRET)
    host.path("/opt/closed").chmod(0o700)
    os.symlink("/etc/shadow", host.path("/opt/shadow"))
    host.write("/usr/local/bin/visible", "visible")


def test_secrets_are_neither_seen_nor_on_the_device():
    """As root of the guest: by name, by the whole tree, and in the device's blocks."""
    with small_host() as host:
        plant(host)
        script = f"""
            cat /usr/local/bin/visible; echo
            for f in /etc/app.conf /etc/npmrc /usr/local/etc/key /opt/app/token /root/file /secret /opt/shadow; do
                grep -s -q {SECRET} $f && echo "seen $f"
            done
            grep -r -s -l {SECRET} /etc /root /home /var /usr/local /opt /srv && echo seen
            echo searched
            """
        out = host.run_ok("--user", "root", "--", "sh", "-c", script).out
        expect_equal(out, "visible\nsearched\n")
        script = f"""
            import os
            secret = bytes.fromhex("{SECRET.encode().hex()}")
            fd = os.open("/dev/vda", os.O_RDONLY)
            size = os.lseek(fd, 0, os.SEEK_END)
            found = 0
            tail = b""
            for offset in range(0, size, 1 << 20):
                data = os.pread(fd, 1 << 20, offset)
                found += secret in tail + data
                tail = data[-64:]
            print(size, found)
            """
        out = host.run_ok("--user", "root", "--", "python3", "-c", "\n".join(line[12:] for line in script.splitlines()),
                          limit=600).out
        size, found = map(int, out.split())
        expect(size > 100 << 20, f"a device of {size} bytes")
        expect_equal(found, 0, "secrets on the device")


def test_a_changed_file_gives_an_error_and_one_line():
    with small_host() as host:
        host.write("/usr/local/bin/one", "x" * 5000)
        host.write("/usr/local/bin/two", "y" * 5000)
        place = host.path("/tmp/share")
        place.mkdir()
        script = """
            wc -c </usr/local/bin/one; touch go; while [ ! -e changed ]; do sleep 0.2; done
            echo 3 >/proc/sys/vm/drop_caches
            for i in 1 2 3; do cat /usr/local/bin/one >/dev/null || echo failed; done
            cat /usr/local/bin/two >/dev/null || echo failed; wc -c </usr/local/lib/other
            """
        host.write("/usr/local/lib/other", "other")
        process = subprocess.Popen(host.command("run", "--root", "host", "--user", "root", "--share", "/tmp/share", "--", "sh",
                                                "-c", script), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, env={"HOME": "/root", "PATH": PATH})
        harness.wait_until((place / "go").exists, "the guest", 120)
        host.write("/usr/local/bin/one", "z" * 5000)
        host.path("/usr/local/bin/two").unlink()
        (place / "changed").touch()
        out, err = (text.decode() for text in process.communicate(timeout=120))
        expect_equal(out, "5000\nfailed\nfailed\nfailed\nfailed\n5\n")
        expect_equal(err.count("/usr/local/bin/one changed on the host"), 1, "lines about one file")
        expect_equal(err.count("changed on the host"), 2, "lines")
        # What is kept is not believed: the next run sees the file as it is.
        expect_equal(host.run_ok("--", "head", "-c", "3", "/usr/local/bin/one").out, "zzz")


def test_an_interrupt_while_the_host_is_looked_through():
    with small_host() as host:
        process = subprocess.Popen(host.command("run", "--root", "host", "--", "true"), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env={"HOME": "/root", "PATH": PATH})
        harness.wait_until(lambda: any("mvagent-blk" in line for line in harness.processes().values()), "mvagent-blk", 60)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1].decode()
        expect_equal(process.returncode, 130, f"status, with {err[-300:]}")
        expect_in("interrupted by SIGINT", err)
        expect_equal(list(host.path("/root").glob(".cache/mvagent/root/*")), [], "what was kept")


def test_progress_is_shown_on_a_terminal():
    with small_host() as host:
        host.sh("mkdir /usr/local/many && cd /usr/local/many && for i in $(seq 40); do mkdir $i && (cd $i && seq 1000 | xargs touch); done")
        words = host.command("run", "--root", "host", "--", "true")
        words[2:] = ["script", "-qec", " ".join(words[2:]), "/dev/null"]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=True,
                              env={"HOME": "/root", "PATH": PATH})
        shown = [int(number) for number in re.findall(rb"looking through this host's tools: (\d+) names", done.stdout)]
        expect(shown and shown == sorted(shown) and shown[-1] > 5000, f"{shown} in {done.stdout!r}")
        expect_equal(host.run_ok("--", "true").err, "", "without a terminal")


def test_the_image_is_kept_and_safe_to_delete():
    with small_host() as host:
        kept = host.path("/root/.cache/mvagent/root")
        time.sleep(2.5)
        # Not kept while something in it is so new that a change after it would look the same.
        for _ in range(3):
            first = host.run_ok("-v", "--", "true")
            expect_in(" made in ", first.err)
            if any(kept.iterdir()):
                break
        expect_equal(oct(kept.stat().st_mode & 0o777), "0o700")
        expect_equal(len(list(kept.iterdir())), 1, "files kept")
        second = host.run_ok("-v", "--", "sh", "-c", "ls /usr/local/bin; git --version")
        expect_in(" checked in ", second.err)
        host.write("/usr/local/bin/new", "new")
        third = host.run_ok("-v", "--", "cat", "/usr/local/bin/new")
        expect_in(" made in ", third.err)
        expect_equal(third.out, "new")
        # Changed in place, which the directory does not show: the run that meets it has the image made anew.
        # (A file of its own: one that the host wrote just before is not kept at all.)
        time.sleep(2.5)
        host.run_ok("--", "cat", "/usr/local/bin/new")
        expect_equal(len(list(kept.iterdir())), 1, "files kept")
        with open(host.path("/usr/local/bin/new"), "r+b") as file:
            file.write(b"NEW")
        host.run("--", "cat", "/usr/local/bin/new")
        expect_equal(list(kept.iterdir()), [], "files kept after a change in place")
        expect_equal(host.run_ok("--", "cat", "/usr/local/bin/new").out, "NEW")
        # Another file: a change in place would not be seen, if that run was late enough to be kept.
        host.path("/usr/local/bin/new").unlink()
        host.write("/usr/local/bin/new", "new")
        time.sleep(2.5)
        host.run_ok("--", "cat", "/usr/local/bin/new")
        for file in kept.iterdir():
            file.write_bytes(b"garbage" * 10000)
        expect_equal(host.run_ok("--", "cat", "/usr/local/bin/new").out, "new")
        kept.chmod(0o755)
        result = host.run_ok("--", "cat", "/usr/local/bin/new")
        expect_in("not yours alone", result.err)


def test_what_is_changed_in_the_root_is_gone_afterwards():
    with small_host() as host:
        before = host.sh("ls -lA /usr/bin /etc /var/lib/dpkg")
        script = "rm -r /usr/share/doc; echo hacked >/usr/bin/git; echo x >/etc/new; mkdir /opt/new; mv /usr/lib/git-core /tmp; " \
                 "cat /usr/bin/git"
        expect_equal(host.run_ok("--user", "root", "--", "sh", "-ec", script).out, "hacked\n")
        expect_equal(host.sh("ls -lA /usr/bin /etc /var/lib/dpkg"), before)
        out = host.run_ok("--", "sh", "-c", "git --version >/dev/null && ls /opt; test -e /etc/new || echo gone").out
        expect_equal(out, "gone\n")


CONTROL = "Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: x\n"


def make_archive(place, archive):
    """A package of Debian's kind and an archive for apt with it alone."""
    package = place / "tool"
    for name, text, mode in (("DEBIAN/control", CONTROL, 0o644), ("DEBIAN/postinst", "#!/bin/sh\ngroupadd tool\n", 0o755),
                             ("usr/bin/tool", "#!/bin/sh\necho tool runs\n", 0o755)):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
        (package / name).chmod(mode)
    archive.mkdir()
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", package, archive / "tool.deb"], check=True, capture_output=True)
    data = (archive / "tool.deb").read_bytes()
    (archive / "Packages").write_text(f"{CONTROL}Filename: ./tool.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n")


def test_packages_are_installed_and_gone_afterwards():
    """apt and dpkg, from a file and from an archive; what it has brought is not there in the next run, nor on the host."""
    with small_host() as host, directory() as place:
        make_archive(place, host.path("/opt/archive"))
        host.write("/etc/apt/sources.list", "deb [trusted=yes] file:/opt/archive ./\n")
        looks = "ls -lA /usr/bin /etc /var/lib/dpkg; cat /var/lib/dpkg/status"
        before = host.sh(looks)
        checks = "tool; dpkg -s tool | grep Status; grep -c ^tool: /etc/group; dpkg -r tool >/dev/null; ls /usr/bin/tool 2>/dev/null || echo removed"
        for options, names in (((), "/opt/archive/tool.deb"), (("--root-add", "/etc/apt"), "tool")):
            script = f"(apt-get update && apt-get install -y {names}) >/tmp/log 2>&1 || cat /tmp/log; {checks}"
            result = host.run_ok("--user", "root", *options, "--", "sh", "-ec", script)
            expect_equal(result.out, "tool runs\nStatus: install ok installed\n1\nremoved\n")
        expect_equal(host.sh(looks), before, "the host")
        expect_equal(host.run_ok("--", "sh", "-c", "ls /usr/bin/tool 2>/dev/null || echo gone").out, "gone\n")


def test_node_npm_and_pip_install_in_the_root():
    """As root of the guest `npm install -g` and `pip install`, as the agent into its home: and then they run."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        raise harness.Skip("node and npm are not on this host")
    with small_host() as host:
        (host.path("/usr/local/share/archives")).mkdir(parents=True)
        npm_archive(host.path("/usr/local/share/archives/p0.tgz"), "p0", "tool0")
        wheel(host.path("/usr/local/share/archives/package0-1.0-py3-none-any.whl"), "package0")
        pip_tools(host.path("/usr/lib/python3/dist-packages"))
        shutil.copytree(pathlib.Path(npm).resolve().parents[1], host.path("/usr/lib/node_modules/npm"), symlinks=True)
        shutil.copy(pathlib.Path(node).resolve(), host.path("/usr/bin/node"))
        libraries(node, host.path("/usr/lib/x86_64-linux-gnu"))
        host.path("/usr/bin/npm").symlink_to("../lib/node_modules/npm/bin/npm-cli.js")
        host.sh("chmod -R a+rX /usr/lib/node_modules /usr/lib/python3 /usr/local")
        pip = "python3 -m pip install -q --no-index --disable-pip-version-check --break-system-packages --root-user-action=ignore "
        archives = "/usr/local/share/archives"
        script = f"npm install -g --offline --no-audit --no-fund --silent {archives}/p0.tgz; tool0; " \
                 f"{pip} {archives}/package0-1.0-py3-none-any.whl; package0"
        for user, prefix in (("root", ""), ("agent", "export npm_config_prefix=$HOME/.local PATH=$HOME/.local/bin:$PATH; ")):
            result = host.run_ok("--user", user, "--memory", "1024M", "--", "sh", "-ec", prefix + script)
            expect_equal(result.out, "p0\npackage0\n", f"as {user}: {result.err}")
        expect_equal(host.run_ok("--", "sh", "-c", "command -v tool0 || command -v package0 || echo gone").out, "gone\n")


def test_scratch_bounds_what_lives_in_memory():
    with small_host() as host:
        script = "df -B1M --output=size /tmp / | tail -n 2 | tr -d ' \\n'; dd if=/dev/zero of=/tmp/big bs=1M count=100 2>&1 | " \
                 "grep -o 'No space left on device'; dd if=/dev/zero of=/usr/big bs=1M count=100 2>&1 | grep -c 'No space'"
        out = host.run_ok("--user", "root", "--scratch", "40M", "--", "sh", "-c", script).out
        expect_equal(out, "4040No space left on device\n1\n")


def test_directories_are_added_and_hidden_by_name():
    with small_host() as host:
        host.write("/home/ada/.nvm/bin/node", "#!/bin/sh\necho node runs\n", 0o755)
        host.write("/home/ada/.nvm/.npmrc", SECRET)
        host.write("/home/ada/other", SECRET)
        out = host.run_ok("--root-add", "/home/ada/.nvm", "--root-hide", "/usr/bin/git", "--", "sh", "-c",
                          "/home/ada/.nvm/bin/node; ls -A /home/ada /home/ada/.nvm; command -v git || echo no git").out
        expect_equal(out, "node runs\n/home/ada:\n.nvm\n\n/home/ada/.nvm:\nbin\nno git\n")
        for option, value, words in (("--root-add", "/root", "your home directory is in it"),
                                     ("--root-add", "/", "whole system"),
                                     ("--root-add", "/none", "No such file"),
                                     ("--root-add", "/etc", "passwords and keys"),
                                     ("--root-hide", "a/b", "begins with /")):
            result = host.run(option, value, "--", "true")
            expect_equal(result.status, 125, f"status of {option} {value}")
            expect_in(words, result.err)


def test_an_ordinary_user_in_the_jail():
    """In a user namespace, where other owners have no numbers."""
    with small_host() as host:
        home = host.path("/home/ada")
        host.write("/home/ada/bin/mine", "#!/bin/sh\necho mine\n", 0o755)
        plant(host)
        for path in (home, home / "bin", home / "bin/mine"):
            os.chown(path, 1234, 1234)
        time.sleep(2.5)
        for words in (" made in ", " checked in "):
            result = host.run_ok("-v", "--root-add", "/home/ada/bin", "--", "sh", "-c",
                                 "stat -c %u:%g /usr/bin/git /etc/passwd /home/ada/bin/mine; id -u; git --version; /home/ada/bin/mine; "
                                 "cat /opt/app/token /usr/local/etc/key || echo none",
                                 user=1234, home="/home/ada")
            lines = result.out.splitlines()
            expect_equal(lines[:4], ["0:0", "0:0", "1234:1234", "1234"])
            expect_equal(lines[5:], ["mine", "none"])
            expect_in(words, result.err)


def test_root_show_tells_what_is_in_it():
    with small_host() as host:
        plant(host)
        shown = json.loads(host.sh(f"{harness.MVAGENT} root show --json"))
        paths = [entry["path"] for entry in shown["directories_of_host"]]
        expect("/usr" in paths and "/etc" in paths, f"{paths}")
        expect(shown["files"] > 5000 and shown["left_out"]["unreadable"] >= 4, f"{shown}")
        text = host.sh(f"{harness.MVAGENT} root show").decode()
        for words in ("/usr\n", "ssl/certs", "/bin -> usr/bin", "/etc/passwd", "not for everybody to read"):
            expect_in(words, text)


def test_files_of_many_sizes_and_a_limit_of_256_descriptors():
    with small_host() as host:
        host.sh("mkdir /usr/local/many && cd /usr/local/many && for i in $(seq 600); do head -c $((i * 7)) /dev/urandom >$i; "
                "done; truncate -s 5G huge; printf end >>huge; truncate -s 1M hole; : >empty")
        script = "cd /usr/local/many && sha256sum $(seq 600) hole empty | sha256sum; tail -c 3 huge; stat -c %s huge"
        wanted = host.sh(script)
        done = subprocess.run(["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", *host.command("run", "--root", "host", "--", "sh",
                                                                                             "-c", script)],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=400, check=False,
                              env={"HOME": "/root", "PATH": PATH})
        expect_equal(done.stdout, wanted, f"{done.stderr[-300:]}")


if __name__ == "__main__":
    harness.main(globals())
