"""The addresses that read: what they answer is what the library gives."""

from __future__ import annotations

import pytest

from colbert_prf import ColbertPRF, Index, Searcher
from colbert_prf.baselines import BM25, LexicalIndex
from colbert_prf.index.passages import Passages
from colbert_prf.version import __version__
from tests.server.serving import PASSAGES, SEARCH, serving

QUERY = "do goldfish grow"
FEEDBACK = {"feedback_docs": 2, "clusters": 6, "expansion_vectors": 4, "weight": 0.5}
METHOD = ColbertPRF(feedback_docs=2, clusters=6, expansion_vectors=4, weight=0.5)


@pytest.fixture(scope="module")
def searcher(built, encoder):
    return Searcher(Index.open(built, encoder=encoder))


def post(client, action: str, **body):
    response = client.post(f"/v1/indexes/fish/{action}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def test_a_search_is_that_of_the_library(client, searcher):
    answer = post(client, "search", query=QUERY, k=3)
    (result,) = answer["results"]
    ranking = searcher.search(QUERY, 3)
    assert [hit["doc_id"] for hit in result["hits"]] == ranking.doc_ids
    assert [hit["score"] for hit in result["hits"]] == pytest.approx([hit.score for hit in ranking])
    assert [hit["text"] for hit in result["hits"]] == [hit.text for hit in ranking]
    assert [token["token"] for token in result["tokens"]][2:6] == ["do", "gold", "##fish", "grow"]
    assert [token["special"] for token in result["tokens"]][:3] == [True, True, False]
    assert (answer["index"], answer["generation"], result["before"], result["expansion"]) == ("fish", 1, None, None)
    assert {timing["group"] for timing in result["timings"]} >= {"wait", "encode", "first pass"}
    assert answer["took"] >= sum(timing["milliseconds"] for timing in result["timings"]) * 0.5


def test_feedback_moves_hits_and_tells_what_it_added(client, searcher):
    (result,) = post(client, "search", query=QUERY, k=5, feedback=FEEDBACK)["results"]
    ranking = searcher.search(QUERY, 5, feedback=METHOD)
    assert [hit["doc_id"] for hit in result["hits"]] == ranking.doc_ids
    before = [hit["doc_id"] for hit in result["before"]]
    assert before == ranking.before.doc_ids
    for hit in result["hits"]:
        rank = before.index(hit["doc_id"]) + 1 if hit["doc_id"] in before else None
        assert hit["rank_before"] == rank
        assert hit["move"] == (None if rank is None else rank - hit["rank"])
    expansion = ranking.expansion
    assert result["expansion"]["feedback"] == list(expansion.feedback)
    assert [vector["sigma"] for vector in result["expansion"]["vectors"]] == pytest.approx(
        [vector.sigma for vector in expansion.vectors]
    )
    assert {timing["group"] for timing in result["timings"]} >= {"learn", "second pass"}


def test_sources_of_a_vector_are_words_of_the_passages(client):
    expansion = post(client, "expand", query=QUERY, feedback=FEEDBACK)["expansion"]
    texts = {doc_id: text for doc_id, text, _ in PASSAGES}
    sources = [source for vector in expansion["vectors"] for source in vector["sources"]]
    assert sources
    for source in sources:
        text = texts[source["doc_id"]]
        if source["start"] is not None:
            shown = text[source["start"] : source["end"]].lower()
            assert shown == source["token"].removeprefix("##")
            assert shown in source["word"].lower()


@pytest.mark.parametrize("feedback", [None, FEEDBACK, {"method": "centroid"}])
def test_the_parts_of_a_score_add_up_to_it(client, feedback):
    (result,) = post(client, "search", query=QUERY, k=8, explain=True, feedback=feedback)["results"]
    assert len(result["hits"]) == 8
    for hit in result["hits"]:
        explained = hit["explanation"]
        total = pytest.approx(hit["score"], rel=1e-3)
        assert explained["score"] == total
        assert sum(match["contribution"] for match in explained["matches"]) == total
        assert sum(explained["parts"].values()) == total
        assert sum(shade["contribution"] for shade in explained["shades"]) + explained["outside"] == total
        assert (explained["parts"]["added"] > 0) == (feedback is not None)


def test_matches_stand_where_their_offsets_say(client):
    (result,) = post(client, "search", query="goldfish 😀 script", k=8, explain=True)["results"]
    for hit in result["hits"]:
        for match in [*hit["explanation"]["matches"], *hit["explanation"]["shades"]]:
            if match["start"] is not None:
                shown = hit["text"][match["start"] : match["end"]].lower()
                token = match.get("matched", match["token"])
                assert token in ("[UNK]", shown, f"##{shown}")


def test_explain_gives_what_a_search_explains(client):
    (result,) = post(client, "search", query=QUERY, k=3, explain=True, feedback=FEEDBACK)["results"]
    hits = result["hits"]
    answer = post(client, "explain", query=QUERY, k=3, doc_ids=[hit["doc_id"] for hit in hits], feedback=FEEDBACK)
    assert answer["explanations"] == [hit["explanation"] for hit in hits]
    assert answer["texts"] == [hit["text"] for hit in hits]
    assert (answer["tokens"], answer["expansion"]) == (result["tokens"], result["expansion"])


def test_a_vector_that_is_switched_off_weighs_nothing_and_the_others_stay(client):
    whole = post(client, "search", query=QUERY, k=8, explain=True, feedback=FEEDBACK)["results"][0]
    part = post(client, "search", query=QUERY, k=8, explain=True, feedback={**FEEDBACK, "without": [1]})["results"][0]
    assert [vector["active"] for vector in part["expansion"]["vectors"]] == [True, False, True, True]
    weights = [vector["weight"] for vector in whole["expansion"]["vectors"]]
    assert [vector["weight"] for vector in part["expansion"]["vectors"]] == [weights[0], 0.0, *weights[2:]]
    off = len(whole["tokens"]) + 1
    given = {
        hit["doc_id"]: sum(m["contribution"] for m in hit["explanation"]["matches"] if m["vector"] == off)
        for hit in whole["hits"]
    }
    scores = {hit["doc_id"]: hit["score"] for hit in whole["hits"]}
    for hit in part["hits"]:
        assert hit["score"] == pytest.approx(scores[hit["doc_id"]] - given[hit["doc_id"]], abs=1e-3)


def test_all_vectors_off_is_the_first_pass(client):
    plain = post(client, "search", query=QUERY, k=8)["results"][0]
    off = post(client, "search", query=QUERY, k=8, feedback={**FEEDBACK, "without": [0, 1, 2, 3, 99]})["results"][0]
    assert [hit["doc_id"] for hit in off["hits"]] == [hit["doc_id"] for hit in plain["hits"]]
    assert off["expansion"]["share"] == 0


def test_marked_documents_are_learned_from(client):
    feedback = {**FEEDBACK, "relevant": ["tank"], "non_relevant": ["fish"]}
    (result,) = post(client, "search", query="tank", k=3, feedback=feedback)["results"]
    assert result["expansion"]["feedback"] == ["tank"]
    assert result["hits"][0]["doc_id"] == "tank"


def test_several_queries_are_answered_in_their_order(client):
    results = post(client, "search", queries=["bank rates", QUERY], k=2)["results"]
    assert [result["query"] for result in results] == ["bank rates", QUERY]
    assert results[1]["hits"] == post(client, "search", query=QUERY, k=2)["results"][0]["hits"]


def test_texts_and_fields_are_chosen(client):
    hits = post(client, "search", query=QUERY, k=1, texts=False, fields=["year", "nothing"])["results"][0]["hits"]
    assert hits[0]["text"] is None
    assert set(hits[0]["metadata"]) == {"year"}
    every = post(client, "search", query=QUERY, k=1, fields=["*"])["results"][0]["hits"][0]
    assert every["metadata"] == {doc_id: metadata for doc_id, _, metadata in PASSAGES}[every["doc_id"]]


def test_bm25_and_its_feedback(client, searcher):
    lexical = LexicalIndex.of(searcher.index, progress=False)
    (result,) = post(client, "search", query="goldfish tank", k=3, method="bm25", explain=True)["results"]
    ranking = BM25(lexical).search("goldfish tank", 3)
    assert [(hit["doc_id"], hit["score"]) for hit in result["hits"]] == [(hit.doc_id, hit.score) for hit in ranking]
    for hit in result["hits"]:
        assert sum(term["contribution"] for term in hit["explanation"]["terms"]) == pytest.approx(hit["score"])
    feedback = {"method": "rm3", "feedback_docs": 1, "original": 0.5}
    (result,) = post(client, "search", query="goldfish tank", k=3, method="bm25", feedback=feedback)["results"]
    assert {term["term"] for term in result["expansion"]["terms"] if not term["added"]} == {"goldfish", "tank"}
    assert result["before"] is not None
    assert post(client, "expand", query="goldfish tank", feedback=feedback)["expansion"]["terms"]
    explained = post(client, "explain", query="goldfish", doc_ids=["fish", "bank"], method="bm25")["explanations"]
    assert explained[0]["score"] > explained[1]["score"] == 0


def test_hybrid_finds_what_either_finds(client):
    (result,) = post(client, "search", query="goldfish", k=8, method="hybrid", feedback={})["results"]
    assert {hit["doc_id"] for hit in result["hits"]} == {doc_id for doc_id, _, _ in PASSAGES}
    assert result["hits"][0]["score"] <= 2 / 61


def test_feedback_learns_from_texts(client):
    text = "The bank raised its rates."
    feedback = {**FEEDBACK, "texts": [text]}
    result = post(client, "search", query=QUERY, k=8, feedback=feedback, explain=True)["results"][0]
    assert result["expansion"]["feedback"] == ["feedback text 1"]
    sources = [source for vector in result["expansion"]["vectors"] for source in vector["sources"]]
    assert {source["doc_id"] for source in sources} == {"feedback text 1"}
    for source in sources:
        if source["start"] is not None:
            assert text[source["start"] : source["end"]].lower() == source["token"].removeprefix("##")
    assert next(hit for hit in result["hits"] if hit["doc_id"] == "bank")["move"] > 0
    both = post(client, "expand", query=QUERY, feedback={**feedback, "with_passages": True})["expansion"]
    assert both["feedback"] == [
        *post(client, "expand", query=QUERY, feedback=FEEDBACK)["expansion"]["feedback"],
        *result["expansion"]["feedback"],
    ]


def test_an_exact_search_has_the_same_scores(client):
    exact, usual = (
        post(client, "search", query=QUERY, k=3, **more)["results"][0]["hits"] for more in ({"exact": True}, {})
    )
    assert [(hit["doc_id"], hit["score"]) for hit in exact] == [
        (hit["doc_id"], pytest.approx(hit["score"])) for hit in usual
    ]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"topic": "money"}, {"bank", "loan"}),
        ({"year": {">=": 2005, "<": 2020}}, {"pond", "bowl"}),
        ({"or": [{"topic": "war"}, {"year": 1999}]}, {"tank", "fish"}),
        ({"year": {"exists": False}}, {"a/b c?d#e", "script"}),
    ],
)
def test_a_filter_says_which_documents_may_be_found(client, where, expected):
    found = [
        post(client, "search", query=QUERY, k=8, where=where, **more)["results"][0]["hits"]
        for more in ({}, {"feedback": FEEDBACK}, {"exact": True})
    ]
    assert [{hit["doc_id"] for hit in hits} for hits in found] == [expected] * 3


def test_a_filter_holds_for_every_method(client):
    where = {"topic": "animals", "year": {"<": 2005}}
    for method in ("colbert", "bm25", "hybrid"):
        answer = post(client, "search", query=QUERY, k=8, where=where, method=method)
        assert [hit["doc_id"] for hit in answer["results"][0]["hits"]] == ["fish"]


def test_metadata_are_those_of_the_document_whatever_found_it(client):
    for method in ("colbert", "bm25", "hybrid"):
        hits = post(client, "search", query=QUERY, k=1, method=method, fields=["*"])["results"][0]["hits"]
        assert hits[0]["metadata"]["topic"] == "animals"


def test_documents_are_ranked_by_their_passages(tmp_path, encoder):
    text = "A goldfish lives in a pond. " * 12 + "The bank raised its rates. " * 12
    path = tmp_path / "long.index"
    Index.create(
        path, [("long", text), ("short", "Goldfish grow.")], encoder=encoder, passages=Passages(64), progress=False
    )
    with serving(path) as running:
        asked = {"query": "rates of a bank", "k": 2, "group": "document", "explain": True, "feedback": FEEDBACK}
        hits = running.post(SEARCH, json=asked).json()["results"][0]["hits"]
        assert [hit["doc_id"] for hit in hits] == ["long", "short"]
        assert hits[0]["passage_id"].startswith("long")
        assert "bank" in hits[0]["text"]
        assert hits[0]["explanation"]["score"] == pytest.approx(hits[0]["score"], rel=1e-4)
        refused = running.post(SEARCH, json={**asked, "method": "bm25", "feedback": None})
        assert (refused.status_code, "does not group" in refused.text) == (422, True)


def test_the_plane_has_every_centroid_and_chooses_those_that_are_added(client):
    feedback = {**FEEDBACK, "clusters": 12}
    answer = post(client, "plane", query=QUERY, feedback=feedback, compare="The goldfish tank was broken.")
    expansion = post(client, "expand", query=QUERY, feedback=feedback)["expansion"]
    assert answer["documents"] == expansion["feedback"]
    assert len(answer["explained"]) == 2
    assert answer["explained"][0] >= answer["explained"][1] > 0
    chosen = [centroid for centroid in answer["centroids"] if centroid["chosen"]]
    assert 4 == len(chosen) < len(answer["centroids"]) <= 12
    assert [c["sigma"] for c in chosen] == pytest.approx([v["sigma"] for v in expansion["vectors"]])
    assert [c["weight"] for c in chosen] == pytest.approx([v["weight"] for v in expansion["vectors"]])
    assert [c["label"] for c in chosen] == [v["label"] for v in expansion["vectors"]]
    shared = {point["token"] for point in answer["compare"] if point["shared"]}
    assert shared == {answer["feedback"][twin]["token"] for twin in answer["twins"]} | shared
    assert len(answer["feedback"]) > 10
    # The plane is centred on what it was fitted to.
    xs = [point["x"] for point in [*answer["tokens"], *answer["feedback"]]]
    assert sum(xs) / len(xs) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("doc_id", [doc_id for doc_id, _, _ in PASSAGES])
def test_a_document_is_found_by_its_id_whatever_it_holds(client, doc_id):
    from urllib.parse import quote

    _, text, metadata = next(passage for passage in PASSAGES if passage[0] == doc_id)
    expected = {"doc_id": doc_id, "text": text, "metadata": metadata, "generation": 1}
    assert client.get(f"/v1/indexes/fish/documents/{quote(doc_id)}").json() == expected
    assert client.get("/v1/indexes/fish/documents", params={"id": doc_id}).json() == expected


def test_indexes_are_listed_and_described(client):
    listed = client.get("/v1/indexes").json()
    assert listed["indexes"] == [{"name": "fish", "num_documents": len(PASSAGES), "generation": 1}]
    assert (listed["writable"], listed["version"]) == (False, __version__)
    shown = client.get("/v1/indexes/fish").json()
    assert (shown["num_documents"], shown["bits"], shown["texts"]) == (len(PASSAGES), 4, True)
    assert shown["examples"][0] == "Goldfish grow all their life if the tank"
    methods = {info["method"]: {p["name"]: p["default"] for p in info["parameters"]} for info in shown["feedback"]}
    assert methods["prf"]["clusters"] == 24
    assert methods["prf"]["weight"] == ColbertPRF().strength.value
    assert methods["rm3"]["original"] == 0.6


def test_probes_metrics_and_documentation(client):
    client.post(SEARCH, json={"query": QUERY})
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready", "indexes": {"fish": "ready"}}
    metrics = client.get("/metrics").text
    for line in (
        'colbert_prf_requests_total{method="POST",route="/v1/indexes/{name}/search",status="200"}',
        'colbert_prf_stage_seconds_count{stage="encode"}',
        f'colbert_prf_index_documents{{index="fish"}} {len(PASSAGES)}.0',
        "colbert_prf_searches_waiting 0.0",
    ):
        assert line in metrics
    page = client.get("/docs").text
    assert "http://" not in page.replace("http://testserver", "")
    assert "https://" not in page
    assert client.get("/docs/files/swagger-ui-bundle.js").status_code == 200
    assert client.get("/openapi.json").json()["openapi"].startswith("3.1")


def test_every_answer_has_an_id(client):
    assert client.get("/health", headers={"X-Request-ID": "mine-7"}).headers["X-Request-ID"] == "mine-7"
    ids = {client.get("/health").headers["X-Request-ID"] for _ in range(3)}
    assert len(ids) == 3
    assert client.get("/health", headers={"X-Request-ID": "a\tb " * 50}).headers["X-Request-ID"] != "a\tb " * 50
