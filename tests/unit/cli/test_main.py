"""The command as a user meets it: its own process, its exit code, and the one line it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podlife.apiserver.identities import prepare_identities, write_kubeconfigs
from podlife.apiserver.settings import ApiServerSettings
from podlife.cli.main import _program_name
from podlife.clock import SystemClock
from tests.unit.cli.conftest import Refused


def podlife(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "podlife", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | environment,
    )


def imports_of(*arguments: str, code: int = 0) -> set[str]:
    """Which modules a command loads: what it costs, without a clock."""
    program = (
        "import sys\nfrom podlife.cli.main import main\n"
        "try: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == code, result.stderr
    return set(result.stderr.split())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder as a server leaves it."""
    folder = tmp_path_factory.mktemp("data")
    identities = prepare_identities(ApiServerSettings(), folder, SystemClock())
    write_kubeconfigs(folder, "https://127.0.0.1:6443", identities)
    return folder


@pytest.mark.parametrize("how", ["--version", "version"])
def test_the_version_is_one_line(how: str) -> None:
    result = podlife(how)
    assert (result.returncode, result.stdout) == (0, "podlife 0.1.0\n")


def test_help_names_the_commands_and_every_option_in_full() -> None:
    assert "apiserver" in podlife("--help").stdout
    shown = podlife("apiserver", "-h", COLUMNS="60").stdout
    for option in ("--data", "--memory", "--port", "--bind", "--default-not-ready-toleration-seconds"):
        assert option in shown


@pytest.mark.parametrize(
    "command",
    [
        *(
            "--help",
            "apiserver --help",
            "controllers run --help",
            "controllers list",
            "gc --help",
            "gc run --help",
        ),
        *("gc policy test --help", "archive show --help"),
    ],
)
def test_what_only_shows_something_loads_nothing_heavy(command: str) -> None:
    heavy = {
        "aiobotocore",
        "aiohttp",
        "asyncio",
        "cryptography",
        "kubernetes_asyncio",
        "msgspec",
        "prometheus_client",
        "rich",
    }
    heavy |= {"sqlite3", "structlog", "yaml"}
    # Modules that commands load for one value.
    heavy |= {"decimal", "json"} if "--help" in command else set()
    assert not heavy & imports_of(*command.split())


def test_an_archive_in_a_folder_loads_nothing_for_buckets(tmp_path: Path) -> None:
    where = ("--archive", str(tmp_path))
    used = imports_of("archive", "list", *where)
    for command in (["sweep", "--yes", *where], ["run", *where], ["run"]):
        used |= imports_of("gc", *command, "-s", "https://127.0.0.1:1", code=1)
    assert "podlife.podgc.archive.folder" in used
    assert not {"aiobotocore", "botocore", "podlife.podgc.archive.s3"} & used


def test_importing_podlife_loads_nothing_else() -> None:
    program = "import sys; before = set(sys.modules); import podlife; print(set(sys.modules) - before)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert result.stdout == "{'podlife'}\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--nonsense"], "unknown flag --nonsense; `podlife -h` lists what there is"),
        (
            ["up", "--nodez", "3"],
            "unknown flag --nodez: did you mean --nodes? `podlife up -h` lists what there is",
        ),
        (
            ["gc", "plan", "--treshold", "3"],
            (
                "unknown flag --treshold: did you mean --terminated-pod-gc-threshold? `podlife gc plan -h` lists "
                "what there is"
            ),
        ),
        (["nonsense"], "unknown command 'nonsense'; `podlife -h` lists what there is"),
        (
            ["controller"],
            "unknown command 'controller': did you mean 'controllers'? `podlife -h` lists what there is",
        ),
        (["gc", "plan", "x", "y"], "'x y' is not expected here; `podlife gc plan -h` lists what there is"),
        (["gc", "plan", "--quarantine"], "flag needs an argument: --quarantine"),
        (["gc", "sweep", "--yes=x"], "'--yes=x' must be --yes=true or --yes=false"),
        (["apiserver", "backup"], "FILE is missing; `podlife apiserver backup -h` lists what there is"),
        (
            ["apiserver", "--port", "70000"],
            "--port: invalid value '70000': expected a whole number from 0 to 65535",
        ),
        (
            ["apiserver", "--default-not-ready-toleration-seconds", "-1"],
            "--default-not-ready-toleration-seconds: invalid value '-1': expected a whole number of 0 or more",
        ),
        (
            ["gc", "plan", "--terminated-pod-gc-threshold", "many"],
            "--terminated-pod-gc-threshold: invalid value 'many': expected a whole number",
        ),
        (
            ["gc", "plan", "-o", "xml"],
            "--output: unknown output format 'xml'; choose from table, wide, json, yaml, name",
        ),
        (
            ["gc", "run", "-v", "loud"],
            "-v: invalid log level 'loud': expected a whole number; 0 logs the least",
        ),
        (
            ["apiserver", "--port", "x"],
            "--port: invalid value 'x': expected a whole number from 0 to 65535",
        ),
        (
            ["apiserver", "kubeconfig", "--node", "a", "--user", "b"],
            "--user and --group cannot be combined with --node",
        ),
        (
            ["apiserver", "--memory", "--port", "0", "--name", "no host"],
            "--name: invalid host name or IP address 'no host'",
        ),
    ],
)
def test_a_wrong_use_is_told_in_our_own_words(refused: Refused, arguments: list[str], line: str) -> None:
    assert refused(*arguments) == f"podlife: {line}\n"


def test_a_wrong_use_ends_the_process_with_exit_code_2() -> None:
    result = podlife("--nonsense")
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)


def test_asked_for_nothing_it_shows_what_there_is() -> None:
    result = podlife("gc")
    assert (result.returncode, result.stderr.startswith("Usage: podlife gc")) == (2, True)


@pytest.mark.parametrize("command", [["kubeconfig"], ["check"], ["backup", "x"], ["restore", "x"]])
def test_a_folder_named_before_a_command_is_refused_and_not_passed_over(
    data: Path, tmp_path: Path, command: list[str]
) -> None:
    """Whoever points to one folder must not be told about, or given a copy of, another."""
    result = podlife("apiserver", "--data", str(data), *command, XDG_DATA_HOME=str(tmp_path))
    assert result.returncode == 2
    assert f"--data before '{command[0]}'" in result.stderr


@pytest.mark.parametrize("command", [["kubeconfig"], ["check"], ["backup", "x"]])
def test_a_folder_without_data_is_one_line_that_names_it(tmp_path: Path, command: list[str]) -> None:
    result = podlife("apiserver", *command, "--data", str(tmp_path / "none"))
    assert result.returncode == 1
    assert str(tmp_path / "none") in result.stderr
    assert result.stderr.startswith("podlife: ")
    assert len(result.stderr.splitlines()) == 1


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    result = podlife("apiserver", "--data", str(file / "sub"), "--port", "0")
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert f"{file}/sub cannot be used" in result.stderr


def test_a_file_in_place_of_the_data_folder_is_called_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    result = podlife("apiserver", "--data", str(file), "--port", "0")
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert f"{file} cannot be used: it is a file" in result.stderr


@pytest.mark.parametrize("content", [None, "no database"])
def test_what_is_no_backup_makes_no_data_folder(tmp_path: Path, content: str | None) -> None:
    source, folder = tmp_path / "backup", tmp_path / "data"
    if content is not None:
        source.write_text(content)
    result = podlife("apiserver", "restore", str(source), "--data", str(folder))
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert str(source) in result.stderr
    assert not folder.exists()


@pytest.mark.parametrize("bind", ["999.1.1.1", "a" * 64])
def test_an_address_that_cannot_be_one_is_one_line_without_numbers_of_errors(bind: str) -> None:
    result = podlife("apiserver", "--memory", "--port", "0", "--bind", bind)
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert "choose another with --bind" in result.stderr
    assert "Errno" not in result.stderr


def test_an_unexpected_error_is_one_line_and_the_whole_story_on_request() -> None:
    program = "from podlife.cli.guard import guard\ndef fail(): raise KeyError('the\\nthing')\nguard(fail)"
    run = [sys.executable, "-c", program]
    result = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert "unexpected KeyError" in result.stderr
    assert "PODLIFE_DEBUG=1" in result.stderr
    debugged = subprocess.run(
        run, capture_output=True, text=True, timeout=60, env=os.environ | {"PODLIFE_DEBUG": "1"}
    )
    assert debugged.returncode == 1
    assert "Traceback" in debugged.stderr


@pytest.mark.parametrize(("error", "code"), [("KeyboardInterrupt", 130), ("BrokenPipeError", 141)])
def test_being_interrupted_is_quiet(error: str, code: int) -> None:
    program = f"from podlife.cli.guard import guard\ndef fail(): raise {error}\nguard(fail)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (code, "", "")


def test_the_admins_kubeconfig_is_shown(data: Path) -> None:
    result = podlife("apiserver", "kubeconfig", "--data", str(data))
    assert result.stdout == (data / "admin.kubeconfig").read_text()


def test_a_node_gets_a_kubeconfig_of_its_own(data: Path, tmp_path: Path) -> None:
    import base64

    import yaml
    from cryptography import x509

    target = tmp_path / "n1.kubeconfig"
    result = podlife("apiserver", "kubeconfig", "--data", str(data), "--node", "n1", "-o", str(target))
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    assert target.stat().st_mode & 0o777 == 0o600
    config = yaml.safe_load(target.read_text())
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    pem = base64.b64decode(config["users"][0]["user"]["client-certificate-data"])
    subject = x509.load_pem_x509_certificate(pem).subject.rfc4514_string()
    assert subject == "CN=system:node:n1,O=system:nodes"


def test_a_user_gets_the_groups_it_is_given(data: Path) -> None:
    result = podlife(
        "apiserver", "kubeconfig", "--data", str(data), "--user", "eve", "--group", "a", "--group", "b"
    )
    assert result.returncode == 0
    assert 'user: "eve"' in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--node", "Not_A_Name"], "invalid node name 'Not_A_Name'"),
        (["--group", "x"], "--group requires --user"),
    ],
)
def test_an_identity_that_cannot_be_is_one_line(data: Path, options: list[str], message: str) -> None:
    result = podlife("apiserver", "kubeconfig", "--data", str(data), *options)
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert message in result.stderr


def test_a_kubeconfig_that_cannot_be_written_is_one_line(data: Path, tmp_path: Path) -> None:
    result = podlife("apiserver", "kubeconfig", "--data", str(data), "-o", str(tmp_path / "no" / "file"))
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)


def test_as_a_plug_in_it_calls_itself_as_kubectl_does() -> None:
    assert _program_name("/usr/bin/kubectl-podlife") == "kubectl podlife"
    assert _program_name("/usr/bin/podlife") == "podlife"
