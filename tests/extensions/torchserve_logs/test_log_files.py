"""Which of TorchServe's log files are written: LOG_LOCATION, METRICS_LOCATION, the metrics mode, and log4j's files."""

from pathlib import Path

import pytest

from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.extensions.torchserve_logs.log4j import LOGGERS, LONGEST_FILE, NAMES, pattern_of

LOGS = {"ts_log", "model_log", "access_log"}
METRICS = {"ts_metrics", "model_metrics"}


def test_none_is_written_unless_asked_for() -> None:
    assert resolve({}, {}).log_files == {}


@pytest.mark.parametrize("variable", ["LOG_LOCATION", "TSCTL_LOG_LOCATION"])
def test_log_location_names_the_directory_of_three(variable: str, tmp_path: Path) -> None:
    config = resolve({}, {variable: str(tmp_path)})

    assert config.log_files == {name: tmp_path / f"{name}.log" for name in LOGS}
    assert config.origins["log_location"] == "environment"


def test_metrics_location_names_the_directory_of_the_others(tmp_path: Path) -> None:
    files = resolve({}, {"METRICS_LOCATION": str(tmp_path), "LOG_LOCATION": ""}).log_files

    assert files == {name: tmp_path / f"{name}.log" for name in METRICS}


@pytest.mark.parametrize(
    ("mode", "environment", "place"),
    [
        ("log", {}, "state/logs"),
        ("legacy", {"LOG_LOCATION": "logs"}, "logs"),
        ("log", {"METRICS_LOCATION": "metrics", "LOG_LOCATION": "logs"}, "metrics"),
        ("prometheus", {}, None),
    ],
)
def test_a_mode_that_logs_metrics_has_a_place_for_them(
    mode: str, environment: dict[str, str], place: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    files = resolve({"metrics_mode": mode, "state_dir": str(tmp_path / "state")}, environment).log_files

    found = {path.parent for name, path in files.items() if name in METRICS}
    assert found == (set() if place is None else {tmp_path / place})


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(StartError, match=r"`loud` is not a metrics mode \(prometheus, log, legacy\)"):
        resolve({"metrics_mode": "loud"}, {})


XML = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration>
  <Properties><Property name="place">{folder}</Property></Properties>
  <Appenders>
    <RollingFile name="access_log" fileName="${{place}}/mine.log" filePattern="${{place}}/mine.%d{{dd-MMM}}.log.gz">
      <PatternLayout pattern="%d{{ISO8601}} %m%n"/>
    </RollingFile>
    <File name="ts" fileName="${{env:LOG_LOCATION:-{folder}/ts}}/ts_log.log">
      <PatternLayout><Pattern>%d{{ISO8601}} %X{{user}} %m%n</Pattern></PatternLayout>
    </File>
    <RollingFile name="json" fileName="${{sys:METRICS_LOCATION}}/json.log"><JSONPatternLayout/></RollingFile>
    <RollingFile name="dated" fileName="${{date:yyyy}}.log"><PatternLayout pattern="%m%n"/></RollingFile>
    <Console name="STDOUT" target="SYSTEM_OUT"><PatternLayout pattern="%m%n"/></Console>
  </Appenders>
  <Loggers>
    <Logger name="ACCESS_LOG" level="info"><AppenderRef ref="access_log"/></Logger>
    <Logger name="MODEL_LOG" level="all"><AppenderRef ref="STDOUT"/></Logger>
    <Logger name="TS_METRICS" level="all"><AppenderRef ref="json"/></Logger>
    <Logger name="MODEL_METRICS" level="all"><AppenderRef ref="dated"/><AppenderRef ref="gone"/></Logger>
    <Root level="info"><AppenderRef ref="STDOUT"/><AppenderRef ref="ts"/></Root>
  </Loggers>
</Configuration>
"""
PROPERTIES = """
property.place = {folder}
appender.a.type = RollingFile
appender.a.name = access_log
appender.a.fileName = ${{place}}/mine.log
appender.a.layout.type = PatternLayout
appender.a.layout.pattern = %d{{ISO8601}} %m%n
appender.c.type = Console
appender.c.name = STDOUT
logger.a.name = ACCESS_LOG
logger.a.appenderRef.x.ref = access_log
rootLogger.appenderRef.x.ref = STDOUT
"""


def configured(folder: Path, text: str, name: str = "log4j2.xml", **environment: str) -> Config:
    file = folder / name
    file.write_text(text)
    return resolve({"log_config": str(file)}, environment)


def test_log4js_file_names_the_files_and_what_of_it_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    config = configured(tmp_path, XML.format(folder=tmp_path))

    bare, own = pattern_of("access_log"), pattern_of("ts_log")
    assert config.log_files == {
        "access_log": tmp_path / "mine.log",
        "ts_log": tmp_path / "ts" / "ts_log.log",
        "ts_metrics": tmp_path / "logs" / "json.log",
    }
    assert [note.removeprefix(f"note: {tmp_path / 'log4j2.xml'}: ") for note in config.notes] == [
        "the appender `STDOUT` (Console) is no file, and is not used",
        f"the layout `%d{{ISO8601}} %X{{user}} %m%n` of `ts` is not used: its lines have TorchServe's `{own}`",
        f"the layout `%d{{ISO8601}} %m%n` of `access_log` is not used: its lines have TorchServe's `{bare}`",
        f"the layout `JSONPatternLayout` of `json` is not used: its lines have TorchServe's `{bare}`",
        "the appender `dated` is not used: `${date:yyyy}.log` has no value",
        "there is no appender `gone`",
    ]


def test_log4js_file_may_be_properties(tmp_path: Path) -> None:
    config = configured(tmp_path, PROPERTIES.format(folder=tmp_path), "log4j2.properties")

    assert config.log_files == {"access_log": tmp_path / "mine.log"}
    assert (
        f"note: {tmp_path / 'log4j2.properties'}: the logger `TS_METRICS` has no appender; ts_metrics.log is not"
        in (config.notes[-2])
    )


@pytest.mark.parametrize(
    ("vmargs", "has_more"),
    [
        ("-Dlog4j.configurationFile=file://FILE", False),
        ("-Dlog4j2.configurationFile=FILE", False),
        ("-Xmx1g -Dlog4j.configurationFile=file:FILE", True),
    ],
)
def test_vmargs_may_name_log4js_file(vmargs: str, has_more: bool, tmp_path: Path) -> None:
    log4j, properties = tmp_path / "log4j2.xml", tmp_path / "config.properties"
    log4j.write_text(XML.format(folder=tmp_path))
    properties.write_text(f"vmargs={vmargs.replace('FILE', str(log4j))}")

    config = resolve({"ts_config": str(properties)}, {})

    assert config.log_files["access_log"] == tmp_path / "mine.log"
    assert config.origins["log_config"] == f"file {properties}"
    assert any("have no effect here: vmargs" in note for note in config.notes) == has_more


def test_log4js_file_reads_the_environment(tmp_path: Path) -> None:
    config = configured(tmp_path, XML.format(folder=tmp_path), LOG_LOCATION=str(tmp_path / "theirs"))

    assert config.log_files["ts_log"] == tmp_path / "theirs" / "ts_log.log"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><Configuration/>", "has a document type, which is not read"),
        ("<Configuration>", "is not XML"),
        ("<log4j/>", "is `log4j`, and not the `Configuration` of log4j 2"),
        ("log4j.rootLogger = INFO", "has no appender of log4j 2"),
        ("appender.a.name = \\u12", "is not a character"),
        (" " * (LONGEST_FILE + 1), f"is larger than {LONGEST_FILE} bytes"),
    ],
)
def test_another_file_is_refused_with_the_remedy(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(StartError) as caught:
        configured(tmp_path, text)

    assert str(caught.value).startswith(f"--log-config: `{tmp_path / 'log4j2.xml'}`")
    assert why in str(caught.value)
    assert "LOG_LOCATION" in caught.value.hint


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"--log-config: cannot read `.*nowhere`: No such file"):
        resolve({"log_config": str(tmp_path / "nowhere")}, {})
    (tmp_path / "latin").write_bytes(b"<a>\xff</a>")
    with pytest.raises(StartError, match=r"--log-config: `.*latin` is not UTF-8"):
        resolve({"log_config": str(tmp_path / "latin")}, {})


def test_every_logger_of_torchserve_has_a_pattern() -> None:
    assert set(LOGGERS.values()) == set(NAMES)
