"""A containerd with the images that the suite asks for, in a network of its own.

No image is pulled. agnhost, which most pods of the suite are, the sample API server and etcd are built from source; any
other image is busybox that sleeps: a pod of it runs, and serves nothing. All have every program of busybox.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from podlife.clock import SystemClock
from podlife.pki.certificates import make_authority
from tests.kit.real_parts import part
from tests.real.containerd.daemon import Daemon, containerd_daemon
from tests.real.containerd.image import Image, make_image

PARTS = ("agnhost", "sample-apiserver", "etcd")
_SECONDS = 60.0


@contextmanager
def containerd_for_the_suite() -> Iterator[Daemon]:
    """Needs root. Clients of its pods must be in its network (`Daemon.network`)."""
    with containerd_daemon(is_inside=True) as daemon:
        for image, names in _images():
            daemon.import_image(image, *names)
        yield daemon


def _images() -> list[tuple[Image, list[str]]]:
    # What the specs of nautilus ask it for is which picture it would show. It is agnhost, so they share a layer.
    files = {"data.json": b'{"image": "nautilus.jpg"}', "nautilus.jpg": b"", **_serving_certificate()}
    agnhost: dict[str, Path | bytes] = {"agnhost": part("agnhost"), **files}
    how: dict[str, Any] = {"entrypoint": ["/agnhost"], "links": {"agnhost-2": "agnhost"}}
    made = {
        "agnhost": _image(agnhost, command=["pause"], **how),
        "nautilus": _image(agnhost, command=["test-webserver"], **how),
        # Without a terminal its shell ends at once: specs that name no command count on that.
        "busybox": _image({}, entrypoint=[], command=["sh"]),
        "sample-apiserver": _image(
            {"sample-apiserver": part("sample-apiserver")}, entrypoint=["/sample-apiserver"]
        ),
        "etcd": _image({"usr/local/bin/etcd": part("etcd")}),
    }
    named: dict[str, list[str]] = {}
    for name in _names():
        program = name.rpartition("/")[2].partition(":")[0]
        named.setdefault(program if program in made else "", []).append(name)
    return [(made.get(program) or _image({}), names) for program, names in named.items()]


def _image(added: Mapping[str, Path | bytes], *, links: Mapping[str, str] | None = None, **how: Any) -> Image:
    busybox = part("busybox-static")
    listed = subprocess.run(
        [str(busybox), "--list"], check=True, capture_output=True, text=True, timeout=_SECONDS
    )
    programs = {f"bin/{name}": "busybox" for name in listed.stdout.split() if name != "busybox"}
    return make_image(busybox, added=added, links={**programs, **(links or {})}, **how)


def _serving_certificate() -> dict[str, bytes]:
    """As in upstream's image. Specs serve with it, and probe whether the file is there."""
    begin = SystemClock().now()
    pair = make_authority(begin, begin + timedelta(days=1))
    return {"localhost.crt": pair.certificate, "localhost.key": pair.key}


def _names() -> list[str]:
    """The images that the suite uses, without those that must not exist."""
    command = [str(part("e2e.test")), "--list-images"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
    return [name for name in listed.stdout.split() if name.startswith("registry.k8s.io/")]
