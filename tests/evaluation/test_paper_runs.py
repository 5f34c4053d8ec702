"""The runs that the authors of ColBERT-PRF published give the figures of their table.

The figures are those of Table 1 of Wang, Macdonald, Tonellotto and Ounis, "Pseudo-Relevance Feedback for Multiple
Representation Dense Retrieval", ICTIR 2021; the runs, of their virtual appendix. Of the sixteen baselines three have no
published run: BM25+ColBERT (c), BM25+RM3+ColBERT (f) and ColBERT E2E (n).
"""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from colbert_prf.cli import cli
from colbert_prf.errors import DatasetWarning
from colbert_prf.evaluation import holm

YEARS = ("2019", "2020")
COLUMNS = ("MAP", "nDCG@10", "MRR", "R@1000")
# The run: its letter; MAP, NDCG@10, "MRR@10" (in fact without a cut) and Recall on TREC 2019; the same on TREC 2020.
BASELINES = {
    "BM25": ("a", (0.2864, 0.4795, 0.6416, 0.7553), (0.2930, 0.4936, 0.5912, 0.8103)),
    "bm25_VBERT": ("b", (0.4441, 0.6855, 0.8295, 0.7553), (0.4699, 0.6716, 0.8069, 0.8103)),
    "BM25RM3": ("d", (0.3108, 0.5156, 0.6093, 0.7756), (0.3203, 0.5043, 0.5912, 0.8423)),
    "bm25RM3_VBERT": ("e", (0.4531, 0.6862, 0.8275, 0.7756), (0.4739, 0.6704, 0.8079, 0.8423)),
    "BM25_deepct": ("g", (0.3169, 0.5599, 0.7155, 0.7321), (0.3570, 0.5603, 0.7090, 0.8008)),
    "bm25deepCT_VBERT": ("h", (0.4308, 0.7011, 0.8483, 0.7321), (0.4671, 0.6852, 0.8068, 0.8008)),
    "BM25_deepct_ColBERT": ("i", (0.4416, 0.7004, 0.8541, 0.7321), (0.4757, 0.7071, 0.8549, 0.8008)),
    "BM25_docT5q": ("j", (0.4044, 0.6308, 0.7614, 0.8263), (0.4082, 0.6228, 0.7434, 0.8456)),
    "bm25doct5q_VBERT": ("k", (0.4802, 0.7123, 0.8483, 0.8263), (0.4714, 0.6810, 0.8160, 0.8456)),
    "BM25_docT5q_ColBERT": ("l", (0.5009, 0.7136, 0.8367, 0.8263), (0.4733, 0.6934, 0.8021, 0.8456)),
    "ANCE": ("m", (0.3715, 0.6537, 0.8590, 0.7571), (0.4070, 0.6447, 0.7898, 0.7737)),
    "bm25_rm3_colbert_bertqe": ("o", (0.4832, 0.7179, 0.8754, 0.7756), (0.4842, 0.6909, 0.8315, 0.8423)),
    "colberte2e_bertqe": ("p", (0.4423, 0.7013, 0.8683, 0.7892), (0.4749, 0.6911, 0.8315, 0.8245)),
}
FEEDBACK = {
    "prf_rank_beta1": ((0.5431, 0.7352, 0.8858, 0.8706), (0.4962, 0.6993, 0.8396, 0.8892)),
    "prf_rerank_beta1": ((0.5040, 0.7369, 0.8858, 0.7961), (0.4919, 0.7006, 0.8396, 0.8431)),
    "prf_rank_beta05": ((0.5427, 0.7395, 0.8897, 0.8711), (0.5116, 0.7153, 0.8439, 0.8837)),
    "prf_rerank_beta05": ((0.5026, 0.7409, 0.8897, 0.7977), (0.5063, 0.7161, 0.8439, 0.8443)),
}
SUPERSCRIPTS = {
    "prf_rank_beta1": (("abcdghijmnp", "adg", "ad", "abhmn"), ("adgjm", "adg", "ad", "abghlmn")),
    "prf_rerank_beta1": (("adgmnp", "adg", "ad", ""), ("adgj", "adg", "ad", "m")),
    "prf_rank_beta05": (("abcdghijmnp", "adgjm", "ad", "abhmn"), ("adgjmn", "adgj", "ad", "aghlmn")),
    "prf_rerank_beta05": (("adgmnp", "adgjm", "ad", ""), ("adgjm", "adgj", "ad", "m")),
}
NOT_TO_FOUR_DIGITS = {
    ("BM25RM3", "2020", "MAP"),
    ("BM25_deepct_ColBERT", "2019", "nDCG@10"),
    ("BM25_docT5q_ColBERT", "2019", "MAP"),
    ("BM25_docT5q_ColBERT", "2019", "nDCG@10"),
    *((run, "2019", measure) for run in ("bm25_rm3_colbert_bertqe", "colberte2e_bertqe") for measure in COLUMNS[:2]),
    ("bm25_rm3_colbert_bertqe", "2020", "nDCG@10"),
    ("colberte2e_bertqe", "2020", "MAP"),
    ("colberte2e_bertqe", "2020", "nDCG@10"),
}
OTHER_RECIPROCAL_RANKS = {
    ("BM25", "2020"): ("MRR", 0.6187),  # the paper repeats the figure of RM3
    ("bm25_rm3_colbert_bertqe", "2020"): ("MRR@10", 0.8315),  # cut at 10, unlike the others
    ("colberte2e_bertqe", "2020"): ("MRR@10", 0.8315),
}
FIGURES = {**{run: figures for run, (_, *figures) in BASELINES.items()}, **FEEDBACK}
ABSENT = set("cfn")


@pytest.fixture(scope="module")
def evaluated(shared_data):
    """What the command prints for each year, each feedback run tested against the thirteen baselines."""
    found = {}
    for year in YEARS:
        runs = {run: str(shared_data / "paper-runs" / f"{run}.{year}.res.gz") for run in FIGURES}
        arguments = ["evaluate", str(shared_data / "msmarco-dl1920" / f"qrels.dl{year[2:]}.txt"), *runs.values()]
        for run in BASELINES:
            arguments += ["--baseline", runs[run]]
        with pytest.warns(DatasetWarning):
            done = CliRunner().invoke(cli, [*arguments, "--rel", "2", "--family", "system", "--json"])
        assert done.exit_code == 0, done.output
        found[year] = json.loads(done.stdout)
    return found


def means(evaluated, run, year):
    return next(one["means"] for one in evaluated[year]["systems"] if one["name"] == f"{run}.{year}")


@pytest.mark.parametrize("year", YEARS)
@pytest.mark.parametrize("run", FIGURES)
def test_map_ndcg_and_recall(evaluated, run, year):
    found = means(evaluated, run, year)
    for measure, expected in zip(COLUMNS, FIGURES[run][YEARS.index(year)], strict=True):
        if measure == "MRR":
            continue
        assert found[measure] == pytest.approx(expected, abs=0.001)
        assert (round(found[measure], 4) == expected) == ((run, year, measure) not in NOT_TO_FOUR_DIGITS)


@pytest.mark.parametrize("year", YEARS)
@pytest.mark.parametrize("run", FIGURES)
def test_mrr_is_without_a_cut_but_for_three_figures(evaluated, run, year):
    measure, expected = OTHER_RECIPROCAL_RANKS.get((run, year), ("MRR", FIGURES[run][YEARS.index(year)][2]))
    assert round(means(evaluated, run, year)[measure], 4) == expected


def corrected(evaluated, run, year, measure, *, absent):
    """Corrected p-values by letter where the mean is higher, ``absent`` more tests counted as never rejected."""
    tests = [
        one for one in evaluated[year]["comparisons"] if one["system"] == f"{run}.{year}" and one["measure"] == measure
    ]
    assert len(tests) == len(BASELINES)
    values = holm([one["p_value"] for one in tests] + [1.0] * absent)
    return {
        BASELINES[one["baseline"].removesuffix(f".{year}")][0]: value
        for one, value in zip(tests, values, strict=False)
        if one["difference"] > 0
    }


CELLS = [(run, year, measure) for run in FEEDBACK for year in YEARS for measure in COLUMNS]


@pytest.mark.parametrize(("run", "year", "measure"), CELLS)
def test_the_superscripts_of_the_paper_are_confirmed(evaluated, run, year, measure):
    published = set(SUPERSCRIPTS[run][YEARS.index(year)][COLUMNS.index(measure)]) - ABSENT
    system = next(one for one in evaluated[year]["systems"] if one["name"] == f"{run}.{year}")
    letters = {BASELINES[name.removesuffix(f".{year}")][0] for name in system["improves_on"][measure]}
    never = {"l"} if year == "2020" and measure == "R@1000" and run.startswith("prf_rank_") else set()
    assert published - letters == never
    # Whatever the three absent runs would give, the correction is no stronger than with three tests more.
    strongest = corrected(evaluated, run, year, measure, absent=len(ABSENT))
    surely = {letter for letter, value in strongest.items() if value < 0.05}
    depends = {"m"} if (run, year, measure) == ("prf_rank_beta1", "2020", "MAP") else set()
    assert published - surely == never | depends


def test_how_many_superscripts_are_confirmed(evaluated):
    published = confirmed = surely = more = surely_more = 0
    for run, year, measure in CELLS:
        paper = set(SUPERSCRIPTS[run][YEARS.index(year)][COLUMNS.index(measure)]) - ABSENT
        weakest, strongest = (
            {letter for letter, value in corrected(evaluated, run, year, measure, absent=n).items() if value < 0.05}
            for n in (0, len(ABSENT))
        )
        published += len(paper)
        confirmed += len(paper & weakest)
        surely += len(paper & strongest)
        more += len(weakest - paper)
        surely_more += len(strongest - paper)
    assert (published, confirmed, surely) == (114, 112, 111)
    assert (more, surely_more) == (25, 15)


@pytest.mark.parametrize(
    ("run", "year", "expected"),
    [("prf_rank_beta1", "2019", (0.567, 0.744)), ("prf_rank_beta05", "2020", (0.526, 0.715))],
)
def test_restricted_to_the_pool(shared_data, run, year, expected):
    data = shared_data / "msmarco-dl1920"
    arguments = [str(data / f"qrels.dl{year[2:]}.txt"), str(shared_data / "paper-runs" / f"{run}.{year}.res.gz")]
    pool = ["--only-documents", str(data / "collection.tsv.gz")]
    done = CliRunner().invoke(cli, ["evaluate", *arguments, *pool, "--rel", "2", "--json"])
    found = json.loads(done.stdout)["systems"][0]["means"]
    assert (round(found["MAP"], 3), round(found["nDCG@10"], 3)) == expected
