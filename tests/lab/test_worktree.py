# SPDX-License-Identifier: Apache-2.0
"""A share as the work tree that programs expect: git under its rules, databases, archives, many writers at once."""

import hashlib
import os
import pathlib
import subprocess
import threading
import time
import zlib

import harness
from harness import directory, expect, expect_equal, expect_in

LOOP_SECONDS = int(os.environ.get("MVAGENT_LOOP_SECONDS") or "25")

IDENTITY = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]


def git(place, *arguments):
    return subprocess.run(["git", *IDENTITY, *arguments], cwd=place, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout.decode()


def repository(place):
    git(place, "init", "-q")
    (place / "a").write_text("one\n")
    (place / "src").mkdir()
    (place / "src" / "b").write_text("two\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")


def guest(place, script, *options):
    return harness.run("--share", str(place), *options, "--env", "GIT_AUTHOR_NAME=G", "--env", "GIT_AUTHOR_EMAIL=g@example.com",
                       "--env", "GIT_COMMITTER_NAME=G", "--env", "GIT_COMMITTER_EMAIL=g@example.com", "--", "sh", "-c", script, limit=400)


def test_ordinary_git_works():
    """Everything that does not write the repository's configuration, for the agent, without a word of ours."""
    with directory() as place:
        repository(place)
        script = r"""
set -e
echo three >> a; git commit -qam second
git checkout -qb topic; echo x > src/c; git add src/c; git commit -qm topic
git checkout -q main; echo four >> a; git commit -qam third
git merge -q --no-edit topic
git checkout -q topic; git rebase -q main; git checkout -q main
echo dirty >> src/b; git stash -q; git stash pop -q; git checkout -q src/b
git tag v1; git branch -d topic -q
git worktree add -q wt -b other; (cd wt; echo w > w; git add w; git commit -qm w); git worktree remove wt
git clone -q . clone; (cd clone; git config user.name z; echo n > n; git add n; git commit -qm n)
git fetch -q ./clone main; git gc -q; git fsck --full --strict --no-dangling
rm -rf clone
git status --porcelain
"""
        result = guest(place, script)
        expect_equal((result.status, result.out), (0, ""), f"git in the guest: {result.err}")
        expect("refused" not in result.err, f"a refusal: {result.err}")
        expect_equal(git(place, "fsck", "--full", "--no-dangling"), "", "fsck on the host")
        expect_equal(git(place, "status", "--porcelain"), "", "status on the host")


def test_git_layouts():
    """A clone, a linked worktree with its repository in another share, a submodule, worktrees beside a bare repository."""
    with directory() as place:
        origin, bare = place / "origin", place / "bare"
        for top in (origin, bare):
            top.mkdir()
        repository(origin)
        git(place, "clone", "-q", "origin", "clone")
        git(place / "clone", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin), "sub")
        git(place / "clone", "commit", "-qm", "sub")
        git(place / "clone", "worktree", "add", "-q", "-b", "linked", str(place / "linked"))
        git(bare, "clone", "-q", "--bare", str(origin), ".bare")
        (bare / ".git").write_text("gitdir: ./.bare\n")
        git(bare, "worktree", "add", "-q", "-b", "tree", "tree")
        commit = "echo guest >>a && git add a && git commit -qm guest && git status --porcelain"
        for share, where in ((["clone"], "clone"), (["clone"], "clone/sub"), (["linked", "clone"], "linked"), (["bare"], "bare/tree")):
            options = [word for name in share for word in ("--share", str(place / name))]
            result = guest(place / share[0], f"cd {place / where} && {commit}", *options[2:])
            expect_equal((result.status, result.out), (0, ""), f"a commit in {where}: {result.err}")
            expect("refused" not in result.err, f"a refusal in {where}: {result.err}")
            expect_equal(git(place / where, "log", "-1", "--format=%an %s"), "G guest\n", where)
            expect_equal(git(place / where, "fsck", "--full", "--no-dangling"), "", where)
        refused = guest(bare, "cd tree; git config core.fsmonitor x && exit 1; echo x >../.bare/hooks/post-checkout && exit 2; exit 0")
        expect_equal(refused.status, 0, "what a repository beside its worktrees lets change")


def test_what_git_may_not_do():
    """Hooks and configuration: the error is git's, the reason and the way out are on mvagent's standard error."""
    with directory() as place:
        repository(place)
        script = r"""
git config core.fsmonitor ./evil && exit 1
git remote add origin x && exit 2
echo evil > .git/hooks/pre-commit && exit 3
mv .git g && exit 4
mkdir -p .vscode && exit 5
rm -rf .git/hooks 2>/dev/null && exit 6
mkdir fake && echo evil > fake/config && mv fake .git/modules 2>/dev/null; mv .git/modules/config .git/config && exit 7
ln .git/config copy && exit 8
exit 0
"""
        before = (place / ".git" / "config").read_bytes()
        hooks = sorted(os.listdir(place / ".git" / "hooks"))
        result = guest(place, script)
        expect_equal(result.status, 0, f"the first that worked: {result.err}")
        expect_in("refused the guest to change .git/config: it is protected by the rule '**/*.git/config' "
                  "(--unprotect '.git/config' allows it)", result.err)
        expect_in("--unprotect '.vscode'", result.err)
        expect_equal((place / ".git" / "config").read_bytes(), before)
        expect_equal(sorted(os.listdir(place / ".git" / "hooks")), hooks)
        result = guest(place, "git config x.y z && git remote add origin ../else", "--unprotect", ".git/config")
        expect_equal((result.status, result.err), (0, ""))
        expect_in("else", git(place, "config", "--list"))


def test_repositories_of_the_guest():
    """Made in the work tree, and in the index of the repository above: git on the host runs nothing of theirs."""
    with directory() as place:
        repository(place)
        (place / "library").mkdir()
        repository(place / "library")
        canary = place.parent / "canary"
        script = rf"""
set -e
git init -q own; cd own; git config user.name n; git remote add origin ../library; git fetch -q; git checkout -q -b x origin/main
! git config core.fsmonitor 'touch {canary}'
! sh -c "printf '[core]\n\tfsmonitor = touch {canary}\n' >> .git/config"
! sh -c 'echo evil > .git/hooks/post-index-change'
cp -r . ../copy; cp -r .git/. ../copy.git; tar c . | (mkdir ../tar; cd ../tar; tar x); cd ..
for i in own copy tar; do git -C $i status --porcelain; git -C $i fsck --no-dangling; done
git add own copy 2>/dev/null; git commit -qm submodules
git -c protocol.file.allow=always submodule add -q ./library sub; git commit -qm sub; git submodule status sub
git -C sub log --oneline; ! git -C sub config core.fsmonitor 'touch {canary}'
git worktree add -q wt; git -C wt log --oneline | wc -l; git worktree list | wc -l
git worktree move wt moved; git worktree remove moved
"""
        result = guest(place, script)
        expect_equal(result.status, 0, f"git in the guest: {result.err}")
        expect_in("git on the host would obey its setting 'core.fsmonitor' (--unprotect 'own/.git/config' allows it)",
                  result.err)
        expect_in("the guest has made a git repository, own/.git", result.err)
        expect_in("--unprotect '.git/modules/sub/config' allows it", result.err)
        for name in ("own", "sub"):
            expect_equal(git(place, "ls-files", "--stage", name)[:6], "160000")
        git(place, "status")
        git(place / "own", "status")
        git(place / "sub", "status")
        expect(not canary.exists(), "git on the host ran what the guest wrote")


def test_hidden_files():
    with directory() as place:
        repository(place)
        (place / ".env").write_text("TOKEN=1\n")
        git(place, "add", "-f", ".env")
        git(place, "commit", "-qm", "env")
        (place / "src" / ".ssh").mkdir()
        (place / "src" / ".ssh" / "key").write_text("key\n")
        os.link(place / "src" / ".ssh" / "key", place / "copied")
        (place / "secret.pem").write_text("pem\n")
        result = guest(place, "ls -a . src; cat .env; cat copied; cat src/.ssh/key; echo x > .env; echo x > .ENV; git status --short",
                       "--hide", "*.pem")
        for word in ("TOKEN", "key\n", "pem", ".ssh", "copied"):
            expect(word not in result.out, f"'{word}' was seen: {result.out}")
        expect_in(" D .env", result.out)
        expect_in("3 names in the share are hidden from the guest", result.err)
        expect_in("git tracks what is hidden", result.err)
        expect_equal((place / ".env").read_text(), "TOKEN=1\n")
        expect(not (place / ".ENV").exists(), ".ENV was made")
        result = guest(place, "cat .env", "--show", ".env")
        expect_equal((result.status, result.out), (0, "TOKEN=1\n"))


def test_hard_links_out_of_the_tree():
    with directory() as place:
        tree, store = place / "tree", place / "store"
        tree.mkdir()
        store.mkdir()
        for name in ("data", "mode", "both"):
            (store / name).write_text("original\n")
            os.link(store / name, tree / name)
        os.link(tree / "both", tree / "both2")
        result = harness.run_ok("--share", str(tree), "--", "sh", "-c",
                                "echo more >> data; chmod 600 mode; echo 1 > both; cat both2; ln data mine; echo again >> mine; cat data")
        expect_equal(result.out, "original\noriginal\nmore\nagain\n")
        for name in ("data", "mode", "both"):
            expect_equal((store / name).read_text(), "original\n", f"{name} outside")
            expect_equal((store / name).stat().st_mode & 0o777, 0o644, f"mode of {name} outside")
        expect_equal((tree / "data").stat().st_ino, (tree / "mine").stat().st_ino, "a link of the guest")


def test_add_and_restore_with_host_status():
    """The loop that corrupts indexes elsewhere, with a git on the host looking on."""
    with directory() as place:
        repository(place)
        for number in range(40):
            (place / f"f{number}").write_text(f"{number}\n" * 50)
        git(place, "add", ".")
        git(place, "commit", "-qm", "many")
        stop = threading.Event()
        seen = []

        def look():
            while not stop.is_set():
                seen.append(subprocess.run(["git", "--no-optional-locks", "status", "--porcelain"], cwd=place,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False))
                time.sleep(0.1)

        thread = threading.Thread(target=look)
        thread.start()
        script = f"end=$(($(date +%s) + {LOOP_SECONDS})); n=0" r"""
while [ $(date +%s) -lt $end ]; do
  for i in 1 2 3 4 5; do echo $n >> f$i; done
  git add . || exit 1
  git restore --staged . || exit 2
  git restore . || exit 3
  git status --porcelain | grep . && exit 4
  n=$((n+1))
done
echo $n; git fsck --full --strict --no-dangling
"""
        try:
            result = guest(place, script)
        finally:
            stop.set()
            thread.join()
        expect_equal(result.status, 0, f"the loop: {result.out} {result.err}")
        rounds = int(result.out.split()[0])
        print(f"     {rounds} rounds, {len(seen)} looks from the host")
        expect(rounds >= 3 and len(seen) >= 3, "too few rounds to say anything")
        faults = [look.stderr.decode() for look in seen if look.returncode]
        expect_equal(faults, [], "git on the host")
        expect_equal(git(place, "fsck", "--full", "--strict", "--no-dangling"), "", "fsck on the host")


SQLITE = r"""
import multiprocessing, sqlite3, sys
def work(which):
    base = sqlite3.connect("data.db", timeout=60)
    for number in range(60):
        with base:
            base.execute("insert into t values (?, ?)", (which, number))
    base.close()
base = sqlite3.connect("data.db")
assert base.execute("pragma journal_mode=wal").fetchone() == ("wal",)
base.execute("create table t (a, b)")
base.commit()
processes = [multiprocessing.Process(target=work, args=(which,)) for which in range(2)]
for process in processes: process.start()
for process in processes: process.join()
assert all(process.exitcode == 0 for process in processes)
assert base.execute("select count(*), count(distinct a * 1000 + b) from t").fetchone() == (120, 120)
assert base.execute("pragma integrity_check").fetchone() == ("ok",)
print("ok")
"""


def test_sqlite_wal_two_processes():
    with directory() as place:
        result = harness.run_ok("--share", str(place), "--", "python3", "-c", SQLITE)
        expect_equal(result.out, "ok\n")
        script = "import sqlite3\nb=sqlite3.connect('data.db')\nprint(b.execute('pragma integrity_check').fetchone()[0], b.execute('select count(*) from t').fetchone()[0])"
        seen = subprocess.run(["python3", "-c", script], cwd=place, stdout=subprocess.PIPE, check=True)
        expect_equal(seen.stdout, b"ok 120\n", "the database on the host")


def listing(place):
    """Every path below with type, mode, size, time in ns and contents."""
    found = {}
    for path in sorted(place.rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        found[str(path.relative_to(place))] = (status.st_mode, status.st_size if path.is_file() else 0,
                                               status.st_mtime_ns if not path.is_symlink() else 0, content)
    return found


def test_tar_round_trip():
    """Modes, times to the nanosecond, links and sparse files survive packing and unpacking in the guest."""
    with directory() as place:
        source = place / "source"
        source.mkdir()
        for number, mode in enumerate((0o644, 0o600, 0o755, 0o444, 0o640)):
            path = source / f"file {number}"
            path.write_bytes(os.urandom(number * 5000))
            path.chmod(mode)
            os.utime(path, ns=(10**18 + number, 10**18 + 123456789 * (number + 1)))
        (source / "d").mkdir(mode=0o750)
        (source / "d" / "link").symlink_to("../file 1")
        os.link(source / "file 2", source / "d" / "hard")
        with open(source / "sparse", "wb") as file:
            file.seek(10 << 20)
            file.write(b"end")
        os.utime(source / "d", ns=(10**18, 10**18 + 5))
        os.utime(source, ns=(10**18, 10**18 + 7))
        harness.run_ok("--share", str(place), "--", "sh", "-c",
                       "tar --format=posix -S -cf t.tar source && mkdir out && tar -xpf t.tar -C out && rm t.tar && chmod 755 out")
        expect_equal(listing(place / "out" / "source"), listing(source), "what was unpacked")
        hard = (place / "out" / "source" / "d" / "hard").stat()
        expect_equal(hard.st_ino, (place / "out" / "source" / "file 2").stat().st_ino, "the hard link")
        expect((place / "out" / "source" / "sparse").stat().st_blocks < 1000, "the hole was filled")


def test_eight_writers_rename_over():
    """Files that are written aside and renamed over are never seen empty or mixed, in the guest and on the host."""
    script = r"""
import os, sys, multiprocessing
def work(which):
    for number in range(60):
        name = f"t{which}"
        with open(name, "w") as file: file.write(f"{which} {number}\n" * 200)
        os.rename(name, f"target{which % 3}")
processes = [multiprocessing.Process(target=work, args=(which,)) for which in range(8)]
for process in processes: process.start()
for process in processes: process.join()
assert all(process.exitcode == 0 for process in processes)
"""
    with directory() as place:
        stop = threading.Event()
        bad, looks = [], [0]

        def look():
            while not stop.is_set():
                for path in place.glob("target*"):
                    text = path.read_text()
                    looks[0] += 1
                    if len(text.splitlines()) != 200 or len(set(text.splitlines())) != 1:
                        bad.append((path.name, len(text)))
                time.sleep(0.005)

        thread = threading.Thread(target=look)
        thread.start()
        try:
            harness.run_ok("--share", str(place), "--", "python3", "-c", script)
        finally:
            stop.set()
            thread.join()
        expect_equal(bad, [], "files seen broken on the host")
        expect(looks[0] > 20, f"only {looks[0]} looks")


def test_hard_link_build():
    """As cargo does: outputs are linked into place, replaced, and rebuilt; each link is one file with its other."""
    script = r"""
set -e
mkdir -p target/deps
for round in 1 2 3; do
  for i in $(seq 40); do
    echo "$round $i" > target/deps/lib$i-hash.tmp; mv target/deps/lib$i-hash.tmp target/deps/lib$i-hash
    ln -f target/deps/lib$i-hash target/lib$i
  done
done
for i in $(seq 40); do
  [ target/lib$i -ef target/deps/lib$i-hash ]; [ "$(cat target/lib$i)" = "3 $i" ]; [ $(stat -c %h target/lib$i) = 2 ]
done
echo x >> target/lib7; tail -n 1 target/deps/lib7-hash
"""
    with directory() as place:
        result = harness.run_ok("--share", str(place), "--", "sh", "-c", script, limit=400)
        expect_equal(result.out, "x\n")
        for number in range(1, 41):
            one, other = (place / "target" / f"lib{number}").stat(), (place / "target" / "deps" / f"lib{number}-hash").stat()
            expect_equal(one.st_ino, other.st_ino, f"link {number}")


SPARSE = r"""
import hashlib, os, random, subprocess, sys
choice = random.Random(7)
for number in range(1, 41, 3):
    size, name = choice.choice((5, 4096, 40000, 131071, 131073)), f"file{number}"
    for _ in range(number):
        with open(name, "r+b" if os.path.exists(name) else "wb") as file:
            file.seek(choice.randrange(size))
            file.write(choice.randbytes(choice.randrange(1, size)))
    copies = [subprocess.run(command, check=True) and f"copy.{place}.{number}" for place, command in enumerate((
        ["cp", "--sparse=auto", name, f"copy.0.{number}"], ["cp", "--sparse=always", name, f"copy.1.{number}"],
        ["cp", "--reflink=auto", "-p", name, f"copy.2.{number}"], ["dd", "bs=7777", "status=none", f"if={name}", f"of=copy.3.{number}"]))]
    sums = {hashlib.sha256(open(path, "rb").read()).hexdigest() for path in (name, *copies)}
    assert len(sums) == 1, (number, size, sums)
    data = open(name, "rb").read()
    # A hole there may be, where a write went past the end, but never in place of data.
    status = os.stat(name)
    with open(name, "rb") as file:
        at = 0
        while at < status.st_size:
            try: begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError: begin = status.st_size
            assert not any(data[at:begin]), (number, at, begin)
            at = os.lseek(file.fileno(), begin, os.SEEK_HOLE) if begin < status.st_size else begin
    assert status.st_blocks > 0
print("ok")
"""


def test_copies_of_rewritten_files():
    """Files that were written in place once to 40 times: what `cp` takes for holes are holes, and every copy is whole."""
    with directory() as place:
        result = harness.run_ok("--share", str(place), "--", "python3", "-c", SPARSE, limit=300)
        expect_equal(result.out, "ok\n")
        for number in range(1, 41, 3):
            sums = {hashlib.sha256((place / name).read_bytes()).hexdigest()
                    for name in (f"file{number}", *(f"copy.{which}.{number}" for which in range(4)))}
            expect_equal(len(sums), 1, f"copies of file{number} on the host")


def test_reads_of_every_size():
    """Around the sizes at which requests are split: one read(2) has it all, and it is what the host has."""
    sizes = [base + more for base in (128 << 10, 1 << 20, 16 << 20) for more in (-4097, -1, 0, 1, 4096)]
    script = "import os, sys, zlib\nfor n in sys.argv[1:]:\n f = os.open(n, os.O_RDONLY)\n data = os.read(f, 20 << 20)\n" \
             " print(len(data), zlib.crc32(data))"
    with directory() as place:
        wanted = []
        for size in sizes:
            data = os.urandom(size)
            (place / f"f{size}").write_bytes(data)
            wanted.append(f"{size} {zlib.crc32(data)}")
        for cache in ("shared", "none"):
            result = harness.run_ok("--cache", cache, "--memory", "512M", "--share", str(place), "--", "python3", "-c", script,
                                    *(f"f{size}" for size in sizes))
            expect_equal(result.out.splitlines(), wanted, f"with --cache {cache}")


def test_directories_opened_and_closed_without_end():
    """By eight processes at once, some of them through descriptors that others have inherited."""
    script = r"""
import os
for number in range(20): os.makedirs(f"d{number}/e", exist_ok=True)
kept = [os.open(f"d{number}", os.O_RDONLY | os.O_DIRECTORY) for number in range(20)]
children = []
for which in range(8):
    child = os.fork()
    if child == 0:
        for number in range(400):
            assert os.listdir(f"d{number % 20}") == ["e"]
            fd = os.open(f"d{(number + which) % 20}/e", os.O_RDONLY | os.O_DIRECTORY)
            again = os.dup(fd)
            os.close(fd)
            assert os.listdir(again) == []
            os.close(again)
            os.lseek(kept[number % 20], 0, os.SEEK_SET)
            os.listdir(kept[number % 20])
        os._exit(0)
    children.append(child)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
print("ok")
"""
    with directory() as place:
        result = harness.run_ok("--share", str(place), "--", "python3", "-c", script, limit=300)
        expect_equal((result.out, result.err), ("ok\n", ""))


def test_many_files_few_descriptors():
    """A tree of 5,000 files with RLIMIT_NOFILE 256 on the host."""
    with directory() as place:
        for number in range(50):
            sub = place / f"d{number}"
            sub.mkdir()
            for inner in range(100):
                (sub / f"f{inner}").touch()
        script = "find . -type f | wc -l; find . -type f -exec cat {} + | wc -c; rm -r d1*; find . -type f | wc -l"
        command = f"ulimit -n 256; exec {harness.MVAGENT} run {harness.ROOT_WORDS} --share {place} -- sh -c '{script}'"
        done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              timeout=400, check=False)
        expect_equal((done.returncode, done.stdout.split()), (0, [b"5000", b"0", b"3900"]), f"{done.stderr[-300:]}")
        expect_equal(len(list(pathlib.Path(place).glob("d1*"))), 0)


if __name__ == "__main__":
    harness.main(globals())
