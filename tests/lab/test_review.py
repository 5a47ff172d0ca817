# SPDX-License-Identifier: Apache-2.0
"""Review of what a real guest changed: the host's tree stays as it is until the user takes the changes."""

import contextlib
import os
import pathlib
import re
import subprocess

from harness import directory, expect, expect_equal, expect_in, mvagent, start
import test_posix
from test_share import SCRATCH, tree


@contextlib.contextmanager
def places():
    """A work tree and an environment whose state directory is beside it."""
    with directory(SCRATCH) as place:
        work = place / "work"
        work.mkdir()
        yield work, dict(os.environ, XDG_STATE_HOME=str(place / "state"))


def git(work, *arguments):
    done = subprocess.run(["git", "-c", "safe.directory=*", "-c", "user.name=Host", "-c", "user.email=h@example.org",
                           "-C", str(work), *arguments], capture_output=True, check=True)
    return done.stdout.decode()


def make_repository(work):
    git(work, "init", "-q", "-b", "main", ".")
    (work / "src").mkdir()
    for number in range(20):
        (work / f"src/f{number}.c").write_text(f"int f{number}(void) {{ return {number}; }}\n")
    (work / "README").write_text("one\ntwo\nthree\n")
    (work / "run.sh").write_text("echo hello\n")
    (work / "old").mkdir()
    (work / "old/thing").write_text("thing\n")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "first")


def review(work, env, *command, status=0):
    """Runs a command with the tree under review; returns the run's name, or None when nothing changed."""
    result = mvagent("run", "--share", f"{work}:review", "--", *command, env=env, limit=300)
    expect_equal(result.status, status, f"exit status ({result.err})")
    found = re.search(r"mvagent apply (\S+)'", result.err)
    return result, found.group(1) if found else None


CHANGES = r"""
set -e
printf 'one\n2\nthree\n' > README
rm src/f3.c
mv src/f4.c src/four.c
mv old new
chmod 755 run.sh
echo fresh > fresh
mkdir -p deep/er && echo x > deep/er/x
ln -s README link
git config user.name Agent
git config user.email agent@example.org
git add -A
git commit -q -m second
git status --porcelain
git log --format=%s
git fsck --strict 2>&1
"""


def test_agent_commits_and_user_applies():
    with places() as (work, env):
        make_repository(work)
        before = tree(work)
        result, run = review(work, env, "sh", "-c", CHANGES)
        expect_equal(result.out.split(), ["second", "first"], f"what the work printed ({result.err})")
        expect(run, f"the run is named: {result.err}")
        expect_equal(tree(work), before, "the host's tree")
        diff = mvagent("diff", run, "README", "src", "fresh", "run.sh", "old", "new", "deep", "link", env=env, cwd=work)
        expect_equal(diff.status, 0, diff.err)
        for part in ("-two", "+2", "src/f3.c", "src/four.c", "+fresh", "old mode 100644", "new mode 100755", "new/thing",
                     "deleted file mode", "new file mode 120000"):
            expect_in(part, diff.out, "the diff")
        # The diff is what `git apply` takes.
        with directory(SCRATCH) as copy:
            subprocess.run(["cp", "-a", f"{work}/.", str(copy)], check=True)
            subprocess.run(["git", "-c", "safe.directory=*", "-C", str(copy), "apply", "-"], input=diff.stdout,
                           check=True)
            expect_equal((copy / "README").read_text(), "one\n2\nthree\n")
            expect(not (copy / "src/f3.c").exists(), "f3.c is deleted")
            expect_equal((copy / "new/thing").read_text(), "thing\n")
        # What git's own configuration is stays protected.
        refused = mvagent("apply", run, env=env, cwd=work)
        expect_equal(refused.status, 1, f"status of apply ({refused.err})")
        expect_in(".git/config", refused.err)
        expect_equal(tree(work), before, "the host's tree after a refused apply")
        done = mvagent("apply", run, "--unprotect", ".git/config", env=env, cwd=work)
        expect_equal(done.status, 0, f"status of apply ({done.err})")
        expect_equal(git(work, "log", "--format=%an %s").split("\n")[:2], ["Agent second", "Host first"])
        expect_equal(git(work, "status", "--porcelain"), "")
        git(work, "fsck", "--strict")
        expect_equal((work / "README").read_text(), "one\n2\nthree\n")
        expect_equal(os.readlink(work / "link"), "README")
        expect(os.access(work / "run.sh", os.X_OK), "run.sh is executable")
        expect(not (work / "old").exists() and (work / "new/thing").exists(), "old/ was renamed")


def test_nothing_changed_leaves_nothing():
    with places() as (work, env):
        make_repository(work)
        before = tree(work)
        result, run = review(work, env, "sh", "-c", "git status --porcelain; ls -R >/dev/null; cat README; exit 3",
                             status=3)
        expect_equal(result.out, "one\ntwo\nthree\n")
        if run:  # git status may have written its index
            diff = mvagent("diff", run, "--stat", env=env, cwd=work)
            expect_in(".git/index", diff.out)
        expect_equal(tree(work), before, "the host's tree")
        _, run = review(work, env, "true")
        expect_equal(run, None, "a run that changed nothing")
        runs = pathlib.Path(env["XDG_STATE_HOME"]) / "mvagent/runs"
        expect(len(list(runs.iterdir())) <= 1, "its directory is gone")


def test_conflicts_are_named():
    with places() as (work, env):
        make_repository(work)
        _, run = review(work, env, "sh", "-c", "echo guest >> README; echo guest > fresh; rm run.sh")
        (work / "README").write_text("host\n")
        (work / "fresh").write_text("host\n")
        refused = mvagent("apply", run, env=env, cwd=work)
        expect_equal(refused.status, 1, refused.err)
        expect_in("'README' was changed on the host", refused.err)
        expect_in("'fresh' was made on the host", refused.err)
        expect_equal((work / "README").read_text(), "host\n")
        expect((work / "run.sh").exists(), "nothing was applied")
        done = mvagent("apply", run, "run.sh", env=env, cwd=work)
        expect_equal(done.status, 0, done.err)
        expect(not (work / "run.sh").exists(), "the named path was applied")
        expect_equal(mvagent("discard", run, env=env, cwd=work).status, 0)
        expect_equal((work / "README").read_text(), "host\n")
        listed = mvagent("runs", env=env)
        expect_equal(listed.status, 0, listed.err)


GUEST_WAITS = r"""
echo mine > touched
echo ready
while [ ! -e go ]; do sleep 0.1; done
cat untouched touched
ls
"""


def test_host_edits_meanwhile():
    with places() as (work, env):
        make_repository(work)
        (work / "untouched").write_text("before\n")
        (work / "touched").write_text("before\n")
        guest = start("--share", f"{work}:review", "--", "sh", "-c", GUEST_WAITS, env=env)
        try:
            expect_equal(guest.stdout.readline(), b"ready\n")
            (work / "untouched").write_text("after\n")
            (work / "touched").write_text("after\n")
            (work / "go").write_text("")
            out, err = guest.communicate(timeout=120)
        finally:
            guest.kill()
        expect_equal(out.decode().split()[:2], ["after", "mine"], "what the guest saw")
        expect_in("go", out.decode().split())
        run = re.search(r"mvagent apply (\S+)'", err.decode()).group(1)
        refused = mvagent("apply", run, env=env, cwd=work)
        expect_equal(refused.status, 1, refused.err)
        expect_in("'touched' was changed on the host", refused.err)
        expect_equal((work / "touched").read_text(), "after\n")


BUILD = r"""
set -e
python3 - <<'END'
import os
for d in range(40):
    os.makedirs(f"tree/{d}")
    for f in range(25):
        open(f"tree/{d}/{f}", "w").write(str(f) * f)
END
cc -c -o f1.o src/f1.c
tar cf all.tar src tree
rm -rf src
tar xf all.tar src
mv src src2
mv src2 src
rm -rf tree
rm all.tar
find . -path ./.git -prune -o -type f -print | sort | head -n 40
git status --porcelain
"""


def test_a_build_in_a_merged_tree():
    with places() as (work, env):
        make_repository(work)
        before = tree(work)
        result, run = review(work, env, "sh", "-c", BUILD)
        expect_in("?? f1.o", result.out)
        expect_equal(result.out.count("src/f"), 20, f"files of src: {result.out}")
        expect_equal(tree(work), before, "the host's tree")
        diff = mvagent("diff", run, "--stat", env=env, cwd=work)
        expect_in("f1.o", diff.out)
        expect("src/f1.c" not in diff.out, f"files that came back unchanged are no changes: {diff.out}")


def test_the_command_cannot_forge():
    with places() as (work, env):
        make_repository(work)
        script = ("mknod white c 0 0; setfattr -n user.mvagent.opaque -v y src; "
                  "python3 -c 'import os; os.setxattr(\"src\", \"user.mvagent.opaque\", b\"y\")'; ls src | wc -l")
        result = mvagent("run", "--user", "root", "--share", f"{work}:review", "--", "sh", "-c", script, env=env)
        expect_equal(result.out.split(), ["20"], result.err)
        expect_in("Operation not permitted", result.err)
        expect_in("not supported", result.err)


def test_refusals():
    with places() as (work, env):
        env = dict(env, XDG_STATE_HOME=str(work / "state"))
        result = mvagent("run", "--share", f"{work}:review", "--", "true", env=env)
        expect_equal(result.status, 125)
        expect_in("XDG_STATE_HOME", result.err)
        env = dict(env, XDG_STATE_HOME="/proc")
        result = mvagent("run", "--share", f"{work}:review", "--", "true", env=env)
        expect_equal(result.status, 125)


def test_conformance():
    rights = [] if os.geteuid() == 0 else ["--owner-rights"]
    with places() as (work, env):
        program = test_posix.program(work, "conform")
        (work / "large").mkdir()
        for number in range(test_posix.LARGE_COUNT):
            (work / "large" / f"entry{number}").touch()
        before = tree(work)
        result = mvagent("run", "--share", f"{work}:review", "--", program, "--share", *rights, "--backing", "ext4",
                         "--large", work / "large", work, env=env, limit=600)
        test_posix.expect_conforming(result.status, result.out + result.err)
        expect_equal(tree(work), before, "the host's tree")


def test_random_files():
    with places() as (work, env):
        result = mvagent("run", "--share", f"{work}:review", "--", test_posix.program(work, "random_files"),
                         *test_posix.random_arguments(1), work, env=env, limit=test_posix.random_limit())
        test_posix.expect_steps(result, "random_files")


def test_differential_with_tmpfs():
    with places() as (work, env):
        result = mvagent("run", "--share", f"{work}:review", "--", test_posix.program(work, "differential"),
                         *test_posix.random_arguments(2), work, "/tmp", env=env, limit=test_posix.random_limit())
        test_posix.expect_steps(result, "differential")


if __name__ == "__main__":
    import harness

    harness.main(globals())
