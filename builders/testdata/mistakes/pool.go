package builders

// wrong: cannot use pool[AWS]

var _ = provider[GCP]{workers: []pool[GCP]{pool[AWS]{config: AWSWorkerConfig{}}}}
