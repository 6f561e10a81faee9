"""A daemon is replaced while clients ask without a pause."""

from itertools import count

from tests.e2e.load import repeating
from tests.e2e.served import Served, eventually
from tests.extensions.ray.models import Requests, register, workers_of


def test_an_upgrade_under_load_fails_no_request(served: Served) -> None:
    register(served, "ran", "--workers", "2", num_cpus=0.1)
    before = {worker["pid"] for worker in workers_of(served, "ran")}
    requests, numbers = Requests(served), count()

    def further(answers: int) -> None:
        until = len(requests.answers) + answers
        eventually(lambda: len(requests.answers) >= until, "further answers come")

    with repeating(*[lambda: requests.ask(str(next(numbers)), seconds=0.02)] * 4):
        further(50)
        served.tsctl("upgrade")
        further(50)

    assert {answer.status for answer in requests.answers.values()} == {200}
    assert sorted(requests.ran) == sorted(requests.answers)
    assert not before & {worker["pid"] for worker in workers_of(served, "ran")}
