# SPDX-License-Identifier: Apache-2.0
"""A package of the registry that this host's npm is set up for, installed in a real guest: --allow-from npm is what makes it work.

The registry is read from npm's own configuration, when the test runs. In the lab it is reached by `lab --net`.
"""

import json
import pathlib
import shutil
import socket
import subprocess
import urllib.parse

import harness
from harness import directory, expect, expect_equal, expect_in, run_json
from test_packages import npm_tools

PACKAGE = "is-number"  # small, without dependencies, and there for ever
INSTALL = ("node {tools}/npm/bin/npm-cli.js install --no-audit --no-fund --no-update-notifier --cache /tmp/cache {package} 2>&1 && "
           "node -p 'require(\"{package}\")(5) + \" \" + require(\"{package}/package.json\").name'")


def npm(*words):
    return subprocess.run(["npm", *words], cwd="/", check=True, capture_output=True, text=True, timeout=120).stdout.strip()


def registry():
    """Host and port of it; the test is skipped where there is none, or it cannot be reached."""
    if not shutil.which("npm"):
        raise harness.Skip("npm is not on this host")
    url = urllib.parse.urlsplit(npm("config", "get", "registry"))
    host, port = url.hostname, url.port or {"https": 443, "http": 80}.get(url.scheme)
    if not host or not port:
        raise harness.Skip("npm's registry is not one of HTTP")
    try:
        socket.create_connection((host, port), timeout=20).close()
    except OSError as error:
        raise harness.Skip(f"the registry of this host's npm cannot be reached: {error.strerror or error}") from None
    return host, port


def authorities(tools):
    """Whom this host's npm trusts beside Node's own list: a file of npm's setting, or the host's."""
    for path in (npm("config", "get", "cafile"), "/etc/ssl/certs/ca-certificates.crt"):
        if path not in ("", "null") and pathlib.Path(path).is_file():
            shutil.copy(path, tools / "ca.pem")
            return ["--env", f"NODE_EXTRA_CA_CERTS={tools}/ca.pem"]
    return []


def install(place, *options):
    tools, work = place / "tools", place / "work"
    tools.mkdir(exist_ok=True)
    if not (tools / "npm").exists():
        npm_tools(tools)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    (work / "package.json").write_text(json.dumps({"name": "project", "version": "1.0.0", "private": True}))
    # The guest's npm is told of the registry as a user would: the host's own settings do not enter.
    return run_json(*options, *authorities(tools), "--env", "npm_config_registry=" + npm("config", "get", "registry"),
                    "--env", f"PATH={tools}:/usr/bin:/bin", "--env", f"LD_LIBRARY_PATH={tools}", "--env", "HOME=/tmp", "--memory", "1G",
                    "--share", str(work), "--share", f"{tools}:ro", "--", "sh", "-c", INSTALL.format(tools=tools, package=PACKAGE), limit=400)


def test_npm_install_of_a_real_package():
    host, port = registry()
    with directory() as place:
        result, outcome = install(place, "--allow-from", "npm")
        expect_equal((result.status, result.out.splitlines()[-1:]), (0, [f"true {PACKAGE}"]), f"npm: {result.out[-800:]} {result.err[-800:]}")
        expect_in(f"--allow-from npm allows {host}:{port}", result.err)
        reached = {(way["host"], way["port"]): way for way in outcome["network"]["reached"]}
        expect_equal(set(reached), {(host, port)}, "hosts that were reached")
        expect(reached[(host, port)]["bytes_received"] > 1000, f"bytes: {reached}")
        expect_equal(outcome["network"]["denied"], [], "denials")
        # The package is on the host, and its lock file says that it is the registry's.
        package = json.loads((place / "work/node_modules" / PACKAGE / "package.json").read_text())
        expect_equal(package["name"], PACKAGE, "the package")
        lock = json.loads((place / "work/package-lock.json").read_text())["packages"][f"node_modules/{PACKAGE}"]
        expect(lock["integrity"].startswith("sha512-"), f"lock file: {lock}")
        seen = npm("view", f"{PACKAGE}@{package['version']}", "dist.integrity", "--cache", f"{place}/cache")
        expect_equal(lock["integrity"], seen, "its hash, as the host's npm sees it")


def test_nothing_of_it_without_being_allowed():
    host, _ = registry()
    with directory() as place:
        result, outcome = install(place, "--env", "npm_config_fetch_retries=0")
        expect(result.status != 0, "it was installed")
        expect(not (place / "work/node_modules" / PACKAGE).exists(), "the package is there")
        expect_equal([denied["host"] for denied in outcome["network"]["denied"]], [host], "denials")
        expect_equal(outcome["network"]["reached"], [], "hosts that were reached")


if __name__ == "__main__":
    harness.main(globals())
