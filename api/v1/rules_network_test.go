package v1_test

import "testing"

func TestNetworkRules(t *testing.T) {
	const kind = "Network"
	four := []any{"us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"}
	check(t, map[string]rule{
		"provider is required":     {kind: kind, fail: set{"spec.provider": remove}, says: "spec.provider: Required value"},
		"provider is immutable":    {kind: kind, from: set{}, fail: set{"spec.provider": "other"}, says: "is immutable; create another Network in another Provider"},
		"account is immutable":     {kind: kind, from: set{}, fail: set{"spec.account": "other"}, says: "account is immutable"},
		"account is not added":     {kind: kind, from: set{"spec.account": remove}, pass: set{"spec.account": remove}, fail: set{}, says: "account is immutable, also when it was not given"},
		"tenantProject":            {kind: kind, pass: set{"spec.tenantProject": remove}, fail: set{"spec.tenantProject": "a b"}, says: "spec.tenantProject"},
		"tenantProject immutable":  {kind: kind, from: set{}, fail: set{"spec.tenantProject": "9"}, says: "tenantProject is immutable"},
		"region is immutable":      {kind: kind, from: set{}, fail: set{"spec.region": "eu-west-1"}, says: "is immutable; create another Network in another region"},
		"zones are 1 to 6":         {kind: kind, pass: set{"spec.zones": four}, fail: set{"spec.zones": []any{}}, says: "spec.zones"},
		"zones differ":             {kind: kind, fail: set{"spec.zones": []any{"us-west-2a", "us-west-2a"}}, says: "Duplicate value"},
		"zones are not removed":    {kind: kind, from: set{}, fail: set{"spec.zones": []any{"us-west-2a"}}, says: "zones can be appended, never removed"},
		"zones are not added yet":  {kind: kind, from: set{}, fail: set{"spec.zones": four}, says: "adding zones to a Network is not supported yet"},
		"shootName":                {kind: kind, pass: set{"spec.shootName": "abc"}, fail: set{"spec.shootName": "ABC"}, says: "spec.shootName"},
		"shootName length":         {kind: kind, fail: set{"spec.shootName": "abcdefghijklmnopqrstu"}, says: "spec.shootName: Too long"},
		"shootName is immutable":   {kind: kind, from: set{}, fail: set{"spec.shootName": "other"}, says: "shootName is immutable"},
		"shootName is not added":   {kind: kind, from: set{"spec.shootName": remove}, pass: set{"spec.shootName": remove}, fail: set{}, says: "shootName is immutable, also when it was not given"},
		"vpc is canonical":         {kind: kind, pass: set{"spec.cidr.vpc": "172.16.0.0/20"}, fail: set{"spec.cidr.vpc": "172.16.0.1/20"}, says: "begins at its network address"},
		"vpc is a range":           {kind: kind, fail: set{"spec.cidr.vpc": "172.16.0.0"}, says: "must be an IPv4 range"},
		"vpc and pods":             {kind: kind, pass: set{"spec.cidr.pods": "100.64.0.0/12"}, fail: set{"spec.cidr.pods": "10.250.128.0/17"}, says: "vpc and pods must not overlap"},
		"vpc and services":         {kind: kind, fail: set{"spec.cidr.services": "10.0.0.0/8"}, says: "vpc and services must not overlap"},
		"pods and services":        {kind: kind, fail: set{"spec.cidr.services": "100.64.0.0/16"}, says: "pods and services must not overlap"},
		"cidr is immutable":        {kind: kind, from: set{}, fail: set{"spec.cidr.vpc": "10.251.0.0/16"}, says: "is immutable; create another Network with other ranges"},
		"existing VPC":             {kind: kind, fail: set{"spec.existingVPC": map[string]any{"id": "vpc-1"}}, says: "an existing VPC is not supported yet"},
		"version format":           {kind: kind, pass: set{"spec.kubernetesVersion": "1.33.5"}, fail: set{"spec.kubernetesVersion": "1"}, says: "spec.kubernetesVersion"},
		"version is not lowered":   {kind: kind, from: set{}, fail: set{"spec.kubernetesVersion": "1.32"}, says: "can be raised, never lowered"},
		"version goes by one":      {kind: kind, from: set{}, fail: set{"spec.kubernetesVersion": "1.35"}, says: "can be raised by one minor version at a time"},
		"version stays for now":    {kind: kind, from: set{}, fail: set{"spec.kubernetesVersion": "1.34"}, says: "changing the version of a Network is not supported yet"},
		"purpose":                  {kind: kind, pass: set{"spec.purpose": "testing"}, fail: set{"spec.purpose": "infrastructure"}, says: "spec.purpose"},
		"purpose stays for now":    {kind: kind, from: set{}, fail: set{"spec.purpose": "testing"}, says: "changing the purpose of a Network is not supported yet"},
		"window format":            {kind: kind, pass: set{"spec.maintenanceWindow.end": "000000+0100"}, fail: set{"spec.maintenanceWindow.end": "24:00"}, says: "spec.maintenanceWindow.end"},
		"window stays for now":     {kind: kind, from: set{}, fail: set{"spec.maintenanceWindow.end": "234500+0000"}, says: "changing the window of a Network is not supported yet"},
		"system pool in order":     {kind: kind, pass: set{"spec.systemPool.minimum": 3}, fail: set{"spec.systemPool.minimum": 4}, says: "minimum must not be greater than maximum"},
		"system pool is not empty": {kind: kind, fail: set{"spec.systemPool.minimum": 0}, says: "spec.systemPool.minimum"},
		"system pool stays":        {kind: kind, from: set{}, fail: set{"spec.systemPool.maximum": 4}, says: "changing the system pool of a Network is not supported yet"},
		"hibernation Auto":         {kind: kind, pass: set{"spec.hibernation": remove}, fail: set{"spec.hibernation.mode": "Auto"}, says: "modes Auto and Always are not supported yet"},
		"hibernation Always":       {kind: kind, fail: set{"spec.hibernation.mode": "Always"}, says: "modes Auto and Always are not supported yet"},
		"hibernation idle time":    {kind: kind, fail: set{"spec.hibernation.idleAfter": "2h"}, says: "hibernation is not supported yet"},
		"visibility":               {kind: kind, pass: set{"spec.dns.visibility": "None"}, fail: set{"spec.dns.visibility": "Hidden"}, says: "spec.dns.visibility"},
		"visibility is immutable":  {kind: kind, from: set{}, fail: set{"spec.dns.visibility": "None"}, says: "is immutable; create another Network with another visibility"},
		"GCP":                      {kind: kind, fail: set{"spec.gcp": map[string]any{"pscNATCIDR": "10.251.0.0/20"}}, says: "cloud GCP is not supported yet"},
		"bucket may change":        {kind: kind, from: set{}, pass: set{"spec.bucket.retain": false}, fail: set{"spec.bucket.retain": "no"}, says: "spec.bucket.retain"},
		"o11y may change":          {kind: kind, from: set{}, pass: set{"spec.o11y.enabled": false}, fail: set{"spec.o11y.enabled": 1}, says: "spec.o11y.enabled"},
		"policy may change":        {kind: kind, from: set{}, pass: set{"spec.deletionPolicy": "Retain"}, fail: set{"spec.deletionPolicy": "Keep"}, says: "spec.deletionPolicy"},
		"name fits into a label":   {kind: kind, pass: set{"metadata.name": longName[:63]}, fail: set{"metadata.name": longName}, says: "metadata.name must have at most 63 characters"},
	})
}
