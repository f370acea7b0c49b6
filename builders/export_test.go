package builders

// For tests that need package shootrules, which imports this one.
var (
	RequireValid = requireValid
	Generic      = generic
)
