"""The plan of the house, measured from its imports: how many rooms there are, on how many floors, and that none of them
needs each other. All imports count, those for types and those within functions, too."""

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache

from tests.test_imports import SOURCES, imports_of, is_declaration

MOST_ROOMS, MOST_FLOORS = 25, 9  # with the seam, the tables, and the shelf, which lies above the core
SEAM = "daemon.extension"  # a leaf, since both sides know it
# `module, other     what they are`: a line of a package's map; what has arrows is a drawing.
OF_A_MAP = re.compile(r"(?: {4})?((?:[a-z_0-9]+(?:, | {2}))*[a-z_0-9]+) {2,}[^\s─▶→][^─▶→]*")
NO_MAPS = {
    "daemon.extensions.object_stores.fetch": "stdin and stdout",
    "handlers.optimize": "the optimisations, by their names",
    "tsctl.templates": "templates",
}


@cache
def arrows_of_files() -> dict[str, set[str]]:
    return {
        module: {name for name in imports_of(path) if name in SOURCES and name != module}
        for module, path in SOURCES.items()
    }


def is_seam(module: str) -> bool:
    """Return whether a module is the seam: the base of the extensions, their declarations, and their list."""
    return module in (SEAM, "daemon.server.extensions") or is_declaration(SOURCES[module])


def is_package(module: str) -> bool:
    return SOURCES[module].name == "__init__.py"


def room_of(module: str) -> str:
    """Return the room: `tsctl` and `handlers` whole, in `daemon` a folder, or a file that lies beside them."""
    top, *rest = module.split(".")
    if is_seam(module):
        return SEAM
    return f"{top}.{rest[0]}" if top == "daemon" and rest else top


def inner_room_of(module: str) -> str:
    """Return the folder at the top two levels, or the file that lies beside them, of any of the three programs."""
    return SEAM if is_seam(module) else ".".join(module.split(".")[:2])


def between(rooms: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the arrows between rooms; packages that hold only a text have none."""
    arrows: dict[str, set[str]] = {room: set() for room in rooms.values()}
    for module, imported in arrows_of_files().items():
        arrows[rooms[module]] |= {rooms[name] for name in imported} - {rooms[module]}
    return arrows


def circle_in(arrows: Mapping[str, Iterable[str]]) -> list[str]:
    """Return one circle, as the way around; empty if there is none."""
    done: set[str] = set()
    way: list[str] = []

    def walk(at: str) -> list[str]:
        if at in way:
            return [*way[way.index(at) :], at]
        if at in done:
            return []
        way.append(at)
        for other in sorted(arrows[at]):
            if found := walk(other):
                return found
        way.pop()
        done.add(at)
        return []

    for start in sorted(arrows):
        if found := walk(start):
            return found
    return []


def floors_of(arrows: Mapping[str, set[str]]) -> dict[str, int]:
    """Return the floor of each room: one above the highest that it needs; 1 if it needs none."""
    floors: dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in floors:
            floors[room] = 1 + max(map(floor, arrows[room]), default=0)
        return floors[room]

    for room in arrows:
        floor(room)
    return floors


def house() -> dict[str, set[str]]:
    arrows = between({module: room_of(module) for module in SOURCES})
    arrows.pop("daemon")  # only its map
    return arrows


def test_there_are_few_rooms() -> None:
    assert len(house()) <= MOST_ROOMS, sorted(house())


def test_there_are_few_floors() -> None:
    floors = floors_of(house())

    assert max(floors.values()) <= MOST_FLOORS, sorted(floors.items(), key=lambda each: each[1])


def test_no_room_or_file_needs_itself_by_a_way_around() -> None:
    inner = between({module: inner_room_of(module) for module in SOURCES})

    assert [circle_in(arrows) for arrows in (house(), inner, arrows_of_files())] == [[], [], []]


def test_a_circle_is_found_and_a_floor_counted() -> None:
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert floors_of({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": 3, "b": 2, "c": 1}


def test_the_map_of_a_package_names_what_is_there() -> None:
    named = [
        (package, name)
        for package, path in SOURCES.items()
        if is_package(package) and package not in NO_MAPS
        for line in (ast.get_docstring(ast.parse(path.read_text()), clean=False) or "").splitlines()[1:]
        if (found := OF_A_MAP.fullmatch(line))
        for name in re.findall(r"\w+", found[1])
    ]

    assert len(named) > 100
    assert [f"{package}: {name}" for package, name in named if f"{package}.{name}" not in SOURCES] == []


def test_the_map_of_the_house_has_each_folder_of_the_core() -> None:
    above, named = "", []
    for indent, names in re.findall(r"^ {4}( {2})?((?:\w+/? +)+)", SOURCES["daemon"].read_text(), re.MULTILINE):
        for name in re.findall(r"(\w+)/", names):
            above = above if indent else name
            named.append(f"daemon.{above}.{name}" if indent else f"daemon.{name}")
    inner = re.compile(r"daemon\.(?!extensions\.)\w+(\.\w+)?")  # of the shelf, each folder says what it is

    assert set(named) == {module for module in SOURCES if is_package(module) and inner.fullmatch(module)}
