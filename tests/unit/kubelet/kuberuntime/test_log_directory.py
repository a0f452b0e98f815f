"""Folders of logs: where they are, what they tell, and when they go."""

from __future__ import annotations

from pathlib import Path

from podlife.kubelet.kuberuntime.backoff import restart_count
from podlife.kubelet.kuberuntime.log_directory import LogDirectory, log_path

POD = {"metadata": {"namespace": "shop", "name": "web", "uid": "u-1"}, "spec": {}}


def line(text: str, tag: str = "F") -> str:
    return f"2030-01-01T00:00:00.000000000Z stdout {tag} {text}\n"


def test_the_folder_of_a_pod_has_its_namespace_name_and_uid(tmp_path: Path) -> None:
    assert LogDirectory(tmp_path).of(POD) == tmp_path / "shop_web_u-1"
    assert LogDirectory(None).of(POD) is None
    assert log_path("main", 3) == "main/3.log"


def test_restarts_are_counted_by_the_logs_that_there_are(tmp_path: Path) -> None:
    """RB-09"""
    folder = tmp_path / "shop_web_u-1" / "main"
    folder.mkdir(parents=True)
    for name in ("0.log", "4.log.20300101", "notes.txt"):
        (folder / name).touch()
    logs = LogDirectory(tmp_path)
    assert restart_count(None, logs.names(POD, "main")) == 5
    assert restart_count(None, logs.names(POD, "other")) == 0
    assert restart_count(None, LogDirectory(None).names(POD, "main")) == 0


def test_only_folders_of_pods_that_nobody_wants_are_removed(tmp_path: Path) -> None:
    for name in ("shop_web_u-1", "shop_web_u-2", "notes", "one_part"):
        (tmp_path / name / "main").mkdir(parents=True)
    LogDirectory(tmp_path).remove_if(lambda uid: uid != "u-2")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["notes", "one_part", "shop_web_u-2"]
    LogDirectory(tmp_path / "missing").remove_if(lambda _: True)


def test_the_end_of_a_log_is_what_the_container_wrote(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text(line("first") + line("half a", "P") + line(" line") + line("last"))
    assert LogDirectory.tail(path) == "first\nhalf a line\nlast\n"
    assert LogDirectory.tail(tmp_path / "missing") == ""
    assert LogDirectory.tail(None) == ""


def test_of_a_long_log_only_the_end_is_read_and_no_half_line(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text("".join(line(f"{number:06} {'x' * 60}") for number in range(10_000)))
    end = LogDirectory.tail(path).splitlines()
    assert end[-1].startswith("009999 ")
    assert len(end) < 200
    assert all(len(each) == 67 for each in end)
