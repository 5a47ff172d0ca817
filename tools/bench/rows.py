# SPDX-License-Identifier: Apache-2.0
"""What is measured: trees, and work in them."""

import dataclasses
import io
import os
import shutil
import subprocess
import tarfile
import zipfile

FILES_PER_DIRECTORY = 100  # as in work.c
OWNER = 1000  # of the trees when root measures: mvagent is then run by an ordinary user, as it should be
PAST = 1_600_000_000  # when the files of trees were changed last: never racy for git

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/tmp",
    "LC_ALL": "C",
    "GIT_AUTHOR_NAME": "bench", "GIT_AUTHOR_EMAIL": "bench@example.com",
    "GIT_COMMITTER_NAME": "bench", "GIT_COMMITTER_EMAIL": "bench@example.com",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
}


# Makes the guest read the programs that will be measured from its root image.
WARM_GIT = ("(mkdir /tmp/warm && cd /tmp/warm && git init -q . && echo x >x && git add -A && git commit -q -m x && "
            "git status --porcelain && git -C /tmp/warm status --porcelain && rm -rf /tmp/warm)")
WARM_TAR = "(cd /tmp && echo x >x && tar -cf x.tar x && tar -xf x.tar && sync -f . && rm -rf x.tar x)"
WARM_CC = "(cd /tmp && echo 'int x;' >x.c && make -s x.o && rm -f x.c x.o)"
WARM_PYTHON = "(cd /tmp && echo x=1 >x.py && python3 -m compileall -q x.py && python3 -c 'import zipfile' && rm -rf x.py __pycache__)"
INSTALL = """python3 -c 'import zipfile; zipfile.ZipFile("wheel.zip").extractall("site")' && python3 -m compileall -q site"""


@dataclasses.dataclass
class Row:
    """One piece of work. It is done in the directory "tree" of the share; "$work" is work.c's program."""

    name: str
    what: str  # in words, for the report
    tree: str  # a function make_TREE below and its argument, "TREE COUNT"
    work: str
    operations: int  # file operations of the work, for "requests per operation"
    setup: str = ":"
    changes: bool = False  # the work changes the tree: every run gets a new one
    metadata: bool = True


def rows(scale):
    """All rows; @scale 1 is the full size."""
    def size(count, least=1):
        return max(least, int(count * scale))

    big, middle, small, sources, modules = size(50_000), size(20_000), size(5_000), size(200), size(2_000)
    mib, pieces, writer = size(256, 8), size(16_384), size(32)
    status = "git status --porcelain >/tmp/status"
    return [
        Row("status-cold", f"git status, {big} files, nothing cached in the guest", f"repository {big}", status, big, WARM_GIT),
        Row("status-warm", f"git status again, {big} files", f"repository {big}", status, big, f"{status}; {status}"),
        Row("add-commit", f"git add and commit of {small} files", f"new_repository {small}",
            "git add -A && git commit -q -m all && sync -f .", small, WARM_GIT, changes=True),
        Row("tar-extract", f"tar extract, {middle} files", f"archive {middle}",
            "tar -xf /tmp/files.tar && sync -f .", middle, f"{WARM_TAR} && cp files.tar /tmp/files.tar", changes=True),
        Row("rm-rf", f"rm -rf of {middle} files", f"removable {middle}", "rm -rf files", middle, WARM_TAR, changes=True),
        Row("compile", f"make of {sources} C files", f"program {sources}", "make -s", sources, WARM_CC, changes=True),
        Row("install", f"a wheel of {modules} Python modules unpacked and compiled, as pip does", f"wheel {modules}",
            f"{INSTALL} && sync -f .", modules, WARM_PYTHON, changes=True),
        Row("stat-cold", f"lstat of {middle} files and {middle // 10} absent names, nothing cached in the guest",
            f"files {middle}", f"$work stat {middle} 1", middle + middle // 10),
        Row("stat-warm", f"the same again, 5 times", f"files {middle}",
            f"$work stat {middle} 5", 5 * (middle + middle // 10), f"$work stat {middle} 1"),
        Row("open-read-close", f"open, read and close of {small} small files, nothing cached in the guest",
            f"files {small}", f"$work open {small} 1", small),
        Row("open-read-close-warm", f"the same again", f"files {small}",
            f"$work open {small} 1", small, f"$work open {small} 1"),
        Row("write", f"{mib} MiB written in sequence, 1 MiB each", "empty 0",
            f"$work write data {mib} && sync -f .", mib, changes=True, metadata=False),
        Row("read", f"{mib} MiB read in sequence, 1 MiB each", f"data {mib}",
            f"$work read data {mib}", mib, metadata=False),
        Row("random-write", f"{pieces} times 4 KiB written at random in {mib} MiB", f"data {mib}",
            f"$work random-write data {mib} {pieces} && sync -f .", pieces, changes=True, metadata=False),
        Row("random-read", f"{pieces} times 4 KiB read at random in {mib} MiB", f"data {mib}",
            f"$work random-read data {mib} {pieces}", pieces, metadata=False),
        Row("writers", f"8 writers at once, {writer} MiB each, 64 KiB each", "empty 0",
            f"$work writers 8 {writer} && sync -f .", 8 * writer * 16, changes=True, metadata=False),
    ]


def script(row, with_work=True):
    """What the guest's shell runs, in the share. At its first and last mark it rests, so that it can be looked at."""
    lines = [f"export {name}='{value}'" for name, value in ENVIRONMENT.items()]
    lines += ["work=/tmp/bench-work", "cp work $work", "cd tree", row.setup, "$work mark before", "echo MARK begin"]
    if with_work:
        lines.append(f"{{ {row.work}; }} || echo FAILED")
    lines += ["echo MARK end", "$work mark after", "exit 0"]
    return "\n".join(lines) + "\n"


def make_empty(place, _count):
    place.mkdir()


def contents(index):
    """A few hundred bytes to a few thousand, as source files are."""
    return b"".join(b"line %d of file %d\n" % (line, index) for line in range(10 + index * 7 % 90))


def make_files(place, count):
    for index in range(count):
        directory = place / f"d{index // FILES_PER_DIRECTORY:03}"
        if index % FILES_PER_DIRECTORY == 0:
            directory.mkdir(parents=True)
        path = directory / f"f{index:05}"
        path.write_bytes(contents(index))
        os.utime(path, (PAST, PAST))


def git(place, *arguments):
    subprocess.run(["git", *arguments], cwd=place, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)


def make_new_repository(place, count):
    make_files(place, count)
    git(place, "init", "-q", ".")


def make_repository(place, count):
    make_new_repository(place, count)
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "all")


def make_removable(place, count):
    place.mkdir()
    make_files(place / "files", count)


def make_archive(place, count):
    place.mkdir()
    with tarfile.open(place / "files.tar", "w") as archive:
        for index in range(count):
            data = contents(index)
            member = tarfile.TarInfo(f"d{index // FILES_PER_DIRECTORY:03}/f{index:05}")
            member.size, member.mtime = len(data), PAST
            archive.addfile(member, io.BytesIO(data))


def make_wheel(place, count):
    place.mkdir()
    with zipfile.ZipFile(place / "wheel.zip", "w", zipfile.ZIP_DEFLATED) as wheel:
        for index in range(count):
            body = "".join(f"def work_{line}(value):\n    return value + {index}\n\n" for line in range(4))
            wheel.writestr(f"package{index // 20:03}/module{index:05}.py", body)


def make_program(place, count):
    """C files that include some of forty headers, found in the second of two directories."""
    for name in ("first", "second"):
        (place / name).mkdir(parents=True)
    for index in range(40):
        (place / "second" / f"h{index}.h").write_text(f"#pragma once\nint from_header_{index}(int value);\n")
    names = []
    for index in range(count):
        includes = "".join(f'#include "h{(index + step) % 40}.h"\n' for step in range(0, 40, 5))
        (place / f"s{index}.c").write_text(
            f"{includes}int work_{index}(int value)\n{{\n\treturn from_header_{index % 5}(value) + {index};\n}}\n")
        names.append(f"s{index}.o")
    (place / "Makefile").write_text(f"CFLAGS = -Ifirst -Isecond\nall: {' '.join(names)}\n")


def make_data(place, mib):
    place.mkdir()
    with open(place / "data", "wb") as file:
        for _ in range(mib):
            file.write(b"x" * (1 << 20))


def make_as_owner(make, place, count):
    """In a process of the owner's, so that git's index holds what the owner sees."""
    if os.getuid() != 0:
        make(place, count)
        return
    os.chown(place.parent, OWNER, OWNER)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(OWNER)
            os.setuid(OWNER)
            make(place, count)
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError(f"cannot make {place}")


class Trees:
    """The shares: one for each tree that is only read, and one that is made anew for each run that changes it."""

    def __init__(self, place, work_program, order):
        self.place = place
        self.program = work_program
        self.kept = {}
        self.following = {row.name: after.tree for row, after in zip(order, order[1:])}

    def share(self, row, with_work=True):
        """The directory to share for a run of @row, with the script in it."""
        name, count = row.tree.split()
        share = self.kept.get(row.tree)
        if share is None or row.changes:
            share = self.place / ("changing" if row.changes else row.tree.replace(" ", "-"))
            shutil.rmtree(share, ignore_errors=True)
            share.mkdir()
            shutil.copy(self.program, share / "work")
            make_as_owner(globals()[f"make_{name}"], share / "tree", int(count))
            if not row.changes:
                self.kept[row.tree] = share
        (share / "script").write_text(script(row, with_work))
        return share

    def drop(self, row):
        """Frees the tree of @row, unless the row after it has the same."""
        if self.following.get(row.name) != row.tree and (share := self.kept.pop(row.tree, None)):
            shutil.rmtree(share)
