#!/usr/bin/env bash
# Builds the book of all pages, with search, into build/book. Links are checked first.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/check_docs.py
export PATH=$PWD/build/tools/bin:$PATH
mdbook build
echo "book: build/book/index.html"
