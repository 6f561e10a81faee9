"""`tsctl top` before a daemon that is not one."""

from tests.extensions.live.tsctl.documents import answered, batch, event, live, model
from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.client import DaemonClient
from tsctl.extensions.live.columns import ScreenSize, text_of
from tsctl.extensions.live.poller import News, look
from tsctl.extensions.live.session import Watch

KEY = ("m", "1.0")


def shown(watch: Watch) -> str:
    return "\n".join(map(text_of, watch.lines(ScreenSize(100, 24))))


def test_a_pipe_gets_one_table(daemon: FakeDaemon, invoke: Invoke) -> None:
    daemon.answer("GET /tsctl/live", live(2000.0, model("resnet")))

    result = invoke("top", "--interval", "0.1")

    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["MODEL", "resnet"]
    assert "\x1b" not in result.stdout
    assert [request.path for request in daemon.requests] == ["/tsctl/live"] * 2
    daemon.path.unlink()
    assert invoke("top").exit_code == 3


def test_a_look_at_one_model_asks_for_its_new_batches_and_one_at_all_for_warnings(daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/live", live(2000.0, model()))
    daemon.answer("GET /tsctl/events", {"events": [event("killed")], "last": 1})
    daemon.answer("GET /tsctl/batches", {"batches": [batch(8)], "last": 8})

    news = look(DaemonClient(daemon.path), KEY, 7)

    assert (news.absent, news.subject, news.last, len(news.batches), len(news.events)) == ("", KEY, 8, 1, 1)
    assert daemon.requests[-1].query == {"model": "m/1.0", "after": "7"}
    look(DaemonClient(daemon.path), None, 0)
    assert daemon.requests[-1].query == {"level": "warning", "since": "-1600.0", "limit": "10"}


def test_a_daemon_that_goes_away_and_comes_back(daemon: FakeDaemon) -> None:
    watch = Watch()
    watch.take_news(News(live(2000.0, model())))

    daemon.path.unlink()
    watch.take_news(look(DaemonClient(daemon.path), None, 0))
    away = shown(watch)
    watch.take_news(News(live(2002.0, model(), started=2001.5)))

    assert "No answer since" in away and "> m" in away
    assert "No answer" not in shown(watch)


def test_batches_of_a_model_gather_until_another_is_shown() -> None:
    watch = Watch()
    watch.take_news(News(live(2000.0, model(), model("other"))))
    watch.press("open")
    for number in range(3):
        watch.take_news(News(live(2001.0 + number, answered(4), model("other")), "", KEY, (), [batch(number)], number))

    several = shown(watch)
    watch.press("down")
    other = shown(watch)
    watch.press("back")

    assert several.count("4/8") == 3
    assert "other/1.0  ready" in other and "4/8" not in other
    assert "MODEL" in shown(watch)
