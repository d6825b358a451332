#!/usr/bin/env bash
# The upstream source of a Debian package: that of the installed version, or the newest that the archive still has (sources of superseded
# updates go). Package lists are kept apart from the system's.
#   scripts/debian_source.sh INTO SOURCE INSTALLED     unpacks SOURCE at INTO/SOURCE; INSTALLED: a package made of it
set -euo pipefail
into=$1 source=$2 installed=$3
lists=$into/apt
apt=(apt-get -q -o "Dir::State::lists=$lists/lists" -o "Dir::Etc::sourceparts=$lists/parts"
    -o Dir::Etc::sourcelist=/dev/null -o "Dir::Cache=$lists/cache" -o APT::Sandbox::User=root)

version=$(dpkg-query -W -f '${source:Version}' "$installed")
mkdir -p "$lists/lists/partial" "$lists/parts" "$lists/cache/archives/partial"
for file in /etc/apt/sources.list.d/debian*.sources; do
    sed 's/^Types:.*/Types: deb-src/' "$file" >"$lists/parts/$(basename "$file")"
done
if ! compgen -G "$lists/lists/*Sources*" >/dev/null; then "${apt[@]}" update >/dev/null; fi
cd "$into"
for version in "$version" $(apt-cache "${apt[@]:2}" showsrc "$source" | sed -n 's/^Version: //p' | sort -rV); do
    if "${apt[@]}" source --download-only "$source=$version" >/dev/null 2>&1; then break; fi
done
file=$(find . -maxdepth 1 -name "${source}_*.orig.tar.*" ! -name '*.asc' | sort -V | tail -n 1)
[[ -n $file ]] || { echo "debian_source.sh: no source of $source: is the archive reachable?" >&2; exit 1; }
rm -rf "$source"
mkdir "$source"
tar -xf "$file" -C "$source" --strip-components=1
echo "$source: ${file#./}"
