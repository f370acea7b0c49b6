package builders

// wrong: AWSControlPlaneConfig does not implement controlPlaneConfig[GCP]

var _ = provider[GCP]{infrastructure: GCPInfrastructureConfig{}, controlPlane: AWSControlPlaneConfig{}}
