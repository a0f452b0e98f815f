"""What importing the client costs."""

from __future__ import annotations

import subprocess
import sys

import podlife.client


def test_every_public_name_is_there() -> None:
    assert all(getattr(podlife.client, name) is not None for name in podlife.client.__all__)


def test_names_that_have_not_been_used_yet_are_listed_too() -> None:
    code = "import podlife.client; print(set(podlife.client.__all__) - set(dir(podlife.client)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "set()"


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    names = ("aiohttp", "yaml", "kubernetes_asyncio", "cryptography")
    code = (
        "import sys; from podlife.client import Client, Connection, TokenAuth, load\n"
        "Client.connect(Connection('https://host', auth=TokenAuth('t')))\n"
        f"print([name for name in {names!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_naming_the_package_imports_none_of_its_modules() -> None:
    code = "import sys, podlife.client; print([m for m in sys.modules if m.startswith('podlife.client.')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
