"""Variables with schemas, optional variables, functions that only some environments have, and authorization."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from podlife.api import cel

SCHEMA = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 63},
        "items": {"type": "array", "items": {"type": "string"}},
        "x-y": {"type": "integer"},
    },
}


def self_type() -> cel.CelType:
    made = cel.schema_type(SCHEMA, name="selfType")
    assert made is not None
    return made


def test_an_unknown_field_is_an_error_at_its_place() -> None:
    with pytest.raises(cel.CelError) as caught:
        cel.compile("self.name == 'a' &&\n self.nme == 'b'", cel.Environment({"self": self_type()}))
    assert str(caught.value) == "ERROR: <input>:2:6: undefined field 'nme'\n |  self.nme == 'b'\n | .....^"


def test_a_whole_object_has_a_name_even_if_its_schema_is_silent() -> None:
    made = cel.schema_type({"type": "object"}, is_resource=True)
    assert made is not None
    program = cel.compile("self.metadata.name.startsWith('a')", cel.Environment({"self": made}))
    assert program.evaluate({"self": {"metadata": {"name": "abc"}}}).value is True


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("simple", "simple"),
        ("namespace", "__namespace__"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("0a", None),
        ("a b", None),
        ("", None),
    ],
)
def test_names_of_properties_are_escaped_as_upstream_does(name: str, escaped: str | None) -> None:
    assert cel.escape_name(name) == escaped


@pytest.mark.parametrize("schema", [{}, {"x-kubernetes-preserve-unknown-fields": True}, {"type": "array"}])
def test_a_schema_without_a_type_is_not_visible_to_expressions(schema: Mapping[str, object]) -> None:
    assert cel.schema_type(schema) is None


def test_an_old_value_may_be_optional() -> None:
    variables = {"self": self_type(), "oldSelf": cel.optional_of(self_type())}
    program = cel.compile("oldSelf.orValue(self).name == self.name", cel.Environment(variables))
    assert program.evaluate({"self": {"name": "a"}, "oldSelf": None}).value is True
    assert program.evaluate({"self": {"name": "a"}, "oldSelf": {"name": "b"}}).value is False
    assert program.uses("oldSelf")
    assert not program.uses("request")


def test_a_size_without_a_bound_makes_a_rule_too_expensive() -> None:
    environment = cel.Environment({"self": self_type()})
    cheap = cel.compile("self.name.matches('^[a-z]+$')", environment).estimated_cost()
    costly = cel.compile("self.items.all(x, self.items.all(y, x == y))", environment).estimated_cost()
    assert cheap.most < cel.PER_EXPRESSION_ESTIMATE < costly.most


def test_the_type_of_the_result_is_known() -> None:
    environment = cel.Environment({"self": self_type()})
    assert cel.compile("self.items.size() > 1", environment).type is cel.BOOL
    assert str(cel.compile("self.items.map(x, x.size())", environment).type) == "list(int)"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"name": 5}, "invalid data, expected string, got int64"),
        ({"name": None}, "no such key: name"),
        (None, "invalid data, got null for schema with nullable=false"),
        ([], "invalid data, expected a map for the provided schema with type=object"),
    ],
)
def test_a_value_that_does_not_fit_its_schema_is_an_error_where_it_is_read(
    value: object, message: str
) -> None:
    program = cel.compile("self.name == ''", cel.Environment({"self": self_type()}))
    with pytest.raises(cel.EvaluationError) as caught:
        program.evaluate({"self": value})
    assert str(caught.value) == message


def test_a_variable_without_a_value_is_an_error_only_where_it_is_used() -> None:
    program = cel.compile("true || self.name == ''", cel.Environment({"self": self_type()}))
    assert program.evaluate({}).value is True
    program = cel.compile("self.name == ''", cel.Environment({"self": self_type()}))
    with pytest.raises(cel.EvaluationError, match=r"no such attribute\(s\): self"):
        program.evaluate({})


def test_json_patch_belongs_to_mutating_policies() -> None:
    with pytest.raises(cel.CelError, match="undeclared reference to 'jsonpatch'"):
        cel.compile("jsonpatch.escapeKey('a/b')", cel.Environment({}))
    program = cel.compile("jsonpatch.escapeKey('a/b~c')", cel.Environment({}, with_json_patch=True))
    assert program.evaluate({}).value == "a~1b~0c"


def test_types_of_the_environment_are_constructed_by_name() -> None:
    patch = cel.struct("JSONPatch", {"op": cel.STRING, "path": cel.STRING, "value": cel.DYN})
    environment = cel.Environment({}, structs={"JSONPatch": patch})
    program = cel.compile("[JSONPatch{op: 'add', path: '/a', value: 1}]", environment)
    assert program.evaluate({}).value == [{"op": "add", "path": "/a", "value": 1}]
    with pytest.raises(
        cel.CelError, match="expected type of field 'op' is 'string' but provided type is 'int'"
    ):
        cel.compile("JSONPatch{op: 1}", environment)


def authorized(source: str, allowed: list[Mapping[str, str]]) -> cel.Evaluation:
    asked = cel.Authorizer(lambda attributes: cel.Decision(attributes in allowed, reason="as the test says"))
    kind = cel.parse_type("kubernetes.authorization.Authorizer")
    return cel.compile(source, cel.Environment({"authorizer": kind})).evaluate({"authorizer": asked})


def test_a_policy_asks_the_authorizer_and_pays_for_it() -> None:
    source = (
        "authorizer.group('apps').resource('deployments').namespace('a').name('b').check('create').allowed()"
    )
    wanted = {"group": "apps", "resource": "deployments", "namespace": "a", "name": "b", "verb": "create"}
    assert authorized(source, [wanted]) == cel.Evaluation(True, 350_006)
    assert authorized(source, []).value is False
    assert authorized("authorizer.path('/healthz').check('get').reason()", []).value == "as the test says"


def test_more_than_two_authorization_checks_exceed_the_limit() -> None:
    once = "authorizer.path('/a').check('get').allowed()"
    assert authorized(f"{once} || {once}", []).value is False
    with pytest.raises(cel.CostLimitExceededError):
        authorized(f"{once} || {once} || {once}", [])


def test_a_superfluous_token_before_a_negation_is_a_syntax_error() -> None:
    with pytest.raises(cel.CelError, match=r"extraneous input '\?' expecting"):
        cel.compile("?!true", cel.Environment({}))


def test_a_function_may_be_named_from_the_root() -> None:
    assert cel.compile(".isIP('1.2.3.4')", cel.Environment({})).evaluate({}).value is True


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("cel.bind(x, value, x == 1)", ""),
        ("value.field == 'a' && value.other > 3 && value.flag", ""),
        ("value.exists(x, x == 1)", "expression of type 'any' cannot be range of a comprehension"),
        ("cel.bind(x.y, value, true)", "cel.bind() variable names must be simple identifiers"),
    ],
)
def test_values_of_any_type_are_selected_and_bound_but_not_iterated(expression: str, problem: str) -> None:
    environment = cel.Environment({"value": cel.ANY}, with_bind=True)
    if not problem:
        assert cel.compile(expression, environment).type.name == "bool"
        return
    with pytest.raises(cel.CelError) as raised:
        cel.compile(expression, environment)
    assert problem in str(raised.value)


def test_bind_is_not_known_elsewhere() -> None:
    with pytest.raises(cel.CelError, match="undeclared reference to 'bind'"):
        cel.compile("cel.bind(x, 1, x == 1)", cel.Environment({}))
