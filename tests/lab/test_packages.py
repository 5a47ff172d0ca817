# SPDX-License-Identifier: Apache-2.0
"""Package managers at work on a share: the tree that they make in the guest is the one that they make on the host.

They are the host's own, taken along in a second share, because the base image has none. Packages come from
archives that the test makes, so no registry is asked.
"""

import hashlib
import importlib.util
import io
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tarfile
import zipfile

import harness
from harness import directory, expect, expect_equal

PACKAGES, FILES = 12, 20


def tree(top, leave_out=()):
    """Kind, mode, size or target, and contents of everything below a directory."""
    found = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if any(part in name for part in leave_out):
            continue
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            found[name] = ("link", os.readlink(path))
        elif stat.S_ISREG(status.st_mode):
            found[name] = (oct(status.st_mode), status.st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        else:
            found[name] = (oct(status.st_mode),)
    return found


def expect_same_tree(guest, host, leave_out=()):
    seen, wanted = tree(guest, leave_out), tree(host, leave_out)
    differences = [(name, seen.get(name), wanted.get(name)) for name in sorted({*seen, *wanted}) if seen.get(name) != wanted.get(name)]
    expect_equal(differences[:5], [], f"differences ({len(differences)})")
    return seen


def libraries(program, place):
    """What @program is linked with, for a guest that may not have it."""
    lines = subprocess.run(["ldd", program], capture_output=True, check=True, text=True).stdout.splitlines()
    for line in lines:
        path = pathlib.Path(line.split("=>")[-1].split("(")[0].strip())
        if path.is_absolute() and path.name.startswith(("libstdc++", "libgcc_s", "libatomic")):
            shutil.copy(path, place)


def npm_tools(place):
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        raise harness.Skip("node and npm are not on this host")
    package = pathlib.Path(npm).resolve().parents[1]
    shutil.copytree(package, place / "npm", symlinks=True)
    shutil.copy(pathlib.Path(node).resolve(), place / "node")
    libraries(node, place)


def npm_archive(path, name, program):
    """A package as `npm pack` makes it, with a program."""
    package = {"name": name, "version": "1.0.0", "bin": {program: "run.js"}}
    files = {"package.json": json.dumps(package), "run.js": f"#!/usr/bin/env node\nconsole.log('{name}')\n", ".npmrc.sample": "x=y\n"}
    files |= {f"lib/part{index}.js": f"module.exports = {index}\n" * (index + 1) for index in range(FILES)}
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            member = tarfile.TarInfo(f"package/{file}")
            member.size, member.mode = len(text), 0o644
            archive.addfile(member, io.BytesIO(text.encode()))


def npm_project(place):
    place.mkdir()
    for index in range(PACKAGES):
        npm_archive(place / f"p{index}.tgz", f"p{index}", f"tool{index}")
    (place / "package.json").write_text(json.dumps({
        "name": "project", "version": "1.0.0", "private": True,
        "dependencies": {f"p{index}": f"file:p{index}.tgz" for index in range(PACKAGES)}}))


def test_npm_install():
    """Twice: the second one from the lock file, over what the first has made (npm ci)."""
    install = "{node} {npm}/bin/npm-cli.js {how} --offline --no-audit --no-fund --no-update-notifier --silent"
    with directory() as place:
        tools, work, twin = place / "tools", place / "work", place / "twin"
        tools.mkdir()
        npm_tools(tools)
        npm_project(work)
        shutil.copytree(work, twin)
        environment = {"HOME": "/tmp", "PATH": os.environ["PATH"], "npm_config_cache": str(place / "cache")}
        script = " && ".join(install.format(node=tools / "node", npm=tools / "npm", how=how) for how in ("install", "ci"))
        subprocess.run(["sh", "-ec", script], cwd=twin, env=environment, check=True, capture_output=True, timeout=300)
        result = harness.run("--share", str(work), "--share", f"{tools}:ro", "--env", f"LD_LIBRARY_PATH={tools}", "--env", "HOME=/tmp",
                             "--env", f"PATH={tools}:/usr/bin:/bin", "--", "sh", "-ec",
                             f"{script}; node_modules/.bin/tool3; node -p 'require(\"p5/lib/part7.js\")'", limit=400)
        expect_equal((result.status, result.out), (0, "p3\n7\n"), f"npm in the guest: {result.err[-600:]}")
        found = expect_same_tree(work, twin)
        expect_equal(found["node_modules/.bin/tool3"], ("link", "../p3/run.js"), "link to a program")
        expect(len(found) > PACKAGES * FILES, f"only {len(found)} names")


def pip_tools(place):
    found = importlib.util.find_spec("pip")
    if not found:
        raise harness.Skip("pip is not on this host")
    shutil.copytree(pathlib.Path(found.origin).parent, place / "pip", ignore=shutil.ignore_patterns("__pycache__"))


def wheel(path, name):
    """A package as `pip wheel` makes it."""
    info = f"{name}-1.0.dist-info"
    files = {f"{name}/__init__.py": f"def run():\n    print('{name}')\n", f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:run\n",
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files |= {f"{name}/part{index}.py": f"VALUE = {index}\n" * (index + 1) for index in range(FILES)}
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)


def test_pip_install():
    with directory() as place:
        tools, work, twin = place / "tools", place / "work", place / "twin"
        tools.mkdir()
        pip_tools(tools)
        work.mkdir()
        for index in range(PACKAGES):
            wheel(work / f"package{index}-1.0-py3-none-any.whl", f"package{index}")
        shutil.copytree(work, twin)
        script = f"PYTHONPATH={tools} PYTHONDONTWRITEBYTECODE=1 python3 -m pip install -q --no-index --no-cache-dir --disable-pip-version-check " \
            "--root-user-action=ignore --target site *.whl"
        subprocess.run(["sh", "-ec", script], cwd=twin, check=True, capture_output=True, timeout=300)
        result = harness.run("--share", str(work), "--share", f"{tools}:ro", "--env", "HOME=/tmp", "--", "sh", "-ec",
                             f"{script}; PYTHONPATH=site python3 -c 'import package4.part9; print(package4.part9.VALUE)'", limit=400)
        expect_equal((result.status, result.out), (0, "9\n"), f"pip in the guest: {result.err[-600:]}")
        # A program's first line names the Python that pip ran with, and two files the place of the archive.
        found = expect_same_tree(work, twin, ("/bin/", "__pycache__", "RECORD", "direct_url.json"))
        expect(len(found) > PACKAGES * FILES, f"only {len(found)} names")
        expect_equal((work / "site/bin/package4").stat().st_mode & 0o777, 0o755, "mode of a program")


if __name__ == "__main__":
    harness.main(globals())
