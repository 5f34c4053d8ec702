"""Requests made from the OpenAPI schema, allowed ones and others: no 5xx, and answers that the schema describes."""

from __future__ import annotations

import shutil

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from colbert_prf.server.app import create_app
from colbert_prf.server.indexes import Indexes, ServedIndex
from tests.server.serving import process

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
OPERATIONS = sorted(
    f"{method.upper()} {path}"
    for path, methods in create_app(Indexes([ServedIndex("fish", "nowhere")])).openapi()["paths"].items()
    for method in methods
)


@schemathesis.serializer("application/x-ndjson")
def as_it_is(_, value) -> bytes:
    return bytes(value) if isinstance(value, bytes | bytearray) else str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def schema(built, tmp_path_factory):
    folder = shutil.copytree(built, tmp_path_factory.mktemp("schema") / "fish.index")
    # A process of its own: schemathesis would start and end an app for every request.
    with process(str(folder), "--quiet", COLBERT_PRF_WRITE_KEY="write") as (_, client):
        yield schemathesis.openapi.from_url(f"{client.base_url}/openapi.json")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_the_schema_says_holds(schema, operation, mode):
    method, path = operation.split(" ")
    found = schema[path][method]

    @given(found.as_strategy(generation_mode=mode))
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def check(case):
        if "name" in case.path_parameters:
            case.path_parameters["name"] = "fish"
        case.call_and_validate(checks=CHECKS, headers={"Authorization": "Bearer write"})

    try:
        check()
    except Unsatisfiable:
        pytest.skip("this request has nothing that could be wrong")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/v1/indexes/{name}/documents", {"path_parameters": {"name": "fish"}, "query": {"id": "a/b c?d#e"}}),
        ("/v1/indexes/{name}/documents/{doc_id}", {"path_parameters": {"name": "fish", "doc_id": "pond"}}),
    ],
)
def test_what_the_schema_says_holds_for_documents_that_are_there(schema, path, where):
    """Ids made up from the schema are unknown ones."""
    case = schema[path]["GET"].Case(**where)
    assert case.call_and_validate(checks=CHECKS).json()["generation"] >= 1
