#!/bin/sh
set -eu
day=$(date +%Y-%m-%d)
scratch=$(mktemp -d)
repertoire backup --data /srv/repertoire "/backups/$day.backup"
repertoire restore --data "$scratch/data" "/backups/$day.backup"
repertoire verify --data "$scratch/data"
rm -r "$scratch"
