"""A containerd of the tests' own: its socket, its folders, its network and its one image, and no trace afterwards.

Nothing is pulled and nothing of the machine's network is touched: the bridge that pods hang on is in a network
namespace of its own. Killed and started again it finds its containers as it left them. Needs root, and the parts that
`make real-parts` fetches. Knows nothing of pytest.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.real_parts import NotReadyError, part, tail

from .image import Image, make_image

_GATEWAY = "10.86.0.1"
_CNI_PARTS = ("cni-bridge", "cni-host-local", "cni-loopback")
PARTS = ("containerd", "containerd-shim-runc-v2", "ctr", "runc", *_CNI_PARTS, "busybox-static")
IMAGE = "podlife.test/busybox:1"
_PAUSE = "podlife.test/pause:1"
# How long anything may take that is waited for.
_READY_SECONDS = 120.0
_END_SECONDS = 60.0
_CONFIG = """\
version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "{folder}/c.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "{snapshotter}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = "{runc}"
  SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "{folder}/registries"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{folder}/cni-bin"
  conf_dir = "{folder}/cni-conf"
"""


class Daemon:
    def __init__(self, folder: Path, *, is_inside: bool = False) -> None:
        """`is_inside`: the daemon, and with it its streaming server, is in the network of the pods."""
        self.folder = folder
        self.is_inside = is_inside
        self.socket = folder / "c.sock"
        self.log = folder / "log"
        # The network namespace that the pods' bridge is in, as a file for nsenter.
        self.network = folder / "net"
        self.cgroup_parent = f"/podlife-{folder.name}"
        self.image: Image = make_image(part("busybox-static"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Returns when it answers."""
        inside = ["nsenter", f"--net={self.network}"] if self.is_inside else []
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*inside, str(part("containerd")), "--config", str(self.folder / "config.toml")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PATH": f"{part('containerd-shim-runc-v2').parent}:{os.environ['PATH']}"},
                start_new_session=True,
            )
        deadline = time.monotonic() + _READY_SECONDS
        while self._ctr("version").returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NotReadyError(f"containerd is not ready:\n{tail(self.log)}")
            time.sleep(0.05)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(_END_SECONDS)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def shims_of(self, sandbox_id: str) -> list[int]:
        return [pid for pid in _processes_that_mention(str(self.socket)) if sandbox_id in _command(pid)]

    def prepare(self) -> None:
        """Everything but the start."""
        snapshotter = "overlayfs" if _has_overlay() else "native"
        config = _CONFIG.format(folder=self.folder, pause=_PAUSE, snapshotter=snapshotter, runc=part("runc"))
        (self.folder / "config.toml").write_text(config)
        self._prepare_network()

    def import_images(self) -> None:
        self.import_image(self.image, IMAGE, _PAUSE)

    def import_image(self, image: Image, *names: str) -> None:
        archive = self.folder / "image.tar"
        archive.write_bytes(image.archive(*names))
        done = self._ctr("images", "import", str(archive))
        if done.returncode != 0:
            raise NotReadyError(f"ctr could not import the image: {done.stderr.decode()}")
        archive.unlink()

    def trust_registry(self, address: str) -> None:
        """Let it be asked over plain HTTP, which newer daemons do not by themselves."""
        folder = self.folder / "registries" / address
        folder.mkdir(parents=True)
        (folder / "hosts.toml").write_text(f'server = "http://{address}"\n')

    def clean_up(self) -> None:
        """End whatever a test has left, and take down what was put up."""
        for task in (self.folder / "state" / "io.containerd.runtime.v2.task" / "k8s.io").glob("*/init.pid"):
            _kill(int(task.read_text()))
        for pid in _processes_that_mention(str(self.socket)):
            _kill(pid)
        for mount in reversed(_mounts_below(self.folder)):
            subprocess.run(["umount", "-l", mount], capture_output=True, timeout=_END_SECONDS)
        self._remove_cgroups()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _remove_cgroups(self) -> None:
        """Where a shim was killed, its container's groups stay, and with some daemons its processes."""
        parents = list(Path("/sys/fs/cgroup").glob(f"**{self.cgroup_parent}"))
        groups = [below for parent in parents for below in parent.iterdir() if below.is_dir()]
        deadline = time.monotonic() + _END_SECONDS
        while left := {pid for group in groups for pid in _processes_in(group)}:
            assert time.monotonic() < deadline, f"processes {left} do not end"
            for pid in left:
                _kill(pid)
            time.sleep(0.02)
        for group in (*groups, *parents):
            with contextlib.suppress(OSError):
                group.rmdir()

    def make_gateway(self) -> str:
        """Create the pods' bridge before the first pod does; returns its address, at which pods reach a server that
        is in this network."""
        for words in (
            "ip link set lo up",
            "ip link add cni0 type bridge",
            f"ip addr add {_GATEWAY}/16 dev cni0",
            "ip link set cni0 up",
        ):
            command = ["nsenter", f"--net={self.network}", *words.split()]
            subprocess.run(command, check=True, timeout=_END_SECONDS)
        return _GATEWAY

    def _prepare_network(self) -> None:
        network = self.network
        network.touch()
        begin = ["ip", "link", "set", "lo", "up"] if self.is_inside else ["true"]
        subprocess.run(["unshare", f"--net={network}", *begin], check=True, timeout=_END_SECONDS)
        plugins, conf = self.folder / "cni-bin", self.folder / "cni-conf"
        plugins.mkdir()
        conf.mkdir()
        for name in ("host-local", "loopback"):
            (plugins / name).symlink_to(part(f"cni-{name}"))
        # The node's side of a pod's cable is put into that namespace, too.
        bridge = plugins / "bridge"
        bridge.write_text(f"#!/bin/sh\nexec nsenter --net={network} {part('cni-bridge')}\n")
        bridge.chmod(0o755)
        ipam = {
            "type": "host-local",
            "ranges": [[{"subnet": "10.86.0.0/16"}]],
            "dataDir": str(self.folder / "ipam"),
        }
        plugin = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipam": ipam}
        listed = {"cniVersion": "0.4.0", "name": "podlife", "plugins": [plugin]}
        (conf / "10-podlife.conflist").write_text(json.dumps(listed))

    def _ctr(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [str(part("ctr")), "--address", str(self.socket), "--namespace", "k8s.io", *arguments]
        return subprocess.run(command, capture_output=True, timeout=_READY_SECONDS)


@contextmanager
def containerd_daemon(*, is_inside: bool = False) -> Iterator[Daemon]:
    """A daemon that answers, with `IMAGE` in it. Its folder is a short one: sockets are in it."""
    daemon = Daemon(Path(tempfile.mkdtemp(prefix="plc-")), is_inside=is_inside)
    try:
        daemon.prepare()
        daemon.start()
        daemon.import_images()
        yield daemon
    finally:
        daemon.stop()
        daemon.clean_up()


def _has_overlay() -> bool:
    return "\toverlay\n" in Path("/proc/filesystems").read_text()


def _mounts_below(folder: Path) -> list[str]:
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return [point for point in points if point.startswith(f"{folder}/")]


def _processes_that_mention(text: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and text.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def _processes_in(cgroup: Path) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(line) for line in (cgroup / "cgroup.procs").read_text().split()]
    return []


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
