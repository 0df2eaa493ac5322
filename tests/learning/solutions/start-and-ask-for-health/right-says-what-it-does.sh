#!/bin/sh
set -eu

config=repertoire.yaml
nohup /opt/bin/repertoire serve --config "$config" > /dev/null 2>&1 &

echo "repertoire is about to start"
until curl --fail --silent http://127.0.0.1:7070/healthz; do
  sleep 1
done

/opt/bin/repertoire status --config "$config"
exit 0
