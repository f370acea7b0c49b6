// Package kube runs real Kubernetes clusters inside the calling process: etcd,
// kube-apiserver, the controllers that a development cluster needs,
// kube-scheduler, and kwok in place of kubelets. Any number of clusters share
// one etcd, each under a prefix of its own, on loopback.
//
// It replaces none of Kubernetes' own behaviour: authentication, RBAC,
// admission, garbage collection, scheduling and volume binding are upstream
// code. What is simulated is named so: nodes and pods (kwok) and the CSI
// provisioner (volumes.go).
//
// Several components keep process-wide registries that were written for one
// component per process. The places that work around them say so.
package kube
