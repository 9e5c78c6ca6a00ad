"""Runs every story of this folder. `pytest tests/stories --rewrite` puts in what happens now."""

from pathlib import Path

import pytest

from harness.stories import differences, rewritten
from stories.heartbeat_language import HeartbeatTeller
from stories.language import Teller

STORIES = sorted(Path(__file__).parent.rglob("*.txt"))
STORIES_MIN = 45


def teller_of(path: Path) -> Teller:
    """Stories of the heartbeat protocol have a folder, and words of their own."""
    return HeartbeatTeller() if path.parent.name == "heartbeat" else Teller()


def test_the_stories_are_there() -> None:
    assert len(STORIES) >= STORIES_MIN


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    """What is told happens; and the log that it leaves replays to the same state from every cut."""
    text = path.read_text(encoding="utf-8")
    if request.config.getoption("--rewrite"):
        path.write_text(rewritten(text, teller_of(path).interpret), encoding="utf-8")
        pytest.skip("rewritten: read the difference before you keep it")
    teller = teller_of(path)

    assert "\n\n".join(differences(text, teller.interpret)) == ""
    teller.core.check_replays()


def test_a_story_that_tells_something_else_fails() -> None:
    """The runner has teeth: another output, and a missing one, are both seen."""
    text = "# A first join.\njoin a instance=i1\n----\nsomething else\n"

    assert len(differences(text, Teller().interpret)) == 1
    with pytest.raises(ValueError, match="line 2"):
        differences("join a\n\n# prose\n", Teller().interpret)
