#!/usr/bin/env bash
# Builds the book of all pages, with search, into build/book. Links are checked, in the sources and in the book.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/check_docs.py
export PATH=$PWD/build/tools/bin:$PATH
mdbook build
scripts/book_links.py --check build/book
echo "build/book/index.html"
