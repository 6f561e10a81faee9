"""Called by mkdocs: adds the generated pages to the site, and takes care of links that leave docs/."""

import re
import sys
from pathlib import Path, PurePosixPath
from posixpath import normpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the guides of extensions to the site's navigation: in the order of their list, then the command line's own.

    Each says in its first line in which group, and under which title: `<!-- in Make it faster: Cache answers -->`. One
    without that line is in the last group, under its own title.
    """
    from tsctl.daemon.server.extensions import EXTENSIONS
    from tsctl.extension import names

    sections = next(each["Guides"] for each in config.nav if "Guides" in each)
    groups = {title: pages for each in sections for title, pages in each.items()}
    there = {page for pages in groups.values() for each in pages for page in each.values()}
    last = list(groups)[-1]
    for name in dict.fromkeys((*(extension.name for extension in EXTENSIONS), *names())):
        page = f"guides/{name}.md"
        if page not in there and (ROOT / "docs" / page).exists():
            group, title = placed((ROOT / "docs" / page).read_text()) or (last, "")
            groups[group].append({title: page} if title else page)
    return config


def placed(text: str) -> tuple[str, str] | None:
    """Return the group of the guides to which a page belongs, and its title there; None if it names none."""
    found = re.match(r"<!-- in ([^:]+): (.+) -->\n", text)
    return None if found is None else (found[1], found[2])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add each page of `PAGES`, as if the file lay in docs/."""
    from docs.generate import PAGES

    for path, write in PAGES.items():
        files.append(File.generated(config, path, content=write()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to sources at the repository, if it has an address, and else leave their text.

    A link to a file that does not exist stays as it is: the strict build fails for it.
    """
    folder = PurePosixPath("docs", page.file.src_uri).parent

    def replaced(link: re.Match[str]) -> str:
        target = normpath(str(folder / link["target"]))
        if files.get_file_from_path(target.removeprefix("docs/")) or not (ROOT / target).exists():
            return link[0]
        return f"[{link['text']}]({config.repo_url}/{target})" if config.repo_url else link["text"]

    return re.sub(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#:]+)\)", replaced, markdown)
