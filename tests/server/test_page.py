"""The page in a real browser: what is shown adds up, what is pointed at lights up, and the address has the state."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from colbert_prf import Encoder, Index

playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="the browser tests need chromium (apt-get install chromium)"),
]

DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
HOSTILE = '<script>document.title="taken"</script><img src=x onerror="document.title=\'taken\'"> goldfish &amp; tank'
PASSAGES = [
    ("aquarium", "A goldfish kept in a large tank keeps growing and can reach 30 cm."),
    ("bowl", "In a small bowl a goldfish stays small and lives for a few years only."),
    ("army", "While the soldiers advanced, the tank bombarded the troops."),
    ("pond", "In a pond goldfish survive the winter under the ice."),
    ("hostile", HOSTILE),
    ("long", "A goldfish tank needs a filter. " * 3000),
    ("hebrew", "דג זהב גדל במיכל גדול ויכול לחיות שנים רבות goldfish tank"),
    ("emoji", "🐠🐟 goldfish 🐡 in a tank 🪣 grow 👩‍🔬 slowly"),
    ("a/b?c#d", "An id with slashes: the tank of a lorry holds petrol."),
    ("bank", "Bank rates fell after the election."),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server of its own process over a small index; its address."""
    folder = tmp_path_factory.mktemp("page") / "fish.index"
    Index.create(folder, PASSAGES, encoder=Encoder.load(), bits=4)
    # Quiet: nobody reads the pipe, and a full one would stop the server.
    command = [sys.executable, "-m", "colbert_prf", "serve", f"fish={folder}", "--port", "0", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield wait_for(process)
        finally:
            process.terminate()
            process.wait(20)


def wait_for(process: subprocess.Popen[str]) -> str:
    """The address the server prints, once it is ready."""
    for line in process.stdout:
        if found := re.search(r"http://[\d.]+:\d+", line):
            break
    else:
        raise AssertionError("the server printed no address")
    for _ in range(600):
        try:
            with urlopen(f"{found.group()}/ready") as answer:
                if answer.status == 200:
                    return found.group()
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server was not ready within a minute")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, address):
    """Open the page; at the end the console must be empty and no request may have left the host."""
    contexts, noise, strangers = [], [], []

    def visit(query: str = "", viewport=DESKTOP, scheme: str = "light", quiet: bool = True):
        context = browser.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
        contexts.append(context)
        page = context.new_page()
        if quiet:  # the browser itself writes refused requests there
            page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("request", lambda request: request.url.startswith(address) or strangers.append(request.url))
        page.goto(f"{address}/{query}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not noise
    assert not strangers


def numbers(texts: list[str]) -> list[float]:
    return [float(text) for text in texts if text.strip()]


def test_a_first_visit_says_what_this_is_and_offers_queries(visit):
    page = visit()
    page.wait_for_selector("#welcome:not([hidden])")
    assert "Feedback" in page.inner_text("#welcome")
    assert page.locator("#columns").is_hidden()


def test_enter_searches_and_the_parts_add_up_to_the_score(visit):
    page = visit()
    page.fill("#query", "how large do goldfish grow")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    first = page.locator(".hit").first
    assert first.locator(".id").inner_text() == "aquarium"
    assert first.locator("mark").count() > 0
    first.locator(".why-button").click()
    contributions = numbers(first.locator(".why tbody td:last-child").all_inner_texts())
    total = float(first.locator(".why tfoot td:last-child").inner_text())
    assert sum(contributions) == pytest.approx(total, abs=0.0006 * len(contributions))
    assert total == pytest.approx(float(first.locator(".score").inner_text()), abs=0.006)


def test_pointing_at_a_token_lights_its_matches_and_the_other_way_round(visit):
    page = visit("?index=fish&q=do+goldfish+grow&method=off")
    page.wait_for_selector(".hit")
    page.locator("#tokens .token", has_text=re.compile("^gold")).first.hover()
    assert page.locator("mark.lit").count() >= 2
    page.locator(".hit").first.locator("mark").first.hover()
    assert page.locator("#tokens .lit").count() >= 1


def test_feedback_shows_what_was_learned_and_what_moved(visit):
    page = visit("?index=fish&q=how+large+is+a+tank&method=prf&weight=0.5")
    page.wait_for_selector(".chip")
    assert page.locator(".move").count() > 0
    assert "learned from" in page.inner_text("#summary")
    page.locator(".chip").first.hover()
    assert "σ" in page.inner_text(".popover")
    page.get_by_role("radio", name="side by side").click()
    page.wait_for_selector("#lists.side")
    assert page.locator("#lists ol").count() == 2


def test_a_chip_switched_off_weighs_nothing_and_can_be_switched_on_again(visit):
    page = visit("?index=fish&q=how+large+is+a+tank&method=prf&weight=0.5")
    page.wait_for_selector(".chip")
    before = page.locator(".hit .score").all_inner_texts()
    page.locator(".chip").first.click()
    page.wait_for_selector('.chip[aria-pressed="false"]')
    page.wait_for_function(
        "scores => [...document.querySelectorAll('.hit .score')].map(s => s.textContent).join() != scores.join()",
        arg=before,
    )
    assert "without=0" in page.url
    page.locator(".chip").first.click()
    page.wait_for_function(
        "scores => [...document.querySelectorAll('.hit .score')].map(s => s.textContent).join() == scores.join()",
        arg=before,
    )


def test_sliders_search_again(visit):
    page = visit("?index=fish&q=how+large+is+a+tank&method=prf")
    page.wait_for_selector(".chip")
    before = page.locator(".hit .score").first.inner_text()
    page.locator("#slider-weight").fill("0.9")
    page.wait_for_function("score => document.querySelector('.hit .score').textContent != score", arg=before)
    assert "weight=0.9" in page.url


def test_marks_are_learned_from(visit):
    page = visit("?index=fish&q=tank&method=off")
    page.wait_for_selector(".hit")
    army = page.locator('.hit[data-id="army"]')
    army.get_by_role("button", name="relevant", exact=True).click()
    page.wait_for_selector(".chip")
    assert "learned from army" in page.inner_text("#summary")
    assert "relevant=army" in page.url


def test_the_address_has_the_whole_state(visit):
    page = visit("?index=fish&q=how+large+is+a+tank&method=prf&weight=0.5&view=before&without=1&clusters=6")
    page.wait_for_selector('.chip[aria-pressed="false"]')
    assert page.get_by_role("radio", name="before").get_attribute("aria-checked") == "true"
    assert page.input_value("#slider-clusters") == "6"
    ids = page.locator(".hit .id").all_inner_texts()
    page.reload()
    page.wait_for_selector('.chip[aria-pressed="false"]')
    assert page.locator(".hit .id").all_inner_texts() == ids


def test_the_plane_shows_query_passages_and_centroids(visit):
    page = visit("?index=fish&q=how+large+is+a+tank&method=prf&clusters=8&compare=The+tank+bombarded+the+troops")
    page.wait_for_selector("#plane svg")
    for kind in ("query", "passage", "centroid", "compare"):
        assert page.locator(f"#plane .p-{kind}").count() > 0, kind
    boxes = page.locator("#plane text").evaluate_all(
        "all => all.map(one => { const b = one.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })"
    )
    for number, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[number + 1 :]:
            apart = left >= other[2] - 2 or right <= other[0] + 2 or top >= other[3] - 3 or bottom <= other[1] + 3
            assert apart, "two labels cover each other"


def test_hostile_passages_are_text(visit):
    page = visit("?index=fish&q=goldfish+script&k=10")
    page.wait_for_selector('.hit[data-id="hostile"]')
    hostile = page.locator('.hit[data-id="hostile"]')
    assert hostile.locator(".passage").inner_text().replace("\n", "").startswith("<script>")
    assert page.locator(".passage img, .passage script").count() == 0
    assert page.title() != "taken"


def test_keys_walk_through_the_hits(visit):
    page = visit("?index=fish&q=goldfish")
    page.wait_for_selector(".hit")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.querySelector('.rank b').textContent") == "2"
    page.keyboard.press("w")
    assert page.locator(".why").count() == 1
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    page.wait_for_selector(".chip", state="detached")
    page.keyboard.press("f")
    page.wait_for_selector(".chip")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()


def test_a_chip_shows_where_its_vector_came_from(visit):
    page = visit("?index=fish&q=how+large+is+a+tank&method=prf&weight=0.5")
    page.wait_for_selector(".chip")
    learned_from = page.inner_text("#summary").split("learned from ")[1]
    page.locator(".chip").first.focus()
    assert learned_from in page.inner_text(".popover")
    places = page.locator("mark.source").evaluate_all("all => all.map(one => one.closest('.hit').dataset.id)")
    assert set(places) <= {learned_from}


def test_side_by_side_has_both_rankings(visit):
    page = visit("?index=fish&q=how+large+is+a+tank&method=prf&weight=0.9&view=side")
    page.wait_for_selector("#lists.side")
    before, after = (page.locator("#lists ol").nth(n).locator(".id").all_inner_texts() for n in range(2))
    page.get_by_role("radio", name="off", exact=True).click()
    page.wait_for_selector(".chip", state="detached")
    assert page.locator(".hit .id").all_inner_texts() == before
    assert sorted(before) == sorted(after), "ten passages, all found by both"


def test_the_plane_zooms_tells_names_and_follows_its_slider(visit):
    page = visit("?index=fish&q=how+large+is+a+tank&method=prf&clusters=8")
    page.wait_for_selector("#plane svg")
    page.locator("#plane .p-query").first.hover(force=True)
    page.wait_for_selector(".tip:visible")
    whole = page.locator("#plane svg").get_attribute("viewBox")
    page.mouse.wheel(0, -300)
    page.wait_for_function("box => document.querySelector('#plane svg').getAttribute('viewBox') != box", arg=whole)
    page.locator("#plane-reset").click()
    assert page.locator("#plane svg").get_attribute("viewBox") == whole
    page.locator("#slider-clusters").fill("4")
    page.wait_for_function("() => document.querySelectorAll('#plane .p-centroid').length == 4")
    page.fill("#compare", "The tank bombarded the troops")
    page.keyboard.press("Enter")
    page.wait_for_selector("#plane .p-compare")
    assert "compare=" in page.url
    page.locator("summary", has_text="table").click()
    assert "other text" in page.inner_text("#plane-table")


def test_a_long_passage_folds_and_a_right_to_left_one_turns(visit):
    page = visit("?index=fish&q=goldfish+tank&k=10")
    long = page.locator('.hit[data-id="long"]')
    page.wait_for_selector('.hit[data-id="long"]')
    assert long.locator(".passage").bounding_box()["height"] < 200
    long.get_by_role("button", name="more").click()
    assert long.locator(".passage").bounding_box()["height"] > 1000
    hebrew = page.locator('.hit[data-id="hebrew"] .passage')
    assert hebrew.evaluate("one => getComputedStyle(one).direction") == "rtl"
    assert "👩‍🔬" in page.inner_text('.hit[data-id="emoji"] .passage')


def test_the_theme_can_be_chosen_and_stays(visit):
    page = visit()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    for _ in range(2):  # auto, light, dark
        page.locator("#theme").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark


def test_nothing_is_lost_when_an_older_answer_comes_later(visit):
    page = visit()
    slow = []
    page.route("**/search", lambda route: slow.append(route) if not slow else route.continue_())
    page.fill("#query", "bank rates")
    page.keyboard.press("Enter")
    page.fill("#query", "goldfish in winter")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    slow[0].continue_()
    page.wait_for_load_state("networkidle")
    assert page.locator(".hit .id").first.inner_text() == "pond"
    assert page.title().startswith("goldfish in winter")


@pytest.mark.parametrize(
    ("status", "code", "shown"),
    [(503, "overloaded", "Trying again in 1 s."), (422, "invalid_input", "choose another")],
)
def test_a_refusal_says_what_to_do_and_a_busy_server_is_asked_again(visit, status, code, shown):
    page = visit(quiet=False)
    answer = {"code": code, "message": "this cannot be answered", "hint": "choose another"}
    headers = {"Retry-After": "1"} if status == 503 else {}
    page.route("**/search", lambda route: route.fulfill(status=status, json=answer, headers=headers), times=1)
    page.fill("#query", "goldfish in winter")
    page.keyboard.press("Enter")
    page.wait_for_selector("#notice:not([hidden])")
    assert "this cannot be answered" in page.inner_text("#notice")
    assert shown in page.inner_text("#notice")
    if status == 503:
        page.wait_for_selector(".hit")
        assert page.locator("#notice").is_hidden()


def test_a_server_with_a_key_is_asked_with_it(visit):
    page = visit(quiet=False)

    def guarded(route):
        if route.request.headers.get("authorization") == "Bearer secret":
            return route.continue_()
        return route.fulfill(status=401, json={"code": "key_needed", "message": "a key is needed", "hint": "send it"})

    page.route("**/v1/**", guarded)
    page.goto(page.url + "?index=fish&q=goldfish+in+winter")
    page.wait_for_selector("#key-dialog[open]")
    page.fill("#key", "secret")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(visit, viewport, scheme, tmp_path):
    page = visit("?index=fish&q=how+large+is+a+tank&method=prf&k=20", viewport, scheme)
    page.wait_for_selector(".chip")
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_the_time_of_each_stage_is_shown(visit):
    page = visit("?index=fish&q=goldfish&method=prf")
    page.wait_for_selector(".times span")
    shown = page.inner_text(".times")
    for stage in ("encode", "first pass", "learn", "second pass"):
        assert stage in shown
    assert "generation 1" in page.inner_text("#generation")


def test_files_of_the_page_load_nothing_from_elsewhere():
    folder = Path(__file__).parents[2] / "colbert_prf" / "server" / "page"
    for file in folder.rglob("*"):
        if file.is_file():
            assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", file.read_text(encoding="utf-8")), file.name
