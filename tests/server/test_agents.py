"""An index as tools for agents, asked with the protocol's own client."""

from __future__ import annotations

import asyncio
import sys

import pytest
from mcp import Client, StdioServerParameters

from colbert_prf import ColbertPRF, Index, Searcher
from colbert_prf.server.agents import agent_server
from colbert_prf.server.indexes import ServedIndex
from tests.server.serving import PASSAGES


def ask(server, *calls):
    """The answers to some calls of tools, and the names of all tools."""

    async def run():
        async with Client(server) as client:
            names = sorted(tool.name for tool in (await client.list_tools()).tools)
            return names, [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(run())


@pytest.fixture(scope="module")
def server(built):
    return agent_server(ServedIndex("fish", built))


def test_the_tools_find_what_a_searcher_finds(server, built, encoder):
    searcher = Searcher(Index.open(built, encoder=encoder))
    names, (found, learned, document) = ask(
        server,
        ("search", {"query": "do goldfish grow", "k": 3}),
        ("search_with_feedback", {"query": "tank", "k": 2, "relevant": ["tank"], "non_relevant": ["fish"]}),
        ("document", {"doc_id": "a/b c?d#e"}),
    )
    assert names == ["document", "search", "search_with_feedback"]
    passages = found.structured_content["passages"]
    ranking = searcher.search("do goldfish grow", 3)
    assert [passage["doc_id"] for passage in passages] == ranking.doc_ids
    assert [passage["text"] for passage in passages] == [hit.text for hit in ranking]
    method = ColbertPRF(feedback_docs=3)
    expected = searcher.search("tank", 2, feedback=method, relevant=["tank"], non_relevant=["fish"])
    assert [passage["doc_id"] for passage in learned.structured_content["passages"]] == expected.doc_ids
    assert learned.structured_content["learned"]
    assert document.structured_content["metadata"] == {"topic": "ids"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {"query": ""}),
        ("search", {"query": "a", "k": 0}),
        ("search", {"query": "a", "k": 101}),
        ("search", {}),
        ("search_with_feedback", {"query": "a", "relevant": ["nobody"]}),
        ("document", {"doc_id": "nobody"}),
    ],
)
def test_bad_arguments_are_errors_an_agent_can_read(server, tool, arguments):
    _, (answer,) = ask(server, (tool, arguments))
    assert answer.is_error
    assert "Traceback" not in answer.content[0].text


@pytest.mark.slow
def test_the_command_speaks_the_protocol(folder):
    code = "from colbert_prf.cli import main; main()"
    command = StdioServerParameters(command=sys.executable, args=["-c", code, "mcp", str(folder)])
    _, (found,) = ask(command, ("search", {"query": "blue whale", "k": 1}))
    assert found.structured_content["passages"][0]["doc_id"] in {doc_id for doc_id, _, _ in PASSAGES}
