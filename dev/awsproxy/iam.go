package awsproxy

import (
	"context"
	"encoding/json"
	"net/http"
)

// checkPolicy refuses a policy document that is no JSON object; moto stores it.
func checkPolicy(parameter string) operation {
	return func(p *Proxy, ctx context.Context, r *request) *response {
		var document map[string]any
		if json.Unmarshal([]byte(r.form.Get(parameter)), &document) != nil {
			return r.fail(http.StatusBadRequest, "MalformedPolicyDocument", "This policy contains invalid Json")
		}
		return p.moto(ctx, r)
	}
}
