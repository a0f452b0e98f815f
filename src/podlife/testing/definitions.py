"""CustomResourceDefinitions for a test cluster: from folders, files, classes (`podlife.api.crd`) and manifests.

A definition that cannot be used is one ConfigError that names the file and the line.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from podlife.api.codec import Object
from podlife.api.crd import definitions_of
from podlife.api.excerpt import excerpt
from podlife.api.yaml_documents import safe_loader
from podlife.api.yaml_fields import YamlNode
from podlife.client import CUSTOM_RESOURCE_DEFINITIONS, Client, WriteOptions
from podlife.errors import ApiError, ConfigError

Source: TypeAlias = str | Path | type | Object
"""A folder, a file, a class or a manifest."""

_SUFFIXES = (".yaml", ".yml", ".json")
_ESTABLISHED_SECONDS = 30.0
_MOST_TEXT = 400
# A step of a field's path: a name, or what is in brackets.
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_NAMED_FIELD = re.compile(r'(?:(?:unknown|duplicate) field "|Go struct field [A-Za-z]+\.)([^" ]+)')
# Errors about what all versions share name a part of the spec that v1 does not have.
_SHARED = re.compile(r"^spec\.(validation|subresources|additionalPrinterColumns|selectableFields)\b")


@dataclass(frozen=True, slots=True)
class _Definition:
    manifest: Object
    # The file, or what else it comes from.
    origin: str
    node: YamlNode | None = None

    def mistake(self, field: str, text: str) -> ConfigError:
        line = f":{_line(self.node, field)}" if self.node is not None else ""
        return ConfigError(f"{self.origin}{line}: {excerpt(' '.join(text.split()), _MOST_TEXT)}")

    async def create(self, client: Client) -> None:
        try:
            options = WriteOptions(field_validation="Strict")
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, self.manifest, options=options)
        except ApiError as error:
            cause, *others = error.details.get("causes") or [{}]
            named = _NAMED_FIELD.search(error.message)
            field = cause.get("field") or (named[1] if named else "")
            text = f"{field}: {cause['message']}" if cause else error.message
            raise self.mistake(field, f"{text} (and {len(others)} more)" if others else text) from None

    async def is_established(self, client: Client) -> bool:
        stored = await client.get(CUSTOM_RESOURCE_DEFINITIONS, self.manifest["metadata"]["name"])
        conditions = {each["type"]: each for each in stored["status"].get("conditions") or ()}
        if conditions.get("NamesAccepted", {}).get("status") == "False":
            raise self.mistake("spec.names", conditions["NamesAccepted"]["message"])
        return bool(conditions.get("Established", {}).get("status") == "True")


async def establish(
    client: Client, sources: Source | Iterable[Source], until: Callable[..., Awaitable[float]]
) -> None:
    """Create the definitions and wait until their resources are served. Raises ConfigError."""
    definitions = list(_load([sources] if isinstance(sources, str | Path | type | dict) else [*sources]))
    for each in definitions:
        await each.create(client)
    for each in definitions:
        what = f"{each.origin} established"
        await until(lambda each=each: each.is_established(client), within=_ESTABLISHED_SECONDS, what=what)


def _load(sources: list[Source]) -> Iterator[_Definition]:
    made = definitions_of(each for each in sources if isinstance(each, type))
    for manifest in (*made, *(each for each in sources if isinstance(each, dict))):
        yield _Definition(manifest, f"definition {(manifest.get('metadata') or {}).get('name', '')!r}")
    for path in (Path(each) for each in sources if isinstance(each, str | Path)):
        files = (
            sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES) if path.is_dir() else [path]
        )
        found = [definition for file in files for definition in _read(file)]
        if not found:
            raise ConfigError(f"{path}: contains no CustomResourceDefinition (files: {', '.join(_SUFFIXES)})")
        yield from found


def _read(file: Path) -> Iterator[_Definition]:
    """The definitions among the documents of a file."""
    import yaml

    try:
        loader = safe_loader()(file.read_bytes())
        while loader.check_node():
            definition = _Definition(loader.construct_document(node := loader.get_node()), str(file), node)
            content: Any = definition.manifest
            if not isinstance(content, dict) or content.get("kind") != CUSTOM_RESOURCE_DEFINITIONS.kind:
                continue
            if (version := content.get("apiVersion")) != CUSTOM_RESOURCE_DEFINITIONS.api_version:
                raise definition.mistake(
                    "apiVersion", f"unsupported apiVersion {version!r}; use apiextensions.k8s.io/v1"
                )
            yield definition
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{file}{line}: invalid YAML: {getattr(error, 'problem', None) or error}") from None


def _line(node: YamlNode, field: str) -> int:
    """The line of the field, or of the innermost part of its path that is there."""
    line: int = node.start_mark.line
    path = _SHARED.sub(lambda match: f"spec.versions[0].{match[1].replace('validation', 'schema')}", field)
    for match in _STEP.finditer(path):
        step = match[1] if match[1] is not None else match[2]
        if node.id == "sequence" and node.value:
            # Paths of Go's decoder have no indices.
            node = node.value[int(step) if step.isdecimal() and int(step) < len(node.value) else 0]
            line = node.start_mark.line
            if step.isdecimal():
                continue
        entries = {key.value: (key, value) for key, value in node.value} if node.id == "mapping" else {}
        if step not in entries:
            break
        key, node = entries[step]
        line = key.start_mark.line
    return line + 1
