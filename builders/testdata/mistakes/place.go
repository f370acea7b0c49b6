package builders

// wrong: GCPWorkerConfig does not implement infrastructureConfig[GCP]

var _ = provider[GCP]{infrastructure: GCPWorkerConfig{}}
