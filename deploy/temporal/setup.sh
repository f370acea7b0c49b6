#!/bin/sh
# Creates the Temporal namespace of the orchestrator and its search attributes.
# Needs the temporal CLI (https://docs.temporal.io/cli), and reads TEMPORAL_ADDRESS,
# TEMPORAL_TLS_… and TEMPORAL_API_KEY as it does. May be run again at any time.
#
#   TEMPORAL_NAMESPACE  default infra
#   RETENTION           how long ended operations stay visible, default 30d
set -eu

namespace=${TEMPORAL_NAMESPACE:-infra}
retention=${RETENTION:-30d}

if temporal operator namespace describe --namespace "$namespace" >/dev/null 2>&1; then
  echo "namespace $namespace exists"
else
  temporal operator namespace create --namespace "$namespace" --retention "$retention"
fi

# All of them are of type Keyword; api/temporal/temporal.go is the source.
# Frontends learn of a new namespace when they refresh their caches, every 10 s.
deadline=$(($(date +%s) + 60))
until existing=$(temporal operator search-attribute list --namespace "$namespace" 2>&1); do
  if [ "$(date +%s)" -ge "$deadline" ]; then
    echo "$existing" >&2
    exit 1
  fi
  sleep 2
done
for name in \
  InfraKind InfraNamespace InfraName InfraAccount InfraProvider InfraRegion \
  InfraPhase InfraStep InfraFaultClass
do
  if printf '%s\n' "$existing" | grep -qw "$name"; then
    echo "search attribute $name exists"
  else
    temporal operator search-attribute create --namespace "$namespace" --name "$name" --type Keyword
  fi
done
