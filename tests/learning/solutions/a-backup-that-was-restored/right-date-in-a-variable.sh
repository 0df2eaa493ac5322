#!/bin/bash
set -euo pipefail
today=$(date --iso-8601)
check=/var/tmp/proof-$$
repertoire backup "/backups/$today.backup" --data=/srv/repertoire
repertoire restore "/backups/$today.backup" --data="$check"
repertoire verify --data="$check"
rm -r "$check"
