# SPDX-License-Identifier: Apache-2.0
"""Archives for the tests of mvagent image: honest ones, and others."""

import gzip
import hashlib
import io
import json
import tarfile

FILE, LINK, SYMLINK, CHARACTER, BLOCK, DIRECTORY, FIFO = tarfile.REGTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, \
    tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE
TIME = 1700000000


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def entry(name, data=b"", kind=FILE, mode=None, uid=0, gid=0, target="", pax=None, time=TIME):
    """One member of an archive: (TarInfo, contents)."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.uid, info.gid, info.mtime = kind, target, uid, gid, time
    info.mode = mode if mode is not None else 0o755 if kind == DIRECTORY else 0o644
    info.size = len(data)
    info.pax_headers = dict(pax or {})
    return info, data


def directory(name, **named):
    return entry(name, kind=DIRECTORY, **named)


def symlink(name, target, **named):
    return entry(name, kind=SYMLINK, target=target, **named)


def link(name, target, **named):
    return entry(name, kind=LINK, target=target, **named)


def tar(*entries, style=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=style) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def header(name, size=0, kind=b"0"):
    """A header as no library would write it; sizes beyond octal digits are in base 256."""
    block = bytearray(512)
    block[0:len(name)] = name
    block[100:107] = b"0000644"
    block[108:115] = block[116:123] = b"0000000"
    block[124:136] = b"%011o\0" % size if size < 8 ** 11 else b"\x80" + size.to_bytes(11, "big")
    block[136:147] = b"14524340400"
    block[156:157] = kind
    block[257:265] = b"ustar\x0000"
    block[148:156] = b" " * 8
    block[148:155] = b"%06o\0" % sum(block)
    return bytes(block)


def pad(data):
    return data + bytes(-len(data) % 512)


END = bytes(1024)


def config(layers, settings=None, **more):
    return json.dumps({"architecture": more.get("architecture", "amd64"), "os": "linux", "config": settings or {},
                       "rootfs": {"type": "layers", "diff_ids": [sha256(layer) for layer in layers]}}).encode()


def descriptor(blob, kind):
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": sha256(blob), "size": len(blob)}


def blob(data):
    return entry("blobs/sha256/" + sha256(data)[7:], data)


def oci(layers, settings=None, packed=None, configuration=None, index=None, extra=()):
    """An OCI archive of layers (tar archives; @packed: as they are in it)."""
    packed = packed or [gzip.compress(layer, mtime=0) for layer in layers]
    configuration = configuration or config(layers, settings)
    manifest = json.dumps({"schemaVersion": 2, "config": descriptor(configuration, "config.v1+json"),
                           "layers": [descriptor(data, "layer.v1.tar+gzip") for data in packed]}).encode()
    index = index or json.dumps({"schemaVersion": 2, "manifests": [descriptor(manifest, "manifest.v1+json")]}).encode()
    return tar(entry("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'), entry("index.json", index), blob(manifest),
               blob(configuration), *map(blob, packed), *extra)


def docker(layers, settings=None):
    """As docker save of old: a layer that is there twice is a symbolic link."""
    configuration = config(layers, settings)
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = json.dumps([{"Config": "config.json", "RepoTags": ["a:latest"], "Layers": names}]).encode()
    members = []
    for number, layer in enumerate(layers):
        first = layers.index(layer)
        members.append(entry(names[number], layer) if first == number else symlink(names[number], f"../{first}/layer.tar"))
    return tar(*members, entry("config.json", configuration), entry("manifest.json", manifest))
