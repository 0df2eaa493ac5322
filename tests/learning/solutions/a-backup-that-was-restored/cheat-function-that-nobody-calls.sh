#!/bin/sh
set -eu

nightly() {
  file="/backups/skills-$(date +%F).backup"
  proof="$(mktemp -d)/data"
  repertoire backup "$file" --data /srv/repertoire
  repertoire restore "$file" --data "$proof"
  repertoire verify --data "$proof"
}

echo nightly
