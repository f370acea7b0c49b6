package builders

// wrong: Azure does not satisfy cloud

type Azure struct{}

func (Azure) providerType() string { return "azure" }

var _ provider[Azure]
