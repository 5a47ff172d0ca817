# SPDX-License-Identifier: Apache-2.0
"""A coding agent from npm: installed on this host, by its own npm, into a cache outside the checkout.

`python3 tests/lab/agent_package.py` installs it ahead of tests that run where nothing can be fetched or written (the lab).
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PACKAGE, VERSION = "@google/gemini-cli", "0.61.0"
PROGRAM = f"node_modules/{PACKAGE}/bundle/gemini.js"


class NotInstalled(Exception):
    """With the reason."""


def place():
    return pathlib.Path.home() / ".cache/mvagent/agents" / f"{PACKAGE.rpartition('/')[2]}-{VERSION}"


def installed():
    """Its directory; it is whole or not there."""
    directory = place()
    if (directory / PROGRAM).is_file():
        return directory
    if not shutil.which("npm"):
        raise NotInstalled("npm is not on this host")
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="new-", dir=directory.parent) as new:
            # Without what is optional: programs of other platforms, and some that are compiled when they are installed.
            subprocess.run(["npm", "install", "--prefix", new, "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund",
                            "--no-update-notifier", f"{PACKAGE}@{VERSION}"], cwd=new, check=True, capture_output=True, timeout=300)
            os.chmod(new, 0o755)
            os.rename(new, directory)
            os.mkdir(new)  # for TemporaryDirectory to remove
    except OSError as error:
        raise NotInstalled(f"{directory}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise NotInstalled("npm did not get it from its registry within 300 s") from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        raise NotInstalled("npm did not get it from its registry: " + (lines[0] if lines else "")) from None
    return directory


if __name__ == "__main__":
    try:
        print(installed())
    except NotInstalled as reason:
        sys.exit(f"{PACKAGE} is not installed: {reason}")
