#!/bin/sh
set -eu

repertoire serve --config repertoire.yaml &

while ! curl -fsS -o /dev/null http://localhost:7070/healthz; do
  sleep 1
done

repertoire status --config repertoire.yaml
