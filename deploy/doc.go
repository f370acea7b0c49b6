// Package deploy holds manifests, not code; its tests check them.
package deploy
