"""`tsctl check` needs no cluster."""

from tests.e2e.served import Served


def test_an_archive_for_a_cluster_is_tried_here(idle: Served) -> None:
    request, config = idle.folder / "request.json", idle.folder / "config.yaml"
    request.write_text('{"do": "nothing"}')
    config.write_text("engine: ray\n")
    idle.pack("obey", config_file=config)

    done = idle.run("check", str(idle.store / "obey.mar"), str(request))

    assert done.returncode == 0, done.stderr
