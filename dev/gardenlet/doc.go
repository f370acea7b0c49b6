// Package gardenlet stands in for what turns Shoot objects into clusters:
// gardener-scheduler, gardenlet and a provider extension. It binds Shoots to the
// seed, drives their status in Gardener's own words and order, has the cloud
// side made by an Infrastructure, and runs for each awake Shoot a real
// Kubernetes API server with controllers, scheduler and simulated nodes.
//
// Validation, defaulting, deletion confirmation, retry annotations and
// adminkubeconfig are not here: the real gardener-apiserver does them.
package gardenlet
