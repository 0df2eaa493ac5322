#!/bin/sh
set -eu
file=/backups/$(date +%F).backup
proof=$(mktemp -d)/data
/usr/local/bin/repertoire --data /srv/repertoire backup "$file"
/usr/local/bin/repertoire --data "$proof" restore "$file"
/usr/local/bin/repertoire --data "$proof" verify
rm -r "$proof"
