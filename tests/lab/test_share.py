# SPDX-License-Identifier: Apache-2.0
"""The shared work tree: real work in it, and what the host sees of that work."""

import hashlib
import os
import pathlib
import subprocess

import harness
from harness import Skip, directory, expect, expect_equal, expect_in, run, run_ok

SCRATCH = "/scratch" if os.path.isdir("/scratch") else None


def tree(root):
    """Every name under @root with its type, mode, size, whole-second time and content."""
    found = {}
    for path in sorted(pathlib.Path(root).rglob("*")):
        status = path.lstat()
        content = None
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(root))] = (oct(status.st_mode), int(status.st_mtime), content)
    return found


GUEST_TREE = """
import hashlib, os, pathlib, sys
root = sys.argv[1]
for path in sorted(pathlib.Path(root).rglob('*')):
    s = path.lstat()
    content = None
    if path.is_symlink(): content = os.readlink(path)
    elif path.is_file(): content = hashlib.sha256(path.read_bytes()).hexdigest()
    print(repr((str(path.relative_to(root)), (oct(s.st_mode), int(s.st_mtime), content))))
"""


def guest_tree(place, *options):
    result = run_ok(*options, "--share", place, "--", "python3", "-c", GUEST_TREE, str(place))
    return dict(eval(line) for line in result.out.splitlines())  # our own program's repr


WORK = r"""
set -e
git init -q -b main .
git config user.name Agent; git config user.email agent@example.org
mkdir src
i=0
while [ $i -lt $FILES ]; do
	echo "int f$i(int x) { return x + $i; }" > src/f$i.c
	i=$((i + 1))
done
{
	echo '#include <stdio.h>'
	i=0; while [ $i -lt $FILES ]; do echo "int f$i(int);"; i=$((i + 1)); done
	echo 'int main(void) { long s = 0;'
	i=0; while [ $i -lt $FILES ]; do echo "s += f$i(1);"; i=$((i + 1)); done
	printf '%s\n' 'printf("%ld\n", s); return 0; }'
} > src/main.c
printf 'OBJECTS := $(patsubst %%.c,%%.o,$(wildcard src/*.c))\nprogram: $(OBJECTS)\n\tcc -o $@ $^\n' > Makefile
printf '*.o\nprogram\n' > .gitignore
git add -A
git commit -q -m 'first'
git log --oneline | wc -l
make -s -j2 program
./program
git status --porcelain
mkdir pkg
echo 'def double(x): return 2 * x' > pkg/__init__.py
printf 'import unittest, pkg\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(pkg.double(4), 8)\n' > test_pkg.py
python3 -m unittest -q 2>&1 | tail -n 1
git add -A; git commit -q -m 'second'
git fsck --strict 2>&1
git gc -q
git status --porcelain
umask 027; mkdir d; : > d/private; chmod 751 d; ln -s ../src/main.c d/link; touch -d '2001-02-03 04:05:06' d/private
"""


def real_work(place, files=10):
    """Commits, compiles @files C files, runs them and a Python test, in a guest; compares what both sides see."""
    total = str(sum(1 + number for number in range(files)))
    result = run_ok("--env", f"FILES={files}", "--share", place, "--", "sh", "-c", WORK, limit=600)
    expect_equal(result.out.split(), ["1", total, "OK"], f"what the work printed ({result.err})")
    expect_equal(subprocess.run([place / "program"], capture_output=True, check=True).stdout.decode().strip(), total)
    log = subprocess.run(["git", "-c", f"safe.directory={place}", "-C", place, "log", "--format=%an %s"],
                         capture_output=True, check=True).stdout
    expect_equal(log, b"Agent second\nAgent first\n", "git log on the host")
    subprocess.run(["git", "-c", f"safe.directory={place}", "-C", place, "fsck", "--strict"], check=True,
                   capture_output=True)
    expect_equal(oct((place / "d").stat().st_mode), "0o40751", "mode of a directory")
    expect_equal(oct((place / "d/private").stat().st_mode), "0o100640", "mode of a file")
    expect_equal((place / "src/main.c").stat().st_uid, os.getuid(), "owner on the host")
    expect_equal(guest_tree(place), tree(place), "the guest's view and the host's")


def test_git_compile_and_python_on_tmpfs():
    with directory() as place:
        real_work(place, 40 if os.getuid() == 0 else 10)


def test_git_compile_and_python_on_ext4():
    if not SCRATCH:
        raise Skip("there is no scratch ext4")
    with directory(SCRATCH) as place:
        real_work(place)


def load_module(name):
    """Where a file system is a module that nothing loads by itself."""
    subprocess.run(["modprobe", name], capture_output=True, check=False)


def with_loop_file_system(kind, make, work=None):
    load_module("loop")
    load_module(kind)
    if os.getuid() != 0 or not SCRATCH:
        raise Skip("needs root and a scratch file system")
    with directory(SCRATCH) as place:
        image, mount = place / "image", place / "mount"
        mount.mkdir()
        with open(image, "wb") as file:
            file.truncate(256 << 20)
        for command in (make + [str(image)], ["mount", "-o", "loop", str(image), str(mount)]):
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode:
                raise Skip(f"{kind}: {done.stderr.decode().strip()[-200:]}")
        try:
            (mount / "w").mkdir()
            (work or real_work)(mount / "w")
        finally:
            subprocess.run(["umount", str(mount)], check=False)


def test_btrfs():
    with_loop_file_system("btrfs", ["mkfs.btrfs", "-q"])


def other_cases(place):
    """A directory that ignores case takes names beyond ASCII for hidden and protected ones."""
    done = subprocess.run(["chattr", "+F", place], capture_output=True, check=False)
    if done.returncode:
        raise Skip(f"chattr +F: {done.stderr.decode().strip()[-200:]}")
    (place / ".ssh").mkdir()
    (place / ".ssh/key").write_text("secret")
    (place / ".vscode").mkdir()
    (place / "B\u00fccher").write_text("books")
    names = [".\u00dfh/key", ".\u017f\u017fh/key", ".s\u00adsh/key", ".SSH/key"]
    expect_equal([(place / name).read_text() for name in names], ["secret"] * 4, "the host itself")
    script = "; ".join([f"cat '{name}' 2>/dev/null" for name in names] +
                       ["mkdir -p '.v\u017fcode/x'", "echo evil > '.v\u017fcode/tasks.json'", "echo x > '.en\u00adv'",
                        "cat B\u00fccher b\u00dcCHER", "ls -A"])
    result = run_ok("--share", place, "--", "sh", "-c", script)
    expect_equal(result.out, "booksbooks.vscode\nB\u00fccher\n", result.err)
    expect_equal(sorted(os.listdir(place)), [".ssh", ".vscode", "B\u00fccher"])
    expect_equal(os.listdir(place / ".vscode"), [])


def test_directories_that_ignore_case():
    with_loop_file_system("ext4", ["mkfs.ext4", "-q", "-O", "casefold"], other_cases)


def test_overlayfs():
    if os.getuid() != 0:
        raise Skip("needs root to mount an overlay")
    load_module("overlay")
    with directory(SCRATCH) as place:
        for name in ("lower", "upper", "work", "merged"):
            (place / name).mkdir()
        (place / "lower/old").write_text("old")
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                        f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work", place / "merged"],
                       check=True)
        try:
            result = run_ok("--share", place / "merged", "--", "sh", "-c", "cat old; echo new > old; echo x > made; cat old")
            expect_equal(result.out, "oldnew\n")
            expect_equal((place / "merged/old").read_text(), "new\n")
            expect_equal((place / "lower/old").read_text(), "old")
        finally:
            subprocess.run(["umount", place / "merged"], check=False)


def test_git_on_a_file_system_that_goes_by_paths():
    """9p: a descriptor dies with the name it was opened by, and git unlinks that name after it made a link."""
    place = os.environ.get("MVAGENT_9P")
    if not place:
        raise Skip("only the lab has a 9p directory to write to")
    with directory(place) as tree_root:
        result = run_ok("--share", tree_root, "--", "sh", "-c",
                        "git init -q . && git config user.name a && git config user.email a@b && echo 1 > f && git add f "
                        "&& git commit -qm one && echo 2 >> f && git commit -qam two && git fsck --strict && git log --format=%s")
        expect_equal(result.out, "two\none\n", f"git log ({result.err})")


def test_read_only_is_enforced_by_the_host():
    with directory() as place:
        (place / "file").write_text("content")
        before = tree(place)
        script = ("cat file; mount -o remount,rw . 2>&1; echo x > new; echo x >> file; rm file; mkdir d; chmod 0 file;"
                  "ln file l; mv file g; touch file; truncate -s 0 file; setfattr -n user.a -v b file; exit 0")
        result = run_ok("--user", "root", "--share", f"{place}:ro", "--", "sh", "-c", script)
        expect(result.out.startswith("content"), "the file could not be read")
        expect_in("Read-only file system", result.err)
        expect_equal(tree(place), before, "the tree on the host")


def test_paths_of_every_kind():
    with directory() as place:
        names = ["with space", "quote'\"", "new\nline", "ünï-çödé-日本", "-dash", "$(x)`y`", "back\\slash", "tab\t"]
        for name in names:
            (place / name).mkdir()
            (place / name / "file").write_text(name)
        result = run_ok("--share", place, "--", "sh", "-c", 'for d in *; do cat "./$d/file"; echo; done | sort')
        expect_equal(sorted(result.out.split("\n")), sorted("\n".join(names + [""]).split("\n")), "names")
        for name in names[:4]:
            result = run_ok("--share", place / name, "--", "cat", "file")
            expect_equal(result.out, name, "a share of that name")


def test_long_paths():
    with directory() as place:
        deep = place
        while len(os.fsencode(deep)) < 3800:
            deep = deep / ("d" * 200)
        deep.mkdir(parents=True)
        (deep / "file").write_text("deep")
        expect_equal(run_ok("--share", deep, "--", "cat", "file").out, "deep")
        expect_equal(run_ok("--share", place, "--", "sh", "-c", f"cd {'d' * 200} && pwd | wc -c").status, 0)


def test_work_tree_behind_a_symlink():
    with directory() as place:
        (place / "real").mkdir()
        (place / "real/file").write_text("x")
        (place / "link").symlink_to("real")
        expect_equal(run_ok("--share", place / "link", "--", "cat", "file").out, "x")


def test_share_below_what_is_roots():
    """The agent reaches it by its path, though the image keeps what is above it for root; that itself stays as it was."""
    with directory() as place:
        (place / "file").write_text("here\n")
        script = "cat /root/src/repo/file && cd /root/src/repo && pwd && id -u && ls /root; stat -c %a /root"
        result = run_ok("--share", place, "--at", "/root/src/repo", "--", "sh", "-c", script)
        lines = result.out.splitlines()
        expect_equal((lines[:2], lines[3:]), (["here", "/root/src/repo"], ["711"]), f"as user {lines[2]}: {result.err}")
        expect(lines[2] != "0" and "Permission denied" in result.err, f"/root is open to the agent: {result.err}")


def test_unreadable_work_tree():
    if os.getuid() == 0:
        raise Skip("root can read everything")
    with directory() as place:
        (place / "locked").mkdir(mode=0)
        result = run("--share", place / "locked", "--", "true")
        expect_equal(result.status, 125)
        expect_in("Permission denied", result.err)


def test_root_shares_what_is_a_users():
    """As `sudo mvagent run` does, and a CI job that is root: the agent works as the owner would, and not as root."""
    if os.getuid():
        raise Skip("only root can")
    with directory() as place:
        (place / "roots").write_text("root's own\n")
        (place / "roots").chmod(0o600)
        subprocess.run(["git", "init", "-q", str(place)], check=True)
        for path in (place, *place.rglob("*")):
            if path.name != "roots":
                os.chown(path, 1000, 1000)
        script = "echo made >new && mkdir d && git status --porcelain && test \"$(stat -c %u .)\" = \"$(id -u)\" && ! cat roots"
        result = run_ok("--share", place, "--", "sh", "-c", script)
        expect_in("?? new", result.out)
        for name in ("new", "d"):
            expect_equal((place / name).stat().st_uid, 1000, name)
        expect_in("roots: Permission denied", result.err, "what is root's stays root's")


def test_git_as_root_of_the_guest():
    """The share's files belong to whoever runs the command: git asks for no safe.directory, chown to oneself works."""
    with directory() as place:
        subprocess.run(["git", "init", "-q", str(place)], check=True)
        script = "touch f; git status --porcelain; stat -c '%u %g' f; chown 0:0 f"
        expect_equal(run_ok("--user", "root", "--share", place, "--", "sh", "-c", script).out, "?? f\n0 0\n")
        script = "git status --porcelain; [ $(stat -c %u f) = $(id -u) ] && echo mine"
        expect_equal(run_ok("--share", place, "--", "sh", "-c", script).out, "?? f\nmine\n")


def test_several_shares_and_nesting():
    with directory() as place:
        for name in ("a", "a/inner", "b"):
            (place / name).mkdir()
        (place / "b/file").write_text("b")
        result = run_ok("--share", place / "b", "--at", f"{place}/a/inner", "--share", place / "a", "--share",
                        f"{place}/b:ro", "--", "sh", "-c", f"cat {place}/a/inner/file; echo y > {place}/a/inner/new; "
                        f"echo z > {place}/b/no 2>/dev/null || echo refused; cat {place}/b/new")
        expect_equal(result.out, "brefused\ny\n")
        expect_equal((place / "b/new").read_text(), "y\n")


def test_host_edits_are_seen():
    """A change on the host is visible in the guest within two seconds, content and size together."""
    with directory() as place:
        (place / "file").write_text("old")
        script = "cat file; echo; echo ready > flag; for i in $(seq 200); do [ \"$(cat file)\" = 'much newer' ] && echo seen && exit 0; sleep 0.05; done; exit 1"
        process = harness.start("--share", str(place), "--", "sh", "-c", script)
        harness.wait_until((place / "flag").exists, "the guest to be ready", harness.LIMIT)
        (place / "file").write_text("much newer")
        output, _ = process.communicate(timeout=harness.LIMIT)
        expect_equal((process.returncode, output), (0, b"old\nseen\n"))


def test_nothing_escapes_the_share():
    with directory() as place:
        (place / "secret").write_text("secret")
        (place / "w").mkdir()
        (place / "w/up").symlink_to("../secret")
        (place / "w/absolute").symlink_to(place / "secret")
        result = run_ok("--user", "root", "--share", place / "w", "--", "sh", "-c",
                        "cat up absolute ../secret 2>&1 | grep -c 'No such file'; ln -s /etc/shadow s; cat s >/dev/null 2>&1; "
                        "readlink up; echo planted > ../planted; mknod c c 1 3 2>&1; true")
        expect_equal(result.out.split("\n")[:2], ["3", "../secret"])
        expect_equal(sorted(os.listdir(place)), ["secret", "w"], "names beside the share")
        expect(not (place / "w/c").exists(), "a device node was made on the host")


def test_set_id_bits_do_not_reach_the_host():
    with directory() as place:
        run_ok("--user", "root", "--share", place, "--", "sh", "-c", "cp /bin/sh s; chmod 6755 s; mkdir d; chmod 2775 d; true")
        expect_equal((place / "s").stat().st_mode & 0o6000, 0, "set-id bits of a file")


if __name__ == "__main__":
    harness.main(globals())
