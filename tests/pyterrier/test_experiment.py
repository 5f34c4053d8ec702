"""``pt.Experiment`` gives the numbers of ``colbert-prf evaluate``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

pt = pytest.importorskip("pyterrier", reason="needs PyTerrier: pip install colbert-prf[pyterrier]")

import ir_measures  # noqa: E402
import pandas as pd  # noqa: E402

from colbert_prf.cli import cli  # noqa: E402

MEASURES = ["AP", "nDCG@10", "RR", "R@3"]
SMALL = {"feedback_docs": 1, "clusters": 6, "expansion_vectors": 4}


@pytest.fixture
def topics():
    texts = [
        "how large do fish grow",
        "bank of a river",
        "life in a tank",
        "cold winter",
        "interest of the bank",
        "fish in water",
    ]
    return pd.DataFrame({"qid": [f"t{number}" for number in range(len(texts))], "query": texts})


@pytest.fixture
def qrels(topics):
    relevant = ["aquarium bowl", "river", "bowl pond shop", "winter pond", "bank", "pond aquarium army"]
    rows = [
        (qid, docno, grade)
        for qid, names in zip(topics["qid"], relevant, strict=True)
        for grade, docno in enumerate(names.split(), start=1)
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


@pytest.fixture
def systems(index):
    return {"bm25": index.bm25(), "colbert": index.end_to_end(), "prf": index.prf(**SMALL, weight=2)}


@pytest.fixture
def evaluated(tmp_path, topics, qrels, systems):
    """What the command says of the same runs."""
    lines = [f"{row.qid} 0 {row.docno} {row.label}" for row in qrels.itertuples()]
    (tmp_path / "qrels.txt").write_text("\n".join(lines) + "\n")
    for name, system in systems.items():
        pt.io.write_results(system(topics), str(tmp_path / f"{name}.run"), run_name=name)
    runs = [str(tmp_path / f"{name}.run") for name in systems]
    options = [part for measure in MEASURES for part in ("-m", measure)]
    done = CliRunner().invoke(
        cli, ["evaluate", str(tmp_path / "qrels.txt"), *runs, "--baseline", runs[0], *options, "--json"]
    )
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_the_experiment_agrees_with_the_command(topics, qrels, systems, evaluated):
    found = pt.Experiment(
        list(systems.values()),
        topics,
        qrels,
        [*map(ir_measures.parse_measure, MEASURES), "mrt"],
        names=list(systems),
        baseline=0,
        correction="holm",
        validate="error",
    ).set_index("name")
    assert (found["mrt"] > 0).all()
    for system in evaluated["systems"]:
        for measure, value in system["means"].items():
            assert found.loc[system["name"], measure] == pytest.approx(value, abs=1e-9)
    assert len(evaluated["comparisons"]) == 2 * len(MEASURES)
    for one in evaluated["comparisons"]:
        row, measure = found.loc[one["system"]], one["measure"]
        assert row[f"{measure} p-value"] == pytest.approx(one["p_value"], abs=1e-9)
        assert row[f"{measure} p-value corrected"] == pytest.approx(one["corrected_p_value"], abs=1e-9)
        assert (row[f"{measure} +"], row[f"{measure} -"]) == (one["wins"], one["losses"])
    # The test tells systems apart, or it would compare nothing.
    assert len({round(value, 6) for value in found["AP"]}) == 3


def test_common_stages_run_once_in_a_tree(index, topics, qrels):
    encode, retrieve = index.query_encoder(), index.end_to_end()
    pipelines = [encode >> retrieve, encode >> retrieve >> index.scorer()]
    found = pt.Experiment(
        pipelines, topics, qrels, list(map(ir_measures.parse_measure, MEASURES)), plan="tree", verbose=False
    )
    assert found.loc[0, MEASURES].tolist() == pytest.approx(found.loc[1, MEASURES].tolist())
