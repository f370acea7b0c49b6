package contract

// The config-service: versioned configuration, addressed by its hash.
var (
	// FetchNetworkConfig asks which bundle a new Network gets.
	FetchNetworkConfig = Activity[ConfigQuery, ConfigRef]{Name: "config.FetchNetworkConfig"}
	// FetchClusterConfig asks which configuration a Cluster gets. A version
	// that the service does not know is an Invalid fault.
	FetchClusterConfig = Activity[ConfigQuery, ConfigRef]{Name: "config.FetchClusterConfig"}
)

// ConfigQuery is what the service decides by.
type ConfigQuery struct {
	Cloud    string `json:"cloud"`
	Region   string `json:"region"`
	Tenant   string `json:"tenant,omitempty"`
	Operator string `json:"operator,omitempty"` // V1, V2
	Version  string `json:"version,omitempty"`  // of TiDB, v8.5.2
}

// ConfigRef pins one configuration: an operation uses the same hash from its
// first step to its last.
type ConfigRef struct {
	Hash string `json:"hash"` // sha256 in hexadecimal
}
