package aws

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

// volumeAPI is what is called of EC2 for disks.
type volumeAPI interface {
	ec2.DescribeVolumesAPIClient
	DeleteVolume(context.Context, *ec2.DeleteVolumeInput, ...func(*ec2.Options)) (*ec2.DeleteVolumeOutput, error)
}

// volumesOf lists volumes by a filter, without those that are on their way out.
func volumesOf(ctx context.Context, c *clients, by ec2types.Filter) ([]ec2types.Volume, error) {
	var found []ec2types.Volume
	pages := ec2.NewDescribeVolumesPaginator(c.ec2, &ec2.DescribeVolumesInput{Filters: []ec2types.Filter{by}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, faults.FromAWS(err, "EBS volumes")
		}
		for _, v := range page.Volumes {
			if v.State != ec2types.VolumeStateDeleting && v.State != ec2types.VolumeStateDeleted {
				found = append(found, v)
			}
		}
	}
	return found, nil
}
