package awsproxy

import (
	"context"
	"encoding/json"
	"net/http"
)

// key is what DescribeKey tells.
type key struct {
	ARN   string `json:"Arn"`
	State string `json:"KeyState"`
}

const statePendingDeletion = "PendingDeletion"

// keyRule refuses a key in the wrong state with an error code and a reason;
// the table is AWS's "Key states of AWS KMS keys".
type keyRule func(state string) (code, reason string)

func keyEnabled(state string) (code, reason string) {
	if state == "Disabled" {
		return "DisabledException", "is disabled."
	}
	return keyNotPending(state)
}

func keyNotPending(state string) (code, reason string) {
	if state == statePendingDeletion {
		return "KMSInvalidStateException", "is pending deletion."
	}
	return "", ""
}

func keyPending(state string) (code, reason string) {
	if state != statePendingDeletion {
		return "KMSInvalidStateException", "is not pending deletion."
	}
	return "", ""
}

// needKey checks the state of the key that a member names, then lets moto work.
func needKey(member string, rule keyRule) operation {
	return func(p *Proxy, ctx context.Context, r *request) *response {
		if refused := p.refuseKey(ctx, r, r.text(member), rule); refused != nil {
			return refused
		}
		return p.moto(ctx, r)
	}
}

// refuseKey returns the error for a key in the wrong state. A key that moto does
// not know is left to moto's own error.
func (p *Proxy) refuseKey(ctx context.Context, r *request, id string, rule keyRule) *response {
	k, ok := p.describeKey(ctx, r, id)
	if !ok {
		return nil
	}
	if code, reason := rule(k.State); code != "" {
		return r.fail(http.StatusBadRequest, code, "%s %s", k.ARN, reason)
	}
	return nil
}

func (p *Proxy) describeKey(ctx context.Context, r *request, id string) (key, bool) {
	body, err := json.Marshal(map[string]string{"KeyId": id})
	if err != nil {
		return key{}, false
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, p.upstream+"/", nil)
	if err != nil {
		return key{}, false
	}
	hr.Header.Set("Content-Type", contentJSON)
	hr.Header.Set("X-Amz-Target", "TrentService.DescribeKey")
	hr.Header.Set("Authorization", authorization(r.accessKey, r.region, serviceKMS))
	res := p.moto(ctx, &request{http: hr, body: body, service: serviceKMS, operation: "DescribeKey"})
	var answer struct{ KeyMetadata key }
	if !res.ok() || json.Unmarshal(res.body, &answer) != nil {
		return key{}, false
	}
	return answer.KeyMetadata, true
}

// scheduleKeyDeletion adds what moto leaves out: the state rule, and the
// members KeyState and PendingWindowInDays of the answer.
func scheduleKeyDeletion(p *Proxy, ctx context.Context, r *request) *response {
	if refused := p.refuseKey(ctx, r, r.text("KeyId"), keyNotPending); refused != nil {
		return refused
	}
	res := p.moto(ctx, r)
	var answer map[string]any
	if !res.ok() || json.Unmarshal(res.body, &answer) != nil {
		return res
	}
	answer["KeyState"] = statePendingDeletion
	answer["PendingWindowInDays"] = 30
	if days, ok := r.json["PendingWindowInDays"].(float64); ok {
		answer["PendingWindowInDays"] = int(days)
	}
	if k, ok := p.describeKey(ctx, r, r.text("KeyId")); ok {
		answer["KeyId"] = k.ARN
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return res
	}
	return res.setBody(body)
}
