#!/usr/bin/env bash
# Builds the book of all pages into build/book, with search if that mdBook is there (`make docs`). Links are checked, in the sources and in the book.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/check_docs.py
export PATH=$PWD/build/tools/search/bin:$PWD/build/tools/plain/bin:$PATH
mdbook build
scripts/book_links.py --check build/book
echo "build/book/index.html"
