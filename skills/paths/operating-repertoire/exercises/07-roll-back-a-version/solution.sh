#!/bin/sh
set -eu

repertoire diff refunds 3 2
repertoire activate github/acme/refunds 2
repertoire yank github/acme/refunds 3 --reason "Pays out above the limit"
repertoire versions refunds
