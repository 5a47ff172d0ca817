# SPDX-License-Identifier: Apache-2.0
"""What fixed work in a share costs in FUSE requests: a budget, so that a round trip too many is noticed.

Each count is that of a run with the work less that of a run without it; docs/share.md explains the budgets.
"""

import os
import re
import sys

import harness
from harness import directory, expect, run_ok

FILES = 100
PAST = 1_600_000_000  # long ago: git trusts what it noted of such files

NAMES = ("lookup", "getattr", "statx", "readdir", "readdirplus")

REPOSITORY = """
export GIT_AUTHOR_DATE="1600000000 +0000" GIT_COMMITTER_DATE="1600000000 +0000"
git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -q -m all && git status --porcelain
"""

STAT = """
import os
for index in range(%d):
    os.lstat(f"f{index}")
    try:
        os.lstat(f"absent{index}")
        raise SystemExit("an absent name is there")
    except FileNotFoundError:
        pass
""" % FILES

OPEN = """
import os
for index in range(%d):
    with open(f"f{index}", "rb", buffering=0) as file:
        assert file.read() == b"text"
""" % FILES

CREATE = """
import os
for index in range(%d):
    name = f"new{index}"
    fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(fd, b"text")
    os.close(fd)
    os.unlink(name)
""" % FILES


def requests(place, cache, script):
    """{request: count} of a whole run, and its kicks."""
    result = run_ok("-v", "--cpus", "1", "--cache", cache, "--share", place, "--", "sh", "-e", "-c", script)
    found = {name: int(count) for name, count in re.findall(r"^mvagent-fs: requests: (\S+) (\d+)$", result.err, re.M)}
    kicks = re.search(r"^mvagent-fs: kicks (\d+), interrupts \d+$", result.err, re.M)
    expect("init" in found and kicks, f"no counts of requests: {result.err[-300:]}")
    return {**found, "kicks": int(kicks[1])}


def cost(make, cache, setup, work):
    """What @work costs after @setup, each run in a new tree that @make fills."""
    counts = []
    for script in (setup, f"{setup}\n{work}"):
        with directory() as place:
            make(place)
            counts.append(requests(place, cache, script))
    before, after = counts
    return {name: after[name] - before.get(name, 0) for name in after if after[name] > before.get(name, 0)}


def expect_budget(what, spent, budget):
    """@budget: {request, or "all": the most it may cost}."""
    total = sum(count for name, count in spent.items() if name != "kicks")
    print(f"     {what}: {total} requests: {spent}", file=sys.stderr)
    for name, most in budget.items():
        count = total if name == "all" else spent.get(name, 0)
        expect(count <= most, f"{what}: {count} requests ({name}), {most} is the budget: {spent}")


def python(script):
    return f"python3 -c '{script}'"


def make_files(place):
    for index in range(FILES):
        (place / f"f{index}").write_text("text")


def make_work_tree(place):
    for name in ("a", "b", "c", "d"):
        (place / name).mkdir()
        for index in range(50):
            path = place / name / f"f{index}"
            path.write_text(f"{name} {index}\n")
            os.utime(path, (PAST, PAST))


def check_status(cache, budget):
    """The second and third git status of 200 files know every name and attribute already."""
    spent = cost(make_work_tree, cache, REPOSITORY, "git status --porcelain; git status --porcelain")
    expect_budget(f"two git status, --cache {cache}", spent, {**dict.fromkeys(NAMES, 8), **budget})


def check_stat(cache):
    spent = cost(make_files, cache, python(STAT), python(STAT))
    expect_budget(f"200 lstat again, --cache {cache}", spent, {"all": 4})


def check_first_stat(cache):
    """Entries are read ahead: the names are in one directory, and once it is read those that are absent are known."""
    spent = cost(make_files, cache, ":", python(STAT))
    expect_budget(f"200 lstat for the first time, --cache {cache}", spent, {"lookup": 8, "getattr": 4, "all": 20})


def check_first_open(cache):
    # Open, read, release. The last has no kick of its own where the next request comes within 10 ms, not on any machine.
    spent = cost(make_files, cache, ":", python(OPEN))
    expect_budget(f"100 open, fstat, read, close, --cache {cache}", spent,
                  {"lookup": 6, "getattr": 4, "all": 3 * FILES + 20})


def check_open(cache):
    # Twice before: what was read has another time of access, which the next look asks for.
    spent = cost(make_files, cache, f"{python(OPEN)}; {python(OPEN)}", python(OPEN))
    expect_budget(f"100 open, fstat, read, close again, --cache {cache}", spent,
                  {"lookup": 4, "getattr": 4, "all": 2 * FILES + 8})


def check_create(cache, budget):
    spent = cost(make_files, cache, ":", python(CREATE))
    expect_budget(f"100 create, write, close, unlink, --cache {cache}", spent, budget)


def test_warm_status_shared():
    check_status("shared", {"all": 120})


def test_warm_status_exclusive():
    check_status("exclusive", {"all": 120})


def test_first_stat_shared():
    check_first_stat("shared")


def test_first_stat_exclusive():
    check_first_stat("exclusive")


def test_warm_stat_shared():
    check_stat("shared")


def test_warm_stat_exclusive():
    check_stat("exclusive")


def test_first_open_shared():
    check_first_open("shared")


def test_first_open_exclusive():
    check_first_open("exclusive")


def test_open_shared():
    check_open("shared")


def test_open_exclusive():
    check_open("exclusive")


def test_create_shared():
    # Create, write, release, unlink, forget.
    check_create("shared", {"lookup": 4, "all": 5 * FILES + 20})


def test_create_exclusive():
    # The same, and times that the guest keeps are sent at close.
    check_create("exclusive", {"lookup": 4, "all": 6 * FILES + 20})


REMOVE = """
import os
for index in range(20):
    os.unlink(f"f{index}")
"""


def test_remove_reads_nothing_ahead():
    """Look-up and UNLINK of each name, and no listing, while the directory is locked for changes."""
    spent = cost(make_files, "shared", ":", python(REMOVE))
    expect_budget("20 unlink of names never looked at", spent, {"lookup": 20, "opendir": 0, "readdirplus": 0, "all": 64})


TEXT = """
import os
for index in range(%d):
    with open(f"f{index}") as file:
        assert file.read() == "text"
""" % FILES


def test_text_is_no_terminal():
    """Python asks of each file whether it is a terminal: the server, once."""
    spent = cost(make_files, "shared", ":", python(TEXT))
    expect_budget("100 files read as text", spent, {"ioctl": 1, "lookup": 6, "getattr": 4, "all": 3 * FILES + 20})


LIST = """
import os
for index in range(%d):
    os.lstat(f"f{index}")
assert len(os.listdir(".")) == %d
""" % (FILES, FILES)

LIST_TWICE = """
import os
with os.scandir(".") as entries:
    next(entries)
assert len(os.listdir(".")) == %d
""" % FILES


def test_list_what_was_looked_up():
    """Entries that were read ahead are the listing, too."""
    spent = cost(make_files, "shared", ":", python(LIST))
    expect_budget("100 lstat and a listing", spent, {"lookup": 8, "readdirplus": 3, "readdir": 1, "all": 20})


def test_list_again():
    """A listing that was begun by one and read by another, as by rm -r."""
    spent = cost(make_files, "shared", ":", python(LIST_TWICE))
    expect_budget("a listing begun, and one", spent, {"lookup": 4, "readdirplus": 2, "readdir": 2, "all": 14})


BACK = """
import os
for index in range(%d):
    fd = os.open(f"new{index}", os.O_CREAT | os.O_EXCL | os.O_RDWR)
    for size in (4, 8, 12):
        os.write(fd, b"text")
        assert os.lseek(fd, 0, os.SEEK_END) == size
    os.close(fd)
""" % FILES


def test_size_after_write():
    """A writer knows how long its file is: create, three times write, release."""
    spent = cost(make_files, "shared", ":", python(BACK))
    expect_budget("100 files written to and measured", spent, {"getattr": 4, "lookup": 4, "all": 5 * FILES + 20})


OBJECT = """
import os
for index in range(%d):
    os.close(os.open(f"new{index}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o444))
    os.link(f"new{index}", f"object{index}")
""" % FILES


def test_link_of_what_may_not_be_written():
    """As git makes objects: create, release, link, and a look-up of the new name, while the directory is locked."""
    spent = cost(make_files, "shared", ":", python(OBJECT))
    expect_budget("100 objects", spent, {"getattr": 4, "lookup": FILES + 4, "all": 4 * FILES + 20})


MAKE_AGAIN = """
import os
os.mkdir("made")
for index in range(%d):
    os.makedirs("made", exist_ok=True)
""" % FILES


def test_make_what_is_there():
    spent = cost(make_files, "shared", ":", python(MAKE_AGAIN))
    expect_budget("100 mkdir of a directory that is there", spent, {"lookup": 4, "mkdir": 1, "all": 12})


ABSENT = """
import os
os.mkdir("empty")
for index in range(%d):
    assert not os.path.exists(f"empty/absent{index}")
""" % FILES


def test_absent_names_of_an_empty_directory():
    """As compilers look for headers: after eight the directory is listed."""
    spent = cost(make_files, "shared", ":", python(ABSENT))
    expect_budget("100 absent names", spent, {"lookup": 12, "all": 24})


if __name__ == "__main__":
    harness.main(globals())
