package builders

// wrong: AWSInfrastructureConfig does not implement infrastructureConfig[GCP]

var _ = provider[GCP]{infrastructure: AWSInfrastructureConfig{}, controlPlane: GCPControlPlaneConfig{}}
