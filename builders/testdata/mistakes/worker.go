package builders

// wrong: AWSWorkerConfig does not implement workerConfig[GCP]

var _ = pool[GCP]{config: AWSWorkerConfig{}}
