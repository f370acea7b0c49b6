package lab

import (
	"context"
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// OwnAccount puts what the lane creates from now on into an AWS account of its
// own, so that a fault can strike this lane only.
func (l *Lane) OwnAccount(ctx context.Context) (account string, err error) {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(l.Name))
	account = fmt.Sprintf("1%011d", sum.Sum32())
	id, secret, err := l.Stack.AccessKey(ctx, account)
	if err != nil {
		return "", err
	}
	for _, o := range l.samples {
		switch o.GetKind() {
		case "Secret":
			// The marker stays in what is secret; the key's id has to be the real one.
			fields := map[string]string{"accessKeyID": id, "secretAccessKey": Marker + secret}
			if err := unstructured.SetNestedStringMap(o.Object, fields, "stringData"); err != nil {
				return "", err
			}
			if err := l.Stack.Apply(ctx, o.DeepCopy()); err != nil {
				return "", err
			}
		case v1.KindProvider:
			if err := unstructured.SetNestedField(o.Object, account, "spec", "aws", "accountID"); err != nil {
				return "", err
			}
		}
	}
	return account, nil
}
