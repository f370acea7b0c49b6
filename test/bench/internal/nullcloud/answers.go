package nullcloud

import (
	"fmt"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

func present(provider, kind, id string) contract.Outcome {
	return contract.Outcome{Resource: v1.Resource{Provider: provider, Region: "us-west-2", Type: kind, ID: id, State: v1.ResourcePresent}}
}

func (c *Cloud) aws() {
	answer(c, contract.AWS.VerifyCredentials, func(a contract.CloudAccount) contract.CloudIdentity {
		return contract.CloudIdentity{Principal: "arn:aws:iam::" + a.AccountID + ":user/infra", AccountID: a.AccountID}
	})
	answer(c, contract.AWS.EnsureBucket, func(in contract.CloudResourceInput) contract.Outcome { return present("aws", "S3::Bucket", in.Name) })
	answer(c, contract.AWS.DeleteBucket, func(in contract.DeleteBucketInput) contract.Outcome { return present("aws", "S3::Bucket", in.Name) })
	answer(c, contract.AWS.DiscoverVPC, func(in contract.DiscoverVPCInput) contract.VPC {
		return contract.VPC{ID: id("vpc", in.TechnicalID), CIDR: "10.250.0.0/16",
			RouteTableIDs: []string{id("rtb", in.TechnicalID+"a"), id("rtb", in.TechnicalID+"b"), id("rtb", in.TechnicalID+"c")},
			Zones:         []string{"us-west-2a", "us-west-2b", "us-west-2c"}}
	})
	answer(c, contract.AWS.EnsureIssuer, func(in contract.IssuerInput) contract.Outcome {
		return present("aws", "IAM::OIDCProvider", "arn:aws:iam::"+in.Account.AccountID+":oidc-provider/"+in.IssuerURL)
	})
	nothing(c, contract.AWS.DeleteIssuer)
	answer(c, contract.AWS.EnsureZone, func(in contract.ZoneInput) contract.Zone {
		zone := id("Z", in.Name)
		return contract.Zone{ID: zone, Name: in.Name, Resource: present("aws", "Route53::HostedZone", zone).Resource}
	})
	nothing(c, contract.AWS.DeleteZone)
	answer(c, contract.AWS.EnsureKey, func(in contract.CloudResourceInput) contract.Outcome {
		return present("aws", "KMS::Key", "arn:aws:kms:us-west-2:"+in.Account.AccountID+":key/"+id("k", in.Name))
	})
	answer(c, contract.AWS.DeleteKey, func(in contract.CloudResourceInput) contract.Outcome { return present("aws", "KMS::Key", in.Name) })
	answer(c, contract.AWS.EnsureIdentity, func(in contract.IdentityInput) contract.Outcome {
		return present("aws", "IAM::Role", "arn:aws:iam::"+in.Account.AccountID+":role/"+in.Name)
	})
	nothing(c, contract.AWS.DeleteIdentity)
	answer(c, contract.AWS.WaitLoadBalancerActive, func(in contract.LoadBalancerInput) contract.LoadBalancer {
		return contract.LoadBalancer{ID: "arn:aws:elasticloadbalancing:us-west-2:" + in.Account.AccountID + ":loadbalancer/net/" + id("lb", in.Hostname), Hostname: in.Hostname}
	})
	nothing(c, contract.AWS.WaitLoadBalancerGone)
	answer(c, contract.AWS.EnsureEndpointService, func(in contract.EndpointServiceInput) contract.EndpointService {
		svc := id("vpce-svc", in.Owner.ID)
		return contract.EndpointService{ID: svc, ServiceName: "com.amazonaws.vpce.us-west-2." + svc, State: "Available",
			Resource: present("aws", "EC2::VPCEndpointService", svc).Resource}
	})
	nothing(c, contract.AWS.DeleteEndpointService)
	answer(c, contract.AWS.EnsureRecords, func(in contract.RecordsInput) contract.Outcome {
		return present("aws", "Route53::RecordSet", in.Records[0].Name)
	})
	nothing(c, contract.AWS.DeleteRecords)
	answer(c, contract.AWS.DeleteVolumes, func(contract.SweepInput) contract.Outcome { return contract.Outcome{} })
	answer(c, contract.AWS.Sweep, func(contract.SweepInput) contract.Leftovers { return contract.Leftovers{} })
	answer(c, contract.AWS.ListVPCDependents, func(contract.DiscoverVPCInput) contract.Leftovers { return contract.Leftovers{} })
}

func (c *Cloud) garden() {
	answer(c, contract.EnsureBinding, func(in contract.NetworkPlan) contract.Outcome {
		return present("garden", "CredentialsBinding", in.Shoot.Namespace+"/"+in.BindingName)
	})
	nothing(c, contract.DeleteBinding)
	answer(c, contract.EnsureShoot, func(in contract.NetworkPlan) contract.Outcome { return present("garden", "Shoot", in.Shoot.String()) })
	answer(c, contract.WaitShootReady, shootOf)
	answer(c, contract.ObserveShoot, shootOf)
	nothing(c, contract.RetryShoot)
	answer(c, contract.EnsureWorkerPools, func(in contract.WorkerPoolsInput) contract.Outcome {
		return present("garden", "WorkerPools", in.Shoot.String()+"/"+in.Cluster.ID8())
	})
	answer(c, contract.AllocateWorkerPools, func(in contract.AllocateWorkerPoolsInput) (out contract.WorkerPools) {
		for _, one := range in.Components {
			for i, p := range one.Pools {
				p.Name = fmt.Sprintf("%s-%05d", one.PoolGroup, i)
				out.Pools = append(out.Pools, p)
			}
		}
		return out
	})
	answer(c, contract.RetireWorkerPools, func(in contract.WorkerPoolsInput) contract.Outcome {
		return present("garden", "WorkerPools", in.Shoot.String()+"/"+in.Cluster.ID8())
	})
	nothing(c, contract.DeleteWorkerPools)
	nothing(c, contract.DeleteShoot)
	nothing(c, contract.WaitShootGone)
	answer(c, contract.FetchNetworkConfig, func(contract.ConfigQuery) contract.ConfigRef { return contract.ConfigRef{Hash: "0f" + zeroes} })
	answer(c, contract.FetchClusterConfig, func(contract.ConfigQuery) contract.ConfigRef { return contract.ConfigRef{Hash: "1f" + zeroes} })
}

// zeroes makes a hash of the usual length.
const zeroes = "00000000000000000000000000000000000000000000000000000000000000"

func shootOf(in contract.ShootInput) contract.ShootStatus {
	return contract.ShootStatus{Exists: true, UID: id("uid", in.Shoot.Name), StatusUID: id("uid", in.Shoot.Name),
		TechnicalID: "shoot--core--" + in.Shoot.Name, SeedName: "aws-us-west-2", Generation: 1, ObservedGeneration: 1,
		OperationType: "Create", OperationState: "Succeeded", Progress: 100,
		Issuer: "https://issuer.example.com/" + in.Shoot.Name, Zones: []string{"us-west-2a", "us-west-2b", "us-west-2c"}}
}

func (c *Cloud) shoot() {
	nothing(c, contract.BootstrapShoot)
	nothing(c, contract.WaitBootstrapped)
	nothing(c, contract.CleanShoot)
	made := func(a contract.Activity[contract.DatabaseInput, contract.Outcome], kind string) {
		answer(c, a, func(in contract.DatabaseInput) contract.Outcome {
			return present("shoot", kind, in.Plan.Namespace+"/"+in.Plan.Name)
		})
	}
	made(contract.EnsureStorageClasses, "StorageClass")
	nothing(c, contract.DeleteStorageClasses)
	made(contract.EnsureClusterNamespace, "Namespace")
	nothing(c, contract.DeleteClusterNamespace)
	made(contract.EnsureDatabase, "TidbCluster")
	answer(c, contract.WaitDatabaseReady, func(in contract.DatabaseInput) contract.DatabaseStatus {
		out := contract.DatabaseStatus{ClusterID: "7000000000000000000", Version: in.Plan.Version, Components: map[string]contract.ComponentStatus{}}
		for _, one := range in.Plan.Components {
			out.Components[one.Name] = contract.ComponentStatus{Replicas: one.Replicas, Ready: one.Replicas, Image: "pingcap/" + one.Name + ":" + in.Plan.Version}
		}
		return out
	})
	nothing(c, contract.EnsureRootPassword)
	nothing(c, contract.DeleteDatabase)
	made(contract.EnsureService, "Service")
	answer(c, contract.WaitServiceAddress, func(in contract.DatabaseInput) contract.ServiceAddress {
		return contract.ServiceAddress{Hostname: id("lb", in.Plan.Namespace) + ".elb.us-west-2.amazonaws.com", Port: in.Plan.Port}
	})
	nothing(c, contract.DeleteService)
	made(contract.EnsureBackupSchedule, "BackupSchedule")
	nothing(c, contract.DeleteBackups)
}
