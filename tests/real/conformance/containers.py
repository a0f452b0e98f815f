"""A containerd with the images that the suite asks for, in a network of its own.

No image is pulled. agnhost, which most pods of the suite are, the sample API server and etcd are built from source; any
other image is busybox that sleeps: a pod of it runs, and serves nothing.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kit.real_parts import part
from tests.real.containerd.daemon import Daemon, containerd_daemon
from tests.real.containerd.image import Image, make_image

PARTS = ("agnhost", "sample-apiserver", "etcd")
_SECONDS = 60.0


@contextmanager
def containerd_for_the_suite() -> Iterator[Daemon]:
    """Needs root. Clients of its pods must be in its network (`Daemon.network`)."""
    with containerd_daemon() as daemon:
        for image, names in _images():
            daemon.import_image(image, *names)
        inside = ["nsenter", f"--net={daemon.network}"]
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True, timeout=_SECONDS)
        yield daemon


def _images() -> list[tuple[Image, list[str]]]:
    busybox = part("busybox-static")
    made = {
        "agnhost": make_image(
            busybox,
            entrypoint=["/agnhost"],
            command=["pause"],
            added={"agnhost": part("agnhost")},
            links={"agnhost-2": "agnhost"},
        ),
        "sample-apiserver": make_image(
            busybox, entrypoint=["/sample-apiserver"], added={"sample-apiserver": part("sample-apiserver")}
        ),
        "etcd": make_image(busybox, added={"usr/local/bin/etcd": part("etcd")}),
    }
    named: dict[str, list[str]] = {}
    for name in _names():
        program = name.rpartition("/")[2].partition(":")[0]
        named.setdefault(program if program in made else "", []).append(name)
    return [(made.get(program) or make_image(busybox), names) for program, names in named.items()]


def _names() -> list[str]:
    """The images that the suite uses, without those that must not exist."""
    command = [str(part("e2e.test")), "--list-images"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
    return [name for name in listed.stdout.split() if name.startswith("registry.k8s.io/")]
