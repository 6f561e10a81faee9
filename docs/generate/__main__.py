"""`python -m docs.generate FOLDER`: write the generated pages there, to read them without building the site."""

import sys
from pathlib import Path

from docs.generate import PAGES

folder = Path(sys.argv[1])
for path, write in PAGES.items():
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(write())
    print(folder / path)
