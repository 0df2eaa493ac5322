#!/bin/sh
cat <<'END'
#!/bin/sh
set -eu

repertoire diff refunds 3 2
repertoire activate refunds 2
repertoire yank refunds 3 --reason "Pays out above the limit"
repertoire versions refunds
END
