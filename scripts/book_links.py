#!/usr/bin/env python3
"""What mdBook cannot do by itself: names of pages become links, and the links of the finished book are checked.

  book_links.py supports RENDERER      mdBook asks whether to call this; yes
  book_links.py                        mdBook's preprocessor: a book in, a book out, as JSON
  book_links.py --check DIRECTORY      every link and picture of the book leads somewhere
"""

import html.parser
import json
import os.path
import pathlib
import re
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCED = re.compile(r"(^```.*?^```$)", re.S | re.M)
# not what is a link's text already
NAMED = re.compile(r"(?<!\[)`docs/([\w/-]+\.md|security/)`(?!\])")


def linked(content, path):
    """The chapter at `path`, its mentions of other pages linked."""
    here = os.path.dirname(path)

    def link(match):
        page = "security/README.md" if match[1] == "security/" else match[1]
        if page == path or not (ROOT / "docs" / page).exists():
            return match[0]
        # mdBook makes index.html of a README.md
        to = re.sub(r"README\.md$", "index.html", os.path.relpath(page, here or "."))
        return f"[{match[0]}]({to})"

    parts = FENCED.split(content)
    return "".join(part if part.startswith("```") else NAMED.sub(link, part) for part in parts)


def walk(items):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            chapter = item["Chapter"]
            chapter["content"] = linked(chapter["content"], chapter["path"])
            walk(chapter["sub_items"])


class Page(html.parser.HTMLParser):
    """Where a page leads, and what in it can be led to."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src", "srcset") and value:
                self.targets.append(value)
            elif name in ("id", "name") and value:
                self.ids.add(value)


def check(book):
    # print.html is all pages in one, and toc.html is shown inside of others
    pages = {p: Page(p.read_text()) for p in book.rglob("*.html") if p.name not in ("print.html", "toc.html")}
    checked, wrong = 0, []
    for path, page in pages.items():
        for target in page.targets:
            url = urllib.parse.urlsplit(target)
            if url.scheme or url.netloc or path.name == "404.html":
                continue
            to = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            checked += 1
            if not to.exists():
                wrong.append(f"{path.relative_to(book)}: leads to {target}, which is not there")
            elif url.fragment and to in pages and urllib.parse.unquote(url.fragment) not in pages[to].ids:
                wrong.append(f"{path.relative_to(book)}: {target} names no place of that page")
    print("\n".join(wrong), end="\n" if wrong else "")
    print(f"book: {checked - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong or checked < 100 else 0


def main():
    if sys.argv[1:2] == ["supports"]:
        return 0
    if sys.argv[1:2] == ["--check"]:
        return check(pathlib.Path(sys.argv[2]).resolve())
    _, book = json.load(sys.stdin)
    walk(book.get("items") or book["sections"])
    json.dump(book, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
