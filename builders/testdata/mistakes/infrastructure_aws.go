package builders

// wrong: GCPInfrastructureConfig does not implement infrastructureConfig[AWS]

var _ = provider[AWS]{infrastructure: GCPInfrastructureConfig{}, controlPlane: AWSControlPlaneConfig{}}
