#!/bin/sh
set -eu

repertoire diff refunds 3 2
echo repertoire activate refunds 2
echo repertoire yank refunds 3 --reason "Pays out above the limit"
repertoire versions refunds
