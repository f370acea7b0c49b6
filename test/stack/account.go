package stack

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// AccessKey issues an access key of another AWS account: the emulator knows the
// account of a key by the role that it was issued for.
func (s *Stack) AccessKey(ctx context.Context, account string) (id, secret string, err error) {
	form := url.Values{
		"Action": {"AssumeRole"}, "Version": {"2011-06-15"}, "RoleSessionName": {"test"},
		"RoleArn": {"arn:aws:iam::" + account + ":role/test"},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.State.AWS, strings.NewReader(form.Encode()))
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIADEVSTACKEXAMPLE0/20260101/us-west-2/sts/aws4_request, SignedHeaders=host, Signature=none")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	var answer struct {
		ID     string `xml:"AssumeRoleResult>Credentials>AccessKeyId"`
		Secret string `xml:"AssumeRoleResult>Credentials>SecretAccessKey"`
	}
	if err := xml.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.ID == "" {
		return "", "", fmt.Errorf("AssumeRole answered %s: %w", resp.Status, err)
	}
	return answer.ID, answer.Secret, nil
}
