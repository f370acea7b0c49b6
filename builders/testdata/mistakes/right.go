package builders

// The one that compiles: without it, the others could fail for any reason.

var _ = provider[AWS]{
	infrastructure: AWSInfrastructureConfig{},
	controlPlane:   AWSControlPlaneConfig{},
	workers:        []pool[AWS]{{config: AWSWorkerConfig{}}},
}

var _ = provider[GCP]{
	infrastructure: GCPInfrastructureConfig{},
	controlPlane:   GCPControlPlaneConfig{},
	workers:        []pool[GCP]{{config: GCPWorkerConfig{}}},
}
