"""Pages of the site lie as in the repository, so that their links hold.

Pages of the site are the Markdown files that a git host shows, with the same paths: ``docs/*.md``
and the READMEs of the project's folders. Nothing is copied or written twice.
"""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OUTSIDE = (
    "README.md",
    "CHANGELOG.md",
    "urdf/README.md",
    "demos/README.md",
    "benchmarks/README.md",
)
"""Pages that are not in ``docs/``."""
PARTS_OF_THE_SITE = "site/"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Give the files of ``docs/`` their paths in the repository, and add those from outside."""
    found = Files([])
    for file in files:
        uri = file.src_uri
        if uri.startswith(PARTS_OF_THE_SITE) and uri.endswith((".py", ".md")):
            continue
        within = file.src_path is not None and Path(config.docs_dir, uri).is_file()
        own = not within or uri.startswith(PARTS_OF_THE_SITE)  # the theme's, and styles
        found.append(
            file if own else File.generated(config, f"docs/{uri}", abs_src_path=file.abs_src_path)
        )
    for uri in OUTSIDE:
        found.append(File.generated(config, uri, abs_src_path=str(ROOT / uri)))
    return found


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Give the first page, beside which there is none, the width of the list of pages."""
    if page.file.src_uri == "README.md":
        page.meta["hide"] = ["navigation"]
    return markdown
