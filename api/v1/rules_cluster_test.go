package v1_test

import "testing"

const key = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"

func TestClusterRules(t *testing.T) {
	const kind = "Cluster"
	paused := set{"spec.paused": true}
	tikv, tidb := "spec.topology.tikv", "spec.topology.tidb"
	check(t, map[string]rule{
		"network is immutable":     {kind: kind, from: set{}, fail: set{"spec.network": "n2"}, says: "is immutable; create another Cluster in another Network"},
		"displayName":              {kind: kind, pass: set{"spec.displayName": "ab-1"}, fail: set{"spec.displayName": "abc"}, says: "spec.displayName"},
		"displayName may change":   {kind: kind, from: set{}, pass: set{"spec.displayName": "sales"}, fail: set{"spec.displayName": "-ales"}, says: "spec.displayName"},
		"version format":           {kind: kind, pass: set{"spec.version": "v7.5.10"}, fail: set{"spec.version": "8.5.2"}, says: "spec.version"},
		"version is not lowered":   {kind: kind, from: set{}, fail: set{"spec.version": "v8.1.9"}, says: "can be raised, never lowered"},
		"version stays for now":    {kind: kind, from: set{}, fail: set{"spec.version": "v8.5.10"}, says: "upgrading a Cluster is not supported yet"},
		"operator V2":              {kind: kind, fail: set{"spec.operator": "V2"}, says: "operator V2 is not supported yet"},
		"operator is known":        {kind: kind, pass: set{"spec.operator": remove}, fail: set{"spec.operator": "V3"}, says: `supported values: "V1", "V2"`},
		"operator is immutable":    {kind: kind, from: set{}, fail: set{"spec.operator": "V2"}, says: "is immutable; create another Cluster with another operator"},
		"pd replicas":              {kind: kind, pass: set{"spec.topology.pd.replicas": 5}, fail: set{"spec.topology.pd.replicas": 2}, says: "must be 1, 3 or 5"},
		"tidb replicas":            {kind: kind, pass: set{tidb + ".replicas": 1}, fail: set{tidb + ".replicas": 0}, says: tidb + ".replicas"},
		"tikv in threes":           {kind: kind, pass: set{tikv + ".replicas": 6}, fail: set{tikv + ".replicas": 4}, says: "must be a multiple of 3"},
		"tikv at least three":      {kind: kind, fail: set{tikv + ".replicas": 0}, says: tikv + ".replicas"},
		"tiflash replicas":         {kind: kind, pass: set{"spec.topology.tiflash": remove}, fail: set{"spec.topology.tiflash.replicas": -1}, says: "spec.topology.tiflash.replicas"},
		"storage size":             {kind: kind, pass: set{tikv + ".storage.size": "1Ti"}, fail: set{tikv + ".storage.size": "1T"}, says: tikv + ".storage.size"},
		"storage grows":            {kind: kind, from: set{}, fail: set{tikv + ".storage.size": "499Gi"}, says: "size can grow, never shrink"},
		"scaling":                  {kind: kind, from: set{}, fail: set{tikv + ".replicas": 6}, says: "scaling a Cluster is not supported yet"},
		"storage growth":           {kind: kind, from: set{}, fail: set{tikv + ".storage.size": "600Gi"}, says: "scaling a Cluster is not supported yet"},
		"port range":               {kind: kind, pass: set{"spec.port": 1024}, fail: set{"spec.port": 1023}, says: "spec.port"},
		"port is not the status's": {kind: kind, pass: set{"spec.port": 10081}, fail: set{"spec.port": 10080}, says: "must not be 10080"},
		"port is immutable":        {kind: kind, from: set{}, fail: set{"spec.port": 4001}, says: "is immutable; create another Cluster with another port"},
		"root password":            {kind: kind, fail: set{"spec.rootPasswordSecretRef": remove}, says: "rootPasswordSecretRef is required"},
		"root password stays":      {kind: kind, from: set{}, fail: set{"spec.rootPasswordSecretRef.name": "other"}, says: "rotating the root password is not supported yet"},
		"paused":                   {kind: kind, pass: set{"spec.paused": remove}, fail: paused, says: "pausing is not supported yet"},
		"pausePolicy":              {kind: kind, fail: set{"spec.pausePolicy": map[string]any{"maxDuration": "1h"}}, says: "pausing is not supported yet"},
		"pause and topology":       {kind: kind, from: set{}, fail: set{"spec.paused": true, tidb + ".replicas": 3}, says: "paused and topology must not change in one update"},
		"frozen while paused":      {kind: kind, from: paused, pass: paused, fail: set{"spec.paused": true, tidb + ".replicas": 3}, says: "are frozen while the Cluster is paused"},
		"resume and topology":      {kind: kind, from: paused, pass: set{}, fail: set{tidb + ".replicas": 3}, says: "paused and topology must not change in one update"},
		"bootstrap Restore":        {kind: kind, pass: set{"spec.bootstrap": remove}, fail: set{"spec.bootstrap.mode": "Restore"}, says: "starting from a backup is not supported yet"},
		"bootstrap is immutable":   {kind: kind, from: set{}, fail: set{"spec.bootstrap.mode": "Restore"}, says: "is immutable; create another Cluster"},
		"customer key is given":    {kind: kind, pass: set{"spec.encryption": map[string]any{"mode": "Customer", "customerKeyARN": key}}, fail: set{"spec.encryption.mode": "Customer"}, says: "customerKeyARN is required with mode Customer"},
		"customer key alone":       {kind: kind, pass: set{"spec.encryption.mode": "None"}, fail: set{"spec.encryption.customerKeyARN": key}, says: "customerKeyARN goes with mode Customer only"},
		"customer key format":      {kind: kind, fail: set{"spec.encryption": map[string]any{"mode": "Customer", "customerKeyARN": "alias/x"}}, says: "spec.encryption.customerKeyARN"},
		"encryption is immutable":  {kind: kind, from: set{}, fail: set{"spec.encryption.mode": "None"}, says: "is immutable; create another Cluster with another encryption"},
		"public endpoint":          {kind: kind, fail: set{"spec.endpoints.public": map[string]any{"enabled": true, "allowCIDRs": []any{"10.0.0.0/8"}}}, says: "the public endpoint is not supported yet"},
		"public endpoint is safe":  {kind: kind, fail: set{"spec.endpoints.public.enabled": true}, says: "allowCIDRs is required when the public endpoint is enabled"},
		"principals":               {kind: kind, pass: set{"spec.endpoints.private.allowedPrincipals": []any{"arn:aws:iam::123456789012:role/app"}}, fail: set{"spec.endpoints.private.allowedPrincipals": []any{"*"}}, says: "allowedPrincipals[0]"},
		"consumer projects":        {kind: kind, fail: set{"spec.endpoints.private.consumerProjects": []any{map[string]any{"id": "p", "limit": 1}}}, says: "cloud GCP is not supported yet"},
		"endpoints stay for now":   {kind: kind, from: set{}, fail: set{"spec.endpoints.private.enabled": false}, says: "changing the endpoints of a Cluster is not supported yet"},
		"schedule":                 {kind: kind, pass: set{"spec.backupPolicy.schedule": "None"}, fail: set{"spec.backupPolicy.schedule": "Hourly"}, says: "spec.backupPolicy.schedule"},
		"weekly needs pitr":        {kind: kind, fail: set{"spec.backupPolicy.schedule": "Weekly"}, says: "schedule Weekly needs pitr"},
		"pitr":                     {kind: kind, fail: set{"spec.backupPolicy.pitr": true}, says: "point-in-time recovery is not supported yet"},
		"time of day":              {kind: kind, pass: set{"spec.backupPolicy.timeUTC": "23:59"}, fail: set{"spec.backupPolicy.timeUTC": "24:00"}, says: "spec.backupPolicy.timeUTC"},
		"retention":                {kind: kind, pass: set{"spec.backupPolicy.retentionDays": 1}, fail: set{"spec.backupPolicy.retentionDays": 0}, says: "spec.backupPolicy.retentionDays"},
		"backup policy stays":      {kind: kind, from: set{}, fail: set{"spec.backupPolicy.schedule": "None"}, says: "changing the backup policy of a Cluster is not supported yet"},
		"changeWindow":             {kind: kind, pass: set{"spec.changeWindow": remove}, fail: set{"spec.changeWindow": "MaintenanceWindow"}, says: "waiting for the maintenance window is not supported yet"},
		"retainBackups may change": {kind: kind, from: set{}, pass: set{"spec.retainBackups": false}, fail: set{"spec.retainBackups": "no"}, says: "spec.retainBackups"},
		"name fits into a label":   {kind: kind, pass: set{"metadata.name": longName[:63]}, fail: set{"metadata.name": longName}, says: "metadata.name must have at most 63 characters"},
	})
}
