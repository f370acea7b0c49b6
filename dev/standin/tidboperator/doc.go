// Package tidboperator stands in for TiDB Operator v1 inside a shoot. It works
// only while the Deployment tidb-admin/tidb-controller-manager is available,
// as the real one would, and behaves as version 1.6.6 does where its users can
// see it (facts/infrastructure.md 2.1 to 2.3): TidbCluster has no status
// subresource and no observedGeneration, conditions accumulate, components
// start in the order PD, TiKV, TiDB, TiFlash, volumes are kept at the reclaim
// policy of the TidbCluster for as long as it exists.
//
// Components are real StatefulSets, so Pods and PersistentVolumeClaims exist
// and can be looked at; that no database runs in them is all that is missing.
package tidboperator
