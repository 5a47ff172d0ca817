# SPDX-License-Identifier: Apache-2.0
"""A container as its users have them: crun, with the capabilities and the filter of system calls that Podman gives by
default, or Docker, which lets nobody make namespaces in it; and of this host's devices /dev/kvm alone."""

import errno
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

FILTER = pathlib.Path("/usr/share/containers/seccomp.json")  # of golang-github-containers-common
CAPABILITIES = [f"CAP_{name}" for name in (
    "CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP", "NET_BIND_SERVICE",
    "SYS_CHROOT", "KILL", "AUDIT_WRITE")]
MASKED = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
KVM = "/dev/kvm"
# What Docker's filter keeps for those who may administer the system, and Podman's does not.
ADMINISTRATION = {"clone", "clone3", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount", "open_tree", "pivot_root",
                  "setns", "umount", "umount2", "unshare"}
# This host's files; and the one kind of control groups that crun takes. $1: the bundle.
IN_MOUNTS_OF_ITS_OWN = """
mount --rbind / "$1/root"
if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
	umount -R /sys/fs/cgroup 2>/dev/null || :
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
exec crun --cgroup-manager=disabled --root="$1/state" run --bundle="$1" "${1##*/}"
"""
NEW_NAMESPACES = 0x7E020000  # the flags of clone(2) for them


def is_missing():
    """What a container needs and this host does not have; None: all is there."""
    if not shutil.which("crun"):
        return "crun is not installed"
    return None if FILTER.exists() else f"{FILTER} is not there (package golang-github-containers-common)"


def applies(entry):
    """Whether an entry of the common filter is for a container of these capabilities on this kind of machine."""
    wanted, unwanted = entry.get("includes") or {}, entry.get("excludes") or {}
    if not set(wanted.get("caps", [])) <= set(CAPABILITIES) or set(unwanted.get("caps", [])) & set(CAPABILITIES):
        return False
    return ("arches" not in wanted or "amd64" in wanted["arches"]) and "amd64" not in unwanted.get("arches", [])


def system_calls(namespaces):
    """The filter in the words of the OCI runtime specification."""
    common = json.loads(FILTER.read_text())
    rules = []
    if not namespaces:
        rules.append({"names": ["clone"], "action": "SCMP_ACT_ALLOW",
                      "args": [{"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]})
        rules.append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS})
    for entry in common["syscalls"]:
        if not applies(entry):
            continue
        names = [name for name in entry["names"] if namespaces or name not in ADMINISTRATION]
        if not names:
            continue
        rule = {"names": names, "action": entry["action"]}
        if entry.get("args"):
            rule["args"] = entry["args"]
        if "errnoRet" in entry:
            rule["errnoRet"] = entry["errnoRet"]
        rules.append(rule)
    return {"defaultAction": common["defaultAction"], "defaultErrnoRet": common.get("defaultErrnoRet", 1),
            "architectures": ["SCMP_ARCH_X86_64"], "syscalls": rules}


def mounts(writable):
    found = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
        {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
    ]
    found += [{"destination": str(path), "type": "bind", "source": str(path), "options": ["bind", "rw"]} for path in writable]
    return found


def configuration(command, root, user, namespaces, writable, environment):
    number = os.stat(KVM).st_rdev
    device = {"path": KVM, "type": "c", "major": os.major(number), "minor": os.minor(number), "fileMode": 0o666, "uid": 0, "gid": 0}
    capabilities = CAPABILITIES if user == 0 else []
    sets = {name: capabilities for name in ("bounding", "effective", "permitted")}
    sets["bounding"] = CAPABILITIES
    return {
        "ociVersion": "1.0.2",
        "process": {"terminal": False, "user": {"uid": user, "gid": user}, "args": [str(part) for part in command], "cwd": "/tmp",
                    "env": [f"{name}={value}" for name, value in environment.items()], "capabilities": sets, "noNewPrivileges": False,
                    "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024}]},
        "root": {"path": str(root), "readonly": True},
        "hostname": "container",
        "mounts": mounts(writable),
        "linux": {"devices": [device], "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")],
                  "maskedPaths": MASKED, "readonlyPaths": READ_ONLY, "seccomp": system_calls(namespaces)},
    }


def run(command, user=0, namespaces=True, writable=(), environment=None, timeout=300):
    """Runs a command in a container with this host's files, read-only; a CompletedProcess. namespaces: whether those in
    it may make some."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", **(environment or {})}
    with tempfile.TemporaryDirectory(prefix="container-") as name:
        bundle = pathlib.Path(name)
        (bundle / "root").mkdir()
        (bundle / "config.json").write_text(json.dumps(configuration(command, bundle / "root", user, namespaces, writable, environment)))
        return subprocess.run(["unshare", "--mount", "sh", "-ec", IN_MOUNTS_OF_ITS_OWN, "sh", bundle], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout, check=False)
