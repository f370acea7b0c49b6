#!/bin/sh
# Makes a version of the workers the current one, for workers that run with
# --versioning; also the way back. See "Deploys" in docs/operations.md. Needs the
# temporal CLI 1.5 or newer (https://docs.temporal.io/cli), and reads
# TEMPORAL_ADDRESS, TEMPORAL_TLS_… and TEMPORAL_API_KEY as it does. May be run
# again at any time.
#
#   release.sh BUILD_ID      the --build-id of the workers; --unversioned leaves versioning
#
#   TEMPORAL_NAMESPACE  default infra
#   DEPLOYMENT_NAME     the workers' --deployment-name, default infra-worker
#   WAIT                seconds that the version's workers have to appear, default 300
set -eu

build=${1:?usage: release.sh BUILD_ID | --unversioned}
namespace=${TEMPORAL_NAMESPACE:-infra}
deployment=${DEPLOYMENT_NAME:-infra-worker}
deadline=$(($(date +%s) + ${WAIT:-300}))

if [ "$build" = --unversioned ]; then
  exec temporal worker deployment set-current-version --namespace "$namespace" --deployment-name "$deployment" --unversioned --yes
fi

# Refused while the version's workers do not poll every queue that those of the
# version before them poll.
until answer=$(temporal worker deployment set-current-version \
  --namespace "$namespace" --deployment-name "$deployment" --build-id "$build" --yes 2>&1); do
  if [ "$(date +%s)" -ge "$deadline" ]; then
    echo "version $build of $deployment did not become current: $answer" >&2
    exit 1
  fi
  echo "waiting for the workers of version $build"
  sleep 5
done
echo "version $build of $deployment is current"
temporal worker deployment describe --namespace "$namespace" --name "$deployment"
